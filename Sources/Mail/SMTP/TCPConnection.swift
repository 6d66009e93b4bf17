// A TCP connection with timeouts: blocking calls on the caller's thread, never on an event loop.

import Foundation
import NIOSSL

/// One connection; closed when its last reference is released.
final class TCPConnection {
    let descriptor: Int32
    private var tls: TLSLayer?
    /// Decrypted octets that were not yet returned, such as those that came with the handshake.
    private var decrypted: [UInt8] = []

    /// Connects to the first address of a host that answers.
    /// - Parameter timeout: seconds for all attempts together.
    /// - Throws: `SubmissionFailure` (temporary).
    init(host: String, port: UInt16, timeout: Double) throws(SubmissionFailure) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, "\(port)", &hints, &found)
        guard status == 0, let list = found else {
            throw .temporary(
                .connection,
                "the name of the server cannot be resolved (\(String(cString: gai_strerror(status))))"
            )
        }
        defer { freeaddrinfo(list) }
        let deadline = Self.now() + timeout
        var detail = "no address"
        var next: UnsafeMutablePointer<addrinfo>? = list
        while let address = next {
            next = address.pointee.ai_next
            let socket = Foundation.socket(
                address.pointee.ai_family,
                address.pointee.ai_socktype | Int32(SOCK_NONBLOCK.rawValue)
                    | Int32(SOCK_CLOEXEC.rawValue),
                address.pointee.ai_protocol)
            guard socket >= 0 else { continue }
            if Foundation.connect(socket, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0
            {
                descriptor = socket
                return
            }
            var failure = errno
            if failure == EINPROGRESS {
                failure = ETIMEDOUT
                if Self.wait(socket, for: Int16(POLLOUT), until: deadline) {
                    var length = socklen_t(MemoryLayout<Int32>.size)
                    failure = 0
                    getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &length)
                }
            }
            if failure == 0 {
                descriptor = socket
                return
            }
            detail = String(cString: strerror(failure))
            close(socket)
        }
        throw .temporary(.connection, detail)
    }

    deinit { close(descriptor) }

    /// Sends all octets before the deadline (seconds of `now`); false if that fails.
    func send(_ octets: [UInt8], until deadline: Double) -> Bool {
        guard let tls else { return sendRaw(octets, until: deadline) }
        do {
            try tls.write(octets)
            return sendRaw(try tls.outgoing(), until: deadline)
        } catch {
            return false
        }
    }

    private func sendRaw(_ octets: [UInt8], until deadline: Double) -> Bool {
        var sent = 0
        while sent < octets.count {
            let count = octets[sent...].withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if count < 0, errno == EAGAIN || errno == EINTR {
                guard Self.wait(descriptor, for: Int16(POLLOUT), until: deadline) else {
                    return false
                }
            } else {
                return false
            }
        }
        return true
    }

    enum Received {
        case octets([UInt8])
        case end
        case timeout
    }

    /// Returns the next octets that come before the deadline.
    func receive(until deadline: Double) -> Received {
        guard let tls else { return receiveRaw(until: deadline) }
        while decrypted.isEmpty {
            let received = receiveRaw(until: deadline)
            guard case .octets(let octets) = received else { return received }
            do {
                decrypted = try tls.incoming(octets)
                guard sendRaw(try tls.outgoing(), until: deadline) else { return .end }
            } catch {
                return .end
            }
        }
        defer { decrypted = [] }
        return .octets(decrypted)
    }

    private func receiveRaw(until deadline: Double) -> Received {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { return .octets(Array(buffer[..<count])) }
            guard count < 0, errno == EAGAIN || errno == EINTR else { return .end }
            guard Self.wait(descriptor, for: Int16(POLLIN), until: deadline) else {
                return .timeout
            }
        }
    }

    /// Encrypts from here on.
    /// - Throws: the reason why the server is not trusted, does not support TLS or does not answer.
    ///   Names only the kind of problem.
    func startTLS(
        _ context: NIOSSLContext, host: String, port: UInt16, until deadline: Double
    ) throws(SubmissionFailure) {
        do {
            let layer = try TLSLayer(context: context, host: host, port: port)
            while !layer.isEstablished {
                guard sendRaw(try layer.outgoing(), until: deadline) else {
                    throw SubmissionFailure.temporary(.tls, "the connection was lost")
                }
                if layer.isEstablished { break }
                switch receiveRaw(until: deadline) {
                case .octets(let octets): decrypted += try layer.incoming(octets)
                case .end:
                    throw SubmissionFailure.temporary(.tls, "the server closed the connection")
                case .timeout: throw SubmissionFailure.temporary(.tls, "no answer in time")
                }
            }
            guard sendRaw(try layer.outgoing(), until: deadline) else {
                throw SubmissionFailure.temporary(.tls, "the connection was lost")
            }
            tls = layer
        } catch let failure as SubmissionFailure {
            throw failure
        } catch {
            throw .temporary(.tls, "no TLS: the server has no trusted certificate for \(host)")
        }
    }

    /// Seconds on a clock that never goes backwards.
    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func wait(_ descriptor: Int32, for events: Int16, until deadline: Double) -> Bool
    {
        while true {
            let left = deadline - now()
            guard left > 0 else { return false }
            var poll = pollfd(fd: descriptor, events: events, revents: 0)
            let count = Foundation.poll(&poll, 1, Int32(min(left, 3600) * 1000) + 1)
            if count > 0 { return true }
            guard count == 0 || errno == EINTR else { return false }
        }
    }
}
