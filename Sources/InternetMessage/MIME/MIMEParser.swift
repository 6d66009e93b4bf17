// One pass over the lines of a body, with a stack of open entities (RFC 2046 section 5.1). The
// body may come in pieces.

/// Receives a body's entities as they arrive, in the order of the message.
protocol MIMEVisitor {
    /// Whether the parser builds the tree of `MIMEPart`.
    static var keepsTree: Bool { get }
    /// Whether `content` is called.
    static var wantsContent: Bool { get }
    /// The header section of an entity has ended; its body range is still empty.
    mutating func begin(_ part: MIMEPart)
    /// The next octets of the innermost open entity's body, still encoded: of a leaf, or of the
    /// text around the parts of a multipart.
    mutating func content(_ octets: UnsafeBufferPointer<UInt8>, isLoose: Bool)
    /// A delimiter line: the text after it does not continue the text before it.
    mutating func delimiter()
    /// An entity has ended; its range and defects are known.
    mutating func end(_ part: MIMEPart)
}

/// The reason why the reading of a body in pieces stopped early.
package enum MIMEStop: Sendable, Hashable {
    /// The header section of a part is longer than `MIMEPart.maximumHeaderSize`.
    case longHeader
    /// A line that may be a delimiter is longer than `MIMEPart.maximumDelimiterLine`.
    case longDelimiter
}

