// Deflate (RFC 1951), reading only, with a limit on what comes out.

enum Inflate {
    /// Unpacks a deflate stream. Damaged or cut data gives what came before the damage.
    /// - Parameter limit: octets at most.
    static func inflate(_ input: ArraySlice<UInt8>, limit: Int) -> [UInt8] {
        input.withUnsafeBufferPointer { buffer in
            var reader = Reader(input: buffer, limit: limit)
            reader.run()
            return reader.output
        }
    }

    /// A canonical Huffman code, read bit by bit (RFC 1951 section 3.2.2).
    private struct Code {
        private var counts = [Int](repeating: 0, count: 16)
        private var symbols: [UInt16] = []
        /// Symbol << 4 | length, by the next nine bits; 0 where the code is longer.
        private var table = [UInt16](repeating: 0, count: 512)

        init?(lengths: ArraySlice<UInt8>) {
            for length in lengths { counts[Int(length)] += 1 }
            counts[0] = 0
            var left = 1
            for length in 1...15 {
                left = left << 1 - counts[length]
                if left < 0 { return nil }
            }
            var offsets = [Int](repeating: 0, count: 16)
            for length in 1..<15 { offsets[length + 1] = offsets[length] + counts[length] }
            symbols = [UInt16](repeating: 0, count: lengths.count)
            var codes = [Int](repeating: 0, count: 16)
            for length in 1..<15 { codes[length + 1] = (codes[length] + counts[length]) << 1 }
            for (symbol, length) in lengths.enumerated() where length > 0 {
                symbols[offsets[Int(length)]] = UInt16(symbol)
                offsets[Int(length)] += 1
                let code = codes[Int(length)]
                codes[Int(length)] += 1
                guard length <= 9 else { continue }
                var reversed = 0
                for bit in 0..<Int(length) where code >> bit & 1 == 1 { reversed |= 1 << (Int(length) - 1 - bit) }
                var index = reversed
                while index < 512 {
                    table[index] = UInt16(symbol) << 4 | UInt16(length)
                    index += 1 << Int(length)
                }
            }
        }

        @inline(__always)
        func read(_ reader: inout Reader) -> Int? {
            let entry = table[Int(reader.peek(9))]
            if entry != 0 { return reader.skip(Int(entry & 15)) ? Int(entry >> 4) : nil }
            var code = 0
            var first = 0
            var index = 0
            for length in 1...15 {
                guard let bit = reader.bits(1) else { return nil }
                code |= bit
                let count = counts[length]
                if code - count < first { return Int(symbols[index + code - first]) }
                index += count
                first = (first + count) << 1
                code <<= 1
            }
            return nil
        }
    }

    private struct Reader {
        let input: UnsafeBufferPointer<UInt8>
        let limit: Int
        var output: [UInt8] = []
        private var position = 0
        private var hold: UInt64 = 0
        private var held = 0

        init(input: UnsafeBufferPointer<UInt8>, limit: Int) {
            self.input = input
            self.limit = limit
        }

        @inline(__always)
        private mutating func fill() {
            while held <= 48, position < input.count {
                hold |= UInt64(input[position]) << UInt64(held)
                held += 8
                position += 1
            }
        }

        @inline(__always)
        mutating func peek(_ count: Int) -> UInt64 {
            if held < count { fill() }
            return hold & (1 << UInt64(count) - 1)
        }

        @inline(__always)
        mutating func skip(_ count: Int) -> Bool {
            guard held >= count else { return false }
            hold >>= UInt64(count)
            held -= count
            return true
        }

        @inline(__always)
        mutating func bits(_ count: Int) -> Int? {
            let value = peek(count)
            return skip(count) ? Int(value) : nil
        }

        mutating func run() {
            while output.count < limit {
                guard let isLast = bits(1), let kind = bits(2) else { return }
                let isWhole =
                    switch kind {
                    case 0: stored()
                    case 1: compressed(Self.fixedLiterals, Self.fixedDistances)
                    case 2: dynamic()
                    default: false
                    }
                if !isWhole || isLast == 1 { return }
            }
        }

        private mutating func stored() -> Bool {
            _ = skip(held % 8)
            guard let length = bits(16), let check = bits(16), length == ~check & 0xFFFF else { return false }
            for _ in 0..<length {
                guard output.count < limit, let octet = bits(8) else { return false }
                output.append(UInt8(octet))
            }
            return true
        }

        private static let fixedLiterals = Code(
            lengths: ([UInt8](repeating: 8, count: 144) + [UInt8](repeating: 9, count: 112) + [UInt8](repeating: 7, count: 24)
                + [UInt8](repeating: 8, count: 8))[...])
        private static let fixedDistances = Code(lengths: [UInt8](repeating: 5, count: 30)[...])

        private mutating func dynamic() -> Bool {
            guard let literals = bits(5), let distances = bits(5), let codes = bits(4) else { return false }
            let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
            var lengths = [UInt8](repeating: 0, count: 19)
            for index in 0..<(codes + 4) {
                guard let length = bits(3) else { return false }
                lengths[order[index]] = UInt8(length)
            }
            guard let code = Code(lengths: lengths[...]) else { return false }
            let total = literals + 257 + distances + 1
            var all: [UInt8] = []
            while all.count < total {
                guard let symbol = code.read(&self) else { return false }
                switch symbol {
                case 0..<16: all.append(UInt8(symbol))
                case 16:
                    guard let last = all.last, let more = bits(2) else { return false }
                    all += [UInt8](repeating: last, count: more + 3)
                case 17:
                    guard let more = bits(3) else { return false }
                    all += [UInt8](repeating: 0, count: more + 3)
                default:
                    guard let more = bits(7) else { return false }
                    all += [UInt8](repeating: 0, count: more + 11)
                }
            }
            guard all.count == total else { return false }
            return compressed(Code(lengths: all[..<(literals + 257)]), Code(lengths: all[(literals + 257)...]))
        }

        private static let lengthBases = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
        ]
        private static let lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
        private static let distanceBases = [
            1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
            8193, 12289, 16385,
            24577,
        ]
        private static let distanceBits = [
            0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
        ]

        private mutating func compressed(_ literals: Code?, _ distances: Code?) -> Bool {
            guard let literals, let distances else { return false }
            while output.count < limit {
                guard let symbol = literals.read(&self) else { return false }
                if symbol < 256 {
                    output.append(UInt8(symbol))
                    continue
                }
                if symbol == 256 { return true }
                let number = symbol - 257
                guard number < Self.lengthBases.count, let extra = bits(Self.lengthBits[number]),
                    let code = distances.read(&self),
                    code < Self.distanceBases.count, let more = bits(Self.distanceBits[code])
                else { return false }
                let distance = Self.distanceBases[code] + more
                guard distance <= output.count else { return false }
                var from = output.count - distance
                for _ in 0..<(Self.lengthBases[number] + extra) {
                    output.append(output[from])
                    from += 1
                }
            }
            return false
        }
    }
}
