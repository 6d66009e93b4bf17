// What running services say of themselves, in the database, so that one look sees all hosts and needs no key.

import Database
import Accounts

extension Store {
    /// What running services say of themselves.
    package var serviceStatus: ServiceStatusRepository { ServiceStatusRepository(database: database) }
}

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
    package func report(host: String, pid: Int64, snapshot: String, minute: Minute? = nil, now: Int64) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run(
                """
                INSERT INTO service_status (host, pid, updated_at, snapshot) VALUES (\(host), \(pid), \(now), \(snapshot))
                ON CONFLICT (host, pid) DO UPDATE SET updated_at = excluded.updated_at, snapshot = excluded.snapshot
                """)
        }
    }

    private func add(_ minute: Minute, _ host: String, _ pid: Int64, _ connection: any DatabaseConnection) throws(StoreFailure) {
        try connection.run(
            """
            INSERT INTO service_minutes (host, pid, at, counts) VALUES (\(host), \(pid), \(minute.at), \(minute.counts))
            ON CONFLICT (host, pid, at) DO NOTHING
            """)
    }

    /// The minutes of all services that ended later than `time`, the oldest first.
    package func minutes(after time: Int64) throws(StoreFailure) -> [Minute] {
        try database.rows("SELECT at, counts FROM service_minutes WHERE at > \(time) ORDER BY at, host, pid")
            .map { row throws(StoreFailure) in
                try Minute(at: row["at"], counts: row["counts"])
            }
    }

    /// All services, the latest word first.
    package func all() throws(StoreFailure) -> [Entry] {
        try database.rows(
            "SELECT host, pid, updated_at, snapshot FROM service_status ORDER BY updated_at DESC, host, pid"
        ).map { row throws(StoreFailure) in
            try Entry(host: row["host"], pid: row["pid"], updatedAt: row["updated_at"], snapshot: row["snapshot"])
        }
    }

    /// A service that ends says so.
    /// - Parameter minute: what it counted last.
    package func remove(host: String, pid: Int64, minute: Minute? = nil) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run("DELETE FROM service_status WHERE host = \(host) AND pid = \(pid)")
        }
    }

    /// Forgets services that said nothing since, and minutes before `minutes`; how many services.
    @discardableResult
    package func deleteExpired(before time: Int64, minutes: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM service_minutes WHERE at < \(minutes)")
            return try connection.run("DELETE FROM service_status WHERE updated_at < \(time)")
        }
    }
}

extension Database {
    /// Writes a row of no meaning: a disk that is full takes no change, and answers every question.
    package func checkWritable(now: Int64) throws(StoreFailure) {
        try write(.durable) { connection throws(StoreFailure) in
            // What is there already would not be written.
            try connection.run(
                """
                INSERT INTO settings (name, value) VALUES (\("write_check"), \("\(now) \(UInt32.random(in: 0 ... .max))"))
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """)
        }
    }
}
