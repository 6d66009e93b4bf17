// Divides an address field into the tokens of RFC 5322 section 3.2, in one pass.

/// A token with its place in the raw value.
struct AddressLexeme {
    enum Kind: Equatable {
        /// A run of atext, and of octets that no rule allows (controls), which are reported.
        case atom
        /// `"…"`, quotes included in the range.
        case quotedString
        /// `[…]`, brackets included in the range.
        case domainLiteral
        /// `(…)`, nested ones included.
        case comment
        /// One of `<>@,;:.)]\`, or an unterminated `"`, `(` or `[`.
        case special(UInt8)
    }

    var kind: Kind
    var range: Range<Int>
    /// Whether white space is before the token.
    var isSpaced: Bool
}

/// The tokens of a value and its defects.
struct AddressLexer {
    private let input: UnsafeBufferPointer<UInt8>
    private let base: Int
    private var index = 0
    private(set) var defects = Set<AddressDefect>()
    // If one of these has no end, the rest of the value has no end for it either. From then on the
    // opening character is an ordinary one, so each search for an end fails at most once.
    private var quoteIsOrdinary = false
    private var commentIsOrdinary = false
    private var bracketIsOrdinary = false

    private init(_ input: UnsafeBufferPointer<UInt8>, base: Int) {
        self.input = input
        self.base = base
    }

    /// Divides `value` into tokens; ranges are indices of the slice. Linear.
    static func tokens(
        of value: ArraySlice<UInt8>
    ) -> (tokens: [AddressLexeme], defects: Set<AddressDefect>) {
        value.withUnsafeBufferPointer { buffer in
            var lexer = AddressLexer(buffer, base: value.startIndex)
            let tokens = lexer.run()
            return (tokens, lexer.defects)
        }
    }

    private mutating func run() -> [AddressLexeme] {
        var tokens = [AddressLexeme]()
        tokens.reserveCapacity(input.count / 6 + 4)
        while true {
            let isSpaced = skipWhiteSpace()
            guard index < input.count else { break }
            let start = index
            let kind = next()
            tokens.append(
                AddressLexeme(
                    kind: kind, range: (base + start)..<(base + index), isSpaced: isSpaced))
        }
        return tokens
    }

    private mutating func next() -> AddressLexeme.Kind {
        let octet = input[index]
        switch octet {
        case UInt8(ascii: "\"") where !quoteIsOrdinary:
            if let end = endOfQuotedString() {
                index = end
                return .quotedString
            }
            quoteIsOrdinary = true
            defects.insert(.unterminatedQuote)
        case UInt8(ascii: "(") where !commentIsOrdinary:
            if let end = endOfComment() {
                index = end
                defects.insert(.comment)
                return .comment
            }
            commentIsOrdinary = true
            defects.insert(.unterminatedComment)
        case UInt8(ascii: "[") where !bracketIsOrdinary:
            if let end = endOfDomainLiteral() {
                index = end
                return .domainLiteral
            }
            bracketIsOrdinary = true
            defects.insert(.unterminatedDomainLiteral)
        default:
            if isAtom(octet) {
                repeat { index += 1 } while index < input.count && isAtom(input[index])
                return .atom
            }
        }
        index += 1
        return .special(octet)
    }

    /// Whether the octet becomes part of an atom. One that is not allowed there is reported.
    private mutating func isAtom(_ octet: UInt8) -> Bool {
        if octet.isAtomText { return true }
        guard octet.isForbiddenControl else { return false }
        defects.insert(octet == 0 ? .nul : .controlCharacter)
        return true
    }

    /// Skips spaces, tabs and folds, and reports line breaks that are not folds.
    private mutating func skipWhiteSpace() -> Bool {
        let start = index
        // Whether the current line, which a fold began, contains only white space so far.
        var isBlankContinuation = false
        while index < input.count, input[index].isFoldingWhiteSpace {
            let width = lineBreak(at: index)
            if width > 0 {
                if isBlankContinuation { defects.insert(.obsoleteFold) }
                isBlankContinuation = true
                index += width
            } else {
                index += 1
            }
        }
        // A fold at the very end is not reported. Its continuation is blank, but RFC 5322 allows it
        // there as CFWS.
        return index > start
    }

    /// The width of the line break at `position`, 0 for white space; reports a line
    /// break that is not a fold.
    private mutating func lineBreak(at position: Int) -> Int {
        guard input[position] == 0x0D || input[position] == 0x0A else { return 0 }
        let isPair =
            input[position] == 0x0D && position + 1 < input.count && input[position + 1] == 0x0A
        let width = isPair ? 2 : 1
        let isFolded = position + width < input.count && input[position + width].isWhiteSpace
        if !isPair || !isFolded { defects.insert(.bareLineBreak) }
        return width
    }

    /// Reads one octet inside quotes or a comment, and returns the number of octets to skip.
    private mutating func inner(at position: Int) -> Int {
        let octet = input[position]
        switch octet {
        case 0:
            defects.insert(.nul)
        case 0x0D, 0x0A:
            return lineBreak(at: position)
        case UInt8(ascii: "\\") where position + 1 < input.count:
            let next = input[position + 1]
            // obs-qp allows NUL, CR and LF too, but today's programs disagree about their meaning.
            if next == 0 { defects.insert(.nul) }
            if next == 0x0D || next == 0x0A { defects.insert(.bareLineBreak) }
            if next.isControl, next != 0x09 { defects.insert(.obsoleteText) }
            return 2
        default:
            if octet.isForbiddenControl { defects.insert(.obsoleteText) }
        }
        return 1
    }

    private mutating func endOfQuotedString() -> Int? {
        var position = index + 1
        while position < input.count {
            if input[position] == UInt8(ascii: "\"") { return position + 1 }
            position += inner(at: position)
        }
        return nil
    }

    private mutating func endOfComment() -> Int? {
        var position = index + 1
        var depth = 1
        while position < input.count {
            switch input[position] {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                if depth == 0 { return position + 1 }
            default: break
            }
            position += inner(at: position)
        }
        return nil
    }

    private mutating func endOfDomainLiteral() -> Int? {
        var position = index + 1
        while position < input.count {
            switch input[position] {
            case UInt8(ascii: "]"): return position + 1
            case UInt8(ascii: "["): defects.insert(.malformedAddrSpec)
            case UInt8(ascii: "\\"): defects.insert(.obsoleteDomainLiteral)
            default: break
            }
            position += inner(at: position)
        }
        return nil
    }
}
