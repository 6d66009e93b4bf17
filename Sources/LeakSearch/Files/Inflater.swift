// Deflate (RFC 1951), reading only: the output is passed on in pieces, and every step is charged.

/// Unpacks one stream after another with the same memory. Not thread-safe.
package final class Inflater {
    /// How far back a stream may refer, how much is passed on at once, and the most that one symbol stands for, in octets.
    private static let window = 32_768
    private static let chunk = 65_536
    private static let longest = 258

    // Units of work: to begin a stream, to build the codes of a block, and for each octet read and written.
    private static let beginning = 1_500
    private static let block = 100
    private static let codes = 3_500
    private static let input = 2
    private static let output = 2
    /// For a symbol whose code is too long for the table.
    private static let longCode = 24

    private let work: WorkBudget
    private let buffer = OctetBuffer(capacity: window + chunk + longest)
    /// Octets of the buffer that were already passed on.
    private var handedOn = 0
    private let literals = HuffmanCode()
    private let distances = HuffmanCode()
    private let lengths = HuffmanCode()
    private let fixedLiterals = HuffmanCode()
    private let fixedDistances = HuffmanCode()

    package init(work: WorkBudget) {
        self.work = work
        _ = fixedLiterals.build(
            [UInt8](repeating: 8, count: 144) + [UInt8](repeating: 9, count: 112) + [UInt8](repeating: 7, count: 24)
                + [UInt8](repeating: 8, count: 8))
        _ = fixedDistances.build([UInt8](repeating: 5, count: 30))
    }

    /// Unpacks a stream. Of damaged or truncated data, passes on what precedes the damage.
    /// - Parameter sink: takes the next octets; returns whether to go on.
    /// - Returns: how many octets the stream takes; nil where it was not read to its end.
    package func inflate(_ input: UnsafeBufferPointer<UInt8>, to sink: (UnsafeBufferPointer<UInt8>) -> Bool) -> Int? {
        var bits = BitReader(input)
        buffer.count = 0
        handedOn = 0
        work.charge(Self.beginning)
        var charged = 0
        var isAtEnd = false
        while !work.isSpent {
            guard let isLast = bits.take(1), let kind = bits.take(2) else { break }
            let isWhole =
                switch kind {
                case 0: stored(&bits, sink)
                case 1: compressed(&bits, fixedLiterals, fixedDistances, sink)
                case 2: dynamic(&bits, sink)
                default: false
                }
            work.charge(Self.block + (bits.position - charged) * Self.input)
            charged = bits.position
            isAtEnd = isWhole && isLast == 1
            if !isWhole || isAtEnd { break }
        }
        let goesOn = handOn(sink)
        return isAtEnd && goesOn ? bits.end : nil
    }

    /// Passes on the new octets, and keeps those that may be referred to.
    private func handOn(_ sink: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        let piece = UnsafeBufferPointer(start: buffer.base + handedOn, count: buffer.count - handedOn)
        guard !piece.isEmpty else { return !work.isSpent }
        work.charge(piece.count * Self.output)
        let goesOn = sink(piece)
        let kept = min(Self.window, buffer.count)
        buffer.base.update(from: buffer.base + (buffer.count - kept), count: kept)
        buffer.count = kept
        handedOn = kept
        return goesOn && !work.isSpent
    }

    private func stored(_ bits: inout BitReader, _ sink: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        guard
            let source = bits.octets(of: { bits in
                guard let length = bits.take(16), let check = bits.take(16), length == ~check & 0xFFFF else { return nil }
                return length
            })
        else { return false }
        // A whole block fits into the buffer once the earlier content is passed on.
        if buffer.count + source.octets.count > buffer.capacity, !handOn(sink) { return false }
        if let start = source.octets.baseAddress { (buffer.base + buffer.count).update(from: start, count: source.octets.count) }
        buffer.count += source.octets.count
        return source.isWhole
    }

    private static let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    private func dynamic(_ bits: inout BitReader, _ sink: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        work.charge(Self.codes)
        guard let literalCount = bits.take(5), let distanceCount = bits.take(5), let count = bits.take(4) else { return false }
        var own = [UInt8](repeating: 0, count: 19)
        for index in 0..<(count + 4) {
            guard let length = bits.take(3) else { return false }
            own[Self.order[index]] = UInt8(length)
        }
        guard lengths.build(own) else { return false }
        let total = literalCount + 257 + distanceCount + 1
        var all: [UInt8] = []
        all.reserveCapacity(total + 138)
        var slow = 0
        while all.count < total {
            let symbol = lengths.read(&bits, &slow)
            switch symbol {
            case 0..<16: all.append(UInt8(symbol))
            case 16:
                guard let last = all.last, let more = bits.take(2) else { return false }
                all.append(contentsOf: repeatElement(last, count: more + 3))
            case 17:
                guard let more = bits.take(3) else { return false }
                all.append(contentsOf: repeatElement(0, count: more + 3))
            case 18:
                guard let more = bits.take(7) else { return false }
                all.append(contentsOf: repeatElement(0, count: more + 11))
            default: return false
            }
        }
        guard all.count == total, literals.build(Array(all[..<(literalCount + 257)])),
            distances.build(Array(all[(literalCount + 257)...]))
        else { return false }
        return compressed(&bits, literals, distances, sink)
    }

    private static let lengthBases: [Int] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
    ]
    private static let lengthBits: [Int] = [
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
    ]
    private static let distanceBases: [Int] = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193,
        12289,
        16385, 24577,
    ]
    private static let distanceBits: [Int] = [
        0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
    ]

    private func compressed(
        _ source: inout BitReader, _ literals: HuffmanCode, _ distances: HuffmanCode, _ sink: (UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Bool {
        // Local copies: access through a property of the object would cost a check for every octet.
        var bits = source
        let base = buffer.base
        var count = buffer.count
        var slow = 0
        defer {
            source = bits
            buffer.count = count
            work.charge(slow * Self.longCode)
        }
        while true {
            if count >= Self.window + Self.chunk {
                buffer.count = count
                work.charge(slow * Self.longCode)
                slow = 0
                let goesOn = handOn(sink)
                count = buffer.count
                guard goesOn else { return false }
            }
            let symbol = literals.read(&bits, &slow)
            if symbol < 256 {
                guard symbol >= 0 else { return false }
                base[count] = UInt8(truncatingIfNeeded: symbol)
                count += 1
                continue
            }
            if symbol == 256 { return true }
            let number = symbol - 257
            guard number < Self.lengthBases.count, let extra = bits.take(Self.lengthBits[number]) else { return false }
            let far = distances.read(&bits, &slow)
            guard far >= 0, far < Self.distanceBases.count, let more = bits.take(Self.distanceBits[far]) else { return false }
            let distance = Self.distanceBases[far] + more
            guard distance <= count else { return false }
            let length = Self.lengthBases[number] + extra
            let from = base + (count - distance)
            let to = base + count
            if distance >= length {
                to.update(from: from, count: length)
            } else if distance == 1 {
                to.update(repeating: from[0], count: length)
            } else {
                for index in 0..<length { to[index] = from[index] }
            }
            count += length
        }
    }
}

/// Bits of octets, lowest first (RFC 1951 section 3.1.1).
struct BitReader {
    private let input: UnsafeBufferPointer<UInt8>
    /// Octets taken from the input so far, including those whose bits are still held.
    private(set) var position = 0
    private var hold: UInt64 = 0
    private var held = 0

    init(_ input: UnsafeBufferPointer<UInt8>) { self.input = input }

    /// Octets taken so far, without those of which no bit was read.
    var end: Int { position - held / 8 }

    @inline(__always)
    private mutating func fill() {
        while held <= 56, position < input.count {
            hold |= UInt64(input[position]) << UInt64(held)
            held += 8
            position += 1
        }
    }

    /// The next bits, at most 16, with zeros beyond the end; does not take them.
    @inline(__always)
    mutating func peek(_ count: Int) -> Int {
        if held < 16 { fill() }
        return Int(truncatingIfNeeded: hold & (1 << UInt64(count) - 1))
    }

    @inline(__always)
    mutating func skip(_ count: Int) -> Bool {
        guard held >= count else { return false }
        hold >>= UInt64(count)
        held -= count
        return true
    }

    /// The next bits, at most 16; nil where fewer are left.
    @inline(__always)
    mutating func take(_ count: Int) -> Int? {
        let value = peek(count)
        return skip(count) ? value : nil
    }

    /// Whole octets after the next boundary: as many as `count` reads there, or as there are; nil where `count` cannot be read.
    mutating func octets(of count: (inout BitReader) -> Int?) -> (octets: UnsafeBufferPointer<UInt8>, isWhole: Bool)? {
        _ = skip(held % 8)
        guard let wanted = count(&self) else { return nil }
        position -= held / 8
        hold = 0
        held = 0
        let end = min(input.count, position + wanted)
        defer { position = end }
        return (UnsafeBufferPointer(rebasing: input[position..<end]), end == position + wanted)
    }
}
