// The relay's own test mail: an account that is in no store, whose mail `postern doctor` sends through the real Postfix to see
// what leaves. Only who holds the key file can make it, and it leads nowhere but back to this machine.

import InternetMessage
import MailAuth
import MailCrypto
import Support

/// Names and proof of the test account. Pure: `now` is handed in.
package struct ProbeIdentity: Sendable {
    /// Proves a message of the probe: `<seconds since 1970 of its end> <key id><MAC>`.
    package static let fieldName = "X-Postern-Probe"
    /// Seconds for which a proof is good: a queue run or two.
    package static let lifetime: Int64 = 900
    /// A domain that no one can have (RFC 2606): anyone who is proved by the probe's field is proved for this one, and for no
    /// other.
    package static let userDomain = "user.postern-doctor.invalid"
    private static let macDigits = 26
    /// The highest number there is; accounts of a store count from 1.
    package static let account = AccountNumber.highest

    private let keys: TokenKeys
    /// The relay domain of the addresses.
    package let domain: String

    package init(keys: TokenKeys, domain: String) {
        self.keys = keys
        self.domain = domain.lowercased()
    }

    /// Stands for the team: author and envelope sender of a forward, correspondent of a reply. Only mail of the probe leads to
    /// it.
    package var team: AddrSpec { AddrSpec(localPart: "postern-doctor-team", domain: domain) }
    /// Where the probe's forwards go. At the relay domain, so that Postfix sends it to the parking place and nowhere else.
    package var inbox: AddrSpec { AddrSpec(localPart: "postern-doctor-inbox", domain: domain) }
    /// The user's own address, which a reply is written from and which may be in nothing that leaves. Never written to.
    package var author: AddrSpec { AddrSpec(localPart: "probe-user", domain: Self.userDomain) }

    /// The relay address of this hour: 80 bits that only the keys give.
    package func relayAddress(now: Int64) -> AddrSpec {
        AddrSpec(localPart: localPart(hour: now / 3600, key: keys.activeKey), domain: domain)
    }

    /// Whether this is the relay address of this hour or the last one.
    package func isRelayAddress(_ localPart: String, domain: String, now: Int64) -> Bool {
        guard domain == self.domain, localPart.utf8.count == 16 else { return false }
        let hour = now / 3600
        return keys.ids.contains { id in
            guard let key = keys.key(id) else { return false }
            return [hour, hour - 1].contains {
                constantTimeEqual(Array(self.localPart(hour: $0, key: key).utf8), Array(localPart.utf8))
            }
        }
    }

    private func localPart(hour: Int64, key: HMACSHA256) -> String {
        let code = key.authenticationCode(for: Array("postern probe address 1\n\(domain)\n\(hour)".utf8))
        return String(decoding: Base32.encode(code).prefix(16), as: UTF8.self)
    }

    /// The field that proves a message to be the probe's.
    package func proof(now: Int64) -> HeaderField {
        let end = "\(now + Self.lifetime)"
        return HeaderField(
            Self.fieldName, "\(end) " + String(decoding: [keys.activeID] + Self.mac(end, key: keys.activeKey), as: UTF8.self))
    }

    package func isProved(_ header: HeaderSection, now: Int64) -> Bool {
        var fields = header.fields.lazy.filter { $0.isNamed(Self.fieldName) }.makeIterator()
        guard let field = fields.next(), fields.next() == nil else { return false }
        let words = field.rawValue.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }
        guard words.count == 2, let end = Int64(String(decoding: words[0], as: UTF8.self)), end >= now,
            end - now <= Self.lifetime,
            let id = words[1].first, let key = keys.key(id)
        else { return false }
        return constantTimeEqual(Self.mac("\(end)", key: key), Array(words[1].dropFirst()))
    }

    private static func mac(_ text: String, key: HMACSHA256) -> [UInt8] {
        Array(Base32.encode(key.authenticationCode(for: Array("postern probe 1\n\(text)".utf8))).prefix(macDigits))
    }

    /// The account as the relay sees it.
    package func account(now: Int64) -> RelayAccount {
        RelayAccount(
            number: Self.account, relayAddress: relayAddress(now: now), isForwardingOn: true, isActive: true,
            inbox: UserInbox(address: InboxAddress(inbox), isVerified: true),
            inboxes: [author, inbox].map { UserInbox(address: InboxAddress($0), isVerified: true) }, sharedName: nil,
            sources: [RegisteredSource(scope: .address(team))])
    }
}

