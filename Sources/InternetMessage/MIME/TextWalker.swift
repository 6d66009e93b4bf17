// Decodes the text of a message while its body arrives, and returns it in stretches. The body need
// not be kept.

import Support

/// A stretch of the text of one part.
package struct TextStretch: Sendable {
    /// The part; the range of its body is not yet known. For loose text: the multipart around it.
    package let part: MIMEPart
    /// Ordinal of the part among all entities of the message, from 0 (the message itself).
    package let ordinal: Int
    /// Decoded from the transfer encoding, in the charset of the part; unchanged if the encoding is
    /// unknown.
    package let octets: [UInt8]
    /// The number of octets at the start that repeat the end of the previous stretch.
    package let overlap: Int
    /// Index of the first octet in the part's decoded text.
    package let start: Int
    /// Whether this is the last stretch of the part.
    package let isLast: Bool
    /// Whether this is not a part but text before, between or after the parts of a multipart, which
    /// programs do not show.
    package let isLoose: Bool
    /// Transfer encoding defects so far.
    package let defects: Set<TransferDefect>
}

/// Reads a body in chunks of any size and returns its texts: the leaves that the caller wants,
/// including those of attached messages. It finds the same parts as `MIMEPart.parse`.
///
///     var walker = TextWalker(header: header) { PartKind.isText($0.contentType) }
///     // as the body passes
///     for stretch in walker.feed(chunk) { … }
///     // at the end of data
///     for stretch in walker.finish() { … }
///     if walker.stop != nil { … }
///
/// Most texts are one stretch. A longer text comes in several. Each begins with the end of the
/// previous one (`overlap` octets), so that text no longer than the overlap is complete in one of
/// them. Text within the overlap was already in the previous stretch.
///
/// Keeps at most a stretch, its overlap, and the incomplete header section or line. The length of a
/// text is not limited. Two kinds are not parsed: messages in a transfer encoding, which are
/// returned unchanged, and files that are not text.
package struct TextWalker {
    /// Encoded octets of a part after which a stretch is returned.
    package static let stretch = 16_384
    /// Maximum octets of decoded text that the next stretch repeats; at least half as many are
    /// repeated.
    package static let overlap = 1_024

    private var parser: MIMEParser<TextCollector>
    /// Octets that the parser needs again, and the index of the first.
    private var carry: [UInt8] = []
    private var carryStart = 0
    /// Octets of the body received so far.
    private var count = 0

    /// - Parameters:
    ///   - header: of the message.
    ///   - isWanted: whether the text of a leaf (or of a composite that is not parsed) is returned.
    package init(header: HeaderSection, isWanted: @escaping (MIMEPart) -> Bool) {
        parser = MIMEParser(header, base: 0, visitor: TextCollector(isWanted: isWanted))
    }

    /// The reason why reading stopped, if it did. The text after it is not returned. Real mail
    /// never causes this.
    package var stop: MIMEStop? { parser.stop }

    /// The defects of all entities that were read so far.
    package var defects: Set<MIMEDefect> {
        parser.visitor.defects.union(parser.root?.defects ?? [])
    }

    /// Takes the next octets.
    package mutating func feed(_ chunk: UnsafeRawBufferPointer) -> [TextStretch] {
        var rest: UnsafeBufferPointer<UInt8> = chunk.assumingMemoryBound(to: UInt8.self)
        // Completes the remaining octets line by line, until the chunk can be read in place.
        while !rest.isEmpty, !carry.isEmpty {
            let lineFeed = rest.firstIndex(of: 0x0A)
            let part: UnsafeBufferPointer<UInt8> = UnsafeBufferPointer(
                rebasing: rest[..<(lineFeed.map { $0 + 1 } ?? rest.count)])
            carry += part
            count += part.count
            rest = UnsafeBufferPointer(rebasing: rest[part.count...])
            let kept = carry.withUnsafeBufferPointer {
                parser.take($0, at: carryStart, isLast: false)
            }
            carry.removeFirst(kept - carryStart)
            carryStart = kept
        }
        if !rest.isEmpty {
            let kept = parser.take(rest, at: count, isLast: false)
            carry += rest[(kept - count)...]
            carryStart = kept
            count += rest.count
        }
        if parser.stop != nil { carry = [] }
        return parser.visitor.handOver()
    }

    /// Ends the body. Call it once.
    package mutating func finish() -> [TextStretch] {
        _ = carry.withUnsafeBufferPointer {
            parser.take($0, at: carry.isEmpty ? count : carryStart, isLast: true)
        }
        return parser.visitor.handOver()
    }
}

/// Decodes the text of one part at a time.
struct TextCollector: MIMEVisitor {
    static let keepsTree = false
    static let wantsContent = true

    private let isWanted: (MIMEPart) -> Bool
    private(set) var defects: Set<MIMEDefect> = []
    private var begun = 0
    private var open: [(part: MIMEPart, ordinal: Int, isWanted: Bool)] = []
    private var text: Text?
    private var ready: [TextStretch] = []

    init(isWanted: @escaping (MIMEPart) -> Bool) { self.isWanted = isWanted }

    mutating func begin(_ part: MIMEPart) {
        endText()
        open.append((part, begun, isWanted(part)))
        begun += 1
    }

