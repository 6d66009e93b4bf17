// A small real name server on loopback, UDP and TCP, that can be told to misbehave.

import DNSClient
import Glibc
import MailAuth
import Synchronization

/// Answers from zones; a name that is not there does not exist. Stops, and frees its port, with
/// `stop` or its last reference.
package final class TestDNSServer: Sendable {
    /// How a name misbehaves, whatever its records are.
    package enum Quirk: Sendable, Hashable {
        case silence
        case responseCode(UInt8)
        /// FORMERR to every question that has an OPT record.
        case refusesOPT
        /// UDP answers have TC set and no records; TCP has the records.
        case truncatesUDP
        /// As `truncatesUDP`, and TCP connections are closed without an answer.
        case truncatesUDPAndClosesTCP
        /// These octets instead of an answer.
        case raw([UInt8])
        /// The right header and question, then these octets as the answer
        /// section, with one record announced.
        case corruptAnswer([UInt8])
        /// The right answer under another id.
        case wrongID
        /// An answer to a question about another name.
        case wrongQuestion
        /// The answer after so many milliseconds.
        case delay(Int32)
        /// The answer when `release` is called.
        case held
    }

    /// Why the server could not be started.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private let core: ServerCore
    private let thread = Mutex<pthread_t?>(nil)
    package let port: UInt16

    /// 127.0.0.1 and the port.
    package let address: DNSServerAddress

    /// Starts a server with the zones of a JSON file (`ZoneFile`).
    package convenience init(zone: ZoneFile, port: UInt16 = 0) throws(Failure) {
        try self.init(nodes: zone.nodes, port: port)
    }

    /// Starts a server on 127.0.0.1.
    ///
    /// - Parameters:
    ///   - nodes: the zones by name.
    ///   - port: 0 takes a free one, the same for UDP and TCP.
    package init(
        nodes: [String: ZoneResolver.Node] = [:], port: UInt16 = 0, ttl: UInt32 = 300,
        negativeTTL: UInt32? = 60
    ) throws(Failure) {
        guard let loopback = IPAddress("127.0.0.1") else {
            throw Failure(description: "no loopback")
        }
        let (sockets, port) = try Self.open(port)
        self.port = port
        address = DNSServerAddress(address: loopback, port: port)
        core = ServerCore(nodes: nodes, sockets: sockets, ttl: ttl, negativeTTL: negativeTTL)
        let context = Unmanaged.passRetained(ServerThread(core)).toOpaque()
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<ServerThread>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context)
        guard status == 0 else {
            Unmanaged<ServerThread>.fromOpaque(context).release()
            throw Failure(description: "no thread")
        }
        thread.withLock { $0 = created }
    }

    deinit { stop() }

    /// Ends the server's thread and closes its sockets; a second call does nothing.
    package func stop() {
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let running else { return }
        core.state.withLock { $0.isStopping = true }
        core.wake()
        pthread_join(running, nil)
    }

    /// Puts or replaces what is at a name.
    package func set(_ name: String, _ node: ZoneResolver.Node?) {
        core.state.withLock { $0.nodes[ServerCore.key(name)] = node }
    }

    /// Lets a name misbehave: the first question gets the first quirk and so on; the last one
    /// stays. None makes it well-behaved.
    package func program(_ name: String, _ quirks: Quirk...) {
        core.state.withLock { $0.quirks[ServerCore.key(name)] = quirks }
    }

    /// Answers what is held for a name, and what comes later.
    package func release(_ name: String) {
        core.state.withLock { _ = $0.released.insert(ServerCore.key(name)) }
        core.wake()
    }

    /// The questions received, in order.
    package var questions: [ReceivedQuestion] { core.state.withLock { $0.questions } }

    /// How many questions about a name were received.
    package func count(_ name: String) -> Int {
        questions.count { $0.name == ServerCore.key(name) }
    }

    /// Binds UDP and TCP to one port; a free one may be taken for TCP, so several are tried.
    private static func open(_ port: UInt16) throws(Failure) -> (ServerCore.Sockets, UInt16) {
        var pipes: [Int32] = [-1, -1]
        guard pipe(&pipes) == 0 else { throw Failure(description: "no pipe") }
        for pipe in pipes { _ = fcntl(pipe, F_SETFD, FD_CLOEXEC) }
        for _ in 0..<50 {
            let udp = socket(
                AF_INET,
                Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
            let tcp = socket(
                AF_INET,
                Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
            var yes: Int32 = 1
            setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            if let bound = bind(udp, to: port), bind(tcp, to: bound) != nil, listen(tcp, 64) == 0 {
                return (
                    ServerCore.Sockets(udp: udp, tcp: tcp, wakeup: pipes[0], waker: pipes[1]), bound
                )
            }
            close(udp)
            close(tcp)
        }
        for pipe in pipes { close(pipe) }
        throw Failure(description: "no port for UDP and TCP")
    }

    private static func bind(_ socket: Int32, to port: UInt16) -> UInt16? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                Glibc.bind(socket, generic, length) == 0
                    && getsockname(socket, generic, &length) == 0
            }
        } ? UInt16(bigEndian: address.sin_port) : nil
    }
}
