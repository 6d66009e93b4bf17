// Text → tokens (CEL language definition, "Syntax"). Works on UTF-8 bytes;
// positions are byte offsets.

import Support

/// A token with its position.
struct Token: Sendable {
    enum Kind: Sendable, Equatable {
        case identifier(String)
        /// Between backquotes: only after a dot.
        case quotedIdentifier(String)
        /// Digits without sign; `nil` magnitude if over 2^64.
        case int(UInt64?)
        case uint(UInt64?)
        case double(Double)
        case string(String)
        case bytes([UInt8])
        case symbol(String)
        case end
    }
    let kind: Kind
    let span: Range<Int>
}

struct Lexer {
    private let bytes: [UInt8]
    private var index = 0

    /// Splits an expression into tokens; the last one is `end`.
    static func tokens(_ text: String) throws(ExpressionFault) -> [Token] {
        var lexer = Lexer(bytes: Array(text.utf8))
        guard lexer.bytes.count <= ExpressionLimits.maximumLength else {
            throw ExpressionFault(
                "the expression is longer than \(ExpressionLimits.maximumLength) bytes", at: 0..<1)
        }
        var tokens: [Token] = []
        repeat { tokens.append(try lexer.next()) } while tokens.last?.kind != .end
        return tokens
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private func byte(_ offset: Int = 0) -> UInt8 {
        index + offset < bytes.count ? bytes[index + offset] : 0
    }

    private mutating func skipBlank() {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x09, 0x0A, 0x0C, 0x0D: index += 1
            case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "/"):
                while index < bytes.count, bytes[index] != 0x0A { index += 1 }
            default: return
            }
        }
    }

    private mutating func next() throws(ExpressionFault) -> Token {
        let before = index
        skipBlank()
        // The end's position is right after the last token.
        guard index < bytes.count else { return Token(kind: .end, span: before..<before) }
        let start = index
        let first = bytes[index]
        if let literal = try stringLiteral() { return Token(kind: literal, span: start..<index) }
        if first.isIdentifierStart {
            while byte().isIdentifierStart || byte().isASCIIDigit { index += 1 }
            return Token(
                kind: .identifier(String(decoding: bytes[start..<index], as: UTF8.self)),
                span: start..<index)
        }
        if first.isASCIIDigit || (first == UInt8(ascii: ".") && byte(1).isASCIIDigit) {
            return try number()
        }
        if first == UInt8(ascii: "`") { return try quotedIdentifier() }
        for symbol in ["&&", "||", "==", "!=", "<=", ">="]
        where bytes[index...].starts(with: symbol.utf8) {
            index += 2
            return Token(kind: .symbol(symbol), span: start..<index)
        }
        if "()[]{}.,:?+-*/%!<>".utf8.contains(first) {
            index += 1
            return Token(kind: .symbol(String(UnicodeScalar(first))), span: start..<index)
        }
        index += 1
        while index < bytes.count, bytes[index] & 0xC0 == 0x80 { index += 1 }
        let shown = String(decoding: bytes[start..<index], as: UTF8.self)
        let hint =
            [
                "=": "; equality is written ==", "&": "; and is written &&",
                "|": "; or is written ||",
            ][shown] ?? ""
        throw ExpressionFault("unexpected character '\(shown)'\(hint)", at: start..<index)
    }

    private mutating func number() throws(ExpressionFault) -> Token {
        let start = index
        if byte() == UInt8(ascii: "0"), byte(1) | 0x20 == UInt8(ascii: "x"), byte(2).hexValue != nil
        {
            index += 2
            var value: UInt64? = 0
            while let digit = byte().hexValue {
                value = value.flatMap { $0 >> 60 == 0 ? $0 << 4 | UInt64(digit) : nil }
                index += 1
            }
            return try integer(value, from: start)
        }
        while byte().isASCIIDigit { index += 1 }
        var isDouble = false
        if byte() == UInt8(ascii: "."), byte(1).isASCIIDigit {
            isDouble = true
            index += 1
            while byte().isASCIIDigit { index += 1 }
        }
        if byte() | 0x20 == UInt8(ascii: "e") {
            let signed = byte(1) == UInt8(ascii: "+") || byte(1) == UInt8(ascii: "-") ? 1 : 0
            if byte(1 + signed).isASCIIDigit {
                isDouble = true
                index += 1 + signed
                while byte().isASCIIDigit { index += 1 }
            }
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard isDouble else { return try integer(UInt64(text), from: start) }
        guard !byte().isIdentifierStart, let value = Double(text) else {
            throw ExpressionFault("malformed number", at: start..<index + 1)
        }
        guard value.isFinite else {
            throw ExpressionFault("a double beyond the largest", at: start..<index)
        }
        return Token(kind: .double(value), span: start..<index)
    }

    private mutating func integer(
        _ value: UInt64?, from start: Int
    ) throws(ExpressionFault) -> Token {
        let isUnsigned = byte() | 0x20 == UInt8(ascii: "u")
        if isUnsigned { index += 1 }
        guard !byte().isIdentifierStart, !byte().isASCIIDigit else {
            throw ExpressionFault("malformed number", at: start..<index + 1)
        }
        return Token(kind: isUnsigned ? .uint(value) : .int(value), span: start..<index)
    }

    private mutating func quotedIdentifier() throws(ExpressionFault) -> Token {
        let start = index
        index += 1
        while byte().isIdentifierStart || byte().isASCIIDigit || "./- ".utf8.contains(byte()) {
            index += 1
        }
        guard byte() == UInt8(ascii: "`"), index > start + 1 else {
            throw ExpressionFault("malformed quoted field name", at: start..<index + 1)
        }
        index += 1
        return Token(
            kind: .quotedIdentifier(String(decoding: bytes[start + 1..<index - 1], as: UTF8.self)),
            span: start..<index)
    }

    /// A string or bytes literal with its prefixes, or nil if none starts here.
    private mutating func stringLiteral() throws(ExpressionFault) -> Token.Kind? {
        var isRaw = false
        var isBytes = false
        var ahead = 0
        prefixes: while ahead < 2 {
            switch byte(ahead) | 0x20 {
            case UInt8(ascii: "r") where !isRaw: isRaw = true
            // The grammar allows br but not rb.
            case UInt8(ascii: "b") where !isBytes && !isRaw: isBytes = true
            default: break prefixes
            }
            ahead += 1
        }
        let quote = byte(ahead)
        guard quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") else { return nil }
        let start = index
        index += ahead
        let isTriple = byte(1) == quote && byte(2) == quote
        let width = isTriple ? 3 : 1
        index += width
        var content: [UInt8] = []
        while true {
            guard index < bytes.count else {
                throw ExpressionFault(
                    "the string that starts here is not closed", at: start..<start + ahead + width)
            }
            let current = bytes[index]
            if current == quote, !isTriple || (byte(1) == quote && byte(2) == quote) {
                index += width
                break
            }
            if !isTriple, current == 0x0A || current == 0x0D {
                throw ExpressionFault(
                    "the string that starts here is not closed on its line",
                    at: start..<start + ahead + width)
            }
            if current == UInt8(ascii: "\\"), !isRaw {
                try escape(into: &content, isBytes: isBytes)
            } else {
                content.append(current)
                index += 1
            }
        }
        if isBytes { return .bytes(content) }
        return .string(String(decoding: content, as: UTF8.self))
    }

    private mutating func escape(into content: inout [UInt8], isBytes: Bool) throws(ExpressionFault)
    {
        let start = index
        let letter = byte(1)
        let simple: [UInt8: UInt8] = [
            UInt8(ascii: "a"): 7, UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12,
            UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13,
            UInt8(ascii: "t"): 9, UInt8(ascii: "v"): 11,
        ]
        if let code = simple[letter] {
            content.append(code)
            index += 2
            return
        }
        if "\\?\"'`".utf8.contains(letter) {
            content.append(letter)
            index += 2
            return
        }
        var code: UInt32 = 0
        let digits: Int
        switch letter {
        case UInt8(ascii: "x"), UInt8(ascii: "X"): digits = 2
        case UInt8(ascii: "u") where !isBytes: digits = 4
        case UInt8(ascii: "U") where !isBytes: digits = 8
        case UInt8(ascii: "0")...UInt8(ascii: "3"):
            for offset in 1...3 {
                guard (48...55).contains(byte(offset)) else {
                    throw ExpressionFault("an octal escape has three digits", at: start..<start + 2)
                }
                code = code * 8 + UInt32(byte(offset) - 48)
            }
            index += 4
            append(code, to: &content, isBytes: isBytes)
            return
        default:
            throw ExpressionFault(
                "unknown escape in \(isBytes ? "bytes" : "a string")",
                at: start..<min(start + 2, bytes.count))
        }
        for offset in 0..<digits {
            guard let digit = byte(2 + offset).hexValue else {
                throw ExpressionFault(
                    "this escape takes \(digits) hexadecimal digits", at: start..<start + 2)
            }
            code = code << 4 | UInt32(digit)
        }
        index += 2 + digits
        guard isBytes || UnicodeScalar(code) != nil else {
            throw ExpressionFault("not a Unicode code point", at: start..<index)
        }
        append(code, to: &content, isBytes: isBytes)
    }

    private func append(_ code: UInt32, to content: inout [UInt8], isBytes: Bool) {
        if isBytes {
            content.append(UInt8(truncatingIfNeeded: code))
        } else if let scalar = UnicodeScalar(code) {
            content.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        }
    }
}

extension UInt8 {
    /// Whether an identifier may begin with this character: an ASCII letter or an underscore.
    package var isIdentifierStart: Bool {
        (self | 0x20 >= 97 && self | 0x20 <= 122) || self == UInt8(ascii: "_")
    }
}
