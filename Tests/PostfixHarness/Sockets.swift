// Small helpers for TCP sockets on the loopback interface.

import Foundation

/// A connected or listening TCP socket, closed with the last reference.
final class Socket: @unchecked Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func make() throws -> Socket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else {
            throw HarnessError("socket: \(String(cString: strerror(errno)))")
        }
        return Socket(descriptor)
    }

    /// Listens on 127.0.0.1; port 0 lets the system choose.
    static func listen(port: UInt16 = 0) throws -> Socket {
        let socket = try make()
        var yes: Int32 = 1
        setsockopt(
            socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = address(port)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, Glibc.listen(socket.descriptor, 128) == 0 else {
            throw HarnessError("cannot listen on port \(port): \(String(cString: strerror(errno)))")
        }
        return socket
    }

    /// Connects to 127.0.0.1. Reads and writes fail after `timeout` seconds.
    static func connect(port: UInt16, timeout: Int) throws -> Socket {
        let socket = try make()
        socket.setTimeout(timeout)
        var yes: Int32 = 1
        setsockopt(
            socket.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes,
            socklen_t(MemoryLayout<Int32>.size))
        var address = address(port)
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            throw HarnessError(
                "cannot connect to port \(port): \(String(cString: strerror(errno)))")
        }
        return socket
    }

    func setTimeout(_ seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    var port: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// The IPv4 address of the other side, in numeric form; nil if there is none.
    var peer: String? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(descriptor, $0, &length) == 0
            }
        }
        guard isKnown, address.sin_family == sa_family_t(AF_INET) else { return nil }
        let octets = withUnsafeBytes(of: address.sin_addr.s_addr) { Array($0) }
        return octets.map(String.init).joined(separator: ".")
    }

    func accept() -> Socket? {
        while true {
            let connection = Glibc.accept(descriptor, nil, nil)
            if connection >= 0 { return Socket(connection) }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Sends all octets; false if the other side has closed the connection.
    func send(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = Glibc.send(
                    descriptor, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    /// The received octets; nil at the end, on an error or a timeout.
    func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            return count > 0 ? Array(buffer[..<count]) : nil
        }
    }
}

/// Ports for servers that cannot take a socket from us.
package enum FreePort {
    private static let given = Watched(Set<UInt16>())

    /// A port without a listener now, below the range from which the system gives ports to clients;
    /// never the same twice.
    package static func next() throws -> UInt16 {
        for _ in 0..<1000 {
            let port = UInt16.random(in: 12_000...31_000)
            guard given.with({ $0.insert(port).inserted }) else { continue }
            if (try? Socket.listen(port: port)) != nil { return port }
        }
        throw HarnessError("no free port")
    }

    /// Waits until a program listens on its port; throws if it ends before.
    package static func waitUntilServed(_ port: UInt16, by process: ManagedProcess) throws {
        let end = Date(timeIntervalSinceNow: standardTimeout)
        while (try? Socket.connect(port: port, timeout: 1)) == nil {
            guard process.isRunning, Date() < end else {
                throw HarnessError(
                    "no program listens on port \(port):\n\(process.executable): \(process.output)")
            }
            usleep(20_000)
        }
    }
}

/// Reads CRLF-ended lines from a socket.
struct LineReader {
    private let socket: Socket
    private var buffer = [UInt8]()
    private var start = 0

    init(_ socket: Socket) { self.socket = socket }

    /// The next line without its line end (LF, and CR before it); nil at the end.
    mutating func line() -> [UInt8]? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                defer { start = end + 1 }
                return Array(
                    end > start && buffer[end - 1] == 0x0D
                        ? buffer[start..<end - 1] : buffer[start..<end])
            }
            searched = buffer.count
            guard let more = socket.receive() else { return nil }
            if start > 0 {
                buffer.removeSubrange(..<start)
                searched -= start
                start = 0
            }
            buffer += more
        }
    }

    /// The octets of DATA up to the line with a single dot, dots unstuffed, line ends as received
    /// (CRLF); nil if it is incomplete.
    mutating func message() -> [UInt8]? {
        var message = [UInt8]()
        while true {
            var searched = start
            var end = buffer[searched...].firstIndex(of: 0x0A)
            while end == nil {
                searched = buffer.count
                guard let more = socket.receive() else { return nil }
                if start > 0 {
                    buffer.removeSubrange(..<start)
                    searched -= start
                    start = 0
                }
                buffer += more
                end = buffer[searched...].firstIndex(of: 0x0A)
            }
            guard let end else { return nil }
            var line = buffer[start...end]
            start = end + 1
            if line.first == UInt8(ascii: ".") {
                if line.elementsEqual([0x2E, 0x0D, 0x0A]) { return message }
                line = line.dropFirst()
            }
            message += line
        }
    }
}
