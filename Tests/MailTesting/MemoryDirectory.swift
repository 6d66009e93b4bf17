// A directory in memory, and an authenticator with the findings of a test: RelayCore without a
// store and without DNS.

import InternetMessage
import MailAuth
import RelayCore
import Synchronization

/// Accounts, and all records about them. Can be unavailable, and full.
package final class MemoryDirectory: RelayDirectory {
    private struct State {
        var accounts: [AccountNumber: RelayAccount] = [:]
        var stored: [String: AddrSpec] = [:]
        var used: [String: Int] = [:]
        var blocked: Set<RegisteredSource> = []
        var once: Set<String> = []
        var counts: [RelayCounter: Int] = [:]
        var underWay: [AnswerToken: AddrSpec] = [:]
        var answered: Set<AnswerToken> = []
        var failures: [InboxFailure] = []
        var complaints: [AccountNumber] = []
        var deliveries: [String] = []
        var admissions: [String: DeliveryAdmission] = [:]
        var reports: [(reporter: String, report: AggregateReport)] = []
        var isDown = false
        /// The number of copies that can still be recorded.
        var room = Int.max
    }

    private let state = Mutex(State())

    package init(_ accounts: [RelayAccount]) {
        state.withLock { state in
            for account in accounts { state.accounts[account.number] = account }
        }
    }

    /// Adds an account, or changes one.
    package func put(_ account: RelayAccount) {
        state.withLock { $0.accounts[account.number] = account }
    }

    package var firstAccount: RelayAccount { state.withLock { $0.accounts.values.first! } }

    /// From here on every call fails.
    package func goDown() { state.withLock { $0.isDown = true } }

    /// The disk is full after this number of further records.
    package func runFull(after changes: Int) { state.withLock { $0.room = changes } }

    private func noting(_ change: (inout State) -> Void) throws(DirectoryFailure) {
        let hasRoom = try asked { state in
            state.room -= 1
            if state.room >= 0 { change(&state) }
            return state.room >= 0
        }
        if !hasRoom { throw DirectoryFailure("the disk is full") }
    }

    package func counted(_ counter: RelayCounter) -> Int {
        state.withLock { $0.counts[counter, default: 0] }
    }

    package var failures: [InboxFailure] { state.withLock(\.failures) }

    /// The accounts with complaints of their users, in order.
    package var complaints: [AccountNumber] { state.withLock(\.complaints) }

    /// The reports of receivers, in order.
    package var reports: [(reporter: String, report: AggregateReport)] { state.withLock(\.reports) }

    package var storedCount: Int { state.withLock { $0.stored.count } }

    private func asked<Value>(_ answer: (inout State) -> Value) throws(DirectoryFailure) -> Value {
        let value: Value? = state.withLock { $0.isDown ? nil : answer(&$0) }
        guard let value else { throw DirectoryFailure("the store is down") }
        return value
    }

    package func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? {
        try asked { state -> RelayAccount?? in
            .some(
                state.accounts.values.first {
                    $0.relayAddress == AddrSpec(localPart: localPart, domain: domain)
                })
        } ?? nil
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        try asked { state -> RelayAccount?? in .some(state.accounts[number]) } ?? nil
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        try asked { Array(Set($0.accounts.values.flatMap(\.sources).filter { $0.covers(author) })) }
    }

    package func isBlocked(
        _ author: AddrSpec, by account: AccountNumber
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in state.blocked.contains { $0.covers(author) } }
    }

    package func block(_ source: RegisteredSource) {
        state.withLock { _ = $0.blocked.insert(source) }
    }

    package func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission {
        try asked { $0.admissions["\(team) \(provider)"] ?? .open }
    }

    /// Slows or holds mail of a team to a provider.
    package func admit(
        _ admission: DeliveryAdmission, _ team: String, _ provider: ProviderFamily
    ) {
        state.withLock { $0.admissions["\(team) \(provider)"] = admission }
    }

    package func senderContext(
        _ account: AccountNumber
    ) throws(DirectoryFailure) -> SenderContext? {
        try self.account(account)?.senderContext
    }

    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        try asked { state -> AddrSpec?? in
            .some(token.storageKey.flatMap { state.stored[$0] })
        } ?? nil
    }

    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in
            let key = "stored \(account.rawValue) \(day)"
            let new = addresses.filter { $0.expiryDay == nil && state.stored[$0.token] == nil }
            guard state.used[key, default: 0] + new.count <= newPerDay else { return false }
            state.used[key, default: 0] += new.count
            for address in addresses { state.stored[address.token] = address.address }
            return true
        }
    }

    /// Messages counted against the daily limit, of all days.
    package func reserved(_ direction: LimitedDirection, _ account: AccountNumber) -> Int {
        state.withLock { state in
            state.used.reduce(0) {
                $0 + ($1.key.hasPrefix("\(direction) \(account.rawValue) ") ? $1.value : 0)
            }
        }
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in
            let key = "\(direction) \(account.rawValue) \(day)"
            guard state.used[key, default: 0] < limit else { return false }
            state.used[key, default: 0] += 1
            return true
        }
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        state.withLock { $0.used["\(direction) \(account.rawValue) \(day)", default: 1] -= 1 }
    }

    package func reserveWarmUp(
        host: String, team: String, day: UInt64, ceiling: Int
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in
            let key = "warm-up \(host) \(team) \(day)"
            guard state.used[key, default: 0] < ceiling else { return false }
            state.used[key, default: 0] += 1
            return true
        }
    }

    /// Forwards of a team through a host that were counted on a day (since 1970).
    package func warmUp(_ host: String, _ team: String, day: Int64) -> Int {
        state.withLock { $0.used["warm-up \(host) \(team) \(day)", default: 0] }
    }

    package func releaseWarmUp(host: String, team: String, day: UInt64) {
        state.withLock { $0.used["warm-up \(host) \(team) \(day)", default: 1] -= 1 }
    }

    package func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try asked { $0.once.contains("handed over \(account.rawValue) \(mark)") }
    }

    package func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {
        try noting { state in
            for copy in copies { state.once.insert("begun \(copy.account.rawValue) \(copy.mark)") }
        }
    }

    package func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {
        try noting { state in
            for mark in marks { state.once.insert("handed over \(account.rawValue) \(mark)") }
        }
    }

    package func forgetHandedOver(
        _ marks: [[UInt8]], account: AccountNumber
    ) throws(DirectoryFailure) {
        try noting { state in
            for mark in marks { state.once.remove("handed over \(account.rawValue) \(mark)") }
        }
    }

    package func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        try asked {
            $0.once.insert("automatic \(account.rawValue) \(correspondent) \(day)").inserted
        }
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        try asked { state in
            guard state.once.insert("failure \(account.rawValue) \(failure.nonce)").inserted else {
                return .known
            }
            state.counts[.inboxBounced, default: 0] += 1
            state.failures.append(failure)
            let forwarded = state.used["forward \(account.rawValue) \(failure.day)", default: 0]
            guard
                rate?.isReached(
                    failures: state.counts[.inboxBounced, default: 0], forwarded: forwarded) == true
            else {
                return .recorded
            }
            state.accounts[account] = state.accounts[account]?.suspended
            return .suspended
        }
    }

    package func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in
            guard state.once.insert("complaint \(account.rawValue) \(mark) \(day)").inserted else {
                return false
            }
            state.complaints.append(account)
            return true
        }
    }

    package func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try asked { state in
            guard
                !state.reports.contains(where: {
                    $0.reporter == reporter && $0.report.identifier == report.identifier
                })
            else {
                return false
            }
            state.reports.append((reporter, report))
            return true
        }
    }

    package func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord {
        try asked { state in
            guard state.underWay[token] == author else { return .notTheInbox }
            return state.answered.insert(token).inserted ? .first(language: nil) : .repeated
        }
    }

    /// Records that a verification message was sent to this address.
    package func begin(_ token: AnswerToken, inbox: AddrSpec) {
        state.withLock { $0.underWay[token] = inbox }
    }

    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {
        state.withLock { $0.deliveries.append("\(provider) \(outcome)") }
    }

    /// `provider outcome` of each counted forward, in order.
    package var deliveries: [String] { state.withLock(\.deliveries) }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        state.withLock { $0.counts[counter, default: 0] += 1 }
    }
}

