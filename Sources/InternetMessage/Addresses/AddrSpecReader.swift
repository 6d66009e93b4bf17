// Finds addr-specs in a run of tokens (RFC 5322 sections 3.4.1 and 4.4).

import Support

enum AddrSpecReader {
    struct Found {
        var address: AddrSpec
        var range: Range<Int>
    }

    /// Every addr-spec among the tokens, which contain no comments. Reports everything that the
    /// current grammar does not allow. Linear.
    ///
    /// Text that adjoins the `@` without white space is read completely or not at all. The local
    /// part of `a..b@c` is `a..b`. In `a@b@c`, `a@b..c`, `a;b@c` and `a b@c` there is no address,
    /// as each part of these could be another mailbox.
    /// - Parameter isAngled: whether the tokens are from between angle brackets, where only the
    ///   address is allowed.
    static func read(
        _ tokens: [AddressLexeme], in value: ArraySlice<UInt8>, isAngled: Bool = false,
        _ defects: inout Set<AddressDefect>
    ) -> [Found] {
        var found = [Found]()
        // Tokens below this one belong to an earlier address.
        var consumed = 0
        // Whether a word, or a part that is not an address, is next to the address.
        var hasMore = false
        while let next = tokens[consumed...].firstIndex(where: \.isAt) {
            let place = place(tokens, at: next, downTo: consumed)
            if place.first > consumed {
                tellLeftOver(tokens[consumed..<place.first], &defects)
                hasMore = true
            }
            // `john smith@b`: a word before the local part may belong to it.
            let isBehindWord = place.first > consumed && tokens[place.first - 1].isWord
            consumed = place.end
            switch isBehindWord ? .unreadable : reading(tokens, at: next, place, in: value) {
            case .empty: defects.insert(.emptyAddress)
            case .unreadable:
                defects.insert(.malformedAddrSpec)
                if tokens[place.first..<place.end].count(where: \.isAt) > 1 {
                    defects.insert(.multipleAt)
                }
            case .address(let local, let domain):
                if !found.isEmpty { defects.insert(.missingSeparator) }
                inspect(
                    local: tokens[place.first..<next], at: tokens[next],
                    domain: tokens[(next + 1)..<place.domainEnd], value,
                    &defects)
                if place.domainEnd < place.end || !isWords(tokens[place.first..<next]) {
                    defects.insert(.malformedAddrSpec)
                }
                let range =
                    tokens[place.first].range
                    .lowerBound..<tokens[place.domainEnd - 1].range.upperBound
                let address = AddrSpec(
                    localPart: String(decoding: local, as: UTF8.self),
                    domain: String(decoding: domain, as: UTF8.self))
                found.append(Found(address: address, range: range))
            }
        }
        if consumed > 0, consumed < tokens.count {
            tellLeftOver(tokens[consumed...], &defects)
            hasMore = true
        }
        return isAngled && (hasMore || found.count > 1) ? [] : found
    }

    /// The place of an address among the tokens.
    private struct Place {
        /// The first token of the local part.
        var first: Int
        /// The index after the last token of the domain.
        var domainEnd: Int
        /// The index after the last token that adjoins it.
        var end: Int
    }

    private enum Reading {
        case address(local: [UInt8], domain: [UInt8])
        /// Nothing before or after the `@`.
        case empty
        /// There is text, but not exactly one address.
        case unreadable
    }

    private static func place(_ tokens: [AddressLexeme], at: Int, downTo limit: Int) -> Place {
        var first = startOfLocalPart(tokens, before: at, downTo: limit)
        while first > limit, !tokens[first].isSpaced || tokens[first - 1].isDot { first -= 1 }
        let domainEnd = endOfDomain(tokens, after: at)
        var end = domainEnd
        while end < tokens.count, !tokens[end].isSpaced { end += 1 }
        return Place(first: first, domainEnd: domainEnd, end: end)
    }

    private static func reading(
        _ tokens: [AddressLexeme], at: Int, _ place: Place, in value: ArraySlice<UInt8>
    ) -> Reading {
        let local = tokens[place.first..<at]
        let domain = tokens[(at + 1)..<place.domainEnd]
        guard !local.isEmpty, !domain.isEmpty || place.end > place.domainEnd else { return .empty }
        let rest = tokens[place.domainEnd..<place.end]
        // A dot after the domain means the root.
        guard !domain.isEmpty, rest.isEmpty || rest.count == 1 && rest.allSatisfy(\.isDot) else {
            return .unreadable
        }
        var text = [UInt8]()
        if isWords(local) {
            for token in local {
                if token.kind == .quotedString {
                    appendUnquoted(value[token.range], to: &text)
                } else {
                    text.append(contentsOf: value[token.range])
                }
            }
        } else {
            // Dots in wrong places, as some providers allow: in quotes, it is a legal address.
            guard local.dropFirst().allSatisfy({ !$0.isSpaced }),
                local.allSatisfy({ $0.kind == .atom || $0.isDot })
            else {
                return .unreadable
            }
            for token in local { text.append(contentsOf: value[token.range]) }
        }
        var name = [UInt8]()
        for token in domain {
            // Only a domain literal can contain folds.
            if token.kind == .domainLiteral {
                name += HeaderField.unfold(value[token.range])
            } else {
                name += value[token.range]
            }
        }
        return .address(local: text, domain: name)
    }

