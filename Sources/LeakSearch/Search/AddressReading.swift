// Everything in a reading that may be an address, whoever has it: its two halves as runs of octets.
//
// Nothing is looked for: what is found is the same whoever the user is. So it can be counted, and one reply answers few guesses.

import Support

struct AddressReading {
    enum Form {
        /// `@`, `(at)`, `-at-`.
        case at
        /// `local=domain`, `local#domain`, `local%domain`, and `local-40domain` of gateways.
        case other
        /// `domain=local`, as SRS writes it.
        case reversed
    }

    /// A place where an address may be. Halves have more than one end only where a program may have broken a word.
    struct Candidate {
        let form: Form
        /// The octets before the separator, as far as a local part may go; from the longest to the shortest.
        let locals: [Range<Int>]
        /// The octets after it, as far as a domain may go; likewise.
        let domains: [Range<Int>]
        /// Whether it is one only where a whole domain follows: `(a)` is also the mark of a list.
        let needsDomain: Bool
    }

    static let maximumLocal = 128
    static let maximumDomain = 253

    private let text: Reading.View
    /// Octets that were looked at: the work, counted.
    private(set) var steps = 0

    init(_ text: Reading.View) { self.text = text }

    @inline(__always)
    private static func mayBeMark(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x40, 0x3D, 0x23, 0x25, 0x29, 0x5D, 0x7D, 0x2D, 0x5F, 0x30: true
        default: false
        }
    }

    /// Whether an octet in lower case, behind another one, may be of a mark or stand for one: without any, no address is there.
    static func mayMark(_ octet: UInt8, after last: UInt8) -> Bool {
        switch octet {
        // `@`, `=`, `#`, `%`, brackets; what begins a reference or an escape; a wide at sign.
        case 0x40, 0x3D, 0x23, 0x25, 0x29, 0x5D, 0x7D, 0x26, 0x5C, 0x2B, 0xEF: true
        // `-at-`, `_at_`.
        case 0x2D, 0x5F: last == UInt8(ascii: "t")
        // `-40`, `*40`.
        case 0x30: last == UInt8(ascii: "4")
        default: false
        }
    }

    /// Calls with each candidate, in order.
    mutating func forEach(_ body: (Candidate) -> Void) {
        steps += text.count
        var index = 1
        while index + 1 < text.count {
            if Self.mayBeMark(text[index]), let mark = mark(index) { find(mark, body) }
            index += 1
        }
    }

    // MARK: Separators

    private struct Mark {
        let form: Form
        let start: Int
        let end: Int
        /// Whether white space may be around it.
        let isApart: Bool
    }

    private func mark(_ index: Int) -> Mark? {
        switch text[index] {
        case UInt8(ascii: "@"):
            var (start, end) = (index, index + 1)
            if text.gaps[index] == 0, Self.opens(text[index - 1]), text.gaps[end] == 0, Self.closes(text[end]) {
                (start, end) = (index - 1, end + 1)
            } else if text[index - 1] == UInt8(ascii: "\\") {
                start -= 1
            }
            return Mark(form: .at, start: start, end: end, isApart: false)
        case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"):
            // `(at)`, `[at]`, `(a)`, also with spaces within and around.
            guard index >= 2 else { return nil }
            let length = text[index - 1] == UInt8(ascii: "t") ? 2 : 1
            guard index - length - 1 >= 0, text[index - length] == UInt8(ascii: "a"),
                Self.opens(text[index - length - 1])
            else { return nil }
            return Mark(form: .at, start: index - length - 1, end: index + 1, isApart: true)
        case UInt8(ascii: "-"), UInt8(ascii: "_"):
            guard index >= 4, text[index - 1] == UInt8(ascii: "t"), text[index - 2] == UInt8(ascii: "a"),
                text[index - 3] == text[index], text.isUnbroken((index - 3)..<(index + 1))
            else { return nil }
            return Mark(form: .at, start: index - 3, end: index + 1, isApart: false)
        case UInt8(ascii: "0"):
            guard index >= 3, text[index - 1] == UInt8(ascii: "4"),
                text[index - 2] == 0x2D || text[index - 2] == 0x2A || text[index - 2] == 0x2B,
                text.isUnbroken((index - 2)..<(index + 1))
            else { return nil }
            return Mark(form: .other, start: index - 2, end: index + 1, isApart: false)
        default:
            // `%40`, `=40`: an encoded octet, which another reading decodes.
            let isEscape =
                text[index] != UInt8(ascii: "#") && index + 2 < text.count && text[index + 1] == UInt8(ascii: "4")
                && text[index + 2] == UInt8(ascii: "0")
            return isEscape ? nil : Mark(form: .other, start: index, end: index + 1, isApart: false)
        }
    }

    private static func opens(_ octet: UInt8) -> Bool { octet == 0x28 || octet == 0x5B || octet == 0x7B || octet == 0x3C }
    private static func closes(_ octet: UInt8) -> Bool { octet == 0x29 || octet == 0x5D || octet == 0x7D || octet == 0x3E }

    // MARK: Halves

    private mutating func find(_ mark: Mark, _ body: (Candidate) -> Void) {
        if !mark.isApart, text.isApart(mark.start) || mark.end < text.count && text.isApart(mark.end) { return }
        guard mark.start > 0, mark.end < text.count else { return }
        let locals = locals(mark.start)
        let domains = domains(mark.end)
        if !locals.isEmpty, !domains.isEmpty {
            body(Candidate(form: mark.form, locals: locals, domains: domains, needsDomain: mark.isApart || mark.form == .other))
        }
        guard mark.form == .other, text[mark.start] == UInt8(ascii: "=") else { return }
        // `home.example=jane`: only where a whole domain is before.
        var start = mark.start
        while start > 0, mark.start - start < Self.maximumDomain, start == mark.start || text.gaps[start] == 0,
            Self.isOfDomain(text[start - 1])
        {
            start -= 1
            steps += 1
        }
        let name = start..<mark.start
        guard Domain.isComplete(text, name), let after = forward(mark.end, Self.maximumLocal, Self.isOfLocal).first else {
            return
        }
        body(Candidate(form: .reversed, locals: [after], domains: [name], needsDomain: true))
    }

    private mutating func locals(_ end: Int) -> [Range<Int>] {
        if text[end - 1] == UInt8(ascii: "\"") {
            var start = end - 1
            while start > 0, end - start < Self.maximumLocal, text[start - 1] != UInt8(ascii: "\"") { start -= 1 }
            steps += end - start
            return start > 0 && text[start - 1] == UInt8(ascii: "\"") && start < end - 1 ? [start..<(end - 1)] : []
        }
        var start = end
        var ends: [Int] = []
        while start > 0, end - start < Self.maximumLocal, Self.isAtom(text[start - 1]) {
            if start < end {
                if text.isApart(start) { break }
                if text.isWrapped(start), ends.count < Self.maximumBreaks { ends.append(start) }
            }
            start -= 1
            steps += 1
        }
        if start < end { ends.append(start) }
        return ends.reversed().map { $0..<end }
    }

    /// Lines that one half may be broken into.
    private static let maximumBreaks = 2

    private mutating func domains(_ start: Int) -> [Range<Int>] {
        forward(start, Self.maximumDomain, goesOnBehindDots: true, Self.isOfDomain)
    }

    /// - Parameter goesOnBehindDots: whether a line that ends in a dot may end within it, however short it is.
    private mutating func forward(
        _ start: Int, _ maximum: Int, goesOnBehindDots: Bool = false, _ isPart: (UInt8) -> Bool
    ) -> [Range<Int>] {
        var end = start
        var ends: [Int] = []
        while end < text.count, end - start < maximum, isPart(text[end]) {
            if end > start {
                let isAtDot = goesOnBehindDots && text.gaps[end] == Reading.lineBreak && text[end - 1] == UInt8(ascii: ".")
                if text.isApart(end), !isAtDot { break }
                if text.isWrapped(end) || isAtDot, ends.count < Self.maximumBreaks { ends.append(end) }
            }
            end += 1
            steps += 1
        }
        if end > start { ends.append(end) }
        return ends.reversed().map { start..<$0 }
    }

    /// What is in a dot-atom (RFC 5322 section 3.2.3), but for what may divide an address itself: `=`, `#`, `%`.
    static func isAtom(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x30...0x39, 0x41...0x5A, 0x5E...0x7E, 0x80...0xFF, 0x21, 0x24, 0x26, 0x27, 0x2A, 0x2B, 0x2D...0x2F, 0x3F: true
        default: false
        }
    }

    /// What is in a local part that people have.
    static func isOfLocal(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || octet == 0x2E || octet == 0x5F || octet == 0x2D || octet == 0x2B
            || octet == 0x27
    }

    static func isOfDomain(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || octet == 0x2D || octet == 0x2E
    }

    /// Marks that stand around an address and are no part of it.
    static func isTrimmed(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: true
        default: false
        }
    }
}

