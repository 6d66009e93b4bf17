// Statements in code: text with interpolated values, which become parameters.

/// A type that can be an argument of a statement.
package protocol SQLBindable {
    /// The value in the store's form.
    var sqlValue: SQLValue { get }
}

/// A type whose values are in columns. An enumeration conforms to it, and the store keeps its raw
/// values.
package typealias SQLCodable = SQLBindable & SQLReadable

/// A statement, or a part of one, with its arguments.
///
///     "SELECT id FROM apps WHERE client_id = \(clientID) AND group_id IN \(list: groups)"
///
/// `\(value)` binds a value, `\(part)` inserts another `SQL` with its arguments, `\(list: values)`
/// is `(?, ?)`, and `\(raw: name)` inserts the text itself: a constant, never data. The same place
/// in the code always gives the same text, so that an engine prepares it once. A value that occurs
/// twice is two parameters.
///
/// Each `?` of the text is one argument, in order. No literal in a statement contains `?`.
package struct SQL: ExpressibleByStringInterpolation, Sendable {
    /// The text, with `?` in place of each argument.
    package let text: String
    /// The values of the `?`, in order.
    package let arguments: [SQLValue]

    /// A text and the values of its `?`.
    package init(_ text: String, _ arguments: [SQLValue]) {
        (self.text, self.arguments) = (text, arguments)
    }

    package init(stringLiteral text: String) {
        assert(!text.contains("?"), "interpolate the value: \(text)")
        self.init(text, [])
    }

    package init(stringInterpolation parts: StringInterpolation) {
        self.init(parts.text, parts.arguments)
    }

    /// All of these conditions, joined by `AND`; always true if the list is empty.
    package static func all(_ conditions: [SQL]) -> SQL {
        guard let first = conditions.first else { return "1 = 1" }
        return conditions.dropFirst().reduce(first) { "\($0) AND \($1)" }
    }

    /// Collects text and arguments.
    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""
        fileprivate var arguments: [SQLValue] = []

        package init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + interpolationCount)
            arguments.reserveCapacity(interpolationCount)
        }

        package mutating func appendLiteral(_ literal: String) {
            assert(!literal.contains("?"), "interpolate the value: \(literal)")
            text += literal
        }

        /// Binds a value.
        package mutating func appendInterpolation(_ value: some SQLBindable) {
            text += "?"
            arguments.append(value.sqlValue)
        }

        /// Binds a value, or NULL. A separate method, because the compiler warns about optionals
        /// that become text.
        package mutating func appendInterpolation(_ value: (some SQLBindable)?) {
            text += "?"
            arguments.append(value.sqlValue)
        }

        /// Inserts a part of a statement with its arguments.
        package mutating func appendInterpolation(_ part: SQL) {
            text += part.text
            arguments += part.arguments
        }

        /// Inserts text: the name of a table or column that is a constant.
        package mutating func appendInterpolation(raw: String) { text += raw }

        /// Binds values in parentheses, as after `IN` and `VALUES`. Each number of values is a
        /// separate text to prepare: for many values see `BulkStatements`.
        package mutating func appendInterpolation(list: [some SQLBindable]) {
            append(list: list.lazy.map(\.sqlValue))
        }

        /// Binds values of several types in parentheses.
        package mutating func appendInterpolation(list: [any SQLBindable]) {
            append(list: list.lazy.map(\.sqlValue))
        }

        /// Binds values with commas between them, as after `SELECT`.
        package mutating func appendInterpolation(each values: [any SQLBindable]) {
            append(values.lazy.map(\.sqlValue))
        }

        /// Binds rows of equal length, as after `VALUES`: `(?, ?), (?, ?)`.
        package mutating func appendInterpolation(rows: some Collection<[SQLValue]>) {
            let places =
                "(?" + String(repeating: ", ?", count: max(1, rows.first?.count ?? 1) - 1) + ")"
            text += repeatElement(places, count: rows.count).joined(separator: ", ")
            for row in rows { arguments += row }
        }

        private mutating func append(list: some Collection<SQLValue>) {
            text += "("
            append(list)
            text += ")"
        }

        private mutating func append(_ values: some Collection<SQLValue>) {
            if !values.isEmpty { text += "?" + String(repeating: ", ?", count: values.count - 1) }
            arguments += values
        }
    }
}

extension SQLValue: SQLBindable {
    package var sqlValue: SQLValue { self }
}

extension Int64: SQLCodable {
    package var sqlValue: SQLValue { .integer(self) }
    package static func read(_ value: SQLValue) -> Int64? {
        if case .integer(let integer) = value { integer } else { nil }
    }
}

extension Int: SQLCodable {
    package var sqlValue: SQLValue { .integer(Int64(self)) }
    package static func read(_ value: SQLValue) -> Int? {
        Int64.read(value).flatMap(Int.init(exactly:))
    }
}

/// 0 is false, every other integer true.
extension Bool: SQLCodable {
    package var sqlValue: SQLValue { .integer(self ? 1 : 0) }
    package static func read(_ value: SQLValue) -> Bool? { Int64.read(value).map { $0 != 0 } }
}

extension String: SQLCodable {
    package var sqlValue: SQLValue { .text(self) }
    package static func read(_ value: SQLValue) -> String? {
        if case .text(let text) = value { text } else { nil }
    }
}

/// Octets.
extension [UInt8]: SQLCodable {
    package var sqlValue: SQLValue { .blob(self) }
    package static func read(_ value: SQLValue) -> [UInt8]? {
        if case .blob(let octets) = value { octets } else { nil }
    }
}

/// Nil is NULL.
extension Optional: SQLBindable where Wrapped: SQLBindable {
    package var sqlValue: SQLValue { self?.sqlValue ?? .null }
}

extension Optional: SQLReadable where Wrapped: SQLReadable {
    package static func read(_ value: SQLValue) -> Wrapped?? {
        if case .null = value { .some(nil) } else { Wrapped.read(value).map(Optional.some) }
    }
}

extension SQLBindable where Self: RawRepresentable, RawValue: SQLBindable {
    package var sqlValue: SQLValue { rawValue.sqlValue }
}

extension SQLReadable where Self: RawRepresentable, RawValue: SQLReadable {
    package static func read(_ value: SQLValue) -> Self? {
        RawValue.read(value).flatMap(Self.init(rawValue:))
    }
}
