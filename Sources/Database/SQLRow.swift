// Rows from a database engine, read by the names of their columns.

/// A type that a column can be read as.
package protocol SQLReadable {
    /// The value, or nil if it is of another type.
    static func read(_ value: SQLValue) -> Self?
}

/// The names of a result's columns: created once for each prepared statement, and shared by its
/// rows.
package final class SQLColumns: Sendable {
    /// In the order of the result.
    package let names: [String]
    /// The position of each name; nil if several columns have it.
    private let places: [String: Int?]

    /// The names in the order of the statement.
    package init(_ names: [String]) {
        self.names = names
        places = Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { _, _ in nil })
    }

    fileprivate func place(_ name: String) throws(StoreFailure) -> Int {
        guard let place = places[name] else {
            throw .permanent(.unexpectedData, "a result has no column \(name)")
        }
        guard let place else {
            throw .permanent(.unexpectedData, "a result has several columns \(name)")
        }
        return place
    }
}

/// One result row.
package struct SQLRow: Sendable {
    private let columns: SQLColumns
    /// All columns in the order of the result, for callers that pass rows on unchanged.
    package let values: [SQLValue]

    /// As many values as columns.
    package init(_ columns: SQLColumns, _ values: [SQLValue]) {
        (self.columns, self.values) = (columns, values)
    }

    /// A column by its name in the statement. Throws `unexpectedData` if it does not exist or has
    /// another type; an optional is nil for NULL. Errors name the column, never its value, which
    /// may be private.
    package subscript<Value: SQLReadable>(_ name: String) -> Value {
        get throws(StoreFailure) {
            guard let value = Value.read(values[try columns.place(name)]) else {
                throw .permanent(
                    .unexpectedData, "column \(name) of a result is not of type \(Value.self)")
            }
            return value
        }
    }

    /// The only column. Throws `unexpectedData` if there are several columns, or if it has another
    /// type.
    package func only<Value: SQLReadable>(
        _ type: Value.Type = Value.self
    ) throws(StoreFailure) -> Value {
        guard values.count == 1, let name = columns.names.first else {
            throw .permanent(
                .unexpectedData, "a result has \(values.count) columns in place of one")
        }
        return try self[name]
    }
}

/// Runs queries: a connection in a transaction, or a database, in which each query has its own
/// snapshot.
package protocol SQLQuerying {
    /// Runs a query, or a change with RETURNING, and returns all its rows.
    /// - Parameter text: each `?` is one argument, in order.
    func rows(_ text: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow]
}

extension SQLQuerying {
    /// All rows.
    package func rows(_ sql: SQL) throws(StoreFailure) -> [SQLRow] {
        try rows(sql.text, sql.arguments)
    }

    /// The first row, or nil. The query itself should ensure that there is only one.
    package func row(_ sql: SQL) throws(StoreFailure) -> SQLRow? { try rows(sql).first }

    /// The only column of the first row; nil if there is no row, or if the value is NULL.
    package func value<Value: SQLReadable>(
        _ sql: SQL, _ type: Value.Type = Value.self
    ) throws(StoreFailure) -> Value? {
        try row(sql)?.only(Value?.self)
    }

    /// The only column of each row.
    package func values<Value: SQLReadable>(
        _ sql: SQL, _ type: Value.Type = Value.self
    ) throws(StoreFailure) -> [Value] {
        try rows(sql).map { row throws(StoreFailure) in try row.only() }
    }
}

extension DatabaseConnection {
    /// Runs a change and returns the number of changed rows.
    @discardableResult
    package func run(_ sql: SQL) throws(StoreFailure) -> Int { try run(sql.text, sql.arguments) }

    /// Runs an insertion that returns one column, such as the identifier of the row.
    package func inserted(_ sql: SQL) throws(StoreFailure) -> Int64 {
        guard let number: Int64 = try value(sql) else {
            throw .permanent(.unexpectedData, "an insertion returned nothing")
        }
        return number
    }
}
