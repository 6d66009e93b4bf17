// One installation behind RelayMilter: two users of a team in memory, proof by a field of the message, every log line captured.

import InternetMessage
import Logging
import MailAuth
import MailCrypto
import Milter
import MilterTesting
import PosternMetrics
import RelayCore
import Synchronization
import Testing

@testable import RelayMilter

/// Accounts in memory; counts and stored tokens as far as these tests need them.
final class SmallDirectory: RelayDirectory {
    private let accounts: [RelayAccount]
    private let isDown = Atomic(false)
    /// How many more changes can be written.
    private let room = Atomic(Int.max)
    private let handedOver = Mutex<Set<[UInt8]>>([])

    init(_ accounts: [RelayAccount]) { self.accounts = accounts }

    func goDown() { isDown.store(true, ordering: .relaxed) }

    /// The disk is full once so many more changes were written.
    func runFull(after changes: Int) { room.store(changes, ordering: .relaxed) }

    private func checkWritable() throws(DirectoryFailure) {
        guard room.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 else { throw DirectoryFailure("the disk is full") }
    }

    private func checkUp() throws(DirectoryFailure) {
        if isDown.load(ordering: .relaxed) { throw DirectoryFailure("the store is down") }
    }

    func account(relayAddress localPart: String, domain: String) throws(DirectoryFailure) -> RelayAccount? {
        try checkUp()
        return accounts.first { $0.relayAddress == AddrSpec(localPart: localPart, domain: domain) }
    }

    func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        try checkUp()
        return accounts.first { $0.number == number }
    }

    func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        try checkUp()
        return accounts.flatMap(\.sources).filter { $0.covers(author) }
    }

    func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? { nil }
    func store(_ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int) throws(DirectoryFailure) -> Bool
    { true }
    func reserve(_ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int) throws(DirectoryFailure) -> Bool
    {
        true
    }
    func reserve(textAddresses count: Int, account: AccountNumber, day: UInt64, limit: Int) throws(DirectoryFailure) -> Bool {
        true
    }
    func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {}
    func release(textAddresses count: Int, account: AccountNumber, day: UInt64) {}
    func isHandedOver(_ mark: [UInt8], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Bool {
        handedOver.withLock { $0.contains(mark) }
    }
    func beginHandOver(_ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64) throws(DirectoryFailure) {
        try checkWritable()
    }
    func rememberHandedOver(_ mark: [UInt8], account: AccountNumber, until: Int64) throws(DirectoryFailure) {
        try checkWritable()
        _ = handedOver.withLock { $0.insert(mark) }
    }
    func remember(_ marks: [[UInt8]], account: AccountNumber, until: Int64) {}
    func remembered(_ marks: [[UInt8]], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Set<[UInt8]> { [] }
    func reserveAutomatic(account: AccountNumber, correspondent: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool { true }
    func confirm(_ token: AnswerToken, author: AddrSpec) throws(DirectoryFailure) -> Bool { false }
    func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        .recorded
    }
    func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {}
}

/// Finds a valid signature of the domain that the field `X-Test-Proved` names.
private struct FieldAuthenticator: SenderAuthenticator {
    func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession {
        Session(domain: header.first("X-Test-Proved")?.unfoldedValue)
    }

    private final class Session: AuthenticationSession {
        private let domain: String?
        init(domain: String?) { self.domain = domain }
        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence {
            AuthenticationEvidence(
                dkim: domain.map {
                    [
                        DKIMFinding(
                            result: .pass, domain: $0, selector: "s", algorithm: "rsa-sha256", coversWholeBody: true, reason: "")
                    ]
                } ?? [])
        }
    }
}

/// Keeps every line, with its metadata.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }

    struct Handler: LogHandler {
        let target: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            target.lines.withLock { $0.append("\(event.level) \(event.message) \(fields.joined(separator: " "))") }
        }
    }
}

/// A handler over an installation that a test can exchange.
final class RelayMilterFixture: Sendable {
    static let now: Int64 = 1_763_700_000
    static let inboxes = ["anna@inbox.example", "bob@inbox.example"]

    static func account(_ number: UInt64, _ local: String, inbox: String) -> RelayAccount {
        let inbox = UserInbox(address: InboxAddress(AddrSpec(envelope: inbox)!), isVerified: true)
        return RelayAccount(
            number: AccountNumber(number)!, relayAddress: AddrSpec(localPart: local, domain: "relay.example"),
            isForwardingOn: true,
            isActive: true, inbox: inbox, inboxes: [inbox], sharedName: nil,
            sources: [RegisteredSource(scope: .domain("app.example"))])
    }

