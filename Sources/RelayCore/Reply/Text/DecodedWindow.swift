// Text in the form that a reader or a program may see: lower case, decoded, without breaks, with
// the origin of each unit.

import Support

/// The ways to decode text. Each is a separate reading, as `=be` is an octet in one and two letters
/// in another.
struct DecodingPass: OptionSet {
    let rawValue: UInt8

    /// `%40` (RFC 3986), also encoded twice.
    static let percent = DecodingPass(rawValue: 1)
    /// `=40` and soft line breaks (RFC 2045), but not `_` of encoded words.
    static let equals = DecodingPass(rawValue: 2)
    /// `+40`: xtext (RFC 3461).
    static let plus = DecodingPass(rawValue: 4)
    /// Skips mark-up between letters: `anna<wbr>@example`.
    static let tags = DecodingPass(rawValue: 8)
}

/// One window of text in one decoding pass. Offsets are those of the complete text. Not
/// thread-safe.
final class DecodedWindow {
    /// Lower-cased, decoded octets without white space.
    var octets: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: storage, count: count) }
    /// The kinds of characters skipped before each unit.
    var separators: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: before, count: count) }
    /// Bits of `separators`.
    static let space: UInt8 = 1
    static let lineBreak: UInt8 = 2
    /// Invisible characters, such as a soft hyphen: the text on both sides reads as one word.
    static let unseen: UInt8 = 4

    private let storage: UnsafeMutablePointer<UInt8>
    private let before: UnsafeMutablePointer<UInt8>
    private let lengths: UnsafeMutablePointer<UInt8>
    private let starts: UnsafeMutablePointer<Int32>
    private let capacity: Int
    /// Maximum octets of text that are read at once.
    let textCapacity: Int
    private var count = 0
    private var pendingGap: UInt8 = 0
    private let foldsUnicode: Bool
    /// The next `>` or `@`, as far as it was searched for, so that no octet is searched twice.
    private var tagStop = 0

    /// Maximum octets of a reference or tag; anything longer is text.
    private static let maximumReference = 40
    private static let maximumTag = 200
    /// Maximum units for one octet of text: a non-ASCII letter may fold to more octets than it had.
    private static let growth = 3

    /// - Parameter capacity: maximum octets of text that are read at once.
    init(foldsUnicode: Bool, capacity: Int) {
        self.foldsUnicode = foldsUnicode
        textCapacity = capacity
        self.capacity = capacity * (foldsUnicode ? Self.growth : 1) + 16
        storage = .allocate(capacity: self.capacity)
        before = .allocate(capacity: self.capacity)
        lengths = .allocate(capacity: self.capacity)
        starts = .allocate(capacity: self.capacity)
    }

    deinit {
        storage.deallocate()
        before.deallocate()
        lengths.deallocate()
        starts.deallocate()
    }

    func start(_ unit: Int) -> Int { Int(starts[unit]) }
    func end(_ unit: Int) -> Int { Int(starts[unit]) + Int(lengths[unit]) }

    @inline(__always)
    private func append(_ unit: UInt8, _ start: Int, _ length: Int) {
        guard count < capacity else { return }
        storage[count] = unit
        starts[count] = Int32(truncatingIfNeeded: start)
        lengths[count] = UInt8(truncatingIfNeeded: min(length, 255))
        before[count] = pendingGap
        count += 1
        pendingGap = 0
    }

    /// The class of each octet in all passes: literal, capital, white space, line break, or
    /// something to decode.
    private static let classes: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0x41...0x5A: 1
        case 0x20, 0x09, 0: 2
        case 0x0A, 0x0D: 3
        case 0x25, 0x26, 0x2B, 0x3C, 0x3D, 0x5C, 0x80...: 4
        default: 0
        }
    }

    /// Reads `text[from..<to]` in place of the text that was read before.
    func read(_ text: UnsafeBufferPointer<UInt8>, from: Int, to: Int, lens: DecodingPass) {
        count = 0
        tagStop = from
        pendingGap = from == 0 ? Self.space | Self.lineBreak : 0
        var index = from
        Self.classes.withUnsafeBufferPointer { classes in
            while index < to {
                let octet = text[index]
                switch classes[Int(octet)] {
                case 0:
                    append(octet, index, 1)
                    index += 1
                case 1:
                    append(octet | 0x20, index, 1)
                    index += 1
                case 2:
                    pendingGap |= Self.space
                    index += 1
                case 3:
                    pendingGap |= Self.lineBreak
                    index = Self.pastBreak(text, index, to)
                default: index += readMark(text, index, to, lens)
                }
            }
        }
    }

    /// Discards the state of the text that was read before.
    func begin() { tagStop = 0 }

    /// Reads a mark at one index that may represent another character. `octets` holds the result,
    /// and is empty for an invisible one. From `begin` on, the indices of one text must rise.
    /// - Returns: the number of octets read.
    func readMark(at index: Int, in text: UnsafeBufferPointer<UInt8>, lens: DecodingPass) -> Int {
        count = 0
        return readMark(text, index, text.count, lens)
    }

    /// The index after an octet of a line break.
    static func pastBreak(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        text[index] == 0x0A ? skipQuoting(text, index + 1, to) : index + 1
    }

    /// Reads a mark that may represent another character; returns the number of octets read.
    private func readMark(
        _ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int, _ lens: DecodingPass
    ) -> Int {
        let octet = text[index]
        switch octet {
        case UInt8(ascii: "&"): return readReference(text, index, to)
        case UInt8(ascii: "\\"): return readEscape(text, index, to)
        case 0x80...: return readUnicode(text, index, to)
        case UInt8(ascii: "%") where lens.contains(.percent):
            return readHex(text, index, to, prefix: octet)
        case UInt8(ascii: "+") where lens.contains(.plus):
            return readHex(text, index, to, prefix: 0)
        case UInt8(ascii: "=") where lens.contains(.equals):
            let width = Self.softBreak(text, index, to)
            return width > 0 ? width : readHex(text, index, to, prefix: 0)
        case UInt8(ascii: "<") where lens.contains(.tags):
            if let end = endOfTag(text, index, to) { return end - index }
        default: break
        }
        append(octet, index, 1)
        return 1
    }

    /// Quote marks at the beginning of a line belong to its line break: `> `, `>> `.
    private static func skipQuoting(
        _ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int
    ) -> Int {
        var end = index
        while end < to, end - index < 64, text[end] == UInt8(ascii: ">") || text[end] == 0x20 {
            end += 1
        }
        return end
    }

    /// The number of octets of `=` white space CRLF, or 0.
    static func softBreak(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        var end = index + 1
        while end < to, end - index < 64, text[end] == 0x20 || text[end] == 0x09 { end += 1 }
        guard end < to else { return 0 }
        if text[end] == 0x0A { return end + 1 - index }
        return text[end] == 0x0D && end + 1 < to && text[end + 1] == 0x0A ? end + 2 - index : 0
    }

    /// The next offset at which this pass decodes something that the plain reading leaves
    /// unchanged; nil for none.
    static func nextDecoded(
        _ lens: DecodingPass, _ text: UnsafeBufferPointer<UInt8>, from: Int
    ) -> Int? {
        let mark: UInt8 =
            lens.contains(.percent)
            ? 0x25 : lens.contains(.equals) ? 0x3D : lens.contains(.plus) ? 0x2B : 0x3C
        var index = from
        while index + 1 < text.count {
            if text[index] == mark {
                if mark == 0x3C { return index }
                if index + 2 < text.count, text[index + 1].hexValue != nil,
                    text[index + 2].hexValue != nil
                {
                    return index
                }
                if mark == 0x25, brokenEscape(text, index, text.count) != nil { return index }
                if mark == 0x3D, softBreak(text, index, text.count) > 0 { return index }
            }
            index += 1
        }
        return nil
    }

    private func endOfTag(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int? {
        guard index + 1 < to,
            text[index + 1] == UInt8(ascii: "/") || text[index + 1] == UInt8(ascii: "!")
                || (text[index + 1] | 0x20) >= 0x61
        else { return nil }
        if tagStop <= index {
            tagStop = index + 1
            while tagStop < to, text[tagStop] != UInt8(ascii: ">"),
                text[tagStop] != UInt8(ascii: "@")
            { tagStop += 1 }
        }
        guard tagStop < to, text[tagStop] == UInt8(ascii: ">"), tagStop - index < Self.maximumTag
        else { return nil }
        return tagStop + 1
    }

    // MARK: Encoded characters. Each function reads at `index` and returns the octets it read.

    private func readHex(
        _ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int, prefix: UInt8
    ) -> Int {
        var at = index + 1
        // `%2540`: encoded twice or more often.
        if prefix != 0 {
            while at + 3 < to, at - index < 9, text[at] == 0x32, text[at + 1] == 0x35 { at += 2 }
        }
        if prefix != 0, let escape = Self.brokenEscape(text, index, to) {
            append(UInt8(ascii: "@"), index, escape - index)
            return escape - index
        }
        guard at + 1 < to, let high = text[at].hexValue, let low = text[at + 1].hexValue else {
            append(text[index], index, 1)
            return 1
        }
        appendScalar(UInt32(high << 4 | low), index, at + 2 - index, isOctet: true)
        return at + 2 - index
    }

    /// The index after `%40` in which a program broke the line; nil for anything else.
    private static func brokenEscape(
        _ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int
    ) -> Int? {
        var at = index + 1
        var isBroken = false
        for digit in [UInt8(ascii: "4"), UInt8(ascii: "0")] {
            if !isBroken, at < to, text[at] == 0x0D || text[at] == 0x0A {
                isBroken = true
                if text[at] == 0x0D, at + 1 < to, text[at + 1] == 0x0A { at += 1 }
                at = skipQuoting(text, at + 1, to)
            }
            guard at < to, text[at] == digit else { return nil }
            at += 1
        }
        return isBroken ? at : nil
    }

    /// The marks of addresses that may be written after a backslash.
    private static func isMark(_ value: UInt32) -> Bool {
        value == 0x40 || value == 0x2B || (0x2D...0x2E).contains(value) || value == 0x5F
    }

    /// Reads a mark after a backslash in the form of CSS (`\40`, with leading zeros), JavaScript
    /// (`\100`, `\u{40}`), RTF (`\'40`, `\u64?`) or Markdown (`\_`, `\.`); returns 0 if there is
    /// none.
    private func readMarkEscape(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int
    {
        let first = index + 1
        guard first + 1 < to else { return 0 }
        var value: UInt32 = 0
        var end = first
        switch text[first] {
        case UInt8(ascii: "'"):
            guard first + 2 < to, let high = text[first + 1].hexValue,
                let low = text[first + 2].hexValue
            else { return 0 }
            (value, end) = (UInt32(high << 4 | low), first + 3)
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            guard let escape = Self.longEscape(text, first + 1, to) else { return 0 }
            (value, end) = escape
        case 0x30...0x39:
            guard let escape = Self.numericEscape(text, first, to) else { return 0 }
            (value, end) = escape
        default: (value, end) = (UInt32(text[first]), first + 1)
        }
        guard Self.isMark(value) else { return 0 }
        append(UInt8(value), index, end - index)
        return end - index
    }

    /// After `\u`: `{40}`, also with leading zeros, or decimal digits and a question mark.
    private static func longEscape(
        _ text: UnsafeBufferPointer<UInt8>, _ first: Int, _ to: Int
    ) -> (UInt32, Int)? {
        let isHex = text[first] == UInt8(ascii: "{")
        var at = isHex ? first + 1 : first
        let begin = at
        var value: UInt32 = 0
        while at < to, at - begin < 6, let digit = text[at].hexValue, isHex || digit < 10 {
            value = value * (isHex ? 16 : 10) + UInt32(digit)
            at += 1
        }
        guard at > begin, at < to, text[at] == UInt8(ascii: isHex ? "}" : "?") else { return nil }
        return (value, at + 1)
    }

    /// Two hexadecimal digits after up to four zeros, or three octal digits.
    private static func numericEscape(
        _ text: UnsafeBufferPointer<UInt8>, _ first: Int, _ to: Int
    ) -> (UInt32, Int)? {
        func octal(_ at: Int) -> UInt32? {
            (0x30...0x37).contains(text[at]) ? UInt32(text[at] - 0x30) : nil
        }
        if first + 2 < to, let a = octal(first), let b = octal(first + 1), let c = octal(first + 2)
        {
            let value = a << 6 | b << 3 | c
            if isMark(value) { return (value, first + 3) }
        }
        var at = first
        while at < to, at - first < 4, text[at] == UInt8(ascii: "0") { at += 1 }
        guard at + 1 < to, let high = text[at].hexValue, let low = text[at + 1].hexValue else {
            return nil
        }
        return (UInt32(high << 4 | low), at + 2)
    }

    /// `\u0040`, `\x40`; any other backslash is literal.
    private func readEscape(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        let width = readMarkEscape(text, index, to)
        guard width == 0 else { return width }
        guard index + 3 < to else {
            append(text[index], index, 1)
            return 1
        }
        let digits =
            text[index + 1] == UInt8(ascii: "u") ? 4 : text[index + 1] == UInt8(ascii: "x") ? 2 : 0
        var value: UInt32 = 0
        guard digits > 0, index + 1 + digits < to else {
            append(text[index], index, 1)
            return 1
        }
        for place in (index + 2)..<(index + 2 + digits) {
            guard let digit = text[place].hexValue else {
                append(text[index], index, 1)
                return 1
            }
            value = value << 4 | UInt32(digit)
        }
        appendScalar(value, index, 2 + digits, isOctet: digits == 2)
        return 2 + digits
    }

    /// A character reference of HTML: `&#64;`, `&#x40;`, `&commat;`, also
    /// escaped twice as `&amp;#64;`.
    private func readReference(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
        var at = index + 1
        let amp: [UInt8] = [0x61, 0x6D, 0x70, 0x3B]
        while at + 5 < to, at - index < 16,
            (0..<4).allSatisfy({ text[at + $0] | 0x20 == amp[$0] | 0x20 }),
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
            while at < limit, let digit = text[at].hexValue, isHex || digit < 10 {
                value = min(value * (isHex ? 16 : 10) + UInt32(digit), 0x11_0000)
                at += 1
            }
            guard at > first else {
                append(text[index], index, 1)
                return 1
            }
        } else {
            let first = at
            var name: UInt64 = 0
            while at < limit, Self.isAlphanumeric(text[at]), at - first < 8 {
                name = name << 8 | UInt64(text[at])
                at += 1
            }
            // One name is longer than eight letters. It is recognised by the first eight and by the
            // letters after them.
            if name == Self.zeroWidth, at + 6 <= limit,
                (0..<6).allSatisfy({ text[at + $0] == Self.zeroWidthRest[$0] })
            {
                at += 6
            }
            guard at > first, at < limit, text[at] == UInt8(ascii: ";"),
                let named = Self.references[name]
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

    /// The references for characters of addresses, and for invisible characters.
    private static let references: [UInt64: UInt32] = Dictionary(
        uniqueKeysWithValues: names.map { (packed($0), UInt32($1)) })
    private static let names: KeyValuePairs<String, Int> = [
        "commat": 0x40, "period": 0x2E, "equals": 0x3D, "num": 0x23, "percnt": 0x25, "lpar": 0x28,
        "rpar": 0x29, "plus": 0x2B,
        "lowbar": 0x5F, "hyphen": 0x2D, "dash": 0x2D, "lt": 0x3C, "gt": 0x3E, "quot": 0x22,
        "apos": 0x27, "amp": 0x26,
        "colon": 0x3A,
        "nbsp": 0xA0, "shy": 0xAD, "zwnj": 0x200C, "zwj": 0x200D, "ZeroWidthSpace": 0x200B,
        "NoBreak": 0x2060, "Tab": 9,
        "NewLine": 10,
        "lsqb": 0x5B, "lbrack": 0x5B, "rsqb": 0x5D, "rbrack": 0x5D, "bsol": 0x5C, "sol": 0x2F,
    ]

    private static func packed(_ name: String) -> UInt64 {
        name.utf8.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    private static let zeroWidth = packed("ZeroWidthSpace")
    private static let zeroWidthRest = Array("hSpace".utf8)

    private func readUnicode(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ to: Int) -> Int {
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
        if !foldsUnicode, !Self.isSpecial(value) {
            for place in index..<(index + length) { append(text[place], index, length) }
        } else {
            appendScalar(value, index, length, isOctet: false)
        }
        return length
    }

    /// Whether `appendScalar` has a replacement for a non-ASCII character.
    private static func isSpecial(_ value: UInt32) -> Bool {
        value == 0xA0 || CompatibilityFold.isUnseen(value) || CompatibilityFold.octet(value) != nil
    }

    /// Appends a character in the form that is read: nothing for an invisible one, the ASCII form
    /// for a full-width one.
    private func appendScalar(_ value: UInt32, _ start: Int, _ length: Int, isOctet: Bool) {
        switch value {
        case 0x20, 0x09, 0: pendingGap |= Self.space
        case 0x0A, 0x0D: pendingGap |= Self.lineBreak
        case 0x41...0x5A: append(UInt8(value) | 0x20, start, length)
        case 0..<0x80: append(UInt8(value), start, length)
        case _ where isOctet: append(UInt8(truncatingIfNeeded: value), start, length)
        case 0xA0: pendingGap |= Self.space
        case _ where CompatibilityFold.isUnseen(value): pendingGap |= Self.unseen
        default:
            // They include the dots of domains in East Asian scripts (RFC 3490 section 3.1).
            if let octet = CompatibilityFold.octet(value) { return append(octet, start, length) }
            guard let scalar = Unicode.Scalar(value) else {
                append(0xEF, start, length)
                return
            }
            if foldsUnicode, scalar.properties.changesWhenLowercased {
                for octet in scalar.properties.lowercaseMapping.utf8 {
                    append(octet, start, length)
                }
            } else {
                UTF8.encode(scalar)?.forEach { append($0, start, length) }
            }
        }
    }
}
