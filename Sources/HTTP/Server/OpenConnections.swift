// All open connections: their number by network, and the choice of silent ones to close when room
// is needed.

import Logging
import MailAuth
import NIOCore
import Synchronization

/// Counts open connections, so that neither one network nor silent clients use all of them.
///
/// When the limit is reached, one connection closes. The first choice is the one that has kept a
/// request waiting longest: TLS, a header section or a body that does not end, or no data at all.
/// The next choice is the one without a request for longest, then the one that has been receiving
/// its response for longest. Connections of reverse proxies and of this machine count for no
/// network, since they belong to many clients, whom the proxy counts. They close only for each
/// other, and some places are reserved for them.
final class OpenConnections: Sendable {
    /// The state of a connection.
    enum Phase: Sendable {
        /// The first octet of a request is awaited, or a request has not arrived completely.
        case arriving
        /// A request is being answered.
        case working
        /// The response is ready, and the client receives it.
        case fetching
        /// Between requests.
        case idle
    }

    /// How long a request may take to arrive before its connection closes first. A connection with
    /// a newer request closes only if none is idle. A normal request fits into a few packets:
    /// handshake and header section take some round trips, of 0.3 s at worst.
    fileprivate static let timeout = TimeAmount.seconds(1)

    /// One place in this many is reserved for proxies and this machine: a
    /// health check must get through.
    private static let reserve = 10

    fileprivate struct Connection {
        let networks: [ClientNetwork]
        let isProxy: Bool
        var phase: Phase
        var since: NIODeadline
        let end: @Sendable () -> Void
    }

    /// Connections that entered a phase, oldest first. Entries of connections that left the phase
    /// since are skipped.
    fileprivate struct Queue {
        var items: [(id: UInt64, since: NIODeadline)] = []
        var first = 0
    }

    fileprivate struct QueueKey: Hashable {
        let isProxy: Bool
        let phase: Phase
    }

    fileprivate struct State {
        var connections: [UInt64: Connection] = [:]
        var lastID: UInt64 = 0
        var queues: [QueueKey: Queue] = [:]
        /// Connections by network.
        var open: [String: Int] = [:]
        var clients = 0
        var saidAt: [String: NIODeadline] = [:]
    }

    private let limit: Int
    /// The most connections of all clients together.
    private let clientLimit: Int
    private let perClient: Int
    private let proxies: TrustedProxies
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: the most connections in total. One place stays free, so that a new connection is
    ///     accepted.
    ///   - perClient: the most connections of one client; wider networks may have
    ///     more (`ClientNetwork`).
    init(limit: Int, perClient: Int, proxies: TrustedProxies, logger: Logger) {
        self.limit = limit
        clientLimit = limit - limit / Self.reserve
        self.perClient = perClient
        self.proxies = proxies
        self.logger = logger
    }

    /// Counts a connection, and returns its id for `enter` and `close`. Nil if the connection must
    /// be closed at once: one of its networks is at its limit, or all clients together are at
    /// theirs and all connections are working.
    /// - Parameter end: closes the connection; called on any thread, once at most.
    func open(
        _ peer: SocketAddress?, now: NIODeadline = .now(), end: @escaping @Sendable () -> Void
    ) -> UInt64? {
        let address = peer?.ipAddress.flatMap { IPAddress($0) }
        let isProxy = address.map(proxies.contains) ?? false
        let networks = isProxy ? [] : ClientNetwork.networksOfConnections(of: address)
        let (id, full, ended) = state.withLock { state -> (UInt64?, ClientNetwork?, [Connection]) in
            if let full = networks.first(where: {
                state.open[$0.name, default: 0] >= perClient * $0.share
            }) {
                return (nil, full, [])
            }
            var ended: [Connection] = []
            while !isProxy, state.clients >= clientLimit,
                let one = state.end(proxiesToo: false, now)
            { ended.append(one) }
            guard isProxy || state.clients < clientLimit else { return (nil, nil, ended) }
            while state.connections.count >= limit - 1,
                let one = state.end(proxiesToo: isProxy, now)
            { ended.append(one) }
            state.lastID += 1
            let connection = Connection(
                networks: networks, isProxy: isProxy, phase: .working, since: now, end: end)
            state.connections[state.lastID] = connection
            if !isProxy { state.clients += 1 }
            for network in networks { state.open[network.name, default: 0] += 1 }
            state.enter(.arriving, state.lastID, now)
            return (state.lastID, nil, ended)
        }
        tell(full: full, isRefused: id == nil, ended: ended, now)
        for one in ended { one.end() }
        return id
    }

