// The mail system of a sandbox in place of Postfix: passes messages through the same filter, and
// puts them into mailboxes.

import Accounts
import InternetMessage
import MailAuth
import Milter
import MilterTesting
import Support
import Synchronization

/// One SMTP reply: the code, the enhanced code and the text in one line.
package struct SandboxReply: Sendable, Hashable {
    package let code: Int
    package let enhanced: String
    package let text: String

    package init(_ code: Int, _ enhanced: String, _ text: String) {
        (self.code, self.enhanced, self.text) = (code, enhanced, text)
    }

    static let recipientTaken = SandboxReply(250, "2.1.5", "Ok")

    /// Nil for a reply that refuses nothing.
    init?(_ reply: MilterReply) {
        switch reply {
        case .reject(let failure):
            self.init(failure.code, failure.enhancedStatus, failure.lines.joined(separator: " "))
        case .temporaryFailure(let failure):
            self.init(failure.code, failure.enhancedStatus, failure.lines.joined(separator: " "))
        case .continue, .accept, .discard, .skip: return nil
        }
    }

    package var isAccepted: Bool { code / 100 == 2 }
}

/// Mailboxes, and the filter before them. Calls block; use it from the threads of a pool.
final class SandboxMailRoom: Sendable {
    /// The host for copies of a message for other accounts, in an installation. Here the client
    /// sends them itself.
    private static let hop = "127.0.0.1"
    /// Reports about reports would never end.
    private static let maximumReports = 1

    private let store: Store
    private let handler: any MilterHandler
    private let failures: SandboxFailures
    private let own: String
    private let now: @Sendable () -> Int64
    private let arrived: @Sendable (SandboxMail) -> Void
    private let refused: @Sendable (String, SandboxReply) -> Void
    private let state = Mutex(SandboxMailboxes())
    private let count = Mutex(0)

    /// - Parameters:
    ///   - handler: the filter that decides about every message.
    ///   - own: the author of Postern's own mail.
    ///   - arrived: called for each message in a mailbox.
    ///   - refused: called for each refusal with its command, `RCPT` or `DATA`.
    init(
        store: Store, handler: any MilterHandler, failures: SandboxFailures, own: String,
        now: @escaping @Sendable () -> Int64,
        arrived: @escaping @Sendable (SandboxMail) -> Void,
        refused: @escaping @Sendable (String, SandboxReply) -> Void
    ) {
        (self.store, self.handler, self.failures, self.own) = (store, handler, failures, own)
        (self.now, self.arrived, self.refused) = (now, arrived, refused)
    }

    /// Returns the reply, and also reports it to the developer if it refuses something.
    func told(_ command: String, _ reply: SandboxReply) -> SandboxReply {
        if !reply.isAccepted { refused(command, reply) }
        return reply
    }

    /// The mailboxes as they are now.
    var mailboxes: SandboxMailboxes { state.withLock { $0 } }

    func clear() { state.withLock { $0.clear() } }

    /// The same as `SandboxMailboxes.set`.
    func set(refusal: String?, of address: String) -> Bool {
        state.withLock { $0.set(refusal: refusal, of: address) }
    }

    /// A connection of an SMTP client.
    func connect(from address: String) -> SandboxMailConnection {
        SandboxMailConnection(self, handler, peer: address, daemonName: "smtpd")
    }

    /// A name for a message in transit, like Postfix's queue ids.
    func nextQueueID() -> String {
        count.withLock { count in
            count += 1
            return "SANDBOX\(count)"
        }
    }

    /// The reply that an order sets for every message; nil for none.
    func orderedReply() -> SandboxReply? {
        failures.take(.mail).map { _ in SandboxReply(451, "4.3.0", "As ordered") }
    }

