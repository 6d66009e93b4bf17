// The MTA's side of the milter protocol over a unix socket, for filters in a separate process.

import Glibc

/// The result for a message that was passed to a filter.
package struct FilteredMessage: Sendable {
    package enum Response: Sendable, Hashable {
        /// Postfix accepts it, with the modifications.
        case taken
        case discarded
        /// `451 4.3.0 …`, as the client receives it.
        case refused(String)
        /// The connection broke, or no answer came in time: Postfix answers 451
        /// (`milter_default_action = tempfail`).
        case lost
    }

    package let answer: Response
    /// Envelope and message as Postfix would queue them; nil if it does not.
    package let delivered: MessageState?
}

/// A connection to a filter, as an smtpd of Postfix 3.7 makes it (protocol version 6). For
/// one thread at a time.
package final class MilterClient {
    private struct Broken: Error {}

    private let descriptor: Int32
    /// Events that the filter does not want, or does not answer (SMFIP_…).
    private var protocolBits: UInt32 = 0

    /// Nil if no filter listens at the socket, or the filter cannot negotiate.
    /// - Parameters:
    ///   - path: of the unix socket.
    ///   - timeout: seconds to wait for each answer.
    package init?(path: String, timeout: Int) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var time = timeval(tv_sec: timeout, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0, (try? negotiate()) != nil else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    // MARK: A message

    /// Passes a message from 127.0.0.1 to the filter.
    /// - Parameters:
    ///   - fields: names and values, without the space after the colon.
    ///   - queueID: value of the macro `i`.
    package func send(
        from sender: String, to recipients: [String], fields: [(name: String, value: String)],
        body: String, queueID: String
    ) -> FilteredMessage {
        let original = MessageState(
            mailFrom: MessageState.bracketed(sender),
            recipients: recipients.map(MessageState.bracketed),
            fields: fields.map { MessageState.Field($0.name, Array(" \($0.value)".utf8)) },
            body: Array(body.utf8))
        do {
            return try play(original, queueID)
        } catch {
            return FilteredMessage(answer: .lost, delivered: nil)
        }
    }

    private func play(_ message: MessageState, _ queueID: String) throws -> FilteredMessage {
        // Command, the bits for "not wanted" and "not answered", and the
        // data. Macros are sent before.
        try macros("C", ["{daemon_name}", "smtpd"])
        let peer: [UInt8] =
            Self.text("client.test") + [UInt8(ascii: "4"), 0x61, 0xA8] + Self.text("127.0.0.1")
        var steps: [(command: Character, unwanted: UInt32, unanswered: UInt32, data: [UInt8])] = [
            ("C", 0x01, 0x1000, peer), ("H", 0x02, 0x2000, Self.text("client.test")),
            ("M", 0x04, 0x4000, Self.text(message.mailFrom)),
        ]
        steps += message.recipients.map { ("R", 0x08, 0x8000, Self.text($0)) }
        steps.append(("T", 0x200, 0x10000, []))
        steps += message.fields.map { field in
            // Without SMFIP_HDR_LEADSPC, the space belongs neither to the name nor to the value.
            let value = protocolBits & 0x10_0000 != 0 ? field.value : Array(field.value.dropFirst())
            return ("L", 0x20, 0x80, Self.text(field.name) + value + [0])
        }
        steps += [("N", 0x40, 0x40000, []), ("B", 0x10, 0x80000, message.body)]
        for step in steps where protocolBits & step.unwanted == 0 {
            if step.command == "R" { try macros("R", ["i", queueID]) }
            try send(step.command, step.data)
            guard protocolBits & step.unanswered == 0 else { continue }
            let (reply, _) = try answer()
            switch reply {
            case nil: continue
            case .taken?: return FilteredMessage(answer: .taken, delivered: message)
            case let reply?: return FilteredMessage(answer: reply, delivered: nil)
            }
        }
        try macros("E", ["i", queueID])
        try send("E", [])
        let (reply, modifications) = try answer()
        guard reply == nil || reply == .taken else {
            return FilteredMessage(answer: reply ?? .lost, delivered: nil)
        }
        return FilteredMessage(answer: .taken, delivered: message.applying(modifications))
    }

    // MARK: The protocol

    private func negotiate() throws {
        // Every action and step that Postfix offers; no macro lists.
        try send("O", Self.number(6) + Self.number(0x1FF & ~0x100) + Self.number(0x1F_FFFF))
        let (command, data) = try packet()
        guard command == UInt8(ascii: "O"), data.count >= 12 else { throw Broken() }
        protocolBits = Self.number(data[8..<12])
    }

    private func macros(_ command: Character, _ table: [String]) throws {
        try send("D", [command.asciiValue ?? 0] + table.flatMap(Self.text))
    }

    /// The filter's answer, nil for "continue", and the modifications that it requested before.
    private func answer() throws -> (FilteredMessage.Response?, [RecordedModification]) {
        var modifications: [RecordedModification] = []
        var body: [UInt8]?
        while true {
            let (command, data) = try packet()
            let texts = data.split(separator: 0, omittingEmptySubsequences: false).map {
                String(decoding: $0, as: UTF8.self)
            }
            func text(_ index: Int) -> String { index < texts.count ? texts[index] : "" }
            switch Character(UnicodeScalar(command)) {
            case "p": continue
            case "m", "i":
                guard data.count > 4 else { throw Broken() }
                let (name, value) = Self.field(data.dropFirst(4))
                let index = Int(Self.number(data[..<4]))
                modifications.append(
                    command == UInt8(ascii: "i")
                        ? .insertHeader(index: index, name: name, value: value)
                        : .changeHeader(
                            name: name, index: index, value: value.isEmpty ? nil : value))
            case "h":
                let (name, value) = Self.field(data[...])
                modifications.append(.addHeader(name: name, value: value))
            case "e": modifications.append(.changeFrom(path: text(0), arguments: nil))
            case "+", "2": modifications.append(.addRecipient(path: text(0), arguments: nil))
            case "-": modifications.append(.deleteRecipient(path: text(0)))
            case "b": body = (body ?? []) + data
            case "c", "s": return (nil, modifications + (body.map { [.replaceBody($0)] } ?? []))
            case "a": return (.taken, modifications + (body.map { [.replaceBody($0)] } ?? []))
            case "d": return (.discarded, [])
            case "r": return (.refused("550 5.7.1 Command rejected"), [])
            case "t": return (.refused("451 4.7.1 Service unavailable - try again later"), [])
            case "y": return (.refused(text(0)), [])
            default: throw Broken()
            }
        }
    }

    private static func field(_ data: ArraySlice<UInt8>) -> (name: String, value: [UInt8]) {
        let end = data.firstIndex(of: 0) ?? data.endIndex
        let value = data[end...].dropFirst().prefix { $0 != 0 }
        return (
            String(decoding: data[..<end], as: UTF8.self),
            value.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] }
        )
    }

    private static func text(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
    private static func number(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
    private static func number(_ octets: some Sequence<UInt8>) -> UInt32 {
        octets.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private func send(_ command: Character, _ data: [UInt8]) throws {
        var rest = (Self.number(UInt32(data.count + 1)) + [command.asciiValue ?? 0] + data)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Broken() }
            rest = rest.dropFirst(count)
        }
    }

    private func packet() throws -> (command: UInt8, data: [UInt8]) {
        let length = Int(Self.number(try receive(4)))
        guard (1...(1 << 24)).contains(length) else { throw Broken() }
        let octets = try receive(length)
        return (octets[0], Array(octets.dropFirst()))
    }

    private func receive(_ count: Int) throws -> [UInt8] {
        var octets = [UInt8](repeating: 0, count: count)
        var have = 0
        while have < count {
            let more = octets.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress.map { $0 + have }, count - have, 0)
            }
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { throw Broken() }
            have += more
        }
        return octets
    }
}
