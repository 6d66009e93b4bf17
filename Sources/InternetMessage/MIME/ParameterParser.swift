// Reads `value *(";" name "=" value)` as it occurs in real mail.

/// A cursor over a structured MIME field.
struct ParameterParser {
    private let input: ArraySlice<UInt8>
    private var index: Int
    var defects = Set<ParameterDefect>()

    /// `value` is the raw or unfolded value of the field.
    init(_ value: ArraySlice<UInt8>) {
        input = value
        index = value.startIndex
        for octet in value {
            if octet >= 0x80 { defects.insert(.rawEightBit) }
            if octet.isForbiddenControl { defects.insert(.controlCharacter) }
        }
    }

    private var isAtEnd: Bool { index >= input.endIndex }

    /// Skips white space, line breaks and comments. Without recursion.
    mutating func skipCFWS() {
        while !isAtEnd {
            if input[index].isFoldingWhiteSpace {
                index += 1
            } else if input[index] == UInt8(ascii: "(") {
                skipComment()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() {
        defects.insert(.comment)
        var depth = 0
        while !isAtEnd {
            switch input[index] {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: "\\"): index += 1
            default: break
            }
            index += 1
            if depth == 0 { return }
        }
        index = input.endIndex
        defects.insert(.unterminatedComment)
    }

    /// Reads `octet` if it comes next, after white space and comments.
    mutating func take(_ octet: UInt8) -> Bool {
        skipCFWS()
        guard !isAtEnd, input[index] == octet else { return false }
        index += 1
        return true
    }

    /// Reads a token leniently: everything up to white space or one of `;/="(),`. Empty if none
    /// begins here.
    mutating func token() -> ArraySlice<UInt8> {
        skipCFWS()
        let start = index
        while !isAtEnd, !Self.endsToken(input[index]) { index += 1 }
        return input[start..<index]
    }

    private static func endsToken(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x20, 0x09, 0x0D, 0x0A, 0x3B, 0x2F, 0x3D, 0x22, 0x28, 0x29, 0x2C: true
        default: false
        }
    }

    /// Moves to the next `;` outside quotes, or to the end. Returns whether it skipped anything
    /// except CFWS.
    private mutating func skipToSemicolon() -> Bool {
        var isSkipped = false
        while true {
            skipCFWS()
            guard !isAtEnd, input[index] != UInt8(ascii: ";") else { return isSkipped }
            isSkipped = true
            if input[index] == UInt8(ascii: "\"") { _ = quotedString() } else { index += 1 }
        }
    }

    /// Reads a quoted string at the cursor, without quotes, backslashes and line breaks.
    private mutating func quotedString() -> [UInt8] {
        var output = [UInt8]()
        index += 1
        while !isAtEnd {
            let octet = input[index]
            index += 1
            switch octet {
            case UInt8(ascii: "\""): return output
            case UInt8(ascii: "\\") where !isAtEnd:
                output.append(input[index])
                index += 1
            case 0x0D, 0x0A: break
            default: output.append(octet)
            }
        }
        defects.insert(.unterminatedQuote)
        return output
    }

    /// Reads a value: a quoted string, or everything up to white space or `;`.
    private mutating func value() -> [UInt8] {
        skipCFWS()
        guard !isAtEnd else { return [] }
        if input[index] == UInt8(ascii: "\"") { return quotedString() }
        let start = index
        while !isAtEnd, input[index] != UInt8(ascii: ";"), !input[index].isFoldingWhiteSpace,
            input[index] != UInt8(ascii: "(")
        {
            if !input[index].isTokenText, input[index] < 0x80 { defects.insert(.unquotedSpecials) }
            index += 1
        }
        return Array(input[start..<index])
    }

    /// A parameter as written: the name in lower case with its asterisks.
    struct Raw {
        var name: [UInt8]
        var value: [UInt8]
    }

    /// Reads all parameters. Text before the first `;` does not belong to them.
    mutating func parameters() -> [Raw] {
        var list = [Raw]()
        skipCFWS()
        // `text/plain charset=x`: the semicolon is missing.
        if !isAtEnd, input[index] != UInt8(ascii: ";") {
            defects.insert(hasEqualsBeforeSemicolon() ? .missingSemicolon : .trailingText)
        }
        while true {
            skipCFWS()
            guard !isAtEnd else { return list }
            if input[index] == UInt8(ascii: ";") {
                index += 1
                skipCFWS()
                if !isAtEnd, input[index] == UInt8(ascii: ";") { defects.insert(.emptyParameter) }
                continue
            }
            guard list.count < MIMEParameters.maximumCount else {
                defects.insert(.tooMany)
                return list
            }
            let name = token()
            guard !name.isEmpty, take(UInt8(ascii: "=")) else {
                defects.insert(name.isEmpty ? .malformed : .trailingText)
                // A single word (`; attachment`) is skipped alone, so that `word name=value` still
                // gives its parameter.
                if name.isEmpty { _ = skipToSemicolon() }
                continue
            }
            let value = value()
            if value.isEmpty { defects.insert(.emptyValue) }
            list.append(Raw(name: name.map(\.asciiLowercased), value: value))
            skipCFWS()
            if !isAtEnd, input[index] != UInt8(ascii: ";") {
                continueWords(&list)
            }
        }
    }

    /// Called if a value is not followed by `;`, but by another parameter without its semicolon, or
    /// by more words of an unquoted value.
    private mutating func continueWords(_ list: inout [Raw]) {
        while true {
            skipCFWS()
            guard !isAtEnd, input[index] != UInt8(ascii: ";") else { return }
            let start = index
            let name = token()
            if !name.isEmpty, !isAtEnd, input[index] == UInt8(ascii: "=") {
                // An encoded word also contains "=", and is not a parameter.
                if !name.starts(with: "=?".utf8) {
                    defects.insert(.missingSemicolon)
                    index = start
                    return
                }
            }
            index = start
            var word = [UInt8]()
            if input[index] == UInt8(ascii: "\"") {
                word = quotedString()
            } else {
                word = self.value()
            }
            guard index > start else {
                index += 1
                continue
            }
            defects.insert(.unquotedSpecials)
            list[list.count - 1].value.append(0x20)
            list[list.count - 1].value.append(contentsOf: word)
        }
    }

    private func hasEqualsBeforeSemicolon() -> Bool {
        for octet in input[index...] {
            if octet == UInt8(ascii: ";") { return false }
            if octet == UInt8(ascii: "=") { return true }
        }
        return false
    }
}
