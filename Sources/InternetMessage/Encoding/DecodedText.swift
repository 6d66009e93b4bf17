// A decoded body that knows the origin of each octet, so that one word can be changed and the rest
// stays unchanged.

/// Decoded octets with a map to the raw ones. The map grows with each irregularity,
/// not with each octet.
package struct DecodedText: Sendable {
    /// The decoded octets.
    package let bytes: [UInt8]
    /// The defects that the decoder tolerated.
    package let defects: Set<TransferDefect>
    /// The encoded octets, as given.
    package let raw: ArraySlice<UInt8>
    /// How `raw` is encoded.
    package let encoding: TransferEncoding

    /// A stretch of decoded octets. One rule relates them to their raw octets.
    struct Segment: Sendable {
        enum Kind: Sendable {
            /// One raw octet each.
            case literal
            /// Three raw octets each: `=XX`.
            case escape
            /// Four raw octets for three.
            case quads
            /// All of them together correspond to all the raw octets.
            case block
        }
        var decodedStart: Int
        var rawStart: Int
        var rawEnd: Int
        var kind: Kind
    }

    let segments: [Segment]

    init(
        bytes: [UInt8], defects: Set<TransferDefect>, raw: ArraySlice<UInt8>,
        encoding: TransferEncoding, segments: [Segment]
    ) {
        self.bytes = bytes
        self.defects = defects
        self.raw = raw
        self.encoding = encoding
        self.segments = segments
    }

    /// A body in 7bit, 8bit or binary.
    package init(identity body: ArraySlice<UInt8>) {
        let whole = Segment(
            decodedStart: 0, rawStart: body.startIndex, rawEnd: body.endIndex, kind: .literal)
        let segments = body.isEmpty ? [] : [whole]
        self.init(bytes: Array(body), defects: [], raw: body, encoding: .binary, segments: segments)
    }

    /// The index in `raw` of the first raw octet from which the decoded octet at `offset`
    /// (0…`bytes.count`) was read.
    ///
    /// In base64 that is the start of its group of four. For `bytes.count` it is the end of the
    /// last octet's raw form. An offset outside the text is moved to the nearest end.
    package func rawOffset(of offset: Int) -> Int {
        guard offset >= 0, !segments.isEmpty else { return raw.startIndex }
        guard offset < bytes.count else { return segments[segments.count - 1].rawEnd }
        return place(of: offset).raw.lowerBound
    }

    /// The smallest range of raw octets that covers the given decoded octets and decodes to
    /// complete octets. Returns both ranges. In base64 the decoded range may be wider than `range`.
    /// The range is clamped to the text.
    package func rawRange(of range: Range<Int>) -> (raw: Range<Int>, decoded: Range<Int>) {
        let clamped = range.clamped(to: 0..<bytes.count)
        guard let last = clamped.last else {
            let offset = rawOffset(of: clamped.lowerBound)
            return (offset..<offset, clamped)
        }
        let first = place(of: clamped.lowerBound)
        let end = place(of: last)
        return (
            first.raw.lowerBound..<end.raw.upperBound,
            first.decoded.lowerBound..<end.decoded.upperBound
        )
    }

    /// The unit of a decoded octet. `offset` is within `bytes`.
    private func place(of offset: Int) -> (raw: Range<Int>, decoded: Range<Int>) {
        var low = 0
        var high = segments.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if segments[middle].decodedStart <= offset { low = middle } else { high = middle }
        }
        let segment = segments[low]
        let end = low + 1 < segments.count ? segments[low + 1].decodedStart : bytes.count
        let index = offset - segment.decodedStart
        switch segment.kind {
        case .literal:
            let start = segment.rawStart + index
            return (start..<(start + 1), offset..<(offset + 1))
        case .escape:
            let start = segment.rawStart + 3 * index
            return (start..<(start + 3), offset..<(offset + 1))
        case .quads:
            let start = segment.rawStart + 4 * (index / 3)
            let decoded = segment.decodedStart + index / 3 * 3
            return (start..<(start + 4), decoded..<(decoded + 3))
        case .block:
            return (segment.rawStart..<segment.rawEnd, segment.decodedStart..<end)
        }
    }
}
