// Hands a message to a mail server (RFC 5321): one connection, one transaction,
// no pipelining. Blocks.

import Foundation
import InternetMessage
import NIOSSL

/// The server to which messages are handed over, and the timeouts.
package struct SMTPSubmission: Sendable {
    package let host: String
    package let port: UInt16
    /// Our name in EHLO.
    package let helo: String
    /// Seconds for connecting, and for each reply and each command.
    package let timeout: Double
    /// Seconds for the reply to the message, while the server's filters check it (10 minutes in RFC
    /// 5321 section 4.5.3.2.6).
    package let dataTimeout: Double
    package let security: SubmissionSecurity
    /// Nil if the server requires no login.
    let credentials: SubmissionCredentials?

    package init(
        host: String, port: UInt16, helo: String, security: SubmissionSecurity = .none,
        credentials: SubmissionCredentials? = nil,
        timeout: Double = 30, dataTimeout: Double = 120
    ) {
        self.security = security
        self.credentials = credentials
        self.host = host
        self.port = port
        self.helo = helo
        self.timeout = timeout
        self.dataTimeout = dataTimeout
    }

    /// Sends a message. Returns when the server has accepted responsibility for it.
    /// - Parameters:
    ///   - sender: the reverse-path; nil is the null sender.
    ///   - message: header section, empty line and body, lines ended by CRLF.
    @discardableResult
    package func send(
        from sender: AddrSpec?, to recipient: InboxAddress, message: [UInt8]
    ) throws(SubmissionFailure) -> SubmissionReceipt {
        var dialogue = try Dialogue(self)
        try dialogue.begin()
        let receipt = try dialogue.send(from: sender, to: recipient, message: message)
        dialogue.quit()
        return receipt
    }
}

/// The dialogue on one connection.
struct Dialogue {
    private let settings: SMTPSubmission
    private let connection: TCPConnection
    private var reader = SMTPReplyReader()
    /// The keywords of EHLO, in upper case, with the words that follow each.
    private(set) var keywords: [String: [String]] = [:]

    init(_ settings: SMTPSubmission) throws(SubmissionFailure) {
        self.settings = settings
        connection = try TCPConnection(
            host: settings.host, port: settings.port, timeout: settings.timeout)
    }

    var descriptor: Int32 { connection.descriptor }

    /// Greeting, encryption and login, as configured.
    mutating func begin() throws(SubmissionFailure) {
        if case .implicit(let context) = settings.security { try encrypt(context) }
        try expect(try reply(.greeting, within: settings.timeout), 2, .greeting)
        try hello(settings.helo)
        if case .startTLS(let context) = settings.security {
            guard keywords["STARTTLS"] != nil else {
                throw .permanent(.tls, "the server offers no STARTTLS")
            }
            try expect(try command("STARTTLS", .tls), 2, .tls)
            // Plain-text data after the reply may come from anyone (RFC 3207 section 4.2).
            guard reader.isEmpty else {
                throw .permanent(.tls, "the server sent unexpected data before TLS")
            }
            try encrypt(context)
            try hello(settings.helo)
        }
        if let credentials = settings.credentials { try authenticate(credentials) }
    }

    private func encrypt(_ context: NIOSSLContext) throws(SubmissionFailure) {
        try connection.startTLS(
            context, host: settings.host, port: settings.port,
            until: TCPConnection.now() + settings.timeout)
    }

    mutating func hello(_ name: String) throws(SubmissionFailure) {
        keywords = [:]
        let reply = try command("EHLO \(name)", .ehlo)
        if reply.code / 100 == 2 {
            for line in reply.lines.dropFirst() {
                let words = line.split(separator: " ").map { $0.uppercased() }
                if let name = words.first { keywords[name] = Array(words.dropFirst()) }
            }
        } else {
            // A server that knows only HELO (1982) is accepted too.
            try expect(try command("HELO \(name)", .ehlo), 2, .ehlo)
        }
    }

