// A source of SMTP mail with functions that smtp-source lacks: a different sender for every
// message, and sessions that all end at once.

import BenchReport
import Foundation
import PostfixHarness

/// Sends messages over many connections, one message for each connection as smtp-source does.
struct Source {
    let port: UInt16
    let sessions: Int
    let messages: Int
    /// The recipients of every message, in one transaction.
    let recipients: [String]
    /// The reverse-path of the nth message.
    let sender: @Sendable (Int) -> String
    /// The message, lines ended by CRLF, dots stuffed, without the final dot.
    let message: [UInt8]
    /// Whether every session waits before its final dot until all are there. All messages, one for
    /// each session, then end at once.
    var together = false
    /// The beginnings of answers to a message that count as deferrals, and not as failures.
    var deferrals: [String] = []
    /// Messages a second, at random moments, regardless of earlier ones. If nil, each session sends
    /// again when it has ended.
    var rate: Double?

    /// The result.
    struct Outcome {
        /// How many messages were deferred.
        let deferred: Int
        /// From the end of the data to the answer.
        let latencies: Latencies
        /// Seconds for everything.
        let seconds: Double
    }

    /// Sends everything; throws with the first wrong answer.
    @discardableResult
    func run() throws -> Outcome {
        let deferred = Watched(0)
        let latencies = Watched(Latencies())
        let start = ContinuousClock.now
        // The time at which each is due.
        var due: [Duration] = []
        if let rate {
            var (time, random) = (0.0, SystemRandomNumberGenerator())
            for _ in 0..<messages {
                time += -log(1 - Double.random(in: 0..<1, using: &random)) / rate
                due.append(.seconds(time))
            }
        }
        let schedule = due
        let next = Watched(0)
        let failure = Watched<String?>(nil)
        let waiting = Watched(0)
        let running = Watched(sessions)
        for _ in 0..<sessions {
            let thread = Thread {
                defer { running.with { $0 -= 1 } }
                while true {
                    let number = next.with { number in
                        defer { number += 1 }
                        return number
                    }
                    guard number < messages, failure.with({ $0 == nil }) else { return }
                    if schedule.indices.contains(number) {
                        let pause = schedule[number] - (ContinuousClock.now - start)
                        if pause > .zero { usleep(UInt32(pause / .microseconds(1))) }
                    }
                    let problem = send(number, latencies) {
                        guard together else { return }
                        let round = number / sessions + 1
                        waiting.with { $0 += 1 }
                        _ = waiting.wait(seconds: 600) {
                            $0 >= min(round * sessions, messages) ? true : nil
                        }
                    }
                    if let problem, deferrals.contains(where: problem.hasPrefix) {
                        deferred.with { $0 += 1 }
                    } else if let problem {
                        failure.with { $0 = $0 ?? problem }
                        // No session needs to wait for one that does not come.
                        waiting.with { $0 += messages }
                    }
                }
            }
            thread.stackSize = 1 << 18
            thread.start()
        }
        guard running.wait(seconds: 3600, for: { $0 == 0 ? true : nil }) != nil else {
            throw HarnessError("the source hangs")
        }
        if let failure = failure.with({ $0 }) { throw HarnessError("the source got \(failure)") }
        return Outcome(
            deferred: deferred.with { $0 }, latencies: latencies.with { $0 },
            seconds: (ContinuousClock.now - start) / .seconds(1)
        )
    }

    /// The failure; nil if there is none.
    private func send(
        _ number: Int, _ latencies: Watched<Latencies>, beforeEnd: () -> Void
    ) -> String? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return "no socket" }
        defer { close(descriptor) }
        // Small commands are sent at once, as smtp-source does.
        var one: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { return "no connection" }
        guard let greeting = Self.reply(descriptor), greeting.hasPrefix("220") else {
            return "no greeting"
        }
        let envelope =
            [("HELO mail.app.example", "250"), ("MAIL FROM:<\(sender(number))>", "250")]
            + recipients.map { ("RCPT TO:<\($0)>", "250") }
        for (command, code) in envelope + [("DATA", "354")] {
            guard Self.send(descriptor, Array((command + "\r\n").utf8)),
                let reply = Self.reply(descriptor), reply.hasPrefix(code)
            else {
                return "another answer than \(code) to \(command.prefix(4))"
            }
        }
        guard Self.send(descriptor, message) else { return "a closed connection" }
        beforeEnd()
        let end = ContinuousClock.now
        guard Self.send(descriptor, Array(".\r\n".utf8)), let reply = Self.reply(descriptor) else {
            return "no answer to a message"
        }
        let took = ContinuousClock.now - end
        latencies.with { $0.add(took) }
        guard reply.hasPrefix("250") else {
            return reply.prefix(60).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        _ = Self.send(descriptor, Array("QUIT\r\n".utf8)) && Self.reply(descriptor) != nil
        return nil
    }

    private static func send(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// A complete reply. Postfix never sends more than the reply to our command.
    private static func reply(_ descriptor: Int32) -> String? {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 2048)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            text += buffer[..<count]
            guard text.last == 0x0A else { continue }
            let last = text.dropLast().lastIndex(of: 0x0A).map { text[($0 + 1)...] } ?? text[...]
            if last.count > 3, last[last.startIndex + 3] != UInt8(ascii: "-") {
                return String(decoding: text, as: UTF8.self)
            }
        }
    }
}
