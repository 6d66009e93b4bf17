// Text as a reader or a program may come to see it: lower case, decoded, without breaks; each unit knows where it came from.

/// The ways in which text is looked at. Each is a reading of its own, as `=be` is an octet to one and two letters to another.
struct TextLens: OptionSet {
    let rawValue: UInt8

    /// `%40` (RFC 3986), also encoded twice.
    static let percent = TextLens(rawValue: 1)
    /// `=40` and soft line breaks (RFC 2045), `_` of encoded words aside.
    static let equals = TextLens(rawValue: 2)
    /// `+40`: xtext (RFC 3461).
    static let plus = TextLens(rawValue: 4)
    /// Mark-up between letters is passed over: `anna<wbr>@example`.
    static let tags = TextLens(rawValue: 8)
}

/// One window of text through a lens. Offsets are those of the whole text.
struct LensWindow {
    /// Lower-cased, decoded octets without white space.
    private(set) var units: [UInt8] = []
    private(set) var starts: [Int32] = []
    private(set) var lengths: [UInt8] = []
    /// What was passed over before a unit.
    private(set) var gaps: [UInt8] = []
    /// Bits of `gaps`.
    static let space: UInt8 = 1
    static let lineBreak: UInt8 = 2

    private var pendingGap: UInt8 = 0
    private let foldsUnicode: Bool

    /// Longest reference or tag that is read as one, in octets; anything longer is text.
    private static let maximumReference = 40
    private static let maximumTag = 200

    init(foldsUnicode: Bool, capacity: Int) {
        self.foldsUnicode = foldsUnicode
        units.reserveCapacity(capacity)
        starts.reserveCapacity(capacity)
        lengths.reserveCapacity(capacity)
        gaps.reserveCapacity(capacity)
    }

    func start(_ unit: Int) -> Int { Int(starts[unit]) }
    func end(_ unit: Int) -> Int { Int(starts[unit]) + Int(lengths[unit]) }

    private mutating func append(_ unit: UInt8, _ start: Int, _ length: Int) {
        units.append(unit)
        starts.append(Int32(truncatingIfNeeded: start))
        lengths.append(UInt8(truncatingIfNeeded: min(length, 255)))
        gaps.append(pendingGap)
        pendingGap = 0
    }

    /// Reads `text[from..<to]` anew.
    mutating func read(_ text: UnsafeBufferPointer<UInt8>, from: Int, to: Int, lens: TextLens) {
        units.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        gaps.removeAll(keepingCapacity: true)
        pendingGap = from == 0 ? Self.space | Self.lineBreak : 0
        var index = from
        while index < to {
            let octet = text[index]
            switch octet {
            case 0x0A, 0x0D:
                pendingGap |= Self.lineBreak
                index += 1
                if octet == 0x0A { index = Self.skipQuoting(text, index, to) }
            case 0x20, 0x09, 0:
                pendingGap |= Self.space
                index += 1
            case UInt8(ascii: "&"):
                index += readReference(text, index, to)
            case UInt8(ascii: "%") where lens.contains(.percent):
                index += readHex(text, index, to, prefix: UInt8(ascii: "%"))
            case UInt8(ascii: "=") where lens.contains(.equals):
                let width = Self.softBreak(text, index, to)
                index += width > 0 ? width : readHex(text, index, to, prefix: 0)
            case UInt8(ascii: "+") where lens.contains(.plus):
                index += readHex(text, index, to, prefix: 0)
            case UInt8(ascii: "<") where lens.contains(.tags):
                if let end = Self.endOfTag(text, index, to) {
                    index = end
                } else {
                    append(octet, index, 1)
                    index += 1
                }
            case UInt8(ascii: "\\"):
                index += readEscape(text, index, to)
            case 0x80...:
                index += readUnicode(text, index, to)
            default:
                append(octet >= 0x41 && octet <= 0x5A ? octet | 0x20 : octet, index, 1)
                index += 1
            }
        }
    }

    /// Quote marks at the beginning of a line belong to its break: `> `, `>> `.
    private static func skipQuoting(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        var end = index
        while end < to, end - index < 64, text[end] == UInt8(ascii: ">") || text[end] == 0x20 { end += 1 }
        return end
    }

    /// Octets of `=` white space CRLF, or 0.
    private static func softBreak(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        var end = index + 1
        while end < to, end - index < 64, text[end] == 0x20 || text[end] == 0x09 { end += 1 }
        guard end < to else { return 0 }
        if text[end] == 0x0A { return end + 1 - index }
        return text[end] == 0x0D && end + 1 < to && text[end + 1] == 0x0A ? end + 2 - index : 0
    }

    private static func endOfTag(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int? {
        guard index + 1 < to,
            text[index + 1] == UInt8(ascii: "/") || text[index + 1] == UInt8(ascii: "!") || (text[index + 1] | 0x20) >= 0x61
        else { return nil }
        var end = index + 1
        while end < to, end - index < maximumTag {
            if text[end] == UInt8(ascii: ">") { return end + 1 }
            if text[end] == UInt8(ascii: "@") { return nil }
            end += 1
        }
        return nil
    }

    // MARK: Encoded characters. Each reads at `index` and gives the octets it took.

    private mutating func readHex(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int, prefix: UInt8) -> Int {
        var at = index + 1
        // `%2540`: encoded twice, or more.
        if prefix != 0 {
            while at + 3 < to, at - index < 9, text[at] == 0x32, text[at + 1] == 0x35 { at += 2 }
        }
        guard at + 1 < to, let high = Self.hex(text[at]), let low = Self.hex(text[at + 1]) else {
            append(text[index], index, 1)
            return 1
        }
        appendScalar(UInt32(high << 4 | low), index, at + 2 - index, isOctet: true)
        return at + 2 - index
    }

    private static func hex(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39: octet - 0x30
        case 0x41...0x46: octet - 0x37
        case 0x61...0x66: octet - 0x57
        default: nil
        }
    }

