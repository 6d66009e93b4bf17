// The one address in From, or the reason why there is none on which all programs agree (RFC 5322
// section 3.6.2, RFC 7489 section 6.6.1).

import Support

/// The strict reader of From, which decides who wrote a message. Refuses a field that two
/// reasonable parsers could read differently.
package enum AuthorAddress {
    /// The author's address.
    ///
    /// There must be exactly one From field with exactly one mailbox in the current syntax of RFC
    /// 5322 and RFC 6532. Three things of that syntax are refused: white space within the address
    /// (next to `<` and `>` it is accepted), domain literals, and quoted local parts with specials.
    ///
    /// Text around the address may violate that syntax if every reading finds the same address
    /// (`LooseMailbox`). The same applies to comments with specials and to encoded words that
    /// decode to addresses.
    package static func parse(header: HeaderSection) -> Result<AddrSpec, AuthorDefect> {
        var author: HeaderField?
        for field in header.fields {
            if field.isNamed("From") {
                guard author == nil else { return .failure(.multipleFrom) }
                author = field
            } else if isDisguised(field) {
                return .failure(.disguisedFrom)
            }
            if hidesFrom(field) { return .failure(.disguisedFrom) }
        }
        guard let author else { return .failure(.missingFrom) }
        // `From` with white space before the colon, or a line without a colon.
        guard author.valueStart == author.nameLength + 1 else { return .failure(.spaceBeforeColon) }
        return parse(value: author.rawValue)
    }

    /// The one address in the raw value of a From field; see `parse(header:)`.
    package static func parse(value: ArraySlice<UInt8>) -> Result<AddrSpec, AuthorDefect> {
        let mailbox = StrictMailbox(value)
        do {
            return .success(try mailbox.read())
        } catch {
            return (error.isBesideAddress ? mailbox.readLoosely() : nil).map { .success($0) }
                ?? .failure(error)
        }
    }

    /// The text before the address in the raw value of a From field; nil if there is none.
    package static func name(value: ArraySlice<UInt8>) -> String? {
        let tokens = AddressLexer.tokens(of: value).tokens
        guard let bracket = tokens.lastIndex(where: { $0.isOne(of: "<") }) else { return nil }
        var text: [UInt8] = []
        for token in tokens[..<bracket] where token.kind != .comment {
            if token.isSpaced, !text.isEmpty { text.append(0x20) }
            if token.kind == .quotedString {
                AddrSpecReader.appendUnquoted(value[token.range], to: &text)
            } else if !token.isOne(of: "\\") {
                text += value[token.range]
            }
        }
        return text.isEmpty ? nil : EncodedWord.decode(text[...])
    }

    /// Whether a program that ignores characters not allowed in field names
    /// reads the name as `From`.
    private static func isDisguised(_ field: HeaderField) -> Bool {
        // A longer name is not `From` with a stray character.
        guard field.valueStart <= 64 else { return false }
        var found = 0
        for octet in field.bytes[..<field.valueStart]
        where octet > 0x20 && octet < 0x7F && octet != UInt8(ascii: ":") {
            guard found < 4, octet.asciiLowercased == from(found) else { return false }
            found += 1
        }
        return found == 4
    }

    /// The letter of `from` at an index, 0…3.
    private static func from(_ index: Int) -> UInt8 {
        switch index {
        case 0: UInt8(ascii: "f")
        case 1: UInt8(ascii: "r")
        case 2: UInt8(ascii: "o")
        default: UInt8(ascii: "m")
        }
    }

    /// Whether `From:` follows a CR or LF in the field that is not a fold.
    private static func hidesFrom(_ field: HeaderField) -> Bool {
        field.bytes.withUnsafeBufferPointer(hidesFrom)
    }

    private static func hidesFrom(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = 0
        while true {
            index = bytes.firstLineBreak(from: index)
            guard index + 1 < bytes.count else { return false }
            let octet = bytes[index]
            index += 1
            var next = index
            // After a bare CR or LF, white space does not help: `\r From:` is a line to some
            // programs. After CRLF it is a fold.
            let isFold =
                octet == 0x0A && index >= 2 && bytes[index - 2] == 0x0D && bytes[index].isWhiteSpace
            if isFold || (octet == 0x0D && bytes[index] == 0x0A) { continue }
            while next < bytes.count, next < index + 8, bytes[next].isWhiteSpace { next += 1 }
            guard bytes[next...].prefix(4).equalsIgnoringASCIICase("from".utf8) else { continue }
            let rest = bytes[(next + 4)...].prefix(8).drop(while: \.isWhiteSpace)
            if rest.first == UInt8(ascii: ":") { return true }
        }
    }
}