/// Returns the evidence that a test specifies for each message.
package struct TestAuthenticator: SenderAuthenticator {
    private let evidence: @Sendable (HeaderSection) -> AuthenticationEvidence

    package init(_ evidence: @escaping @Sendable (HeaderSection) -> AuthenticationEvidence) {
        self.evidence = evidence
    }

    package init(evidence: AuthenticationEvidence) { self.init { _ in evidence } }

    package func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        Session(evidence(header))
    }

    private final class Session: AuthenticationSession {
        private let evidence: AuthenticationEvidence
        init(_ evidence: AuthenticationEvidence) { self.evidence = evidence }
        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence { evidence }
    }
}

extension AuthenticationEvidence {
    /// Only valid signatures of these domains.
    package static func signed(_ domains: String...) -> AuthenticationEvidence {
        AuthenticationEvidence(
            dkim: domains.map {
                DKIMFinding(
                    result: .pass, domain: $0, selector: "s", algorithm: "rsa-sha256",
                    coversWholeBody: true, reason: "")
            })
    }
}

extension RelayAccount {
    /// The same account, with an inbox to which forwarding is suspended.
    package var suspended: RelayAccount {
        RelayAccount(
            number: number, relayAddress: relayAddress, isForwardingOn: isForwardingOn,
            hasLiveGrant: isActive,
            inbox: inbox.map {
                UserInbox(address: $0.address, isVerified: $0.isVerified, isSuspended: true)
            }, inboxes: inboxes,
            sharedName: sharedName, sources: sources)
    }
}
