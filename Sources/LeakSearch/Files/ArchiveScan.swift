// Searches archives: every stream in one, and inner archives, within the budget of the message.

/// Not thread-safe: make one for each message.
package final class ArchiveScan {
    /// Levels of nested archives that are opened. Deeper ones are searched as octets.
    private static let maximumDepth = 3
    /// Octets of inner archives, which are kept complete in memory: at least this number, or this
    /// multiple of the outermost archive. A larger one exhausts the budget, as a message must not
    /// use more memory than mail of its size may (`ReplyMemory`).
    private static let innerOctets = 500_000
    private static let innerFactor = 4
    /// Units of work for each octet in which a PDF's strings are searched for.
    private static let stringWork = 2

    private let work: WorkBudget
    private let feeder: any StreamSearch
    private let makeFeeder: () -> any StreamSearch
    /// Octets of inner archives that may still be kept.
    private var room = 0
    private lazy var inflater = Inflater(work: work)
    private lazy var strings = PDFStrings(feeder: makeFeeder())

    /// - Parameter feeder: makes the search of octets, which charges the budget itself.
    package init(work: WorkBudget, feeder makeFeeder: @escaping () -> any StreamSearch) {
        self.work = work
        self.makeFeeder = makeFeeder
        feeder = makeFeeder()
    }

    /// Whether the unpacked content of an archive contains a name; false if the octets are not an
    /// archive.
    package func finds(in bytes: [UInt8]) -> Bool {
        room = max(Self.innerOctets, bytes.count * Self.innerFactor)
        return finds(in: bytes, depth: 0)
    }

    /// Whether octets may be an archive, so that they must be kept complete.
    package static func isArchive(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBufferPointer { !Archive.kinds(of: $0).isEmpty }
    }

    private func finds(in bytes: [UInt8], depth: Int) -> Bool {
        guard depth < Self.maximumDepth else { return false }
        work.charge(bytes.count)
        let kinds = bytes.withUnsafeBufferPointer { Archive.kinds(of: $0) }
        return kinds.contains { finds(in: bytes, $0, depth: depth) }
    }

    private func finds(in bytes: [UInt8], _ kind: Archive, depth: Int) -> Bool {
        work.charge(bytes.count)
        if kind == .pdf {
            let isFound = bytes.withUnsafeBufferPointer { all in
                strings.feed(all)
                return strings.finish()
            }
            work.charge(bytes.count * Self.stringWork)
            if isFound { return true }
        }
        for start in kind.deflated(in: bytes) {
            var next: Int? = start
            while let start = next {
                guard !work.isSpent else { return false }
                let (isFound, end) = unpack(bytes, from: start, of: kind, depth: depth)
                if isFound { return true }
                next =
                    kind == .gzip ? end.flatMap { Archive.nextMember(in: bytes, after: $0) } : nil
            }
        }
        return false
    }

    /// Whether one stream contains a name, and the end of the stream.
    private func unpack(
        _ bytes: [UInt8], from start: Int, of kind: Archive, depth: Int
    ) -> (isFound: Bool, end: Int?) {
        var end: Int?
        var inner: [UInt8]?
        var isFirst = true
        bytes.withUnsafeBufferPointer { all in
            end = inflater.inflate(UnsafeBufferPointer(rebasing: all[start...])) { piece in
                if isFirst, depth + 1 < Self.maximumDepth, !Archive.kinds(of: piece).isEmpty {
                    inner = []
                }
                isFirst = false
                if inner != nil {
                    room -= piece.count
                    guard room >= 0 else {
                        work.exhaust()
                        return false
                    }
                    inner?.append(contentsOf: piece)
                }
                if kind == .pdf {
                    work.charge(piece.count * Self.stringWork)
                    strings.feed(piece)
                }
                feeder.feed(piece)
                return !feeder.isFound
            }
        }
        defer { room += inner?.count ?? 0 }
        let isFound = feeder.finish()
        if kind == .pdf, strings.finish() { return (true, nil) }
        if isFound { return (true, nil) }
        guard let inner, !work.isSpent else { return (false, end.map { start + $0 }) }
        return (finds(in: inner, depth: depth + 1), end.map { start + $0 })
    }
}
