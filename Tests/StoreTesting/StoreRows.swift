// The whole content of an SQLite store, to check whether something changed it.

import Database

extension Database {
    /// The rows of each table as text, by the table's name.
    /// - Parameter left: tables that are left out.
    package func rows(without left: [String]) throws(StoreFailure) -> [String: String] {
        let tables: [String] = try values(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        var rows: [String: String] = [:]
        for table in tables where !left.contains(table) {
            let columns: [String] = try values("SELECT name FROM pragma_table_info(\(table))")
            let row = columns.map { "quote(\"\($0)\")" }.joined(separator: " || ' ' || ")
            let text: String? = try value(
                "SELECT group_concat(\(raw: row), char(10)) FROM \(raw: table)")
            rows[table] = text ?? ""
        }
        return rows
    }
}