    mutating func end(_ part: MIMEPart) {
        endText()
        if !part.defects.isEmpty { defects.formUnion(part.defects) }
        open.removeLast()
    }

    mutating func content(_ octets: UnsafeBufferPointer<UInt8>, isLoose: Bool) {
        guard let innermost = open.last, isLoose || innermost.isWanted else { return }
        if text == nil { text = Text(innermost.part, ordinal: innermost.ordinal, isLoose: isLoose) }
        text?.take(octets, into: &ready)
    }

    mutating func delimiter() { endText() }

    private mutating func endText() {
        text?.finish(into: &ready)
        text = nil
    }

    mutating func handOver() -> [TextStretch] {
        guard !ready.isEmpty else { return [] }
        defer { ready = [] }
        return ready
    }

    /// The text of one part that was not yet returned.
    private struct Text {
        let part: MIMEPart
        let ordinal: Int
        let isLoose: Bool
        private let encoding: TransferEncoding
        private let isWide: Bool
        private var raw: [UInt8] = []
        private var base64 = Base64.Decoder()
        private var defects: Set<TransferDefect> = []
        /// The end of the last stretch, which the next one repeats.
        private var tail: [UInt8] = []
        /// Octets of decoded text before `raw`.
        private var count = 0

        init(_ part: MIMEPart, ordinal: Int, isLoose: Bool) {
            self.part = part
            self.ordinal = ordinal
            self.isLoose = isLoose
            encoding = isLoose ? .binary : part.transferEncoding
            let charset = part.contentType.charset ?? ""
            isWide =
                charset.hasPrefix("utf-16") || charset.hasPrefix("utf-32")
                || charset.hasPrefix("utf16")
                || charset.hasPrefix("ucs")
        }

        mutating func take(_ octets: UnsafeBufferPointer<UInt8>, into ready: inout [TextStretch]) {
            var rest = octets[...]
            while !rest.isEmpty {
                let step = rest.prefix(max(0, TextWalker.stretch - raw.count))
                raw += step
                rest = rest.dropFirst(step.count)
                if raw.count >= TextWalker.stretch { handOut(isLast: false, into: &ready) }
            }
        }

        mutating func finish(into ready: inout [TextStretch]) {
            guard !raw.isEmpty || !tail.isEmpty else { return }
            handOut(isLast: true, into: &ready)
        }

        private mutating func handOut(isLast: Bool, into ready: inout [TextStretch]) {
            let overlap = tail.count
            var octets = tail
            switch encoding {
            case .base64:
                base64.feed(raw, into: &octets)
                if isLast { base64.finish(into: &octets) }
                defects.formUnion(base64.defects)
                raw.removeAll(keepingCapacity: true)
            case .quotedPrintable:
                let end = isLast ? raw.count : QuotedPrintable.lastCut(in: raw)
                let decoded = DecodedText(quotedPrintable: raw[..<end])
                if octets.isEmpty { octets = decoded.bytes } else { octets += decoded.bytes }
                defects.formUnion(decoded.defects)
                raw.removeFirst(end)
            case .sevenBit, .eightBit, .binary, .unknown:
                if octets.isEmpty { swap(&octets, &raw) } else { octets += raw }
                raw.removeAll(keepingCapacity: true)
            }
            let start = count - overlap
            count += octets.count - overlap
            ready.append(
                TextStretch(
                    part: part, ordinal: ordinal, octets: octets, overlap: overlap, start: start,
                    isLast: isLast,
                    isLoose: isLoose,
                    defects: defects))
            guard !isLast else { return }
            tail = Array(octets[tailStart(octets, start: start)...])
        }

        /// The start of the repeated octets. It is the start of a line if there is one, as stateful
        /// charsets begin again there; for wide characters, it is the start of a character.
        private func tailStart(_ octets: [UInt8], start: Int) -> Int {
            let earliest = max(0, octets.count - TextWalker.overlap)
            let latest = max(earliest, octets.count - TextWalker.overlap / 2)
            guard !isWide else {
                return min(octets.count, earliest + (4 - (start + earliest) % 4) % 4)
            }
            return octets[earliest..<latest].firstIndex(of: 0x0A).map { $0 + 1 } ?? earliest
        }
    }
}

extension Base64.Decoder {
    /// Decodes octets.
    mutating func feed(_ text: [UInt8], into output: inout [UInt8]) {
        output.reserveCapacity(output.count + text.count / 4 * 3 + 3)
        text.withUnsafeBufferPointer { text in for octet in text { feed(octet, into: &output) } }
    }
}

extension QuotedPrintable {
    /// The place at which a text can be divided so that both sides together decode to the same as
    /// the whole: after its last line break, or otherwise before the last octet that begins a
    /// sequence. Never 0.
    static func lastCut(in raw: [UInt8]) -> Int {
        if let lineFeed = raw.lastIndex(of: 0x0A) { return lineFeed + 1 }
        // A possible start of an escape, white space and a possible soft line break belong to the
        // second side.
        var end = raw.count
        if end > 1, raw[end - 2] == UInt8(ascii: "=") { end -= 2 }
        while end > 0, raw[end - 1].isFoldingWhiteSpace || raw[end - 1] == UInt8(ascii: "=") {
            end -= 1
        }
        return end > 0 ? end : raw.count
    }
}