/// A recogniser for one mailbox. It reads tokens, never repairs, and stops at the first error.
private struct StrictMailbox {
    private let value: ArraySlice<UInt8>
    private let tokens: [AddressLexeme]
    private let lexical: Set<AddressDefect>

    init(_ value: ArraySlice<UInt8>) {
        self.value = value
        (tokens, lexical) = AddressLexer.tokens(of: value)
    }

    func read() throws(AuthorDefect) -> AddrSpec {
        try checkOctets()
        guard tokens.contains(where: { $0.kind != .comment }) else { throw .empty }
        // `<` separates the name from the address. Without it, everything is the address.
        guard let open = tokens.firstIndex(where: { $0.kind == .special(UInt8(ascii: "<")) }) else {
            return try readBare()
        }
        try readPhrase(tokens[..<open])
        guard
            let close = tokens[open...].firstIndex(where: { $0.kind == .special(UInt8(ascii: ">")) }
            )
        else {
            throw .unterminated
        }
        try checkTail(tokens[(close + 1)...])
        let inside = tokens[(open + 1)..<close]
        if inside.first?.isAt == true,
            inside.contains(where: { $0.kind == .special(UInt8(ascii: ":")) })
        {
            throw .sourceRoute
        }
        return try readAddress(inside, isAngled: true)
    }

    /// The address of a field that is well-formed except next to the address; nil if there may be
    /// another address.
    func readLoosely() -> AddrSpec? {
        LooseMailbox(value, tokens).read { inside, isAngled in
            try? readAddress(inside, isAngled: isAngled)
        }
    }

    // MARK: Octets

