// Everything in a reading that may be an address of any owner: its two halves as runs of octets.
//
// Nothing is searched for, so the result is the same for every user. The candidates can therefore
// be counted, and one reply can confirm only a few guesses.

import Support

struct AddressReading {
    enum Form {
        /// `@`, `(at)`, `-at-`.
        case at
        /// `local=domain`, `local#domain`, `local%domain`, and `local-40domain` of gateways.
        case other
        /// `domain=local`, as in SRS.
        case reversed
    }

    /// The possible starts or ends of a half, from the longest half to the shortest. There are
    /// several if a program may have broken a word.
    struct Edges {
        private(set) var count = 0
        private var places = (0, 0, 0)

        /// Adds an edge that makes a longer half.
        @inline(__always)
        fileprivate mutating func append(_ place: Int) {
            places = (place, places.0, places.1)
            count += 1
        }

        @inline(__always)
        subscript(number: Int) -> Int { number == 0 ? places.0 : number == 1 ? places.1 : places.2 }
    }

    /// A place where an address may be.
    struct Candidate {
        let form: Form
        /// The octets before the separator that a local part may include.
        let localStarts: Edges
        let localEnd: Int
        /// The octets after it that a domain may include.
        let domainStart: Int
        let domainEnds: Edges
        /// Whether it counts only if a complete domain follows: `(a)` is also the mark of a list.
        let needsDomain: Bool

        /// Calls `body` with each pair of halves.
        @inline(__always)
        func forEach(_ body: (_ local: Range<Int>, _ domain: Range<Int>) -> Void) {
            for local in 0..<localStarts.count {
                for domain in 0..<domainEnds.count {
                    body(localStarts[local]..<localEnd, domainStart..<domainEnds[domain])
                }
            }
        }
    }

    static let maximumLocal = 128
    static let maximumDomain = 253
    /// Maximum octets on each side of its mark that are read for a candidate.
    static let reach = 300

    private let text: Reading.View
    /// The number of examined octets: the work, counted.
    private(set) var steps = 0
    /// Octets in one line: those before the last mark that may be in a local part, and those after
    /// it that may be in a domain.
    private var atoms = 0..<0
    private var hosts = 0..<0

    init(_ text: Reading.View) { self.text = text }

