// Finds addr-specs in a run of tokens (RFC 5322 sections 3.4.1 and 4.4).

import Support

enum AddrSpecReader {
    struct Found {
        var address: AddrSpec
        var range: Range<Int>
    }

    /// Every addr-spec among the tokens, which contain no comments; reports what the current grammar does not allow. Linear.
    static func read(_ tokens: [AddressLexeme], in value: ArraySlice<UInt8>, _ defects: inout Set<AddressDefect>) -> [Found] {
        var found = [Found]()
        // Tokens below this one belong to an earlier address.
        var consumed = 0
        var at = 0
        while let next = tokens[at...].firstIndex(where: \.isAt) {
            at = next + 1
            let first = startOfLocalPart(tokens, before: next, downTo: consumed)
            let end = endOfDomain(tokens, after: next)
            if first == next, consumed > 0, consumed == next {
                defects.insert(.multipleAt)
                consumed = end
                at = max(at, end)
                continue
            }
            if consumed > 0, first >= consumed, first < next, end > next + 1 { defects.insert(.missingSeparator) }
            if first > consumed { tellLeftOver(tokens[consumed..<first], &defects) }
            guard first < next, end > next + 1 else {
                defects.insert(.emptyAddress)
                consumed = max(end, next + 1)
                at = max(at, end)
                continue
            }
            inspect(local: tokens[first..<next], at: tokens[next], domain: tokens[(next + 1)..<end], value, &defects)
            let range = tokens[first].range.lowerBound..<tokens[end - 1].range.upperBound
            found.append(Found(address: address(tokens[first..<next], tokens[(next + 1)..<end], value), range: range))
            consumed = end
            at = max(at, end)
        }
        if consumed > 0, consumed < tokens.count { tellLeftOver(tokens[consumed...], &defects) }
        return found
    }

    /// Walks back over `word *("." word)`.
    private static func startOfLocalPart(_ tokens: [AddressLexeme], before at: Int, downTo limit: Int) -> Int {
        var first = at
        while first > limit, tokens[first - 1].isWord {
            first -= 1
            guard first - 1 > limit, tokens[first - 1].isDot, tokens[first - 2].isWord else { break }
            first -= 1
        }
        return first
    }

    /// Walks over `atom *("." atom)` or a domain literal.
    private static func endOfDomain(_ tokens: [AddressLexeme], after at: Int) -> Int {
        var end = at + 1
        guard end < tokens.count else { return end }
        if tokens[end].kind == .domainLiteral { return end + 1 }
        guard tokens[end].kind == .atom else { return end }
        end += 1
        while end + 1 < tokens.count, tokens[end].isDot, tokens[end + 1].kind == .atom { end += 2 }
        return end
    }

    private static func tellLeftOver(_ tokens: ArraySlice<AddressLexeme>, _ defects: inout Set<AddressDefect>) {
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
        local: ArraySlice<AddressLexeme>, at: AddressLexeme, domain: ArraySlice<AddressLexeme>, _ value: ArraySlice<UInt8>,
        _ defects: inout Set<AddressDefect>
    ) {
        let isQuoted = local.contains { $0.kind == .quotedString }
        if local.count > 1, isQuoted || local.dropFirst().contains(where: \.isSpaced) { defects.insert(.obsoleteLocalPart) }
        if local.count == 1, isQuoted { defects.insert(.quotedLocalPart) }
        if at.isSpaced || domain.contains(where: \.isSpaced) { defects.insert(.obsoleteDomain) }
        for token in local where EncodedWord.occurs(in: value[token.range]) { defects.insert(.encodedWordInAddress) }
        if let first = domain.first, let last = domain.last {
            let range = first.range.lowerBound..<last.range.upperBound
            if EncodedWord.occurs(in: value[range]) { defects.insert(.encodedWordInAddress) }
            if first.kind == .domainLiteral {
                defects.insert(.domainLiteral)
                if !AddressLiteral.isValid(value[first.range]) { defects.insert(.unknownAddressLiteral) }
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
        _ domain: ArraySlice<AddressLexeme>, _ value: ArraySlice<UInt8>, _ defects: inout Set<AddressDefect>
    ) {
        var length = 0
        for token in domain {
            let label = value[token.range]
            length += label.count
            guard token.kind == .atom else { continue }
            let isTooLong = label.count > DomainName.maximumLabelLength && label.allSatisfy { $0 < 0x80 }
            if isTooLong || label.first == UInt8(ascii: "-") || label.last == UInt8(ascii: "-") { defects.insert(.invalidDomain) }
        }
        if length > DomainName.maximumLength { defects.insert(.invalidDomain) }
    }

    private static func address(
        _ local: ArraySlice<AddressLexeme>, _ domain: ArraySlice<AddressLexeme>, _ value: ArraySlice<UInt8>
    ) -> AddrSpec {
        var localPart = [UInt8]()
        for token in local {
            if token.kind == .quotedString {
                appendUnquoted(value[token.range], to: &localPart)
            } else {
                localPart.append(contentsOf: value[token.range])
            }
        }
        var name = [UInt8]()
        for token in domain {
            // Only a domain literal can be folded.
            if token.kind == .domainLiteral { name += HeaderField.unfold(value[token.range]) } else { name += value[token.range] }
        }
        return AddrSpec(localPart: String(decoding: localPart, as: UTF8.self), domain: String(decoding: name, as: UTF8.self))
    }

    /// Appends what a quoted string or comment says: without its delimiters, folds and the backslashes of quoted pairs.
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
