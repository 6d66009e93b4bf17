// JSON bodies as values; read by the strict reader of Identity, which refuses what two readers could take differently.

import Identity

/// A JSON value. Numbers that are whole and fit are integers, however they are written.
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

    /// Reads one value: duplicate members, lone surrogates and anything after it are refused. Linear in the text.
    package init(parsing octets: some Collection<UInt8>) throws(JSONError) {
        let octets = octets as? [UInt8] ?? Array(octets)
        self.init(try StrictJSON.parse(octets, limit: octets.count))
    }

    private init(_ value: Identity.JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .number(let number): self = number.integer.map { .integer($0) } ?? .number(Double(number.text) ?? .nan)
        case .string(let text): self = .string(text)
        case .array(let items): self = .array(items.map { JSONValue($0) })
        case .object(let object):
            self = .object(Dictionary(object.members.map { ($0.name, JSONValue($0.value)) }, uniquingKeysWith: { first, _ in first }))
        }
    }
}
