// Many rows with one statement: on a server each statement is a round trip.

enum BulkStatements {
    /// Rows of one statement, the largest first. Few sizes, since every connection keeps each text that it prepared.
    private static let sizes = [128, 32, 8, 1]

    /// Divides so many rows into statements.
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

    /// `(?1, ?2), (?3, ?4)…` for rows of so many columns.
    static func places(_ rows: ArraySlice<[SQLValue]>) -> String {
        var number = 0
        return rows.map { row in
            "("
                + row.map { _ in
                    number += 1
                    return "?\(number)"
                }.joined(separator: ", ") + ")"
        }.joined(separator: ", ")
    }
}

extension DatabaseConnection {
    /// Adds rows.
    /// - Parameter ending: `ON CONFLICT`, `RETURNING`.
    /// - Returns: what `ending` returns, in any order.
    @discardableResult
    func insert(_ rows: [[SQLValue]], into table: String, _ columns: String, _ ending: String = "") throws -> [SQLRow] {
        var returned: [SQLRow] = []
        for range in BulkStatements.ranges(rows.count) {
            let part = rows[range]
            let sql = "INSERT INTO \(table) (\(columns)) VALUES \(BulkStatements.places(part)) \(ending)"
            if ending.contains("RETURNING") {
                returned += try self.rows(sql, part.flatMap { $0 })
            } else {
                try run(sql, part.flatMap { $0 })
            }
        }
        return returned
    }

    /// Changes rows by a table of values, whose columns are `v.column1`, `v.column2`…
    /// - Parameter assignments: what is behind `SET`; `key` is the column that `v.column1` tells rows by.
    func update(_ rows: [[SQLValue]], of table: String, key: String, _ assignments: String) throws {
        for range in BulkStatements.ranges(rows.count) {
            let part = rows[range]
            try run(
                "UPDATE \(table) SET \(assignments) FROM (VALUES \(BulkStatements.places(part))) AS v WHERE \(table).\(key) = v.column1",
                part.flatMap { $0 })
        }
    }

    /// Runs a query for many keys.
    /// - Parameter sql: the query, given the list in parentheses that is behind `IN`.
    func rows(for keys: [SQLValue], _ sql: (_ list: String) -> String) throws -> [SQLRow] {
        try BulkStatements.ranges(keys.count).flatMap { range in
            try rows(sql("(" + (1...range.count).map { "?\($0)" }.joined(separator: ", ") + ")"), Array(keys[range]))
        }
    }

    /// Runs a change for many keys; how many rows it touched.
    /// - Parameters:
    ///   - fixed: arguments of each statement, `?1`…
    ///   - sql: the change, given the list in parentheses that stands behind `IN`.
    @discardableResult
    func run(_ fixed: [SQLValue], for keys: [SQLValue], _ sql: (_ list: String) -> String) throws -> Int {
        try BulkStatements.ranges(keys.count).reduce(0) { count, range in
            let places = (1...range.count).map { "?\($0 + fixed.count)" }.joined(separator: ", ")
            return try count + run(sql("(\(places))"), fixed + keys[range])
        }
    }

    /// Which of these marks are of names that ended once.
    func retired(_ marks: [[UInt8]]) throws -> Set<[UInt8]> {
        Set(
            try rows(for: marks.map { .blob($0) }) { "SELECT mark FROM retired_names WHERE mark IN \($0)" }.map { try $0.blob(0) }
        )
    }

    /// Writes lines of the audit.
    func audit(_ change: Change, _ lines: [(action: String, subject: String, detail: String)]) throws {
        try insert(
            lines.map { [.integer(change.now), .text(change.actor), .text($0.action), .text($0.subject), .text($0.detail)] },
            into: "audit", "at, actor, action, subject, detail")
    }
}
