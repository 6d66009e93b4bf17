// Finds everything in a text that may be an address of any person, in every form that programs and
// people write.
//
// It knows no name, so the candidates are the same for every user. Typed text can therefore count
// how many addresses it could reveal, and quoted text can lose every address without a search for
// the user's.

import InternetMessage
import LeakSearch
import Support

struct AddressFinder {
    /// The written form of an address.
    enum Form: Sendable {
        /// `@` and its replacements: `(at)`, `[at]`, `\@`.
        case at
        /// ` at ` between spaces.
        case spelled
        /// `local=domain`, `local#domain`, `local%domain`: within the
        /// local part of another address.
        case verp
        /// `domain=local`, as in SRS.
        case reversed
        /// `local-40domain`, `local*40domain`: written by link gateways.
        case gateway
    }

    /// One address. Ranges are units of the window.
    struct Candidate {
        let form: Form
        let local: Range<Int>
        let domain: Range<Int>
        /// The octets of a dot-atom before the separator; `local` is its last part.
        let run: Range<Int>
        /// Whether the domain ends in a top-level domain and has at least one label before it.
        let isComplete: Bool
        /// Whether a complete domain was found at the same place, and is more likely.
        let isDoubtful: Bool
        /// Whether its beginning is in the line before and may be the end of a sentence.
        var isSplit = false

        /// From the first unit to the end of the last.
        var whole: Range<Int> {
            min(local.lowerBound, domain.lowerBound)..<max(local.upperBound, domain.upperBound)
        }
    }

    /// Maximum octets of a local part, its tag included, and of a domain.
    static let maximumLocal = 128
    static let maximumDomain = 253
    /// Minimum octets of a line that a program may have broken within a word.
    private static let longLine = 60

    /// Whether the reading skips tags. Tags of blocks still divide words.
    private let skipsTags: Bool
    /// The text to which the window's offsets refer.
    private let text: UnsafeBufferPointer<UInt8>
    private let window: DecodedWindow
    private let units: UnsafeBufferPointer<UInt8>
    /// The number of times that a unit was examined: the work, counted for tests.
    private(set) var steps = 0

    init(_ window: DecodedWindow, of text: UnsafeBufferPointer<UInt8>, lens: DecodingPass) {
        self.window = window
        skipsTags = lens.contains(.tags)
        self.text = text
        units = window.octets
    }

    /// Calls `body` with each candidate that has a separator beginning in a range of the text, in
    /// order.
    mutating func forEach(in range: Range<Int>, _ body: (Candidate) -> Void) {
        var unit = 1
        while unit < units.count {
            steps += 1
            defer { unit += 1 }
            guard let mark = mark(endingAt: unit), range.contains(window.start(mark.start)) else {
                continue
            }
            find(around: mark, body)
        }
    }

    // MARK: Marks

    private struct Mark {
        let form: Form
        /// The first unit of the separator, and the first after it.
        let start: Int
        let end: Int
    }

    /// Whether each octet can end a separator.
    private static let endsMark: [Bool] = (0..<256).map { "@=#%)]}>-_t0".utf8.contains(UInt8($0)) }

    /// The separator that ends with this unit.
    private func mark(endingAt last: Int) -> Mark? {
        guard Self.endsMark[Int(units[last])], last + 1 < units.count else { return nil }
        if units[last] == UInt8(ascii: "0") {
            guard last >= 3, units[last - 1] == UInt8(ascii: "4"), !isApart(last),
                !isApart(last - 1),
                units[last - 2] == UInt8(ascii: "-") || units[last - 2] == UInt8(ascii: "*")
            else { return nil }
            return Mark(form: .gateway, start: last - 2, end: last + 1)
        }
        guard let separator = Separator(before: last + 1, in: window) else { return nil }
        switch units[last] {
        case UInt8(ascii: "="), UInt8(ascii: "#"), UInt8(ascii: "%"):
            // `%40`, `=40`: an encoded octet; another reading decodes it.
            let isEscape =
                last + 2 < units.count && units[last + 1].hexValue != nil
                && units[last + 2].hexValue != nil
                && (units[last] == UInt8(ascii: "%")
                    || units[last + 1] == UInt8(ascii: "4") && units[last + 2] == UInt8(ascii: "0"))
            return isEscape || units[last] == UInt8(ascii: "#") && isApart(last)
                ? nil : Mark(form: .verp, start: last, end: last + 1)
        case UInt8(ascii: "t"): return Mark(form: .spelled, start: separator.start, end: last + 1)
        default: return Mark(form: .at, start: separator.start, end: last + 1)
        }
    }

    // MARK: Halves

