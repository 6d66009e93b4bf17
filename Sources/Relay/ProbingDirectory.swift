// Adds the relay's own test mail to an engine, as an account like others, by wrapping its directory
// and its authenticator.

import InternetMessage
import MailAuth
import RelayCore

/// A directory that adds the probe's account to another directory, and stores nothing about it.
package struct ProbingDirectory: RelayDirectory {
    private let base: any RelayDirectory
    private let probe: ProbeIdentity
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    package init(
        _ base: any RelayDirectory, probe: ProbeIdentity, now: @escaping @Sendable () -> Int64
    ) {
        self.base = base
        self.probe = probe
        self.now = now
    }

    package func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? {
        if probe.isRelayAddress(localPart, domain: domain, now: now()) {
            return probe.account(now: now())
        }
        return try base.account(relayAddress: localPart, domain: domain)
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        number == ProbeIdentity.account ? probe.account(now: now()) : try base.account(number)
    }

    package func isBlocked(
        _ author: AddrSpec, by account: AccountNumber
    ) throws(DirectoryFailure) -> Bool {
        try base.isBlocked(author, by: account)
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        let team = RegisteredSource(scope: .address(probe.team))
        return team.covers(author) ? [team] : try base.sources(covering: author)
    }

    package func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission {
        try base.admission(of: team, to: provider, perHour: perHour, now: now)
    }

    package func senderContext(
        _ account: AccountNumber
    ) throws(DirectoryFailure) -> SenderContext? {
        account == ProbeIdentity.account
            ? probe.account(now: now()).senderContext : try base.senderContext(account)
    }

    /// Only the team's address can be too long for a token. The caller checks that the result is
    /// this address.
    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        token.account == ProbeIdentity.account ? probe.team : try base.storedAddress(token)
    }

    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? true : try base.store(addresses, account: account, day: day, newPerDay: newPerDay)
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? true : try base.reserve(direction, account: account, day: day, limit: limit)
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        if account != ProbeIdentity.account { base.release(direction, account: account, day: day) }
    }

    /// The test account is never counted.
    package func reserveWarmUp(
        host: String, team: String, day: UInt64, ceiling: Int
    ) throws(DirectoryFailure) -> Bool {
        try base.reserveWarmUp(host: host, team: team, day: day, ceiling: ceiling)
    }

    package func releaseWarmUp(host: String, team: String, day: UInt64) {
        base.releaseWarmUp(host: host, team: team, day: day)
    }

    package func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? false : try base.isHandedOver(mark, account: account, now: now)
    }

    package func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {
        try base.beginHandOver(copies.filter { $0.account != ProbeIdentity.account }, until: until)
    }

    package func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {
        if account != ProbeIdentity.account {
            try base.rememberHandedOver(marks, account: account, until: until)
        }
    }

    package func forgetHandedOver(
        _ marks: [[UInt8]], account: AccountNumber
    ) throws(DirectoryFailure) {
        if account != ProbeIdentity.account { try base.forgetHandedOver(marks, account: account) }
    }

    package func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? true
            : try base.reserveAutomatic(account: account, correspondent: correspondent, day: day)
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        account == ProbeIdentity.account
            ? .recorded : try base.recordFailure(failure, of: account, rate: rate)
    }

    package func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? true
            : try base.recordComplaint(
                of: account, mark: mark, at: provider, day: day)
    }

    package func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try base.record(report, reporter: reporter, now: now)
    }

    package func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord {
        try base.recordAnswer(to: token, author: author)
    }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        if account != ProbeIdentity.account { base.count(counter, account: account, day: day) }
    }

    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {
        guard account != ProbeIdentity.account else { return }
        base.count(outcome, at: provider, account: account, now: now)
    }
}

/// Accepts the probe's field as proof for the probe's own addresses. Another authenticator handles
/// everything else.
package struct ProbingAuthenticator: SenderAuthenticator {
    private let base: any SenderAuthenticator
    private let probe: ProbeIdentity

    package init(_ base: any SenderAuthenticator, probe: ProbeIdentity) {
        self.base = base
        self.probe = probe
    }

    package func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        probe.isProved(header, now: now)
            ? Proved(probe, client) : base.begin(client: client, header: header, now: now)
    }

    private final class Proved: AuthenticationSession {
        private let domains: [String]

        init(_ probe: ProbeIdentity, _ client: SMTPClientIdentity) {
            // The relay domain proves the author of a forward; no other team has it as a source.
            domains = [ProbeIdentity.userDomain, probe.domain]
        }

        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence {
            AuthenticationEvidence(
                spf: domains.map {
                    SPFFinding(result: .pass, identity: .mailFrom, domain: $0, reason: "probe")
                })
        }
    }
}
