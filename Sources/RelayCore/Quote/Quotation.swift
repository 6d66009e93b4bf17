// Finds the quotations in a text by form alone: marks, containers, and everything below an
// attribution or a block of fields.

import InternetMessage
import Support

enum Quotation {
    /// More lines than any letter has. A text with more lines is treated as one quotation.
    private static let maximumLines = 200_000

    /// The stretches of a user's text: typed text, quotations, and text that a program wrote.
    static func stretches(of text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax) -> Stretches {
        let stretches = syntax == .markup ? markup(text) : plain(text)
        return stretches.starts.count > Stretches.maximumCount ? Stretches(.quoted) : stretches
    }

    static func stretches(of text: [UInt8], syntax: TextSyntax) -> Stretches {
        text.withUnsafeBufferPointer { stretches(of: $0, syntax: syntax) }
    }

    private static func plain(_ text: UnsafeBufferPointer<UInt8>) -> Stretches {
        var lines: [QuoteLines.Line] = []
        var start = 0
        while start < text.count {
            guard lines.count < maximumLines else { return Stretches(.quoted) }
            let end = text.firstIndex(of: 0x0A, from: start) ?? text.count
            if let parts = QuoteLines.divided(text, start..<end) {
                for part in parts {
                    lines.append(QuoteLines.Line(start: part.start, words: part.words, in: text))
                }
            } else {
                lines.append(QuoteLines.Line(start: start, words: start..<end, in: text))
            }
            start = end + 1
        }
        return QuoteLines(lines, of: text, isMarkup: false).stretches()
    }

    private static func markup(_ source: UnsafeBufferPointer<UInt8>) -> Stretches {
        let elements = Elements(source)
        guard elements.lines.count < maximumLines else { return Stretches(.quoted) }
        let stretches = elements.text.withUnsafeBufferPointer { text in
            QuoteLines(
                elements.lines.map {
                    QuoteLines.Line($0, in: text, isTail: $0.start >= elements.tail ?? .max)
                },
                of: text, isMarkup: true
            ).stretches()
        }
        return stretches.covered(elements.hidden, length: source.count)
    }
}

extension Stretches {
    /// The same stretches, with some ranges (in order) marked as a program's, unless they are
    /// quoted.
    func covered(_ hidden: [Range<Int>], length: Int) -> Stretches {
        guard !hidden.isEmpty else { return self }
        var covered = Stretches(standings[0])
        var next = 0
        forEach(upTo: length) { range, standing in
            covered.note(standing, at: range.lowerBound)
            while next < hidden.count, hidden[next].upperBound <= range.lowerBound { next += 1 }
            guard standing == .typed else { return }
            var number = next
            while number < hidden.count, hidden[number].lowerBound < range.upperBound {
                covered.note(.program, at: max(hidden[number].lowerBound, range.lowerBound))
                if hidden[number].upperBound < range.upperBound {
                    covered.note(.typed, at: hidden[number].upperBound)
                }
                number += 1
            }
        }
        return covered
    }
}

/// Classifies the lines of one text, in order.
struct QuoteLines {
    struct Line {
        /// Its start in the source.
        let start: Int
        /// The range in the text of its words, without marks and without white space at both ends.
        let words: Range<Int>
        let isMarked: Bool
        /// In a container in which programs put the attribution.
        let isAttribution: Bool
        /// After an element that the quotation follows.
        let isTail: Bool

        var isBlank: Bool { words.isEmpty }

        /// A line of plain text.
        init(start: Int, words: Range<Int>, in text: UnsafeBufferPointer<UInt8>) {
            self.start = start
            let (marked, first) = QuoteLines.mark(text, words)
            self.words = QuoteLines.trimmed(text, first..<words.upperBound)
            isMarked = marked
            (isAttribution, isTail) = (false, false)
        }

        init(_ line: Elements.Line, in text: UnsafeBufferPointer<UInt8>, isTail: Bool) {
            start = line.start
            let (marked, first) = QuoteLines.mark(text, line.words)
            words = QuoteLines.trimmed(text, first..<line.words.upperBound)
            isMarked = marked || line.isContained
            isAttribution = line.isAttribution
            self.isTail = isTail
        }
    }

    let lines: [Line]
    let text: UnsafeBufferPointer<UInt8>
    let isMarkup: Bool
    var found = Stretches(.typed)
    /// Lines that ended like attributions, but were not attributions.
    var tried = 0

    /// Maximum octets that are read of a line or of a window of lines.
    static let longest = 600
    /// Maximum lines of a broken attribution.
    static let windowLines = 5
    static let mostWords = 40
    /// More such lines than any letter has. A text with more is treated as one quotation.
    static let mostTried = 2_000

