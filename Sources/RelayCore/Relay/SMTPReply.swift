// Replies on the wire (RFC 5321 section 4.2, RFC 3463) and the refusals that carry them.

/// One SMTP reply as the other side sees it.
package struct SMTPReply: Sendable, Hashable {
    /// Three-digit reply code, 200–599.
    package let code: Int
    /// Enhanced status code (RFC 3463), its first digit that of `code`.
    package let enhanced: String
    /// Text in printable ASCII. Holds nothing that would help an attacker, and never an inbox.
    package let text: String

    package init(code: Int, enhanced: String, text: String) {
        self.code = code
        self.enhanced = enhanced
        self.text = text
    }

    /// The reply to a recipient or message that was accepted.
    package static let accepted = SMTPReply(code: 250, enhanced: "2.0.0", text: "Ok")
}

/// The reason for an answer: a stable word for logs, counters and `explain`, and a sentence for the operator.
package struct RelayReason: Sendable, Hashable {
    /// Lower-case words with hyphens; stable between releases.
    package let code: String
    /// For the log only. Holds no inbox address.
    package let detail: String
    /// Whether it reveals something about an account: this is for its own team only.
    package let isOfAccount: Bool

    package init(_ code: String, _ detail: String = "", isOfAccount: Bool = false) {
        self.code = code
        self.detail = detail
        self.isOfAccount = isOfAccount
    }

    /// The code of an incident: a reply that counted as rewritten held the inbox. Refused, and logged as an error.
    package static let leakIncident = "leak-incident"
    /// The code of a forward that was relayed with links that bypass the relay.
    package static let linksLeft = "links-left"
}

/// A refusal, thrown by the steps of a decision. Its class is that of its code: a 4xx code cannot be permanent.
package struct Refusal: Error, Sendable, Hashable {
    package let reply: SMTPReply
    package let reason: RelayReason

    /// Whether the sender keeps the mail and tries again (4xx); otherwise the refusal will not change (5xx).
    package var isTemporary: Bool { reply.code / 100 == 4 }

    init(_ code: Int, _ enhanced: String, _ text: String, _ reason: RelayReason) {
        self.init(SMTPReply(code: code, enhanced: enhanced, text: text), reason)
    }

    init(_ reply: SMTPReply, _ reason: RelayReason) {
        self.reply = reply
        self.reason = reason
    }
}
