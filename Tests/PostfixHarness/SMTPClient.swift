// An SMTP client that sends exactly what a test requires, right or wrong.

import Foundation

/// A server's reply.
package struct SMTPServerReply: Sendable, Hashable, CustomStringConvertible {
    package let code: Int
    /// The texts after the code, one for each line.
    package let lines: [String]

    /// Unchanged, with lines joined by LF.
    package var description: String {
        lines.enumerated().map { "\(code)\($0.offset == lines.count - 1 ? " " : "-")\($0.element)" }
            .joined(separator: "\n")
    }

    /// The enhanced status code at the beginning of the first line.
    package var enhancedStatus: String? {
        let word = lines.first?.split(separator: " ").first.map(String.init)
        return word.flatMap {
            $0.split(separator: ".").count == 3 && $0.first?.isNumber == true ? $0 : nil
        }
    }

    /// Whether `code` is 2xx.
    package var isPositive: Bool { code / 100 == 2 }
}

/// The result of a complete transaction.
package struct SMTPTransactionResult: Sendable {
    package let mail: SMTPServerReply
    /// One for each recipient, in order.
    package let recipients: [SMTPServerReply]
    /// The reply after the final dot, or to DATA if that was refused; nil without an accepted
    /// recipient.
    package let data: SMTPServerReply?
    /// Postfix's queue id, if the message was queued.
    package var queueID: String? {
        guard let text = data?.lines.last, let range = text.range(of: "queued as ") else {
            return nil
        }
        return String(text[range.upperBound...])
    }
}

/// A connection to an SMTP server on 127.0.0.1. For one thread at a time.
package final class SMTPClient {
    private let socket: Socket
    private var reader: LineReader
    /// The greeting.
    package private(set) var greeting: SMTPServerReply = SMTPServerReply(code: 0, lines: [])

    /// Connects and reads the greeting.
    package init(port: UInt16, timeout: Int = Int(standardTimeout)) throws {
        socket = try Socket.connect(port: port, timeout: timeout)
        reader = LineReader(socket)
        greeting = try reply()
    }

    /// Sends octets unchanged.
    package func send(_ bytes: [UInt8]) throws {
        guard socket.send(bytes) else { throw HarnessError("the server has closed the connection") }
    }

    /// Sends a line and CRLF.
    package func sendLine(_ line: String) throws { try send(Array(line.utf8) + [0x0D, 0x0A]) }

    /// Reads one reply, all its lines.
    package func reply() throws -> SMTPServerReply {
        var lines = [String]()
        while let line = reader.line() {
            let text = String(decoding: line, as: UTF8.self)
            guard let code = Int(text.prefix(3)) else {
                throw HarnessError("not an SMTP reply: \(text)")
            }
            lines.append(String(text.dropFirst(4)))
            if text.dropFirst(3).first != "-" { return SMTPServerReply(code: code, lines: lines) }
        }
        throw HarnessError("the server closed the connection or fell silent")
    }

    /// Sends a line and reads the reply.
    @discardableResult
    package func command(_ line: String) throws -> SMTPServerReply {
        try sendLine(line)
        return try reply()
    }

    /// Sends a line; throws unless the reply has this code.
    @discardableResult
    package func expect(_ code: Int, _ line: String) throws -> SMTPServerReply {
        let reply = try command(line)
        guard reply.code == code else {
            throw HarnessError("\(line): expected \(code), got \(reply)")
        }
        return reply
    }

    /// Sends many lines at once (RFC 2920) and reads a reply to each.
    package func pipeline(_ lines: [String]) throws -> [SMTPServerReply] {
        var replies = [SMTPServerReply]()
        var rest = lines[...]
        // Few enough that replies fit into the socket's buffers during sending.
        while !rest.isEmpty {
            try send(rest.prefix(100).flatMap { Array($0.utf8) + [0x0D, 0x0A] })
            for _ in rest.prefix(100) { replies.append(try reply()) }
            rest = rest.dropFirst(100)
        }
        return replies
    }

    /// Claims to be another client: `ADDR=192.0.2.1`, `NAME=…`, `HELO=…`; the server greets again.
    package func xclient(_ attributes: [(String, String)]) throws {
        try expect(220, "XCLIENT " + attributes.map { "\($0.0)=\($0.1)" }.joined(separator: " "))
    }

    /// Sends DATA and, after 354, the message: dots stuffed, ended by CRLF . CRLF. Octets are
    /// otherwise unchanged.
    package func data(_ message: [UInt8]) throws -> SMTPServerReply {
        let reply = try command("DATA")
        guard reply.code == 354 else { return reply }
        try send(Self.stuffed(message))
        return try self.reply()
    }

    /// A message in the form of DATA, the final dot included.
    package static func stuffed(_ message: [UInt8]) -> [UInt8] {
        var wire = [UInt8]()
        wire.reserveCapacity(message.count + message.count / 64 + 5)
        var atStart = true
        for octet in message {
            if atStart && octet == UInt8(ascii: ".") { wire.append(octet) }
            wire.append(octet)
            atStart = octet == 0x0A
        }
        if !atStart { wire += [0x0D, 0x0A] }
        return wire + [0x2E, 0x0D, 0x0A]
    }

    /// One message: MAIL, RCPT for each recipient, then DATA if at least one was accepted,
    /// otherwise RSET. Paths with brackets.
    package func transaction(
        from: String, to recipients: [String], mailArguments: String = "", message: [UInt8]
    ) throws -> SMTPTransactionResult {
        let mail = try command(
            "MAIL FROM:\(from)" + (mailArguments.isEmpty ? "" : " \(mailArguments)"))
        guard mail.isPositive else {
            return SMTPTransactionResult(mail: mail, recipients: [], data: nil)
        }
        let replies = try recipients.map { try command("RCPT TO:\($0)") }
        guard replies.contains(where: \.isPositive) else {
            _ = try? command("RSET")
            return SMTPTransactionResult(mail: mail, recipients: replies, data: nil)
        }
        return SMTPTransactionResult(mail: mail, recipients: replies, data: try data(message))
    }

    /// Sends QUIT, and ignores the answer.
    package func quit() {
        _ = try? command("QUIT")
        close()
    }

    /// Closes the connection without QUIT.
    package func close() { socket.shutDown() }

    /// Connects, sends EHLO and one message, quits.
    package static func send(
        port: UInt16, helo: String = "client.test", from: String, to recipients: [String],
        mailArguments: String = "",
        message: [UInt8], xclient: [(String, String)] = []
    ) throws -> SMTPTransactionResult {
        let client = try SMTPClient(port: port)
        defer { client.quit() }
        if !xclient.isEmpty {
            try client.expect(250, "EHLO \(helo)")
            try client.xclient(xclient)
        }
        try client.expect(250, "EHLO \(helo)")
        return try client.transaction(
            from: from, to: recipients, mailArguments: mailArguments, message: message)
    }
}
