// Tombstones: what is left of deleted accounts, for 30 days.

import InternetMessage

/// What is remembered of one day.
package struct Tombstone: Sendable, Hashable {
    /// How long it is kept, in days.
    package static let days: Int64 = 30

    /// Days since 1970 UTC.
    package let day: Int64
    package let deletions: Int
    package let failures: Int
}

/// Reads tombstones. They hold no address: anyone who asks brings the inbox or the subject.
package struct TombstoneRepository: Sendable {
    let database: any Database
    let marks: TombstoneMarks

    /// What is remembered of a user's inboxes, the oldest day first: part of what the user can download.
    package func tombstones(user id: String, now: Int64) throws -> [Tombstone] {
        try database.read { connection in
            let user = try connection.userNumber(id)
            var days: [Int64: (deletions: Int64, failures: Int64)] = [:]
            let indexes = try connection.rows(
                "SELECT DISTINCT tombstone_index FROM inboxes WHERE user_id = ?1 AND tombstone_index IS NOT NULL",
                [.integer(user)])
            for row in indexes {
                for tombstone in try connection.tombstones(row.blob(0), now: now) {
                    days[tombstone.day, default: (0, 0)].deletions += Int64(tombstone.deletions)
                    days[tombstone.day, default: (0, 0)].failures += Int64(tombstone.failures)
                }
            }
            return days.sorted { $0.key < $1.key }.map {
                Tombstone(day: $0.key, deletions: Int($0.value.deletions), failures: Int($0.value.failures))
            }
        }
    }

    /// What is remembered of an issuer's subject, the oldest day first.
    package func tombstones(issuer: String, subject: String, now: Int64) throws -> [Tombstone] {
        try database.read { try $0.tombstones(marks.identity(issuer: issuer, subject: subject), now: now) }
    }

    /// Deletes what is older than 30 days, at most `limit` at a time; how many.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                """
                DELETE FROM tombstones WHERE (mark, day) IN (SELECT mark, day FROM tombstones WHERE day <= ?1 LIMIT ?2)
                """, [.integer(Day.number(now) - Tombstone.days), .integer(Int64(limit))])
        }
    }
}

extension DatabaseConnection {
    fileprivate func tombstones(_ mark: [UInt8], now: Int64) throws -> [Tombstone] {
        try rows(
            "SELECT day, deletions, failures FROM tombstones WHERE mark = ?1 AND day > ?2 ORDER BY day",
            [.blob(mark), .integer(Day.number(now) - Tombstone.days)]
        ).map {
            Tombstone(day: try $0.integer(0), deletions: Int(try $0.integer(1)), failures: Int(try $0.integer(2)))
        }
    }

    /// Adds to a tombstone.
    func recordTombstone(_ mark: [UInt8], day: Int64, deletions: Int64, failures: Int64) throws {
        try run(
            """
            INSERT INTO tombstones (mark, day, deletions, failures) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (mark, day) DO UPDATE
                SET deletions = tombstones.deletions + excluded.deletions, failures = tombstones.failures + excluded.failures
            """, [.blob(mark), .integer(day), .integer(deletions), .integer(failures)])
    }
}
