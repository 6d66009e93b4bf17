// Reads encoded words (RFC 2047, language tags by RFC 2231 section 5).

import Support

/// Decoding of `=?charset?B|Q?text?=` in unfolded header text.
package enum EncodedWord {
    /// Decodes every encoded word of an unstructured, unfolded value; the rest is read as UTF-8.
    ///
    /// White space between adjacent words is dropped, and characters split across words of one
    /// charset are joined. White space around words is not required, as many programs do not
    /// require it. Malformed words and unknown charsets stay unchanged.
    package static func decode(_ text: ArraySlice<UInt8>) -> String {
        guard text.contains(UInt8(ascii: "?")) else { return String(decoding: text, as: UTF8.self) }
        var output = ""
        var literal = [UInt8]()
        var run: (charset: String, bytes: [UInt8])?
        func flushRun(_ output: inout String) {
            guard let pending = run else { return }
            output += Charset.decodeAsShown(pending.bytes, pending.charset) ?? ""
            run = nil
        }
        func flushLiteral(_ output: inout String) {
            guard !literal.isEmpty else { return }
            // White space between two words belongs to the encoding (RFC 2047 section 6.2).
            output += String(decoding: literal, as: UTF8.self)
            literal.removeAll(keepingCapacity: true)
        }
        scan(text) { piece in
            switch piece {
            case .literal(let range), .undecodable(let range):
                literal.append(contentsOf: text[range])
            case .word(let word):
                let isAdjacent = run != nil && literal.allSatisfy(\.isFoldingWhiteSpace)
                if isAdjacent, let current = run, current.charset == word.charset {
                    literal.removeAll(keepingCapacity: true)
                    run?.bytes.append(contentsOf: word.bytes)
                } else {
                    if isAdjacent { literal.removeAll(keepingCapacity: true) }
                    flushRun(&output)
                    flushLiteral(&output)
                    run = (word.charset, word.bytes)
                }
            }
            if !literal.isEmpty, !literal.allSatisfy(\.isFoldingWhiteSpace) {
                flushRun(&output)
                flushLiteral(&output)
            }
        }
        flushRun(&output)
        flushLiteral(&output)
        return output
    }

    /// Decodes a string; see `decode(_:)` for octets.
    package static func decode(_ text: String) -> String { decode(Array(text.utf8)[...]) }

    /// Whether the octets contain text that a program could decode as an encoded word, in any
    /// charset.
    package static func occurs(in text: ArraySlice<UInt8>) -> Bool {
        guard text.contains(UInt8(ascii: "?")) else { return false }
        var isFound = false
        scan(text) { piece in
            if case .literal = piece { return }
            isFound = true
        }
        return isFound
    }

    /// A decoded word: octets in `charset`, which is known.
    struct Word {
        /// Lower-cased charset name without language.
        var charset: String
        var bytes: [UInt8]
        /// The range of the word, from `=?` to `?=`.
        var range: Range<Int>

        /// Whether some program reads a control character in it, except tab. NEL also ends a line
        /// if it is shown as a mark.
        var holdsControl: Bool {
            func holds(_ text: String?, where isFound: (UInt32) -> Bool) -> Bool {
                text.map { $0.unicodeScalars.contains { isFound($0.value) } } ?? true
            }
            return holds(Charset.decodeAsShown(bytes, charset)) { value in
                switch value {
                case 0x09: false
                case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029: true
                default: false
                }
            } || holds(Charset.decode(bytes, charset)) { $0 == 0x85 }
        }
    }

    enum Piece {
        case literal(Range<Int>)
        case word(Word)
        /// Has the form of a word, but the charset is unknown or the text does not decode.
        case undecodable(Range<Int>)
    }

    /// Longest charset (with language) that is searched for after `=?`, in octets. Beyond it the
    /// text is not an encoded word.
    static let maximumCharsetLength = 96

    /// Divides text into literals and words in order. Linear: the search for terminators only moves
    /// forward.
    static func scan(_ text: ArraySlice<UInt8>, _ body: (Piece) -> Void) {
        var index = text.startIndex
        var literalStart = index
        var openAt = MonotoneSearch(text, UInt8(ascii: "="), UInt8(ascii: "?"))
        var closeAt = MonotoneSearch(text, UInt8(ascii: "?"), UInt8(ascii: "="))
        var innerOpenAt = openAt
        // One query to iconv for each name keeps a field of ten thousand words cheap.
        var known = [String: Bool]()
        while let open = openAt.next(from: index) {
            index = open + 2
            guard let head = readHead(text, at: open + 2) else { continue }
            guard let close = closeAt.next(from: head.textStart) else { break }
            // Another "=?" inside means that this word has no end. The "=" of base64 padding before
            // "?=" does not count.
            if let inner = innerOpenAt.next(from: head.textStart), inner + 1 < close { continue }
            let encoded = text[head.textStart..<close]
            let isKnown = known[head.charset] ?? Charset.isKnown(head.charset)
            known[head.charset] = isKnown
            guard isKnown, let bytes = head.isBase64 ? decodeB(encoded) : decodeQ(encoded) else {
                if literalStart < open { body(.literal(literalStart..<open)) }
                body(.undecodable(open..<(close + 2)))
                index = close + 2
                literalStart = index
                continue
            }
            if literalStart < open { body(.literal(literalStart..<open)) }
            body(.word(Word(charset: head.charset, bytes: bytes, range: open..<(close + 2))))
            index = close + 2
            literalStart = index
        }
        if literalStart < text.endIndex { body(.literal(literalStart..<text.endIndex)) }
    }

    /// Reads `charset[*language]?B?` or `…?Q?`.
    private static func readHead(
        _ text: ArraySlice<UInt8>, at start: Int
    ) -> (charset: String, isBase64: Bool, textStart: Int)? {
        let limit = min(text.endIndex, start + maximumCharsetLength)
        guard let mark = text[start..<limit].firstIndex(of: UInt8(ascii: "?")), mark > start,
            mark + 2 < text.endIndex,
            text[mark + 2] == UInt8(ascii: "?")
        else { return nil }
        let encoding = text[mark + 1].asciiLowercased
        guard encoding == UInt8(ascii: "b") || encoding == UInt8(ascii: "q") else { return nil }
        let name = text[start..<mark].prefix { $0 != UInt8(ascii: "*") }
        guard !name.isEmpty, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return (
            String(decoding: name.map(\.asciiLowercased), as: UTF8.self),
            encoding == UInt8(ascii: "b"), mark + 3
        )
    }

    /// Q (RFC 2047 section 4.2): underscore is a space, `=XX` an octet, and any other octet means
    /// itself.
    private static func decodeQ(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var output = [UInt8]()
        output.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let octet = text[index]
            if octet == UInt8(ascii: "="), index + 2 < text.endIndex,
                let high = text[index + 1].hexValue,
                let low = text[index + 2].hexValue
            {
                output.append(high << 4 | low)
                index += 3
            } else {
                output.append(octet == UInt8(ascii: "_") ? 0x20 : octet)
                index += 1
            }
        }
        return output
    }

    /// B (RFC 2047 section 4.1): nil if there is text but none of it decodes.
    private static func decodeB(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let decoded = Base64.decode(text)
        if decoded.bytes.isEmpty,
            text.contains(where: { !$0.isWhiteSpace && $0 != UInt8(ascii: "=") })
        {
            return nil
        }
        return decoded.bytes
    }
}

/// Finds a pair of octets at or after positions that only grow. All searches together read each
/// octet once.
struct MonotoneSearch {
    private let text: ArraySlice<UInt8>
    private let first: UInt8
    private let second: UInt8
    private var found: Int
    private var isPositioned = false

    init(_ text: ArraySlice<UInt8>, _ first: UInt8, _ second: UInt8) {
        self.text = text
        self.first = first
        self.second = second
        found = text.startIndex
    }

    /// Index of the first octet of the next pair, or nil. `from` must not be below an earlier one.
    mutating func next(from: Int) -> Int? {
        if isPositioned, found >= from { return found < text.endIndex ? found : nil }
        var index = max(from, found)
        while index + 1 < text.endIndex {
            if text[index] == first, text[index + 1] == second {
                found = index
                isPositioned = true
                return index
            }
            index += 1
        }
        found = text.endIndex
        isPositioned = true
        return nil
    }
}
