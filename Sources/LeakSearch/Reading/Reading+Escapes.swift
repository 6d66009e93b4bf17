// Readings of a text in which what is encoded is decoded: references, tags, backslashes, percent signs, quoted-printable, xtext.

import Support

extension Reading {
    /// Every reading of a text that differs from the others, the plain one first.
    /// - Parameters:
    ///   - isMarkup: whether a reader sees the text without its tags.
    ///   - body: gets a reading, and whether its at signs are what a reader sees; in others they may be chance.
    func forEachReading(isMarkup: Bool, _ body: (Reading, Bool) -> Void) {
        body(self, true)
        let referenced = withoutReferences()
        if let referenced { body(referenced, true) }
        let shown = withoutTags().map { $0.withoutReferences() ?? $0 }
        if let shown { body(shown, isMarkup) }
        let outer = referenced ?? self
        let escaped = outer.withoutEscapes()
        if let escaped { body(escaped, false) }
        for base in [escaped ?? outer, shown] {
            // An address of a link may have been encoded twice.
            guard let once = base?.withoutPercent() else { continue }
            body(once, false)
            if let twice = once.withoutPercent() { body(twice, false) }
        }
        if let quoted = withoutQuotedPrintable() { body(quoted, false) }
        if let plain = withoutXText() { body(plain, false) }
    }

    /// The value of a hexadecimal digit; nil for others, or behind a gap.
    private func digit(_ text: View, _ index: Int) -> UInt32? {
        guard index < text.count, text.gaps[index] == 0 else { return nil }
        return TransferReading.digit(text[index]).map(UInt32.init)
    }

    private func pair(_ text: View, _ index: Int) -> UInt8? {
        guard let high = digit(text, index), let low = digit(text, index + 1) else { return nil }
        return UInt8(high << 4 | low)
    }

    // MARK: Markup

    private static let named: [([UInt8], UInt32)] = [
        ("commat;", 0x40), ("period;", 0x2E), ("equals;", 0x3D), ("num;", 0x23), ("percnt;", 0x25), ("plus;", 0x2B),
        ("lowbar;", 0x5F), ("hyphen;", 0x2D), ("dash;", 0x2D), ("amp;", 0x26), ("lt;", 0x3C), ("gt;", 0x3E), ("quot;", 0x22),
        ("apos;", 0x27), ("nbsp;", 0x20), ("tab;", 0x20), ("newline;", 0x0A), ("shy;", 0xAD), ("zwj;", 0x200D), ("zwnj;", 0x200C),
        ("zerowidthspace;", 0x200B), ("sol;", 0x2F), ("bsol;", 0x5C), ("colon;", 0x3A), ("lpar;", 0x28), ("rpar;", 0x29),
    ].map { (Array($0.0.utf8), $0.1) }

    /// With character references resolved.
    func withoutReferences() -> Reading? {
        rewritten(UInt8(ascii: "&")) { text, index, output in
            guard let (value, taken) = reference(text, index) else { return 0 }
            output.appendDecoded(value, gap: text.gaps[index])
            return taken
        }
    }