/// Where a domain ends in a run of octets.
enum Domain {
    /// Whether octets are a name in a top-level domain.
    static func isComplete(_ text: Reading.View, _ run: Range<Int>) -> Bool {
        guard let dot = text[run].lastIndex(of: UInt8(ascii: ".")), dot > run.lowerBound else { return false }
        return TopLevelDomains.contains(text[(dot + 1)..<run.upperBound])
    }

    /// Where the domain ends that a run begins with, in the longest known top-level domain; nil where there is none.
    static func completeEnd(_ text: Reading.View, _ run: Range<Int>) -> Int? {
        let labels = labels(text, run)
        guard labels.count > 1, !labels[0].isEmpty else { return nil }
        for number in labels.indices.dropFirst().reversed() where isTopLevel(labels, number, text) {
            return labels[number].upperBound
        }
        // `home.exampleTel`, `home.example-Adresse`.
        for label in labels.dropFirst() {
            let letters = text[label].firstIndex { !$0.isASCIILetter && $0 < 0x80 } ?? label.upperBound
            if letters < label.upperBound, TopLevelDomains.contains(text[label.lowerBound..<letters]) { return letters }
            let longest = min(label.count - 1, 24)
            guard longest >= 2 else { continue }
            for length in stride(from: longest, through: 2, by: -1)
            where TopLevelDomains.contains(text[label.lowerBound..<(label.lowerBound + length)]) {
                return label.lowerBound + length
            }
        }
        return nil
    }

