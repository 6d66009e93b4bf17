// Parses marked-up text into its visible lines, the containers in which programs put quotations,
// and the text that is not shown. One pass: no tag, quote or comment is searched for twice.

import InternetMessage
import Support

struct Elements {
    /// A line of text between two tags of blocks.
    struct Line {
        /// Its start in the source.
        let start: Int
        /// The range in `text` of its words, with references decoded and white space joined.
        var words: Range<Int>
        /// Whether it is within a container of a quotation.
        let isContained: Bool
        /// Whether that container is one in which a program puts the attribution.
        let isAttribution: Bool
    }

    /// The lines, in order.
    private(set) var lines: [Line] = []
    /// The octets of all lines.
    private(set) var text: [UInt8] = []
    /// Comments, scripts, styles and heads, in order.
    private(set) var hidden: [Range<Int>] = []
    /// The start of a quotation that extends to the end; nil if no element marks one.
    private(set) var tail: Int?

    /// Maximum octets that are kept of a line.
    static let lineLength = 600

    private let source: UnsafeBufferPointer<UInt8>
    /// Open containers, innermost last: the tag, and the number of open tags of the same name
    /// within it.
    private var open: [(name: Name, nested: Int, isAttribution: Bool)] = []
    /// The number of open tags of each name outside of all containers.
    private var outside = [Int](repeating: 0, count: Name.count)
    /// The line of the first closed container, for each name.
    private var closed = [Int?](repeating: nil, count: Name.count)
    private var preformatted = 0
    private var isSpaced = true
    /// Octets that the rest of the source does not contain.
    private var missing: Set<UInt8> = []
    /// Whether a `>` in quotes belongs to an attribute. False after a quote without an end.
    private var honoursQuotes = true

    /// The names of elements that can contain a quotation, and of those that divide lines.
    enum Name: UInt8 {
        case blockquote, div, span, table, section, article, td, p, other

        static let count = 9

        init(_ name: [UInt8]) {
            switch String(decoding: name, as: UTF8.self) {
            case "blockquote": self = .blockquote
            case "div": self = .div
            case "span": self = .span
            case "table": self = .table
            case "section": self = .section
            case "article": self = .article
            case "td": self = .td
            case "p": self = .p
            default: self = .other
            }
        }
    }

    init(_ source: UnsafeBufferPointer<UInt8>) {
        self.source = source
        begin(at: 0)
        var index = 0
        while index < source.count {
            let octet = source[index]
            if octet == UInt8(ascii: "<"), let end = markup(at: index) {
                index = end
            } else if octet == UInt8(ascii: "&"),
                let reference = HTMLReference.read(source, at: index)
            {
                append(scalar: reference.scalar)
                index = reference.end
            } else {
                if octet == 0x0A, preformatted > 0 { begin(at: index + 1) } else { append(octet) }
                index += 1
            }
        }
    }

    // MARK: Lines

    private mutating func begin(at start: Int) {
        if let last = lines.last, last.words.isEmpty, last.isContained == !open.isEmpty {
            // An empty line has no content. The next line begins at its start.
            if last.isAttribution == isAttribution { return }
        }
        if let last = lines.last, last.words.isEmpty, last.start == start { lines.removeLast() }
        lines.append(
            Line(
                start: start, words: text.count..<text.count, isContained: !open.isEmpty,
                isAttribution: isAttribution))
        isSpaced = true
    }

    private var isAttribution: Bool { open.last?.isAttribution ?? false }

    private mutating func append(_ octet: UInt8) {
        let isSpace = octet <= 0x20
        guard !(isSpace && isSpaced), lines[lines.count - 1].words.count < Self.lineLength else {
            return
        }
        isSpaced = isSpace
        text.append(isSpace ? 0x20 : octet)
        let start = lines[lines.count - 1].words.lowerBound
        lines[lines.count - 1].words = start..<text.count
    }

    private mutating func append(scalar: UInt32) {
        guard let scalar = Unicode.Scalar(scalar) else { return }
        for octet in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { append(octet) }
    }

    // MARK: Tags

    /// Reads a tag, a comment or a declaration. Returns its end; nil if it is text.
    private mutating func markup(at start: Int) -> Int? {
        guard start + 1 < source.count else { return nil }
        switch source[start + 1] {
        case UInt8(ascii: "!"), UInt8(ascii: "?"):
            let end = declaration(at: start)
            hide(start..<end)
            return end
        case UInt8(ascii: "/"):
            guard start + 2 < source.count, source[start + 2].isASCIILetter else { return nil }
            guard let end = after(UInt8(ascii: ">"), from: start) else { return nil }
            close(name(at: start + 2), start, end)
            return end
        case let octet where octet.isASCIILetter: return opening(at: start)
        default: return nil
        }
    }

    /// The index after the next octet of this value. If there is none, the rest of the source is
    /// searched only once.
    private mutating func after(_ octet: UInt8, from start: Int) -> Int? {
        guard !missing.contains(octet) else { return nil }
        if let found = source.firstIndex(of: octet, from: start) { return found + 1 }
        missing.insert(octet)
        return nil
    }

