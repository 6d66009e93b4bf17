// A text in the form that its reader sees: in lower case, without invisible characters, and with a
// mark before each octet instead of white space.

import Support

/// Octets of a text in one reading. They are only compared, and are not the octets that programs
/// store. The memory is reused for the next text.
struct Reading: ~Copyable {
    private var octets: UnsafeMutablePointer<UInt8>
    /// The kind of gap before each octet.
    private var gaps: UnsafeMutablePointer<UInt8>
    private var capacity = 1
    private(set) var count = 0
    private var pending: UInt8 = 0
    /// Whether the gap before the next octet is ignored.
    private var joins = false
    /// The ranges that differ from the reading from which it was made, in order. All else was
    /// already examined.
    private(set) var changes: [Range<Int>] = []
    /// The last of these ranges, which may still grow.
    private var change = 0..<0

    /// White space, a control character or the edge of an element. A word ends there.
    static let space: UInt8 = 1
    /// A line break, with the marks of quotations and the white space of folds after it. A word
    /// ends there.
    static let lineBreak: UInt8 = 2
    /// In addition to `lineBreak`: the line before is so long that a program may have broken a
    /// word.
    static let wrapped: UInt8 = 4

    /// Minimum octets of a line that a program breaks.
    private static let longLine = 60
    /// Changes with a smaller distance become one.
    private static let nearby = 2 * AddressReading.reach + 64

    init() {
        octets = .allocate(capacity: 1)
        gaps = .allocate(capacity: 1)
    }

    deinit {
        octets.deallocate()
        gaps.deallocate()
    }

    // MARK: Looking

    /// The memory of a reading, for loops over every octet.
    struct View {
        let octets: UnsafeBufferPointer<UInt8>
        let gaps: UnsafeBufferPointer<UInt8>

        var count: Int { octets.count }

        @inline(__always)
        subscript(index: Int) -> UInt8 { octets[index] }

        subscript(range: Range<Int>) -> Slice<UnsafeBufferPointer<UInt8>> { octets[range] }

        /// Whether a word certainly ends before an octet.
        @inline(__always)
        func isApart(_ index: Int) -> Bool {
            let gap = gaps[index]
            return gap & Reading.space != 0
                || gap & (Reading.lineBreak | Reading.wrapped) == Reading.lineBreak
        }

        /// Whether a word may continue here although its line ended.
        @inline(__always)
        func isWrapped(_ index: Int) -> Bool { gaps[index] == Reading.lineBreak | Reading.wrapped }

        /// Whether there are no gaps between the octets of a range.
        @inline(__always)
        func isUnbroken(_ range: Range<Int>) -> Bool {
            guard range.upperBound <= octets.count else { return false }
            for index in range.dropFirst() where gaps[index] != 0 { return false }
            return true
        }

        /// Whether these octets are at an index.
        @inline(__always)
        func holds(_ word: StaticString, at index: Int) -> Bool {
            let count = word.utf8CodeUnitCount
            guard index >= 0, index + count <= octets.count else { return false }
            for offset in 0..<count where octets[index + offset] != word.utf8Start[offset] {
                return false
            }
            return true
        }

        /// Whether these octets are at an index, before an end.
        @inline(__always)
        func holds(_ word: [UInt8], at index: Int, before end: Int) -> Bool {
            guard index >= 0, index + word.count <= end, end <= octets.count else { return false }
            return word.withUnsafeBufferPointer { word in
                for offset in 0..<word.count where octets[index + offset] != word[offset] {
                    return false
                }
                return true
            }
        }

        /// The index of an octet in a range.
        @inline(__always)
        func first(_ octet: UInt8, in range: Range<Int>) -> Int? {
            UnsafeBufferPointer(rebasing: octets[..<range.upperBound]).firstIndex(
                of: octet, from: range.lowerBound)
        }

        /// The index of the last such octet in a range.
        @inline(__always)
        func last(_ octet: UInt8, in range: Range<Int>) -> Int? {
            var index = range.upperBound
            while index > range.lowerBound {
                index -= 1
                if octets[index] == octet { return index }
            }
            return nil
        }
    }

