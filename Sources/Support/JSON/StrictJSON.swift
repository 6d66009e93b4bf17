// Reading JSON (RFC 8259) strictly, so that two readers cannot disagree: no errors are tolerated,
// and nothing is guessed.

/// A text is not accepted as JSON. The error gives the problem and its offset, and repeats none of
/// the text.
package struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problem, as in "a member name occurs twice".
    package let message: String
    /// Offset of the octet with the problem, from 0.
    package let offset: Int

    package init(message: String, offset: Int) {
        self.message = message
        self.offset = offset
    }

    package var description: String { "\(message) (at octet \(offset))" }
}

/// The strict reader. In addition to RFC 8259, it refuses a byte order mark, a member name that
/// occurs twice, U+0000 in a string, a lone surrogate, a member name or a number that is too long,
/// and nesting beyond `maximumDepth`. Linear in the input.
package struct StrictJSON {
    /// Depth of nested objects and arrays. Tokens and key sets have four at most.
    package static let maximumDepth = 16
    /// Characters; more than any clock, counter or double needs.
    package static let maximumNumberLength = 64
    /// Octets of a member name.
    package static let maximumNameLength = 1_024

    private let octets: [UInt8]
    private let replacesUnprintable: Bool
    private var position = 0

    private init(_ octets: [UInt8], replacesUnprintable: Bool) {
        self.octets = octets
        self.replacesUnprintable = replacesUnprintable
    }

    /// The single value in the octets.
    /// - Parameters:
    ///   - limit: the maximum number of octets; more are an error.
    ///   - replacingUnprintable: whether U+0000 and lone surrogates in strings become U+FFFD
    ///     instead of being refused. For requests about texts: the text may be refused, but the
    ///     request must be readable.
    package static func parse(
        _ octets: [UInt8], limit: Int, replacingUnprintable: Bool = false
    ) throws(JSONError) -> JSONValue {
        guard octets.count <= limit else {
            throw JSONError(message: "longer than \(limit) octets", offset: limit)
        }
        guard String(validating: octets, as: UTF8.self) != nil else {
            throw JSONError(message: "not valid UTF-8", offset: 0)
        }
        var reader = StrictJSON(octets, replacesUnprintable: replacingUnprintable)
        reader.skipWhitespace()
        let value = try reader.value(depth: 0)
        reader.skipWhitespace()
        guard reader.position == octets.count else { throw reader.error("text after the value") }
        return value
    }

    /// The single object in the octets.
    package static func parseObject(_ octets: [UInt8], limit: Int) throws(JSONError) -> JSONObject {
        guard case .object(let object) = try parse(octets, limit: limit) else {
            throw JSONError(message: "not an object", offset: 0)
        }
        return object
    }

    private func error(_ message: String) -> JSONError {
        JSONError(message: message, offset: position)
    }

    private var current: UInt8? { position < octets.count ? octets[position] : nil }

    private mutating func skipWhitespace() {
        while let octet = current, octet == 0x20 || octet == 0x09 || octet == 0x0A || octet == 0x0D
        { position += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard let octet = current, UInt32(octet) == character.value else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard let octet = current else { throw error("a value is missing") }
        switch octet {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < Self.maximumDepth else {
                throw error("nested deeper than \(Self.maximumDepth)")
            }
            return octet == UInt8(ascii: "{")
                ? .object(try object(depth: depth)) : .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), 0x30...0x39: return .number(try number())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: throw error("not a value")
        }
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        guard octets[position...].starts(with: word.utf8) else { throw error("not a value") }
        position += word.utf8.count
        return value
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        position += 1
        var members = [JSONObject.Member]()
        var names = Set<[UInt8]>()
        skipWhitespace()
        if take("}") { return JSONObject(members: []) }
        while true {
            skipWhitespace()
            guard current == UInt8(ascii: "\"") else { throw error("a member name is missing") }
            let name = try string()
            guard name.utf8.count <= Self.maximumNameLength else {
                throw error("a member name of over \(Self.maximumNameLength) octets")
            }
            guard names.insert(Array(name.utf8)).inserted else {
                throw error("a member name occurs twice")
            }
            skipWhitespace()
            guard take(":") else { throw error("a colon is missing") }
            skipWhitespace()
            members.append(JSONObject.Member(name: name, value: try value(depth: depth + 1)))
            skipWhitespace()
            if take("}") { return JSONObject(members: members) }
            guard take(",") else { throw error("a comma is missing") }
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        position += 1
        var elements = [JSONValue]()
        skipWhitespace()
        if take("]") { return [] }
        while true {
            skipWhitespace()
            elements.append(try value(depth: depth + 1))
            skipWhitespace()
            if take("]") { return elements }
            guard take(",") else { throw error("a comma is missing") }
        }
    }

    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = position
        _ = take("-")
        if take("0") {
            if let octet = current, octet.isASCIIDigit { throw error("a number begins with zero") }
        } else {
            try digits()
        }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        guard position - start <= Self.maximumNumberLength else {
            throw error("a number of over \(Self.maximumNumberLength) characters")
        }
        return JSONNumber(checked: String(decoding: octets[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        let start = position
        while let octet = current, octet.isASCIIDigit { position += 1 }
        guard position > start else { throw error("a digit is missing") }
    }

    /// A string; the octets are known to be UTF-8.
    private mutating func string() throws(JSONError) -> String {
        position += 1
        var text = [UInt8]()
        while let octet = current {
            position += 1
            switch octet {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20:
                position -= 1
                throw error("a control character in a string")
            default: text.append(octet)
            }
        }
        throw error("an unterminated string")
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
        guard let octet = current else { throw error("an unterminated string") }
        position += 1
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(octet)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            text.append(contentsOf: Array(String(Character(try escapedScalar())).utf8))
        default: throw error("an unknown escape")
        }
    }

    private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
        let first = try codeUnit()
        guard first != 0 else { return try replacement("U+0000 in a string") }
        if let scalar = Unicode.Scalar(first) { return scalar }
        // A surrogate: the first half must be followed by the escape of a second one.
        let end = position
        guard first < 0xDC00, take("\\"), take("u"), case let second = try codeUnit(),
            (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        else {
            position = end
            return try replacement("a lone surrogate")
        }
        return scalar
    }

    private func replacement(_ message: String) throws(JSONError) -> Unicode.Scalar {
        guard replacesUnprintable else { throw error(message) }
        return "\u{FFFD}"
    }

    private mutating func codeUnit() throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = current?.hexValue else {
                throw error("not four hexadecimal digits")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }
}
