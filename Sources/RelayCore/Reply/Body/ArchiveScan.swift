// Searches archives: every stream in one, and inner archives, as far as the budget of the message allows.

/// Not thread-safe: one for each message.
final class ArchiveScan {
    /// Levels of nested archives that are opened; deeper ones are searched as octets.
    private static let maximumDepth = 3
    /// Octets of inner archives, which are held whole: at least this number, or this multiple of the outermost archive. A
    /// larger one exhausts the budget: a message must not take more memory than mail of its size may (`ReplyMemory`).
    private static let innerOctets = 500_000
    private static let innerFactor = 4

    private let work: WorkBudget
    private let feeder: LeakFeeder
    private let makeFeeder: () -> LeakFeeder
    /// Octets of inner archives that may still be held.
    private var room = 0
    private lazy var inflater = Inflater(work: work)
    private lazy var strings = PDFHexStrings(feeder: makeFeeder())

    /// - Parameter feeder: makes the search of octets, which charges the budget itself.
    init(work: WorkBudget, feeder makeFeeder: @escaping () -> LeakFeeder) {
        self.work = work
        self.makeFeeder = makeFeeder
        feeder = makeFeeder()
    }

    /// Whether something is found in what an archive unpacks to; false where the octets are not an archive.
    func finds(in bytes: [UInt8]) -> Bool {
        room = max(Self.innerOctets, bytes.count * Self.innerFactor)
        return finds(in: bytes, depth: 0)
    }

    private func finds(in bytes: [UInt8], depth: Int) -> Bool {
        guard depth < Self.maximumDepth, let kind = Archive(bytes) else { return false }
        work.charge(bytes.count)
        if kind == .pdf {
            let isFound = bytes.withUnsafeBufferPointer { all in
                strings.feed(all)
                return strings.finish()
            }
            work.charge(bytes.count)
            if isFound { return true }
        }
        for start in kind.deflated(in: bytes) {
            guard !work.isSpent else { return false }
            if unpack(bytes, from: start, of: kind, depth: depth) { return true }
        }
        return false
    }

    private func unpack(_ bytes: [UInt8], from start: Int, of kind: Archive, depth: Int) -> Bool {
        var inner: [UInt8]?
        var isFirst = true
        bytes.withUnsafeBufferPointer { all in
            inflater.inflate(UnsafeBufferPointer(rebasing: all[start...])) { piece in
                if isFirst, depth + 1 < Self.maximumDepth, Archive(piece) != nil { inner = [] }
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
                    work.charge(piece.count)
                    strings.feed(piece)
                }
                feeder.feed(piece)
                return !feeder.isFound
            }
        }
        defer { room += inner?.count ?? 0 }
        let isFound = feeder.finish()
        if kind == .pdf, strings.finish() { return true }
        if isFound { return true }
        guard let inner, !work.isSpent else { return false }
        return finds(in: inner, depth: depth + 1)
    }
}
