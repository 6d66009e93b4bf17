// How many connections each client network has, so that one cannot take all there are.

import Logging
import MailAuth
import NIOCore
import Synchronization

/// Counts open connections by network. Those of reverse proxies are not counted: they are of many clients, whom the proxy counts.
final class ConnectionCounts: Sendable {
    private struct State {
        var open: [String: Int] = [:]
        var saidAt: NIODeadline?
    }

    /// Connections of one client.
    private let limit: Int
    private let proxies: TrustedProxies
    private let logger: Logger
    private let state = Mutex(State())

    init(limit: Int, proxies: TrustedProxies, logger: Logger) {
        self.limit = limit
        self.proxies = proxies
        self.logger = logger
    }

    /// Counts a connection; nil where one of its networks has as many as it may. What is given goes to `close`.
    func open(_ peer: SocketAddress?) -> [ClientNetwork]? {
        let address = peer?.ipAddress.flatMap { IPAddress($0) }
        if address.map(proxies.contains) ?? false { return [] }
        let networks = ClientNetwork.networks(of: address)
        let (full, isSaid) = state.withLock { state -> (ClientNetwork?, Bool) in
            guard let full = networks.first(where: { state.open[$0.name, default: 0] >= limit * $0.share }) else {
                for network in networks { state.open[network.name, default: 0] += 1 }
                return (nil, true)
            }
            // A line a minute: whoever opens connections without end is not to fill the log too.
            let now = NIODeadline.now()
            if let at = state.saidAt, now - at < .minutes(1) { return (full, true) }
            state.saidAt = now
            return (full, false)
        }
        guard let full else { return networks }
        if !isSaid {
            logger.warning(
                "HTTP connections are closed at once: their network has as many as it may",
                metadata: ["network": "\(full.name)", "connections": "\(limit * full.share)"])
        }
        return nil
    }

    func close(_ networks: [ClientNetwork]) {
        state.withLock { state in
            for network in networks {
                let left = state.open[network.name, default: 0] - 1
                state.open[network.name] = left > 0 ? left : nil
            }
        }
    }

    /// Networks that have connections: for tests.
    var networks: Int { state.withLock { $0.open.count } }
}
