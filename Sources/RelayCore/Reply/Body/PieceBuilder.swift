// Builds a body from ranges of the old one and new octets, without copying the unchanged octets.

import LeakSearch

struct PieceBuilder {
    /// The kind of each stretch of the new body.
    private(set) var map = StretchMap()
    let bytes: [UInt8]
    private var list: [ArraySlice<UInt8>] = []
    private(set) var isChanged = false

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The pieces; nil if nothing is new.
    var pieces: [ArraySlice<UInt8>]? { isChanged ? list : nil }

    /// Copies lines that are not the text of a part.
    mutating func copy(_ range: Range<Int>, _ kind: StretchMap.Kind) {
        map.append(range.count, kind)
        copy(range)
    }

    /// Copies a text, a file or a multipart.
    mutating func copy(_ range: Range<Int>, _ part: StretchMap) {
        map.append(part)
        copy(range)
    }

    private mutating func copy(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        // Slices of another array are never joined; `append` adds those.
        if let last = list.indices.last, list[last].endIndex == range.lowerBound, isOwn[last] {
            list[last] = bytes[list[last].startIndex..<range.upperBound]
        } else {
            list.append(bytes[range])
            isOwn.append(true)
        }
    }

    /// Writes new octets in place of a range. If they are nil, copies the range.
    mutating func write(_ new: [UInt8]?, inPlaceOf range: Range<Int>, _ kind: StretchMap.Kind) {
        guard let new else { return copy(range, kind) }
        map.append(new.count, kind)
        isChanged = true
        guard !new.isEmpty else { return }
        list.append(new[...])
        isOwn.append(false)
    }

    /// Writes new octets in place of a range.
    mutating func write(_ new: [UInt8], inPlaceOf range: Range<Int>, _ part: StretchMap) {
        map.append(part)
        isChanged = true
        guard !new.isEmpty else { return }
        list.append(new[...])
        isOwn.append(false)
    }

    mutating func append(_ pieces: [ArraySlice<UInt8>], _ part: StretchMap) {
        map.append(part)
        isChanged = true
        list += pieces
        isOwn += pieces.map { _ in false }
    }

    /// Whether a piece is a stretch of `bytes`.
    private var isOwn: [Bool] = []
}
