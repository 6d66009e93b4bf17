// The lenient reading of an address list: tokens to mailboxes and groups (RFC 5322 sections 3.4 and
// 4.4).

struct AddressListParser {
    private let value: ArraySlice<UInt8>
    private let tokens: [AddressLexeme]
    private var index = 0
    private var defects: Set<AddressDefect>
    private var addresses = [Address]()
    private var group: (name: String, members: [Mailbox])?

    init(_ value: ArraySlice<UInt8>) {
        self.value = value
        (tokens, defects) = AddressLexer.tokens(of: value)
        if value.contains(where: { $0 >= 0x80 }), !value.isValidUTF8 { defects.insert(.notUTF8) }
    }

    /// The part of the current element that was read so far.
    private struct Element {
        /// Words and specials outside `<…>`; `isSpaced` is also set if a comment precedes.
        var words = [AddressLexeme]()
        /// Contents of `<…>`.
        var angle: [AddressLexeme]?
        var comment: Range<Int>?
        var start: Int?
        var end = 0
        var isCommented = false
        /// Whether `words` contains an `@`.
        var hasAt = false

        mutating func take(_ token: AddressLexeme) {
            if start == nil { start = token.range.lowerBound }
            end = token.range.upperBound
        }
    }

    mutating func run() -> AddressList {
        var element = Element()
        // Whether an element must follow: at the start and after a comma.
        var wantsElement = true
        while index < tokens.count {
            var token = tokens[index]
            index += 1
            switch token.kind {
            case .comment:
                element.take(token)
                if element.comment == nil { element.comment = token.range }
                element.isCommented = true
            case .special(UInt8(ascii: "<")):
                if element.angle != nil {
                    defects.insert(.missingSeparator)
                    finish(&element)
                }
                element.take(token)
                readAngle(&element)
            case .special(UInt8(ascii: ",")):
                if !finish(&element), wantsElement { defects.insert(.emptyElement) }
                wantsElement = true
                continue
            case .special(UInt8(ascii: ";")) where group == nil && isWithinWord(element):
                element.take(token)
                element.words.append(token)
            case .special(UInt8(ascii: ";")):
                let isMember = finish(&element)
                if let closed = group {
                    if wantsElement, !isMember, !closed.members.isEmpty {
                        defects.insert(.emptyElement)
                    }
                    addresses.append(.group(name: closed.name, closed.members))
                    group = nil
                } else {
                    defects.insert(.semicolonSeparator)
                }
                wantsElement = false
                continue
            case .special(UInt8(ascii: ":")) where element.angle == nil && !element.hasAt:
                openGroup(&element)
                wantsElement = false
                continue
            default:
                if element.isCommented {
                    token.isSpaced = true
                    element.isCommented = false
                }
                if element.angle != nil, !splitsAfterAngle(&element, token) { continue }
                element.take(token)
                element.words.append(token)
                if token.isAt { element.hasAt = true }
            }
        }
        let hasLast = finish(&element)
        if !hasLast, wantsElement {
            defects.insert(addresses.isEmpty && group == nil ? .emptyAddress : .emptyElement)
        }
        if let open = group {
            defects.insert(.unterminatedGroup)
            addresses.append(.group(name: open.name, open.members))
        }
        return AddressList(addresses: addresses, defects: defects)
    }

    /// Whether the last semicolon is between words without white space, as in `a;b@c`. Such a
    /// semicolon does not end an element.
    private func isWithinWord(_ element: Element) -> Bool {
        guard element.angle == nil, !element.hasAt, let last = element.words.last, last.isWord,
            index < tokens.count
        else {
            return false
        }
        let (semicolon, next) = (tokens[index - 1], tokens[index])
        return !semicolon.isSpaced && !next.isSpaced && next.isWord
    }

    /// Handles a word after `<…>`. An address there begins a new element (true). Anything else is
    /// reported and skipped (false).
    private mutating func splitsAfterAngle(_ element: inout Element, _ token: AddressLexeme) -> Bool
    {
        // Reads ahead over this element. The cost is amortised, as a skipped stretch is skipped
        // only once.
        var ahead = index
        var hasAddress = token.isAt
        scan: while ahead < tokens.count {
            switch tokens[ahead].kind {
            case .special(UInt8(ascii: ",")), .special(UInt8(ascii: ";")): break scan
            case .special(UInt8(ascii: "@")), .special(UInt8(ascii: "<")):
                hasAddress = true
                break scan
            default: ahead += 1
            }
        }
        if hasAddress {
            defects.insert(.missingSeparator)
            finish(&element)
            return true
        }
        defects.insert(.trailingText)
        element.end = tokens[ahead - 1].range.upperBound
        index = ahead
        return false
    }

