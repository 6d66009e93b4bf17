// A small, real SMTP server that keeps its messages, and refuses those that a test specifies.

import Foundation

/// A received message.
package struct SinkMessage: Sendable, Hashable {
    /// The client's IPv4 address; empty if it is not known.
    package let client: String
    package let helo: String
    /// With its brackets: `<a@b.example>`, `<>`.
    package let mailFrom: String
    package let mailArguments: [String]
    /// The accepted recipients, with brackets.
    package let recipients: [String]
    /// ESMTP arguments for each recipient.
    package let recipientArguments: [[String]]
    /// The message: dots unstuffed, line ends as received (CRLF).
    package let data: [UInt8]

    /// The message as text, for convenience.
    package var text: String { String(decoding: data, as: UTF8.self) }

    /// The header section, with the CRLF of its last line.
    package var header: [UInt8] { Array(data[..<split.header]) }

    /// Everything after the empty line.
    package var body: [UInt8] { Array(data[split.body...]) }

    private var split: (header: Int, body: Int) {
        let separator: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        if data.starts(with: [0x0D, 0x0A]) { return (0, 2) }
        guard data.count >= 4 else { return (data.count, data.count) }
        for index in 0...(data.count - 4)
        where data[index] == 0x0D && data[index..<index + 4].elementsEqual(separator) {
            return (index + 2, index + 4)
        }
        return (data.count, data.count)
    }

    /// The fields of the header section. Folds stay CRLF and white space.
    package var fields: [String] {
        var fields = [String]()
        for line in String(decoding: header, as: UTF8.self).components(separatedBy: "\r\n")
        where !line.isEmpty {
            if line.hasPrefix(" ") || line.hasPrefix("\t"), let last = fields.last {
                fields[fields.count - 1] = last + "\r\n" + line
            } else {
                fields.append(line)
            }
        }
        return fields
    }
}

/// The offers and refusals of a sink.
package struct SinkBehaviour: Sendable {
    /// EHLO keywords, in addition to PIPELINING, 8BITMIME and SIZE: `DSN`, `SMTPUTF8`.
    package var keywords: [String] = []
    /// Whether 8BITMIME is among them.
    package var offers8BITMIME = true
    /// Recipients (with brackets, or `*`) whose RCPT gets this reply: `550 5.1.1 no such user`.
    package var refusedRecipients: [String: String] = [:]
    /// Recipients (with brackets, or `*`) for whom the message gets this reply after its final dot.
    package var refusedMessages: [String: String] = [:]

    package init() {}
}

/// A listening sink on 127.0.0.1. Stops with `stop`, or with the last reference.
package final class SMTPSink: Sendable {
    private struct State {
        var messages = [SinkMessage]()
        var behaviour: SinkBehaviour
        var connections: [Int: Socket] = [:]
        var connectionCount = 0
    }

    private let listener: Socket
    private let state: Watched<State>
    package let port: UInt16

    package init(_ behaviour: SinkBehaviour = SinkBehaviour()) throws {
        let listener = try Socket.listen()
        self.listener = listener
        port = listener.port
        let state = Watched(State(behaviour: behaviour))
        self.state = state
        Thread.detachNewThread {
            while let connection = listener.accept() {
                let number = state.with { state in
                    state.connectionCount += 1
                    state.connections[state.connectionCount] = connection
                    return state.connectionCount
                }
                Thread.detachNewThread {
                    SinkSession(connection, behaviour: { state.with { $0.behaviour } }) { message in
                        state.with { $0.messages.append(message) }
                    }.run()
                    state.with { _ = $0.connections.removeValue(forKey: number) }
                }
            }
        }
    }

    deinit { stop() }

    /// Changes the offers and refusals from the next command on.
    package func set(_ behaviour: SinkBehaviour) { state.with { $0.behaviour = behaviour } }

    /// All messages accepted so far.
    package var messages: [SinkMessage] { state.with { $0.messages } }

    /// Messages that went to a recipient (with brackets).
    package func messages(to recipient: String) -> [SinkMessage] {
        messages.filter { $0.recipients.contains(recipient) }
    }

    /// Waits until at least `count` messages for which `matches` is true were accepted, and returns
    /// them. Throws if they do not come.
    @discardableResult
    package func wait(
        for count: Int, seconds: Double = standardTimeout,
        where matches: @Sendable (SinkMessage) -> Bool = { _ in true }
    ) throws -> [SinkMessage] {
        let found = state.wait(seconds: seconds) { state in
            let messages = state.messages.filter(matches)
            return messages.count >= count ? messages : nil
        }
        guard let found else {
            throw HarnessError("\(messages.count) messages came, waited for \(count)")
        }
        return found
    }

    /// Stops listening and ends all connections.
    package func stop() {
        listener.shutDown()
        state.with { state in
            for connection in state.connections.values { connection.shutDown() }
        }
    }
}