    static let anna = account(1, "annarelay2", inbox: "anna@inbox.example")
    static let bob = account(2, "bobrelay22", inbox: "bob@inbox.example")

    let directory: SmallDirectory
    let log = LogLines()
    let metrics = ServiceMetrics(version: "")
    private let current: Mutex<RelayEngine>
    private let asked = Atomic(0)
    private let carrier: (any CopyCarrier)?

    static func engine(
        _ directory: SmallDirectory, limits: RelayLimits = RelayLimits(), replyMemory: Int = 1 << 28
    )
        -> RelayEngine
    {
        let counter = Mutex<UInt8>(0)
        return RelayEngine(
            settings: RelaySettings(relayDomains: ["relay.example"], authservID: "mx.relay.example", limits: limits),
            keys: TokenKeys(keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a"))!,
            directory: directory,
            authenticator: FieldAuthenticator(), replyMemory: ReplyMemory(limit: replyMemory),
            randomness: { count in
                counter.withLock { $0 &+= 1 }
                return Array(repeating: counter.withLock { $0 }, count: count)
            })!
    }

    init(
        limits: RelayLimits = RelayLimits(), replyMemory: Int = 1 << 28, carrier: (any CopyCarrier)? = nil,
        more accounts: [RelayAccount] = []
    ) {
        self.carrier = carrier
        directory = SmallDirectory([RelayMilterFixture.anna, RelayMilterFixture.bob] + accounts)
        current = Mutex(Self.engine(directory, limits: limits, replyMemory: replyMemory))
    }

    var engine: RelayEngine { current.withLock { $0 } }
    func exchange(for engine: RelayEngine) { current.withLock { $0 = engine } }
    /// How often the handler has asked for the engine.
    var engineRequests: Int { asked.load(ordering: .relaxed) }

    var handler: RelayMilterHandler {
        RelayMilterHandler(
            engine: { [self] in
                asked.add(1, ordering: .relaxed)
                return engine
            }, now: { Self.now }, logger: Logger(label: "relay", factory: { _ in LogLines.Handler(target: self.log) }),
            metrics: metrics,
            carrier: { [carrier] in carrier })
    }

    /// Plays a connection, and looks for inboxes in what was logged and answered.
    func play(_ transaction: MilterTransaction) -> ConnectionOutcome {
        let outcome = transaction.run(handler)
        let said = log.all + outcome.messages.flatMap { $0.answers.map(\.description) }
        for inbox in Self.inboxes {
            #expect(said.allSatisfy { !$0.lowercased().contains(inbox) }, "an inbox was told or logged")
        }
        return outcome
    }

    func reverse(_ account: RelayAccount, _ correspondent: String) -> String {
        "<\(engine.tokens.reverse(account: account.number, correspondent: AddrSpec(envelope: correspondent)!).localPart)@relay.example>"
    }

    func returnPath(_ account: RelayAccount) -> String {
        let token = engine.tokens.forwardReturnPath(
            account: account.number, sender: AddrSpec(localPart: "bounce", domain: "app.example"), nonce: 3,
            expiryDay: UInt64(Self.now / 86_400) + 2)
        return "\(token.localPart)@relay.example"
    }
}

extension MilterTransaction {
    /// A message of the team, proved.
    func teamMessage(_ more: String = "", body: String = "Hello\r\n") -> MilterTransaction {
        message(
            Array(
                "X-Test-Proved: app.example\r\nFrom: Billing <billing@app.example>\r\nTo: annarelay2@relay.example\r\n\(more)\r\n\(body)"
                    .utf8))
    }

    /// A message of anna's, proved.
    func annasMessage(_ more: String = "", body: String = "Hello\r\n") -> MilterTransaction {
        message(
            Array(
                "X-Test-Proved: inbox.example\r\nFrom: Anna <anna@inbox.example>\r\nMessage-ID: <u@inbox.example>\r\n\(more)\r\n\(body)"
                    .utf8))
    }
}

extension MilterReply {
    /// `550 5.1.1`, or the reply's name.
    var status: String {
        switch self {
        case .reject(let failure): "\(failure.code) \(failure.enhancedStatus)"
        case .temporaryFailure(let failure): "\(failure.code) \(failure.enhancedStatus)"
        default: description
        }
    }

    /// The text of a failure, without its reference; the reference by itself.
    var parts: (text: String, reference: String)? {
        let lines: [String]
        switch self {
        case .reject(let failure): lines = failure.lines
        case .temporaryFailure(let failure): lines = failure.lines
        default: return nil
        }
        guard let last = lines.last, last.hasSuffix("]"), let open = last.lastIndex(of: "[") else { return nil }
        return (String(last[..<open]), String(last[last.index(after: open)...].dropLast()))
    }
}