    /// Whether the tokens are `word *("." word)`.
    private static func isWords(_ tokens: ArraySlice<AddressLexeme>) -> Bool {
        tokens.count % 2 == 1
            && tokens.enumerated().allSatisfy { offset, token in
                offset % 2 == 0 ? token.isWord : token.isDot
            }
    }

    /// Reads backwards over `word *("." word)`.
    private static func startOfLocalPart(
        _ tokens: [AddressLexeme], before at: Int, downTo limit: Int
    ) -> Int {
        var first = at
        while first > limit, tokens[first - 1].isWord {
            first -= 1
            guard first - 1 > limit, tokens[first - 1].isDot, tokens[first - 2].isWord else {
                break
            }
            first -= 1
        }
        return first
    }

    /// Reads over `atom *("." atom)` or a domain literal.
    private static func endOfDomain(_ tokens: [AddressLexeme], after at: Int) -> Int {
        var end = at + 1
        guard end < tokens.count else { return end }
        if tokens[end].kind == .domainLiteral { return end + 1 }
        guard tokens[end].kind == .atom else { return end }
        end += 1
        while end + 1 < tokens.count, tokens[end].isDot, tokens[end + 1].kind == .atom { end += 2 }
        return end
    }

    private static func tellLeftOver(
        _ tokens: ArraySlice<AddressLexeme>, _ defects: inout Set<AddressDefect>
    ) {
        for token in tokens {
            switch token.kind {
            case .special(UInt8(ascii: ".")): defects.insert(.malformedAddrSpec)
            case .special(UInt8(ascii: "@")): defects.insert(.multipleAt)
            case .special: defects.insert(.strayCharacter)
            default: defects.insert(.trailingText)
            }
        }
    }

    private static func inspect(
        local: ArraySlice<AddressLexeme>, at: AddressLexeme, domain: ArraySlice<AddressLexeme>,
        _ value: ArraySlice<UInt8>,
        _ defects: inout Set<AddressDefect>
    ) {
        let isQuoted = local.contains { $0.kind == .quotedString }
        if local.count > 1, isQuoted || local.dropFirst().contains(where: \.isSpaced) {
            defects.insert(.obsoleteLocalPart)
        }
        if local.count == 1, isQuoted { defects.insert(.quotedLocalPart) }
        if at.isSpaced || domain.contains(where: \.isSpaced) { defects.insert(.obsoleteDomain) }
        for token in local where EncodedWord.occurs(in: value[token.range]) {
            defects.insert(.encodedWordInAddress)
        }
        if let first = domain.first, let last = domain.last {
            let range = first.range.lowerBound..<last.range.upperBound
            if EncodedWord.occurs(in: value[range]) { defects.insert(.encodedWordInAddress) }
            if first.kind == .domainLiteral {
                defects.insert(.domainLiteral)
                if !AddressLiteral.isValid(value[first.range]) {
                    defects.insert(.unknownAddressLiteral)
                }
            } else {
                inspectLabels(domain, value, &defects)
            }
        }
        // `=?…?=` may span the "@", since "@" may be in an encoded word by mistake.
        if let first = local.first, let last = domain.last,
            EncodedWord.occurs(in: value[first.range.lowerBound..<last.range.upperBound])
        {
            defects.insert(.encodedWordInAddress)
        }
    }

    private static func inspectLabels(
        _ domain: ArraySlice<AddressLexeme>, _ value: ArraySlice<UInt8>,
        _ defects: inout Set<AddressDefect>
    ) {
        var length = 0
        for token in domain {
            let label = value[token.range]
            length += label.count
            guard token.kind == .atom else { continue }
            let isTooLong =
                label.count > DomainName.maximumLabelLength && label.allSatisfy { $0 < 0x80 }
            if isTooLong || label.first == UInt8(ascii: "-") || label.last == UInt8(ascii: "-") {
                defects.insert(.invalidDomain)
            }
        }
        if length > DomainName.maximumLength { defects.insert(.invalidDomain) }
    }

    /// Appends the content of a quoted string or comment, without its delimiters, folds and the
    /// backslashes of quoted pairs.
    static func appendUnquoted(_ quoted: ArraySlice<UInt8>, to output: inout [UInt8]) {
        let inner = quoted.dropFirst().dropLast()
        var index = inner.startIndex
        while index < inner.endIndex {
            let octet = inner[index]
            if octet == UInt8(ascii: "\\"), index + 1 < inner.endIndex {
                output.append(inner[index + 1])
                index += 2
                continue
            }
            if octet != 0x0D, octet != 0x0A { output.append(octet) }
            index += 1
        }
    }
}
