// The first octets of all words that are searched for: most data holds none of them, and need not be read.

/// Sets of the first four octets of words in lower case.
struct Beginnings {
    private static let width = 4

    /// Bits by a hash of four octets: 8 KB each, so that a look-up needs no access to main memory.
    private var bits = [UInt64](repeating: 0, count: 1_024)
    private var dotlessBits = [UInt64](repeating: 0, count: 1_024)
    private var values: Set<UInt32> = []
    private var dotlessValues: Set<UInt32> = []

    /// Nil where a word is too short.
    /// - Parameter dotless: words that are looked for in the text without its dots.
    init?(of words: [[UInt8]], withoutDots dotless: [[UInt8]]) {
        guard (words + dotless).allSatisfy({ $0.count >= Self.width }) else { return nil }
        for word in words { Self.insert(word, into: &bits, &values) }
        for word in dotless { Self.insert(word, into: &dotlessBits, &dotlessValues) }
    }

    private static func insert(_ word: [UInt8], into bits: inout [UInt64], _ values: inout Set<UInt32>) {
        let value = word.prefix(width).reduce(0) { $0 << 8 | UInt32($1) }
        values.insert(value)
        bits[hash(value) >> 6] |= 1 << UInt64(hash(value) & 63)
    }

    @inline(__always)
    private static func hash(_ value: UInt32) -> Int { Int(truncatingIfNeeded: (value &* 0x9E37_79B1) >> 16) }

    /// The octet in lower case; 0 for octets that every reading skips.
    private static let folded: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0, 0x20, 0x09...0x0D: 0
        case 0x41...0x5A: UInt8(octet) | 0x20
        default: UInt8(octet)
        }
    }

    /// Whether a word may begin in octets, ignoring white space and NUL.
    func occur(in octets: UnsafeBufferPointer<UInt8>) -> Bool {
        Self.occur(in: octets, bits, values, leavingOut: 0)
            || !dotlessValues.isEmpty && Self.occur(in: octets, dotlessBits, dotlessValues, leavingOut: 0x2E)
    }

    private static func occur(
        in octets: UnsafeBufferPointer<UInt8>, _ bits: [UInt64], _ values: Set<UInt32>, leavingOut dropped: UInt8
    ) -> Bool {
        bits.withUnsafeBufferPointer { bits in
            folded.withUnsafeBufferPointer { folded in
                var value: UInt32 = 0
                for octet in octets {
                    let octet = folded[Int(octet)]
                    if octet == 0 || octet == dropped { continue }
                    value = value << 8 | UInt32(octet)
                    let hash = hash(value)
                    if bits[hash >> 6] >> UInt64(hash & 63) & 1 != 0, values.contains(value) { return true }
                }
                return false
            }
        }
    }
}
