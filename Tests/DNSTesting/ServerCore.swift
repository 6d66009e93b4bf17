// What the test name server and its thread share.

import DNSClient
import Glibc
import MailAuth
import Synchronization

/// Kept alive by the thread, so that the server itself can end it.
final class ServerCore: Sendable {
    struct State: Sendable {
        var nodes: [String: ZoneResolver.Node]
        var quirks: [String: [TestDNSServer.Quirk]] = [:]
        var questions: [ReceivedQuestion] = []
        var released: Set<String> = []
        var isStopping = false
    }

    /// File descriptors; closed with the core.
    struct Sockets: Sendable {
        let udp: Int32
        let tcp: Int32
        /// The ends of a pipe that wakes the thread.
        let wakeup: Int32
        let waker: Int32
    }

    let state: Mutex<State>
    let sockets: Sockets
    private let ttl: UInt32
    private let negativeTTL: UInt32?

    init(nodes: [String: ZoneResolver.Node], sockets: Sockets, ttl: UInt32, negativeTTL: UInt32?) {
        state = Mutex(
            State(
                nodes: Dictionary(
                    nodes.map { (Self.key($0.key), $0.value) }, uniquingKeysWith: { $1 })))
        self.sockets = sockets
        self.ttl = ttl
        self.negativeTTL = negativeTTL
    }

    deinit {
        for socket in [sockets.udp, sockets.tcp, sockets.wakeup, sockets.waker] { close(socket) }
    }

    func wake() {
        var one: UInt8 = 1
        _ = write(sockets.waker, &one, 1)
    }

    static func key(_ name: String) -> String {
        (name.hasSuffix(".") ? String(name.dropLast()) : name).lowercased()
    }

    /// The well-behaved answer to a question.
    func response(to question: ReceivedQuestion) -> DNSResponse? {
        var response = DNSResponse()
        guard let type = question.type else { return response }
        var name = question.name
        let nodes = state.withLock { $0.nodes }
        for _ in 0..<20 {
            guard let node = nodes[name] else {
                response.code = 3
                break
            }
            if let failure = node.failures[type]
                ?? (node.records[type] == nil && node.alias == nil ? node.failure : nil)
            {
                switch failure {
                case .timeout: return nil
                case .servFail: response.code = 2
                case .nxDomain: response.code = 3
                case .noData: break
                }
                break
            }
            if let records = node.records[type] {
                for record in records { response.add(record, type: type, owner: name, ttl: ttl) }
                return response
            }
            guard let alias = node.alias else { break }
            response.add(alias: alias, owner: name, ttl: ttl)
            name = Self.key(alias)
        }
        if let negativeTTL, response.code != 2 { response.addSOA(minimum: negativeTTL) }
        return response
    }
}