    /// Delivers a message that the filter accepted. Returns the numbers under which it is shown.
    func deliver(_ message: MessageState, reports: Int = 0) -> [Int] {
        message.recipients.compactMap { path in
            let recipient = Self.withoutBrackets(path)
            let sender = Self.withoutBrackets(message.mailFrom)
            if let refusal = state.withLock({ $0.refusal(of: recipient) }) {
                if !sender.isEmpty, reports < Self.maximumReports {
                    report(refusal, about: message, recipient, to: sender, reports: reports + 1)
                }
                return nil
            }
            let side = self.side(of: recipient)
            let mail = state.withLock {
                $0.add(
                    at: now(), side: side, sender: sender, recipient: recipient,
                    octets: message.message, own: own)
            }
            arrived(mail)
            return mail.number
        }
    }

    /// An address from which a team may write belongs to the team; every other address is an inbox.
    private func side(of recipient: String) -> MailSide {
        guard let address = AddrSpec(envelope: recipient) else { return .team }
        let isTeams = (try? store.sources.teams(registering: address).isEmpty) == false
        return isTeams ? .team : .user
    }

    /// Returns a message to its sender, like the MTA of an installation: through the filter.
    private func report(
        _ refusal: String, about message: MessageState, _ recipient: String, to sender: String,
        reports: Int
    ) {
        let report = SandboxDeliveryReport(
            recipient: recipient, reply: refusal, original: message, to: sender, id: nextQueueID(),
            now: now())
        let connection = SandboxMailConnection(
            self, handler, peer: Self.hop, daemonName: "internal", reports: reports)
        connection.mail("<>", [])
        _ = connection.recipient("<\(sender)>")
        _ = connection.message(report.octets)
        connection.close()
    }

    static func withoutBrackets(_ path: String) -> String {
        let octets = Array(path.utf8)
        guard octets.first == UInt8(ascii: "<"), octets.last == UInt8(ascii: ">"), octets.count >= 2
        else { return path }
        return String(decoding: octets[1..<(octets.count - 1)], as: UTF8.self)
    }
}

/// One connection to the mail system. Its owner ensures that only one thread uses it at a time.
final class SandboxMailConnection: @unchecked Sendable {
    private let room: SandboxMailRoom
    private let reports: Int
    private var mta: InMemoryMTA

    init(
        _ room: SandboxMailRoom, _ handler: any MilterHandler, peer: String, daemonName: String,
        reports: Int = 0
    ) {
        (self.room, self.reports) = (room, reports)
        let address: MilterPeer =
            peer.utf8.contains(UInt8(ascii: ":")) ? .ipv6(peer, port: 0) : .ipv4(peer, port: 0)
        mta = InMemoryMTA(
            handler: handler,
            connection: MilterConnection(
                hostName: "unknown", peer: address, macros: ["{daemon_name}": daemonName]))
    }

    func helo(_ name: String) { mta.play(.helo(name)) }

    /// Begins a message.
    /// - Parameter path: with angle brackets.
    func mail(_ path: String, _ arguments: [String]) { mta.play(.mail(path, arguments, [:])) }

    /// - Parameter path: with angle brackets.
    func recipient(_ path: String) -> SandboxReply {
        mta.play(.recipient(path, [], [:]))
        return room.told(
            "RCPT",
            mta.outcome.message.reply(to: path).flatMap(SandboxReply.init) ?? .recipientTaken)
    }

    /// The recipients that were accepted.
    var recipients: [String] { mta.outcome.message.recipients }

    /// The end of data: the reply, and the numbers under which the message is shown.
    /// - Parameter octets: lines ended by CRLF or LF.
    func message(_ octets: [UInt8]) -> (reply: SandboxReply, mails: [Int]) {
        if let ordered = room.orderedReply() {
            reset()
            return (room.told("DATA", ordered), [])
        }
        let (fields, body) = MessageReader.divide(octets)
        for field in fields { mta.play(.header(field.name, field.value)) }
        if !body.isEmpty { mta.play(.body(body)) }
        let id = room.nextQueueID()
        mta.play(.endOfMessage(["i": id]))
        let outcome = mta.outcome.message
        if let refusal = SandboxReply(outcome.final) { return (room.told("DATA", refusal), []) }
        return (
            SandboxReply(250, "2.0.0", "Ok: queued as \(id)"),
            outcome.delivered.map { room.deliver($0, reports: reports) } ?? []
        )
    }

    func reset() { mta.play(.reset) }

    func close() { mta.finish() }
}
