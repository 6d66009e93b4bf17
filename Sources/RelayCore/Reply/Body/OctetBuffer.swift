// Memory of a fixed size for the loops that see every octet of a message: no growth, no check of uniqueness for each octet.

/// Octets up to a capacity. Not thread-safe.
final class OctetBuffer {
    private(set) var base: UnsafeMutablePointer<UInt8>
    private(set) var capacity: Int
    /// Octets in use, at most `capacity`.
    var count = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        base = .allocate(capacity: self.capacity)
    }

    deinit { base.deallocate() }

    /// Makes room for so many octets. What is in use is lost where it has to grow.
    func reserve(_ wanted: Int) {
        guard wanted > capacity else { return }
        base.deallocate()
        capacity = wanted
        base = .allocate(capacity: wanted)
        count = 0
    }

    var contents: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: base, count: count) }
}

/// Numbers by the two octets that something begins with.
struct PairTable {
    private(set) var pairs = PairSet()
    /// The last number of each pair and one, then the one before it in `before`; 0 ends.
    private var last = [Int32](repeating: 0, count: 65_536)
    private var before: [Int32] = []

    /// Takes the next number: 0, 1, 2 …; nil leaves it out.
    mutating func append(_ pair: (UInt8, UInt8)?) {
        before.append(0)
        guard let pair else { return }
        pairs.insert(pair.0, pair.1)
        let index = Int(pair.0) << 8 | Int(pair.1)
        before[before.count - 1] = last[index]
        last[index] = Int32(before.count)
    }

    /// Calls back with each number of a pair, the last first, until it says true; whether it did.
    @inline(__always)
    func contains(_ first: UInt8, _ second: UInt8, where body: (Int) -> Bool) -> Bool {
        var number = Int(last[Int(first) << 8 | Int(second)])
        while number > 0 {
            if body(number - 1) { return true }
            number = Int(before[number - 1])
        }
        return false
    }
}

/// Which pairs of octets something begins with: 8 KB, so that asking costs no trip to memory.
struct PairSet {
    private var words = [UInt64](repeating: 0, count: 1_024)

    mutating func insert(_ first: UInt8, _ second: UInt8) {
        let pair = Int(first) << 8 | Int(second)
        words[pair >> 6] |= 1 << UInt64(pair & 63)
    }

    func contains(_ first: UInt8, _ second: UInt8) -> Bool {
        let pair = Int(first) << 8 | Int(second)
        return words[pair >> 6] >> UInt64(pair & 63) & 1 != 0
    }

    /// Calls back with each index at which a pair of the set stands, until it says true; whether it did.
    @inline(__always)
    func search(_ octets: UnsafeBufferPointer<UInt8>, _ body: (Int) -> Bool) -> Bool {
        guard octets.count >= 2, let base = octets.baseAddress else { return false }
        return words.withUnsafeBufferPointer { words in
            guard let words = words.baseAddress else { return false }
            var pair = Int(base[0])
            for index in 1..<octets.count {
                pair = (pair << 8 | Int(base[index])) & 0xFFFF
                if words[pair >> 6] >> UInt64(pair & 63) & 1 != 0, body(index - 1) { return true }
            }
            return false
        }
    }
}
