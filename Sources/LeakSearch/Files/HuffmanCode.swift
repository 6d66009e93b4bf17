// The codes of deflate (RFC 1951 section 3.2.2), rebuilt again and again in the same memory.

/// A canonical Huffman code. Not thread-safe.
final class HuffmanCode {
    /// Bits that are looked up at once; longer codes are read bit by bit.
    private static let width = 10
    private static let most = 288

    /// Symbol << 4 | length, by the next bits; 0 where the code is longer.
    private let table = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << width)
    private let symbols = UnsafeMutablePointer<UInt16>.allocate(capacity: most)
    /// How many codes there are of each length.
    private let counts = UnsafeMutablePointer<Int>.allocate(capacity: 16)

    init() {
        table.initialize(repeating: 0, count: 1 << Self.width)
        symbols.initialize(repeating: 0, count: Self.most)
        counts.initialize(repeating: 0, count: 16)
    }

    deinit {
        table.deallocate()
        symbols.deallocate()
        counts.deallocate()
    }

    /// - Parameter lengths: of the code of each symbol, at most 15; 0 for none. At most 288 of them.
    /// - Returns: whether such a code is possible.
    func build(_ lengths: [UInt8]) -> Bool {
        guard lengths.count <= Self.most else { return false }
        counts.update(repeating: 0, count: 16)
        for length in lengths { counts[Int(length & 15)] += 1 }
        counts[0] = 0
        var left = 1
        for length in 1...15 {
            left = left << 1 - counts[length]
            if left < 0 { return false }
        }
        table.update(repeating: 0, count: 1 << Self.width)
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 32) { places in
            places.update(repeating: 0)
            // For each length: where its symbols begin, and its next code.
            for length in 1..<15 {
                places[length + 1] = places[length] + counts[length]
                places[16 + length + 1] = (places[16 + length] + counts[length]) << 1
            }
            for (symbol, length) in lengths.enumerated() where length > 0 {
                let length = Int(length & 15)
                symbols[places[length]] = UInt16(symbol)
                places[length] += 1
                let code = places[16 + length]
                places[16 + length] += 1
                guard length <= Self.width else { continue }
                var reversed = 0
                for bit in 0..<length where code >> bit & 1 == 1 { reversed |= 1 << (length - 1 - bit) }
                let entry = UInt16(symbol) << 4 | UInt16(length)
                var index = reversed
                while index < 1 << Self.width {
                    table[index] = entry
                    index += 1 << length
                }
            }
        }
        return true
    }

    /// The next symbol; -1 where there is none.
    /// - Parameter slow: counts codes that the table does not know.
    @inline(__always)
    func read(_ bits: inout BitReader, _ slow: inout Int) -> Int {
        let entry = table[bits.peek(Self.width)]
        if entry != 0 { return bits.skip(Int(entry & 15)) ? Int(entry >> 4) : -1 }
        slow += 1
        return readLong(&bits)
    }

    private func readLong(_ bits: inout BitReader) -> Int {
        var code = 0
        var first = 0
        var index = 0
        for length in 1...15 {
            guard let bit = bits.take(1) else { return -1 }
            code |= bit
            let count = counts[length]
            if code - count < first { return Int(symbols[index + code - first]) }
            index += count
            first = (first + count) << 1
            code <<= 1
        }
        return -1
    }
}
