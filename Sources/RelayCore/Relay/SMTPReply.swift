// Replies on the wire (RFC 5321 section 4.2, RFC 3463) and the refusals that carry them.

/// One SMTP reply as the other side sees it.
package struct SMTPReply: Sendable, Hashable {
    /// Three-digit reply code, 200–599.
    package let code: Int
    /// Enhanced status code (RFC 3463), its first digit that of `code`.
    package let enhanced: String
    /// Text in printable ASCII. Never says what would help an attacker, never an inbox.
    package let text: String

    package init(code: Int, enhanced: String, text: String) {
        self.code = code
        self.enhanced = enhanced
        self.text = text
    }

    /// The reply to a recipient or message that was accepted.
    package static let accepted = SMTPReply(code: 250, enhanced: "2.0.0", text: "Ok")
}

/// Why something was answered as it was: a stable word for logs, counters and `explain`, and a sentence for the operator.
package struct RelayReason: Sendable, Hashable {
    /// Lower-case words with hyphens; stable between releases.
    package let code: String
    /// For the log only. Holds no inbox address.
    package let detail: String
    /// Whether it says something of an account: that is for its own team, and for no other.
    package let isOfAccount: Bool

    package init(_ code: String, _ detail: String = "", isOfAccount: Bool = false) {
        self.code = code
        self.detail = detail
        self.isOfAccount = isOfAccount
    }

    /// The code of an incident: the inbox was in a reply that was taken for rewritten. Refused, and logged as an error.
    package static let leakIncident = "leak-incident"
    /// The code of a forward that went on with links that lead past the relay.
    package static let linksLeft = "links-left"
}

/// A refusal, as the steps of a decision throw it. Its class is that of its code: a 4xx code cannot be permanent.
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
