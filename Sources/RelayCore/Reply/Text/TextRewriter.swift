// Replaces the user's addresses and the reverse addresses in text, in every form in
// which programs write them.

import InternetMessage
import LeakSearch

/// Rewrites texts of one reply. Each address of the user becomes the relay address, and each
/// reverse address becomes its correspondent.
package struct TextRewriter {
    let names: ReplyNames
    let index: NameIndex
    private let reader: TokenReader
    private let own: OwnTokens
    private let scanner: MentionScanner
    private let scratch = Scratch()
    /// Counts the candidates of typed text, and decides how that text is treated.
    let search: TypedSearch
    /// The Content-IDs that change in the message of these texts.
    var contentIDs = ContentIDs()
    /// The message ids in the form for the team, by the thread of the reply; nil if no id is known.
    var outwardIDs: OutwardIDs?

    /// Octets searched at a time. A mention across two windows is found, as they overlap.
    private static let window = 262_144
    /// Longer than any mention with its breaks and encodings.
    private static let overlap = 2_048
    /// Maximum octets from an encoded character to the beginning of the word that contains or
    /// follows it.
    private static let reach = 1_024

    package init(names: ReplyNames) {
        self.names = names
        let own = OwnTokens(names: names)
        self.own = own
        index = NameIndex(names: names, anchors: own.anchors)
        reader = TokenReader(names: names)
        search = TypedSearch(names: names)
        scanner = MentionScanner(index: index, names: names, reader: reader, own: own)
    }

    /// Whether there are more names, or more token-like words, than can be searched for. Then
    /// nothing may be relayed.
    package var isOverfull: Bool { index.isOverfull || own.isExhausted }

    /// The message ids of a header section, in the form for the team.
    func ids(in header: HeaderSection, work: WorkBudget) -> OutwardIDs {
        names.ids(in: header, work: work, holdsToken: { own.occur(in: $0) })
    }

    /// - Parameter utf8: text in UTF-8 or another superset of ASCII.
    /// - Returns: the new text; nil if nothing changes.
    package func rewrite(_ utf8: [UInt8], syntax: TextSyntax = .plain) -> [UInt8]? {
        rewrite(utf8, syntax: syntax, place: .typed)
    }

    func rewrite(_ utf8: [UInt8], syntax: TextSyntax = .plain, place: TextPlace) -> [UInt8]? {
        let edits = edits(utf8, syntax: syntax, place: place)
        return edits.isEmpty ? nil : edits.applied(to: utf8)
    }

    /// Whether rewriting adds a correspondent to a field or a header section. Nothing is then
    /// searched for in it, as any correspondent is sent.
    func makes(_ field: [UInt8], place: TextPlace) -> Bool {
        if edits(field, place: place).isAnyMade { return true }
        let decoded = Array(EncodedWord.decode(HeaderField.unfold(field[...])[...]).utf8)
        return !decoded.elementsEqual(field) && edits(decoded, place: place).isAnyMade
    }

    /// A display name without addresses; nil if it contained one.
    func neutralName(_ name: String) -> String? {
        rewrite(Array(name.utf8), place: .whole) == nil ? name : nil
    }

    /// The replacements in a text, in order and without overlaps.
    func edits(_ utf8: [UInt8], syntax: TextSyntax = .plain, place: TextPlace) -> [TextEdit] {
        edits(utf8, syntax: syntax, in: Stretches(utf8, syntax: syntax, place: place))
    }

    /// The replacements in a text with known authors of its stretches. Each stretch is read alone:
    /// text that was not typed is never compared with the user's addresses.
    func edits(_ utf8: [UInt8], syntax: TextSyntax = .plain, in stretches: Stretches) -> [TextEdit]
    {
        let stretches =
            search.mode == .neutral && !search.isCounting ? stretches.neutral : stretches
        guard !stretches.isTyped else {
            return typedEdits(utf8, syntax: syntax, place: .typed, depth: 0)
        }
        var edits: [TextEdit] = []
        stretches.forEach(upTo: utf8.count) { range, standing in
            guard standing.isTyped else { return }
            edits += typedEdits(Array(utf8[range]), syntax: syntax, place: .typed, depth: 0).map {
                $0.moved(by: range.lowerBound)
            }
        }
        if syntax == .markup { edits += joinedEdits(utf8, in: stretches) }
        if search.isCounting { return [] }
        let neutral = scratch.neutraliser { Neutraliser(names: names, reader: reader, own: own) }
        let all =
            (edits + neutral.edits(utf8, syntax: syntax, in: stretches) + contentIDs.edits(utf8))
            .reconciled
        return names.removesUnread ? removingUnread(utf8, syntax, all, in: stretches) : all
    }

    /// The replacements in words of typed text that a comment, or another hidden element, divides:
    /// `an<!-- -->na@…`. That element is removed with the word.
    private func joinedEdits(_ utf8: [UInt8], in stretches: Stretches) -> [TextEdit] {
        var edits: [TextEdit] = []
        var pieces: [Range<Int>] = []
        var gap: Range<Int>?
        func end() {
            defer { pieces = [] }
            guard pieces.count > 1 else { return }
            let joined = JoinedText(utf8, pieces)
            edits += typedEdits(joined.octets, syntax: .markup, place: .typed, depth: 0).compactMap(
                joined.placed)
        }
        stretches.forEach(upTo: utf8.count) { range, standing in
            if standing.isTyped {
                if let gap, !JoinedText.isWithinWord(gap, of: utf8) { end() }
                pieces.append(range)
                gap = nil
            } else {
                gap = gap.map { $0.lowerBound..<range.upperBound } ?? range
            }
        }
        end()
        return edits
    }

    /// The same, but removes each stretch that was not typed if it still contains an address.
    private func removingUnread(
        _ utf8: [UInt8], _ syntax: TextSyntax, _ edits: [TextEdit], in stretches: Stretches
    ) -> [TextEdit] {
        let check = LeakCheck(LeakNames(names))
        var edits = edits
        stretches.forEach(upTo: utf8.count) { range, standing in
            guard !standing.isTyped else { return }
            let own = edits.filter { range.contains($0.range.lowerBound) }.map {
                $0.moved(by: -range.lowerBound)
            }
            let written = own.applied(to: Array(utf8[range]))
            let isMarkup = syntax == .markup
            guard
                check.holdsAddress(
                    written[...], isMarkup: isMarkup, work: WorkBudget(octets: written.count))
            else { return }
            edits.removeAll { $0.range.overlaps(range) }
            edits.append(TextEdit(range: range, replacement: NeutralMark.quotation))
        }
        return edits.reconciled
    }

    private func typedEdits(
        _ utf8: [UInt8], syntax: TextSyntax, place: TextPlace, depth: Int
    ) -> [TextEdit] {
        var edits: [TextEdit] = []
        if !search.isCounting, utf8.count <= Self.shortText, contentIDs.isEmpty, isOrdinary(utf8) {
            return []
        }
        utf8.withUnsafeBufferPointer { text in
            for lens in Self.lenses(text, syntax: syntax) {
                scan(text, lens: lens, syntax: syntax, into: &edits)
            }
        }
        edits += encodedWordEdits(utf8, place)
        edits += contentIDs.edits(utf8)
        if depth < Self.maximumDepth {
            edits += base64Edits(utf8, place, depth: depth)
            edits += hexadecimalEdits(utf8, place, depth: depth)
        }
        return edits.reconciled
    }

    /// Hexadecimal digits of the shortest run that is decoded.
    private static let shortestHexadecimal = 16

    /// Runs of hexadecimal digits in a text with content that must be rewritten.
    private func hexadecimalEdits(_ text: [UInt8], _ place: TextPlace, depth: Int) -> [TextEdit] {
        var edits: [TextEdit] = []
        var index = 0
        while index < text.count {
            let start = index
            while index < text.count, text[index].hexValue != nil { index += 1 }
            defer { index += 1 }
            guard index - start >= Self.shortestHexadecimal else { continue }
            for from in start...(start + 1) {
                let content = stride(from: from, to: index - 1, by: 2).map {
                    (text[$0].hexValue ?? 0) << 4 | (text[$0 + 1].hexValue ?? 0)
                }
                guard content.contains(UInt8(ascii: "@")) else { continue }
                let inner = typedEdits(content, syntax: .plain, place: place, depth: depth + 1)
                guard !inner.isEmpty else { continue }
                let range = from..<(from + content.count * 2)
                let isUpper = text[range].contains { (0x41...0x46).contains($0) }
                let written = inner.applied(to: content).flatMap { (octet: UInt8) -> [UInt8] in
                    [octet >> 4, octet & 15].map { ($0 < 10 ? 0x30 : isUpper ? 0x37 : 0x57) + $0 }
                }
                edits.append(TextEdit(range: range, replacement: written, isMade: inner.isAnyMade))
                break
            }
        }
        return edits
    }

    /// Levels of nested base64 that are decoded.
    private static let maximumDepth = 2

    /// Letters and digits in a row that may be base64 within base64.
    static let base64Row = 16

    /// Runs of base64 in a text with content that must be rewritten. Edits of the text itself
    /// replace them.
    private func base64Edits(_ text: [UInt8], _ place: TextPlace, depth: Int) -> [TextEdit] {
        var isMade = false
        let found = text.withUnsafeBufferPointer { text in
            scratch.base64[depth].edits(in: text, mayHold: { mayHold($0) }) {
                decoded, _ in
                let content = GoogleShortForm.expanded(decoded) ?? decoded
                let edits = typedEdits(
                    content, syntax: .plain, place: place == .whole ? .typed : place,
                    depth: depth + 1)
                isMade = isMade || edits.isAnyMade
                return edits.isEmpty ? nil : edits.applied(to: content)
            }
        }
        return found.map { $0.making(isMade) }
    }

    /// Whether decoded octets may contain a candidate or a token. Compared candidates must have
    /// been counted, so that no name decides.
    private func mayHold(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        if octets.contains(UInt8(ascii: "@")) || octets.contains(UInt8(ascii: "%")) { return true }
        return octets.allSatisfy { $0 >= 0x20 && $0 < 0x7F || (0x09...0x0D).contains($0) }
            || !search.isCounting && index.pairs.mayBegin(in: octets, row: Self.base64Row)
    }

    /// Releases the memory kept between texts, when the next text may come much later.
    func letGo() { scratch.letGo() }

    /// Memory that is reused for each text, as a message may have a hundred thousand texts.
    private final class Scratch {
        private(set) lazy var base64 = (0..<TextRewriter.maximumDepth).map { _ in EmbeddedBase64() }
        private var lastWindow: DecodedWindow?
        private var made: Neutraliser?

        func neutraliser(_ make: () -> Neutraliser) -> Neutraliser {
            let neutraliser = made ?? make()
            made = neutraliser
            return neutraliser
        }

        func letGo() {
            made?.letGo()
            lastWindow = nil
            base64 = (0..<TextRewriter.maximumDepth).map { _ in EmbeddedBase64() }
        }

        func window(foldsUnicode: Bool, capacity: Int) -> DecodedWindow {
            if let lastWindow, lastWindow.textCapacity >= capacity { return lastWindow }
            let made = DecodedWindow(foldsUnicode: foldsUnicode, capacity: max(capacity, 1_024))
            lastWindow = made
            return made
        }
    }

    /// Maximum octets of a text that is tested first, as messages have thousands of fields without
    /// any address.
    private static let shortText = 512

    /// Whether a text contains nothing that could begin a mention or represent another character.
    private func isOrdinary(_ utf8: [UInt8]) -> Bool {
        var last: UInt8 = 0
        var run = 0
        var isEncoded = false
        for octet in utf8 {
            // `=` before a digit, a break or a question mark may encode
            // something; `charset=utf-8` does not.
            if isEncoded, octet.hexValue != nil || octet <= 0x20 || octet == UInt8(ascii: "?") {
                return false
            }
            isEncoded = octet == UInt8(ascii: "=")
            switch octet {
            case 0x20, 0x09, 0x0A, 0x0D, 0x3E: continue
            case 0, 0x25, 0x26, 0x2B, 0x3C, 0x5C, 0x7F...: return false
            default: break
            }
            let lower = octet.asciiLowercased
            if last != 0, index.pairs.contains(last, lower) { return false }
            last = lower
            // A word of this length may be base64.
            run =
                octet.isASCIILetter || octet.isASCIIDigit || octet == 0x2B || octet == 0x2F
                    || octet == 0x2D || octet == 0x5F
                ? run + 1 : 0
            if run == 12 { return false }
        }
        return !isEncoded
    }

    /// The readings that may differ for this text.
    static func lenses(_ text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax) -> [DecodingPass] {
        var lenses: [DecodingPass] = [[]]
        if text.contains(UInt8(ascii: "%")) { lenses.append(.percent) }
        if text.contains(UInt8(ascii: "=")) { lenses.append(.equals) }
        if text.contains(UInt8(ascii: "+")) { lenses.append(.plus) }
        if syntax == .markup { lenses.append(.tags) }
        return lenses
    }

    private func scan(
        _ text: UnsafeBufferPointer<UInt8>, lens: DecodingPass, syntax: TextSyntax,
        into edits: inout [TextEdit]
    ) {
        guard !lens.isEmpty else {
            return scan(text, 0..<text.count, lens: lens, syntax: syntax, into: &edits)
        }
        // This pass reads new text only near the octets that it decodes.
        var next = DecodedWindow.nextDecoded(lens, text, from: 0)
        while let first = next {
            var last = first
            next = DecodedWindow.nextDecoded(lens, text, from: first + 1)
            while let following = next, following - last < Self.reach * 4 {
                last = following
                next = DecodedWindow.nextDecoded(lens, text, from: following + 1)
            }
            let span = max(0, first - Self.reach)..<min(text.count, last + Self.reach)
            scan(text, span, lens: lens, syntax: syntax, into: &edits)
        }
    }

    /// Searches for mentions with words that begin in a range of a text.
    private func scan(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, lens: DecodingPass,
        syntax: TextSyntax,
        into edits: inout [TextEdit]
    ) {
        let window = scratch.window(
            foldsUnicode: true,
            capacity: min(
                text.count, range.count + 2 * Self.overlap, Self.window + 2 * Self.overlap))
        var from = range.lowerBound
        while from < range.upperBound {
            let limit = min(range.upperBound, from + Self.window)
            window.read(
                text, from: max(0, from - Self.overlap), to: min(text.count, limit + Self.overlap),
                lens: lens)
            scanner.scan(
                window, text: text, lens: lens, syntax: syntax, range: from..<limit, search: search,
                into: &edits)
            from = limit
        }
    }

    /// Encoded words (RFC 2047) in a text. Adjacent ones are read together, and rewritten if they
    /// contain a name.
    private func encodedWordEdits(_ text: [UInt8], _ place: TextPlace) -> [TextEdit] {
        guard Self.mayHoldEncodedWords(text) else { return [] }
        var edits: [TextEdit] = []
        for run in EncodedWordRuns.find(in: text) {
            let decoded = Array(EncodedWord.decode(HeaderField.unfold(text[run])[...]).utf8)
            var inner: [TextEdit] = []
            decoded.withUnsafeBufferPointer { bytes in
                for lens in Self.lenses(bytes, syntax: .plain) {
                    scan(bytes, lens: lens, syntax: .plain, into: &inner)
                }
            }
            guard !inner.isEmpty else { continue }
            inner = inner.reconciled
            edits.append(
                TextEdit(
                    range: run,
                    replacement: HeaderText.encodedWords(inner.applied(to: decoded), startingAt: 12)
                ).making(
                    inner.isAnyMade))
        }
        return edits
    }

    private static func mayHoldEncodedWords(_ text: [UInt8]) -> Bool {
        text.withUnsafeBufferPointer { bytes in
            guard bytes.count > 8 else { return false }
            for index in 0..<(bytes.count - 1)
            where bytes[index] == UInt8(ascii: "=") && bytes[index + 1] == UInt8(ascii: "?") {
                return true
            }
            return false
        }
    }

    /// The outgoing raw value of an unstructured field, leading white space included. The original
    /// bytes if nothing changes and the value is safe; otherwise decoded, rewritten, encoded again
    /// (RFC 2047) and folded.
    package func rewriteUnstructured(_ field: HeaderField) -> [UInt8] {
        rewriteUnstructured(field, place: .typed)
    }

    func rewriteUnstructured(_ field: HeaderField, place: TextPlace) -> [UInt8] {
        let raw = field.rawValue
        let unfolded = field.unfoldedBytes
        let isSafe = field.controls.isEmpty && unfolded.isValidUTF8
        if isSafe {
            let rewritten = rewrite(Array(raw), place: place) ?? Array(raw)
            // A name with one half in an encoded word is found only when everything is decoded.
            if rewrite(
                Array(EncodedWord.decode(HeaderField.unfold(rewritten[...])[...]).utf8),
                place: place) == nil
            {
                return rewritten
            }
        }
        let text =
            unfolded.isValidUTF8
            ? EncodedWord.decode(HeaderField.trim(unfolded[...]))
            : Charset.decode(unfolded, "windows-1252") ?? ""
        let clean = text.utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        return [0x20]
            + HeaderText.unstructured(
                rewrite(clean, place: place) ?? clean, startingAt: field.nameLength + 2)
    }
}

