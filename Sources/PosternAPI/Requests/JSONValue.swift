// A strict reader of JSON (RFC 8259): duplicate members, lone surrogates and anything after the value are refused.

/// A JSON value. Numbers without fraction and exponent that fit are integers.
package enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// What it is, for people.
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .integer, .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// Arrays and objects inside one another; beyond it the text is refused.
    package static let depthLimit = 32

    /// Reads one value, with white space around it. Linear in the text.
    package init(parsing octets: some Collection<UInt8>) throws(JSONDefect) {
        var parser = JSONParser(octets: Array(octets))
        self = try parser.document()
    }
}

/// Why a text is no JSON that is taken. Holds no content but the names of members.
package struct JSONDefect: Error, Sendable, Hashable, CustomStringConvertible {
    /// Octets before the place.
    package let offset: Int
    package let message: String
    package var description: String { "\(message), at octet \(offset)" }
}

private struct JSONParser {
    let octets: [UInt8]
    var position = 0

    mutating func document() throws(JSONDefect) -> JSONValue {
        skipSpace()
        let value = try value(depth: 0)
        skipSpace()
        guard position == octets.count else { throw defect("something follows the value") }
        return value
    }

    private func defect(_ message: String) -> JSONDefect { JSONDefect(offset: position, message: message) }

    private var next: UInt8? { position < octets.count ? octets[position] : nil }

    private mutating func skipSpace() {
        while let octet = next, octet == 0x20 || octet == 0x09 || octet == 0x0A || octet == 0x0D { position += 1 }
    }

    private mutating func take(_ octet: UInt8) -> Bool {
        guard next == octet else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(JSONDefect) -> JSONValue {
        guard depth <= JSONValue.depthLimit else { throw defect("nested more than \(JSONValue.depthLimit) deep") }
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case .some(let octet) where octet == UInt8(ascii: "-") || (0x30...0x39).contains(octet): return try number()
        case nil: throw defect("the text ends before the value")
        default: throw defect("a JSON value is expected")
        }
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(JSONDefect) -> JSONValue {
        guard octets[position...].starts(with: word.utf8) else { throw defect("a JSON value is expected") }
        position += word.utf8.count
        return value
    }

    private mutating func array(depth: Int) throws(JSONDefect) -> JSONValue {
        position += 1
        var items: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(items) }
        while true {
            skipSpace()
            items.append(try value(depth: depth + 1))
            skipSpace()
            if take(UInt8(ascii: "]")) { return .array(items) }
            guard take(UInt8(ascii: ",")) else { throw defect("a comma or ] is expected") }
        }
    }

    private mutating func object(depth: Int) throws(JSONDefect) -> JSONValue {
        position += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw defect("the name of a member is expected") }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw defect("a colon is expected") }
            skipSpace()
            let value = try value(depth: depth + 1)
            guard members.updateValue(value, forKey: name) == nil else {
                throw defect("the member \(Self.shown(name)) stands twice")
            }
            skipSpace()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw defect("a comma or } is expected") }
        }
    }

    /// A member's name as it may be repeated to its sender.
    private static func shown(_ name: String) -> String { String(name.prefix(64)) }

    private mutating func number() throws(JSONDefect) -> JSONValue {
        let start = position
        var isInteger = true
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) {
            isInteger = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        let text = String(decoding: octets[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard text.utf8.count <= 64, let number = Double(text), number.isFinite else { throw defect("a number is out of range") }
        return .number(number)
    }

    private mutating func digits() throws(JSONDefect) {
        let start = position
        while let octet = next, (0x30...0x39).contains(octet) { position += 1 }
        guard position > start else { throw defect("a digit is expected") }
    }

    private mutating func string() throws(JSONDefect) -> String {
        position += 1
        var out: [UInt8] = []
        while true {
            guard let octet = next else { throw defect("a string is not closed") }
            switch octet {
            case UInt8(ascii: "\""):
                position += 1
                guard let text = String(validating: out, as: UTF8.self) else { throw defect("a string is no UTF-8") }
                return text
            case UInt8(ascii: "\\"):
                position += 1
                try escape(into: &out)
            case 0..<0x20: throw defect("a control character stands in a string")
            default:
                out.append(octet)
                position += 1
            }
        }
    }

    private mutating func escape(into out: inout [UInt8]) throws(JSONDefect) {
        guard let octet = next else { throw defect("a string is not closed") }
        position += 1
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): out.append(octet)
        case UInt8(ascii: "b"): out.append(0x08)
        case UInt8(ascii: "f"): out.append(0x0C)
        case UInt8(ascii: "n"): out.append(0x0A)
        case UInt8(ascii: "r"): out.append(0x0D)
        case UInt8(ascii: "t"): out.append(0x09)
        case UInt8(ascii: "u"):
            var code = try hexadecimal()
            if (0xD800..<0xDC00).contains(code) {
                guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw defect("half of a surrogate pair") }
                let low = try hexadecimal()
                guard (0xDC00..<0xE000).contains(low) else { throw defect("half of a surrogate pair") }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw defect("half of a surrogate pair") }
            out += Array(String(Character(scalar)).utf8)
        default: throw defect("an unknown escape")
        }
    }

    private mutating func hexadecimal() throws(JSONDefect) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let octet = next, let digit = Character(Unicode.Scalar(octet)).hexDigitValue, octet < 0x80 else {
                throw defect("four hexadecimal digits are expected")
            }
            code = code << 4 | UInt32(digit)
            position += 1
        }
        return code
    }
}
