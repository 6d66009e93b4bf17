// Puts a store on SQLite back to what a copy of it holds, while a service runs on it: for a sandbox.

import Database
import PosternSQLite

package enum StoreRewind {
    /// Replaces all rows by those of a copy that `SQLiteDatabase.backUp` made of the same store, in one transaction. What
    /// services keep in memory stays. Throws what the store throws.
    /// - Parameter file: the copy.
    package static func run(_ database: SQLiteDatabase, to file: String) throws(StoreFailure) {
        let copy = try SQLiteDatabase(path: file)
        defer { try? copy.close() }
        try copy.read { source throws(StoreFailure) in
            let tables = try StoreCopy.tables(source)
            try database.write(.relaxed) { target throws(StoreFailure) in
                for table in tables.reversed() { try target.run("DELETE FROM \(raw: table.name)") }
                for table in tables {
                    let columns = table.columns.joined(separator: ", ")
                    for row in try source.rows("SELECT \(raw: columns) FROM \(raw: table.name)") {
                        try target.run("INSERT INTO \(raw: table.name) (\(raw: columns)) VALUES \(rows: [row.values])")
                    }
                }
            }
        }
    }
}
