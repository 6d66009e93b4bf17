// Signs that identify a team's mention of an inbox when it comes back in a quotation.

import InternetMessage
import MailCrypto

/// One sign of a mention: kept as a keyed hash, never as text.
struct MentionSign: Hashable, Sendable {
    enum Kind: String, Sendable {
        /// The letters and digits of the mention.
        case form
        /// The mention and what is before it, or behind it.
        case before, behind
        /// The mention in a text that has too little around it to distinguish its places.
        case short
        /// A whole value that holds a mention: a Subject, a name, a file name.
        case whole
        /// The local part of a mention, where a forward had too many mentions to know each by its place.
        case many
    }

    let kind: Kind
    let content: [UInt8]
    /// How many equal signs precede it in its text.
    var ordinal = 0
}

/// Reads the signs of mentions in one text. Only ASCII letters and digits count, as quoting changes breaks, marks, tags and
/// charsets.
struct MentionSigns {
    /// Letters and digits of a context: enough to be unique in a text, and few enough to survive in a quotation.
    static let contextLength = 16
    /// Octets that are searched for them; text further away is not context.
    private static let reach = 1_000
    /// Octets of the longest character reference.
    private static let reference = 10
    /// Octets of the longest form; a longer mention is known by these.
    private static let formLength = 300
    /// Prefixes such as `Re:` that may be before a subject.
    private static let prefixes = 6
    /// Letters of the longest prefix. Programs write one word there, `Accepted` or `Doorgestuurd`; only automatic answers write
    /// more.
    private static let prefixLength = 12

    private let text: UnsafeBufferPointer<UInt8>
    private let isMarkup: Bool
    private var counts: [MentionSign: Int] = [:]

    init(_ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) {
        self.text = text
        self.isMarkup = isMarkup
    }

    func form(_ mention: Range<Int>) -> MentionSign {
        MentionSign(kind: .form, content: letters(mention.prefix(Self.formLength)))
    }

    /// The signs of the mention's place; nil where there is too little context.
    mutating func places(
        _ mention: Range<Int>, isWholeText: Bool
    ) -> (before: MentionSign?, behind: MentionSign?, short: MentionSign?) {
        let form = letters(mention.prefix(Self.formLength))
        let (before, behind) = (before(mention.lowerBound), behind(mention.upperBound))
        func sign(_ kind: MentionSign.Kind, _ context: [UInt8]) -> MentionSign {
            MentionSign(kind: kind, content: form + [0] + context)
        }
        let signs = (
            before: before.count == Self.contextLength ? counted(sign(.before, before)) : nil,
            behind: behind.count == Self.contextLength ? counted(sign(.behind, behind)) : nil
        )
        let isShort = isWholeText && signs.before == nil && signs.behind == nil
        return (signs.before, signs.behind, isShort ? counted(sign(.short, [])) : nil)
    }

    /// The sign of a mention with unknown surroundings, as if it were the team's only text, with nothing else quoted.
    mutating func short(_ mention: Range<Int>) -> MentionSign {
        counted(MentionSign(kind: .short, content: letters(mention.prefix(Self.formLength)) + [0]))
    }

    private mutating func counted(_ sign: MentionSign) -> MentionSign {
        var counted = sign
        counted.ordinal = counts[sign, default: 0]
        counts[sign] = counted.ordinal + 1
        return counted
    }

    /// The one sign for all further mentions of an address, in a message that has too many mentions.
    static func many(_ local: [UInt8]) -> MentionSign {
        // What follows a plus sign leads to the same mailbox, and may be anything.
        MentionSign(kind: .many, content: local.prefix { $0 != UInt8(ascii: "+") }.compactMap(letter))
    }

    /// The signs of a whole value: of all of it, and of the rest after each prefix that it begins with.
    /// - Parameters:
    ///   - first: where the first mention in it begins; what is before that may be a prefix.
    ///   - isAutomatic: whether no person wrote the value, so that whatever ends with a colon is a prefix.
    func whole(before first: Int, isAutomatic: Bool) -> [MentionSign] {
        ([0] + starts(from: 0, before: first, isAutomatic: isAutomatic)).map {
            MentionSign(kind: .whole, content: letters($0..<text.count))
        }
    }

