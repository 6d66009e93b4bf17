// Resets a store on SQLite to the content of a copy while a service runs on it: for a sandbox.

import Database
import PosternSQLite

package enum StoreRewind {
    /// Replaces all rows with those of a copy that `SQLiteDatabase.backUp` made of the same store,
    /// in one transaction. Data in the memory of services stays. Throws errors of the store.
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
                        try target.run(
                            "INSERT INTO \(raw: table.name) (\(raw: columns)) VALUES \(rows: [row.values])"
                        )
                    }
                }
            }
        }
    }
}
