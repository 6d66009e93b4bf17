// The thread of the test name server: one poll loop over UDP, TCP and what is due.

import DNSClient
import Glibc
import MailAuth

/// Owns everything that the loop changes. It keeps the core alive, not the server,
/// whose end it waits for.
final class ServerThread {
    /// Where an answer goes.
    private enum Peer {
        case udp(sockaddr_in)
        case tcp(Int32)
    }

    private struct Waiting {
        let bytes: [UInt8]
        let peer: Peer
        /// Milliseconds when it is due; nil until the name is released.
        let due: Int64?
        let name: String
    }

    private let server: ServerCore
    private var connections: [Int32: [UInt8]] = [:]
    private var waiting: [Waiting] = []

    init(_ server: ServerCore) { self.server = server }

    func run() {
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, nil)
        let sockets = server.sockets
        while !server.state.withLock({ $0.isStopping }) {
            var descriptors = [sockets.wakeup, sockets.udp, sockets.tcp].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            descriptors += connections.keys.map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let due = waiting.compactMap(\.due).min()
            let timeout =
                due.map { Int32(clamping: max(0, $0 - MonotonicClock.milliseconds())) } ?? -1
            poll(&descriptors, nfds_t(descriptors.count), timeout)
            for descriptor in descriptors where descriptor.revents != 0 {
                switch descriptor.fd {
                case sockets.wakeup:
                    var octets: UInt64 = 0
                    _ = read(sockets.wakeup, &octets, 8)
                case sockets.udp: receiveUDP()
                case sockets.tcp: acceptTCP()
                default: receiveTCP(descriptor.fd)
                }
            }
            sendWhatIsDue()
        }
        for connection in connections.keys { close(connection) }
    }

    private func receiveUDP() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(server.sockets.udp, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count > 0 else { return }
            if let question = ReceivedQuestion(Array(buffer[..<count]), transport: .udp) {
                handle(question, .udp(address))
            }
        }
    }

    private func acceptTCP() {
        let connection = accept(server.sockets.tcp, nil, nil)
        guard connection >= 0 else { return }
        _ = fcntl(connection, F_SETFL, O_NONBLOCK)
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        connections[connection] = []
    }

    private func receiveTCP(_ connection: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(connection, &buffer, buffer.count, 0)
        guard count > 0, var received = connections[connection] else { return end(connection) }
        received += buffer[..<count]
        while received.count >= 2 {
            let length = Int(received[0]) << 8 | Int(received[1])
            guard received.count >= length + 2 else { break }
            let message = Array(received[2..<(length + 2)])
            received.removeFirst(length + 2)
            if let question = ReceivedQuestion(message, transport: .tcp) {
                handle(question, .tcp(connection))
            }
        }
        if connections[connection] != nil { connections[connection] = received }
    }

    private func end(_ connection: Int32) {
        connections[connection] = nil
        close(connection)
    }

    private func handle(_ question: ReceivedQuestion, _ peer: Peer) {
        let quirk = server.state.withLock { state -> TestDNSServer.Quirk? in
            state.questions.append(question)
            guard var quirks = state.quirks[question.name], let first = quirks.first else {
                return nil
            }
            if quirks.count > 1 { quirks.removeFirst() }
            state.quirks[question.name] = quirks
            return first
        }
        guard var response = server.response(to: question) else { return }
        var due: Int64? = MonotonicClock.milliseconds()
        var bytes: [UInt8]?
        switch quirk {
        case nil: break
        case .silence: return
        case .responseCode(let code):
            response = DNSResponse()
            response.code = code
        case .refusesOPT:
            guard question.hasOPT else { break }
            response = DNSResponse()
            response.code = 1
        case .truncatesUDP: response.isTruncated = question.transport == .udp
        case .truncatesUDPAndClosesTCP:
            if case .tcp(let connection) = peer { return end(connection) }
            response.isTruncated = true
        case .raw(let octets): bytes = octets
        case .corruptAnswer(let octets):
            var message = DNSResponse().bytes(to: question)
            message[7] = 1
            bytes = message + octets
        case .wrongID:
            var message = response.bytes(to: question)
            message[0] ^= 0xFF
            bytes = message
        case .wrongQuestion:
            var message = response.bytes(to: question)
            // Another first letter of the name.
            message[DNSMessage.headerLength + 1] ^= 0x01
            bytes = message
        case .delay(let milliseconds): due = MonotonicClock.milliseconds() + Int64(milliseconds)
        case .held: due = nil
        }
        var message = bytes ?? response.bytes(to: question)
        if bytes == nil, question.transport == .udp, message.count > question.udpPayload {
            response.isTruncated = true
            message = response.bytes(to: question)
        }
        waiting.append(Waiting(bytes: message, peer: peer, due: due, name: question.name))
    }

    private func sendWhatIsDue() {
        let now = MonotonicClock.milliseconds()
        let released = server.state.withLock { $0.released }
        var left: [Waiting] = []
        for answer in waiting {
            guard answer.due.map({ $0 <= now }) ?? released.contains(answer.name) else {
                left.append(answer)
                continue
            }
            switch answer.peer {
            case .udp(var address):
                withUnsafeMutablePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        _ = sendto(
                            server.sockets.udp, answer.bytes, answer.bytes.count, 0, $0,
                            socklen_t(MemoryLayout<sockaddr_in>.size)
                        )
                    }
                }
            case .tcp(let connection):
                guard connections[connection] != nil else { continue }
                let framed =
                    [UInt8(answer.bytes.count >> 8), UInt8(answer.bytes.count & 0xFF)]
                    + answer.bytes
                // A test's answer fits the socket's buffer.
                _ = send(connection, framed, framed.count, Int32(MSG_NOSIGNAL))
            }
        }
        waiting = left
    }
}
