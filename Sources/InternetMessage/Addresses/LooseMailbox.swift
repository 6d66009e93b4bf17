// Reads a From that violates the grammar, if every reading of it finds the same one address.

import Support

/// A reader of one mailbox for fields that `StrictMailbox` refuses. It takes any text outside the
/// address for a name, but only if no program could find another address there.
struct LooseMailbox {
    private let value: ArraySlice<UInt8>
    private let tokens: [AddressLexeme]

    /// - Parameter tokens: of the value. Every quoted string, comment and bracket in them must have
    ///   its end.
    init(_ value: ArraySlice<UInt8>, _ tokens: [AddressLexeme]) {
        self.value = value
        self.tokens = tokens
    }

    /// The address; nil if there may be another one, or if its own place is not certain.
    /// - Parameter address: reads the tokens of the address alone, strictly.
    func read(_ address: (ArraySlice<AddressLexeme>, _ isAngled: Bool) -> AddrSpec?) -> AddrSpec? {
        guard let author = author(address), hasHarmlessTexts, hasHarmlessWords else { return nil }
        let mailboxes = AddressList.parse(value).mailboxes
        return mailboxes.count == 1 && mailboxes[0].addrSpec == author && isOnly(author)
            ? author : nil
    }

    private func author(
        _ address: (ArraySlice<AddressLexeme>, _ isAngled: Bool) -> AddrSpec?
    ) -> AddrSpec? {
        let brackets = tokens.indices.filter { tokens[$0].isOne(of: "<>") }
        guard !brackets.isEmpty else {
            // Without brackets, only comments may be next to the address.
            var inside = tokens[...]
            while inside.first?.kind == .comment { inside.removeFirst() }
            while inside.last?.kind == .comment { inside.removeLast() }
            return address(inside, false)
        }
        guard brackets.count == 2, tokens[brackets[0]].isOne(of: "<"),
            tokens[brackets[1]].isOne(of: ">"),
            isName(tokens[..<brackets[0]]), tokens[(brackets[1] + 1)...].allSatisfy(isHarmlessAfter)
        else { return nil }
        return address(tokens[(brackets[0] + 1)..<brackets[1]], true)
    }

    /// Whether no reader takes these tokens for the beginning of a group or for an escape of the
    /// bracket.
    private func isName(_ tokens: ArraySlice<AddressLexeme>) -> Bool {
        tokens.indices.allSatisfy { index in
            let token = tokens[index]
            guard case .special(let octet) = token.kind else { return true }
            guard octet == UInt8(ascii: "\\") else { return "@,;.)]".utf8.contains(octet) }
            // `O\'Brien`: only before a mark, as some programs read `\n` as a line end.
            guard index + 1 < tokens.endIndex, case let next = tokens[index + 1], !next.isSpaced,
                next.kind == .atom
            else {
                return false
            }
            return isEscapable(value[next.range.lowerBound])
        }
    }

    private func isHarmlessAfter(_ token: AddressLexeme) -> Bool {
        guard case .special = token.kind else { return true }
        return token.isOne(of: ",;.)]")
    }

    private func isEscapable(_ octet: UInt8) -> Bool {
        octet > 0x20 && octet < 0x7F && !octet.isASCIIAlphanumeric
    }

    // MARK: Quoted strings and comments

    /// Whether only marks are in quoted pairs, and no comment contains a bracket.
    private var hasHarmlessTexts: Bool {
        tokens.allSatisfy { token in
            guard
                token.kind == .quotedString || token.kind == .comment
                    || token.kind == .domainLiteral
            else { return true }
            var octets = value[token.range].dropFirst().dropLast()
            while let octet = octets.popFirst() {
                switch octet {
                case UInt8(ascii: "\\"):
                    guard let next = octets.popFirst(), isEscapable(next) else { return false }
                case UInt8(ascii: "<"), UInt8(ascii: ">"):
                    if token.kind != .quotedString { return false }
                default: break
                }
            }
            return true
        }
    }

    /// Whether every encoded word decodes, and contains nothing that could end a line.
    private var hasHarmlessWords: Bool {
        guard EncodedWord.occurs(in: value) else { return true }
        var isHarmless = true
        EncodedWord.scan(value) { piece in
            switch piece {
            case .literal: break
            case .undecodable: isHarmless = false
            case .word(let word): if word.holdsControl { isHarmless = false }
            }
        }
        return isHarmless
    }

    // MARK: Other addresses

    /// Whether each place in which a program could find an address, decoded or not, contains this
    /// one.
    private func isOnly(_ author: AddrSpec) -> Bool {
        var places: [Int: [AddressCandidates.Candidate]] = [:]
        for candidate in AddressCandidates.find(in: value) {
            places[candidate.range.upperBound, default: []].append(candidate)
        }
        return places.values.allSatisfy { candidates in
            candidates.contains { Self.isSame($0.addrSpec, author) }
                && candidates.allSatisfy { Self.isSame($0.addrSpec, author, orEndOf: true) }
        }
    }

    private static let quotationMarks: Set<Unicode.Scalar> = [
        "'", "`", "\u{2018}", "\u{2019}", "\u{201C}", "\u{201D}", "\u{201E}", "\u{AB}", "\u{BB}",
        "\u{2039}", "\u{203A}",
    ]

    /// Whether a candidate is this address, also if it is between quotation marks that are letters
    /// in the grammar.
    /// - Parameter orEndOf: whether the candidate may lack the beginning of the local part, as when
    ///   a program makes a link of it.
    private static func isSame(
        _ candidate: AddrSpec, _ author: AddrSpec, orEndOf: Bool = false
    ) -> Bool {
        var local = Array(candidate.localPart.unicodeScalars)
        var domain = Array(candidate.domain.unicodeScalars)
        if let last = domain.last, quotationMarks.contains(last) {
            // A mark on only one side belongs to the address.
            let isBetween = local.first.map(quotationMarks.contains) ?? false
            guard isBetween || orEndOf else { return false }
            domain.removeLast()
            if isBetween { local.removeFirst() }
        }
        let whole = Array(author.localPart.unicodeScalars)
        guard orEndOf ? local.count <= whole.count : local.count == whole.count else {
            return false
        }
        return isSame(domain, Array(author.domain.unicodeScalars))
            && isSame(local, whole.suffix(local.count))
    }

    private static func isSame(
        _ one: [Unicode.Scalar], _ other: some Collection<Unicode.Scalar>
    ) -> Bool {
        String(String.UnicodeScalarView(one)).utf8.equalsIgnoringASCIICase(
            String(String.UnicodeScalarView(other)).utf8)
    }
}

extension AddressLexeme {
    /// Whether it is one of these special characters.
    func isOne(of specials: String) -> Bool {
        if case .special(let octet) = kind { specials.utf8.contains(octet) } else { false }
    }
}
