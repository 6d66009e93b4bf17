// Macro strings (RFC 7208 section 7): their grammar, and their expansion with limited size.

import InternetMessage
import Support

/// A parsed macro-string.
struct SPFMacroString: Sendable, Hashable {
    /// The place of the text, which decides its allowed content.
    enum Context { case term, explanation }

    struct Expansion: Sendable, Hashable {
        /// The macro-letter in lower case.
        let letter: UInt8
        /// Whether the letter was in upper case, which requests URL escaping.
        let escapes: Bool
        /// The number of right-hand parts that are kept; nil keeps all.
        let parts: Int?
        let reverses: Bool
        /// The delimiters; never empty.
        let delimiters: [UInt8]
    }

    enum Piece: Sendable, Hashable {
        case literal([UInt8])
        case expansion(Expansion)
    }

    private(set) var pieces: [Piece] = []
    /// Whether the text ends in a macro-expand, `%%`, `%_` and `%-` included (RFC 7208
    /// section 7.1, domain-end).
    private(set) var endsInMacro = false

    /// Parses a macro-string; nil for a syntax error. An explain-string may also contain spaces.
    init?(_ text: ArraySlice<UInt8>, in context: Context) {
        var literal: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let octet = text[index]
            index += 1
            endsInMacro = false
            guard octet == UInt8(ascii: "%") else {
                guard octet > 0x20 && octet < 0x7F || octet == 0x20 && context == .explanation
                else { return nil }
                literal.append(octet)
                continue
            }
            guard index < text.endIndex else { return nil }
            let selector = text[index]
            index += 1
            endsInMacro = true
            switch selector {
            case UInt8(ascii: "%"): literal.append(UInt8(ascii: "%"))
            case UInt8(ascii: "_"): literal.append(0x20)
            case UInt8(ascii: "-"): literal += Array("%20".utf8)
            case UInt8(ascii: "{"):
                guard let end = text[index...].firstIndex(of: UInt8(ascii: "}")),
                    let expansion = Self.expansion(text[index..<end], in: context)
                else { return nil }
                if !literal.isEmpty { pieces.append(.literal(literal)) }
                literal = []
                pieces.append(.expansion(expansion))
                index = end + 1
            default: return nil
            }
        }
        if !literal.isEmpty { pieces.append(.literal(literal)) }
    }

    /// macro-letter transformers *delimiter.
    private static func expansion(_ text: ArraySlice<UInt8>, in context: Context) -> Expansion? {
        guard let first = text.first else { return nil }
        let letter = first.asciiLowercased
        guard
            "slodiphv".utf8.contains(letter)
                || context == .explanation && "crt".utf8.contains(letter)
        else { return nil }
        var rest = text.dropFirst()
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        rest = rest[digits.endIndex...]
        var parts: Int?
        if !digits.isEmpty {
            // A number above a name's label count keeps all labels, so it
            // needs no more precision than this.
            let number = digits.reduce(0) { min($0 * 10 + Int($1 - 0x30), 1000) }
            guard number > 0 else { return nil }
            parts = number
        }
        var reverses = false
        if rest.first?.asciiLowercased == UInt8(ascii: "r") {
            reverses = true
            rest = rest.dropFirst()
        }
        guard rest.allSatisfy({ ".-+,/_=".utf8.contains($0) }) else { return nil }
        return Expansion(
            letter: letter, escapes: letter != first, parts: parts, reverses: reverses,
            delimiters: rest.isEmpty ? [UInt8(ascii: ".")] : Array(rest))
    }

    /// Parses a domain-spec: a macro-string that ends in a macro-expand, or in a dot and a toplabel
    /// with an optional dot.
    static func domainSpec(_ text: ArraySlice<UInt8>) -> SPFMacroString? {
        guard let string = SPFMacroString(text, in: .term), !text.isEmpty else { return nil }
        if string.endsInMacro { return string }
        let dot = UInt8(ascii: ".")
        let name = text.last == dot ? text.dropLast() : text
        guard let before = name.lastIndex(of: dot) else { return nil }
        let label = name[(before + 1)...]
        let isAlphanumeric = { (octet: UInt8) in
            (0x30...0x39).contains(octet) || (0x61...0x7A).contains(octet.asciiLowercased)
        }
        guard let first = label.first, let last = label.last, isAlphanumeric(first),
            isAlphanumeric(last),
            label.allSatisfy({ isAlphanumeric($0) || $0 == UInt8(ascii: "-") }),
            label.contains(where: { !(0x30...0x39).contains($0) })
        else { return nil }
        return string
    }

    /// Expands into text.
    ///
    /// - Parameters:
    ///   - limit: octets after which no further piece is expanded, so that no record can cause more
    ///     than `limit` octets and one value. The pieces are expanded from the right, as text that
    ///     is too long loses its left side.
    ///   - value: returns the value of a macro-letter.
    func expand(limit: Int, value: (UInt8) -> [UInt8]) -> [UInt8] {
        var reversedParts: [[UInt8]] = []
        var length = 0
        for piece in pieces.reversed() {
            let part: [UInt8] =
                switch piece {
                case .literal(let text): text
                case .expansion(let expansion): expansion.apply(to: value(expansion.letter))
                }
            reversedParts.append(part)
            length += part.count
            if length > limit { break }
        }
        return Array(reversedParts.reversed().joined())
    }
}

extension SPFMacroString.Expansion {
    /// Splits, reverses, truncates and joins with dots; then escapes (RFC 7208 section 7.3).
    func apply(to value: [UInt8]) -> [UInt8] {
        var result = value
        // Without transformers and delimiters the value stays unchanged.
        if parts != nil || reverses || delimiters != [UInt8(ascii: ".")] {
            var split = value.split(omittingEmptySubsequences: false) { delimiters.contains($0) }
            if reverses { split.reverse() }
            if let parts { split = split.suffix(parts) }
            result = Array(split.joined(separator: [UInt8(ascii: ".")]))
        }
        guard escapes else { return result }
        return result.flatMap { octet -> [UInt8] in
            let isUnreserved =
                (0x30...0x39).contains(octet) || (0x61...0x7A).contains(octet.asciiLowercased)
                || "-._~".utf8.contains(octet)
            return isUnreserved ? [octet] : Hex.escape(octet, mark: "%")
        }
    }
}