    /// The places after each of several prefixes in a row, such as `Re:` and `AW:`.
    private func starts(from start: Int, before end: Int, isAutomatic: Bool) -> [Int] {
        var starts: [Int] = []
        var from = start
        for index in start..<max(start, min(end, text.count)) where text[index] == UInt8(ascii: ":") {
            guard starts.count < Self.prefixes, isAutomatic || isPrefix(from..<index) else { break }
            from = index + 1
            starts.append(from)
        }
        return starts
    }

    /// Whether this is one short word, with or without a number after it: `Re`, `AW`, `Fwd`, `Re[2]`.
    private func isPrefix(_ range: Range<Int>) -> Bool {
        var word: [UInt8] = []
        var at = range.lowerBound
        while at < range.upperBound, word.count < Self.reach {
            let next = isMarkup ? step(at, range.upperBound) { _ in } : at + 1
            if next == at + 1 { word.append(text[at]) }
            at = next
        }
        var rest = HeaderField.trim(word[...])
        while let last = rest.last, (0x30...0x39).contains(last) || "[]()^".utf8.contains(last) { rest.removeLast() }
        rest = HeaderField.trim(rest)
        // Counts letters by the octets that begin a UTF-8 character.
        return !rest.isEmpty && rest.allSatisfy { $0 >= 0x80 || Self.letter($0) != nil }
            && rest.count { $0 & 0xC0 != 0x80 } <= Self.prefixLength
    }

    /// The signs of values that begin at one of these places and end before another, as the reader sees them.
    func whole(from starts: some Sequence<Int>, to end: Int) -> [MentionSign] {
        let end = tag(around: end)?.lowerBound ?? end
        return starts.filter { $0 < end }.map { start in
            var found: [UInt8] = []
            var at = start
            while at < end {
                at = step(at, end) { found.append($0) }
            }
            return MentionSign(kind: .whole, content: found)
        }
    }

    /// The signs of the display names that a mention may be part of, where a reverse address follows it: a program that writes an
    /// attribution, or a header block, names the author as the team did.
    /// - Parameter reverse: where the reverse addresses begin, in order.
    func names(_ mention: Range<Int>, before reverse: [Int], within reach: Int) -> [MentionSign] {
        guard let next = reverse.first(from: mention.upperBound), next - mention.upperBound < reach else { return [] }
        return whole(from: wordStarts(before: mention.lowerBound), to: next)
    }

    /// Where a display name with this mention in it may begin: at the mention, and at the words before it on the same line.
    func wordStarts(before mention: Int) -> [Int] {
        var starts = [mention]
        var at = mention - 1
        while at >= 0, mention - at < 100, starts.count < Self.prefixes, text[at] != 0x0A {
            if text[at] == 0x20 || "\">;,(".utf8.contains(text[at]) { starts.append(at + 1) }
            at -= 1
        }
        return starts
    }

    /// Where the value of a field in a header block may begin: after its name, and after each prefix that follows.
    func valueStarts(from start: Int, before mention: Int) -> [Int] {
        guard let name = (start..<mention).first(where: { text[$0] == UInt8(ascii: ":") }) else { return [] }
        return [name + 1] + starts(from: name + 1, before: mention, isAutomatic: false)
    }

    // MARK: Letters