    private func checkOctets() throws(AuthorDefect) {
        guard value.isValidUTF8 else { throw .notUTF8 }
        for octet in value where octet.isForbiddenControl { throw .controlCharacter }
        if lexical.contains(.bareLineBreak) { throw .bareLineBreak }
        // U+0085, U+2028, U+2029: line ends to programs that split decoded text; C1 controls.
        for scalar in String(decoding: value, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x80...0x9F, 0x2028, 0x2029: throw .controlCharacter
            default: continue
            }
        }
        let controls = HeaderControls(scanning: value)
        if !controls.isDisjoint(with: .brokenLine) { throw .bareLineBreak }
        if controls.contains(.emptyContinuation) { throw .obsoleteFold }
        if lexical.contains(.unterminatedQuote) || lexical.contains(.unterminatedComment)
            || lexical.contains(.unterminatedDomainLiteral)
        {
            throw .unterminated
        }
        for token in tokens {
            switch token.kind {
            case .comment: try checkComment(token)
            case .quotedString: try checkQuotedPairs(token)
            default: break
            }
        }
    }

    private func checkComment(_ token: AddressLexeme) throws(AuthorDefect) {
        let inner = value[token.range].dropFirst().dropLast()
        for octet in inner where "()<>@,;:\\\"[]".utf8.contains(octet) { throw .ambiguousComment }
        if EncodedWord.occurs(in: inner) { throw .ambiguousComment }
        let text = String(decoding: inner, as: UTF8.self)
        for scalar in text.unicodeScalars where Self.isSpecialForm(scalar) {
            throw .ambiguousComment
        }
    }

    /// Only quoted pairs of `"` and `\` are accepted. Others are legal, but programs read them
    /// differently.
    private func checkQuotedPairs(_ token: AddressLexeme) throws(AuthorDefect) {
        var octets = value[token.range].dropFirst().dropLast()
        while let octet = octets.popFirst() {
            guard octet == UInt8(ascii: "\\") else { continue }
            guard let next = octets.popFirst(),
                next == UInt8(ascii: "\\") || next == UInt8(ascii: "\"")
            else {
                throw .quotedPair
            }
        }
    }

    // MARK: Display name

    private func readPhrase(_ words: ArraySlice<AddressLexeme>) throws(AuthorDefect) {
        for word in words {
            switch word.kind {
            case .atom, .special(UInt8(ascii: ".")), .comment: break
            case .quotedString: break
            case .special(UInt8(ascii: "@")):
                throw words.contains(where: { $0.kind == .special(UInt8(ascii: ",")) })
                    ? .multipleMailboxes : .atInDisplayName
            case .special(UInt8(ascii: ",")):
                throw wordsBefore(word, in: words) ? .multipleMailboxes : .emptyElement
            case .special(UInt8(ascii: ":")), .special(UInt8(ascii: ";")): throw .group
            case .special, .domainLiteral: throw .strayCharacter
            }
        }
        for word in words where word.kind == .atom || word.kind == .quotedString {
            try checkEncodedWords(value[word.range])
        }
        // Adjacent encoded words may cross token boundaries, so the phrase
        // is also checked as one piece.
        if let first = words.first, let last = words.last {
            try checkEncodedWords(value[first.range.lowerBound..<last.range.upperBound])
        }
    }

    private func wordsBefore(_ word: AddressLexeme, in words: ArraySlice<AddressLexeme>) -> Bool {
        words.contains { $0.range.upperBound <= word.range.lowerBound && $0.kind != .comment }
    }

    /// Refuses encoded words that a program which decodes before it parses would read as an address
    /// or a line break.
    private func checkEncodedWords(_ text: ArraySlice<UInt8>) throws(AuthorDefect) {
        guard EncodedWord.occurs(in: text) else { return }
        var isUndecodable = false
        var decoded = ""
        EncodedWord.scan(text) { piece in
            switch piece {
            case .literal: break
            case .undecodable: isUndecodable = true
            case .word(let word):
                isUndecodable = isUndecodable || word.holdsControl
                decoded += Charset.decodeAsShown(word.bytes, word.charset) ?? ""
            }
        }
        if isUndecodable { throw .ambiguousEncodedWord }
        var hasAt = false
        var hasPunctuation = false
        for scalar in decoded.unicodeScalars {
            switch scalar.value {
            case 0x40, 0xFF20, 0xFE6B: hasAt = true
            case 0x3C, 0x3E, 0x2C, 0x3B, 0x22, 0x28, 0x29, 0x3A: hasPunctuation = true
            default: break
            }
        }
        if hasAt, hasPunctuation { throw .ambiguousEncodedWord }
    }

    // MARK: Address

    private func checkTail(_ tail: ArraySlice<AddressLexeme>) throws(AuthorDefect) {
        guard let first = tail.first(where: { $0.kind != .comment }) else { return }
        if tail.contains(where: { $0.kind == .special(UInt8(ascii: ",")) }) {
            let hasMore = tail.contains {
                $0.isWord || $0.isAt || $0.kind == .special(UInt8(ascii: "<"))
            }
            throw hasMore ? .multipleMailboxes : .emptyElement
        }
        if tail.contains(where: { $0.isAt || $0.kind == .special(UInt8(ascii: "<")) }) {
            throw .missingSeparator
        }
        switch first.kind {
        case .special(UInt8(ascii: ";")), .special(UInt8(ascii: ":")): throw .group
        case .special: throw .strayCharacter
        default: throw .strayText
        }
    }

    /// addr-spec without brackets, comments before and after it.
    private func readBare() throws(AuthorDefect) -> AddrSpec {
        for token in tokens {
            switch token.kind {
            case .special(UInt8(ascii: ",")):
                let words = tokens.split { $0.kind == .special(UInt8(ascii: ",")) }.filter {
                    $0.contains { $0.kind != .comment }
                }
                throw words.count > 1 ? .multipleMailboxes : .emptyElement
            case .special(UInt8(ascii: ":")), .special(UInt8(ascii: ";")): throw .group
            default: break
            }
        }
        var inner = tokens[...]
        while inner.first?.kind == .comment { inner.removeFirst() }
        while inner.last?.kind == .comment { inner.removeLast() }
        return try readAddress(inner, isAngled: false)
    }

    private func readAddress(
        _ inner: ArraySlice<AddressLexeme>, isAngled: Bool
    ) throws(AuthorDefect) -> AddrSpec {
        guard let first = inner.first, let last = inner.last else { throw .noAddress }
        let span = first.range.lowerBound..<last.range.upperBound
        let ats = inner.indices.filter { inner[$0].isAt }
        if EncodedWord.occurs(in: value[span]) { throw .encodedWordInAddress }
        guard let at = ats.first else {
            if inner.contains(where: { isStray($0) }) { throw .strayCharacter }
            throw .noAddress
        }
        if ats.count > 1 {
            // `a@b c@d`: two addresses, not one with two "@".
            let isTwo = inner[at..<ats[1]].contains { $0.isSpaced || $0.kind == .comment }
            throw isTwo ? .missingSeparator : .multipleAt
        }
        for token in inner where isStray(token) { throw .strayCharacter }
        let local = inner[..<at]
        let domain = inner[(at + 1)...]
        guard !local.isEmpty, !domain.isEmpty else { throw .noAddress }
        // White space is allowed only before the first token.
        for token in inner.dropFirst() where token.isSpaced || token.kind == .comment {
            throw isAngled
                ? .whiteSpaceInAddress
                : wordsAreSpaced(local, domain) ? .strayText : .whiteSpaceInAddress
        }
        if isAngled, first.kind == .comment { throw .whiteSpaceInAddress }
        return AddrSpec(localPart: try readLocalPart(local), domain: try readDomain(domain))
    }

    /// Whether two words are next to each other, as in `John a@b`.
    private func wordsAreSpaced(
        _ local: ArraySlice<AddressLexeme>, _ domain: ArraySlice<AddressLexeme>
    ) -> Bool {
        for part in [local, domain] {
            for (left, right) in zip(part, part.dropFirst()) where left.isWord && right.isWord {
                return true
            }
        }
        return false
    }

    private func isStray(_ token: AddressLexeme) -> Bool {
        if case .special = token.kind { return !token.isAt && !token.isDot }
        return false
    }

    private func readLocalPart(_ tokens: ArraySlice<AddressLexeme>) throws(AuthorDefect) -> String {
        guard let first = tokens.first, let last = tokens.last else { throw .noAddress }
        if tokens.count == 1, first.kind == .quotedString {
            var text = [UInt8]()
            AddrSpecReader.appendUnquoted(value[first.range], to: &text)
            // Specials, spaces and line breaks in quotes. A program that splits at the first "@" or
            // at white space finds another address.
            guard !text.isEmpty, text.allSatisfy({ $0.isAtomText || $0 == UInt8(ascii: ".") }),
                text.count == first.range.count - 2
            else { throw .ambiguousLocalPart }
            return try checkedLocalPart(text[...])
        }
        var wantsAtom = true
        for token in tokens {
            guard wantsAtom ? token.kind == .atom : token.isDot else { throw .malformedLocalPart }
            wantsAtom.toggle()
        }
        guard !wantsAtom else { throw .malformedLocalPart }
        return try checkedLocalPart(value[first.range.lowerBound..<last.range.upperBound])
    }

    private func checkedLocalPart(_ text: ArraySlice<UInt8>) throws(AuthorDefect) -> String {
        let string = String(decoding: text, as: UTF8.self)
        for scalar in string.unicodeScalars
        where Self.isLookAlike(scalar) || Self.isInvisible(scalar) {
            throw .ambiguousLocalPart
        }
        return string
    }

    private func readDomain(_ tokens: ArraySlice<AddressLexeme>) throws(AuthorDefect) -> String {
        guard let first = tokens.first, let last = tokens.last else { throw .noAddress }
        if first.kind == .domainLiteral { throw .domainLiteral }
        let text = String(
            decoding: value[first.range.lowerBound..<last.range.upperBound], as: UTF8.self)
        guard tokens.allSatisfy({ $0.kind == .atom || $0.isDot }), last.kind == .atom,
            let ascii = DomainName.toASCII(text)
        else {
            throw .invalidDomain
        }
        // An internationalised name must be in its normal form. If programs map it differently, its
        // owner is unclear.
        if text.utf8.contains(where: { $0 >= 0x80 }),
            DomainName.toUnicode(ascii)?.hasSameOctets(as: text) != true
        {
            throw .invalidDomain
        }
        return text
    }

    /// Full-width and small forms, which compatibility mapping converts to ASCII (`@` among them),
    /// and letters that folding converts.
    private static func isLookAlike(_ scalar: Unicode.Scalar) -> Bool { scalar.foldsToASCII }

    /// Full-width and small forms, in which `@` and brackets can be written.
    private static func isSpecialForm(_ scalar: Unicode.Scalar) -> Bool {
        (0xFF01...0xFF5E).contains(scalar.value) || (0xFE50...0xFE6F).contains(scalar.value)
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x80 else { return false }
        switch scalar.properties.generalCategory {
        case .format, .spaceSeparator, .lineSeparator, .paragraphSeparator, .control, .privateUse,
            .unassigned:
            return true
        default: return scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}
