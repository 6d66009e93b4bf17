// Replies on the wire (RFC 5321 section 4.2, RFC 3463) and the refusals that carry them. Permanent and temporary are different
// types.

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

    package init(_ code: String, _ detail: String = "") {
        self.code = code
        self.detail = detail
    }

    /// The code of an incident: the inbox was in a reply that was taken for rewritten. Refused, and logged as an error.
    package static let leakIncident = "leak-incident"
    /// The code of a forward that went on with links that lead past the relay.
    package static let linksLeft = "links-left"
}

/// A refusal that will not change: 5xx.
package struct PermanentRefusal: Error, Sendable, Hashable {
    package let reply: SMTPReply
    package let reason: RelayReason

    package init(_ code: Int, _ enhanced: String, _ text: String, _ reason: RelayReason) {
        reply = SMTPReply(code: code, enhanced: enhanced, text: text)
        self.reason = reason
    }

    /// The same reply for another reason.
    package init(copying reply: SMTPReply, _ reason: RelayReason) {
        self.reply = reply
        self.reason = reason
    }
}

/// A refusal after which the sender keeps the mail and tries again: 4xx.
package struct TemporaryRefusal: Error, Sendable, Hashable {
    package let reply: SMTPReply
    package let reason: RelayReason

    package init(_ code: Int, _ enhanced: String, _ text: String, _ reason: RelayReason) {
        reply = SMTPReply(code: code, enhanced: enhanced, text: text)
        self.reason = reason
    }
}

/// A refusal of either kind, as the steps of a decision throw it.
package enum Refusal: Error, Sendable, Hashable {
    case permanent(PermanentRefusal)
    case temporary(TemporaryRefusal)

    package var reply: SMTPReply {
        switch self {
        case .permanent(let refusal): refusal.reply
        case .temporary(let refusal): refusal.reply
        }
    }

    package var reason: RelayReason {
        switch self {
        case .permanent(let refusal): refusal.reason
        case .temporary(let refusal): refusal.reason
        }
    }
}
