// Finds quickly that most texts hold no address of the user in any form; only the others need the tables and the readings of
// the rewriting.

import InternetMessage

/// Searches a text for what every mention of an inbox holds: a local part that is hidden by itself, or a local part and a
/// domain, each in some reading. Searches for some of their octets, in one pass over the text; marks that may stand for
/// something else are read as the rewriting reads them (`DecodedWindow`). Never says no where `TextRewriter` finds a mention; a
/// yes means that the text must be examined.
///
/// Not thread-safe: one for each message.
final class MentionFilter {
    /// Adjacent octets of a word, with the first of them highest.
    private struct Piece {
        let value: UInt64
        let mask: UInt64
        let part: Parts
    }

    private struct Parts: OptionSet {
        let rawValue: UInt8
        static let local = Parts(rawValue: 1)
        static let domain = Parts(rawValue: 2)
        static let mention: Parts = [.local, .domain]
    }

    /// Octets of a word that are compared, and octets used for the look-up; a shorter word counts as found everywhere.
    private static let width = 8
    private static let shortest = 4
    /// Maximum inboxes of a user for this search; with more, or with one beyond ASCII, every text is examined.
    private static let maximumInboxes = 50
    /// Levels of nested base64 that are decoded, as by `TextRewriter`.
    private static let maximumDepth = 2

    private var pieces: [Piece] = []
    /// By a hash of the last four octets.
    private var bits = [UInt64](repeating: 0, count: 64)
    /// Octets that are in a piece.
    private var alphabet = [Bool](repeating: false, count: 256)
    /// Parts that count as found everywhere.
    private var everywhere: Parts = []
    /// Octets of the shortest mention.
    private var minimum = Int.max
    private let window = DecodedWindow(foldsUnicode: false, capacity: 16)
    private var base64: [EmbeddedBase64] = []
    /// Words that the rewriting looks for.
    private var words: [[UInt8]] = []
    private let otherWords: () -> [[UInt8]]
    /// Pairs by which the rewriting decides what is worth decoding.
    private lazy var pairs = {
        var pairs = PairSet()
        for word in words + otherWords() where word.count >= 2 { pairs.insert(word[0], word[1]) }
        return pairs
    }()

    /// - Parameters:
    ///   - inboxes: all of the user.
    ///   - otherWords: other words that the rewriting looks for: relay domains and anchors of tokens; called where base64 is
    ///     found.
    init(inboxes: [AddrSpec], providers: ProviderRules, otherWords: @escaping () -> [[UInt8]]) {
        self.otherWords = otherWords
        guard inboxes.count <= Self.maximumInboxes else {
            everywhere = .mention
            return
        }
        for inbox in inboxes {
            let canonical = providers.canonical(inbox)
            let locals = Set([inbox.localPart, canonical.localPart].map(NameIndex.octets))
            let domains = NameIndex.spellings([inbox.domain] + providers.aliases(of: canonical.domain))
            guard (Array(locals) + domains).allSatisfy({ $0.allSatisfy { $0 < 0x80 } }) else {
                everywhere = .mention
                return
            }
            for local in locals where LocalPartGuard(local) != .none { add(local, .mention) }
            // With dots anywhere in it, it has no adjacent octets.
            if providers.ignoresDots(canonical.domain) {
                everywhere.insert(.local)
            } else {
                add(NameIndex.octets(canonical.localPart), .local)
            }
            for domain in domains {
                add(domain, .domain)
                minimum = min(minimum, NameIndex.octets(canonical.localPart).count + domain.count)
            }
        }
    }

    private func add(_ word: [UInt8], _ part: Parts) {
        minimum = min(minimum, part == .mention ? word.count : .max)
        if part != .local { words.append(word) }
        guard word.count >= Self.shortest else {
            everywhere.formUnion(part)
            return
        }
        // Many domains have the same ending.
        let last = part == .domain ? word.prefix(Self.width) : word.suffix(Self.width)
        let value = last.reduce(0) { $0 << 8 | UInt64($1) }
        for octet in last { alphabet[Int(octet)] = true }
        pieces.append(Piece(value: value, mask: last.count == Self.width ? .max : 1 << UInt64(8 * last.count) - 1, part: part))
        bits[Self.hash(value) >> 6] |= 1 << UInt64(Self.hash(value) & 63)
    }

    @inline(__always)
    private static func hash(_ value: UInt64) -> Int {
        Int(truncatingIfNeeded: (UInt32(truncatingIfNeeded: value) &* 0x9E37_79B1) >> 20)
    }

    /// Whether a text may mention an inbox.
    /// - Parameter text: in UTF-8 or another superset of ASCII.
    func mayMention(_ text: [UInt8], isMarkup: Bool) -> Bool {
        text.withUnsafeBufferPointer { mayMention($0, isMarkup: isMarkup, depth: 0) }
    }

    private func mayMention(_ text: UnsafeBufferPointer<UInt8>, isMarkup: Bool, depth: Int) -> Bool {
        if everywhere == .mention { return true }
        guard text.count >= minimum else { return false }
        var pass = Pass(filter: self, text: text, isMarkup: isMarkup)
        if pass.run() { return true }
        guard depth < Self.maximumDepth else { return false }
        while base64.count <= depth { base64.append(EmbeddedBase64()) }
        var isFound = false
        _ = base64[depth].edits(in: text) { content in
            if !isFound, content.count >= minimum, pairs.mayBegin(in: content, row: TextRewriter.base64Row) {
                isFound = mayMention(content, isMarkup: false, depth: depth + 1)
            }
            return false
        } rewrite: { _, _ in
            nil
        }
        return isFound
    }

