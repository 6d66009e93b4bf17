// Copies from a SQLite file to PostgreSQL, row by row, with all numbers unchanged.

import Accounts
import Database
import PosternPostgres
import PosternSQLite

/// Copies a store to another engine: one consistent state of the source, in one transaction of the
/// target. So it is copied as a whole or not at all.
package struct StoreCopy {
    /// Rows in one statement. PostgreSQL accepts 65,535 arguments.
    private static let batch = 200

    /// A table and the number of rows that were copied.
    package struct Count: Sendable, Hashable {
        package let table: String
        package let rows: Int
    }

    /// The error in the URL of a target; nil if there is none.
    package static func complaint(about url: String) -> String? {
        PostgresDatabase.complaint(about: url)
    }

    /// Copies a store on SQLite to the server of this URL, and closes the connection. Refused if
    /// the store is not on SQLite. Throws as `run` does.
    package static func copy(
        _ store: Store, to url: String, now: Int64, progress: (_ done: Int, _ total: Int) -> Void
    ) throws(StoreFailure) -> [Count] {
        guard let source = store.database as? SQLiteDatabase else {
            throw .refused(
                .unmet, "the database is on PostgreSQL already: copy it with pg_dump and pg_restore"
            )
        }
        var settings = PostgresDatabase.Settings()
        settings.statementMilliseconds = 600_000
        let target = try PostgresDatabase(url: url, settings: settings)
        defer { try? target.close() }
        return try StoreCopy(from: source, to: target).run(now: now, progress: progress)
    }

    private let source: SQLiteDatabase
    private let target: PostgresDatabase

    /// - Parameter target: an empty database, or one with an empty schema of Postern.
    package init(from source: SQLiteDatabase, to target: PostgresDatabase) {
        self.source = source
        self.target = target
    }

    /// Copies everything, and compares the numbers of rows afterwards. Throws `exists` if the
    /// target has rows, and `unexpectedData` if the numbers differ.
    /// - Parameter progress: gets the number of rows copied, and the total.
    package func run(
        now: Int64, progress: (_ done: Int, _ total: Int) -> Void
    ) throws(StoreFailure) -> [Count] {
        let pending = try Migrator().pending(source)
        guard pending.isEmpty else {
            throw .refused(
                .unmet,
                "the database lacks \(pending.joined(separator: ", ")): run postern store migrate first"
            )
        }
        _ = try Migrator().migrate(target, now: now)
        return try source.read { source throws(StoreFailure) in
            let tables = try Self.tables(source)
            let total = try tables.map { table throws(StoreFailure) in
                try Self.count(source, table.name)
            }.reduce(0, +)
            // May run again after a serialization failure, from the same snapshot of the source.
            return try target.write(.durable) { target throws(StoreFailure) in
                for table in tables where try Self.count(target, table.name) > 0 {
                    throw .refused(
                        .exists,
                        "the target already contains rows (\(table.name)): give an empty database; nothing was changed"
                    )
                }
                var done = 0
                for table in tables {
                    try Self.copy(table, from: source, to: target) { rows in
                        done += rows
                        progress(done, total)
                    }
                    try Self.setIdentity(table, from: source, to: target)
                }
                return try tables.map { table throws(StoreFailure) in
                    let (was, isNow) = (
                        try Self.count(source, table.name), try Self.count(target, table.name)
                    )
                    guard was == isNow else {
                        throw .permanent(
                            .unexpectedData,
                            "\(table.name) has \(was) rows, but \(isNow) were copied: nothing was changed"
                        )
                    }
                    return Count(table: table.name, rows: isNow)
                }
            }
        }
    }

    struct Table {
        let name: String
        let columns: [String]
        /// The columns of the primary key, in order.
        let key: [Int]
        let refersTo: [String]
        /// Whether the key is an identifier that is never reused.
        let hasIdentity: Bool
    }

    /// All tables, in an order in which each comes after those that it refers to. The history of
    /// migrations is left out, because the target has its own.
    static func tables(_ source: any DatabaseConnection) throws(StoreFailure) -> [Table] {
        let names: [String] = try source.values(
            """
            SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'
            ORDER BY name
            """)
        var rest = try names.map { name throws(StoreFailure) in
            let columns: [(name: String, key: Int)] = try source.rows(
                "SELECT name, pk FROM pragma_table_info(\(name)) ORDER BY cid"
            ).map { row throws(StoreFailure) in try (name: row["name"], key: row["pk"]) }
            let key = columns.indices.filter { columns[$0].key > 0 }.sorted {
                columns[$0].key < columns[$1].key
            }
            let refersTo: [String] = try source.values(
                "SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(\(name))")
            let sql: String? = try source.value(
                "SELECT sql FROM sqlite_master WHERE name = \(name)")
            return Table(
                name: name, columns: columns.map(\.name), key: key,
                refersTo: refersTo.filter { $0 != name },
                hasIdentity: sql?.contains("AUTOINCREMENT") ?? false)
        }
        var sorted: [Table] = []
        while !rest.isEmpty {
            let known = Set(sorted.map(\.name))
            let ready = rest.filter { known.isSuperset(of: $0.refersTo) }
            guard !ready.isEmpty else {
                throw .permanent(.unexpectedData, "tables refer to each other in a circle")
            }
            sorted += ready
            rest.removeAll { table in ready.contains { $0.name == table.name } }
        }
        return sorted
    }

    private static func count(
        _ connection: any DatabaseConnection, _ table: String
    ) throws(StoreFailure) -> Int {
        try connection.value("SELECT COUNT(*) FROM \(raw: table)") ?? 0
    }

    private static func copy(
        _ table: Table, from source: any DatabaseConnection, to target: any DatabaseConnection,
        copied: (Int) -> Void
    ) throws(StoreFailure) {
        let columns = table.columns.joined(separator: ", ")
        let key = table.key.map { table.columns[$0] }.joined(separator: ", ")
        var last: [SQLValue]?
        while true {
            // Continues after the last key of the previous batch, so the time is linear for any
            // table size.
            let after: SQL = last.map { " WHERE (\(raw: key)) > \(list: $0)" } ?? ""
            let rows = try source.rows(
                "SELECT \(raw: columns) FROM \(raw: table.name)\(after) ORDER BY \(raw: key) LIMIT \(batch)"
            ).map(\.values)
            guard let final = rows.last else { return }
            // Batches have at most two sizes, so that few statements are prepared.
            if rows.count == batch {
                try insert(rows, table, columns, target)
            } else {
                for row in rows { try insert([row], table, columns, target) }
            }
            copied(rows.count)
            last = table.key.map { final[$0] }
            if rows.count < batch { return }
        }
    }

    private static func insert(
        _ rows: [[SQLValue]], _ table: Table, _ columns: String, _ target: any DatabaseConnection
    ) throws(StoreFailure) {
        try target.run("INSERT INTO \(raw: table.name) (\(raw: columns)) VALUES \(rows: rows)")
    }

    /// The next identifier is one that the source never used, not even for a deleted row.
    private static func setIdentity(
        _ table: Table, from source: any DatabaseConnection, to target: any DatabaseConnection
    ) throws(StoreFailure) {
        guard table.hasIdentity else { return }
        let used =
            try source.value(
                "SELECT seq FROM sqlite_sequence WHERE name = \(table.name)", Int64.self) ?? 0
        guard used > 0 else { return }
        _ = try target.rows("SELECT setval(pg_get_serial_sequence(\(table.name), 'id'), \(used))")
    }
}