    private mutating func declaration(at start: Int) -> Int {
        guard source[start...].starts(with: "<!--".utf8) else {
            return after(UInt8(ascii: ">"), from: start) ?? source.count
        }
        // `<!-->` and `<!--->` are also comments.
        var index = start + 2
        while let end = after(UInt8(ascii: ">"), from: index) {
            if end - 3 >= start + 2, source[end - 2] == 0x2D, source[end - 3] == 0x2D { return end }
            if end - 4 >= start + 4, source[end - 2] == 0x21, source[end - 3] == 0x2D,
                source[end - 4] == 0x2D
            {
                return end
            }
            index = end
        }
        return source.count
    }

    private mutating func hide(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        if let last = hidden.last, last.upperBound == range.lowerBound {
            hidden[hidden.count - 1] = last.lowerBound..<range.upperBound
        } else {
            hidden.append(range)
        }
    }

    /// The name of a tag, in lower case.
    private func name(at start: Int) -> [UInt8] {
        var end = start
        while end < source.count, end - start < 24, source[end].isASCIIAlphanumeric { end += 1 }
        return source[start..<end].map(\.asciiLowercased)
    }

    private static let raw = ["script", "style", "title", "textarea", "xmp", "noembed", "iframe"]
        .map { Array($0.utf8) }
    private static let blocks: Set<[UInt8]> = Set(
        [
            "div", "p", "br", "tr", "td", "th", "table", "tbody", "li", "ul", "ol", "hr", "h1",
            "h2", "h3", "h4", "h5", "h6",
            "pre", "body",
            "blockquote", "dt", "dd", "dl", "section", "article", "header", "footer", "center",
            "html",
        ].map { Array($0.utf8) })

    private mutating func tag(at start: Int, _ name: [UInt8]) -> Tag? {
        guard after(UInt8(ascii: ">"), from: start) != nil else { return nil }
        if honoursQuotes {
            if let tag = Tag(
                source, at: start, nameLength: name.count, after: { after($0, from: $1) })
            {
                return tag
            }
            honoursQuotes = false
        }
        return Tag(source, at: start, nameLength: name.count, after: { _, _ in nil })
    }

    private mutating func opening(at start: Int) -> Int? {
        let name = name(at: start + 1)
        guard let tag = tag(at: start, name) else { return nil }
        let end = tag.end
        if Self.raw.contains(name) {
            let close = rawEnd(of: name, from: end)
            hide(start..<close)
            return close
        }
        if name == Array("head".utf8) {
            if let close = headEnd(from: end) {
                hide(start..<close)
                return close
            }
            return end
        }
        if name == Array("meta".utf8) || name == Array("link".utf8) || name == Array("base".utf8) {
            hide(start..<end)
            return end
        }
        let kind = Name(name)
        let form = tag.form(of: kind, name: name)
        if form != nil || Self.blocks.contains(name) { begin(at: start) }
        if name == Array("pre".utf8) { preformatted += 1 }
        if form == .tail, tail == nil, open.isEmpty { tail = start }
        guard kind != .other else { return end }
        if form == .container || form == .attribution {
            open.append((kind, 0, form == .attribution))
            begin(at: start)
        } else if let last = open.last {
            if last.name == kind { open[open.count - 1].nested += 1 }
        } else {
            outside[Int(kind.rawValue)] += 1
        }
        return end
    }

    private mutating func close(_ name: [UInt8], _ start: Int, _ end: Int) {
        if name == Array("pre".utf8) { preformatted = max(0, preformatted - 1) }
        let kind = Name(name)
        defer { if Self.blocks.contains(name) || kind != .other { begin(at: end) } }
        guard kind != .other else { return }
        if let last = open.last {
            guard last.name == kind else { return }
            if last.nested > 0 {
                open[open.count - 1].nested -= 1
            } else {
                let isLast = open.count == 1
                open.removeLast()
                if isLast, closed[Int(kind.rawValue)] == nil {
                    closed[Int(kind.rawValue)] = lines.count
                }
            }
        } else if outside[Int(kind.rawValue)] > 0 {
            outside[Int(kind.rawValue)] -= 1
        } else if let first = closed[Int(kind.rawValue)] {
            // An end tag without a start tag: the content of the container closed it too early. All
            // lines up to here were in the container.
            for line in first..<max(first, lines.count) where !lines[line].isContained {
                lines[line] = Line(
                    start: lines[line].start, words: lines[line].words, isContained: true,
                    isAttribution: false)
            }
            closed[Int(kind.rawValue)] = lines.count
        }
    }

    private mutating func rawEnd(of name: [UInt8], from start: Int) -> Int {
        var index = start
        while let open = after(UInt8(ascii: "<"), from: index) {
            if open < source.count, source[open] == UInt8(ascii: "/"),
                source[(open + 1)...].prefix(name.count).equalsIgnoringASCIICase(name)
            {
                return after(UInt8(ascii: ">"), from: open) ?? source.count
            }
            index = open
        }
        return source.count
    }

