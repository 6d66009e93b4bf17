// Builds a body from ranges of the old one and new octets, without copying the unchanged octets.

struct PieceBuilder {
    let bytes: [UInt8]
    private var list: [ArraySlice<UInt8>] = []
    private(set) var isChanged = false

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The pieces; nil where nothing is new.
    var pieces: [ArraySlice<UInt8>]? { isChanged ? list : nil }

    mutating func copy(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        // Slices of another array are never joined: `append` adds those.
        if let last = list.indices.last, list[last].endIndex == range.lowerBound, isOwn[last] {
            list[last] = bytes[list[last].startIndex..<range.upperBound]
        } else {
            list.append(bytes[range])
            isOwn.append(true)
        }
    }

    /// Writes new octets in place of a range; nil copies the range.
    mutating func write(_ new: [UInt8]?, inPlaceOf range: Range<Int>) {
        guard let new else { return copy(range) }
        isChanged = true
        guard !new.isEmpty else { return }
        list.append(new[...])
        isOwn.append(false)
    }

    mutating func append(_ pieces: [ArraySlice<UInt8>]) {
        isChanged = true
        list += pieces
        isOwn += pieces.map { _ in false }
    }

    /// Whether a piece is a stretch of `bytes`.
    private var isOwn: [Bool] = []
}