    /// AUTH PLAIN (RFC 4616), or LOGIN if the server offers only that.
    private mutating func authenticate(
        _ credentials: SubmissionCredentials
    ) throws(SubmissionFailure) {
        let mechanisms = keywords["AUTH"] ?? []
        func encoded(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
        if mechanisms.contains("PLAIN") {
            try expect(
                try command(
                    "AUTH PLAIN \(encoded("\0\(credentials.user)\0\(credentials.password)"))",
                    .authentication), 2,
                .authentication)
        } else if mechanisms.contains("LOGIN") {
            try expect(try command("AUTH LOGIN", .authentication), 3, .authentication)
            try expect(try command(encoded(credentials.user), .authentication), 3, .authentication)
            try expect(
                try command(encoded(credentials.password), .authentication), 2, .authentication)
        } else {
            throw .permanent(.authentication, "the server offers neither AUTH PLAIN nor AUTH LOGIN")
        }
    }

    mutating func send(
        from sender: AddrSpec?, to recipient: InboxAddress, message: [UInt8]
    ) throws(SubmissionFailure) -> SubmissionReceipt {
        let isEightBit = message.contains { $0 >= 0x80 }
        guard !isEightBit || keywords["8BITMIME"] != nil else {
            throw .permanent(
                .mail, "the message has 8-bit octets and the server offers no 8BITMIME")
        }
        // Domains have an ASCII form; a non-ASCII local part needs SMTPUTF8 (RFC 6531).
        let path: String
        var parameters = isEightBit ? " BODY=8BITMIME" : ""
        if let ascii = recipient.revealed.asciiWireForm, !Self.headerIsUTF8(message) {
            path = ascii
        } else {
            guard keywords["SMTPUTF8"] != nil else {
                throw .permanent(
                    .recipient, "the address needs SMTPUTF8, which the server does not offer")
            }
            path = recipient.revealed.wireForm
            parameters += " SMTPUTF8"
        }
        try expect(
            try command("MAIL FROM:<\(sender?.wireForm ?? "")>\(parameters)", .mail), 2, .mail)
        try expect(try command("RCPT TO:<\(path)>", .recipient), 2, .recipient)
        try expect(try command("DATA", .data), 3, .data)
        let taken = try content(Self.stuffed(message))
        try expect(taken, 2, .message)
        return SubmissionReceipt(keywords: Set(keywords.keys), queueID: Self.queueID(taken))
    }

    /// Sends the content after DATA, dots stuffed and with its end, and returns the reply.
    mutating func content(_ stuffed: [UInt8]) throws(SubmissionFailure) -> ServerReply {
        guard connection.send(stuffed, until: TCPConnection.now() + settings.dataTimeout) else {
            throw .temporary(.message, "the connection was lost")
        }
        return try reply(.message, within: settings.dataTimeout)
    }

    /// The queue id in `2.0.0 Ok: queued as 4Abc`.
    private static func queueID(_ reply: ServerReply) -> String? {
        guard let range = reply.lines.last?.range(of: "queued as "), let line = reply.lines.last
        else { return nil }
        let id = line[range.upperBound...].prefix { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return id.isEmpty ? nil : String(id)
    }

    /// Ignores any failure: the server already has the message.
    mutating func quit() { _ = try? command("QUIT", .message) }

    mutating func command(
        _ line: String, _ stage: SubmissionStage
    ) throws(SubmissionFailure) -> ServerReply {
        // `wireForm` already omits CR and LF. They are removed here too, so that nothing can end
        // the line.
        let octets = line.utf8.filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
        guard connection.send(octets + [0x0D, 0x0A], until: TCPConnection.now() + settings.timeout)
        else {
            throw .temporary(stage, "the connection was lost")
        }
        return try reply(stage, within: settings.timeout)
    }

    private mutating func reply(
        _ stage: SubmissionStage, within seconds: Double
    ) throws(SubmissionFailure) -> ServerReply {
        let deadline = TCPConnection.now() + seconds
        var octets: [UInt8] = []
        while true {
            do throws(SMTPReplyReader.Defect) {
                if let reply = try reader.next(feeding: octets) { return reply }
            } catch {
                throw .temporary(stage, "the server does not speak SMTP")
            }
            switch connection.receive(until: deadline) {
            case .octets(let received): octets = received
            case .end: throw .temporary(stage, "the server closed the connection")
            case .timeout: throw .temporary(stage, "no answer in time")
            }
        }
    }

    func expect(
        _ reply: ServerReply, _ kind: Int, _ stage: SubmissionStage
    ) throws(SubmissionFailure) {
        guard reply.code / 100 != kind else { return }
        throw reply.code / 100 == 5
            ? .permanent(stage, reply.summary) : .temporary(stage, reply.summary)
    }

    private static func headerIsUTF8(_ message: [UInt8]) -> Bool {
        Message.parse(message).header.serialized.contains { $0 >= 0x80 }
    }

    /// The message with dots at the beginning of lines doubled, and its end
    /// (RFC 5321 section 4.5.2).
    static func stuffed(_ message: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(message.count + 64)
        var isLineStart = true
        for octet in message {
            if isLineStart, octet == UInt8(ascii: ".") { output.append(octet) }
            output.append(octet)
            isLineStart = octet == 0x0A
        }
        if !output.suffix(2).elementsEqual([0x0D, 0x0A]) { output += [0x0D, 0x0A] }
        return output + Array(".\r\n".utf8)
    }
}