    private mutating func openGroup(_ element: inout Element) {
        if let open = group {
            defects.insert(.nestedGroup)
            addresses.append(.group(name: open.name, open.members))
        }
        if element.words.isEmpty { defects.insert(.strayCharacter) }
        group = (displayName(element.words) ?? "", [])
        element = Element()
    }

    /// Reads up to `>`; the `<` has been read already.
    private mutating func readAngle(_ element: inout Element) {
        var words = [AddressLexeme]()
        var isCommented = false
        defer { element.angle = words }
        while index < tokens.count {
            var token = tokens[index]
            switch token.kind {
            case .special(UInt8(ascii: ">")):
                element.take(token)
                index += 1
                return
            case .special(UInt8(ascii: "<")):
                defects.insert(.strayCharacter)
                words.removeAll()
            case .special(UInt8(ascii: ",")) where words.first?.isAt != true,
                .special(UInt8(ascii: ";")):
                defects.insert(.unterminatedAngle)
                return
            case .comment:
                if element.comment == nil { element.comment = token.range }
                isCommented = true
            case .special(UInt8(ascii: ":")) where words.first?.isAt == true:
                defects.insert(.obsoleteRoute)
                words.removeAll()
            default:
                if isCommented { token.isSpaced = true }
                isCommented = false
                words.append(token)
            }
            element.take(token)
            index += 1
        }
        defects.insert(.unterminatedAngle)
    }

    /// Converts the element to mailboxes and resets it. Returns whether there was one, even a
    /// broken one.
    @discardableResult
    private mutating func finish(_ element: inout Element) -> Bool {
        defer { element = Element() }
        guard let start = element.start else { return false }
        guard element.angle != nil || !element.words.isEmpty else { return false }
        let isAngled = element.angle != nil
        var name: String?
        if isAngled {
            inspectPhrase(element.words)
            name = displayName(element.words)
        }
        let comment = element.comment.map { commentText($0) }
        let found = AddrSpecReader.read(
            element.angle ?? element.words, in: value, isAngled: isAngled, &defects)
        if found.isEmpty {
            if isAngled { defects.insert(.emptyAddress) }
            if !isAngled, !element.hasAt { defects.insert(.phraseWithoutAddress) }
            if holdsEncodedWord(element.angle ?? element.words) {
                defects.insert(.encodedWordInAddress)
            }
        }
        for (number, spec) in found.enumerated() {
            // If one element has several addresses, only the first includes the text before it.
            let first = number == 0 ? min(start, spec.range.lowerBound) : spec.range.lowerBound
            let range = first..<(found.count == 1 ? element.end : spec.range.upperBound)
            let mailbox = Mailbox(
                displayName: name, comment: comment, addrSpec: spec.address,
                range: range, addrSpecRange: spec.range)
            if group != nil {
                group?.members.append(mailbox)
            } else {
                addresses.append(.mailbox(mailbox))
            }
        }
        return true
    }

    /// Reports characters that a display name does not allow.
    private mutating func inspectPhrase(_ words: [AddressLexeme]) {
        for word in words {
            switch word.kind {
            case .special(UInt8(ascii: ".")): defects.insert(.dotInPhrase)
            case .special(UInt8(ascii: "@")): defects.insert(.atInPhrase)
            case .special, .domainLiteral: defects.insert(.strayCharacter)
            case .quotedString:
                if EncodedWord.occurs(in: value[word.range]) {
                    defects.insert(.encodedWordInQuotes)
                }
            case .atom, .comment: break
            }
        }
    }

    private func holdsEncodedWord(_ words: [AddressLexeme]) -> Bool {
        guard let first = words.first, let last = words.last else { return false }
        return EncodedWord.occurs(in: value[first.range.lowerBound..<last.range.upperBound])
    }

    /// The words as text: unquoted, decoded, with one space for white space between them. Nil for
    /// none.
    private func displayName(_ words: [AddressLexeme]) -> String? {
        guard !words.isEmpty else { return nil }
        var text = [UInt8]()
        for (number, word) in words.enumerated() {
            if number > 0, word.isSpaced { text.append(0x20) }
            if word.kind == .quotedString {
                AddrSpecReader.appendUnquoted(value[word.range], to: &text)
            } else {
                text.append(contentsOf: value[word.range])
            }
        }
        return EncodedWord.decode(text[...])
    }

    private func commentText(_ range: Range<Int>) -> String {
        var text = [UInt8]()
        AddrSpecReader.appendUnquoted(value[range], to: &text)
        return EncodedWord.decode(text[...])
    }
}

extension AddressLexeme {
    var isAt: Bool { kind == .special(UInt8(ascii: "@")) }
    var isDot: Bool { kind == .special(UInt8(ascii: ".")) }
    var isWord: Bool { kind == .atom || kind == .quotedString }
}
