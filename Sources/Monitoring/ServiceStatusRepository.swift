// The reports of running services, in the database: one query shows all hosts and needs no key.

import Accounts
import Database

extension Store {
    /// The reports of running services.
    package var serviceStatus: ServiceStatusRepository {
        ServiceStatusRepository(database: database)
    }
}

package struct ServiceStatusRepository: Sendable {
    let database: any Database

    /// The latest report of one service.
    package struct Entry: Sendable {
        package let host: String
        package let pid: Int64
        /// Seconds since 1970.
        package let updatedAt: Int64
        /// JSON.
        package let snapshot: String
    }

    /// The counts of one service in one minute, or in less at its end.
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

    /// - Parameter minute: a completed minute, which the snapshot no longer includes.
    package func report(
        host: String, pid: Int64, snapshot: String, minute: Minute? = nil, now: Int64
    ) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run(
                """
                INSERT INTO service_status (host, pid, updated_at, snapshot) VALUES (\(host), \(pid), \(now), \(snapshot))
                ON CONFLICT (host, pid) DO UPDATE SET updated_at = excluded.updated_at, snapshot = excluded.snapshot
                """)
        }
    }

    private func add(
        _ minute: Minute, _ host: String, _ pid: Int64, _ connection: any DatabaseConnection
    ) throws(StoreFailure) {
        try connection.run(
            """
            INSERT INTO service_minutes (host, pid, at, counts) VALUES (\(host), \(pid), \(minute.at), \(minute.counts))
            ON CONFLICT (host, pid, at) DO NOTHING
            """)
    }

    /// The minutes of all services that ended later than `time`, the oldest first.
    package func minutes(after time: Int64) throws(StoreFailure) -> [Minute] {
        try database.rows(
            "SELECT at, counts FROM service_minutes WHERE at > \(time) ORDER BY at, host, pid"
        )
        .map { row throws(StoreFailure) in
            try Minute(at: row["at"], counts: row["counts"])
        }
    }

    /// All services, the latest report first.
    package func all() throws(StoreFailure) -> [Entry] {
        try database.rows(
            "SELECT host, pid, updated_at, snapshot FROM service_status ORDER BY updated_at DESC, host, pid"
        ).map { row throws(StoreFailure) in
            try Entry(
                host: row["host"], pid: row["pid"], updatedAt: row["updated_at"],
                snapshot: row["snapshot"])
        }
    }

    /// A service reports that it ends.
    /// - Parameter minute: its last counts.
    package func remove(host: String, pid: Int64, minute: Minute? = nil) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            if let minute { try add(minute, host, pid, connection) }
            try connection.run("DELETE FROM service_status WHERE host = \(host) AND pid = \(pid)")
        }
    }

    /// Deletes services that have not reported since, and minutes before `minutes`;
    /// returns the number of services.
    @discardableResult
    package func deleteExpired(before time: Int64, minutes: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM service_minutes WHERE at < \(minutes)")
            return try connection.run("DELETE FROM service_status WHERE updated_at < \(time)")
        }
    }
}

extension Database {
    /// The number of hosts whose service reported since this time (seconds since 1970).
    package func reportingHosts(since time: Int64) throws(StoreFailure) -> Int {
        try value("SELECT COUNT(DISTINCT host) FROM service_status WHERE updated_at >= \(time)")
            ?? 0
    }

    /// Writes a row without meaning. A full disk still answers queries but accepts no changes, so a
    /// query would not show it.
    package func checkWritable(now: Int64) throws(StoreFailure) {
        try write(.durable) { connection throws(StoreFailure) in
            // The value differs each time, because an unchanged value would not be written.
            try connection.run(
                """
                INSERT INTO settings (name, value) VALUES (\("write_check"), \("\(now) \(UInt32.random(in: 0 ... .max))"))
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """)
        }
    }
}
