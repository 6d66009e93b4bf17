// Address literals (RFC 5321 section 4.1.3).

package enum AddressLiteral {
    /// Whether the octets, brackets included, are an IPv4 or IPv6 address literal. General address
    /// literals are refused, as no other tag was ever registered.
    package static func isValid(_ literal: some Collection<UInt8>) -> Bool {
        let text = Array(literal)
        guard text.count > 2, text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") else {
            return false
        }
        let inner = text[1..<(text.count - 1)]
        if inner.prefix(5).equalsIgnoringASCIICase("ipv6:".utf8) {
            return isIPv6(inner.dropFirst(5))
        }
        return isIPv4(inner)
    }

    /// Four decimal numbers of at most three digits, 0…255.
    private static func isIPv4(_ text: ArraySlice<UInt8>) -> Bool {
        let parts = text.split(
            separator: UInt8(ascii: "."), maxSplits: 4, omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                (1...3).contains(part.count) && part.allSatisfy(\.isASCIIDigit)
                    && part.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 255
            }
    }

    private static func isIPv6(_ text: ArraySlice<UInt8>) -> Bool {
        // The longest form has 45 octets.
        guard text.count <= 45 else { return false }
        let halves = splitAtDoubleColon(text)
        guard let head = groups(halves.0, isLast: halves.1 == nil) else { return false }
        guard let tailText = halves.1 else { return head == 8 }
        guard let tail = groups(tailText, isLast: true) else { return false }
        // RFC 5321 requires "::" to replace at least two groups. RFC 4291 section 2.2, which is
        // followed here, allows one.
        return head + tail <= 7
    }

    private static func splitAtDoubleColon(
        _ text: ArraySlice<UInt8>
    ) -> (ArraySlice<UInt8>, ArraySlice<UInt8>?) {
        var index = text.startIndex
        while index + 1 < text.endIndex {
            if text[index] == UInt8(ascii: ":"), text[index + 1] == UInt8(ascii: ":") {
                return (text[..<index], text[(index + 2)...])
            }
            index += 1
        }
        return (text, nil)
    }

    /// Number of 16-bit groups, an IPv4 tail counting two; nil if malformed. Empty text has none.
    private static func groups(_ text: ArraySlice<UInt8>, isLast: Bool) -> Int? {
        guard !text.isEmpty else { return 0 }
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var count = 0
        for (number, part) in parts.enumerated() {
            if isLast, number == parts.count - 1, part.contains(UInt8(ascii: ".")) {
                guard isIPv4(part) else { return nil }
                count += 2
            } else {
                guard (1...4).contains(part.count), part.allSatisfy({ $0.hexValue != nil }) else {
                    return nil
                }
                count += 1
            }
        }
        return count
    }
}
