// Two threads, many connections: one sends the due requests, the other reads the answers and sends
// requests that waited for a connection.

import BenchReport
import Foundation
import Synchronization

struct SocketError: Error, CustomStringConvertible {
    let description: String

    init(_ what: String) { description = "\(what): \(String(cString: strerror(errno)))" }
}

final class OpenLoad: Sendable {
    private struct State {
        var sockets: [Int32]
        var request: RequestText
        /// Connections without a request.
        var idle: [Int]
        /// By connection: the time at which the current request was due.
        var due: [UInt64]
        /// The times at which requests were due without a free connection; those before `first` are
        /// already sent.
        var waiting: [UInt64] = []
        var first = 0
        var sent = 0
        var isOver = false
        var statuses: [Int: Int] = [:]
        var latencies = Latencies()
        var last: UInt64 = 0
        var failure: SocketError?

        var isQuiet: Bool { first == waiting.count && idle.count == due.count }
    }

    private let (host, port): (String, UInt16)
    private let state: Mutex<State>
    /// Whether a connection sends the next request after each answer.
    private let isClosedLoop: Bool

    init(
        host: String, port: UInt16, request: RequestText, connections: Int, isClosedLoop: Bool
    ) throws {
        (self.host, self.port) = (host, port)
        let numbers = 0..<connections
        let sockets = try numbers.map { _ in try Self.connect(host, port) }
        state = Mutex(
            State(
                sockets: sockets, request: request, idle: Array(numbers),
                due: numbers.map { _ in 0 }))
        self.isClosedLoop = isClosedLoop
    }

    private static func connect(_ host: String, _ port: UInt16) throws -> Int32 {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard file >= 0 else { throw SocketError("socket") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw SocketError(host) }
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw SocketError("connect") }
        var one: Int32 = 1
        setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        return file
    }

    /// Nanoseconds of a clock that only goes forward.
    private static func now() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// Sends for this number of seconds, and waits at most ten more for open requests.
    func run(seconds: Double, arrivals: Arrivals?) throws -> LoadResult {
        Thread.detachNewThread { [self] in receive() }
        let start = Self.now()
        let end = start + UInt64(seconds * 1e9)
        if var arrivals {
            var next = start + arrivals.gap()
            while next < end {
                let time = Self.now()
                if next > time { Thread.sleep(forTimeInterval: Double(next - time) / 1e9) }
                send(due: next)
                next += arrivals.gap()
            }
        } else {
            for _ in 0..<state.withLock({ $0.sockets.count }) { send(due: Self.now()) }
            Thread.sleep(forTimeInterval: seconds)
        }
        state.withLock { $0.isOver = true }
        while Self.now() < end + 10_000_000_000,
            state.withLock({ !$0.isQuiet && $0.failure == nil })
        { usleep(1_000) }
        return try state.withLock { state in
            if let failure = state.failure { throw failure }
            let answered = state.statuses.values.reduce(0, +)
            return LoadResult(
                requestsPerSecond: Double(answered)
                    / (Double(max(state.last, start + 1) - start) / 1e9), answered: answered,
                refused: state.statuses[429] ?? 0,
                failures: state.sent + state.waiting.count - state.first
                    - (state.statuses[200] ?? 0)
                    - (state.statuses[429] ?? 0), latencies: state.latencies)
        }
    }

    /// Sends a due request: now, or when a connection is free.
    private func send(due: UInt64) {
        let next: (socket: Int32, octets: [UInt8])? = state.withLock { state in
            guard let index = state.idle.popLast() else {
                state.waiting.append(due)
                return nil
            }
            state.due[index] = due
            state.sent += 1
            return (state.sockets[index], state.request.next())
        }
        if let next { write(next.octets, to: next.socket) }
    }

    private func write(_ octets: [UInt8], to socket: Int32) {
        // Requests are small, so they fit into the socket's buffer. `reopen` sends those again that
        // a closed connection did not accept.
        if Glibc.send(socket, octets, octets.count, 0) != octets.count, errno != EPIPE,
            errno != ECONNRESET
        {
            let failure = SocketError("send")
            state.withLock { $0.failure = failure }
        }
    }

    private func receive() {
        var polled = state.withLock { $0.sockets }.map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        var received = polled.map { _ in [UInt8]() }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while poll(&polled, nfds_t(polled.count), 100) >= 0 {
            for index in polled.indices where polled[index].revents != 0 {
                let count = recv(polled[index].fd, &buffer, buffer.count, 0)
                guard count > 0 else {
                    guard received[index].isEmpty, let socket = reopen(index) else {
                        let failure = SocketError(
                            "the server closed a connection in an answer, or takes no more")
                        return state.withLock { $0.failure = failure }
                    }
                    polled[index].fd = socket
                    continue
                }
                received[index] += buffer[..<count]
                guard let status = Self.status(received[index]) else { continue }
                received[index] = []
                if let octets = answered(index, status) { write(octets, to: polled[index].fd) }
            }
        }
    }

    /// A new connection that replaces one that the server closed, as it does with idle ones. A
    /// request that the server had not begun to answer is sent again.
    private func reopen(_ index: Int) -> Int32? {
        guard let socket = try? Self.connect(host, port) else { return nil }
        let octets: [UInt8]? = state.withLock { state in
            close(state.sockets[index])
            state.sockets[index] = socket
            return state.idle.contains(index) ? nil : state.request.next()
        }
        if let octets { write(octets, to: socket) }
        return socket
    }

    /// Records an answer. Returns the request for which the connection is now free.
    private func answered(_ index: Int, _ status: Int) -> [UInt8]? {
        let time = Self.now()
        return state.withLock { state in
            state.last = time
            state.latencies.add(microseconds: (time - state.due[index]) / 1000)
            state.statuses[status, default: 0] += 1
            if state.first < state.waiting.count {
                state.due[index] = state.waiting[state.first]
                state.first += 1
            } else if isClosedLoop, !state.isOver {
                state.due[index] = time
            } else {
                state.idle.append(index)
                return nil
            }
            state.sent += 1
            return state.request.next()
        }
    }

    /// The status of a complete response; nil if it is incomplete.
    private static func status(_ octets: [UInt8]) -> Int? {
        guard let end = octets.firstRange(of: Self.blank)?.upperBound else { return nil }
        let lines = octets[..<end].split(separator: 0x0A)
        guard
            let length = lines.first(where: {
                $0.starts(with: Self.length) || $0.starts(with: Self.capitalLength)
            }),
            octets.count >= end + number(length), let first = lines.first
        else { return nil }
        return number(first.dropFirst(9).prefix(3))
    }

    private static let blank = Array("\r\n\r\n".utf8)
    private static let length = Array("content-length:".utf8)
    private static let capitalLength = Array("Content-Length:".utf8)

    /// The digits of a line as a number.
    private static func number(_ octets: some Sequence<UInt8>) -> Int {
        octets.reduce(0) { (0x30...0x39).contains($1) ? $0 * 10 + Int($1 - 0x30) : $0 }
    }
}