/// The server's side of one connection.
private struct SinkSession {
    private let socket: Socket
    private let behaviour: () -> SinkBehaviour
    private let accepted: (SinkMessage) -> Void
    private var reader: LineReader
    private var helo = ""
    private var mail: (path: String, arguments: [String])?
    private var recipients: [(path: String, arguments: [String])] = []

    init(
        _ socket: Socket, behaviour: @escaping () -> SinkBehaviour,
        accepted: @escaping (SinkMessage) -> Void
    ) {
        self.socket = socket
        self.behaviour = behaviour
        self.accepted = accepted
        reader = LineReader(socket)
    }

    func run() {
        var session = self
        session.say("220 sink.test ESMTP")
        while let line = session.reader.line() {
            let text = String(decoding: line, as: UTF8.self)
            if text.uppercased() == "QUIT" {
                session.say("221 2.0.0 bye")
                return
            }
            guard session.command(text) else { return }
        }
    }

    private func say(_ line: String) { _ = socket.send(Array(line.utf8) + [0x0D, 0x0A]) }

    /// False if the connection has ended.
    private mutating func command(_ line: String) -> Bool {
        let upper = line.uppercased()
        if upper.hasPrefix("EHLO ") {
            helo = String(line.dropFirst(5))
            let behaviour = behaviour()
            let keywords =
                ["sink.test", "PIPELINING", "SIZE 0"]
                + (behaviour.offers8BITMIME ? ["8BITMIME"] : []) + behaviour.keywords
            for (index, keyword) in keywords.enumerated() {
                say("250\(index == keywords.count - 1 ? " " : "-")\(keyword)")
            }
        } else if upper.hasPrefix("HELO ") {
            helo = String(line.dropFirst(5))
            say("250 sink.test")
        } else if upper.hasPrefix("MAIL FROM:") {
            mail = Self.path(line.dropFirst(10))
            recipients = []
            say("250 2.1.0 ok")
        } else if upper.hasPrefix("RCPT TO:") {
            let recipient = Self.path(line.dropFirst(8))
            let refused = behaviour().refusedRecipients
            if let refusal = refused[recipient.path] ?? refused["*"] {
                say(refusal)
            } else {
                recipients.append(recipient)
                say("250 2.1.5 ok")
            }
        } else if upper == "DATA" {
            return data()
        } else if upper == "RSET" {
            (mail, recipients) = (nil, [])
            say("250 2.0.0 ok")
        } else {
            say(upper == "NOOP" ? "250 2.0.0 ok" : "502 5.5.2 what?")
        }
        return true
    }

    private mutating func data() -> Bool {
        guard let mail, !recipients.isEmpty else {
            say("503 5.5.1 no recipients")
            return true
        }
        say("354 go on")
        guard let message = reader.message() else { return false }
        let refused = behaviour().refusedMessages
        if let refusal = recipients.lazy.compactMap({ refused[$0.path] }).first ?? refused["*"] {
            say(refusal)
        } else {
            accepted(
                SinkMessage(
                    client: socket.peer ?? "", helo: helo, mailFrom: mail.path,
                    mailArguments: mail.arguments,
                    recipients: recipients.map(\.path),
                    recipientArguments: recipients.map(\.arguments), data: message))
            say("250 2.0.0 kept")
        }
        (self.mail, recipients) = (nil, [])
        return true
    }

    /// Divides `<path> ARG ARG`; a quoted local part may contain spaces.
    private static func path(_ text: Substring) -> (path: String, arguments: [String]) {
        let text = text.drop { $0 == " " }
        var quoted = false
        let end = text.firstIndex { character in
            if character == "\"" { quoted.toggle() }
            return character == ">" && !quoted
        }
        guard let end else { return (String(text), []) }
        return (
            String(text[...end]),
            text[text.index(after: end)...].split(separator: " ").map(String.init)
        )
    }
}