    /// Whether an octet may be the last one of a mark.
    @inline(__always)
    static func mayBeMark(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x40, 0x3D, 0x23, 0x25, 0x29, 0x5D, 0x7D, 0x2D, 0x5F, 0x30: true
        default: false
        }
    }

    /// Whether an octet in lower case, after another one, may belong to a mark or encode one. Text
    /// without any such octet contains no address.
    static func mayMark(_ octet: UInt8, after last: UInt8) -> Bool {
        switch octet {
        // `@`, `=`, `#`, `%`, brackets; the first octet of a reference or an escape; a wide at
        // sign.
        case 0x40, 0x3D, 0x23, 0x25, 0x29, 0x5D, 0x7D, 0x26, 0x5C, 0x2B, 0xEF: true
        // `-at-`, `_at_`.
        case 0x2D, 0x5F: last == UInt8(ascii: "t")
        // `-40`, `*40`.
        case 0x30: last == UInt8(ascii: "4")
        default: false
        }
    }

    /// Calls `body` with each candidate, in order.
    mutating func forEach(_ body: (Candidate) -> Void) {
        steps += text.count
        for index in 0..<text.count where Self.mayBeMark(text[index]) { find(at: index, body) }
    }

    /// Calls `body` with the candidates of a mark.
    /// - Parameter index: of the last octet of the mark.
    @inline(__always)
    mutating func find(at index: Int, _ body: (Candidate) -> Void) {
        guard index >= 1, index + 1 < text.count, let mark = mark(index) else { return }
        find(mark, body)
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
            if text.gaps[index] == 0, Self.opens(text[index - 1]), text.gaps[end] == 0,
                Self.closes(text[end])
            {
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
            guard index >= 4, text[index - 1] == UInt8(ascii: "t"),
                text[index - 2] == UInt8(ascii: "a"),
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
            // `%40`, `=40`: an encoded octet; another reading decodes it.
            let isEscape =
                text[index] != UInt8(ascii: "#") && index + 2 < text.count
                && text[index + 1] == UInt8(ascii: "4")
                && text[index + 2] == UInt8(ascii: "0")
            return isEscape ? nil : Mark(form: .other, start: index, end: index + 1, isApart: false)
        }
    }

    private static func opens(_ octet: UInt8) -> Bool {
        octet == 0x28 || octet == 0x5B || octet == 0x7B || octet == 0x3C
    }
    private static func closes(_ octet: UInt8) -> Bool {
        octet == 0x29 || octet == 0x5D || octet == 0x7D || octet == 0x3E
    }

    // MARK: Halves

    private mutating func find(_ mark: Mark, _ body: (Candidate) -> Void) {
        if !mark.isApart,
            text.isApart(mark.start) || mark.end < text.count && text.isApart(mark.end)
        {
            return
        }
        guard mark.start > 0, mark.end < text.count, Self.isOfLocal(text[mark.end]) else { return }
        let (localEnd, localStarts) = locals(mark.start)
        if localStarts.count > 0 {
            let domainEnds = domains(mark.end)
            if domainEnds.count > 0 {
                body(
                    Candidate(
                        form: mark.form, localStarts: localStarts, localEnd: localEnd,
                        domainStart: mark.end,
                        domainEnds: domainEnds, needsDomain: mark.isApart || mark.form == .other))
            }
        }
        guard mark.form == .other, text[mark.start] == UInt8(ascii: "=") else { return }
        // `home.example=jane`: only if a complete domain is before the separator.
        var start = mark.start
        while start > 0, mark.start - start < Self.maximumDomain,
            start == mark.start || text.gaps[start] == 0,
            Self.isOfDomain(text[start - 1])
        {
            start -= 1
            steps += 1
        }
        guard Domain.isComplete(text, start..<mark.start) else { return }
        let ends = forward(mark.end, Self.maximumLocal, Self.isOfLocal)
        guard ends.count > 0 else { return }
        var (starts, longest) = (Edges(), Edges())
        starts.append(mark.end)
        longest.append(mark.start)
        body(
            Candidate(
                form: .reversed, localStarts: starts, localEnd: ends[0], domainStart: start,
                domainEnds: longest,
                needsDomain: true))
    }

    /// Maximum line breaks within one half.
    private static let maximumBreaks = 2

    private mutating func locals(_ end: Int) -> (end: Int, starts: Edges) {
        var starts = Edges()
        var start = end
        if text[end - 1] == UInt8(ascii: "\"") {
            start -= 1
            while start > 0, end - start < Self.maximumLocal, text[start - 1] != UInt8(ascii: "\"")
            { start -= 1 }
            steps += end - start
            if start > 0, text[start - 1] == UInt8(ascii: "\""), start < end - 1 {
                starts.append(start)
            }
            return (end - 1, starts)
        }
        var isBroken = false
        while start > 0, end - start < Self.maximumLocal, Self.isAtom(text[start - 1]) {
            if start < end {
                if text.gaps[start] != 0 {
                    if text.isApart(start) { break }
                    isBroken = true
                    if text.isWrapped(start), starts.count < Self.maximumBreaks {
                        starts.append(start)
                    }
                } else if !isBroken, atoms.contains(start), start > atoms.lowerBound {
                    // Already examined for the mark before.
                    start = max(atoms.lowerBound, end - Self.maximumLocal)
                    continue
                }
            }
            start -= 1
            steps += 1
        }
        if !isBroken { atoms = start..<end }
        if start < end { starts.append(start) }
        return (end, starts)
    }

    private mutating func domains(_ start: Int) -> Edges {
        if hosts.contains(start), hosts.upperBound - start >= Self.maximumDomain {
            var ends = Edges()
            ends.append(start + Self.maximumDomain)
            return ends
        }
        return forward(start, Self.maximumDomain, isDomain: true, Self.isOfDomain)
    }

    /// - Parameter isDomain: whether a line that ends in a dot may end within it, even if the line
    ///   is short.
    @inline(__always)
    private mutating func forward(
        _ start: Int, _ maximum: Int, isDomain: Bool = false, _ isPart: (UInt8) -> Bool
    ) -> Edges {
        var ends = Edges()
        var end = start
        var isBroken = false
        if isDomain, hosts.contains(start) { end = hosts.upperBound }
        while end < text.count, end - start < maximum, isPart(text[end]) {
            if end > start, text.gaps[end] != 0 {
                let isAtDot =
                    isDomain && text.gaps[end] == Reading.lineBreak
                    && text[end - 1] == UInt8(ascii: ".")
                if text.isApart(end), !isAtDot { break }
                isBroken = true
                if text.isWrapped(end) || isAtDot, ends.count < Self.maximumBreaks {
                    ends.append(end)
                }
            }
            end += 1
            steps += 1
        }
        if isDomain, !isBroken { hosts = start..<end }
        if end > start { ends.append(end) }
        return ends
    }

    /// Octets of a dot-atom (RFC 5322 section 3.2.3), except those that may divide an address: `=`,
    /// `#`, `%`.
    static func isAtom(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x30...0x39, 0x41...0x5A, 0x5E...0x7E, 0x80...0xFF, 0x21, 0x24, 0x26, 0x27, 0x2A, 0x2B,
            0x2D...0x2F, 0x3F:
            true
        default: false
        }
    }

    /// Octets in the local parts of people.
    static func isOfLocal(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || octet == 0x2E || octet == 0x5F
            || octet == 0x2D || octet == 0x2B
            || octet == 0x27
    }

    static func isOfDomain(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || octet == 0x2D || octet == 0x2E
    }

    /// Marks around an address that do not belong to it.
    static func isTrimmed(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: true
        default: false
        }
    }
}

