// `postern explain`: shows how the relay would handle a message. The same engine decides as in the
// milter.

import DNSClient
import InternetMessage
import MailAuth
import PosternConfiguration
import RelayCore

/// A message with its envelope, as an SMTP client would submit it.
package struct ExplainedMessage: Sendable {
    /// With or without angle brackets; empty or `<>` for the null sender.
    package var mailFrom: String
    /// With or without angle brackets.
    package var recipients: [String]
    /// The client's IP address; nil for none.
    package var address: String?
    package var helo: String
    /// Seconds since 1970.
    package var now: Int64
    /// Line ends as CRLF or LF.
    package var message: [UInt8]

    package init(
        mailFrom: String, recipients: [String], address: String?, helo: String, now: Int64,
        message: [UInt8]
    ) {
        self.mailFrom = mailFrom
        self.recipients = recipients
        self.address = address
        self.helo = helo
        self.now = now
        self.message = message
    }
}

/// The handling of the message.
package struct Explanation: Sendable {
    package enum Action: String, Sendable { case relay, refuse, `defer` }

    package struct Reply: Sendable {
        package let recipient: String
        package let reply: SMTPReply
    }

    package let action: Action
    /// One for each recipient, in the given order: the reply to RCPT, or for an accepted recipient
    /// the reply at the end of data.
    package let replies: [Reply]
    package let reasons: [RelayReason]
    /// The outgoing message and envelope; nil if there is none.
    package let outgoing: ModifiedMessage?
    /// The handling of the copies for further accounts, in the order of their recipients.
    package var copies: [Explanation] = []
}

