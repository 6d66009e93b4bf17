// The values of the expression language (CEL language definition, "Values"), and the exact
// comparison of strings. It goes by code point, while Swift's `==` uses canonical equivalence.

import Support

/// A value of the expression language. `missing` is specific to Postern: an absent signal
/// (docs/POLICY-REFERENCE.md, "Missing").
package enum CELValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case string(String)
    case bytes([UInt8])
    case list([CELValue])
    case map(CELMap)
    case timestamp(CELTimestamp)
    case duration(CELDuration)
    /// The two largest cases are elsewhere in memory, so that all others are small to copy.
    indirect case ip(CELAddress)
    indirect case cidr(CELNetwork)
    case type(String)
    case missing

    /// The name of the value's type as `type(x)` shows it; `missing` for a missing value.
    package var typeName: String {
        switch self {
        case .null: "null_type"
        case .bool: "bool"
        case .int: "int"
        case .uint: "uint"
        case .double: "double"
        case .string: "string"
        case .bytes: "bytes"
        case .list: "list"
        case .map: "map"
        case .timestamp: "google.protobuf.Timestamp"
        case .duration: "google.protobuf.Duration"
        case .ip: "net.IP"
        case .cidr: "net.CIDR"
        case .type: "type"
        case .missing: "missing"
        }
    }

    /// Whether the value is `missing`.
    package var isMissing: Bool {
        if case .missing = self { true } else { false }
    }
}

/// A string that is equal to another only if both have the same code points in the same order.
package struct ExactString: Hashable, Sendable {
    /// The wrapped text.
    package let text: String

    /// Wraps `text`.
    @inlinable
    package init(_ text: String) {
        self.text = text
    }

    /// By code points, not by canonical equivalence.
    @inlinable
    package static func == (left: ExactString, right: ExactString) -> Bool {
        sameCodePoints(left.text, right.text)
    }

    /// Consistent with `==`.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        var copy = text
        copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Whether two strings have the same UTF-8 bytes.
@inlinable
package func sameCodePoints(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count && left.utf8.elementsEqual(right.utf8)
}

/// Whether `left` comes before `right` in code-point order, which is the byte order of UTF-8.
@inlinable
package func precedesByCodePoint(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
}

/// A map key: numbers that are equal across int and uint are one key.
package enum CELKey: Hashable, Sendable {
    case bool(Bool)
    case int(Int64)
    /// Only above `Int64.max`; smaller numbers are `int`.
    case uint(UInt64)
    case string(ExactString)

    /// The key of `value` in a literal; nil if the type cannot be a key (double, null, list…).
    init?(literal value: CELValue) {
        switch value {
        case .bool(let bool): self = .bool(bool)
        case .int(let int): self = .int(int)
        case .uint(let uint): self = Int64(exactly: uint).map(CELKey.int) ?? .uint(uint)
        case .string(let string): self = .string(ExactString(string))
        default: return nil
        }
    }

    /// The key for looking `value` up: as in a literal, but a double that is a whole number finds
    /// that number.
    init?(lookup value: CELValue) {
        if case .double(let double) = value {
            if let int = Int64(exactly: double) {
                self = .int(int)
            } else if let uint = UInt64(exactly: double) {
                self = .uint(uint)
            } else {
                return nil
            }
        } else {
            self.init(literal: value)
        }
    }
}

/// A map in the order in which it was written; keys are distinct.
package struct CELMap: Sendable {
    /// Values with their keys as written.
    package private(set) var entries: [(key: CELValue, value: CELValue)] = []
    private var positions: [CELKey: Int] = [:]

    /// The empty map.
    package init() {}

    /// Adds an entry. Returns false, without a change, if the key's type is not allowed or the key
    /// already exists.
    package mutating func add(_ key: CELValue, _ value: CELValue) -> Bool {
        guard let known = CELKey(literal: key), positions[known] == nil else { return false }
        positions[known] = entries.count
        entries.append((key, value))
        return true
    }

    /// The value under a key, compared across number types; nil if there is none.
    package func value(for key: CELValue) -> CELValue? {
        CELKey(lookup: key).flatMap { positions[$0] }.map { entries[$0].value }
    }

    /// The value under a field name.
    package func field(_ name: String) -> CELValue? {
        positions[.string(ExactString(name))].map { entries[$0].value }
    }
}

extension CELValue {
    /// As written in an expression; long lists and strings are cut.
    package var text: String {
        switch self {
        case .null: return "null"
        case .bool(let bool): return bool ? "true" : "false"
        case .int(let int): return String(int)
        case .uint(let uint): return "\(uint)u"
        case .double(let double):
            let text = doubleText(double)
            return text.contains { ".eNI".contains($0) } ? text : text + ".0"
        case .string(let string):
            let shown = string.unicodeScalars.prefix(80).map {
                $0.value < 0x20 || $0 == "\"" || $0 == "\\"
                    ? $0.escaped(asASCII: false) : String($0)
            }
            return "\"\(shown.joined())\(string.unicodeScalars.count > 80 ? "…" : "")\""
        case .bytes(let bytes):
            return "b\"" + bytes.prefix(40).map { "\\x" + Hex.encode([$0]) }.joined()
                + "\""
        case .list(let list):
            return "[" + list.prefix(20).map(\.shortText).joined(separator: ", ")
                + (list.count > 20 ? ", …]" : "]")
        case .map(let map):
            let shown = map.entries.prefix(20).map { "\($0.key.shortText): \($0.value.shortText)" }
            return "{" + shown.joined(separator: ", ") + (map.entries.count > 20 ? ", …}" : "}")
        case .timestamp(let time): return "timestamp(\"\(time.text)\")"
        case .duration(let duration): return "duration(\"\(duration.text)\")"
        case .ip(let address): return "ip(\"\(address)\")"
        case .cidr(let network): return "cidr(\"\(network)\")"
        case .type(let name): return name
        case .missing: return "missing"
        }
    }

    /// For values inside a collection: deeper collections are abbreviated, because shared
    /// structure could be huge.
    private var shortText: String {
        switch self {
        case .list(let list) where !list.isEmpty: "[…]"
        case .map(let map) where !map.entries.isEmpty: "{…}"
        default: text
        }
    }
}