/// Offsets are those of the caller's slice, or of the complete body if it comes in pieces.
struct MIMEParser<Visitor: MIMEVisitor> {
    var visitor: Visitor
    private var stack = [Frame]()
    private var partCount = 0
    /// The current octets; the first of them is the body's octet `origin`. Empty between two calls.
    private var window = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    private var origin: Int
    /// The start of the next line, or of the rest of a line that is not a delimiter.
    private var position: Int
    private var isMidLine = false
    /// Octets of the line break before `position`.
    private var lastBreak = 0
    /// Start of the octets that were not yet handed out.
    private var contentStart: Int
    /// Octets of the line break before `contentStart` that may belong to a delimiter.
    private var heldBreak = 0
    private var isOverflowing = false
    /// Whether the innermost entity is still in its header section, or a delimiter is expected.
    /// Stored, as each line needs it.
    private var needsLines = true
    private var isInHeader = false
    private(set) var stop: MIMEStop?

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
        /// Nil unless a multipart is parsed into its parts.
        var boundary: [UInt8]?
        /// The type of a part without Content-Type.
        var childDefault = ContentType.plainText
        /// The end of the body of the last part.
        var lastChildEnd = 0
    }

    /// - Parameters:
    ///   - header: of the message.
    ///   - base: index of the body's first octet.
    init(_ header: HeaderSection, base: Int, visitor: Visitor) {
        self.visitor = visitor
        origin = base
        position = base
        contentStart = base
        let part = MIMEPart(
            header: header, headerRange: base..<base, bodyStart: base, depth: 0, default: .plainText
        )
        stack = [Frame(part: part, phase: .leaf)]
        open(at: base)
        look()
    }

    /// The message as far as it was read, with its parts if the visitor keeps the tree.
    var root: MIMEPart? {
        guard var root = stack.first?.part else { return nil }
        if isOverflowing { root.defects.insert(.tooManyParts) }
        return root
    }

    /// Reads the next octets.
    /// - Parameters:
    ///   - window: octets of the body.
    ///   - origin: index of the first of them, as returned by the last call.
    ///   - isLast: whether the body ends with them.
    /// - Returns: the index of the first octet that must be passed again, before the next octets.
    mutating func take(_ window: UnsafeBufferPointer<UInt8>, at origin: Int, isLast: Bool) -> Int {
        let end = origin + window.count
        guard stop == nil else {
            if isLast { close(downTo: 0, at: end, isDelimited: false) }
            return end
        }
        self.window = window
        self.origin = origin
        defer { self.window = UnsafeBufferPointer(start: nil, count: 0) }
        // A frame that contains only text, without a delimiter to wait for, runs to the end.
        while position < end, needsLines {
            let line = Line.next(in: window, at: position - origin)
            if line.next == line.end, !isLast { break }
            if isMidLine {
                isMidLine = false
            } else if line.end - line.start >= 2, window[line.start] == 0x2D,
                window[line.start + 1] == 0x2D,
                let match = match(line)
            {
                isOverflowing = !take(match, line)
                look()
                guard !isOverflowing else { break }
            } else if isInHeader, line.start == line.end,
                case .header(let start)? = stack.last?.phase
            {
                finishHeader(start, headerEnd: position, bodyStart: origin + line.next)
                look()
            } else if isInHeader, case .header(let start)? = stack.last?.phase,
                isText(line, isFirst: position == start)
            {
                // The same line is read again. It is the first line of the body, which may be a
                // message with its own header section.
                let index = stack.count - 1
                finishHeader(start, headerEnd: position, bodyStart: position)
                stack[index].part.headerDefects.insert(.lineWithoutColon)
                stack[index].part.defects.insert(.malformedHeader)
                look()
                continue
            }
            lastBreak = line.next - line.end
            position = origin + line.next
        }
        guard !isLast else {
            handOut(before: end)
            close(downTo: 0, at: end, isDelimited: false)
            return end
        }
        return keep(until: end)
    }

    /// Whether a line in a header section is not a field and continues none. The part then has no
    /// empty line, and its text begins here, as most readers see it.
    /// - Parameter isFirst: whether the header section begins with the line; that of a file may be
    ///   an mbox separator.
    private func isText(_ line: Line, isFirst: Bool) -> Bool {
        let text = window[line.start..<line.end]
        guard let first = text.first else { return false }
        if first.isWhiteSpace { return isFirst }
        if isFirst, text.starts(with: "From ".utf8) || text.starts(with: ">From ".utf8) {
            return false
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return true }
        var name = text[..<colon]
        while let last = name.last, last.isWhiteSpace { name.removeLast() }
        return name.isEmpty || !name.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// Updates the values that depend on the stack, after a change.
    private mutating func look() {
        isInHeader = if case .header? = stack.last?.phase { true } else { false }
        needsLines =
            !isOverflowing && (isInHeader || stack.indices.contains { stack[$0].boundary != nil })
    }

    // MARK: Content

    /// Hands out the octets that are certain to be content, before more octets arrive.
    /// - Returns: start of the octets that are needed again.
    private mutating func keep(until end: Int) -> Int {
        if case .header(let start)? = stack.last?.phase {
            if end - start > MIMEPart.maximumHeaderSize { stop = .longHeader }
            return start
        }
        guard needsLines else {
            handOut(before: end)
            position = end
            return end
        }
        if position > contentStart {
            handOut(before: position - lastBreak)
            heldBreak = lastBreak
            contentStart = position
        }
        let line = UnsafeBufferPointer(rebasing: window[(position - origin)...])
        guard let last = line.last else { return end }
        if !isMidLine, line[0] == 0x2D, line.count < 2 || line[1] == 0x2D {
            guard line.count > MIMEPart.maximumDelimiterLine else { return position }
            if mayBecomeDelimiter(line) {
                stop = .longDelimiter
                return position
            }
        }
        // After a CR it is not yet known whether an LF follows.
        position = last == 0x0D ? end - 1 : end
        handOut(before: position)
        isMidLine = true
        return position
    }

    /// Hands out the content up to an index, which is not before `contentStart`.
    private mutating func handOut(before end: Int) {
        guard Visitor.wantsContent, let phase = stack.last?.phase else { return contentStart = end }
        let isLoose: Bool
        switch phase {
        case .leaf: isLoose = false
        case .preamble, .epilogue: isLoose = true
        case .header, .parts, .message: return
        }
        if heldBreak > 0 {
            let lineBreak: (UInt8, UInt8) = (0x0D, 0x0A)
            withUnsafeBytes(of: lineBreak) { bytes in
                visitor.content(
                    UnsafeBufferPointer(
                        rebasing: bytes.assumingMemoryBound(to: UInt8.self)[(2 - heldBreak)...]),
                    isLoose: isLoose
                )
            }
            heldBreak = 0
        }
        guard end > contentStart else { return }
        visitor.content(
            UnsafeBufferPointer(rebasing: window[(contentStart - origin)..<(end - origin)]),
            isLoose: isLoose)
        contentStart = end
    }

    /// Hands out the text before a delimiter line. The line break before it belongs to the
    /// delimiter.
    private mutating func handOutBeforeDelimiter() {
        guard position > contentStart else { return heldBreak = 0 }
        handOut(before: max(contentStart, position - lastBreak))
    }

    /// Whether an incomplete line may be the beginning of a delimiter.
    private func mayBecomeDelimiter(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        let text = line[2...]
        return stack.contains { frame in
            guard let boundary = frame.boundary, text.starts(with: boundary.prefix(text.count))
            else { return false }
            var rest = text.dropFirst(boundary.count)
            if rest.starts(with: [0x2D, 0x2D]) { rest = rest.dropFirst(2) }
            return rest.dropLast(rest.last == 0x0D ? 1 : 0).allSatisfy(\.isWhiteSpace)
        }
    }

    // MARK: Delimiters

    private struct Match {
        var frame: Int
        var isClosing: Bool
    }

    /// The innermost open multipart with this line as its delimiter.
    private mutating func match(_ line: Line) -> Match? {
        var found: Match?
        var prefixed: Int?
        let text = UnsafeBufferPointer(rebasing: window[(line.start + 2)..<line.end])
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

    /// Closes and opens entities as the delimiter requires. If there are too many parts, changes
    /// nothing and returns false.
    private mutating func take(_ match: Match, _ line: Line) -> Bool {
        if !match.isClosing {
            guard partCount < MIMEPart.maximumPartCount else { return false }
        }
        handOutBeforeDelimiter()
        visitor.delimiter()
        close(downTo: match.frame + 1, at: position, isDelimited: true)
        if case .preamble = stack[match.frame].phase {
            let start = stack[match.frame].part.bodyRange.lowerBound
            stack[match.frame].part.preamble = start..<endBefore(position, from: start)
        }
        let next = origin + line.next
        if match.isClosing {
            stack[match.frame].phase = .epilogue
            stack[match.frame].part.epilogue = next..<next
            contentStart = next
        } else {
            stack[match.frame].phase = .parts
            push(at: next, default: stack[match.frame].childDefault)
        }
        return true
    }

    /// The end of the text before a delimiter line. The line break before the delimiter belongs to
    /// the delimiter.
    private func endBefore(_ lineStart: Int, from start: Int) -> Int {
        max(start, lineStart - lastBreak)
    }

    // MARK: Entities

    /// Begins a part whose header starts at `offset`.
    private mutating func push(at offset: Int, default contentType: ContentType) {
        partCount += 1
        let depth = stack.count
        let part = MIMEPart(
            header: HeaderSection(), headerRange: offset..<offset, bodyStart: offset, depth: depth,
            default: contentType)
        stack.append(Frame(part: part, phase: .header(offset), childDefault: contentType))
    }

    /// Parses the header section of the innermost entity and opens its body.
    private mutating func finishHeader(_ start: Int, headerEnd: Int, bodyStart: Int) {
        guard let frame = stack.popLast() else { return }
        let section = UnsafeBufferPointer(rebasing: window[(start - origin)..<(headerEnd - origin)])
        let parsed = HeaderSection.parse(section, base: start)
        var part = MIMEPart(
            header: parsed.header, headerRange: start..<headerEnd, bodyStart: bodyStart,
            depth: frame.part.depth, default: frame.childDefault)
        // If a delimiter ends the header, the last line break belongs to the delimiter;
        // `.unterminatedHeader` reports that.
        part.headerDefects = parsed.defects.subtracting([.unterminatedLine])
        if !part.headerDefects.isEmpty { part.defects.insert(.malformedHeader) }
        stack.append(Frame(part: part, phase: .leaf))
        open(at: bodyStart)
    }

    /// Reads the innermost entity's type and prepares for its body, which begins at `offset`.
    private mutating func open(at offset: Int) {
        guard var frame = stack.popLast() else { return }
        contentStart = offset
        heldBreak = 0
        prepare(&frame)
        visitor.begin(frame.part)
        stack.append(frame)
        if case .message = frame.phase { push(at: offset, default: .plainText) }
    }

    /// Prepares a frame for the parts, or the message, in an entity of this type.
    private func prepare(_ frame: inout Frame) {
        let type = frame.part.contentType
        let isMultipart = type.matches("multipart")
        let isMessage =
            type.matches("message", "rfc822") || type.matches("message", "global")
            || type.matches("message", "news")
        guard isMultipart || isMessage else { return }
        if !frame.part.transferEncoding.isIdentity { frame.part.defects.insert(.encodedComposite) }
        guard stack.count < MIMEPart.maximumDepth else {
            return _ = frame.part.defects.insert(.tooDeep)
        }
        if isMultipart {
            openMultipart(&frame)
        } else if frame.part.transferEncoding.isIdentity, partCount < MIMEPart.maximumPartCount {
            frame.phase = .message
        }
    }

    private func openMultipart(_ frame: inout Frame) {
        let type = frame.part.contentType
        // The parameter defects do not name the parameter; a false alarm has no cost here.
        if type.defects.contains(.duplicate) || type.defects.contains(.plainAndExtended) {
            frame.part.defects.insert(.ambiguousBoundaryParameter)
        }
        guard let boundary = type.boundary, !boundary.isEmpty else {
            frame.part.defects.insert(.missingBoundary)
            return
        }
        let isProper =
            boundary.count <= 70 && boundary.last != 0x20
            && boundary.allSatisfy {
                $0.isASCIILetter || $0.isASCIIDigit || "'()+_,-./:=? ".utf8.contains($0)
            }
        if !isProper { frame.part.defects.insert(.invalidBoundary) }
        frame.boundary = boundary
        frame.phase = .preamble
        if type.subtype == "digest" { frame.childDefault = .message }
    }

    /// Ends all entities from index `first` on (the root is never removed) at the
    /// line that begins at `end`.
    private mutating func close(downTo first: Int, at end: Int, isDelimited: Bool) {
        // A part that ends within its header still has a header, and that header may open another
        // entity.
        while stop == nil, case .header(let start)? = stack.last?.phase {
            let limit = isDelimited ? endBefore(end, from: start) : end
            let count = stack.count
            finishHeader(start, headerEnd: limit, bodyStart: limit)
            stack[count - 1].part.defects.insert(.unterminatedHeader)
        }
        while stack.count > max(first, 1) {
            guard var frame = stack.popLast() else { return }
            finish(&frame, at: end, isDelimited: isDelimited)
            let parent = stack.count - 1
            stack[parent].lastChildEnd = frame.part.bodyRange.upperBound
            if Visitor.keepsTree { stack[parent].part.children.append(frame.part) }
        }
        guard first == 0, var root = stack.first else { return }
        finish(&root, at: end, isDelimited: isDelimited)
        stack[0] = root
    }

    private mutating func finish(_ frame: inout Frame, at lineStart: Int, isDelimited: Bool) {
        let start = frame.part.bodyRange.lowerBound
        let end = isDelimited ? endBefore(lineStart, from: start) : lineStart
        // The empty line after a last child's header may also be the line break before this
        // delimiter.
        frame.part.bodyRange = start..<max(start, end, frame.lastChildEnd)
        switch frame.phase {
        case .preamble:
            frame.part.defects.insert(.noParts)
            frame.part.preamble = frame.part.bodyRange
        case .parts:
            frame.part.defects.insert(.missingClosingBoundary)
        case .epilogue:
            // The line break behind the closing delimiter may be the one that belongs to the outer
            // delimiter: then there is no epilogue.
            if let epilogue = frame.part.epilogue {
                frame.part.epilogue =
                    epilogue.lowerBound <= end ? epilogue.lowerBound..<end : nil
            }
        // Reading stopped here. The visitor was not called for the start of this entity.
        case .header: return
        case .leaf, .message: break
        }
        visitor.end(frame.part)
    }
}

/// Builds only the tree.
struct MIMETree: MIMEVisitor {
    static let keepsTree = true
    static let wantsContent = false
    func begin(_ part: MIMEPart) {}
    func content(_ octets: UnsafeBufferPointer<UInt8>, isLoose: Bool) {}
    func delimiter() {}
    func end(_ part: MIMEPart) {}
}
