// Who counts as one client of the HTTP service, and whom it believes about that.

import Foundation
import HTTPTypes
import Hummingbird
import MailAuth

/// A network that shares a limit.
package struct ClientNetwork: Sendable, Hashable {
    package let name: String
    /// How often it may do what one client may: wider networks have room for several.
    package let share: Int

    /// The networks that a client is in, the narrow one first. An IPv4 address alone. Of IPv6 the /64, and with more room /56 and
    /// /48, which are what providers give to one customer (RFC 6177): anyone who has a /48 would otherwise be 65,536 clients.
    /// Anything else than an address is one and the same client.
    static func networks(of address: IPAddress?) -> [ClientNetwork] {
        guard let address else { return [ClientNetwork(name: "unknown", share: 1)] }
        guard !address.isIPv4 else { return [ClientNetwork(name: "\(address)", share: 1)] }
        return [(64, 1), (56, 2), (48, 4)].map { around(address, bits: $0, share: $1) }
    }

    /// Those that a client's connections count for: of IPv4 the /24 as well, the smallest network that is routed by itself and
    /// thus one that someone has whole. Not so elsewhere: a /24 of a provider that shares its addresses among customers is
    /// thousands of users, but they never have this many connections at a time.
    static func networksOfConnections(of address: IPAddress?) -> [ClientNetwork] {
        let networks = networks(of: address)
        guard let address, address.isIPv4 else { return networks }
        return networks + [around(address, bits: 24, share: 4)]
    }

    private static func around(_ address: IPAddress, bits: Int, share: Int) -> ClientNetwork {
        let kept = bits / 8
        let octets = Array(address.octets.prefix(kept)) + [UInt8](repeating: 0, count: address.octets.count - kept)
        return ClientNetwork(name: "\(IPAddress(octets: octets).map { "\($0)" } ?? "")/\(bits)", share: share)
    }
}

/// Reverse proxies: what they say of a client's address is believed, and their connections are those of many clients.
package struct TrustedProxies: Sendable {
    private let networks: [(octets: [UInt8], bits: Int)]
    private let holdsLoopback: Bool

    /// Those on this machine.
    package init() { self.init(networks: [], holdsLoopback: true) }

    private init(networks: [(octets: [UInt8], bits: Int)], holdsLoopback: Bool) {
        self.networks = networks
        self.holdsLoopback = holdsLoopback
    }

    /// No one: for tests, in which loopback's addresses stand for those of the world.
    package static let none = TrustedProxies(networks: [], holdsLoopback: false)

    /// Those on this machine, and these.
    /// - Parameter texts: addresses, or networks as in `192.0.2.0/24`. Nil where one is neither.
    package init?(_ texts: [String]) {
        var networks: [(octets: [UInt8], bits: Int)] = []
        for text in texts {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), let address = IPAddress(parts[0]) else { return nil }
            let all = address.octets.count * 8
            let bits = parts.count == 2 ? Int(parts[1]) : all
            // A mapped network would need other numbers of bits.
            guard let bits, (1...all).contains(bits), address.isIPv4 == !parts[0].contains(":") else { return nil }
            networks.append((address.octets, bits))
        }
        self.init(networks: networks, holdsLoopback: true)
    }

    /// Loopback always: anyone who is on this machine could ask directly. An IPv4 proxy that comes in on an IPv6 socket is the
    /// same proxy (RFC 4291 section 2.5.5.2).
    package func contains(_ address: IPAddress) -> Bool {
        let isLoopback = address.isIPv4 ? address.octets[0] == 127 : address.octets == [UInt8](repeating: 0, count: 15) + [1]
        if isLoopback { return holdsLoopback }
        return networks.contains { address.matches($0.octets, prefix: $0.bits) }
    }

    /// The networks of the client that a request comes from.
    package func networks(of request: Request, _ context: APIContext) -> [ClientNetwork] {
        ClientNetwork.networks(
            of: client(
                peer: context.remoteAddress?.ipAddress.flatMap { IPAddress($0) }, hasPeer: context.remoteAddress != nil,
                forwarded: HTTPField.Name("X-Forwarded-For").map { request.headers[values: $0] } ?? []))
    }

    /// The client's address: the peer's own, or, where that is a proxy, the last entry of X-Forwarded-For that is not a proxy's.
    /// Entries before it were written by others and are worth nothing. Nil for what is not an address.
    /// - Parameters:
    ///   - peer: nil where there is no connection, as in tests of the router.
    ///   - forwarded: the X-Forwarded-For fields in their order.
    func client(peer: IPAddress?, hasPeer: Bool, forwarded: [String]) -> IPAddress? {
        guard !hasPeer || peer.map(contains) ?? false else { return peer }
        let entries = forwarded.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
            .map { $0.trimmingCharacters(in: .whitespaces) }
        var client = peer
        for entry in entries.reversed() {
            client = IPAddress(entry)
            guard let client, contains(client) else { break }
        }
        return client
    }
}
