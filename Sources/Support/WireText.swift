// Text from outside, before its meaning is known.

/// Text from others, in UTF-8. Compared, ordered and hashed by octets: `String` does all three by
/// canonical equivalence. That makes different texts equal, and takes time that grows with the
/// square of a run of combining marks. It has no characters to count or to cut. Prints nothing: it
/// may be an address.
package struct WireText: Sendable, Hashable, Comparable, ExpressibleByStringLiteral {
    /// Valid UTF-8.
    package let octets: [UInt8]

    package init(_ text: String) { octets = Array(text.utf8) }
    package init(stringLiteral text: String) { self.init(text) }

    /// Nil for octets that are not UTF-8.
    package init?(validating octets: [UInt8]) {
        guard String(validating: octets, as: UTF8.self) != nil else { return nil }
        self.octets = octets
    }

    package static func < (left: WireText, right: WireText) -> Bool {
        left.octets.lexicographicallyPrecedes(right.octets)
    }

    package var isEmpty: Bool { octets.isEmpty }

    /// The whole text, for code that stores it, hashes it, shows it through an escape, or reads it
    /// with its own grammar.
    package var text: String { String(decoding: octets, as: UTF8.self) }

    /// The text without spaces and tabs at its ends, as people type it.
    package var trimmed: String {
        let isKept = { (octet: UInt8) in octet != 0x20 && octet != 0x09 }
        guard let first = octets.firstIndex(where: isKept),
            let last = octets.lastIndex(where: isKept)
        else { return "" }
        return String(decoding: octets[first...last], as: UTF8.self)
    }

    /// The words between spaces; never empty text.
    package var words: [WireText] {
        octets.split(separator: 0x20).compactMap { WireText(validating: Array($0)) }
    }

    /// The text for people: control characters replaced, cut after `limit` scalars.
    package func excerpt(limit: Int) -> String { text.withoutControls(limit: limit) }

    /// The text if it is printable ASCII of 1 to `limit` octets, as all names and codes of
    /// protocols are.
    package func ascii(limit: Int) -> String? {
        (1...limit).contains(octets.count) && octets.allSatisfy { (0x21...0x7E).contains($0) }
            ? text : nil
    }

    /// The whole number that the text writes in digits.
    package var integer: Int64? { ascii(limit: 20).flatMap { Int64($0) } }
}

extension WireText: CustomStringConvertible, CustomReflectable {
    package var description: String { "<text>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