    init(_ lines: [Line], of text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) {
        self.lines = lines
        self.text = text
        self.isMarkup = isMarkup
    }

    // MARK: Marks

    static func isSpace(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> Int {
        if text[index] <= 0x20 { return 1 }
        guard index + 1 < text.count else { return 0 }
        if text[index] == 0xC2, text[index + 1] == 0xA0 { return 2 }
        guard text[index] == 0xEF || text[index] == 0xE2, index + 2 < text.count else { return 0 }
        if text[index] == 0xEF { return text[index + 1] == 0xBB && text[index + 2] == 0xBF ? 3 : 0 }
        // Direction marks and zero-width spaces.
        return text[index + 1] == 0x80 && (0x80...0x8F).contains(text[index + 2])
            || text[index + 1] == 0x80 && (0xAA...0xAF).contains(text[index + 2]) ? 3 : 0
    }

    /// Whether a line begins with a quotation mark such as `>`, and the index at which its words
    /// begin.
    fileprivate static func mark(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>
    ) -> (Bool, Int) {
        var index = range.lowerBound
        func skip() {
            while index < range.upperBound {
                let width = isSpace(text, index)
                guard width > 0 else { return }
                index += width
            }
        }
        skip()
        // The end of an address that a program broke: `Anna <a@b.example` and `>:`.
        if range.upperBound - index <= 3, text[index..<range.upperBound].starts(with: ">:".utf8) {
            return (false, index)
        }
        var isMarked = false
        while index < range.upperBound, index - range.lowerBound < 400,
            let width = mark(text, index, range.upperBound)
        {
            isMarked = true
            index += width
            skip()
        }
        return (isMarked, min(index, range.upperBound))
    }

    /// Octets of a mark: `>`, `»`, `|`, `Anna>`, `&>`.
    static func mark(_ text: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int) -> Int? {
        let octet = text[start]
        let next = start + 1 < end ? text[start + 1] : 0x0A
        switch octet {
        case UInt8(ascii: ">"): return 1
        case UInt8(ascii: "|"): return next <= 0x20 ? 1 : nil
        case UInt8(ascii: "&"):
            if next == UInt8(ascii: ">") { return 2 }
            return start + 4 <= end && text[start..<(start + 4)].elementsEqual("&gt;".utf8)
                ? 4 : nil
        case UInt8(ascii: ":"): return next == UInt8(ascii: ">") ? 2 : nil
        case 0xC2: return next == 0xBB ? 2 : nil
        case 0xE2:
            // `›`, `│`, `┃`
            guard start + 2 < end else { return nil }
            let third = text[start + 2]
            return next == 0x80 && third == 0xBA || next == 0x94 && (third == 0x82 || third == 0x83)
                ? 3 : nil
        case 0xEF: return start + 2 < end && next == 0xBC && text[start + 2] == 0x9E ? 3 : nil
        default:
            // `Anna>`, `JD>`
            guard octet.isASCIILetter || octet >= 0xC3 else { return nil }
            var index = start
            while index < end, index - start < 12, text[index].isASCIILetter || text[index] >= 0x80
            { index += 1 }
            return index < end && text[index] == UInt8(ascii: ">") ? index + 1 - start : nil
        }
    }

    static func trimmed(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var end = range.upperBound
        while end > range.lowerBound, text[end - 1] <= 0x20 { end -= 1 }
        // U+00A0, and direction marks after a colon.
        while end >= range.lowerBound + 2, text[end - 2] == 0xC2, text[end - 1] == 0xA0 { end -= 2 }
        while end >= range.lowerBound + 3, isSpace(text, end - 3) == 3 { end -= 3 }
        return range.lowerBound..<max(range.lowerBound, end)
    }

    // MARK: Classifying

    func stretches() -> Stretches {
        var reader = self
        reader.read()
        return reader.found
    }

    mutating func read() {
        var isBelow = false
        var hasMarked = false
        var longestMarked = 0
        var index = 0
        while index < lines.count {
            guard tried <= Self.mostTried else {
                found = Stretches(.quoted)
                return
            }
            let line = lines[index]
            defer { index += 1 }
            if line.isTail, !isBelow {
                isBelow = true
                found.note(.quoted, at: line.start)
                index += attributionBlock(at: index)
                continue
            }
            if isBelow {
                if found.standings.last != .quoted { found.note(.quoted, at: line.start) }
                continue
            }
            if line.isAttribution {
                found.note(.attribution, at: line.start)
                isBelow = true
                continue
            }
            if line.isMarked {
                // GroupWise ends the line above a quotation with the marks that begin it.
                if text[line.words].suffix(3).elementsEqual(">>>".utf8),
                    Self.holdsAddress(lower(line.words)[...])
                {
                    found.note(.attribution, at: line.start)
                    isBelow = true
                    continue
                }
                let reads =
                    !hasMarked && !line.isBlank
                    && isAttribution(window(endingAt: index, marked: true))
                found.note(reads ? .attribution : .quoted, at: line.start)
                if !line.isBlank { hasMarked = true }
                longestMarked = max(longestMarked, line.words.count)
                continue
            }
            if line.isBlank {
                // A line between two marked lines belongs to them.
                continue
            }
            if isRemainder(index, longestMarked) {
                found.note(.quoted, at: line.start)
                continue
            }
            if let length = separator(at: index) {
                found.note(.attribution, at: line.start)
                isBelow = true
                index += length - 1
                continue
            }
            if let length = headerBlock(at: index) {
                found.note(.attribution, at: line.start)
                isBelow = true
                index += length - 1
                continue
            }
            found.note(.typed, at: line.start)
            if let first = attribution(endingAt: index) {
                found.note(.attribution, at: first)
                isBelow = true
            }
        }
    }

    /// An unmarked line that a program broke off a long marked line. Another marked line follows
    /// it.
    func isRemainder(_ index: Int, _ longestMarked: Int) -> Bool {
        guard !isMarkup, index > 0 else { return false }
        if isUnmarkedLink(index) { return true }
        guard lines[index].words.count <= 48 else { return false }
        // The last line of a quotation, broken off. Typed text would have a blank line before it.
        if lines[index - 1].isMarked, lines[index - 1].words.count >= 70,
            index + 1 == lines.count || lines[index + 1].isBlank
        {
            return true
        }
        guard lines[index].words.count <= 40 else { return false }
        let before = lines[index - 1].isMarked || index < 2 ? index - 1 : index - 2
        guard lines[before].isMarked, !lines[before].isBlank,
            lines[before].words.count >= max(50, longestMarked - 15),
            before == index - 1 || !lines[index - 1].isBlank && lines[index - 1].words.count <= 40
        else { return false }
        for next in (index + 1)..<(index + 3) where next < lines.count {
            if lines[next].isMarked { return true }
            if lines[next].isBlank || lines[next].words.count > 40 { return false }
        }
        return false
    }

    /// The address of a link, which Apple Mail writes without a mark between two marked lines.
    private func isUnmarkedLink(_ index: Int) -> Bool {
        index + 1 < lines.count && lines[index - 1].isMarked && lines[index + 1].isMarked
            && lower(lines[index].words).starts(with: "<http".utf8)
    }

    // MARK: Words

    /// A line in lower case, limited to `longest` octets.
    func lower(_ range: Range<Int>) -> [UInt8] { Self.lower(text[range].prefix(Self.longest)) }

    static func lower(_ octets: some Collection<UInt8>) -> [UInt8] {
        guard octets.contains(where: { $0 >= 0x80 }) else { return octets.map(\.asciiLowercased) }
        var lower: [UInt8] = []
        for scalar in String(decoding: octets, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0xA0, 0x2007, 0x202F: lower.append(0x20)
            case 0xAD, 0x200B...0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF: continue
            case 0..<0x80: lower.append(UInt8(scalar.value).asciiLowercased)
            default: lower += scalar.properties.lowercaseMapping.utf8
            }
        }
        return lower
    }