/// Finds the end of a domain in a run of octets.
enum Domain {
    private static let dot = UInt8(ascii: ".")

    /// Whether octets are a name in a top-level domain.
    static func isComplete(_ text: Reading.View, _ run: Range<Int>) -> Bool {
        guard let dot = text.last(dot, in: run), dot > run.lowerBound else { return false }
        return TopLevelDomains.contains(text, (dot + 1)..<run.upperBound)
    }

    /// The end of the domain at the start of a run, in the longest known top-level domain; nil if
    /// there is none.
    static func completeEnd(_ text: Reading.View, _ run: Range<Int>) -> Int? {
        guard let first = text.first(dot, in: run), first > run.lowerBound else { return nil }
        var end = run.upperBound
        while let last = text.last(dot, in: first..<end) {
            if isTopLevel(text, (last + 1)..<end, in: run, first: first) { return end }
            end = last
        }
        // `home.exampleTel`, `home.example-Adresse`.
        var start = first + 1
        while true {
            let label = start..<(text.first(dot, in: start..<run.upperBound) ?? run.upperBound)
            var letters = start
            while letters < label.upperBound, text[letters].isASCIILetter || text[letters] >= 0x80 {
                letters += 1
            }
            if letters < label.upperBound, TopLevelDomains.contains(text, start..<letters) {
                return letters
            }
            if label.count > 2,
                let end = TopLevelDomains.longestEnd(
                    text, start..<min(label.upperBound - 1, start + 24))
            {
                return end
            }
            guard label.upperBound < run.upperBound else { return nil }
            start = label.upperBound + 1
        }
    }

    /// Whether a domain continues after its end to a longer domain that exists. The address then
    /// belongs to another person.
    static func goesOn(_ text: Reading.View, _ run: Range<Int>, after end: Int) -> Bool {
        guard end < run.upperBound else { return false }
        let first = text.first(dot, in: run) ?? run.upperBound
        var start = run.lowerBound
        while true {
            let label = start..<(text.first(dot, in: start..<run.upperBound) ?? run.upperBound)
            // After a long line, the next one may begin with dashes.
            var name = label.upperBound
            while name > label.lowerBound, text[name - 1] == UInt8(ascii: "-") { name -= 1 }
            if label.lowerBound > end,
                isTopLevel(text, label.lowerBound..<name, in: run, first: first)
            {
                return true
            }
            if label.lowerBound < end, label.upperBound > end, TopLevelDomains.contains(text, label)
            {
                return true
            }
            guard label.upperBound < run.upperBound else { return false }
            start = label.upperBound + 1
        }
    }

    /// - Parameter first: the first dot of the run.
    private static func isTopLevel(
        _ text: Reading.View, _ label: Range<Int>, in run: Range<Int>, first: Int
    ) -> Bool {
        guard TopLevelDomains.contains(text, label) else { return false }
        // `home.example.zip`: a file name.
        guard label.count == 3,
            text.holds("zip", at: label.lowerBound) || text.holds("mov", at: label.lowerBound)
        else {
            return true
        }
        let dot = label.lowerBound - 1
        guard dot > first else { return true }
        let before = text.last(Self.dot, in: run.lowerBound..<dot).map { $0 + 1 } ?? run.lowerBound
        return !TopLevelDomains.contains(text, before..<dot)
    }
}
