// A fluent description of one SMTP connection, run against a handler without a socket.

import Milter

/// The actions of an SMTP client on one connection, as a value:
/// `MilterTransaction().connect().helo("a").mail("<a@b.example>")…run(handler)`. Omitted steps are
/// not sent; a message ends with `endOfMessage`, `reset`, or the end of the connection.
package struct MilterTransaction: Sendable {
    /// A step of the client: paths with brackets, arguments, and the macros
    /// that are set from then on.
    package enum Step: Sendable {
        case helo(String)
        case mail(String, [String], [String: String])
        case recipient(String, [String], [String: String])
        case unknown(String)
        case header([UInt8], [UInt8])
        case body([UInt8])
        case endOfMessage([String: String])
        case reset
    }

    var connection = MilterConnection(
        hostName: "client.test", peer: .ipv4("192.0.2.1", port: 25_000))
    var steps = [Step]()

    package init() {}

    private func adding(_ step: Step) -> MilterTransaction {
        var copy = self
        copy.steps.append(step)
        return copy
    }

    /// The connection; if omitted, `client.test` at 192.0.2.1. `daemonName` becomes
    /// the macro `{daemon_name}`.
    package func connect(
        _ hostName: String = "client.test", peer: MilterPeer = .ipv4("192.0.2.1", port: 25_000),
        daemonName: String? = nil,
        macros: [String: String] = [:]
    ) -> MilterTransaction {
        var copy = self
        var macros = macros
        if let daemonName { macros["{daemon_name}"] = daemonName }
        copy.connection = MilterConnection(hostName: hostName, peer: peer, macros: macros)
        return copy
    }

    package func helo(_ name: String) -> MilterTransaction { adding(.helo(name)) }

    /// Begins a message. `path` has brackets, as in SMTP.
    package func mail(
        _ path: String, arguments: [String] = [], macros: [String: String] = [:]
    ) -> MilterTransaction {
        adding(.mail(path, arguments, macros))
    }

    package func rcpt(
        _ path: String, arguments: [String] = [], macros: [String: String] = [:]
    ) -> MilterTransaction {
        adding(.recipient(path, arguments, macros))
    }

    /// A command that the MTA does not know.
    package func unknown(_ command: String) -> MilterTransaction { adding(.unknown(command)) }

    /// A field with one space and `value` after its colon.
    package func header(_ name: String, _ value: String) -> MilterTransaction {
        adding(.header(Array(name.utf8), Array(" \(value)".utf8)))
    }

    /// A field with everything after its colon, folds as CRLF and white space.
    package func header(_ name: String, raw value: [UInt8]) -> MilterTransaction {
        adding(.header(Array(name.utf8), value))
    }

    package func body(_ text: String) -> MilterTransaction { adding(.body(Array(text.utf8))) }

    package func body(_ bytes: [UInt8]) -> MilterTransaction { adding(.body(bytes)) }

    /// A whole message: header fields, empty line, body. Lines may end in CRLF or LF; the filter
    /// gets CRLF. A line of the header section without a colon ends it, as in Postfix.
    package func message(_ message: [UInt8]) -> MilterTransaction {
        var copy = self
        let (fields, body) = MessageReader.divide(message)
        for field in fields { copy.steps.append(.header(field.name, field.value)) }
        if !body.isEmpty { copy.steps.append(.body(body)) }
        return copy
    }

    /// The final dot. `macros` such as `i` are valid from here on.
    package func endOfMessage(macros: [String: String] = ["i": "TEST1"]) -> MilterTransaction {
        adding(.endOfMessage(macros))
    }

    /// RSET: the message is dropped.
    package func reset() -> MilterTransaction { adding(.reset) }

    /// Runs the whole connection against a new session of `handler`.
    package func run(_ handler: any MilterHandler) -> ConnectionOutcome {
        var mta = InMemoryMTA(handler: handler, connection: connection)
        for step in steps { mta.play(step) }
        return mta.finish()
    }
}

/// Splits a message into fields and body.
package enum MessageReader {
    /// Each field with everything after its colon, folds as CRLF and white space; the body's lines
    /// end in CRLF. A line of the header section without a colon ends it.
    package static func divide(
        _ message: [UInt8]
    ) -> (fields: [(name: [UInt8], value: [UInt8])], body: [UInt8]) {
        var start = 0
        var fields = [(name: [UInt8], value: [UInt8])]()
        var bodyStart = message.count
        while start < message.count {
            let end = message[start...].firstIndex(of: 0x0A) ?? message.count
            let line = Array(
                end > start && message[end - 1] == 0x0D
                    ? message[start..<end - 1] : message[start..<end])
            let next = min(end + 1, message.count)
            if line.isEmpty {
                bodyStart = next
                break
            }
            if line[0] == 0x20 || line[0] == 0x09, !fields.isEmpty {
                fields[fields.count - 1].value += [0x0D, 0x0A] + line
            } else if let colon = line.firstIndex(of: 0x3A) {
                fields.append((Array(line[..<colon]), Array(line[(colon + 1)...])))
            } else {
                bodyStart = start
                break
            }
            start = next
        }
        return (fields, withCRLF(Array(message[bodyStart...])))
    }

    private static func withCRLF(_ body: [UInt8]) -> [UInt8] {
        var out = [UInt8]()
        out.reserveCapacity(body.count)
        var previous: UInt8 = 0
        for octet in body {
            if octet == 0x0A && previous != 0x0D { out.append(0x0D) }
            out.append(octet)
            previous = octet
        }
        return out
    }
}
