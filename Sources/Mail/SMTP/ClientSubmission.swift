// Hands messages to an smtpd in the name of their original client (Postfix's XCLIENT). That smtpd
// and its filters see the client's address, name and HELO. Blocks.

import Support

/// A connection in the name of a client, for any number of messages.
package final class ClientSubmission {
    /// The client as the outer smtpd saw it.
    package struct Client: Sendable, Hashable {
        /// Nil if the client has none.
        package let address: String?
        /// Nil if the name is not known.
        package let name: String?
        package let helo: String

        package init(address: String?, name: String?, helo: String) {
            self.address = address
            self.name = name
            self.helo = helo
        }
    }

    /// The result for a message.
    package enum Outcome: Sendable, Hashable {
        /// The server has accepted responsibility for it.
        /// - Parameter queueID: the id at the end of Postfix's reply (`queued as 4XyZ`); nil for
        ///   other replies.
        case taken(queueID: String?)
        /// The server refused a recipient or the message.
        case refused(code: Int, enhanced: String, text: String)
    }

    /// How a connection identifies its session, and which peer it accepts.
    package struct Terms {
        let login: () -> String
        let objection: (Int32) -> String?

        /// - Parameters:
        ///   - login: identifies the session to the server's filter; a new one for each connection.
        ///   - objection: returns the reason why nothing may be handed over on the connection with
        ///     this descriptor, or nil if it may. Called after the server's greeting.
        package init(login: @escaping () -> String, objection: @escaping (Int32) -> String?) {
            self.login = login
            self.objection = objection
        }
    }

    /// Seconds after which a connection is replaced before the next message, as its login is valid
    /// only for minutes.
    private static let lifetime = 240.0

    private let settings: SMTPSubmission
    private let client: Client
    private let terms: Terms
    private var dialogue: Dialogue
    /// Time of connecting, by `TCPConnection.now`.
    private var openedAt: Double

    /// Connects, and takes the client's identity.
    /// - Throws: `SubmissionFailure`, also if the server does not allow another identity.
    package init(_ settings: SMTPSubmission, client: Client, terms: Terms) throws(SubmissionFailure)
    {
        (self.settings, self.client, self.terms) = (settings, client, terms)
        openedAt = TCPConnection.now()
        dialogue = try Self.open(settings, client, terms)
    }

    private func reopen() throws(SubmissionFailure) {
        openedAt = TCPConnection.now()
        dialogue = try Self.open(settings, client, terms)
    }

    private static func open(
        _ settings: SMTPSubmission, _ client: Client, _ terms: Terms
    ) throws(SubmissionFailure) -> Dialogue {
        var dialogue = try Dialogue(settings)
        try dialogue.begin()
        if let objection = terms.objection(dialogue.descriptor) {
            throw .temporary(.connection, objection)
        }
        guard dialogue.keywords["XCLIENT"] != nil else {
            throw .temporary(.ehlo, "the server does not offer XCLIENT")
        }
        let address = client.address.map { $0.contains(":") ? "IPV6:\($0)" : $0 } ?? "[UNAVAILABLE]"
        let helo = client.helo.isEmpty ? settings.helo : client.helo
        let name = client.name.map(xtext) ?? "[UNAVAILABLE]"
        // The server greets again after XCLIENT.
        let identity =
            "ADDR=\(xtext(address)) NAME=\(name) HELO=\(xtext(helo)) LOGIN=\(xtext(terms.login()))"
        try dialogue.expect(try dialogue.command("XCLIENT \(identity)", .ehlo), 2, .ehlo)
        try dialogue.hello(helo)
        return dialogue
    }

    /// Hands over a message. Returns when the server has answered.
    /// - Parameters:
    ///   - sender: the reverse-path without angle brackets.
    ///   - parameters: of MAIL, as the client gave them.
    ///   - paths: forward-paths with their angle brackets.
    ///   - stuffed: see `stuffed`.
    package func send(
        from sender: String, parameters: [String], to paths: [String], stuffed: [UInt8]
    ) throws(SubmissionFailure) -> Outcome {
        let mail = (["MAIL FROM:<\(sender)>"] + parameters).joined(separator: " ")
        // The connection was opened at RCPT, and its login may have expired while the message
        // arrived. Nothing of this copy was sent, so a new connection loses nothing.
        if TCPConnection.now() - openedAt > Self.lifetime {
            dialogue.quit()
            try reopen()
        }
        var reply: ServerReply
        do throws(SubmissionFailure) { reply = try dialogue.command(mail, .mail) } catch {
            try reopen()
            reply = try dialogue.command(mail, .mail)
        }
        try dialogue.expect(reply, 2, .mail)
        for path in paths {
            reply = try dialogue.command("RCPT TO:\(path)", .recipient)
            if reply.code / 100 != 2 {
                try dialogue.expect(try dialogue.command("RSET", .recipient), 2, .recipient)
                return Self.refused(reply)
            }
        }
        try dialogue.expect(try dialogue.command("DATA", .data), 3, .data)
        reply = try dialogue.content(stuffed)
        return reply.code / 100 == 2 ? .taken(queueID: Self.queueID(reply)) : Self.refused(reply)
    }

    /// A message in wire form: with dots stuffed, and its end. Made once for
    /// any number of recipients.
    package static func stuffed(_ message: [UInt8]) -> [UInt8] { Dialogue.stuffed(message) }

    package func quit() { dialogue.quit() }

    private static func queueID(_ reply: ServerReply) -> String? {
        let words = (reply.lines.last ?? "").utf8.split(separator: UInt8(ascii: " "))
        guard words.count >= 3, words[words.count - 3].elementsEqual("queued".utf8),
            let last = words.last, last.count <= 32,
            last.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit })
        else { return nil }
        return String(decoding: last, as: UTF8.self)
    }

    private static func refused(_ reply: ServerReply) -> Outcome {
        // The text without its enhanced code. Octets that are not SMTP text are replaced.
        var text = reply.lines.joined(separator: " ")
        let enhanced = reply.enhanced ?? "\(reply.code / 100).0.0"
        if text.hasPrefix(enhanced) { text = String(text.dropFirst(enhanced.count + 1)) }
        let printable = text.utf8.prefix(300).map {
            (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "%") ? $0 : UInt8(ascii: "?")
        }
        return .refused(
            code: reply.code, enhanced: enhanced, text: String(decoding: printable, as: UTF8.self))
    }

    /// RFC 3461 section 4: writes `+`, `=` and unprintable octets as `+`
    /// and two hexadecimal digits.
    private static func xtext(_ text: String) -> String {
        String(
            decoding: text.utf8.flatMap { octet -> [UInt8] in
                (0x21...0x7E).contains(octet) && octet != UInt8(ascii: "+")
                    && octet != UInt8(ascii: "=")
                    ? [octet] : Hex.escape(octet, mark: "+")
            }, as: UTF8.self)
    }
}
