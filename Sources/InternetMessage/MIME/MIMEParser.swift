// One pass over the lines of a body, with a stack of open entities (RFC 2046 section 5.1).

struct MIMEParser {
    private let buffer: UnsafeBufferPointer<UInt8>
    private let base: Int
    private var stack = [Frame]()
    private var partCount = 0

    private enum Phase {
        /// Lines belong to a header section that began at the offset.
        case header(Int)
        /// A leaf, or an opaque composite.
        case leaf
        case preamble
        case parts
        case epilogue
        /// message/rfc822: the nested message is the next frame.
        case message
    }

    private struct Frame {
        var part: MIMEPart
        var phase: Phase
        /// Nil unless a multipart is taken apart.
        var boundary: [UInt8]?
        /// The type of a part without Content-Type.
        var childDefault = ContentType.plainText
    }

    /// Offsets below are those of the buffer; `base` makes them indices of the caller's slice.
    init(_ buffer: UnsafeBufferPointer<UInt8>, base: Int) {
        self.buffer = buffer
        self.base = base
    }

    mutating func run(_ header: HeaderSection) -> MIMEPart {
        let part = MIMEPart(header: header, headerRange: base..<base, bodyStart: base, depth: 0, default: .plainText)
        stack = [Frame(part: part, phase: .leaf)]
        open(at: 0)
        var position = 0
        var isOverflowing = false
        while position < buffer.count, !isOverflowing {
            // A frame that holds only text, with no delimiter to wait for, ends at the end.
            guard needsLines else { break }
            let line = Line.next(in: buffer, at: position)
            if line.end - line.start >= 2, buffer[line.start] == 0x2D, buffer[line.start + 1] == 0x2D, let match = match(line) {
                isOverflowing = !take(match, line)
            } else if case .header(let start)? = stack.last?.phase, line.start == line.end {
                finishHeader(start, headerEnd: line.start, bodyStart: line.next)
            }
            position = line.next
        }
        close(downTo: 0, at: buffer.count, isDelimited: false)
        guard var root = stack.first?.part else { return part }
        if isOverflowing { root.defects.insert(.tooManyParts) }
        return root
    }

    private var needsLines: Bool {
        if case .header? = stack.last?.phase { return true }
        return stack.contains { $0.boundary != nil }
    }

    // MARK: Delimiters

    private struct Match {
        var frame: Int
        var isClosing: Bool
    }

    /// The innermost open multipart whose delimiter this line is.
    private mutating func match(_ line: Line) -> Match? {
        var found: Match?
        var prefixed: Int?
        let text = UnsafeBufferPointer(rebasing: buffer[(line.start + 2)..<line.end])
        for index in stack.indices.reversed() {
            guard let boundary = stack[index].boundary, text.count >= boundary.count,
                text.starts(with: boundary)
            else { continue }
            var rest = boundary.count
            let isClosing = text.count >= rest + 2 && text[rest] == 0x2D && text[rest + 1] == 0x2D
            if isClosing { rest += 2 }
            guard text[rest...].allSatisfy(\.isWhiteSpace) else {
                prefixed = prefixed ?? index
                continue
            }
            if case .epilogue = stack[index].phase {
                stack[index].part.defects.insert(.delimiterInEpilogue)
                continue
            }
            if found == nil {
                found = Match(frame: index, isClosing: isClosing)
            } else {
                stack[index].part.defects.insert(.ambiguousDelimiter)
            }
        }
        if let prefixed { stack[prefixed].part.defects.insert(.delimiterPrefix) }
        return found
    }

    /// Ends what the delimiter ends and begins what it begins. False where there are too many parts: then nothing was done.
    private mutating func take(_ match: Match, _ line: Line) -> Bool {
        if !match.isClosing {
            guard partCount < MIMEPart.maximumPartCount else { return false }
        }
        close(downTo: match.frame + 1, at: line.start, isDelimited: true)
        if case .preamble = stack[match.frame].phase {
            let start = stack[match.frame].part.bodyRange.lowerBound
            stack[match.frame].part.preamble = start..<(base + endBefore(line.start, from: start - base))
        }
        if match.isClosing {
            stack[match.frame].phase = .epilogue
            stack[match.frame].part.epilogue = (base + line.next)..<(base + line.next)
        } else {
            stack[match.frame].phase = .parts
            push(at: line.next, default: stack[match.frame].childDefault)
        }
        return true
    }

    /// The end of text before a delimiter line: the line break before the delimiter belongs to the delimiter.
    private func endBefore(_ lineStart: Int, from start: Int) -> Int {
        guard lineStart > start, buffer[lineStart - 1] == 0x0A else { return max(start, lineStart) }
        return lineStart - 1 > start && buffer[lineStart - 2] == 0x0D ? lineStart - 2 : lineStart - 1
    }

    // MARK: Entities

