// IP addresses and ranges as in Kubernetes' CEL library (kubernetes.net.ip, kubernetes.net.cidr).

/// An IPv4 or IPv6 address without a zone.
package struct CELAddress: Sendable, Hashable {
    /// In network byte order; an IPv4 address is in the lowest 32 bits.
    package let bits: UInt128
    /// Whether it is an IPv4 address.
    package let isIPv4: Bool

    init(bits: UInt128, isIPv4: Bool) {
        self.bits = bits
        self.isIPv4 = isIPv4
    }

    /// Parses a dotted quad without leading zeros, or a text form of RFC 4291 section 2.2. Nil for
    /// all other texts, also for zones. An IPv4-mapped IPv6 address is the IPv4 address, because
    /// servers that listen on both families write every IPv4 client in this form.
    package init?(_ text: String) {
        var text = text
        guard let found = text.withUTF8(Self.read) else { return nil }
        self = found
    }

    static func read(_ text: UnsafeBufferPointer<UInt8>) -> CELAddress? {
        if let bits = ipv4(text[...]) { return CELAddress(bits: UInt128(bits), isIPv4: true) }
        guard let bits = ipv6(text) else { return nil }
        return bits >> 32 == 0xFFFF
            ? CELAddress(bits: bits & 0xFFFF_FFFF, isIPv4: true)
            : CELAddress(bits: bits, isIPv4: false)
    }

    private static func ipv4(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> UInt32? {
        guard (7...15).contains(text.count) else { return nil }
        var (bits, part, digits, parts): (UInt32, UInt32, Int, Int) = (0, 0, 0, 1)
        for octet in text {
            if octet == UInt8(ascii: ".") {
                guard digits > 0, parts < 4 else { return nil }
                bits = bits << 8 | part
                (part, digits, parts) = (0, 0, parts + 1)
            } else {
                guard (0x30...0x39).contains(octet), digits == 0 || part > 0 else { return nil }
                part = part * 10 + UInt32(octet - 0x30)
                digits += 1
                guard part <= 255 else { return nil }
            }
        }
        return parts == 4 && digits > 0 ? bits << 8 | part : nil
    }

    private static func ipv6(_ text: UnsafeBufferPointer<UInt8>) -> UInt128? {
        let colon = UInt8(ascii: ":")
        // The longest form is 39 octets, or 45 with a dotted quad at its end.
        guard (2...45).contains(text.count) else { return nil }
        var (bits, groups, index): (UInt128, Int, Int) = (0, 0, 0)
        var gap: Int?
        if text[0] == colon {
            guard text[1] == colon else { return nil }
            (gap, index) = (0, 2)
        }
        while index < text.count {
            let start = index
            var group: UInt128 = 0
            while index < text.count, let digit = hexValue(text[index]) {
                group = group << 4 | digit
                index += 1
                guard index - start <= 4 else { return nil }
            }
            if index < text.count, text[index] == UInt8(ascii: ".") {
                guard groups <= 6, let quad = ipv4(text[start...]) else { return nil }
                (bits, groups) = (bits << 32 | UInt128(quad), groups + 2)
                break
            }
            guard index > start, groups < 8 else { return nil }
            (bits, groups) = (bits << 16 | group, groups + 1)
            guard index < text.count else { break }
            guard text[index] == colon, index + 1 < text.count else { return nil }
            index += 1
            if text[index] == colon {
                guard gap == nil else { return nil }
                gap = groups
                index += 1
            }
        }
        guard let gap else { return groups == 8 ? bits : nil }
        // The gap means at least one group of zeros.
        guard groups < 8 else { return nil }
        let tail = 16 * (groups - gap)
        return ((bits >> tail) << (16 * (8 - gap))) | (bits & ~(UInt128.max << tail))
    }

    private static func hexValue(_ octet: UInt8) -> UInt128? {
        switch octet {
        case 0x30...0x39: UInt128(octet - 0x30)
        case 0x41...0x46: UInt128(octet - 0x37)
        case 0x61...0x66: UInt128(octet - 0x57)
        default: nil
        }
    }

    /// 4 or 6.
    var family: Int64 { isIPv4 ? 4 : 6 }
    /// Bits of an address of this family.
    var width: Int { isIPv4 ? 32 : 128 }

    private func isWithin(_ network: UInt128, _ prefixLength: Int) -> Bool {
        ((bits ^ network) >> (width - prefixLength)) == 0
    }

    /// `0.0.0.0` or `::`.
    var isUnspecified: Bool { bits == 0 }
    /// 127.0.0.0/8 or `::1`.
    var isLoopback: Bool { isIPv4 ? isWithin(0x7F00_0000, 8) : bits == 1 }
    /// 169.254.0.0/16 or fe80::/10.
    var isLinkLocalUnicast: Bool {
        isIPv4 ? isWithin(0xA9FE_0000, 16) : isWithin(0xFE80 << 112, 10)
    }
    /// 224.0.0.0/24, or ff02::/16 with any flags (RFC 4291 section 2.7).
    var isLinkLocalMulticast: Bool {
        isIPv4 ? isWithin(0xE000_0000, 24) : (bits >> 112) & 0xFF0F == 0xFF02
    }
    private var isMulticast: Bool { isIPv4 ? isWithin(0xE000_0000, 4) : isWithin(0xFF00 << 112, 8) }
    /// None of the above, and not the broadcast address; private networks count as global.
    var isGlobalUnicast: Bool {
        !isUnspecified && !isLoopback && !isMulticast && !isLinkLocalUnicast
            && !(isIPv4 && bits == 0xFFFF_FFFF)
    }
}

extension CELAddress: CustomStringConvertible {
    /// A dotted quad, or the canonical text form of RFC 5952.
    package var description: String {
        if isIPv4 {
            return [24, 16, 8, 0].map { String((bits >> UInt128($0)) & 0xFF) }.joined(
                separator: ".")
        }
        let groups = (0..<8).map { (bits >> UInt128(112 - 16 * $0)) & 0xFFFF }
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

/// An address with a prefix length, `192.0.2.0/24`. Two are equal if address and length are equal.
package struct CELNetwork: Sendable, Hashable {
    /// As written: bits after the prefix may be set.
    package let address: CELAddress
    /// 0 to 32 for IPv4, 0 to 128 for IPv6.
    package let prefixLength: Int

    init(address: CELAddress, prefixLength: Int) {
        self.address = address
        self.prefixLength = prefixLength
    }

    /// Parses an address, a slash and a number without leading zeros. For an IPv4-mapped IPv6
    /// address, the number counts from the beginning of the IPv6 address: `::ffff:192.0.2.0/120` is
    /// `192.0.2.0/24`, and less than 96 is refused.
    package init?(_ text: String) {
        var text = text
        guard let found = text.withUTF8(Self.read) else { return nil }
        self = found
    }

    static func read(_ text: UnsafeBufferPointer<UInt8>) -> CELNetwork? {
        guard let slash = text.firstIndex(of: UInt8(ascii: "/")),
            let address = CELAddress.read(UnsafeBufferPointer(rebasing: text[..<slash]))
        else { return nil }
        let digits = text[(slash + 1)...]
        guard (1...3).contains(digits.count), digits.first != UInt8(ascii: "0") || digits.count == 1
        else { return nil }
        var length = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            length = length * 10 + Int(digit - 0x30)
        }
        if address.isIPv4, text[..<slash].contains(UInt8(ascii: ":")) { length -= 96 }
        return (0...address.width).contains(length)
            ? CELNetwork(address: address, prefixLength: length) : nil
    }

    /// The bits after the prefix.
    private var hostBits: UInt128 {
        let width = address.width - prefixLength
        return width == 128 ? .max : (1 << UInt128(width)) - 1
    }

    /// Its first and its last address.
    package var bounds: ClosedRange<UInt128> {
        (address.bits & ~hostBits)...(address.bits | hostBits)
    }

    /// The same network without bits set after the prefix.
    var masked: CELNetwork {
        CELNetwork(
            address: CELAddress(bits: bounds.lowerBound, isIPv4: address.isIPv4),
            prefixLength: prefixLength)
    }

    func contains(_ other: CELAddress) -> Bool {
        other.isIPv4 == address.isIPv4 && bounds.contains(other.bits)
    }

    func contains(_ other: CELNetwork) -> Bool {
        prefixLength <= other.prefixLength && contains(other.address)
    }
}

extension CELNetwork {
    /// Whether a text looks like an address or a range, but is neither: four numbers with dots, or
    /// groups with colons and a slash, and then something else.
    package static func isMistaken(_ text: String) -> Bool {
        guard CELAddress(text) == nil, CELNetwork(text) == nil else { return false }
        let octets = Array(text.utf8)
        let parts = octets.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        func isNumber(_ part: some Sequence<UInt8>) -> Bool {
            part.allSatisfy { (0x30...0x39).contains($0) }
        }
        if parts.count >= 4,
            parts.prefix(3).allSatisfy({ !$0.isEmpty && $0.count <= 3 && isNumber($0) }),
            let first = parts[3].first, isNumber(CollectionOfOne(first))
        {
            return true
        }
        let beforeSlash = octets.prefix { $0 != UInt8(ascii: "/") }
        return beforeSlash.count < octets.count
            && beforeSlash.filter { $0 == UInt8(ascii: ":") }.count >= 2
            && beforeSlash.allSatisfy { hexOrColon($0) }
    }

    private static func hexOrColon(_ octet: UInt8) -> Bool {
        (0x30...0x3A).contains(octet) || (0x41...0x46).contains(octet & ~0x20)
            || octet == UInt8(ascii: ".")
    }
}

extension CELNetwork: CustomStringConvertible {
    package var description: String { "\(address)/\(prefixLength)" }
}