    private mutating func find(around mark: Mark, _ body: (Candidate) -> Void) {
        // A domain is less frequent than a local part, and shorter to read.
        let needsDomain = mark.form != .at || isApart(mark.start) || isApart(mark.end)
        let ends = domains(from: mark.end)
        let hasComplete = ends.contains(where: \.isComplete)
        if needsDomain ? hasComplete : !ends.isEmpty, let run = run(endingAt: mark.start) {
            if mark.form == .at, let end = ends.first(where: \.isComplete),
                let split = split(run)
            {
                body(
                    Candidate(
                        form: mark.form, local: split, domain: mark.end..<end.end, run: split,
                        isComplete: true, isDoubtful: false, isSplit: true))
            }
            for end in ends where !needsDomain || end.isComplete {
                let isQuoted = end.end < units.count && units[end.end] == UInt8(ascii: "'")
                for local in locals(run, of: mark, isQuoted: isQuoted) {
                    body(
                        Candidate(
                            form: mark.form, local: local, domain: mark.end..<end.end, run: run,
                            isComplete: end.isComplete,
                            isDoubtful: hasComplete && !end.isComplete))
                }
            }
        }
        guard mark.form == .verp, units[mark.start] == UInt8(ascii: "="),
            let reversed = reversed(around: mark)
        else { return }
        body(reversed)
    }

    /// `home.example=jane`: only if a complete domain is before the separator.
    private mutating func reversed(around mark: Mark) -> Candidate? {
        var start = mark.start
        while start > 0, mark.start - start < Self.maximumDomain,
            start == mark.start || !isApart(start),
            Self.isOfDomain(units[start - 1])
        {
            start -= 1
            steps += 1
        }
        let name = start..<mark.start
        guard !name.isEmpty, let dot = units[name].lastIndex(of: UInt8(ascii: ".")), dot > start,
            TopLevelDomains.contains(units[(dot + 1)..<mark.start])
        else { return nil }
        var end = mark.end
        while end < units.count, end - mark.end < Self.maximumLocal, !isApart(end),
            Self.isOfLocal(units[end])
        {
            end += 1
            steps += 1
        }
        while end > mark.end, Self.isTrimmed(units[end - 1]) { end -= 1 }
        guard end > mark.end, units[mark.end..<end].contains(where: { !$0.isASCIIDigit }) else {
            return nil
        }
        return Candidate(
            form: .reversed, local: mark.end..<end, domain: name, run: mark.end..<end,
            isComplete: true, isDoubtful: false)
    }

    /// Whether white space or a line break is before a unit. Invisible characters alone do not
    /// count.
    private func isApart(_ unit: Int) -> Bool {
        if window.separators[unit] & ~DecodedWindow.unseen != 0 { return true }
        guard skipsTags, unit > 0 else { return false }
        // A tag was skipped if the source has more octets between the two units.
        var index = window.end(unit - 1)
        while index < window.start(unit) {
            if text[index] == UInt8(ascii: "<"), Elements.beginsBlock(text, at: index) {
                return true
            }
            index += 1
        }
        return false
    }

    /// Whether a program broke the word before this unit: the only white space there is a line
    /// break after a long line, or a soft line break.
    private func isWrapped(_ unit: Int) -> Bool {
        guard unit > 0, window.separators[unit] & DecodedWindow.space == 0 else { return false }
        let from = window.end(unit - 1)
        var index = from
        while index > 0, from - index < Self.longLine, text[index - 1] != 0x0A { index -= 1 }
        return from - index >= Self.longLine || isInLink(index..<from)
    }

    /// Whether the last word of a line is a link, which programs also break in short lines.
    private func isInLink(_ line: Range<Int>) -> Bool {
        var start = line.upperBound
        while start > line.lowerBound, text[start - 1] > 0x20 { start -= 1 }
        return (start..<line.upperBound).contains {
            text[$0] == UInt8(ascii: ":") && text[$0...].starts(with: "://".utf8)
        }
    }

    /// The octets of a dot-atom, or of a quoted string, directly before a separator.
    private mutating func run(endingAt end: Int) -> Range<Int>? {
        // A line that begins with the sign continues an address, even if the line before is short.
        guard end > 0,
            end == units.count || window.separators[end] & DecodedWindow.lineBreak == 0
                || isWrapped(end)
                || units[end] == UInt8(ascii: "@")
        else { return nil }
        if units[end - 1] == UInt8(ascii: "\"") {
            var start = end - 1
            while start > 0, end - start < Self.maximumLocal, units[start - 1] != UInt8(ascii: "\"")
            { start -= 1 }
            steps += end - start
            if start > 0, units[start - 1] == UInt8(ascii: "\""), start < end - 1 {
                return start..<(end - 1)
            }
            return nil
        }
        var start = end
        while start > 0, end - start < Self.maximumLocal, Self.isAtom(units[start - 1]) {
            // A full stop at the end of a line ends a sentence, and usually an address in it.
            if start < end, isApart(start),
                !isWrapped(start) || units[start - 1] == UInt8(ascii: ".")
            {
                break
            }
            start -= 1
            steps += 1
        }
        return start < end ? start..<end : nil
    }

