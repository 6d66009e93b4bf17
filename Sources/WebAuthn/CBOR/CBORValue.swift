// A value of CBOR (RFC 8949 section 2), as authenticators write it.

/// A data item. Prints its kind only, because it may contain a credential or a key.
package indirect enum CBORValue: Sendable, Hashable {
    /// Major type 0.
    case unsigned(UInt64)
    /// Major type 1: -1 minus the number.
    case negative(UInt64)
    /// Major type 2.
    case bytes([UInt8])
    /// Major type 3, valid UTF-8.
    case text(String)
    /// Major type 4.
    case array([CBORValue])
    /// Major type 5, in the order in which it was written; no key occurs twice.
    case map([Pair])
    /// Major type 6: the number of the tag, and the tagged value.
    case tagged(UInt64, CBORValue)
    /// Major type 7 without a number: 0 to 19, or 32 to 255 (RFC 8949 section 3.3).
    case simple(UInt8)
    case bool(Bool)
    case null
    case undefined
    /// Major type 7 with a number of 16, 32 or 64 bits.
    case float(Double)

    /// A key of a map with its value.
    package struct Pair: Sendable, Hashable {
        package let key: CBORValue
        package let value: CBORValue

        package init(key: CBORValue, value: CBORValue) {
            self.key = key
            self.value = value
        }
    }

    /// The octets; nil for every other kind.
    package var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    /// The text; nil for every other kind.
    package var text: String? { if case .text(let value) = self { value } else { nil } }
    /// The elements; nil for every other kind.
    package var array: [CBORValue]? { if case .array(let value) = self { value } else { nil } }
    /// Key and value of each member; nil for every other kind.
    package var pairs: [Pair]? { if case .map(let value) = self { value } else { nil } }

    /// The integer; nil for every other kind, and if it does not fit a signed 64-bit number.
    package var integer: Int64? {
        switch self {
        case .unsigned(let value): Int64(exactly: value)
        case .negative(let value): Int64(exactly: value).map { -1 - $0 }
        default: nil
        }
    }

    /// The value of a map's member with this key; nil if there is none, and for every other kind.
    package subscript(_ key: CBORValue) -> CBORValue? { pairs?.first { $0.key == key }?.value }
    /// The same with a text key.
    package subscript(_ key: String) -> CBORValue? { self[.text(key)] }
    /// The same with an integer key.
    package subscript(_ key: Int64) -> CBORValue? { self[.integer(key)] }

    /// An integer.
    package static func integer(_ value: Int64) -> CBORValue {
        value < 0 ? .negative(UInt64(-1 - value)) : .unsigned(UInt64(value))
    }
}

extension CBORValue: CustomStringConvertible, CustomReflectable {
    /// Its kind, for people.
    package var kind: String {
        switch self {
        case .unsigned, .negative: "a whole number"
        case .bytes: "octets"
        case .text: "a text"
        case .array: "an array"
        case .map: "a map"
        case .tagged: "a tagged item"
        case .simple: "a simple value"
        case .bool: "true or false"
        case .null: "null"
        case .undefined: "undefined"
        case .float: "a number with a fraction"
        }
    }

    package var description: String { "<CBOR: \(kind)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
