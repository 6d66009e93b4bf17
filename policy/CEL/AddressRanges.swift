// Ranges of addresses in a list, found by halving.

/// The ranges and addresses among texts. Immutable.
struct AddressRanges: Sendable {
    private let ipv4: RangeTable<UInt32>
    private let ipv6: RangeTable<UInt128>

    /// Nil where no text is an address or a range of them; other texts are left out.
    init?(_ texts: some Sequence<String>) {
        var (four, six): ([ClosedRange<UInt32>], [ClosedRange<UInt128>]) = ([], [])
        for text in texts {
            guard let (bounds, isIPv4) = Self.bounds(text) else { continue }
            if isIPv4 {
                four.append(UInt32(truncatingIfNeeded: bounds.lowerBound)...UInt32(truncatingIfNeeded: bounds.upperBound))
            } else {
                six.append(bounds)
            }
        }
        guard !four.isEmpty || !six.isEmpty else { return nil }
        (ipv4, ipv6) = (RangeTable(four), RangeTable(six))
    }

    /// Whether an address or a range is wholly within; nil for another text.
    func contain(_ text: String) -> Bool? {
        guard let (bounds, isIPv4) = Self.bounds(text) else { return nil }
        guard isIPv4 else { return ipv6.contains(bounds) }
        return ipv4.contains(UInt32(truncatingIfNeeded: bounds.lowerBound)...UInt32(truncatingIfNeeded: bounds.upperBound))
    }

    private static func bounds(_ text: String) -> (ClosedRange<UInt128>, isIPv4: Bool)? {
        var text = text
        return text.withUTF8 { octets in
            // Most texts of other kinds begin with what no address does, or are longer.
            guard octets.count <= 49, let first = octets.first, first == 0x3A || first.isHexDigit else { return nil }
            if let address = CELAddress.read(octets) { return (address.bits...address.bits, address.isIPv4) }
            return CELNetwork.read(octets).map { ($0.bounds, $0.address.isIPv4) }
        }
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool { (0x30...0x39).contains(self) || (0x41...0x46).contains(self & ~0x20) }
}

/// Ranges that neither touch nor overlap, in ascending order.
private struct RangeTable<Bound: FixedWidthInteger & UnsignedInteger & Sendable>: Sendable {
    private let starts: [Bound]
    private let ends: [Bound]
    /// Where the starts begin whose distance from the first one has these highest bits, so that few are left to halve.
    private let buckets: [Int32]
    /// Bits of a distance below those that say its bucket.
    private let shift: Int

    /// Bits of a bucket at most: the table stays within a processor's cache.
    private static var longestBucket: Int { 16 }

    init(_ ranges: [ClosedRange<Bound>]) {
        var (starts, ends): ([Bound], [Bound]) = ([], [])
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = ends.last, last == .max || range.lowerBound <= last + 1 {
                ends[ends.count - 1] = max(last, range.upperBound)
            } else {
                starts.append(range.lowerBound)
                ends.append(range.upperBound)
            }
        }
        let first = starts.first ?? 0
        let span = (starts.last ?? 0) - first
        let bits = min(Self.longestBucket, Int.bitWidth - starts.count.leadingZeroBitCount)
        shift = max(0, Bound.bitWidth - span.leadingZeroBitCount - bits)
        var buckets: [Int32] = []
        for (index, start) in starts.enumerated() {
            while buckets.count <= Int(truncatingIfNeeded: (start - first) >> shift) { buckets.append(Int32(clamping: index)) }
        }
        buckets.append(Int32(clamping: starts.count))
        (self.starts, self.ends, self.buckets) = (starts, ends, buckets)
    }

    func contains(_ range: ClosedRange<Bound>) -> Bool {
        guard let first = starts.first, first <= range.lowerBound else { return false }
        let bucket = (range.lowerBound - first) >> shift
        var (low, high) = (starts.count, starts.count)
        if bucket < Bound(buckets.count - 1) {
            let bucket = Int(truncatingIfNeeded: bucket)
            (low, high) = (Int(buckets[bucket]), Int(buckets[bucket + 1]))
        }
        // The last start that is not above; it may be of an earlier bucket.
        while low < high {
            let middle = (low + high) / 2
            if starts[middle] <= range.lowerBound { low = middle + 1 } else { high = middle }
        }
        return range.upperBound <= ends[low - 1]
    }
}