    /// Begins a part whose header starts at `offset`.
    private mutating func push(at offset: Int, default contentType: ContentType) {
        partCount += 1
        let depth = stack.count
        let at = base + offset
        let part = MIMEPart(header: HeaderSection(), headerRange: at..<at, bodyStart: at, depth: depth, default: contentType)
        stack.append(Frame(part: part, phase: .header(offset), childDefault: contentType))
    }

    /// Parses the header section of the innermost entity and opens its body.
    private mutating func finishHeader(_ start: Int, headerEnd: Int, bodyStart: Int) {
        guard let frame = stack.popLast() else { return }
        let section = UnsafeBufferPointer(rebasing: buffer[start..<headerEnd])
        let parsed = HeaderSection.parse(section, base: base + start)
        var part = MIMEPart(
            header: parsed.header, headerRange: (base + start)..<(base + headerEnd), bodyStart: base + bodyStart,
            depth: frame.part.depth, default: frame.childDefault)
        // Where a delimiter ends the header its last line break is the delimiter's; `.unterminatedHeader` tells that.
        part.headerDefects = parsed.defects.subtracting([.unterminatedLine])
        if !part.headerDefects.isEmpty { part.defects.insert(.malformedHeader) }
        stack.append(Frame(part: part, phase: .leaf))
        open(at: bodyStart)
    }

    /// Looks at the innermost entity's type and prepares for its body, which begins at `offset`.
    private mutating func open(at offset: Int) {
        guard var frame = stack.popLast() else { return }
        let type = frame.part.contentType
        let isMultipart = type.matches("multipart")
        let isMessage = type.matches("message", "rfc822") || type.matches("message", "global") || type.matches("message", "news")
        guard isMultipart || isMessage else { return stack.append(frame) }
        if !frame.part.transferEncoding.isIdentity { frame.part.defects.insert(.encodedComposite) }
        guard stack.count < MIMEPart.maximumDepth else {
            frame.part.defects.insert(.tooDeep)
            return stack.append(frame)
        }
        if isMultipart {
            openMultipart(&frame)
            stack.append(frame)
        } else if frame.part.transferEncoding.isIdentity, partCount < MIMEPart.maximumPartCount {
            frame.phase = .message
            stack.append(frame)
            push(at: offset, default: .plainText)
        } else {
            stack.append(frame)
        }
    }

    private func openMultipart(_ frame: inout Frame) {
        let type = frame.part.contentType
        // The parameter defects do not say which parameter they mean; a false alarm costs nothing here.
        if type.defects.contains(.duplicate) || type.defects.contains(.plainAndExtended) {
            frame.part.defects.insert(.ambiguousBoundaryParameter)
        }
        guard let boundary = type.boundary, !boundary.isEmpty else {
            frame.part.defects.insert(.missingBoundary)
            return
        }
        let isProper = boundary.count <= 70 && boundary.last != 0x20
            && boundary.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "'()+_,-./:=? ".utf8.contains($0) }
        if !isProper { frame.part.defects.insert(.invalidBoundary) }
        frame.boundary = boundary
        frame.phase = .preamble
        if type.subtype == "digest" { frame.childDefault = .message }
    }

    /// Ends all entities from index `first` on (the root is never removed) at the line that begins at `end`.
    private mutating func close(downTo first: Int, at end: Int, isDelimited: Bool) {
        // A part that ends within its header has one all the same, and that may open another entity.
        while case .header(let start)? = stack.last?.phase {
            let limit = isDelimited ? endBefore(end, from: start) : end
            let count = stack.count
            finishHeader(start, headerEnd: limit, bodyStart: limit)
            stack[count - 1].part.defects.insert(.unterminatedHeader)
        }
        while stack.count > max(first, 1) {
            guard var frame = stack.popLast() else { return }
            finish(&frame, at: end, isDelimited: isDelimited)
            stack[stack.count - 1].part.children.append(frame.part)
        }
        if first == 0, !stack.isEmpty { finish(&stack[0], at: end, isDelimited: isDelimited) }
    }

    private func finish(_ frame: inout Frame, at lineStart: Int, isDelimited: Bool) {
        let start = frame.part.bodyRange.lowerBound
        let end = isDelimited ? base + endBefore(lineStart, from: start - base) : base + lineStart
        // The empty line after a last child's header may be the line break before this delimiter too.
        frame.part.bodyRange = start..<max(start, end, frame.part.children.last?.bodyRange.upperBound ?? start)
        switch frame.phase {
        case .preamble:
            frame.part.defects.insert(.noParts)
            frame.part.preamble = frame.part.bodyRange
        case .parts:
            frame.part.defects.insert(.missingClosingBoundary)
        case .epilogue:
            if let epilogue = frame.part.epilogue {
                frame.part.epilogue = epilogue.lowerBound..<max(epilogue.lowerBound, end)
            }
        case .header, .leaf, .message: break
        }
    }
}