/// A directory that knows the probe's account besides those of another one, and writes nothing down of it.
package struct ProbingDirectory: RelayDirectory {
    private let base: any RelayDirectory
    private let probe: ProbeIdentity
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    package init(_ base: any RelayDirectory, probe: ProbeIdentity, now: @escaping @Sendable () -> Int64) {
        self.base = base
        self.probe = probe
        self.now = now
    }

    package func account(relayAddress localPart: String, domain: String) throws(DirectoryFailure) -> RelayAccount? {
        if probe.isRelayAddress(localPart, domain: domain, now: now()) { return probe.account(now: now()) }
        return try base.account(relayAddress: localPart, domain: domain)
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        number == ProbeIdentity.account ? probe.account(now: now()) : try base.account(number)
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        let team = RegisteredSource(scope: .address(probe.team))
        return team.covers(author) ? [team] : try base.sources(covering: author)
    }

    /// Only the team's address can be too long for a token; the caller checks that it is the one.
    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        token.account == ProbeIdentity.account ? probe.team : try base.storedAddress(token)
    }

    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account ? true : try base.store(addresses, account: account, day: day, newPerDay: newPerDay)
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account ? true : try base.reserve(direction, account: account, day: day, limit: limit)
    }

    package func reserve(
        textAddresses count: Int, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account ? true : try base.reserve(textAddresses: count, account: account, day: day, limit: limit)
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        if account != ProbeIdentity.account { base.release(direction, account: account, day: day) }
    }

    package func release(textAddresses count: Int, account: AccountNumber, day: UInt64) {
        if account != ProbeIdentity.account { base.release(textAddresses: count, account: account, day: day) }
    }

    package func isHandedOver(_ mark: [UInt8], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account ? false : try base.isHandedOver(mark, account: account, now: now)
    }

    package func beginHandOver(_ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64) throws(DirectoryFailure) {
        try base.beginHandOver(copies.filter { $0.account != ProbeIdentity.account }, until: until)
    }

    package func rememberHandedOver(_ mark: [UInt8], account: AccountNumber, until: Int64) throws(DirectoryFailure) {
        if account != ProbeIdentity.account { try base.rememberHandedOver(mark, account: account, until: until) }
    }

    package func remember(_ marks: [[UInt8]], account: AccountNumber, until: Int64) {
        if account != ProbeIdentity.account { base.remember(marks, account: account, until: until) }
    }

    package func remembered(_ marks: [[UInt8]], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Set<[UInt8]> {
        account == ProbeIdentity.account ? [] : try base.remembered(marks, account: account, now: now)
    }

    package func reserveAutomatic(account: AccountNumber, correspondent: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool {
        account == ProbeIdentity.account
            ? true : try base.reserveAutomatic(account: account, correspondent: correspondent, day: day)
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        account == ProbeIdentity.account ? .recorded : try base.recordFailure(failure, of: account, rate: rate)
    }

    package func confirm(_ token: AnswerToken, author: AddrSpec) throws(DirectoryFailure) -> Bool {
        try base.confirm(token, author: author)
    }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        if account != ProbeIdentity.account { base.count(counter, account: account, day: day) }
    }
}

/// Takes the probe's field as a proof for the probe's own addresses; all else is for another authenticator.
package struct ProbingAuthenticator: SenderAuthenticator {
    private let base: any SenderAuthenticator
    private let probe: ProbeIdentity

    package init(_ base: any SenderAuthenticator, probe: ProbeIdentity) {
        self.base = base
        self.probe = probe
    }

    package func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession {
        probe.isProved(header, now: now) ? Proved(probe, client) : base.begin(client: client, header: header, now: now)
    }

    private final class Proved: AuthenticationSession {
        private let domains: [String]

        init(_ probe: ProbeIdentity, _ client: SMTPClientIdentity) {
            // The relay domain proves the author of a forward; it is no one else's source.
            domains = [ProbeIdentity.userDomain, probe.domain]
        }

        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence {
            AuthenticationEvidence(
                spf: domains.map { SPFFinding(result: .pass, identity: .mailFrom, domain: $0, reason: "probe") })
        }
    }
}