    /// Records the state of a connection. If room is needed and this connection is idle now, the
    /// connection that was silent longest closes.
    func enter(_ phase: Phase, _ id: UInt64, now: NIODeadline = .now()) {
        let ended = state.withLock { state -> [Connection] in
            guard let connection = state.connections[id], connection.phase != phase else {
                return []
            }
            state.enter(phase, id, now)
            var ended: [Connection] = []
            while phase == .idle, state.connections.count >= limit,
                let one = state.end(proxiesToo: true, now)
            {
                ended.append(one)
            }
            return ended
        }
        tell(full: nil, isRefused: false, ended: ended, now)
        for one in ended { one.end() }
    }

    /// Stops counting a connection.
    func close(_ id: UInt64) { state.withLock { _ = $0.remove(id) } }

    /// The stored networks and queue entries: for tests.
    var held: (networks: Int, places: Int) {
        state.withLock { ($0.open.count, $0.queues.values.reduce(0) { $0 + $1.items.count }) }
    }

    // MARK: The log

    private func tell(
        full: ClientNetwork?, isRefused: Bool, ended: [Connection], _ now: NIODeadline
    ) {
        if let full {
            let metadata: Logger.Metadata = [
                "network": "\(full.name)", "connections": "\(perClient * full.share)",
            ]
            say("HTTP connections are closed at once: their network is at its limit", metadata, now)
        } else if isRefused {
            say(
                "HTTP connections are closed at once: all connections are in use, and none is silent",
                ["connections": "\(clientLimit)"], now)
        }
        if !ended.isEmpty {
            say(
                "silent HTTP connections are closed: the limit of connections is reached",
                ["connections": "\(limit)"], now)
        }
    }

    /// One line per minute of each kind, so that a flood of connections does not fill the log too.
    private func say(_ text: String, _ metadata: Logger.Metadata, _ now: NIODeadline) {
        let isSaid = state.withLock { state in
            if let at = state.saidAt[text], now - at < .minutes(1) { return true }
            state.saidAt[text] = now
            return false
        }
        if !isSaid { logger.warning("\(text)", metadata: metadata) }
    }
}

extension OpenConnections.State {
    fileprivate mutating func enter(
        _ phase: OpenConnections.Phase, _ id: UInt64, _ now: NIODeadline
    ) {
        connections[id]?.phase = phase
        connections[id]?.since = now
        guard phase != .working, let isProxy = connections[id]?.isProxy else { return }
        let key = OpenConnections.QueueKey(isProxy: isProxy, phase: phase)
        var queue = queues[key] ?? .init()
        queues[key] = nil
        // Compacts at twice the number of connections: skipped entries are removed, and each is
        // examined at most twice.
        if queue.items.count > 2 * connections.count + 16 {
            queue.items = queue.items[queue.first...].filter { isIn($0, key) }
            queue.first = 0
        }
        queue.items.append((id, now))
        queues[key] = queue
    }

    private func isIn(
        _ item: (id: UInt64, since: NIODeadline), _ key: OpenConnections.QueueKey
    ) -> Bool {
        connections[item.id].map { $0.phase == key.phase && $0.since == item.since } ?? false
    }

    /// The connection that has been in a phase for longest.
    private mutating func longest(
        _ key: OpenConnections.QueueKey
    ) -> (id: UInt64, since: NIODeadline)? {
        guard var queue = queues.removeValue(forKey: key) else { return nil }
        defer { queues[key] = queue }
        while queue.first < queue.items.count {
            if isIn(queue.items[queue.first], key) { return queue.items[queue.first] }
            queue.first += 1
        }
        return nil
    }

    /// Removes the connection that closes for a new one; nil if all are working.
    fileprivate mutating func end(
        proxiesToo: Bool, _ now: NIODeadline
    ) -> OpenConnections.Connection? {
        for isProxy in proxiesToo ? [false, true] : [false] {
            let arriving = longest(.init(isProxy: isProxy, phase: .arriving))
            if let arriving, now - arriving.since >= OpenConnections.timeout {
                return remove(arriving.id)
            }
            if let idle = longest(.init(isProxy: isProxy, phase: .idle)) { return remove(idle.id) }
            let fetching = longest(.init(isProxy: isProxy, phase: .fetching))
            if let fetching, now - fetching.since >= OpenConnections.timeout {
                return remove(fetching.id)
            }
            if let arriving { return remove(arriving.id) }
        }
        return nil
    }

    fileprivate mutating func remove(_ id: UInt64) -> OpenConnections.Connection? {
        guard let connection = connections.removeValue(forKey: id) else { return nil }
        if !connection.isProxy { clients -= 1 }
        for network in connection.networks {
            let left = open[network.name, default: 0] - 1
            open[network.name] = left > 0 ? left : nil
        }
        return connection
    }
}
