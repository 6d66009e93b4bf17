// What running services say of themselves, in the database, so that one look sees all hosts and needs no key.

package struct ServiceStatusRepository: Sendable {
    let database: any Database

    /// One service's latest word.
    package struct Entry: Sendable {
        package let host: String
        package let pid: Int64
        /// Seconds since 1970.
        package let updatedAt: Int64
        /// JSON.
        package let snapshot: String
    }

    package func report(host: String, pid: Int64, snapshot: String, now: Int64) throws {
        try database.write(.relaxed) { connection in
            try connection.run(
                """
                INSERT INTO service_status (host, pid, updated_at, snapshot) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (host, pid) DO UPDATE SET updated_at = excluded.updated_at, snapshot = excluded.snapshot
                """, [.text(host), .integer(pid), .integer(now), .text(snapshot)])
        }
    }

    /// All services, the latest word first.
    package func all() throws -> [Entry] {
        try database.read { connection in
            try connection.rows("SELECT host, pid, updated_at, snapshot FROM service_status ORDER BY updated_at DESC, host, pid", []).map {
                Entry(host: try $0.text(0), pid: try $0.integer(1), updatedAt: try $0.integer(2), snapshot: try $0.text(3))
            }
        }
    }

    /// A service that ends says so.
    package func remove(host: String, pid: Int64) throws {
        try database.write(.relaxed) { connection in
            try connection.run("DELETE FROM service_status WHERE host = ?1 AND pid = ?2", [.text(host), .integer(pid)])
        }
    }

    /// Forgets services that said nothing since; how many.
    @discardableResult
    package func deleteExpired(before time: Int64) throws -> Int {
        try database.write(.relaxed) { try $0.run("DELETE FROM service_status WHERE updated_at < ?1", [.integer(time)]) }
    }
}

extension Database {
    /// Writes a row of no meaning: a disk that is full takes no change, and answers every question.
    /// Throws `TemporaryStoreError` or `PermanentStoreError`.
    package func checkWritable(now: Int64) throws {
        try write(.durable) { connection in
            // What stands there already would not be written.
            try connection.run(
                "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [.text("write_check"), .text("\(now) \(UInt32.random(in: 0 ... .max))")])
        }
    }
}