    private static func letter(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39, 0x61...0x7A: octet
        case 0x41...0x5A: octet | 0x20
        default: nil
        }
    }

    private func letters(_ range: some Collection<Int>) -> [UInt8] {
        range.compactMap { $0 < text.count ? Self.letter(text[$0]) : nil }
    }

    /// The tag around an index; nil where it is in none.
    private func tag(around index: Int) -> Range<Int>? {
        guard isMarkup else { return nil }
        var start = index - 1
        while start >= 0, index - start < Self.reach, text[start] != UInt8(ascii: "<") {
            if text[start] == UInt8(ascii: ">") { return nil }
            start -= 1
        }
        guard start >= 0, text[start] == UInt8(ascii: "<") else { return nil }
        var end = index
        while end < text.count, end - index < Self.reach, text[end] != UInt8(ascii: ">") { end += 1 }
        return start..<min(text.count, end + 1)
    }

    /// The last letters before an index, in their order; within a tag those before the tag.
    private func before(_ index: Int) -> [UInt8] {
        var at = tag(around: index)?.lowerBound ?? index
        let limit = max(0, at - Self.reach)
        var found: [UInt8] = []
        while at > limit, found.count < Self.contextLength {
            at -= 1
            if isMarkup, text[at] == UInt8(ascii: ">"), let start = opening(before: at, limit) {
                at = start
            } else if isMarkup, text[at] == UInt8(ascii: ";"), let start = reference(before: at) {
                at = start
            } else if let letter = Self.letter(text[at]) {
                found.append(letter)
            }
        }
        return found.reversed()
    }

    private func behind(_ index: Int) -> [UInt8] {
        var at = tag(around: index)?.upperBound ?? index
        let limit = min(text.count, at + Self.reach)
        var found: [UInt8] = []
        while at < limit, found.count < Self.contextLength { at = step(at, limit) { found.append($0) } }
        return found
    }

    /// Reads one step: takes a letter, or skips a tag or reference.
    private func step(_ at: Int, _ limit: Int, _ take: (UInt8) -> Void) -> Int {
        if isMarkup, text[at] == UInt8(ascii: "<") {
            var end = at
            while end < limit, text[end] != UInt8(ascii: ">") { end += 1 }
            return end + 1
        }
        if isMarkup, text[at] == UInt8(ascii: "&") {
            var end = at + 1
            while end < limit, end - at < Self.reference, Self.letter(text[end]) != nil || text[end] == UInt8(ascii: "#") {
                end += 1
            }
            if end < limit, text[end] == UInt8(ascii: ";") { return end + 1 }
        }
        if let letter = Self.letter(text[at]) { take(letter) }
        return at + 1
    }

    private func opening(before end: Int, _ limit: Int) -> Int? {
        var start = end - 1
        while start >= limit, text[start] != UInt8(ascii: "<") {
            if text[start] == UInt8(ascii: ">") { return nil }
            start -= 1
        }
        return start >= limit ? start : nil
    }

    private func reference(before end: Int) -> Int? {
        var start = end - 1
        while start >= 0, end - start < Self.reference, Self.letter(text[start]) != nil || text[start] == UInt8(ascii: "#") {
            start -= 1
        }
        return start >= 0 && text[start] == UInt8(ascii: "&") ? start : nil
    }
}

/// Makes the keyed hashes under which signs are remembered.
struct MentionMarks: Sendable {
    /// Octets of a mark; 128 bits.
    private static let length = 16
    /// How long a mark is kept, in seconds: 400 days, as an answer may come a year later. After that a quotation is rewritten
    /// like any other text.
    static let lifetime: Int64 = 400 * 86_400

    let keys: TokenKeys
    let account: AccountNumber

    /// The mark under the active key, to be remembered.
    func mark(_ sign: MentionSign) -> [UInt8] { mark(sign, keys.activeKey) }

    /// The marks under every key, the active one first.
    func marks(_ sign: MentionSign) -> [[UInt8]] { keys.ids.compactMap { keys.key($0) }.map { mark(sign, $0) } }

    private func mark(_ sign: MentionSign, _ key: HMACSHA256) -> [UInt8] {
        let label = "postern mention \(sign.kind.rawValue) 1\naccount \(account.rawValue)\n\(sign.ordinal)\n"
        return Array(key.authenticationCode(for: Array(label.utf8) + sign.content).prefix(Self.length))
    }
}
