// Many rows with one statement, because on a server each statement is a round trip.

/// The numbers of rows and keys in statements.
package enum BulkStatements {
    /// The possible numbers of rows in a statement, the largest first. They are few, because every
    /// connection keeps each text that it prepared.
    private static let sizes = [largest, 32, 8, 1]
    /// With this many rows, or a multiple, every statement has the largest size.
    package static let largest = 128

    /// Divides `count` rows among statements.
    static func ranges(_ count: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        for size in sizes {
            while count - start >= size {
                ranges.append(start..<(start + size))
                start += size
            }
        }
        return ranges
    }

    /// Divides keys into lists of the largest size. The last list repeats its last key, which does
    /// not change the result.
    static func lists<Key>(_ keys: [Key]) -> [[Key]] {
        stride(from: 0, to: keys.count, by: largest).map { start in
            let part = keys[start..<min(start + largest, keys.count)]
            let size = sizes.last { $0 >= part.count } ?? largest
            return part + Array(repeating: part[part.endIndex - 1], count: size - part.count)
        }
    }
}

extension SQLQuerying {
    /// Runs a query for many keys.
    /// - Parameter sql: makes the query from the list in parentheses that follows `IN`.
    package func rows<Key: SQLBindable>(
        for keys: [Key], _ sql: (_ list: SQL) -> SQL
    ) throws(StoreFailure) -> [SQLRow] {
        var all: [SQLRow] = []
        for list in BulkStatements.lists(keys) { all += try rows(sql("\(list: list)")) }
        return all
    }

    /// As `rows`, for queries with one column.
    package func values<Key: SQLBindable, Value: SQLReadable>(
        for keys: [Key], _ sql: (_ list: SQL) -> SQL
    ) throws(StoreFailure) -> [Value] {
        try rows(for: keys, sql).map { row throws(StoreFailure) in try row.only() }
    }
}

extension DatabaseConnection {
    /// Adds rows.
    /// - Parameters:
    ///   - table: its name and columns, as after `INSERT INTO`.
    ///   - ending: for example `ON CONFLICT` or `RETURNING`.
    /// - Returns: the rows of `RETURNING`, in any order.
    @discardableResult
    package func insert(
        _ rows: [[any SQLBindable]], into table: String, _ ending: SQL = ""
    ) throws(StoreFailure) -> [SQLRow] {
        let rows = rows.map { $0.map(\.sqlValue) }
        var returned: [SQLRow] = []
        for range in BulkStatements.ranges(rows.count) {
            let sql: SQL = "INSERT INTO \(raw: table) VALUES \(rows: rows[range]) \(ending)"
            if ending.text.contains("RETURNING") {
                returned += try self.rows(sql)
            } else {
                try run(sql)
            }
        }
        return returned
    }

    /// Changes rows with a table of values, whose columns are `v.column1`, `v.column2`…
    /// - Parameter assignments: the assignments after `SET`; `key` is the column that is compared
    ///   with `v.column1`.
    package func update(
        _ rows: [[any SQLBindable]], of table: String, key: String, _ assignments: SQL
    ) throws(StoreFailure) {
        let rows = rows.map { $0.map(\.sqlValue) }
        for range in BulkStatements.ranges(rows.count) {
            try run(
                """
                UPDATE \(raw: table) SET \(assignments) FROM (VALUES \(rows: rows[range])) AS v
                WHERE \(raw: table).\(raw: key) = v.column1
                """)
        }
    }

    /// Runs a change for many keys. Returns the number of changed rows.
    /// - Parameter sql: makes the change from the list in parentheses that follows `IN`.
    @discardableResult
    package func run<Key: SQLBindable>(
        for keys: [Key], _ sql: (_ list: SQL) -> SQL
    ) throws(StoreFailure) -> Int {
        var count = 0
        for list in BulkStatements.lists(keys) { count += try run(sql("\(list: list)")) }
        return count
    }
}