/// Pieces of a text without the text between them.
private struct JoinedText {
    let octets: [UInt8]
    private let pieces: [Range<Int>]

    init(_ text: [UInt8], _ pieces: [Range<Int>]) {
        self.pieces = pieces
        octets = pieces.reduce(into: []) { $0 += text[$1] }
    }

    /// Whether the text around a hidden piece of markup is one word.
    static func isWithinWord(_ gap: Range<Int>, of text: [UInt8]) -> Bool {
        guard gap.lowerBound > 0, gap.upperBound < text.count,
            text[gap.lowerBound] == UInt8(ascii: "<")
        else { return false }
        let (before, after) = (text[gap.lowerBound - 1], text[gap.upperBound])
        return before > 0x20 && before != UInt8(ascii: ">") && after > 0x20
            && after != UInt8(ascii: "<")
    }

    /// An edit in terms of the complete text. The text between the pieces that it spans is removed.
    func placed(_ edit: TextEdit) -> TextEdit? {
        var (first, last): (Int?, Int?)
        var start = 0
        for piece in pieces {
            let end = start + piece.count
            if first == nil, edit.range.lowerBound < end {
                first = piece.lowerBound + edit.range.lowerBound - start
            }
            if last == nil, edit.range.upperBound <= end {
                last = piece.lowerBound + edit.range.upperBound - start
            }
            start = end
        }
        guard let first, let last else { return nil }
        return TextEdit(
            range: first..<last, replacement: edit.replacement, isWeak: edit.isWeak,
            isMade: edit.isMade)
    }
}
