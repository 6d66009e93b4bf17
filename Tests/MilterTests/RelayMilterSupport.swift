// One installation with RelayMilter: two users of a team in memory, proof by a field of the
// message, and every log line captured.

import InternetMessage
import MailAuth
import MailCrypto
import MailTesting
import Milter
import MilterTesting
import PosternMetrics
import RelayCore
import Synchronization
import TestSupport
import Testing

@testable import RelayMilter

/// A handler over an installation that a test can exchange.
final class RelayMilterFixture: Sendable {
    static let now: Int64 = 1_763_700_000
    static let inboxes = ["anna@inbox.example", "bob@inbox.example"]

    static func account(_ number: UInt64, _ local: String, inbox: String) -> RelayAccount {
        let inbox = UserInbox(address: InboxAddress(AddrSpec(envelope: inbox)!), isVerified: true)
        return RelayAccount(
            number: AccountNumber(number)!,
            relayAddress: AddrSpec(localPart: local, domain: "relay.example"),
            isForwardingOn: true,
            hasLiveGrant: true, inbox: inbox, inboxes: [inbox], sharedName: nil,
            sources: [RegisteredSource(scope: .domain("app.example"))], team: "app")
    }

    static let anna = account(1, "annarelay2", inbox: "anna@inbox.example")
    static let bob = account(2, "bobrelay22", inbox: "bob@inbox.example")

    let directory: MemoryDirectory
    let log = LogRecorder()
    /// The messages that the handler reported as forwarded, in order.
    let forwarded = Forwarded()
    let metrics = ServiceMetrics(version: "")
    private let current: Mutex<RelayEngine>
    private let asked = Atomic(0)
    private let carrier: (any CopyCarrier)?

    static func engine(
        _ directory: MemoryDirectory, limits: RelayLimits = RelayLimits(),
        replyMemory: Int = 1 << 28
    )
        -> RelayEngine
    {
        let counter = Mutex<UInt8>(0)
        return RelayEngine(
            settings: RelaySettings(
                relayDomains: ["relay.example"], authservID: "mx.relay.example", limits: limits),
            keys: TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a")
            )!,
            directory: directory,
            // A valid signature of the domain in the field `X-Test-Proved`.
            authenticator: TestAuthenticator { header in
                header.first("X-Test-Proved").map { .signed($0.unfoldedValue) }
                    ?? AuthenticationEvidence()
            }, replyMemory: ReplyMemory(limit: replyMemory),
            randomness: { count in
                counter.withLock { $0 &+= 1 }
                return Array(repeating: counter.withLock { $0 }, count: count)
            })!
    }

    init(
        limits: RelayLimits = RelayLimits(), replyMemory: Int = 1 << 28,
        carrier: (any CopyCarrier)? = nil,
        more accounts: [RelayAccount] = []
    ) {
        self.carrier = carrier
        directory = MemoryDirectory([RelayMilterFixture.anna, RelayMilterFixture.bob] + accounts)
        current = Mutex(Self.engine(directory, limits: limits, replyMemory: replyMemory))
    }

    var engine: RelayEngine { current.withLock { $0 } }
    func exchange(for engine: RelayEngine) { current.withLock { $0 = engine } }
    /// The number of times that the handler requested the engine.
    var engineRequests: Int { asked.load(ordering: .relaxed) }

    var handler: RelayMilterHandler {
        RelayMilterHandler(
            engine: { [self] in
                asked.add(1, ordering: .relaxed)
                return engine
            }, now: { Self.now }, logger: log.logger,
            metrics: metrics,
            carrier: { [carrier] in carrier }, forwarded: { [forwarded] in forwarded.add($0) })
    }

    /// Plays a connection, and searches for inboxes in the log and the answers.
    func play(_ transaction: MilterTransaction) -> ConnectionOutcome {
        let outcome = transaction.run(handler)
        let said = log.lines + outcome.messages.flatMap { $0.answers.map(\.description) }
        for inbox in Self.inboxes {
            #expect(
                said.allSatisfy { !$0.lowercased().contains(inbox) }, "an inbox was told or logged")
        }
        return outcome
    }

    func reverse(_ account: RelayAccount, _ correspondent: String) -> String {
        "<\(engine.tokens.reverse(account: account.number, correspondent: AddrSpec(envelope: correspondent)!).localPart)@relay.example>"
    }

    func returnPath(_ account: RelayAccount) -> String {
        let token = engine.tokens.forwardReturnPath(
            account: account.number, sender: AddrSpec(localPart: "bounce", domain: "app.example"),
            nonce: 3,
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

    /// The text of a failure without its reference, and the reference.
    var parts: (text: String, reference: String)? {
        let lines: [String]
        switch self {
        case .reject(let failure): lines = failure.lines
        case .temporaryFailure(let failure): lines = failure.lines
        default: return nil
        }
        guard let last = lines.last, last.hasSuffix("]"), let open = last.lastIndex(of: "[") else {
            return nil
        }
        return (String(last[..<open]), String(last[last.index(after: open)...].dropLast()))
    }
}

/// The messages that a handler forwarded.
final class Forwarded: Sendable {
    private let stored = Mutex<[ForwardAttribution]>([])
    var all: [ForwardAttribution] { stored.withLock { $0 } }
    func add(_ one: ForwardAttribution) { stored.withLock { $0.append(one) } }
}
