// The networks that count as one client of the HTTP service, and the proxies that may name a
// client's address.

import Foundation
import HTTPTypes
import Hummingbird
import MailAuth

/// A network that shares a limit.
package struct ClientNetwork: Sendable, Hashable {
    package let name: String
    /// Its share, as a multiple of one client's limit: wider networks have
    /// room for several clients.
    package let share: Int

    /// The networks of a client, the narrowest first. For IPv4, the address alone. For IPv6, the
    /// /64, and with larger limits the /56 and /48, which providers assign to one customer (RFC
    /// 6177). Without them the holder of a /48 would count as 65,536 clients. All peers without an
    /// address are one client.
    static func networks(of address: IPAddress?) -> [ClientNetwork] {
        guard let address else { return [ClientNetwork(name: "unknown", share: 1)] }
        guard !address.isIPv4 else { return [ClientNetwork(name: "\(address)", share: 1)] }
        return [(64, 1), (56, 2), (48, 4)].map { around(address, bits: $0, share: $1) }
    }

    /// The networks that a client's connections count for. For IPv4 also the /24: it is the
    /// smallest network that is routed separately, and one party may hold all of it. Other limits
    /// do not use it, because the /24 of a provider with shared addresses is thousands of users.
    /// Those never have this many connections at a time.
    static func networksOfConnections(of address: IPAddress?) -> [ClientNetwork] {
        let networks = networks(of: address)
        guard let address, address.isIPv4 else { return networks }
        return networks + [around(address, bits: 24, share: 4)]
    }

    private static func around(_ address: IPAddress, bits: Int, share: Int) -> ClientNetwork {
        let kept = bits / 8
        let octets =
            Array(address.octets.prefix(kept))
            + [UInt8](repeating: 0, count: address.octets.count - kept)
        return ClientNetwork(
            name: "\(IPAddress(octets: octets).map { "\($0)" } ?? "")/\(bits)", share: share)
    }
}

/// Reverse proxies. The client addresses that they report are trusted, and their connections belong
/// to many clients.
package struct TrustedProxies: Sendable {
    private let networks: [(octets: [UInt8], bits: Int)]
    private let holdsLoopback: Bool

    /// The proxies on this machine.
    package init() { self.init(networks: [], holdsLoopback: true) }

    private init(networks: [(octets: [UInt8], bits: Int)], holdsLoopback: Bool) {
        self.networks = networks
        self.holdsLoopback = holdsLoopback
    }

    /// No proxies: for tests that use loopback addresses in place of Internet addresses.
    package static let none = TrustedProxies(networks: [], holdsLoopback: false)

    /// The proxies on this machine, and these.
    /// - Parameter texts: addresses, or networks as in `192.0.2.0/24`. The result is
    ///   nil if one is neither.
    package init?(_ texts: [String]) {
        var networks: [(octets: [UInt8], bits: Int)] = []
        for text in texts {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), let address = IPAddress(parts[0]) else {
                return nil
            }
            let all = address.octets.count * 8
            let bits = parts.count == 2 ? Int(parts[1]) : all
            // A mapped network would need another prefix length.
            guard let bits, (1...all).contains(bits), address.isIPv4 == !parts[0].contains(":")
            else { return nil }
            networks.append((address.octets, bits))
        }
        self.init(networks: networks, holdsLoopback: true)
    }

    /// Loopback is always trusted: any process on this machine could connect directly. An IPv4
    /// proxy that connects to an IPv6 socket is the same proxy (RFC 4291 section 2.5.5.2).
    package func contains(_ address: IPAddress) -> Bool {
        let isLoopback =
            address.isIPv4
            ? address.octets[0] == 127 : address.octets == [UInt8](repeating: 0, count: 15) + [1]
        if isLoopback { return holdsLoopback }
        return networks.contains { address.matches($0.octets, prefix: $0.bits) }
    }

    /// The widest network of the client that sent a request, for limits that count a request once.
    package func widestNetwork(of request: Request, _ context: APIContext) -> String {
        networks(of: request, context).last?.name ?? ""
    }

    /// The networks of the client that sent a request.
    package func networks(of request: Request, _ context: APIContext) -> [ClientNetwork] {
        ClientNetwork.networks(
            of: client(
                peer: context.remoteAddress?.ipAddress.flatMap { IPAddress($0) },
                hasPeer: context.remoteAddress != nil,
                forwarded: HTTPField.Name("X-Forwarded-For").map { request.headers[values: $0] }
                    ?? []))
    }

    /// The client's address: the peer's own, or, if that is a proxy, the last entry of
    /// X-Forwarded-For that is not a proxy's. Earlier entries are not trustworthy. Nil for an entry
    /// that is not an address.
    /// - Parameters:
    ///   - peer: nil if there is no connection, as in tests of the router.
    ///   - forwarded: the X-Forwarded-For fields in their order.
    func client(peer: IPAddress?, hasPeer: Bool, forwarded: [String]) -> IPAddress? {
        guard !hasPeer || peer.map(contains) ?? false else { return peer }
        let entries = forwarded.flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false)
        }
        .map { $0.trimmingCharacters(in: .whitespaces) }
        var client = peer
        for entry in entries.reversed() {
            client = IPAddress(entry)
            guard let client, contains(client) else { break }
        }
        return client
    }
}