    /// The end of a head: at its end tag, or before the body.
    private mutating func headEnd(from start: Int) -> Int? {
        guard !missing.contains(0) else { return nil }
        var index = start
        while let open = source.firstIndex(of: UInt8(ascii: "<"), from: index) {
            if source[open...].prefix(6).equalsIgnoringASCIICase("</head".utf8) {
                return after(UInt8(ascii: ">"), from: open) ?? source.count
            }
            if source[open...].prefix(5).equalsIgnoringASCIICase("<body".utf8) { return open }
            index = open + 1
        }
        // Do not search for it again.
        missing.insert(0)
        return nil
    }

    // MARK: For others that read markup

    /// Whether a tag that divides words begins here.
    static func beginsBlock(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
        var index = start + 1
        if index < text.count, text[index] == UInt8(ascii: "/") { index += 1 }
        var end = index
        while end < text.count, end - index < 12, text[end].isASCIIAlphanumeric { end += 1 }
        return blocks.contains(text[index..<end].map(\.asciiLowercased))
    }

    /// The tags within a range of a text, without comments.
    static func tags(in text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> [UInt8] {
        var tags: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            guard text[index] == UInt8(ascii: "<"), index + 1 < range.upperBound,
                text[index + 1] != UInt8(ascii: "!"),
                let end = text[index..<range.upperBound].firstIndex(of: UInt8(ascii: ">"))
            else {
                index += 1
                continue
            }
            tags += text[index...end]
            index = end + 1
        }
        return tags
    }
}

/// One tag with the attributes that mark a quotation.
private struct Tag {
    let end: Int
    private var classes: [UInt8] = []
    private var id: [UInt8] = []
    private var style: [UInt8] = []
    private var name: [UInt8] = []
    private var other: Set<[UInt8]> = []

    /// Maximum octets of a value that are read.
    private static let longestValue = 400

    /// - Parameter after: finds an octet.
    init?(
        _ source: UnsafeBufferPointer<UInt8>, at start: Int, nameLength: Int,
        after: (UInt8, Int) -> Int?
    ) {
        var index = start + 1 + nameLength
        var attribute: [UInt8] = []
        var values: [(name: [UInt8], value: [UInt8])] = []
        while true {
            guard index < source.count else { return nil }
            let octet = source[index]
            if octet == UInt8(ascii: ">") { break }
            if octet == UInt8(ascii: "="), !attribute.isEmpty {
                index += 1
                while index < source.count, source[index].isFoldingWhiteSpace { index += 1 }
                guard index < source.count else { return nil }
                var value = index..<index
                let quote = source[index]
                if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                    let close = after(quote, index + 1)
                {
                    value = (index + 1)..<(close - 1)
                    index = close
                } else {
                    while index < source.count, !source[index].isFoldingWhiteSpace,
                        source[index] != UInt8(ascii: ">")
                    {
                        index += 1
                    }
                    value = value.lowerBound..<index
                }
                values.append(
                    (attribute, source[value].prefix(Self.longestValue).map(\.asciiLowercased)))
                attribute = []
            } else if octet.isFoldingWhiteSpace || octet == UInt8(ascii: "/") {
                // Before an equals sign there may be white space.
                var next = index
                while next < source.count, source[next].isFoldingWhiteSpace { next += 1 }
                if next < source.count, source[next] != UInt8(ascii: "=") { attribute = [] }
                index = max(next, index + 1)
            } else {
                if attribute.count < 32 { attribute.append(octet.asciiLowercased) }
                index += 1
            }
        }
        end = index + 1
        for (name, value) in values { set(name, value) }
    }

    private mutating func set(_ attribute: [UInt8], _ value: [UInt8]) {
        // `class=3D"x"`: quoted-printable that a program left undecoded.
        let value = Array(value.starts(with: "3d\"".utf8) ? value.dropFirst(3)[...] : value[...])
            .filter {
                $0 != UInt8(ascii: "\"")
            }
        switch String(decoding: attribute, as: UTF8.self) {
        case "class": classes = value
        case "id": id = value
        case "style": style = value
        case "name": name = value
        default: other.insert(attribute)
        }
    }

    enum Form {
        case container
        case attribution
        /// Everything after it is the quotation.
        case tail
    }

    func form(of kind: Elements.Name, name tag: [UInt8]) -> Form? {
        if kind == .blockquote { return .container }
        let classes = classes.split { $0 <= 0x20 }.map { Array($0) }
        if classes.contains(where: QuoteForms.isAttributionClass)
            || QuoteForms.isAttributionClass(id)
        {
            return kind == .other ? nil : .attribution
        }
        if QuoteForms.isTail(id: Array(id), tag: tag)
            || tag == Array("hr".utf8) && QuoteForms.isTail(id: Array(name), tag: tag)
        {
            return .tail
        }
        if kind == .other { return nil }
        if classes.contains(where: QuoteForms.isQuoteClass) || QuoteForms.isQuoteID(id)
            || QuoteForms.isQuoteID(name)
            || other.contains(Array("data-skiff-mail".utf8))
        {
            return .container
        }
        return kind == .div && QuoteForms.isBorder(style) ? .tail : nil
    }
}
