// Decoded readings of a text: references, tags, backslashes, percent signs, quoted-printable,
// xtext.

import Support

/// The readings of one text. Their memory is reused for the next text. Not thread-safe.
final class Readings {
    private var plain = Reading()
    private var referenced = Reading()
    private var untagged = Reading()
    private var shown = Reading()
    private var escaped = Reading()
    private var once = Reading()
    private var other = Reading()

    /// Reads a text without decoding it.
    func read(_ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) -> Reading.View {
        plain.read(text, isMarkup: isMarkup)
        return plain.view
    }

    /// Every reading of a text that differs from the others, the plain one first.
    /// - Parameters:
    ///   - isMarkup: whether a reader sees the text without its tags.
    ///   - body: receives a reading, and the ranges in which it differs from the ones before (nil
    ///     for everywhere). The last argument says whether its at signs are those that a reader
    ///     sees; in other readings they may be chance.
    func forEach(
        _ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool,
        _ body: (Reading.View, [Range<Int>]?, _ isShown: Bool) -> Void
    ) {
        let plain = read(text, isMarkup: isMarkup)
        body(plain, nil, true)
        var outer = plain
        if referenced.resolveReferences(plain) {
            outer = referenced.view
            body(outer, referenced.changes, true)
        }
        var shown: Reading.View?
        if untagged.dropTags(plain) {
            if self.shown.resolveReferences(untagged.view, with: untagged.changes) {
                shown = self.shown.view
                body(self.shown.view, self.shown.changes, isMarkup)
            } else {
                shown = untagged.view
                body(untagged.view, untagged.changes, isMarkup)
            }
        }
        if escaped.resolveEscapes(outer) {
            outer = escaped.view
            body(outer, escaped.changes, false)
        }
        for base in [outer, shown] {
            // An address in a link may be encoded twice.
            guard let base, once.resolvePercent(base) else { continue }
            body(once.view, once.changes, false)
            if other.resolvePercent(once.view) { body(other.view, other.changes, false) }
        }
        if other.resolveQuotedPrintable(plain) { body(other.view, other.changes, false) }
        if other.resolveXText(plain) { body(other.view, other.changes, false) }
    }
}

extension Reading {
    /// The value of a hexadecimal digit; nil for other octets, or after a gap.
    @inline(__always)
    private static func digit(_ text: View, _ index: Int) -> UInt32? {
        guard index < text.count, text.gaps[index] == 0 else { return nil }
        return TransferReading.digit(text[index]).map(UInt32.init)
    }

    @inline(__always)
    private static func pair(_ text: View, _ index: Int) -> UInt8? {
        guard let high = digit(text, index), let low = digit(text, index + 1) else { return nil }
        return UInt8(high << 4 | low)
    }

    // MARK: Markup

    private static let named: [([UInt8], UInt32)] = [
        ("commat;", 0x40), ("period;", 0x2E), ("equals;", 0x3D), ("num;", 0x23), ("percnt;", 0x25),
        ("plus;", 0x2B),
        ("lowbar;", 0x5F), ("hyphen;", 0x2D), ("dash;", 0x2D), ("amp;", 0x26), ("lt;", 0x3C),
        ("gt;", 0x3E), ("quot;", 0x22),
        ("apos;", 0x27), ("nbsp;", 0x20), ("tab;", 0x20), ("newline;", 0x0A), ("shy;", 0xAD),
        ("zwj;", 0x200D), ("zwnj;", 0x200C),
        ("zerowidthspace;", 0x200B), ("sol;", 0x2F), ("bsol;", 0x5C), ("colon;", 0x3A),
        ("lpar;", 0x28), ("rpar;", 0x29),
    ].map { (Array($0.0.utf8), $0.1) }

    /// Resolves character references.
    fileprivate mutating func resolveReferences(
        _ text: View, with earlier: [Range<Int>] = []
    ) -> Bool {
        make(of: text, UInt8(ascii: "&"), with: earlier) { text, index in
            Self.reference(text, index).map { (.scalar($0.0), $0.1) }
        }
    }

    private static func reference(_ text: View, _ index: Int) -> (UInt32, Int)? {
        var at = index + 1
        guard at + 1 < text.count, text.gaps[at] == 0 else { return nil }
        if text[at] != UInt8(ascii: "#") {
            for (name, value) in Self.named
            where at + name.count <= text.count && text[at] == name[0] {
                if text[at..<(at + name.count)].elementsEqual(name),
                    text.isUnbroken(index..<(at + name.count))
                {
                    return (value, 1 + name.count)
                }
            }
            return nil
        }
        at += 1
        let isHexadecimal = text[at] == UInt8(ascii: "x")
        if isHexadecimal { at += 1 }
        let first = at
        var value: UInt32 = 0
        // Leading zeros do not count.
        while at - first < 32, let digit = digit(text, at), isHexadecimal || digit < 10,
            value < 0x11_0000
        {
            value = value * (isHexadecimal ? 16 : 10) + digit
            at += 1
        }
        guard at > first, value < 0x11_0000 else { return nil }
        if at < text.count, text[at] == UInt8(ascii: ";"), text.gaps[at] == 0 { at += 1 }
        return (value, at - index)
    }

