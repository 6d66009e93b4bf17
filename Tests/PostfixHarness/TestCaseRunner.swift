// Plays a .testcase to a running Postfix and compares the messages that arrive at the sink.

import Foundation

extension TestCase {
    /// Plays the dialogue, waits until Postfix has finished, and compares. The sink must use
    /// `behaviour` and be empty.
    /// - Returns: the differences from the case, for a person; empty if there are none.
    package func run(postfix: PrivatePostfix, sink: SMTPSink) throws -> [String] {
        var failures = try dialogue(port: postfix.port)
        // After a failed dialogue nothing may be queued, so there is nothing to wait for.
        if failures.isEmpty { try sink.wait(for: deliveries.count) }
        try postfix.waitUntilDone()
        var messages = sink.messages
        for (number, delivery) in deliveries.enumerated() {
            if let index = messages.firstIndex(where: { delivery.difference($0) == nil }) {
                messages.remove(at: index)
            } else {
                let closest = messages.first { delivery.matchesEnvelope($0) } ?? messages.first
                let difference = closest.flatMap { delivery.difference($0) } ?? "nothing arrived"
                failures.append("message \(number + 1) did not arrive as expected: \(difference)")
                if let closest, let index = messages.firstIndex(of: closest) {
                    messages.remove(at: index)
                }
            }
        }
        failures += messages.map {
            "unexpected message from \($0.mailFrom) to \($0.recipients):\n\($0.text)"
        }
        return failures
    }

    private func dialogue(port: UInt16) throws -> [String] {
        var client: SMTPClient?
        var greeting: SMTPServerReply?
        var last = "the greeting"
        func connection() throws -> SMTPClient {
            if let client { return client }
            let new = try SMTPClient(port: port)
            (client, greeting) = (new, new.greeting)
            return new
        }
        for step in steps {
            switch step {
            case .connect:
                client?.close()
                client = nil
                last = "the greeting"
            case .send(let bytes):
                _ = try connection()
                greeting = nil
                try connection().send(bytes)
                last = String(decoding: bytes.prefix(200), as: UTF8.self).trimmingCharacters(
                    in: .newlines)
            case .sendMany(let count, let line, let pattern):
                let lines = (0..<count).map {
                    line.replacingOccurrences(of: "{n}", with: String($0))
                }
                _ = try connection()
                greeting = nil
                for (line, reply) in zip(lines, try connection().pipeline(lines))
                where !Self.matches(reply, pattern) {
                    return ["after \"\(line)\": expected \(pattern), got \(reply)"]
                }
            case .expect(let pattern):
                let connection = try connection()
                let reply = try greeting ?? connection.reply()
                greeting = nil
                if !Self.matches(reply, pattern) {
                    return ["after \"\(last)\": expected \(pattern), got \(reply)"]
                }
            }
        }
        client?.close()
        return []
    }

    /// `pattern` matches the reply's beginning, up to the end of a word; `*` matches any text.
    /// Lines are joined by LF.
    static func matches(_ reply: SMTPServerReply, _ pattern: String) -> Bool {
        let text = reply.description
        return glob(pattern, text) || glob(pattern + " *", text) || glob(pattern + "-*", text)
            || glob(pattern + "\n*", text)
    }

    /// Whether `text` matches a pattern in which `*` matches any octets. Linear memory, no
    /// recursion.
    static func glob(_ pattern: String, _ text: String) -> Bool {
        let pattern = Array(pattern.utf8)
        let text = Array(text.utf8)
        var (p, t) = (0, 0)
        var star: (p: Int, t: Int)?
        while t < text.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                star = (p, t)
                p += 1
            } else if p < pattern.count, pattern[p] == text[t] {
                (p, t) = (p + 1, t + 1)
            } else if let last = star {
                star = (last.p, last.t + 1)
                (p, t) = (last.p + 1, last.t + 1)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

extension TestCase.Delivery {
    func matchesEnvelope(_ message: SinkMessage) -> Bool {
        guard TestCase.glob(from, message.mailFrom), message.recipients.count == recipients.count
        else { return false }
        var rest = message.recipients
        for pattern in recipients {
            guard let index = rest.firstIndex(where: { TestCase.glob(pattern, $0) }) else {
                return false
            }
            rest.remove(at: index)
        }
        return true
    }

    /// The difference of a message from the expected one; nil if there is none.
    func difference(_ message: SinkMessage) -> String? {
        guard matchesEnvelope(message) else {
            return
                "expected from \(from) to \(recipients), got from \(message.mailFrom) to \(message.recipients)"
        }
        // Line ends must be CRLF, also that of the last line.
        var actual = message.text.components(separatedBy: "\r\n")
        while actual.last?.isEmpty == true { actual.removeLast() }
        return Self.fits(lines[...], actual[...])
            ? nil
            : "expected\n\(lines.joined(separator: "\n"))\n--- got\n\(actual.joined(separator: "\n"))"
    }

    /// Line by line, `*` within a line; a line `...` matches any number of lines.
    private static func fits(_ expected: ArraySlice<String>, _ actual: ArraySlice<String>) -> Bool {
        var (e, a) = (expected.startIndex, actual.startIndex)
        var gap: (e: Int, a: Int)?
        while a < actual.endIndex {
            if e < expected.endIndex, expected[e] == "..." {
                gap = (e, a)
                e += 1
            } else if e < expected.endIndex, TestCase.glob(expected[e], actual[a]) {
                (e, a) = (e + 1, a + 1)
            } else if let last = gap {
                gap = (last.e, last.a + 1)
                (e, a) = (last.e + 1, last.a + 1)
            } else {
                return false
            }
        }
        return expected[e...].allSatisfy { $0 == "..." }
    }
}