    /// A local part of which the line before this run has the beginning: `jane.`, `k77x@`. A
    /// sentence may also end there, so that quoted text stays.
    private mutating func split(_ run: Range<Int>) -> Range<Int>? {
        let first = run.lowerBound
        guard first > 1, first < units.count, Self.isOfLocal(units[first]),
            window.separators[first] & DecodedWindow.lineBreak != 0,
            window.separators[first] & DecodedWindow.space == 0,
            units[first - 1] == UInt8(ascii: ".")
        else { return nil }
        var start = first - 1
        while start > 0, first - start < Self.maximumLocal, !isApart(start),
            Self.isOfLocal(units[start - 1])
        {
            start -= 1
            steps += 1
        }
        while start < first - 1, Self.isTrimmed(units[start]) { start += 1 }
        return start < first - 1 ? start..<run.upperBound : nil
    }

    /// The octets of a dot-atom (RFC 5322 section 3.2.3).
    private static func isAtom(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x30...0x39, 0x41...0x5A, 0x5E...0x7E, 0x80...0xFF, 0x21, 0x23...0x27, 0x2A, 0x2B,
            0x2D...0x2F, 0x3D, 0x3F:
            true
        default: false
        }
    }

    /// Octets in the local parts of people.
    private static func isOfLocal(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...0xFF, 0x27, 0x2B, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    /// Marks around an address that do not belong to it.
    private static func isTrimmed(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: true
        default: false
        }
    }

    private static func isOfDomain(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || octet == UInt8(ascii: "-")
            || octet == UInt8(ascii: ".")
    }

    /// Texts that programs and people write directly before an address. No name begins with them.
    private static let glues = [
        "e-mail", "email", "mailto", "mail", "u003c", "u003e", "nbsp", "x22", "3d",
    ].map { Array($0.utf8) }
    private static let beginsGlue = (0..<256).map { octet in glues.contains { Int($0[0]) == octet }
    }
    /// Minimum octets that must be left after such a text.
    private static let shortestGlued = 6

    /// The local parts with which a run may end; usually one.
    /// - Parameter isQuoted: whether an apostrophe follows the domain.
    private func locals(_ run: Range<Int>, of mark: Mark, isQuoted: Bool) -> [Range<Int>] {
        if run.upperBound < mark.start, units[run.upperBound] == UInt8(ascii: "\"") { return [run] }
        var start = run.upperBound
        while start > run.lowerBound, Self.isOfLocal(units[start - 1]) { start -= 1 }
        let last = units[start..<run.upperBound].lastIndex { $0 >= 0x80 }
        if let last, last + 1 < run.upperBound, Script.divides(units, at: last) { start = last + 1 }
        func trimmed(_ from: Int) -> Range<Int> {
            var from = from
            while from < run.upperBound, Self.isTrimmed(units[from]) { from += 1 }
            return from..<run.upperBound
        }
        start = trimmed(start).lowerBound
        guard start < run.upperBound else { return [] }
        var found = [start..<run.upperBound]
        // No local part has two dots in a row (RFC 5322 section 3.4.1). A sentence may have them,
        // and some providers issued such addresses.
        if let second = units[start..<run.upperBound].indices.last(where: {
            $0 > start && units[$0] == 0x2E && units[$0 - 1] == 0x2E
        }),
            !trimmed(second + 1).isEmpty
        {
            found.append(trimmed(second + 1))
        }
        // A word and an address with exactly one zero-width character between them. In an address
        // with more such characters, all are ignored.
        let unseen = (start + 1..<max(start + 1, run.upperBound)).filter {
            window.separators[$0] & DecodedWindow.unseen != 0
        }
        if unseen.count == 1, !trimmed(unseen[0]).isEmpty { found.append(trimmed(unseen[0])) }
        // The character after the backslash of `\n` and similar escapes in JSON and calendars.
        if start > 0, units[start - 1] == UInt8(ascii: "\\"), "bfnrt".utf8.contains(units[start]),
            !trimmed(start + 1).isEmpty
        {
            found.append(trimmed(start + 1))
        }
        // A word in another script that people write directly before Latin letters.
        if let last, last >= start, !trimmed(last + 1).isEmpty { found.append(trimmed(last + 1)) }
        if isQuoted, let mark = units[start..<run.upperBound].firstIndex(of: UInt8(ascii: "'")),
            !trimmed(mark + 1).isEmpty
        {
            found.append(trimmed(mark + 1))
        }
        if mark.form == .verp,
            let dash = units[start..<run.upperBound].firstIndex(where: { $0 == 0x2D || $0 == 0x2B }
            ),
            dash + 1 < run.upperBound
        {
            found.append((dash + 1)..<run.upperBound)
        }
        if let end = colourEnd(start), !trimmed(end).isEmpty { found.append(trimmed(end)) }
        if mark.form == .at, let end = labelEnd(start, before: run.upperBound) {
            found.append(end..<run.upperBound)
        }
        guard Self.beginsGlue[Int(units[start])] else { return found }
        for glue in Self.glues where run.upperBound - start >= glue.count + Self.shortestGlued {
            guard units[start...].starts(with: glue) else { continue }
            var from = start + glue.count
            while from < run.upperBound, Self.isTrimmed(units[from]) { from += 1 }
            if run.upperBound - from >= Self.shortestGlued { found.append(from..<run.upperBound) }
            break
        }
        return found
    }

    /// The end of other text directly before a local part: `2026_`, `scan_`, `Rechnung-`,
    /// `Tel.0123456`, and the charset and language of RFC 2231, `utf-8''`. What is left must have
    /// a dot or a digit, so that `first_last` and `jean-luc` are one local part.
    private func labelEnd(_ start: Int, before end: Int) -> Int? {
        var found: Int?
        var digits = 0
        for index in start..<end {
            let octet = units[index]
            let isNumber = digits >= Self.mostDigits
            digits = octet.isASCIIDigit ? digits + 1 : 0
            if octet == UInt8(ascii: "_") || isNumber && octet.isASCIILetter {
                found = octet.isASCIILetter ? index : index + 1
            } else if octet == UInt8(ascii: "'"), index > start, units[index - 1] == octet {
                found = index + 1
            } else if octet == UInt8(ascii: "-"), found == nil, isLabel(start..<index) {
                found = index + 1
            } else {
                continue
            }
            break
        }
        guard let found, end - found >= Self.shortestGlued,
            units[found].isASCIIAlphanumeric || units[found] >= 0x80,
            units[found..<end].contains(where: { $0 == UInt8(ascii: ".") || $0.isASCIIDigit })
        else { return nil }
        return found
    }

    /// Digits in a row that are a number and not part of a name.
    private static let mostDigits = 5

    /// Whether units are a number, or a word that begins with a capital letter before a name that
    /// does not.
    private func isLabel(_ word: Range<Int>) -> Bool {
        func isUpper(_ unit: Int) -> Bool { (0x41...0x5A).contains(text[window.start(unit)]) }
        guard word.count > 2, word.upperBound + 1 < units.count else { return false }
        if units[word].allSatisfy(\.isASCIIDigit) { return true }
        return units[word].allSatisfy { $0.isASCIILetter || $0 >= 0x80 }
            && isUpper(word.lowerBound) && !isUpper(word.upperBound + 1)
    }

    /// The end of a terminal colour code, `ESC [ 1 m`, with its number before a unit or at it.
    private func colourEnd(_ start: Int) -> Int? {
        guard start > 1,
            units[start - 1] == UInt8(ascii: "[") || units[start - 1] == UInt8(ascii: ";"),
            units[max(0, start - 12)..<start].contains(0x1B)
        else { return nil }
        let end = units[start...].firstIndex { !$0.isASCIIDigit } ?? units.count
        return end < units.count && units[end] == UInt8(ascii: "m") ? end + 1 : nil
    }

    // MARK: Where a domain ends

    private struct End {
        let end: Int
        let isComplete: Bool
    }

    /// The possible ends of a domain; usually one. There are more if it is not clear whether the
    /// next letters belong to it, or whether a program broke the line.
    private mutating func domains(from start: Int) -> [End] {
        // A line that ends with the sign continues with the domain, even if the line is short.
        guard start < units.count,
            window.separators[start] & DecodedWindow.lineBreak == 0 || isWrapped(start)
                || start > 0 && units[start - 1] == UInt8(ascii: "@")
        else { return [] }
        var end = start
        var found: [End] = []
        while end < units.count, end - start < Self.maximumDomain, Self.isOfDomain(units[end]) {
            if end > start, isApart(end) {
                let so = ends(of: start..<end)
                // A break next to a dot is within a domain that is incomplete without the next
                // line.
                let isAtDot =
                    units[end] == UInt8(ascii: ".")
                    || units[end - 1] == UInt8(ascii: ".") && !so.contains(where: \.isComplete)
                // A full stop after a complete domain ends the sentence.
                let isOver = units[end - 1] == UInt8(ascii: ".") && so.contains(where: \.isComplete)
                let isBroken =
                    window.separators[end] & DecodedWindow.lineBreak != 0
                    && (isWrapped(end) && !isOver || isAtDot)
                guard isBroken else { break }
                found += so.filter(\.isComplete)
            }
            end += 1
            steps += 1
        }
        found += ends(of: start..<end)
        return found
    }

    private func ends(of run: Range<Int>) -> [End] {
        var end = run.upperBound
        while end > run.lowerBound,
            units[end - 1] == UInt8(ascii: ".") || units[end - 1] == UInt8(ascii: "-")
        { end -= 1 }
        guard end > run.lowerBound, units[run.lowerBound] != UInt8(ascii: "."),
            units[run.lowerBound] != UInt8(ascii: "-")
        else {
            return []
        }
        // A label begins after each dot; the last labels decide.
        var labels: [Range<Int>] = []
        var first = run.lowerBound
        for index in run.lowerBound..<end where units[index] == UInt8(ascii: ".") {
            labels.append(first..<index)
            first = index + 1
        }
        labels.append(first..<end)
        guard labels.count > 1 else {
            let letters = units[run.lowerBound..<end]
            let isName = letters.count >= 2 && letters.contains { $0.isASCIILetter || $0 >= 0x80 }
            return isName && !Self.isNumeric(letters) ? [End(end: end, isComplete: false)] : []
        }
        var found: [End] = []
        var last = labels.count - 1
        // `home.example.zip`: a file name.
        if last > 1, Self.isFileEnding(units[labels[last]]),
            TopLevelDomains.contains(units[labels[last - 1]])
        {
            last -= 1
        }
        if let whole = labels[1...last].last(where: { TopLevelDomains.contains(units[$0]) }) {
            // `home.example.Am Montag`
            if whole.lowerBound > labels[1].lowerBound, whole == labels[last],
                TopLevelDomains.contains(units[labels[last - 1]]),
                Self.beginsSentence(whole.lowerBound, window, text)
            {
                found.append(End(end: labels[last - 1].upperBound, isComplete: true))
            }
            found.append(End(end: whole.upperBound, isComplete: true))
            if whole == labels[labels.count - 1] { return found }
        }
        let glued = labels[labels.count - 1]
        // `icon@2x.png`: no host has such a name.
        if FileEndings.contains(units[glued]) { return found }
        // `home.exampleTel`, `home.example-Adresse`, `home.example2026`.
        if let length = Self.topLevel(before: units[glued]) {
            found.append(End(end: glued.lowerBound + length, isComplete: true))
        }
        // A name in an unknown domain.
        let isName = units[labels[0]].contains { $0.isASCIILetter || $0 >= 0x80 }
        if isName, !Self.isNumeric(units[glued]), found.last?.end != end {
            found.append(End(end: end, isComplete: false))
        }
        return found
    }

    /// Whether a label, after text in lower case and a dot, begins with a capital letter and
    /// continues in lower case: people forget the space between two sentences.
    static func beginsSentence(
        _ label: Int, _ window: DecodedWindow, _ text: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        func isUpper(_ unit: Int) -> Bool { (0x41...0x5A).contains(text[window.start(unit)]) }
        guard label > 1, label + 1 < window.octets.count else { return false }
        return isUpper(label) && !isUpper(label - 2) && !isUpper(label + 1)
    }

    /// Whether a label is a number, as in the Content-IDs that Outlook writes.
    private static func isNumeric(_ label: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        label.allSatisfy { $0.hexValue != nil } && label.contains(where: \.isASCIIDigit)
    }

    private static func isFileEnding(_ label: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        label.elementsEqual("zip".utf8) || label.elementsEqual("mov".utf8)
    }

    /// Octets of the longest top-level domain at the beginning of a label.
    private static func topLevel(before label: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        // An end without a following letter is preferred to one with a following letter.
        if let end = label.firstIndex(where: { !$0.isASCIILetter && $0 < 0x80 }),
            TopLevelDomains.contains(label[..<end])
        {
            return end - label.startIndex
        }
        return TopLevelDomains.longestEnd(in: label.prefix(max(0, min(label.count - 1, 24)))).map {
            $0 - label.startIndex
        }
    }
}
