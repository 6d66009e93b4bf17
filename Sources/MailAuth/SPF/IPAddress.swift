// An IPv4 or IPv6 address in network order, parsed strictly and formatted as SPF macros and
// reverse zones require.

import InternetMessage
import Support

/// An IP address. An IPv4-mapped IPv6 address is stored as its IPv4 address (RFC 7208 section 5).
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16 octets in network order.
    package let octets: [UInt8]

    /// Whether this is an IPv4 address.
    package var isIPv4: Bool { octets.count == 4 }

    /// Takes 4 or 16 octets in network order; nil for any other count.
    package init?(octets: [UInt8]) {
        switch octets.count {
        case 4: self.octets = octets
        case 16:
            let isMapped =
                octets[..<10].allSatisfy { $0 == 0 } && octets[10] == 0xFF && octets[11] == 0xFF
            self.octets = isMapped ? Array(octets[12...]) : octets
        default: return nil
        }
    }

    /// Reads dotted-quad text or the IPv6 text forms of RFC 4291 section 2.2; nil for anything
    /// else, zone ids included.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard let octets = IPAddress.ipv4(bytes[...]) ?? IPAddress.ipv6(bytes[...]) else {
            return nil
        }
        self.init(octets: octets)
    }

    /// `ip4-network` (RFC 7208 section 12): four decimal numbers without leading zeros.
    package static func ipv4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count <= 15 else { return nil }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var octets: [UInt8] = []
        for part in parts {
            guard (1...3).contains(part.count), part.count == 1 || part.first != UInt8(ascii: "0")
            else { return nil }
            var number = 0
            for digit in part {
                guard (0x30...0x39).contains(digit) else { return nil }
                number = number * 10 + Int(digit - 0x30)
            }
            guard let octet = UInt8(exactly: number) else { return nil }
            octets.append(octet)
        }
        return octets
    }

    /// `ip6-network` (RFC 4291 section 2.2): 16 octets, even if they map an IPv4 address.
    package static func ipv6(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        // The longest form is 39 octets, or 45 with a dotted quad at its end.
        guard text.count >= 2, text.count <= 45 else { return nil }
        let colon = UInt8(ascii: ":")
        var octets: [UInt8] = []
        var gap: Int?
        var rest = text
        if rest.first == colon {
            guard rest.dropFirst().first == colon else { return nil }
            gap = 0
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            let group = rest.prefix { $0 != colon }
            rest = rest[group.endIndex...]
            if rest.isEmpty, group.contains(UInt8(ascii: ".")) {
                guard let quad = ipv4(group) else { return nil }
                octets += quad
                break
            }
            guard (1...4).contains(group.count) else { return nil }
            var number: UInt16 = 0
            for digit in group {
                guard let value = digit.hexValue else { return nil }
                number = number << 4 | UInt16(value)
            }
            octets += [UInt8(number >> 8), UInt8(number & 0xFF)]
            guard octets.count <= 16 else { return nil }
            guard !rest.isEmpty else { break }
            rest = rest.dropFirst()
            if rest.first == colon {
                guard gap == nil else { return nil }
                gap = octets.count
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        if let gap {
            guard octets.count <= 14 else { return nil }
            octets.insert(contentsOf: repeatElement(0, count: 16 - octets.count), at: gap)
        }
        return octets.count == 16 ? octets : nil
    }

    /// Whether the first `prefix` bits (0 and more) equal those of another
    /// address of the same family.
    package func matches(_ network: [UInt8], prefix: Int) -> Bool {
        guard network.count == octets.count else { return false }
        let whole = min(prefix / 8, octets.count)
        guard octets[..<whole].elementsEqual(network[..<whole]) else { return false }
        let bits = prefix % 8
        guard bits > 0, whole < octets.count else { return true }
        return (octets[whole] ^ network[whole]) >> UInt8(8 - bits) == 0
    }

    /// The dot-separated form of the `i` macro (RFC 7208 section 7.3): a
    /// dotted quad, or 32 nibbles.
    package var dotted: String {
        if isIPv4 { return octets.map(String.init).joined(separator: ".") }
        return octets.flatMap { [$0 >> 4, $0 & 15] }.map { String($0, radix: 16, uppercase: true) }
            .joined(separator: ".")
    }

    /// The name of its PTR records, without trailing dot.
    package var reverseName: String {
        if isIPv4 {
            return octets.reversed().map(String.init).joined(separator: ".") + ".in-addr.arpa"
        }
        let nibbles = octets.reversed().flatMap { [$0 & 15, $0 >> 4] }
        return nibbles.map { String($0, radix: 16) }.joined(separator: ".") + ".ip6.arpa"
    }
}

extension IPAddress: CustomStringConvertible {
    /// A dotted quad, or the text form of RFC 5952.
    package var description: String {
        if isIPv4 { return dotted }
        let groups = stride(from: 0, to: 16, by: 2).map {
            UInt16(octets[$0]) << 8 | UInt16(octets[$0 + 1])
        }
        var best = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > max(best.count, 1) { best = start..<end }
            start = max(end, start + 1)
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return best.isEmpty
            ? text(0..<8) : text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
    }
}