    private func reference(_ text: View, _ index: Int) -> (UInt32, Int)? {
        var at = index + 1
        guard at + 1 < text.count, text.gaps[at] == 0 else { return nil }
        if text[at] != UInt8(ascii: "#") {
            for (name, value) in Self.named where at + name.count <= text.count && text[at] == name[0] {
                if text[at..<(at + name.count)].elementsEqual(name), text.isUnbroken(index..<(at + name.count)) {
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
        while at - first < 32, let digit = digit(text, at), isHexadecimal || digit < 10, value < 0x11_0000 {
            value = value * (isHexadecimal ? 16 : 10) + digit
            at += 1
        }
        guard at > first, value < 0x11_0000 else { return nil }
        if at < text.count, text[at] == UInt8(ascii: ";"), text.gaps[at] == 0 { at += 1 }
        return (value, at - index)
    }

    /// Elements that words do not go across.
    private static let blocks: [[UInt8]] = [
        "address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
        "header", "hr", "li", "main", "ol", "option", "p", "pre", "section", "table", "tbody", "td", "th", "tr", "ul",
    ].map { Array($0.utf8) }

    /// Without tags and comments.
    func withoutTags() -> Reading? {
        var (hasNoEnd, hasNoCommentEnd) = (false, false)
        return rewritten(UInt8(ascii: "<")) { text, index, output in
            guard !hasNoEnd, index + 1 < text.count, text.gaps[index + 1] == 0 else { return 0 }
            let first = text[index + 1]
            guard first.isASCIILetter || first == 0x2F || first == 0x21 || first == 0x3F else { return 0 }
            guard var end = text.octets.firstIndex(of: UInt8(ascii: ">"), from: index + 2) else {
                hasNoEnd = true
                return 0
            }
            if !hasNoCommentEnd, text[(index + 1)...].starts(with: "!--".utf8) {
                let first = end
                while text[end - 1] != 0x2D || text[end - 2] != 0x2D {
                    guard let next = text.octets.firstIndex(of: UInt8(ascii: ">"), from: end + 1) else {
                        (hasNoCommentEnd, end) = (true, first)
                        break
                    }
                    end = next
                }
            }
            end += 1
            output.note(text.gaps[index] | (isBlock(text, index) ? Self.space : 0))
            return end - index
        }
    }

    private func isBlock(_ text: View, _ index: Int) -> Bool {
        var start = index + 1
        if start < text.count, text[start] == UInt8(ascii: "/") { start += 1 }
        var end = start
        while end < text.count, end - start < 12, end == start || text.gaps[end] == 0, text[end].isASCIIAlphanumeric { end += 1 }
        return Self.blocks.contains { $0.count == end - start && $0[0] == text[start] && text[start..<end].elementsEqual($0) }
    }

    // MARK: Escapes

    /// With the escapes of programming languages resolved, and lines joined that end in a backslash.
    func withoutEscapes() -> Reading? {
        rewritten(UInt8(ascii: "\\")) { text, index, output in
            guard index + 1 < text.count else { return 0 }
            let next = text[index + 1]
            if text.gaps[index + 1] != 0 {
                guard text.gaps[index + 1] & ~Self.wrapped == Self.lineBreak else { return 0 }
                output.note(text.gaps[index])
                output.join()
                return 1
            }
            switch next {
            case UInt8(ascii: "u"):
                guard let high = pair(text, index + 2), let low = pair(text, index + 4) else { return 0 }
                output.appendDecoded(UInt32(high) << 8 | UInt32(low), gap: text.gaps[index])
                return 6
            case UInt8(ascii: "x"):
                guard let value = pair(text, index + 2) else { return 0 }
                output.appendDecoded(value, gap: text.gaps[index])
                return 4
            case 0x30...0x33:
                guard let second = digit(text, index + 2), let third = digit(text, index + 3), second < 8, third < 8 else {
                    return 0
                }
                output.appendDecoded((next - 0x30) << 6 | UInt8(second) << 3 | UInt8(third), gap: text.gaps[index])
                return 4
            case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
                // Also the beginning of a folder's name: another reading has it so.
                output.note(text.gaps[index] | Self.space)
                return 2
            case UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "\""):
                output.append(next, gap: text.gaps[index])
                return 2
            default: return 0
            }
        }
    }

    /// With percent signs resolved (RFC 3986 section 2.1, and `%u0040`).
    func withoutPercent() -> Reading? {
        rewritten(UInt8(ascii: "%")) { text, index, output in
            if let value = pair(text, index + 1) {
                output.appendDecoded(value, gap: text.gaps[index])
                return 3
            }
            guard index + 1 < text.count, text[index + 1] == UInt8(ascii: "u"), text.gaps[index + 1] == 0,
                let high = pair(text, index + 2), let low = pair(text, index + 4)
            else { return 0 }
            output.appendDecoded(UInt32(high) << 8 | UInt32(low), gap: text.gaps[index])
            return 6
        }
    }

    /// With `=40` and soft line breaks resolved, as text of an attached message has them.
    func withoutQuotedPrintable() -> Reading? {
        rewritten(UInt8(ascii: "=")) { text, index, output in
            if let value = pair(text, index + 1) {
                output.appendDecoded(value, gap: text.gaps[index])
                return 3
            }
            guard index + 1 < text.count, text.gaps[index + 1] & ~Self.wrapped == Self.lineBreak else { return 0 }
            output.note(text.gaps[index])
            output.join()
            return 1
        }
    }

    /// With `+40` resolved (RFC 3461 section 4).
    func withoutXText() -> Reading? {
        rewritten(UInt8(ascii: "+")) { text, index, output in
            guard let value = pair(text, index + 1) else { return 0 }
            output.appendDecoded(value, gap: text.gaps[index])
            return 3
        }
    }
}
