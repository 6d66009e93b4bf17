// Addresses of an endpoint. Our own client resolves its name and checks every address, and Postern
// connects only to these.

import Accounts
import Concurrency
import MailAuth
import NIOCore

/// The checked addresses of an endpoint.
package struct EndpointAddresses: Sendable, Hashable {
    /// In the form that `SocketAddress` reads; IPv4 first, at most `maximum`. Never empty.
    package let texts: [String]

    /// Maximum number of addresses that are tried, one after the other.
    private static let maximum = 4

    /// The reason why there are no addresses.
    package struct Refusal: Error, Sendable, Hashable {
        package let reason: String
        /// Whether the reason is an address to which Postern must not connect.
        let isOfAddress: Bool

        package init(_ reason: String) { self.init(reason, isOfAddress: false) }

        init(_ reason: String, isOfAddress: Bool) {
            (self.reason, self.isOfAddress) = (reason, isOfAddress)
        }
    }

    /// Resolves and checks. One forbidden address refuses all, because a mix of addresses is an
    /// attack or an error. Blocks for as long as the resolver does.
    package init(
        of url: EndpointURL, allowsPrivate: Bool, resolver: any DNSResolver
    ) throws(Refusal) {
        let octets: [[UInt8]]
        if url.isAddress {
            guard let address = try? SocketAddress(ipAddress: url.host, port: url.port) else {
                throw Refusal("its address cannot be read")
            }
            octets = [Self.octets(address)]
        } else {
            octets = try Self.query(url.host, .a, resolver) + Self.query(url.host, .aaaa, resolver)
        }
        guard !octets.isEmpty else { throw Refusal("its name has no address in the DNS") }
        for address in octets {
            if let objection = ReachableAddress.objection(address, allowsPrivate: allowsPrivate) {
                throw Refusal(
                    "one of its addresses is not globally reachable (\(objection))",
                    isOfAddress: true)
            }
        }
        texts = try octets.prefix(Self.maximum).map { address throws(Refusal) in
            guard let text = Self.text(address) else { throw Refusal("its address cannot be read") }
            return text
        }
    }

    /// Resolves and checks on a separate thread, because a lookup may take the full DNS timeout.
    /// Throws `Refusal`.
    static func lookUp(
        _ url: EndpointURL, allowsPrivate: Bool, resolver: any DNSResolver
    ) async throws -> EndpointAddresses {
        try await withCheckedThrowingContinuation { found in
            let status = SystemThread.detach {
                found.resume(
                    with: Result {
                        try EndpointAddresses(
                            of: url, allowsPrivate: allowsPrivate, resolver: resolver)
                    })
            }
            if status != 0 { found.resume(throwing: CancellationError()) }
        }
    }

    private static func query(
        _ name: String, _ type: DNSRecordType, _ resolver: any DNSResolver
    ) throws(Refusal) -> [[UInt8]] {
        switch resolver.query(name, type) {
        case .records(let records):
            records.compactMap { if case .address(let octets) = $0 { octets } else { nil } }
        case .noData, .nxDomain: []
        case .temporaryFailure(let reason):
            throw Refusal("its name cannot be resolved now: \(reason)")
        }
    }

    private static func octets(_ address: SocketAddress) -> [UInt8] {
        switch address {
        case .v4(let address): withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
        case .v6(let address): withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
        case .unixDomainSocket: []
        }
    }

    private static func text(_ octets: [UInt8]) -> String? {
        try? SocketAddress(packedIPAddress: ByteBuffer(bytes: octets), port: 0).ipAddress
    }
}
