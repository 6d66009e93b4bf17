// A text as its reader sees it: in lower case, without unseen characters, and with what was before each octet instead of white
// space.

import Support

/// Octets of a text in one reading. Not what programs store: only what is compared.
struct Reading {
    private(set) var octets: [UInt8] = []
    /// What was before each octet.
    private(set) var gaps: [UInt8] = []
    private var pending: UInt8 = 0
    /// Whether what was before the next octet does not count.
    private var joins = false

    /// White space, a control character or the edge of an element: a word ends there.
    static let space: UInt8 = 1
    /// A line break, with the marks of quotations and the white space of folds after it: a word ends there.
    static let lineBreak: UInt8 = 2
    /// Beside `lineBreak`: the line before is so long that a program may have broken a word.
    static let wrapped: UInt8 = 4

    /// Octets of a line that a program breaks.
    private static let longLine = 60

    init() {}

    private init(capacity: Int) {
        octets.reserveCapacity(capacity)
        gaps.reserveCapacity(capacity)
    }

    /// The memory of a reading, for loops that see every octet.
    struct View {
        let octets: UnsafeBufferPointer<UInt8>
        let gaps: UnsafeBufferPointer<UInt8>

        var count: Int { octets.count }

        @inline(__always)
        subscript(index: Int) -> UInt8 { octets[index] }

        subscript(range: Range<Int>) -> Slice<UnsafeBufferPointer<UInt8>> { octets[range] }

        subscript(range: PartialRangeFrom<Int>) -> Slice<UnsafeBufferPointer<UInt8>> { octets[range] }

        /// Whether a word certainly ends before an octet.
        @inline(__always)
        func isApart(_ index: Int) -> Bool {
            let gap = gaps[index]
            return gap & Reading.space != 0 || gap & (Reading.lineBreak | Reading.wrapped) == Reading.lineBreak
        }

        /// Whether a word may go on here although its line ended.
        @inline(__always)
        func isWrapped(_ index: Int) -> Bool { gaps[index] == Reading.lineBreak | Reading.wrapped }

        /// Whether nothing is between the octets of a range.
        func isUnbroken(_ range: Range<Int>) -> Bool {
            guard range.upperBound <= octets.count else { return false }
            for index in range.dropFirst() where gaps[index] != 0 { return false }
            return true
        }
    }

    func withView<Result>(_ body: (View) -> Result) -> Result {
        octets.withUnsafeBufferPointer { octets in
            gaps.withUnsafeBufferPointer { body(View(octets: octets, gaps: $0)) }
        }
    }

    @inline(__always)
    mutating func append(_ octet: UInt8) {
        octets.append(octet)
        gaps.append(pending)
        pending = 0
    }

    @inline(__always)
    mutating func append(_ octet: UInt8, gap: UInt8) {
        note(gap)
        octets.append(octet)
        gaps.append(pending)
        pending = 0
    }

    @inline(__always)
    mutating func note(_ gap: UInt8) {
        if joins { joins = false } else { pending |= gap }
    }

    /// Joins the next octet to the last one, whatever was between.
    mutating func join() { joins = true }

    /// An octet that an escape stands for, in the same way as one that is there.
    mutating func appendDecoded(_ octet: UInt8, gap: UInt8) {
        note(gap)
        switch octet {
        case 0: break
        case 0x0A, 0x0D: pending |= Self.lineBreak
        case 0x01...0x20, 0x7F: pending |= Self.space
        default: append(octet.asciiLowercased)
        }
    }

    /// A character that a reference stands for.
    mutating func appendDecoded(_ scalar: UInt32, gap: UInt8) {
        guard scalar >= 0x80 else { return appendDecoded(UInt8(scalar), gap: gap) }
        note(gap)
        take(scalar)
    }

    // MARK: The plain reading

    private enum Class: UInt8 { case plain, capital, blank, lineFeed, carriageReturn, nul, control, high }

    private static let classes: [UInt8] = (0..<256).map { octet in
        let kind: Class =
            switch octet {
            case 0: .nul
            case 0x0A: .lineFeed
            case 0x0D: .carriageReturn
            case 0x09, 0x0B, 0x0C, 0x20: .blank
            case 0x41...0x5A: .capital
            case 0x80...0xFF: .high
            case 0x01..<0x20, 0x7F: .control
            default: .plain
            }
        return kind.rawValue
    }