    /// The lines up to this one, joined; nil if they are too long or a blank line is between them.
    func window(endingAt last: Int, from first: Int? = nil, marked: Bool = false) -> [UInt8] {
        var joined: [UInt8] = []
        for index in (first ?? last)...last {
            if !joined.isEmpty { joined.append(0x20) }
            joined += lower(lines[index].words)
        }
        return joined
    }

    // MARK: Attributions

    /// The start of the attribution that ends with this line, as an offset in the source.
    mutating func attribution(endingAt last: Int) -> Int? {
        guard lines[last].words.count <= Self.longest, mayEndAttribution(lines[last].words) else {
            return nil
        }
        tried += 1
        var first = last
        var length = lines[last].words.count
        var found: Int?
        while true {
            // `Anna <a@b.example> wrote:` may be the second half of a line that a program broke.
            if found != nil || isAttribution(window(endingAt: last, from: first)) {
                if found == nil { found = first }
                let isContinued =
                    first > 0 && text[lines[first - 1].words].last == UInt8(ascii: ",")
                if begins(lines[first].words), !isContinued { return lines[first].start }
            }
            guard first > 0, last - first + 1 < Self.windowLines else { break }
            let before = first - 1
            length += lines[before].words.count
            guard !lines[before].isBlank, !lines[before].isMarked, length <= Self.longest else {
                break
            }
            first = before
        }
        return found.map { lines[$0].start }
    }