    /// Valid until the reading is made again.
    var view: View {
        View(
            octets: UnsafeBufferPointer(start: octets, count: count),
            gaps: UnsafeBufferPointer(start: gaps, count: count))
    }

    // MARK: Writing

    private mutating func begin(room: Int) {
        count = 0
        pending = 0
        joins = false
        changes.removeAll(keepingCapacity: true)
        ensure(room)
    }

    /// Makes room for this many octets in all.
    private mutating func ensure(_ wanted: Int) {
        guard wanted > capacity else { return }
        capacity = max(wanted + wanted / 4, 256)
        for isGap in [false, true] {
            let old = isGap ? gaps : octets
            let new = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
            new.update(from: old, count: count)
            old.deallocate()
            if isGap { gaps = new } else { octets = new }
        }
    }

    @inline(__always)
    private mutating func append(_ octet: UInt8) {
        if count == capacity { ensure(count + 1) }
        octets[count] = octet
        gaps[count] = pending
        count += 1
        pending = 0
    }

    @inline(__always)
    private mutating func note(_ gap: UInt8) {
        if joins { joins = false } else { pending |= gap }
    }

    /// Appends the octet of an escape, in the same way as a plain octet.
    private mutating func appendDecoded(_ octet: UInt8) {
        switch octet {
        case 0: break
        case 0x0A, 0x0D: pending |= Self.lineBreak
        case 0x01...0x20, 0x7F: pending |= Self.space
        default: append(octet.asciiLowercased)
        }
    }

    // MARK: The plain reading

