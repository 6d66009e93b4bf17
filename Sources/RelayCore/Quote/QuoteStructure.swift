// Which stretches of a reply's text are quotations, by their form: `>`, blockquote, and what is below an attribution or a header
// block.

/// Where a piece of text is in a reply.
enum TextPlace: Sendable {
    /// What the user, or the user's program, wrote.
    case typed
    /// A text part, in which quotations are recognized by their form.
    case body
    /// Within a message of the team's that is attached whole.
    case quoted
    /// In a signed part of such a message: the relay wrote nothing into it.
    case signed
    /// A value that comes back whole or not at all: a Subject, a name, a file name.
    case whole
    /// Lines of a calendar or a card: the fields of an invitation come back in the answer to it.
    case contentLines
    /// Such lines within an attached message of the team's: the relay wrote organizer and attendees for the user's calendar.
    case quotedContentLines
}

/// The quotations in one text, in linear time.
struct QuoteStructure {
    enum Standing {
        case typed
        /// Behind `>`, or within a blockquote.
        case quoted
        /// The first line of a quotation where it reads like an attribution: some programs put theirs there.
        case attribution
        /// The last field of a header block above a quotation, as a rule the Subject.
        case subject
        /// Below an attribution, a header block or a line such as `--- Original Message ---`, with no mark of its end.
        case below
    }

    /// Where each stretch begins, in order.
    private var starts: [Int] = [0]
    private var standings: [Standing] = [.typed]

    /// The standing of a mention that begins there.
    func standing(at index: Int) -> Standing { standings[max(0, starts.count(below: index + 1) - 1)] }

    /// Where the stretch around an index begins.
    func start(of index: Int) -> Int { starts.last(below: index + 1) ?? 0 }

    /// Where the stretch around an index ends.
    func end(of index: Int, in text: UnsafeBufferPointer<UInt8>) -> Int { starts.first(from: index + 1) ?? text.count }

    private mutating func note(_ standing: Standing, at start: Int) {
        guard standings.last != standing else { return }
        starts.append(start)
        standings.append(standing)
    }

    // MARK: Lines

    /// Octets of a line that are looked at; attributions and fields are shorter.
    private static let lineLength = 400
    /// Fields in a row that make a header block.
    private static let blockFields = 3

    private struct Line {
        var start = 0
        var isQuoted = false
        /// Without tags.
        var text: [UInt8] = []

        var words: ArraySlice<UInt8> {
            let first = text.firstIndex { $0 > 0x20 } ?? text.endIndex
            let last = text.lastIndex { $0 > 0x20 } ?? text.startIndex
            return first <= last && first < text.endIndex ? text[first...last] : []
        }
    }

    private let isMarkup: Bool
    private var isBelow = false
    /// Whether a marked quotation was found: only the first one may begin with the program's own line.
    private var hasQuoted = false
    /// Whether an attribution precedes: unless marks follow it, the text after it is the quotation.
    private var isAttributed = false
    /// Fields of a header block so far, and whether one of them may name a mailbox or a day.
    private var fields = 0
    private var isTelling = false
    private var lastField = 0
    /// Whether a line of dashes precedes: a header block that follows it is not a quotation yet.
    private var isSeparated = false

    init(_ text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax, place: TextPlace) {
        isMarkup = syntax == .markup
        if place == .contentLines, !Self.isAnswer(text) {
            note(.typed, at: 0)
        } else if place == .contentLines || place == .quotedContentLines {
            readContentLines(text, typed: place == .contentLines ? Self.ownProperties : Self.participants)
        } else if syntax == .markup {
            readMarkup(text)
        } else {
            readPlain(text)
        }
    }

    /// Properties in which the user's program writes about the user (RFC 5545).
    private static let ownProperties = [
        "ATTENDEE", "ORGANIZER", "COMMENT", "CONTACT", "REQUEST-STATUS", "X-WR-CALNAME", "X-WR-CALDESC", "X-OWNER",
        "X-MS-OLK-SENDER",
    ].map { Array($0.utf8) }