    /// Whether a line begins like an attribution: with a word such as `On`, a day of the week, or
    /// digits.
    func begins(_ words: Range<Int>) -> Bool {
        guard let octet = text[words].first else { return false }
        return octet.isASCIIDigit
            || QuoteForms.isOpener(Self.lower(text[words].prefix(40).prefix { $0 > 0x20 }))
    }

    /// Whether a line ends like an attribution: with a colon, a verb, or dashes after one of these.
    func mayEndAttribution(_ words: Range<Int>) -> Bool {
        let end = text[words].suffix(80)
        guard let last = end.last else { return false }
        if last == UInt8(ascii: ":") || last == UInt8(ascii: "-") { return true }
        if last >= 0x80 {
            let tail = Self.lower(end)
            return text[words].first == UInt8(ascii: ":")
                || Self.colons.contains { tail[...].hasSuffix($0) }
                || QuoteForms.endsInVerb(tail[...])
                || QuoteForms.isVerb(Array(tail.split { $0 <= 0x20 }.last ?? []))
        }
        // Armenian programs end it with a full stop.
        if last == UInt8(ascii: ".") { return end.dropLast().last.map { $0 >= 0x80 } ?? false }
        guard last.isASCIILetter || last == UInt8(ascii: ")") else { return false }
        let word = Self.lower(Array(end.split { $0 <= 0x20 }.last ?? []))
        return QuoteForms.isVerb(word)
    }

    /// The colons of all scripts.
    static let colons: [[UInt8]] = [
        [0x3A], [0xEF, 0xBC, 0x9A], [0xE1, 0x9F, 0x96], [0xD6, 0x89],
    ]

    /// Whether a joined line, in lower case, is the line that a program writes above a quotation.
    func isAttribution(_ window: [UInt8]) -> Bool {
        var line = window[...]
        func isEdge(_ octet: UInt8) -> Bool {
            octet <= 0x20 || octet == UInt8(ascii: "-") || octet == UInt8(ascii: "*")
        }
        while let last = line.last, isEdge(last) { line = line.dropLast() }
        while let first = line.first, isEdge(first) { line = line.dropFirst() }
        guard line.count >= 4 else { return false }
        let colon = Self.colons.first { line.hasSuffix($0) }
        if let colon { line = line.dropLast(colon.count) }
        // Hebrew programs write the colon first.
        let isReversed = line.first == UInt8(ascii: ":")
        if isReversed { line = line.dropFirst() }
        while let last = line.last, isEdge(last) { line = line.dropLast() }
        let words = line.split { $0 <= 0x20 || $0 == UInt8(ascii: ",") }.map { Array($0) }
        guard let first = words.first, let last = words.last, words.count <= Self.mostWords else {
            return false
        }
        let endsInVerb = QuoteForms.isVerb(last) || QuoteForms.endsInVerb(line)
        guard colon != nil || isReversed || endsInVerb else { return false }
        let hasVerb = endsInVerb || words.contains(where: QuoteForms.isVerb)
        let tells = Self.tells(line)
        if Self.holdsAddress(line) { return hasVerb || tells }
        if hasVerb, tells { return true }
        return hasVerb && words.count >= 3 && QuoteForms.isOpener(first)
    }

    static func holdsAddress(_ line: ArraySlice<UInt8>) -> Bool {
        line.indices.contains {
            line[$0] == UInt8(ascii: "@") && $0 > line.startIndex && $0 + 1 < line.endIndex
        }
    }

    /// Whether a line contains a year, a time of day or a date in digits.
    static func tells(_ line: ArraySlice<UInt8>) -> Bool {
        var index = line.startIndex
        while index < line.endIndex {
            guard line[index].isASCIIDigit else {
                index += 1
                continue
            }
            let start = index
            while index < line.endIndex, line[index].isASCIIDigit { index += 1 }
            let digits = line[start..<index]
            if digits.count == 4, digits.starts(with: "19".utf8) || digits.starts(with: "20".utf8) {
                return true
            }
            guard digits.count <= 2, index < line.endIndex,
                ":.h/-".utf8.contains(line[index]) || line[index] == 0xE2
            else {
                continue
            }
            // `10:15`, `10.15`, `10h15`, `21.11.25`, and a ratio sign (U+2236).
            let width = line[index] == 0xE2 ? 3 : 1
            let rest = line[min(index + width, line.endIndex)...].prefix { $0.isASCIIDigit }
            if rest.count == 2 { return true }
        }
        return false
    }
}
