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

/// One result row. Columns are read by position, in the order of the SELECT or RETURNING list.
package struct SQLRow: Sendable {
    private let values: [SQLValue]

    package init(_ values: [SQLValue]) { self.values = values }

    /// The column as it is; null beyond the last.
    package func value(_ column: Int) -> SQLValue { column < values.count ? values[column] : .null }

    /// Whether the column is NULL (or beyond the last).
    package func isNull(_ column: Int) -> Bool { column >= values.count || values[column] == .null }

    /// The column as an integer. Throws `PermanentStoreError` where it is anything else.
    package func integer(_ column: Int) throws -> Int64 {
        guard column < values.count, case .integer(let value) = values[column] else { throw mismatch(column, "integer") }
        return value
    }

    /// The column as text. Throws `PermanentStoreError` where it is anything else.
    package func text(_ column: Int) throws -> String {
        guard column < values.count, case .text(let value) = values[column] else { throw mismatch(column, "text") }
        return value
    }

    /// The column as octets. Throws `PermanentStoreError` where it is anything else.
    package func blob(_ column: Int) throws -> [UInt8] {
        guard column < values.count, case .blob(let value) = values[column] else { throw mismatch(column, "octets") }
        return value
    }

    /// The column as a truth value: 0 is false, every other integer true.
    package func bool(_ column: Int) throws -> Bool { try integer(column) != 0 }

    /// The integer, or nil for NULL.
    package func optionalInteger(_ column: Int) throws -> Int64? { isNull(column) ? nil : try integer(column) }
    /// The text, or nil for NULL.
    package func optionalText(_ column: Int) throws -> String? { isNull(column) ? nil : try text(column) }
    /// The octets, or nil for NULL.
    package func optionalBlob(_ column: Int) throws -> [UInt8]? { isNull(column) ? nil : try blob(column) }

    private func mismatch(_ column: Int, _ wanted: String) -> PermanentStoreError {
        // Says where, never what: a column may hold something private.
        PermanentStoreError(.unexpectedData, "column \(column) of a result is not \(wanted)")
    }
}