    /// Releases the memory kept between texts.
    func letGo() { base64 = [] }

    /// The class of each octet: literal, capital, white space, line break, mark of one reading, mark of all readings.
    private static let classes: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0x41...0x5A: 1
        case 0x20, 0x09, 0: 2
        case 0x0A, 0x0D: 3
        case 0x25, 0x2B, 0x3C, 0x3D: 4
        // Characters beyond ASCII that are not seen, or that stand for an ASCII one, begin with one of these.
        case 0x26, 0x5C, 0xC2, 0xE2, 0xE3, 0xEF, 0xF0...: 5
        default: 0
        }
    }

    /// One pass over one text.
    private struct Pass {
        let filter: MentionFilter
        let text: UnsafeBufferPointer<UInt8>
        let isMarkup: Bool
        private var found: Parts
        /// The index up to which each reading has read separately.
        private var done = (percent: 0, equals: 0, plus: 0, tags: 0)

        init(filter: MentionFilter, text: UnsafeBufferPointer<UInt8>, isMarkup: Bool) {
            self.filter = filter
            self.text = text
            self.isMarkup = isMarkup
            found = filter.everywhere
            filter.window.begin()
        }

        /// Whether the text holds all that a mention needs.
        mutating func run() -> Bool {
            MentionFilter.classes.withUnsafeBufferPointer { classes in
                filter.bits.withUnsafeBufferPointer { bits in
                    var last: UInt64 = 0
                    var index = 0
                    while index < text.count {
                        let octet = text[index]
                        switch classes[Int(octet)] {
                        case 0:
                            if take(octet, &last, bits) { return true }
                            index += 1
                        case 1:
                            if take(octet | 0x20, &last, bits) { return true }
                            index += 1
                        case 2: index += 1
                        case 3: index = DecodedWindow.pastBreak(text, index, text.count)
                        case 4:
                            if readBeside(octet, index, last, classes, bits) || take(octet, &last, bits) { return true }
                            index += 1
                        default:
                            index += filter.window.readMark(at: index, in: text, lens: [])
                            for unit in filter.window.octets where take(unit, &last, bits) { return true }
                        }
                    }
                    return false
                }
            }
        }

        /// Takes the next unit of a reading; returns whether all parts are found.
        @inline(__always)
        private mutating func take(_ unit: UInt8, _ last: inout UInt64, _ bits: UnsafeBufferPointer<UInt64>) -> Bool {
            last = last << 8 | UInt64(unit)
            let hash = MentionFilter.hash(last)
            guard bits[hash >> 6] >> UInt64(hash & 63) & 1 != 0 else { return false }
            for piece in filter.pieces where last & piece.mask == piece.value { found.formUnion(piece.part) }
            return found == .mention
        }

        /// At a mark that one reading decodes: reads on in that reading, until so many ordinary units have followed that none
        /// of its decoded units counts any more.
        private mutating func readBeside(
            _ mark: UInt8, _ index: Int, _ last: UInt64, _ classes: UnsafeBufferPointer<UInt8>,
            _ bits: UnsafeBufferPointer<UInt64>
        ) -> Bool {
            switch mark {
            case UInt8(ascii: "%"):
                guard index >= done.percent, mayDecode(index, isPercent: true) else { return false }
                done.percent = read(.percent, mark, index, last, classes, bits)
            case UInt8(ascii: "+"):
                guard index >= done.plus, mayDecode(index, isPercent: false) else { return false }
                done.plus = read(.plus, mark, index, last, classes, bits)
            case UInt8(ascii: "="):
                // An encoded word (RFC 2047) is left to its decoder.
                if index + 1 < text.count, text[index + 1] == UInt8(ascii: "?") { return true }
                guard index >= done.equals,
                    mayDecode(index, isPercent: false) || DecodedWindow.softBreak(text, index, text.count) > 0
                else { return false }
                done.equals = read(.equals, mark, index, last, classes, bits)
            default:
                guard isMarkup, index >= done.tags else { return false }
                done.tags = read(.tags, mark, index, last, classes, bits)
            }
            return found == .mention
        }

        /// Whether two hexadecimal digits at a mark may stand for an octet of a word, or for white space within one.
        private func mayDecode(_ index: Int, isPercent: Bool) -> Bool {
            guard index + 2 < text.count, let high = text[index + 1].hexValue, let low = text[index + 2].hexValue else {
                return false
            }
            let value = high << 4 | low
            return filter.alphabet[Int(value.asciiLowercased)] || value <= 0x20 || (isPercent && value == UInt8(ascii: "%"))
        }

        /// Returns the index up to which it has read.
        private mutating func read(
            _ lens: DecodingPass, _ mark: UInt8, _ start: Int, _ before: UInt64, _ classes: UnsafeBufferPointer<UInt8>,
            _ bits: UnsafeBufferPointer<UInt64>
        ) -> Int {
            var last = before
            var index = start
            // Units since the last that only this reading has.
            var own = 0
            while index < text.count, own < MentionFilter.width {
                let octet = text[index]
                switch classes[Int(octet)] {
                case 0, 1:
                    if take(octet.asciiLowercased, &last, bits) { return index }
                    index += 1
                    own += 1
                case 2: index += 1
                case 3: index = DecodedWindow.pastBreak(text, index, text.count)
                default:
                    let taken = filter.window.readMark(at: index, in: text, lens: lens)
                    // Not a tag.
                    if index == start, taken == 1 { return index + 1 }
                    index += taken
                    for unit in filter.window.octets where take(unit, &last, bits) { return index }
                    own = octet == mark && taken > 1 ? 0 : own + filter.window.octets.count
                }
            }
            return index
        }
    }
}
