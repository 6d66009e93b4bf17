// Postfix sends mail that stays at a relay domain to a port without a listener (virtual_transport).
// While `postern doctor` probes, it listens there and accepts only the probe's mail. So it sees the
// outgoing mail of Postfix.

import Concurrency
import Foundation
import Glibc

/// A message that Postfix handed over.
package struct CapturedMessage: Sendable, Hashable {
    /// The arguments of MAIL and RCPT as received: address and ESMTP parameters.
    package let mail: String
    package let recipients: [String]
    /// Dots unstuffed, lines ended by CRLF.
    package let data: [UInt8]

    package init(mail: String, recipients: [String], data: [UInt8]) {
        self.mail = mail
        self.recipients = recipients
        self.data = data
    }
}

/// A small SMTP server on 127.0.0.1.
package final class CaptureServer: @unchecked Sendable {
    /// The decision about a recipient.
    package enum Verdict: Sendable { case take, refuse, later }

    /// The reason why the server cannot listen on the port.
    package struct Failure: Error, CustomStringConvertible { package let description: String }

    /// Longest message in octets. The probe's messages are short, and no others are accepted.
    private static let maximumMessage = 1 << 20
    /// Longest command line in octets.
    private static let maximumLine = 4096

    private let listener: Int32
    private let judge: @Sendable (String) -> Verdict
    private let condition = MonotonicCondition()
    // Protected by `condition`.
    private var messages: [CapturedMessage] = []
    private var otherRecipients: Set<String> = []
    private var isStopped = false
    private var open: Set<Int32> = []

    /// - Parameter judge: decides about a recipient, by its address without brackets.
    package init(port: UInt16, judge: @escaping @Sendable (String) -> Verdict) throws {
        self.judge = judge
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: String(cString: strerror(errno))) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, listen(descriptor, 16) == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw Failure(description: reason)
        }
        listener = descriptor
        SystemThread.detach { [self] in accept() }
    }

    /// Stops listening and closes every connection.
    package func stop() {
        condition.lock()
        guard !isStopped else { return condition.unlock() }
        isStopped = true
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        condition.unlock()
    }

    /// Waits until `find` returns a result for the messages received so far; nil after `seconds`.
    package func wait<T>(seconds: Double, for find: ([CapturedMessage]) -> T?) -> T? {
        let end = ContinuousClock.now + .seconds(seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let found = find(messages) { return found }
            guard condition.wait(until: end) else { return find(messages) }
        }
    }

    /// The number of requested recipients that are not the probe's.
    package var otherRecipientCount: Int {
        condition.lock()
        defer { condition.unlock() }
        return otherRecipients.count
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var timeout = timeval(tv_sec: 60, tv_usec: 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                setsockopt(
                    descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
            }
            condition.lock()
            let isOver = isStopped
            if !isOver { open.insert(descriptor) }
            condition.unlock()
            guard !isOver else {
                close(descriptor)
                break
            }
            SystemThread.detach { [self] in
                serve(descriptor)
                condition.lock()
                open.remove(descriptor)
                close(descriptor)
                condition.unlock()
            }
        }
        close(listener)
    }

    private func serve(_ descriptor: Int32) {
        var reader = Lines(descriptor)
        func say(_ text: String) { _ = reader.write(Array("\(text)\r\n".utf8)) }
        say("220 postern-doctor ESMTP")
        var mail = ""
        var recipients: [String] = []
        while let octets = reader.line(limit: Self.maximumLine) {
            let line = String(decoding: octets, as: UTF8.self)
            let upper = line.uppercased()
            if upper.hasPrefix("EHLO ") || upper.hasPrefix("HELO ") {
                // DSN is offered to test whether Postfix would send the original recipient to the
                // next server.
                say(
                    upper.hasPrefix("E")
                        ? "250-postern-doctor\r\n250-8BITMIME\r\n250-DSN\r\n250 SIZE 0"
                        : "250 postern-doctor")
            } else if upper.hasPrefix("MAIL FROM:") {
                (mail, recipients) = (String(line.dropFirst(10)), [])
                say("250 2.1.0 Ok")
            } else if upper.hasPrefix("RCPT TO:") {
                let argument = String(line.dropFirst(8))
                switch judge(Self.address(argument)) {
                case .take:
                    recipients.append(argument)
                    say("250 2.1.5 Ok")
                case .refuse:
                    say("550 5.1.1 <\(Self.address(argument))>: there is no such mailbox here")
                case .later:
                    condition.lock()
                    otherRecipients.insert(argument)
                    condition.unlock()
                    say("451 4.3.0 mail waits here")
                }
            } else if upper == "DATA" {
                guard !recipients.isEmpty else {
                    say("503 5.5.1 no recipients")
                    continue
                }
                say("354 go on")
                guard let data = message(&reader) else { return }
                // Answers first. A caller that waits for the message may stop the server, and
                // Postfix would then keep the message.
                say("250 2.0.0 Ok")
                condition.lock()
                messages.append(CapturedMessage(mail: mail, recipients: recipients, data: data))
                condition.broadcast()
                condition.unlock()
            } else if upper == "QUIT" {
                return say("221 2.0.0 Bye")
            } else {
                say(upper == "RSET" || upper == "NOOP" ? "250 2.0.0 Ok" : "502 5.5.2 what?")
            }
        }
    }

    private func message(_ reader: inout Lines) -> [UInt8]? {
        var data: [UInt8] = []
        while let line = reader.line(limit: Self.maximumMessage) {
            if line == [UInt8(ascii: ".")] { return data }
            data += (line.first == UInt8(ascii: ".") ? line.dropFirst() : line[...]) + [0x0D, 0x0A]
            guard data.count <= Self.maximumMessage else { return nil }
        }
        return nil
    }

    /// The address of `<a@b> NOTIFY=…`.
    package static func address(_ argument: String) -> String {
        let text = argument.drop { $0 == " " }
        guard text.hasPrefix("<"), let end = text.firstIndex(of: ">") else {
            return String(text.prefix { $0 != " " })
        }
        return String(text[text.index(after: text.startIndex)..<end])
    }

    /// Reads lines from a socket.
    private struct Lines {
        private let descriptor: Int32
        private var buffer: [UInt8] = []
        private var start = 0

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        func write(_ octets: [UInt8]) -> Bool {
            var sent = 0
            while sent < octets.count {
                let count = octets[sent...].withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }

        /// Without its line end; nil at the end, and for a line of more than `limit` octets.
        mutating func line(limit: Int) -> [UInt8]? {
            var looked = start
            while true {
                if let end = buffer[looked...].firstIndex(of: 0x0A) {
                    var line = Array(buffer[start..<end])
                    if line.last == 0x0D { line.removeLast() }
                    start = end + 1
                    if start > 65_536 {
                        buffer.removeFirst(start)
                        start = 0
                    }
                    return line
                }
                looked = buffer.count
                guard buffer.count - start <= limit else { return nil }
                var chunk = [UInt8](repeating: 0, count: 16_384)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                guard count > 0 else { return nil }
                buffer += chunk[..<count]
            }
        }
    }
}