    /// Whether a domain goes on behind its end to a longer one that exists: then another person's address is there.
    static func goesOn(_ text: Reading.View, _ run: Range<Int>, after end: Int) -> Bool {
        guard end < run.upperBound else { return false }
        let labels = labels(text, run)
        return labels.indices.contains { labels[$0].lowerBound > end && isTopLevel(labels, $0, text) }
            || labels.contains { $0.lowerBound < end && $0.upperBound > end && TopLevelDomains.contains(text[$0]) }
    }

    private static func labels(_ text: Reading.View, _ run: Range<Int>) -> [Range<Int>] {
        var labels: [Range<Int>] = []
        var first = run.lowerBound
        for index in run where text[index] == UInt8(ascii: ".") {
            labels.append(first..<index)
            first = index + 1
        }
        labels.append(first..<run.upperBound)
        return labels
    }

    private static func isTopLevel(_ labels: [Range<Int>], _ number: Int, _ text: Reading.View) -> Bool {
        guard TopLevelDomains.contains(text[labels[number]]) else { return false }
        // `home.example.zip`: the name of a file.
        let isFile = text[labels[number]].elementsEqual("zip".utf8) || text[labels[number]].elementsEqual("mov".utf8)
        return !(isFile && number > 1 && TopLevelDomains.contains(text[labels[number - 1]]))
    }
}
