// One installation in memory, as the benchmark measures the relay and not a disk.

import InternetMessage
import MailAuth
import MailTesting
import RelayCore

/// A directory of one account. Nothing is stored.
struct BenchDirectory: RelayDirectory, ForgetfulRecords {
    func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission { .open }

    let account: RelayAccount

    func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? { account }
    func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? { account }
    func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        account.sources
    }
    func isBlocked(_ author: AddrSpec, by account: AccountNumber) throws(DirectoryFailure) -> Bool {
        false
    }
    func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord { .notTheInbox }
}

/// anna, with an inbox at a domain of her own and one at Gmail, which ignores dots and so is more
/// costly to search for.
struct RelayBenchFixture: Sendable {
    static let now: Int64 = 1_790_000_000
    static let inbox = "anna.bergstroem@home.example"

    let engine: RelayEngine
    let reverse: String
    let bounce: String

    /// - Parameter replyMemory: octets that replies may use together.
    init?(replyMemory: Int = 1 << 30) {
        guard let number = AccountNumber(1), let inbox = AddrSpec(envelope: Self.inbox),
            let second = AddrSpec(envelope: "annabergstroem81@gmail.com"),
            let keys = TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a")
            )
        else { return nil }
        let inboxes = [inbox, second].map { UserInbox(address: InboxAddress($0), isVerified: true) }
        let account = RelayAccount(
            number: number,
            relayAddress: AddrSpec(localPart: "annarelay2", domain: "relay.example"),
            isForwardingOn: true,
            hasLiveGrant: true,
            inbox: inboxes[0], inboxes: inboxes, sharedName: nil,
            sources: [RegisteredSource(scope: .domain("app.example"))])
        guard
            let engine = RelayEngine(
                settings: RelaySettings(
                    relayDomains: ["relay.example"], authservID: "relay.example"), keys: keys,
                directory: BenchDirectory(account: account),
                // Every author is proved: what is measured comes after the proof.
                authenticator: TestAuthenticator(
                    evidence: .signed("home.example", "gmail.com", "app.example")),
                replyMemory: ReplyMemory(limit: replyMemory),
                randomness: { Array(repeating: 5, count: $0) })
        else { return nil }
        self.engine = engine
        reverse =
            engine.tokens.reverse(
                account: number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart
            + "@relay.example"
        bounce =
            engine.tokens.forwardReturnPath(
                account: number, sender: AddrSpec(localPart: "bounce", domain: "app.example"),
                nonce: 1,
                expiryDay: UInt64(Self.now / 86_400) + 1
            ).localPart + "@relay.example"
    }

    /// Plays a transaction as the milter does, with the body in chunks of 65,535 octets. Returns
    /// the outcome as one word.
    func play(
        from sender: String, to recipient: String, header: HeaderSection, body: [UInt8]
    ) -> String {
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(
                address: "192.0.2.9", helo: "annas-laptop.home.example", mailFrom: sender),
            now: Self.now)
        do {
            try transaction.addRecipient("<\(recipient)>")
            for field in header.fields { transaction.addHeader(field) }
            try transaction.endHeader()
            var at = 0
            while at < body.count {
                let end = min(body.count, at + 65_535)
                try transaction.addBody(body[at..<end])
                at = end
            }
        } catch {
            return error.reason.code.rawValue
        }
        switch transaction.finish().outcome {
        case .refuse(let refusal): return refusal.reason.code.rawValue
        case .discard: return "discard"
        default: return "relay"
        }
    }
}