package enum Explainer {
    /// Runs the transaction. Writes nothing if the engine's directory is read-only.
    /// - Parameter fansOut: whether further accounts get a copy of the message, as with `fan_out:
    ///   on`.
    package static func explain(
        _ message: ExplainedMessage, engine: RelayEngine, fansOut: Bool = false
    ) -> Explanation {
        let sender = message.mailFrom.withoutPathBrackets
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(
                address: message.address, helo: message.helo, mailFrom: sender),
            now: message.now
        ) {
            fansOut
        }
        var refused: [Int: Refusal] = [:]
        for (index, recipient) in message.recipients.enumerated() {
            do { try transaction.addRecipient("<\(recipient.withoutPathBrackets)>") } catch {
                refused[index] = error
            }
        }
        let accepted = message.recipients.indices.filter { refused[$0] == nil }
        if transaction.parts.count > 1 {
            return fannedOut(message, engine, transaction.parts, refused)
        }
        let parsed = Message.parse(received(message.message, direction: transaction.direction))
        let decision = accepted.isEmpty ? nil : decide(transaction, parsed)

        var end = SMTPReply.accepted
        if case .refuse(let refusal) = decision?.outcome { end = refusal.reply }
        let replies = message.recipients.enumerated().map { index, recipient in
            Explanation.Reply(
                recipient: recipient.withoutPathBrackets, reply: refused[index]?.reply ?? end)
        }
        let reasons =
            refused.sorted { $0.key < $1.key }.map(\.value.reason) + (decision?.reasons ?? [])

        guard let decision, decision.isRelayed else {
            // One temporary reply is enough to make the sender retry.
            let isTemporary = replies.contains { $0.reply.code / 100 == 4 }
            return Explanation(
                action: isTemporary ? .defer : .refuse, replies: replies, reasons: reasons,
                outgoing: nil)
        }
        var outgoing = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: sender,
            recipients: accepted.map { message.recipients[$0].withoutPathBrackets })
        outgoing.apply(decision.modifications)
        return Explanation(
            action: .relay, replies: replies, reasons: reasons,
            outgoing: decision.outcome == .discard ? nil : outgoing)
    }

    /// Explains each account's part as a separate transaction, as in operation: a copy returns with
    /// the same client and sender.
    private static func fannedOut(
        _ message: ExplainedMessage, _ engine: RelayEngine, _ parts: [[String]],
        _ refused: [Int: Refusal]
    ) -> Explanation {
        let explained = parts.map { paths in
            var part = message
            part.recipients = paths
            return explain(part, engine: engine)
        }
        // Accepted if all parts are. An error of the message itself is reported at once; otherwise
        // the sender must retry.
        let isAccepted = explained.allSatisfy { $0.action == .relay }
        let own = explained.first.flatMap { $0.action == .relay ? nil : $0.replies.first?.reply }
        let ofMessage = own.flatMap { SMTPReply.isOfRecipient($0.code, $0.enhanced) ? nil : $0 }
        let end = isAccepted ? SMTPReply.accepted : ofMessage ?? Refusal.fanOutRefused.reply
        let replies = message.recipients.enumerated().map { index, recipient in
            Explanation.Reply(
                recipient: recipient.withoutPathBrackets, reply: refused[index]?.reply ?? end)
        }
        let reasons = refused.sorted { $0.key < $1.key }.map(\.value.reason)
        return Explanation(
            action: isAccepted
                ? .relay : replies.contains { $0.reply.code / 100 == 4 } ? .defer : .refuse,
            replies: replies,
            reasons: reasons + (explained.first?.reasons ?? []),
            outgoing: isAccepted ? explained.first?.outgoing : nil,
            copies: ofMessage == nil ? Array(explained.dropFirst()) : [])
    }

    private static func decide(_ transaction: RelayTransaction, _ message: Message) -> RelayDecision
    {
        for field in message.header.fields { transaction.addHeader(field) }
        guard transaction.isOurs else {
            return RelayDecision(
                .untouched, reasons: [RelayReason(.elsewhere, "not a relay domain")])
        }
        do {
            try transaction.endHeader()
            var rest = message.body
            while !rest.isEmpty {
                // In the chunks of libmilter, so that the same code runs.
                let chunk = rest.prefix(65_535)
                try transaction.addBody(chunk)
                rest = rest.dropFirst(chunk.count)
            }
        } catch {
            return .refuse(error)
        }
        return transaction.finish()
    }

    /// A reply or report as Postfix passes it to a filter. For a forward, the file is read
    /// unchanged: a broken header section, which Postfix would have fixed, is refused.
    private static func received(_ message: [UInt8], direction: TransactionDirection?) -> [UInt8] {
        switch direction {
        case .reply, .report: LineEnds.received(message)
        default: LineEnds.crlf(message)
        }
    }
}

/// Explains messages for an installation: with one engine for the network, and one for each file of
/// DNS answers.
package struct InstallationExplainer {
    private let base: RelayEngine
    private let configuration: Configuration

    /// - Parameter now: seconds since 1970.
    /// - Throws: the errors of `EngineFactory.engine`, `Resolvers.perMessage` and the store.
    package init(_ installation: Installation, now: @escaping @Sendable () -> Int64) throws {
        configuration = installation.configuration
        let resolver = try Resolvers.perMessage(configuration, path: installation.resolved.path)
        base = try EngineFactory.engine(
            installation: installation,
            authenticator: EngineFactory.authenticator(configuration, resolver: resolver),
            signer: RelaySigner(keys: installation.store.dkimKeys), counters: nil,
            replyMemory: ReplyMemory(limit: configuration.limits.replyMemory.max), now: now)
    }

    /// - Parameter zone: DNS answers for this message only.
    package func explain(_ message: ExplainedMessage, zone: ZoneFile?) throws -> Explanation {
        let fansOut = configuration.fanOut != nil
        guard let zone else { return Explainer.explain(message, engine: base, fansOut: fansOut) }
        let resolver = zone.resolver
        return Explainer.explain(
            message,
            engine: base.authenticating(
                by: EngineFactory.authenticator(configuration) { resolver }), fansOut: fansOut)
    }
}

extension RelayDecision {
    /// Whether the sender's server gets a reply that accepts the message.
    fileprivate var isRelayed: Bool {
        if case .refuse = outcome { return false }
        return true
    }
}