    /// Methods of a calendar that answers the team's, and so repeats it (RFC 5546 section 1.4). Any other is the user's own.
    private static let answers = ["METHOD:REPLY", "METHOD:COUNTER", "METHOD:DECLINECOUNTER", "METHOD:REFRESH"].map {
        Array($0.utf8)
    }

    private static func isAnswer(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var start = 0
        while start < text.count {
            if text[start] | 0x20 == UInt8(ascii: "m") {
                let line = text[start...].prefix(32).prefix { $0 != 0x0A }.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }
                if answers.contains(Array(line.reversed().drop { $0 == 0x0D || $0 == 0x20 }.reversed())) { return true }
            }
            while start < text.count, text[start] != 0x0A { start += 1 }
            start += 1
        }
        return false
    }

    /// Properties in which a forward holds the inbox in place of the relay address. Other addresses that the team wrote there
    /// come back as reverse addresses.
    private static let participants = ["ATTENDEE", "ORGANIZER"].map { Array($0.utf8) }

    private mutating func readContentLines(_ text: UnsafeBufferPointer<UInt8>, typed: [[UInt8]]) {
        var start = 0
        while start < text.count {
            let end = text[start...].firstIndex(of: 0x0A) ?? text.count
            // A line that begins with a space continues the line before.
            if !text[start].isWhiteSpace {
                let name = text[start..<end].prefix(16).prefix { $0.isASCIILetter || $0 == UInt8(ascii: "-") }.map {
                    $0 & 0xDF | ($0 & 0x40 == 0 ? 0x20 : 0)
                }
                note(typed.contains(name) ? .typed : .quoted, at: start)
            }
            start = end + 1
        }
    }

    private mutating func readPlain(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        while start < text.count {
            var line = Line(start: start)
            var index = start
            while index < text.count, text[index] == 0x20 || text[index] == 0x09 { index += 1 }
            line.isQuoted = index < text.count && text[index] == UInt8(ascii: ">")
            while line.isQuoted, index < text.count, text[index] == UInt8(ascii: ">") || text[index] == 0x20 { index += 1 }
            let first = index
            while index < text.count, text[index] != 0x0A { index += 1 }
            line.text = Array(text[first..<min(index, first + Self.lineLength)])
            if index - first > Self.lineLength { line.text.append(UInt8(ascii: ".")) }
            take(line)
            start = index + 1
        }
    }

    /// The name of a tag that begins here, in lower case; empty for a comment.
    private static func tag(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> (name: [UInt8], isClosing: Bool) {
        let isClosing = text.dropFirst().first == UInt8(ascii: "/")
        let name = text.dropFirst(isClosing ? 2 : 1).prefix {
            ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A || (0x31...0x36).contains($0)
        }
        return (name.prefix(12).map(\.asciiLowercased), isClosing)
    }

    /// Whether a tag begins here that starts a new line of text.
    static func beginsBlock(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool { blocks.contains(tag(text).name) }

    private static let blocks: Set<[UInt8]> = Set(
        [
            "div", "p", "br", "tr", "td", "th", "table", "li", "ul", "ol", "hr", "h1", "h2", "h3", "h4", "pre", "body",
            "blockquote", "dt", "dd",
        ].map {
            Array($0.utf8)
        })

    private mutating func readMarkup(_ text: UnsafeBufferPointer<UInt8>) {
        var depth = 0
        var line = Line()
        var index = 0
        // Without a further `>` there is no further tag; searched for once.
        var hasTags = true
        while index < text.count {
            guard hasTags, text[index] == UInt8(ascii: "<"), index + 1 < text.count, Self.beginsTag(text[index + 1]) else {
                if text[index] != 0x0A, text[index] != 0x0D, line.text.count < Self.lineLength { line.text.append(text[index]) }
                index += 1
                continue
            }
            guard let end = text[index...].firstIndex(of: UInt8(ascii: ">")) else {
                hasTags = false
                continue
            }
            let (name, isClosing) = Self.tag(text[index..<end])
            if Self.blocks.contains(name) {
                take(line)
                if name == Array("blockquote".utf8) { depth = max(0, depth + (isClosing ? -1 : 1)) }
                line = Line(start: index, isQuoted: depth > 0)
            }
            index = end + 1
        }
        take(line)
    }

    private static func beginsTag(_ octet: UInt8) -> Bool {
        octet == 0x2F || octet == 0x21 || ((octet | 0x20) >= 0x61 && (octet | 0x20) <= 0x7A)
    }

    private mutating func take(_ line: Line) {
        let words = line.words
        guard !words.isEmpty || line.isQuoted else {
            // Between blocks of markup there is always an empty one.
            guard !isMarkup else { return }
            if isBlock { endBlock() }
            return fields = 0
        }
        if line.isQuoted {
            note(!hasQuoted && Self.isAttribution(words) ? .attribution : .quoted, at: line.start)
            if !words.isEmpty {
                hasQuoted = true
                isAttributed = false
            }
            return
        }
        if isAttributed { isBelow = true }
        if isBelow { return note(.below, at: line.start) }
        if Self.isField(words) {
            fields += 1
            lastField = line.start
            isTelling = isTelling || Self.tells(words)
            return note(.typed, at: line.start)
        }
        // The quotation of a block begins with the first line that is not a field.
        if isBlock || (isSeparated && fields == 0) {
            endBlock()
            return note(.below, at: line.start)
        }
        fields = 0
        isTelling = false
        note(.typed, at: line.start)
        isSeparated = Self.isSeparator(words)
        isAttributed = Self.isAttribution(words)
    }

    /// The text that follows is the quotation.
    private mutating func endBlock() {
        isBelow = true
        guard fields >= Self.blockFields, lastField > starts[starts.count - 1] else { return }
        note(.subject, at: lastField)
    }

    /// Whether the fields so far are a header block.
    private var isBlock: Bool { isTelling && (fields >= Self.blockFields || (isSeparated && fields > 0)) }

    /// `On Friday, 21 November 2025 at 10:15, Anna <anna@example.org> wrote:` in any language.
    private static func isAttribution(_ words: ArraySlice<UInt8>) -> Bool {
        (words.last == UInt8(ascii: ":") || words.suffix(3).elementsEqual([0xEF, 0xBC, 0x9A])) && tells(words)
    }

    /// Whether a line holds a mailbox, a year or a time of day.
    private static func tells(_ words: ArraySlice<UInt8>) -> Bool {
        var digits = 0
        for index in words.indices {
            let octet = words[index]
            if octet == UInt8(ascii: "@") { return true }
            if octet.isASCIIDigit {
                digits += 1
            } else {
                if digits == 4 { return true }
                let isTime = (digits == 1 || digits == 2) && (octet == UInt8(ascii: ":") || octet == UInt8(ascii: "."))
                if isTime, words[(index + 1)...].prefix(2).count == 2, words[(index + 1)...].prefix(2).allSatisfy(\.isASCIIDigit)
                {
                    return true
                }
                digits = 0
            }
        }
        return digits == 4
    }

    /// `From: …`, `*Von:* …`, `Envoyé : …`: a word or two and a colon, then a value.
    private static func isField(_ words: ArraySlice<UInt8>) -> Bool {
        guard let colon = words.prefix(24).firstIndex(where: { $0 == UInt8(ascii: ":") }), colon > words.startIndex else {
            return false
        }
        return words[..<colon].allSatisfy {
            $0.isASCIILetter || $0 >= 0x80 || $0 == 0x20 || $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "-")
        }
    }

    /// `-----Original Message-----`, but not a line of armour: the user's program wrote the text above and below that.
    private static func isSeparator(_ words: ArraySlice<UInt8>) -> Bool {
        let dash = UInt8(ascii: "-")
        guard !words.starts(with: "-----BEGIN ".utf8), !words.starts(with: "-----END ".utf8) else { return false }
        return words.count >= 8 && words.count <= 80 && words.prefix(3).allSatisfy { $0 == dash }
            && words.suffix(3).allSatisfy { $0 == dash }
            && words.contains(where: \.isASCIILetter)
    }
}

/// Places in a text, in order. Binary search, as a text may have a hundred thousand of them and ask for each.
extension [Int] {
    /// How many are before a place.
    func count(below place: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }

    func last(below place: Int) -> Int? { self[..<count(below: place)].last }

    func first(from place: Int) -> Int? { self[count(below: place)...].first }
}
