// Tombstones: the records of deleted accounts, kept for 30 days.

import Database
import InternetMessage

/// The record of one day.
package struct Tombstone: Sendable, Hashable {
    /// How long it is kept, in days.
    package static let days: Int64 = 30

    /// Days since 1970 UTC.
    package let day: Int64
    package let deletions: Int
    package let failures: Int
}

/// Reads tombstones. They contain no address: the caller supplies the inbox or the subject.
package struct TombstoneRepository: Sendable {
    let database: any Database
    let marks: TombstoneMarks

    /// The tombstones of a user's inboxes, the oldest day first: part of the export for the user.
    package func tombstones(user id: String, now: Int64) throws(StoreFailure) -> [Tombstone] {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            var days: [Int64: (deletions: Int, failures: Int)] = [:]
            let indexes: [[UInt8]] = try connection.values(
                "SELECT DISTINCT tombstone_index FROM inboxes WHERE user_id = \(user)")
            for index in indexes {
                for tombstone in try connection.tombstones(index, now: now) {
                    days[tombstone.day, default: (0, 0)].deletions += tombstone.deletions
                    days[tombstone.day, default: (0, 0)].failures += tombstone.failures
                }
            }
            return days.sorted { $0.key < $1.key }.map {
                Tombstone(day: $0.key, deletions: $0.value.deletions, failures: $0.value.failures)
            }
        }
    }

    /// The tombstones of an issuer's subject, the oldest day first.
    package func tombstones(
        issuer: String, subject: String, now: Int64
    ) throws(StoreFailure) -> [Tombstone] {
        try database.read { connection throws(StoreFailure) in
            try connection.tombstones(marks.identity(issuer: issuer, subject: subject), now: now)
        }
    }

    /// Deletes tombstones that are older than 30 days, at most `limit` at a time. Returns the
    /// number.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM tombstones WHERE (mark, day) IN (SELECT mark, day FROM tombstones
                    WHERE day <= \(Day.number(now) - Tombstone.days) LIMIT \(limit))
                """)
        }
    }
}

extension DatabaseConnection {
    fileprivate func tombstones(_ mark: [UInt8], now: Int64) throws(StoreFailure) -> [Tombstone] {
        try rows(
            """
            SELECT day, deletions, failures FROM tombstones WHERE mark = \(mark) AND day > \(Day.number(now) - Tombstone.days)
            ORDER BY day
            """
        ).map { row throws(StoreFailure) in
            try Tombstone(day: row["day"], deletions: row["deletions"], failures: row["failures"])
        }
    }

    /// Adds to a tombstone.
    func recordTombstone(
        _ mark: [UInt8], day: Int64, deletions: Int64, failures: Int64
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO tombstones (mark, day, deletions, failures) VALUES (\(mark), \(day), \(deletions), \(failures))
            ON CONFLICT (mark, day) DO UPDATE
                SET deletions = tombstones.deletions + excluded.deletions, failures = tombstones.failures + excluded.failures
            """)
    }

    /// The marks among these that are of retired names.
    package func retired(_ marks: [[UInt8]]) throws(StoreFailure) -> Set<[UInt8]> {
        try Set(values(for: marks) { "SELECT mark FROM retired_names WHERE mark IN \($0)" })
    }
}