    /// `\u0040`, `\x40`; any other backslash is a character of its own.
    private mutating func readEscape(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        guard index + 3 < to else {
            append(text[index], index, 1)
            return 1
        }
        let digits = text[index + 1] == UInt8(ascii: "u") ? 4 : text[index + 1] == UInt8(ascii: "x") ? 2 : 0
        var value: UInt32 = 0
        guard digits > 0, index + 1 + digits < to else {
            append(text[index], index, 1)
            return 1
        }
        for place in (index + 2)..<(index + 2 + digits) {
            guard let digit = Self.hex(text[place]) else {
                append(text[index], index, 1)
                return 1
            }
            value = value << 4 | UInt32(digit)
        }
        appendScalar(value, index, 2 + digits, isOctet: digits == 2)
        return 2 + digits
    }

    /// A character reference of HTML: `&#64;`, `&#x40;`, `&commat;`, also escaped twice as `&amp;#64;`.
    private mutating func readReference(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        var at = index + 1
        let amp: [UInt8] = [0x61, 0x6D, 0x70, 0x3B]
        while at + 5 < to, at - index < 16, (0..<4).allSatisfy({ text[at + $0] | 0x20 == amp[$0] | 0x20 }),
            text[at + 4] == UInt8(ascii: "#") || text[at + 4] | 0x20 == UInt8(ascii: "c")
        {
            at += 4
        }
        let limit = min(to, index + Self.maximumReference)
        var value: UInt32 = 0
        if at < limit, text[at] == UInt8(ascii: "#") {
            at += 1
            let isHex = at < limit && text[at] | 0x20 == UInt8(ascii: "x")
            if isHex { at += 1 }
            let first = at
            while at < limit, let digit = Self.hex(text[at]), isHex || digit < 10 {
                value = min(value * (isHex ? 16 : 10) + UInt32(digit), 0x11_0000)
                at += 1
            }
            guard at > first else {
                append(text[index], index, 1)
                return 1
            }
        } else {
            var name: [UInt8] = []
            let first = at
            while at < limit, Self.isAlphanumeric(text[at]) {
                name.append(text[at])
                at += 1
            }
            guard at > first, at < limit, text[at] == UInt8(ascii: ";"),
                let named = Self.references[String(decoding: name, as: UTF8.self)]
            else {
                append(text[index], index, 1)
                return 1
            }
            value = named
        }
        if at < to, text[at] == UInt8(ascii: ";") { at += 1 }
        appendScalar(value, index, at - index, isOctet: false)
        return at - index
    }

    private static func isAlphanumeric(_ octet: UInt8) -> Bool {
        (0x30...0x39).contains(octet) || (0x61...0x7A).contains(octet | 0x20)
    }

    /// The references that stand for what addresses are made of, or for nothing that is seen.
    private static let references: [String: UInt32] = [
        "commat": 0x40, "period": 0x2E, "equals": 0x3D, "num": 0x23, "percnt": 0x25, "lpar": 0x28, "rpar": 0x29, "plus": 0x2B,
        "lowbar": 0x5F, "hyphen": 0x2D, "dash": 0x2D, "lt": 0x3C, "gt": 0x3E, "quot": 0x22, "apos": 0x27, "amp": 0x26,
        "colon": 0x3A,
        "nbsp": 0xA0, "shy": 0xAD, "zwnj": 0x200C, "zwj": 0x200D, "ZeroWidthSpace": 0x200B, "NoBreak": 0x2060, "Tab": 9,
        "NewLine": 10,
        "lsqb": 0x5B, "lbrack": 0x5B, "rsqb": 0x5D, "rbrack": 0x5D, "bsol": 0x5C, "sol": 0x2F,
    ]

    private mutating func readUnicode(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        let first = text[index]
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1
        guard length > 1, index + length <= to else {
            append(first, index, 1)
            return 1
        }
        var value = UInt32(first) & (length == 2 ? 0x1F : length == 3 ? 0x0F : 0x07)
        for place in (index + 1)..<(index + length) {
            guard text[place] & 0xC0 == 0x80 else {
                append(first, index, 1)
                return 1
            }
            value = value << 6 | UInt32(text[place] & 0x3F)
        }
        appendScalar(value, index, length, isOctet: false)
        return length
    }

    /// Appends what a character is read as: nothing for one that is not seen, the ASCII form for a full-width one.
    private mutating func appendScalar(_ value: UInt32, _ start: Int, _ length: Int, isOctet: Bool) {
        switch value {
        case 0x20, 0x09, 0: pendingGap |= Self.space
        case 0x0A, 0x0D: pendingGap |= Self.lineBreak
        case 0x41...0x5A: append(UInt8(value) | 0x20, start, length)
        case 0..<0x80: append(UInt8(value), start, length)
        case _ where isOctet: append(UInt8(truncatingIfNeeded: value), start, length)
        case 0xA0, 0xAD, 0x200B...0x200F, 0x2060, 0xFEFF: pendingGap |= Self.space
        case 0xFF01...0xFF5E:
            let ascii = UInt8(value - 0xFEE0)
            append(ascii >= 0x41 && ascii <= 0x5A ? ascii | 0x20 : ascii, start, length)
        case 0xFE6B: append(UInt8(ascii: "@"), start, length)
        default:
            guard let scalar = Unicode.Scalar(value) else {
                append(0xEF, start, length)
                return
            }
            let folded = foldsUnicode ? scalar.properties.lowercaseMapping : String(scalar)
            for octet in folded.utf8 { append(octet, start, length) }
        }
    }
}