    /// Octets that stay unchanged, in lower case; 0 for others.
    private static let plain: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0x41...0x5A: UInt8(octet | 0x20)
        case 0x21...0x7E: UInt8(octet)
        default: 0
        }
    }

    /// Reads a text.
    /// - Parameter isMarkup: in markup `>` after a line break ends a tag.
    mutating func read(_ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) {
        begin(room: text.count + 8)
        var lineStart = 0
        var index = 0
        Self.plain.withUnsafeBufferPointer { plain in
            while index < text.count {
                // Local copies, because a write through a pointer could change the properties.
                if capacity - count < text.count - index { ensure(count + text.count - index + 8) }
                var (next, gap) = (count, pending)
                let (octets, gaps) = (octets, gaps)
                while index < text.count {
                    let octet = plain[Int(text[index])]
                    if octet == 0 {
                        guard text[index] == 0x20 else { break }
                        gap |= Self.space
                    } else {
                        octets[next] = octet
                        gaps[next] = gap
                        next += 1
                        gap = 0
                    }
                    index += 1
                }
                (count, pending) = (next, gap)
                guard index < text.count else { return }
                switch text[index] {
                case 0:
                    if !Self.isOfWide(text, index) { pending |= Self.space }
                    index += 1
                case 0x0D where index + 1 < text.count && text[index + 1] == 0x0A: index += 1
                case 0x0D, 0x0A:
                    endLine(after: index - lineStart)
                    index = Self.quoteMarks(text, index + 1, isMarkup: isMarkup)
                    lineStart = index
                case 0x80...: index += takeCharacter(text, index)
                default:
                    pending |= Self.space
                    index += 1
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

    /// The index after the marks and the white space that a program wrote at the beginning of a
    /// line.
    private static func quoteMarks(
        _ text: UnsafeBufferPointer<UInt8>, _ start: Int, isMarkup: Bool
    ) -> Int {
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
        let isAlone =
            (index == 0 || text[index - 1] != 0)
            && (index + 1 >= text.count || text[index + 1] != 0)
        return isAlone
            && (index >= 2 && text[index - 2] == 0
                || index + 2 < text.count && text[index + 2] == 0)
    }

    // MARK: Non-ASCII characters

    /// Reads the character at an index; returns the number of its octets. Octets that are not valid
    /// UTF-8 stay unchanged.
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
        if CompatibilityFold.isUnseen(scalar) { return }
        if let octet = CompatibilityFold.octet(scalar) { return append(octet) }
        switch scalar {
        case 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
            pending |= Self.space
        default:
            guard let value = Unicode.Scalar(scalar) else { return }
            // No other script has letters of two cases that are in use.
            if scalar < 0x2E80 || scalar >= 0xA640 && !(0xAC00...0xD7A3).contains(scalar) {
                takeLetter(value)
            } else {
                for octet in UTF8.encode(value) ?? UTF8.encodedReplacementCharacter {
                    append(octet)
                }
            }
        }
    }

    /// Characters below U+2E80 in lower case: up to three octets, the first one lowest, or 0 for a
    /// character that is not yet known.
    private var lowered: [UInt32] = []

    private mutating func takeLetter(_ value: Unicode.Scalar) {
        guard value.value < 0x2E80 else {
            for octet in value.properties.lowercaseMapping.utf8 { append(octet) }
            return
        }
        if lowered.isEmpty { lowered = [UInt32](repeating: 0, count: 0x2E80) }
        var octets = lowered[Int(value.value)]
        if octets == 0 {
            for octet in value.properties.lowercaseMapping.utf8.reversed() {
                octets = octets << 8 | UInt32(octet)
            }
            lowered[Int(value.value)] = octets
        }
        while octets != 0 {
            append(UInt8(truncatingIfNeeded: octets))
            octets >>= 8
        }
    }

    // MARK: Other readings

    /// The meaning of octets.
    enum Meaning {
        /// An octet, read in the same way as a plain octet.
        case octet(UInt8)
        case scalar(UInt32)
        /// An octet that stays unchanged.
        case literal(UInt8)
        /// Only a gap between words, of this kind.
        case gap(UInt8)
        /// Nothing: the octets on both sides are one word, regardless of the text between them.
        case join
    }

    /// Makes a reading of another one. `meaning` returns the number and the meaning of the octets
    /// that begin with a mark.
    /// - Parameter earlier: changes of the other reading that were not yet examined.
    /// - Returns: whether there was any such mark. Without one, the reading is not made.
    @inline(__always)
    mutating func make(
        of text: View, _ mark: UInt8, with earlier: [Range<Int>] = [],
        _ meaning: (View, Int) -> (Meaning, Int)?
    ) -> Bool {
        var isMade = false
        var old = earlier[...]
        var copied = 0
        var index = 0
        while let next = text.octets.firstIndex(of: mark, from: index) {
            guard let (meaning, taken) = meaning(text, next) else {
                index = next + 1
                continue
            }
            if !isMade {
                begin(room: text.count + 8)
                let first = old.first.map { min($0.lowerBound, next) } ?? next
                change = first..<first
            }
            isMade = true
            copy(text, copied..<next, &old)
            let start = count
            let gap = text.gaps[next]
            if case .gap(let more) = meaning { note(gap | more) } else { note(gap) }
            switch meaning {
            case .octet(let octet): appendDecoded(octet)
            case .scalar(let scalar):
                if scalar < 0x80 { appendDecoded(UInt8(scalar)) } else { take(scalar) }
            case .literal(let octet): append(octet)
            case .gap: break
            case .join: joins = true
            }
            change(start..<count)
            copied = next + taken
            index = copied
        }
        guard isMade else { return false }
        copy(text, copied..<text.count, &old)
        changes.append(change)
        return true
    }

    private mutating func copy(
        _ other: View, _ range: Range<Int>, _ earlier: inout ArraySlice<Range<Int>>
    ) {
        while let first = earlier.first, first.lowerBound <= range.upperBound {
            let shift = count - range.lowerBound
            change(
                (max(first.lowerBound, range.lowerBound) + shift)..<(max(
                    min(first.upperBound, range.upperBound), range.lowerBound) + shift))
            guard first.upperBound <= range.upperBound else { break }
            earlier.removeFirst()
        }
        guard !range.isEmpty, let from = other.octets.baseAddress, let gap = other.gaps.baseAddress
        else { return }
        ensure(count + range.count)
        note(other.gaps[range.lowerBound])
        (octets + count).update(from: from + range.lowerBound, count: range.count)
        (gaps + count).update(from: gap + range.lowerBound, count: range.count)
        gaps[count] = pending
        pending = 0
        count += range.count
    }

    @inline(__always)
    private mutating func change(_ range: Range<Int>) {
        if range.lowerBound - change.upperBound < Self.nearby {
            change = change.lowerBound..<max(change.upperBound, range.upperBound)
        } else {
            changes.append(change)
            change = range
        }
    }
}
