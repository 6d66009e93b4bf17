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

    /// What one service counted in one minute, or less at its end.
    package struct Minute: Sendable {
        /// Its end, in seconds since 1970.
        package let at: Int64
        /// JSON.
        package let counts: String

        package init(at: Int64, counts: String) {
            self.at = at
            self.counts = counts
        }
    }

    /// - Parameter minute: one that is over, and that the snapshot no longer holds.
    package func report(host: String, pid: Int64, snapshot: String, minute: Minute? = nil, now: Int64) throws {
        try database.write(.relaxed) { connection in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run(
                """
                INSERT INTO service_status (host, pid, updated_at, snapshot) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (host, pid) DO UPDATE SET updated_at = excluded.updated_at, snapshot = excluded.snapshot
                """, [.text(host), .integer(pid), .integer(now), .text(snapshot)])
        }
    }

    private func add(_ minute: Minute, _ host: String, _ pid: Int64, _ connection: any DatabaseConnection) throws {
        try connection.run(
            "INSERT INTO service_minutes (host, pid, at, counts) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (host, pid, at) DO NOTHING",
            [.text(host), .integer(pid), .integer(minute.at), .text(minute.counts)])
    }

    /// The minutes of all services that ended later than `time`, the oldest first.
    package func minutes(after time: Int64) throws -> [Minute] {
        try database.read { connection in
            try connection.rows("SELECT at, counts FROM service_minutes WHERE at > ?1 ORDER BY at, host, pid", [.integer(time)])
                .map {
                    Minute(at: try $0.integer(0), counts: try $0.text(1))
                }
        }
    }

    /// All services, the latest word first.
    package func all() throws -> [Entry] {
        try database.read { connection in
            try connection.rows(
                "SELECT host, pid, updated_at, snapshot FROM service_status ORDER BY updated_at DESC, host, pid", []
            ).map {
                Entry(host: try $0.text(0), pid: try $0.integer(1), updatedAt: try $0.integer(2), snapshot: try $0.text(3))
            }
        }
    }

    /// A service that ends says so.
    /// - Parameter minute: what it counted last.
    package func remove(host: String, pid: Int64, minute: Minute? = nil) throws {
        try database.write(.relaxed) { connection in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run("DELETE FROM service_status WHERE host = ?1 AND pid = ?2", [.text(host), .integer(pid)])
        }
    }

    /// Forgets services that said nothing since, and minutes before `minutes`; how many services.
    @discardableResult
    package func deleteExpired(before time: Int64, minutes: Int64) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run("DELETE FROM service_minutes WHERE at < ?1", [.integer(minutes)])
            return try connection.run("DELETE FROM service_status WHERE updated_at < ?1", [.integer(time)])
        }
    }
}

extension Database {
    /// Writes a row of no meaning: a disk that is full takes no change, and answers every question.
    /// Throws `TemporaryStoreError` or `PermanentStoreError`.
    package func checkWritable(now: Int64) throws {
        try write(.durable) { connection in
            // What is there already would not be written.
            try connection.run(
                "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [.text("write_check"), .text("\(now) \(UInt32.random(in: 0 ... .max))")])
        }
    }
}
