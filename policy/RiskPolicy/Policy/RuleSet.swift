// A set of up to 128 small numbers in one word, for rules and reason codes.

/// A set of a policy's rules (by position) or of reason codes.
package struct RuleSet: Sendable, Equatable, Sequence {
    var bits: UInt128

    /// The positions whose bits are set.
    init(bits: UInt128 = 0) {
        self.bits = bits
    }

    init(position: Int) {
        bits = 1 << UInt128(position)
    }

    /// Whether the set is empty.
    package var isEmpty: Bool { bits == 0 }

    /// Number of positions.
    package var count: Int { bits.nonzeroBitCount }

    /// Whether a position (0..<128) is in the set; false beyond.
    package func contains(_ position: Int) -> Bool {
        position >= 0 && position < 128 && bits >> UInt128(position) & 1 == 1
    }

    /// Iterates in ascending order.
    package struct Iterator: IteratorProtocol {
        var low: UInt64
        var high: UInt64

        /// The next position, ascending.
        package mutating func next() -> Int? {
            if low != 0 {
                let position = low.trailingZeroBitCount
                low &= low &- 1
                return position
            }
            guard high != 0 else { return nil }
            let position = high.trailingZeroBitCount
            high &= high &- 1
            return 64 + position
        }
    }

    /// Begins at the lowest position.
    package func makeIterator() -> Iterator {
        Iterator(
            low: UInt64(truncatingIfNeeded: bits), high: UInt64(truncatingIfNeeded: bits >> 64))
    }
}
