// Every substring of a damaged address field that some program could take for an address.

/// The widest reading of an address field, used to remove or rewrite everything that
/// could be an address.
package enum AddressCandidates {
    /// Octets that are read on each side of an `@` for one candidate, several times the limit of
    /// SMTP. A longer address part is found truncated.
    package static let maximumPartLength = 512

    /// Text that could be taken for an address.
    package struct Candidate: Sendable, Hashable {
        package var addrSpec: AddrSpec
        /// Its range in the raw value, quotes and encoded words included. Indices are those of the
        /// slice.
        package var range: Range<Int>
    }

    /// All candidates, without repetition, in order of position.
    ///
    /// Reads the raw octets around each `@`: also in quotes, comments and names, and with and
    /// without quoted pairs. Also reads the value without comments and white space, the result of
    /// `AddressList`, and the text after decoding of encoded words. Full-width and small `@`
    /// (U+FF20, U+FE6B) count.
    package static func find(in value: ArraySlice<UInt8>) -> [Candidate] {
        var found = [Candidate]()
        var seen = Set<Candidate>()
        func add(_ candidate: Candidate) {
            if seen.insert(candidate).inserted { found.append(candidate) }
        }
        scan(View(value), add)
        scan(View(withoutPairs: value), add)
        scan(View(compact: value), add)
        for view in View.decoded(value) { scan(view, add) }
        for mailbox in AddressList.parse(value).mailboxes {
            add(Candidate(addrSpec: mailbox.addrSpec, range: mailbox.addrSpecRange))
        }
        return found.sorted {
            ($0.range.lowerBound, $0.range.upperBound) < ($1.range.lowerBound, $1.range.upperBound)
        }
    }

    /// All candidates; ranges are offsets in the UTF-8 form.
    package static func find(in value: String) -> [Candidate] { find(in: Array(value.utf8)[...]) }

    /// Octets derived from the value, each with its range in the raw value.
    private struct View {
        var octets = [UInt8]()
        var starts = [Int]()
        var ends = [Int]()

        mutating func append(_ octet: UInt8, _ range: Range<Int>) {
            octets.append(octet)
            starts.append(range.lowerBound)
            ends.append(range.upperBound)
        }

        init() {}

        /// The octets themselves, folds undone.
        init(_ value: ArraySlice<UInt8>) {
            for index in value.indices where value[index] != 0x0D && value[index] != 0x0A {
                append(value[index], index..<(index + 1))
            }
        }

        /// Without backslashes.
        init(withoutPairs value: ArraySlice<UInt8>) {
            guard value.contains(UInt8(ascii: "\\")) else { return }
            for index in value.indices
            where value[index] != UInt8(ascii: "\\") && !value[index].isForbiddenControl {
                append(value[index], index..<(index + 1))
            }
        }

        /// Without comments, and without white space around dots and `@`.
        init(compact value: ArraySlice<UInt8>) {
            let tokens = AddressLexer.tokens(of: value).tokens.filter { $0.kind != .comment }
            for (number, token) in tokens.enumerated() {
                if number > 0, !token.isDot, !token.isAt, !tokens[number - 1].isDot,
                    !tokens[number - 1].isAt
                {
                    append(0x20, token.range.lowerBound..<token.range.lowerBound)
                }
                for index in token.range where value[index] != 0x0D && value[index] != 0x0A {
                    append(value[index], index..<(index + 1))
                }
            }
        }

        /// Encoded words decoded: once together with their neighbours, and once each run of words
        /// alone.
        static func decoded(_ value: ArraySlice<UInt8>) -> [View] {
            guard EncodedWord.occurs(in: value) else { return [] }
            var joined = View()
            var alone = View()
            EncodedWord.scan(value) { piece in
                switch piece {
                case .literal(let range), .undecodable(let range):
                    // White space between words is dropped, as readers do.
                    let isGap = value[range].allSatisfy(\.isFoldingWhiteSpace)
                    for index in range where !isGap && value[index] != 0x0D && value[index] != 0x0A
                    {
                        joined.append(value[index], index..<(index + 1))
                    }
                    if !isGap { alone.append(0x20, range.lowerBound..<range.lowerBound) }
                case .word(let word):
                    let text = Charset.decode(word.bytes, word.charset) ?? ""
                    for octet in text.utf8 {
                        joined.append(octet, word.range)
                        alone.append(octet, word.range)
                    }
                }
            }
            return [joined, alone]
        }
    }

    /// Reads around each `@`, with bounded work for each.
    private static func scan(_ view: View, _ add: (Candidate) -> Void) {
        let octets = view.octets
        var index = 0
        while index < octets.count {
            let width = atWidth(octets, index)
            guard width > 0 else {
                index += 1
                continue
            }
            let domain = domainEnd(octets, index + width)
            if domain > index + width {
                for start in localStarts(octets, index) where start < index {
                    let local = Array(octets[start..<index])
                    let address = AddrSpec(
                        localPart: String(decoding: unquoted(local), as: UTF8.self),
                        domain: String(decoding: octets[(index + width)..<domain], as: UTF8.self))
                    let lower = view.starts[start..<domain].min() ?? view.starts[start]
                    add(
                        Candidate(
                            addrSpec: address, range: lower..<max(lower, view.ends[domain - 1])))
                }
            }
            index += width
        }
    }

    private static func atWidth(_ octets: [UInt8], _ index: Int) -> Int {
        if octets[index] == UInt8(ascii: "@") { return 1 }
        guard octets[index] == 0xEF, index + 2 < octets.count else { return 0 }
        let isWide = octets[index + 1] == 0xBC && octets[index + 2] == 0xA0
        let isSmall = octets[index + 1] == 0xB9 && octets[index + 2] == 0xAB
        return isWide || isSmall ? 3 : 0
    }

    private static func endsWideAt(_ octets: [UInt8], _ end: Int) -> Bool {
        end >= 3 && atWidth(octets, end - 3) == 3
    }

    /// The possible starts of the local part. After the last octet that is not atext, without
    /// leading dots. After the last octet that a program which makes links of text would not
    /// accept. At an opening quote.
    private static func localStarts(_ octets: [UInt8], _ at: Int) -> [Int] {
        let limit = max(0, at - maximumPartLength)
        var start = at
        while start > limit, octets[start - 1].isAtomText || octets[start - 1] == UInt8(ascii: "."),
            !endsWideAt(octets, start)
        {
            start -= 1
        }
        while start < at, octets[start] == UInt8(ascii: ".") { start += 1 }
        var plain = at
        while plain > start, isPlain(octets[plain - 1]) { plain -= 1 }
        while plain < at, octets[plain] == UInt8(ascii: ".") { plain += 1 }
        guard at > limit, octets[at - 1] == UInt8(ascii: "\"") else {
            return plain == start || plain == at ? [start] : [start, plain]
        }
        var quote = at - 2
        while quote >= limit,
            octets[quote] != UInt8(ascii: "\"")
                || (quote > limit && octets[quote - 1] == UInt8(ascii: "\\"))
        {
            quote -= 1
        }
        return quote >= limit && quote < at - 1 ? [quote] : []
    }

    private static func isPlain(_ octet: UInt8) -> Bool {
        octet >= 0x80 || octet.isASCIILetter || octet.isASCIIDigit || "._%+-".utf8.contains(octet)
    }

    private static func domainEnd(_ octets: [UInt8], _ start: Int) -> Int {
        let limit = min(octets.count, start + maximumPartLength)
        guard start < limit else { return start }
        if octets[start] == UInt8(ascii: "[") {
            return octets[start..<limit].firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? start
        }
        var end = start
        while end < limit, octets[end].isAtomText || octets[end] == UInt8(ascii: "."),
            atWidth(octets, end) == 0
        { end += 1 }
        while end > start, octets[end - 1] == UInt8(ascii: ".") { end -= 1 }
        return octets[start..<end].first == UInt8(ascii: ".") ? start : end
    }

    private static func unquoted(_ local: [UInt8]) -> [UInt8] {
        guard local.first == UInt8(ascii: "\""), local.count >= 2 else { return local }
        var text = [UInt8]()
        AddrSpecReader.appendUnquoted(local[...], to: &text)
        return text
    }
}
