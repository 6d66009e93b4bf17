// Ranges of addresses in a list, found by binary search.

/// The ranges and addresses among texts. Immutable.
struct AddressRanges: Sendable {
    private let ipv4: RangeTable<UInt32>
    private let ipv6: RangeTable<UInt128>

    /// The data of a table, each range as it was added, so that overlapping ranges
    /// can be removed separately.
    struct Source: Sendable {
        fileprivate var ipv4: [ClosedRange<UInt32>] = []
        fileprivate var ipv6: [ClosedRange<UInt128>] = []

        /// Number of ranges, each counted once.
        var count: Int { ipv4.count + ipv6.count }

        /// Removes ranges, then adds ranges; ignores texts that are neither addresses nor ranges.
        /// The result is in ascending order.
        mutating func change(adding: some Sequence<String>, removing: some Sequence<String>) {
            let (removed, added) = (Source(reading: removing), Source(reading: adding))
            Self.change(&ipv4, removed.ipv4, added.ipv4)
            Self.change(&ipv6, removed.ipv6, added.ipv6)
        }

        init() {}

        fileprivate init(reading texts: some Sequence<String>) {
            for text in texts {
                guard let (bounds, isIPv4) = AddressRanges.bounds(text) else { continue }
                if isIPv4 {
                    ipv4.append(
                        UInt32(
                            truncatingIfNeeded: bounds.lowerBound)...UInt32(
                                truncatingIfNeeded: bounds.upperBound))
                } else {
                    ipv6.append(bounds)
                }
            }
        }

        private static func change<Bound: Hashable>(
            _ ranges: inout [ClosedRange<Bound>], _ removed: [ClosedRange<Bound>],
            _ added: [ClosedRange<Bound>]
        ) {
            if !removed.isEmpty {
                let gone = Set(removed)
                ranges.removeAll { gone.contains($0) }
            }
            guard !added.isEmpty else { return }
            ranges += added
            ranges.sort { ($0.lowerBound, $0.upperBound) < ($1.lowerBound, $1.upperBound) }
            var kept = 0
            for range in ranges where kept == 0 || ranges[kept - 1] != range {
                ranges[kept] = range
                kept += 1
            }
            ranges.removeLast(ranges.count - kept)
        }
    }

    /// Nil if no text is an address or a range; other texts are ignored.
    init?(_ texts: some Sequence<String>) {
        let source = Source(reading: texts)
        guard source.count > 0 else { return nil }
        self.init(source)
    }

    init(_ source: Source) {
        (ipv4, ipv6) = (RangeTable(source.ipv4), RangeTable(source.ipv6))
    }

    /// Whether an address or a range is completely inside; nil for other texts.
    func contain(_ text: String) -> Bool? {
        guard let (bounds, isIPv4) = Self.bounds(text) else { return nil }
        guard isIPv4 else { return ipv6.contains(bounds) }
        return ipv4.contains(
            UInt32(
                truncatingIfNeeded: bounds.lowerBound)...UInt32(
                    truncatingIfNeeded: bounds.upperBound))
    }

    private static func bounds(_ text: String) -> (ClosedRange<UInt128>, isIPv4: Bool)? {
        var text = text
        return text.withUTF8 { octets in
            // Most other texts begin with a character that no address begins with, or are longer.
            guard octets.count <= 49, let first = octets.first, first == 0x3A || first.isHexDigit
            else { return nil }
            if let address = CELAddress.read(octets) {
                return (address.bits...address.bits, address.isIPv4)
            }
            return CELNetwork.read(octets).map { ($0.bounds, $0.address.isIPv4) }
        }
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        (0x30...0x39).contains(self) || (0x41...0x46).contains(self & ~0x20)
    }
}

/// Ranges that neither touch nor overlap, in ascending order.
private struct RangeTable<Bound: FixedWidthInteger & UnsignedInteger & Sendable>: Sendable {
    private let starts: [Bound]
    private let ends: [Bound]
    /// By the highest bits of a start's distance from the first start: the index of the first such
    /// start, so that few starts are left to search.
    private let buckets: [Int32]
    /// Number of lower bits of a distance, which do not select the bucket.
    private let shift: Int

    /// Maximum number of bits that select a bucket: the table fits into a processor's cache.
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
            while buckets.count <= Int(truncatingIfNeeded: (start - first) >> shift) {
                buckets.append(Int32(clamping: index))
            }
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
        // Finds the last start that is not above; it may be in an earlier bucket.
        while low < high {
            let middle = (low + high) / 2
            if starts[middle] <= range.lowerBound { low = middle + 1 } else { high = middle }
        }
        return range.upperBound <= ends[low - 1]
    }
}