    /// Elements that divide words: the octets of each as one number, at its index or after it.
    private static let blocks: [UInt64] = [
        "address", "article", "br", "dd", "div", "dl", "dt", "footer", "form", "h1", "h2", "h3",
        "h4", "h5", "h6", "header", "hr",
        "li", "main", "ol", "option", "p", "pre", "section", "table", "tbody", "td", "th", "tr",
        "ul",
    ].reduce(into: [UInt64](repeating: 0, count: 128)) { (table, name: String) in
        let name = name.utf8.reduce(0) { $0 << 8 | UInt64($1) }
        var place = blockPlace(name)
        while table[place] != 0 { place = (place + 1) & 127 }
        table[place] = name
    }

    @inline(__always)
    private static func blockPlace(_ name: UInt64) -> Int {
        Int((name &* 0x9E37_79B9_7F4A_7C15) >> 57)
    }

    /// Removes tags and comments.
    fileprivate mutating func dropTags(_ text: View) -> Bool {
        var (hasNoEnd, hasNoCommentEnd) = (false, false)
        return make(of: text, UInt8(ascii: "<")) { text, index in
            guard !hasNoEnd, index + 1 < text.count, text.gaps[index + 1] == 0 else { return nil }
            let first = text[index + 1]
            guard first.isASCIILetter || first == 0x2F || first == 0x21 || first == 0x3F else {
                return nil
            }
            guard var end = text.octets.firstIndex(of: UInt8(ascii: ">"), from: index + 2) else {
                hasNoEnd = true
                return nil
            }
            if !hasNoCommentEnd, text.holds("!--", at: index + 1) {
                let first = end
                while text[end - 1] != 0x2D || text[end - 2] != 0x2D {
                    guard let next = text.octets.firstIndex(of: UInt8(ascii: ">"), from: end + 1)
                    else {
                        (hasNoCommentEnd, end) = (true, first)
                        break
                    }
                    end = next
                }
            }
            end += 1
            return (.gap(Self.isBlock(text, index) ? Self.space : 0), end - index)
        }
    }

    private static func isBlock(_ text: View, _ index: Int) -> Bool {
        var start = index + 1
        if start < text.count, text[start] == UInt8(ascii: "/") { start += 1 }
        var end = start
        var name: UInt64 = 0
        while end < text.count, end - start < 12, end == start || text.gaps[end] == 0,
            text[end].isASCIIAlphanumeric
        {
            name = name << 8 | UInt64(text[end])
            end += 1
        }
        if end - start > 8 { return end - start == 10 && text.holds("blockquote", at: start) }
        return blocks.withUnsafeBufferPointer { blocks in
            var place = blockPlace(name)
            while blocks[place] != 0, blocks[place] != name { place = (place + 1) & 127 }
            return name != 0 && blocks[place] == name
        }
    }

    // MARK: Escapes

    /// Resolves the escapes of programming languages, and joins lines that end in a backslash.
    fileprivate mutating func resolveEscapes(_ text: View) -> Bool {
        make(of: text, UInt8(ascii: "\\")) { text, index in
            guard index + 1 < text.count else { return nil }
            let next = text[index + 1]
            if text.gaps[index + 1] != 0 {
                return text.gaps[index + 1] & ~Self.wrapped == Self.lineBreak ? (.join, 1) : nil
            }
            switch next {
            case UInt8(ascii: "u"): return Self.pairs(text, index + 2).map { (.scalar($0), 6) }
            case UInt8(ascii: "x"): return Self.pair(text, index + 2).map { (.octet($0), 4) }
            case 0x30...0x33:
                guard let second = Self.digit(text, index + 2),
                    let third = Self.digit(text, index + 3), second < 8, third < 8
                else { return nil }
                return (.octet((next - 0x30) << 6 | UInt8(second) << 3 | UInt8(third)), 4)
            // It may also be the beginning of a folder's name. Another reading keeps it.
            case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
                return (.gap(Self.space), 2)
            case UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"),
                UInt8(ascii: "\""):
                return (.literal(next), 2)
            default: return nil
            }
        }
    }

    /// Resolves percent signs (RFC 3986 section 2.1, and `%u0040`).
    fileprivate mutating func resolvePercent(_ text: View) -> Bool {
        make(of: text, UInt8(ascii: "%")) { text, index in
            if let value = Self.pair(text, index + 1) { return (.octet(value), 3) }
            guard index + 1 < text.count, text[index + 1] == UInt8(ascii: "u"),
                text.gaps[index + 1] == 0
            else { return nil }
            return Self.pairs(text, index + 2).map { (.scalar($0), 6) }
        }
    }

    /// Resolves `=40` and soft line breaks, as in the text of an attached message.
    fileprivate mutating func resolveQuotedPrintable(_ text: View) -> Bool {
        make(of: text, UInt8(ascii: "=")) { text, index in
            if let value = Self.pair(text, index + 1) { return (.octet(value), 3) }
            guard index + 1 < text.count, text.gaps[index + 1] & ~Self.wrapped == Self.lineBreak
            else { return nil }
            return (.join, 1)
        }
    }

    /// Resolves `+40` (RFC 3461 section 4).
    fileprivate mutating func resolveXText(_ text: View) -> Bool {
        make(of: text, UInt8(ascii: "+")) { text, index in
            Self.pair(text, index + 1).map { (.octet($0), 3) }
        }
    }

    /// Four hexadecimal digits.
    private static func pairs(_ text: View, _ index: Int) -> UInt32? {
        guard let high = pair(text, index), let low = pair(text, index + 2) else { return nil }
        return UInt32(high) << 8 | UInt32(low)
    }
}
