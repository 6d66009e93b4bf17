// Replies of the SMTP protocol (RFC 5321 section 4.2, RFC 3463) and the refusals that contain them.

/// One SMTP reply, as the client gets it.
package struct SMTPReply: Sendable, Hashable {
    /// Three-digit reply code, 200–599.
    package let code: Int
    /// Enhanced status code (RFC 3463); its first digit is that of `code`.
    package let enhanced: String
    /// Text in printable ASCII. Contains nothing that would help an attacker, and never an inbox.
    package let text: String

    package init(code: Int, enhanced: String, text: String) {
        self.code = code
        self.enhanced = enhanced
        self.text = text
    }

    /// The reply to a recipient or message that was accepted.
    package static let accepted = SMTPReply(code: 250, enhanced: "2.0.0", text: "Ok")
}

/// A refusal, thrown by the steps of a decision. Its code determines its class: a 4xx code cannot
/// be permanent.
package struct Refusal: Error, Sendable, Hashable {
    package let kind: RefusalReply
    package let reply: SMTPReply
    package let reason: RelayReason

    /// Whether the sender keeps the mail and tries again (4xx). Otherwise another attempt gets the
    /// same refusal (5xx).
    package var isTemporary: Bool { reply.code / 100 == 4 }

    /// - Parameter values: for the text, in order; printable ASCII.
    init(_ kind: RefusalReply, _ values: String..., reason: RelayReason) {
        let facts = kind.facts
        self.init(
            kind, SMTPReply(code: facts.code, enhanced: facts.enhanced, text: kind.text(values)),
            reason)
    }

    /// With the default reason of the reply.
    init(_ kind: RefusalReply, _ values: String..., detail: String = "") {
        let facts = kind.facts
        self.init(
            kind, SMTPReply(code: facts.code, enhanced: facts.enhanced, text: kind.text(values)),
            RelayReason(facts.reasons[0], detail))
    }

    init(_ kind: RefusalReply, _ reply: SMTPReply, _ reason: RelayReason) {
        self.kind = kind
        self.reply = reply
        self.reason = reason
    }
}
