// Words that are searched for in a text by their first two octets.

/// Numbered words. The search time does not depend on their number.
struct WordTable {
    /// An octet of a word after its first two.
    private struct Node {
        let octet: UInt8
        /// The first node of the octets that may follow, and the next one that may
        /// be here instead; -1 for none.
        var child: Int32 = -1
        var sibling: Int32
        /// The last word that ends here, plus one; 0 for none.
        var word: Int32 = 0
    }

    private(set) var pairs = PairSet()
    private var nodes: [Node] = []
    /// By pair of octets: the first node after it, and the last word that is exactly this pair,
    /// each plus one; 0 for none.
    private var roots = PairTable()
    private var short: [Int: Int32] = [:]
    /// By word: the previous word that is the same, plus one; 0 for none.
    private var same: [Int32] = []

    /// Adds the next word, with number 0, 1, 2 …; a word of less than two octets is never found.
    mutating func append(_ octets: [UInt8]) {
        same.append(0)
        guard octets.count >= 2 else { return }
        let number = Int32(same.count)
        pairs.insert(octets[0], octets[1])
        let pair = Int(octets[0]) << 8 | Int(octets[1])
        guard octets.count > 2 else {
            same[same.count - 1] = short[pair] ?? 0
            short[pair] = number
            return
        }
        var first = roots[pair] - 1
        var last: Int32 = -1
        for octet in octets[2...] {
            var node = first
            while node >= 0, nodes[Int(node)].octet != octet { node = nodes[Int(node)].sibling }
            if node < 0 {
                node = Int32(nodes.count)
                nodes.append(Node(octet: octet, sibling: first))
                if last < 0 { roots.set(pair, node + 1) } else { nodes[Int(last)].child = node }
            }
            last = node
            first = nodes[Int(node)].child
        }
        same[same.count - 1] = nodes[Int(last)].word
        nodes[Int(last)].word = number
    }

    /// Calls `body` with each word at an index, shorter ones first, until it returns
    /// true; returns whether it did.
    /// - Parameter index: at least two octets must be there.
    @inline(__always)
    func contains(
        at index: Int, in octets: UnsafeBufferPointer<UInt8>, where body: (Int) -> Bool
    ) -> Bool {
        let pair = Int(octets[index]) << 8 | Int(octets[index + 1])
        if !short.isEmpty, let number = short[pair], call(number, body) { return true }
        var node = roots[pair] - 1
        guard node >= 0 else { return false }
        return nodes.withUnsafeBufferPointer { nodes in
            var at = index + 2
            while at < octets.count {
                let octet = octets[at]
                while node >= 0, nodes[Int(node)].octet != octet { node = nodes[Int(node)].sibling }
                guard node >= 0 else { return false }
                if nodes[Int(node)].word > 0, call(nodes[Int(node)].word, body) { return true }
                node = nodes[Int(node)].child
                at += 1
            }
            return false
        }
    }

    private func call(_ number: Int32, _ body: (Int) -> Bool) -> Bool {
        var number = number
        while number > 0 {
            if body(Int(number) - 1) { return true }
            number = same[Int(number) - 1]
        }
        return false
    }
}

/// A number for each pair of octets; 0 if none was set. Only first octets that occur have rows: all
/// rows would need 256 KB, and a message needs several tables.
private struct PairTable {
    /// By first octet: the start of its row; -1 for none.
    private var starts = [Int32](repeating: -1, count: 256)
    private var rows: [Int32] = []

    subscript(pair: Int) -> Int32 {
        let start = starts[pair >> 8]
        return start < 0 ? 0 : rows[Int(start) + (pair & 255)]
    }

    mutating func set(_ pair: Int, _ number: Int32) {
        if starts[pair >> 8] < 0 {
            starts[pair >> 8] = Int32(rows.count)
            rows += repeatElement(0, count: 256)
        }
        rows[Int(starts[pair >> 8]) + (pair & 255)] = number
    }
}

/// The pairs of octets that begin words: 8 KB, so that a look-up needs no access to main memory.
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

    /// Whether octets that may be text must be searched. True if they contain a pair of the set,
    /// ignoring white space and NUL, or a row of letters and digits that may be base64. Also true
    /// for text with marks that may represent other characters.
    func mayBegin(in octets: UnsafeBufferPointer<UInt8>, row limit: Int) -> Bool {
        words.withUnsafeBufferPointer { words in
            guard let words = words.baseAddress else { return false }
            var pair = 0
            var row = 0
            var (hasMark, isText) = (false, true)
            for octet in octets {
                guard octet > 0x20 else {
                    if octet > 0, octet < 9 || octet > 0x0D, octet < 0x20 { isText = false }
                    continue
                }
                let lower = octet.asciiLowercased
                pair = (pair << 8 | Int(lower)) & 0xFFFF
                if words[pair >> 6] >> UInt64(pair & 63) & 1 != 0 { return true }
                switch lower {
                case 0x61...0x7A, 0x30...0x39:
                    row += 1
                    if row == limit { return true }
                    continue
                case 0x25, 0x26, 0x3D, 0x5C: hasMark = true
                case 0x7F...: isText = false
                default: break
                }
                row = 0
            }
            return hasMark && isText
        }
    }

    /// Calls `body` with each index of a pair of the set, until it returns
    /// true; returns whether it did.
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