    /// - Parameter isMarkup: in markup `>` after a line break ends a tag.
    init(_ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) {
        self.init(capacity: text.count)
        var lineStart = 0
        var index = 0
        Self.classes.withUnsafeBufferPointer { classes in
            while index < text.count {
                let octet = text[index]
                switch Class(rawValue: classes[Int(octet)]) {
                case .plain, nil:
                    append(octet)
                    index += 1
                case .capital:
                    append(octet | 0x20)
                    index += 1
                case .blank, .control:
                    pending |= Self.space
                    index += 1
                case .nul:
                    if !Self.isOfWide(text, index) { pending |= Self.space }
                    index += 1
                case .carriageReturn where index + 1 < text.count && text[index + 1] == 0x0A: index += 1
                case .carriageReturn, .lineFeed:
                    endLine(after: index - lineStart)
                    index = Self.quoteMarks(text, index + 1, isMarkup: isMarkup)
                    lineStart = index
                case .high: index += takeCharacter(text, index)
                }
            }
        }
    }

    private mutating func endLine(after length: Int) {
        // An empty line divides texts.
        if pending & Self.lineBreak != 0 {
            pending |= Self.space
        } else {
            pending |= length >= Self.longLine ? Self.lineBreak | Self.wrapped : Self.lineBreak
        }
    }

    /// Behind the marks and the white space that a program wrote at the beginning of a line.
    private static func quoteMarks(_ text: UnsafeBufferPointer<UInt8>, _ start: Int, isMarkup: Bool) -> Int {
        var index = start
        while index < text.count {
            switch text[index] {
            case 0x20, 0x09: index += 1
            case UInt8(ascii: ">") where !isMarkup, UInt8(ascii: "|") where !isMarkup: index += 1
            default: return index
            }
        }
        return index
    }

    /// Whether a NUL is half of a character in UTF-16, and not the end of a text.
    private static func isOfWide(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> Bool {
        let isAlone = (index == 0 || text[index - 1] != 0) && (index + 1 >= text.count || text[index + 1] != 0)
        return isAlone && (index >= 2 && text[index - 2] == 0 || index + 2 < text.count && text[index + 2] == 0)
    }

    // MARK: Characters beyond ASCII

    /// Takes the character at an index; returns how many octets it has. Octets that are not valid UTF-8 stay as they are.
    private mutating func takeCharacter(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> Int {
        let first = text[index]
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1
        guard length > 1, first < 0xF5, index + length <= text.count else {
            append(first)
            return 1
        }
        var scalar = UInt32(first) & (0x7F >> UInt32(length))
        for next in (index + 1)..<(index + length) {
            guard text[next] & 0xC0 == 0x80 else {
                append(first)
                return 1
            }
            scalar = scalar << 6 | UInt32(text[next] & 0x3F)
        }
        take(scalar)
        return length
    }

    private mutating func take(_ scalar: UInt32) {
        switch scalar {
        // Unseen: soft hyphen, joiners, marks of direction, variation selectors, tags.
        case 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x180B...0x180E, 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x206F,
            0xFE00...0xFE0F,
            0xFEFF, 0xE0000...0xE0FFF:
            return
        case 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: pending |= Self.space
        case 0xFF01...0xFF5E: append(UInt8(scalar - 0xFEE0).asciiLowercased)
        case 0x2024, 0x3002, 0xFE52, 0xFF61: append(UInt8(ascii: "."))
        case 0xFE6B: append(UInt8(ascii: "@"))
        case 0x2010...0x2012, 0x2212: append(UInt8(ascii: "-"))
        case 0x212A: append(UInt8(ascii: "k"))
        default:
            guard let value = Unicode.Scalar(scalar) else { return }
            // No script beyond these has letters of two cases that are in use.
            if scalar < 0x2E80 || scalar >= 0xA640 {
                for octet in value.properties.lowercaseMapping.utf8 { append(octet) }
            } else {
                for octet in UTF8.encode(value) ?? UTF8.encodedReplacementCharacter { append(octet) }
            }
        }
    }

    // MARK: Other readings

    /// A reading in which `step` replaced what begins with a mark: it says how many octets that took, and appends what they stand
    /// for; or 0, and appends nothing. Nil where nothing was replaced, so that the reading would be the same.
    func rewritten(
        _ mark: UInt8, _ step: (View, Int, inout Reading) -> Int
    ) -> Reading? {
        withView { text in
            guard text.octets.firstIndex(of: mark, from: 0) != nil else { return nil }
            var output = Reading(capacity: text.count)
            var isChanged = false
            var copied = 0
            var index = 0
            while let next = text.octets.firstIndex(of: mark, from: index) {
                output.copy(text, copied..<next)
                copied = next
                let taken = step(text, next, &output)
                if taken > 0 {
                    isChanged = true
                    copied = next + taken
                }
                index = max(copied, next + 1)
            }
            guard isChanged else { return nil }
            output.copy(text, copied..<text.count)
            return output
        }
    }

    private mutating func copy(_ other: View, _ range: Range<Int>) {
        guard !range.isEmpty else { return }
        append(other[range.lowerBound], gap: other.gaps[range.lowerBound])
        let rest = (range.lowerBound + 1)..<range.upperBound
        octets += other.octets[rest]
        gaps += other.gaps[rest]
    }
}
