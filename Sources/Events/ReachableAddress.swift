// The addresses to which Postern may send requests: an endpoint must not lead into the operator's
// own network.

/// Classifies IP addresses by the special-purpose registries (RFC 6890 and its updates), without
/// network access.
package enum ReachableAddress {
    /// The reason why Postern must not connect to an address, as text; nil if it may.
    /// - Parameters:
    ///   - octets: 4 or 16 in network order.
    ///   - allowsPrivate: whether to accept any possible address of a host, for an endpoint that an
    ///     administrator set deliberately.
    package static func objection(_ octets: [UInt8], allowsPrivate: Bool = false) -> String? {
        switch octets.count {
        case 4: objection4(octets, allowsPrivate)
        case 16: objection6(octets, allowsPrivate)
        default: "no address"
        }
    }

    /// Addresses that never belong to one host are refused even with `allowsPrivate`.
    private static func objection4(_ octets: [UInt8], _ allowsPrivate: Bool) -> String? {
        if octets[0] == 0 { return "unspecified" }
        if octets[0] >= 240 { return octets == [255, 255, 255, 255] ? "broadcast" : "reserved" }
        if octets[0] >= 224 { return "multicast" }
        if allowsPrivate { return nil }
        return blocks4.first { $0.contains(octets) }?.name
    }

    private static func objection6(_ octets: [UInt8], _ allowsPrivate: Bool) -> String? {
        if octets.allSatisfy({ $0 == 0 }) { return "unspecified" }
        if octets[0] == 0xFF { return "multicast" }
        // A connection to an address that contains an IPv4 address leads to that one. No one
        // publishes such addresses.
        if let block = carriers.first(where: { $0.contains(octets) }) { return block.name }
        if allowsPrivate { return nil }
        if let block = blocks6.first(where: { $0.contains(octets) }) { return block.name }
        // Global unicast is 2000::/3; no other range was ever allocated.
        return octets[0] & 0xE0 == 0x20 ? nil : "not global unicast"
    }

    private struct Block {
        let prefix: [UInt8]
        let bits: Int
        let name: String

        init(_ prefix: [UInt8], _ bits: Int, _ name: String) {
            self.prefix = prefix
            self.bits = bits
            self.name = name
        }

        func contains(_ address: [UInt8]) -> Bool {
            for bit in 0..<bits {
                let mask: UInt8 = 0x80 >> UInt8(bit % 8)
                let wanted = bit / 8 < prefix.count ? prefix[bit / 8] & mask : 0
                guard address[bit / 8] & mask == wanted else { return false }
            }
            return true
        }
    }

    private static let blocks4 = [
        Block([10], 8, "private"), Block([100, 64], 10, "carrier-grade NAT"),
        Block([127], 8, "loopback"),
        Block([169, 254], 16, "link-local"), Block([172, 16], 12, "private"),
        Block([192, 0, 0], 24, "protocol assignments"),
        Block([192, 0, 2], 24, "documentation"), Block([192, 88, 99], 24, "6to4 relays"),
        Block([192, 168], 16, "private"),
        Block([198, 18], 15, "benchmarking"), Block([198, 51, 100], 24, "documentation"),
        Block([203, 0, 113], 24, "documentation"),
    ]

    private static let carriers = [
        Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, "IPv4-mapped"),
        Block([0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, "IPv4-translated"),
        Block([0, 0x64, 0xFF, 0x9B], 96, "NAT64"), Block([0, 0x64, 0xFF, 0x9B, 0, 1], 48, "NAT64"),
        Block([0x20, 0x01, 0, 0], 32, "Teredo"), Block([0x20, 0x02], 16, "6to4"),
    ]

    private static let blocks6 = [
        // ::1 and the IPv4-compatible addresses are here.
        Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
        Block([0], 8, "reserved"),
        Block([0xFC], 7, "unique local"), Block([0xFE, 0x80], 10, "link-local"),
        Block([0xFE, 0xC0], 10, "site-local"),
        Block([0x20, 0x01, 0], 23, "protocol assignments"),
        Block([0x20, 0x01, 0x0D, 0xB8], 32, "documentation"),
        Block([0x3F, 0xFF], 20, "documentation"),
    ]
}
