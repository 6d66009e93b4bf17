// Values and rows as they cross the border between repositories and a database engine.

/// A bound argument or a column: the four types that both engines have. Booleans are integers 0 and 1.
package enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    /// 1 or 0.
    package static func bool(_ value: Bool) -> SQLValue { .integer(value ? 1 : 0) }
    /// The integer, or null.
    package static func optional(_ value: Int64?) -> SQLValue { value.map(SQLValue.integer) ?? .null }
    /// The text, or null.
    package static func optional(_ value: String?) -> SQLValue { value.map(SQLValue.text) ?? .null }
    /// The octets, or null.
    package static func optional(_ value: [UInt8]?) -> SQLValue { value.map(SQLValue.blob) ?? .null }
}
