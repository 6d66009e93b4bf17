// Counts of policies in the store: read with a request's history, written once a second for many
// requests.

import Accounts
import Database

/// Limits of counts.
package enum VelocityLimits {
    /// Distinct values are counted up to this number: a policy checks whether there are many, and
    /// each value needs a row.
    package static let distinct: Int64 = 1_000
    /// Stored rows. Beyond this number, those that end first are deleted, for all windows.
    package static let rows: Int64 = 5_000_000
    /// Rows that may wait to be written while the store is unavailable.
    package static let waiting = 100_000
}

/// The stored value for a tally.
package struct StoredVelocity: Sendable, Hashable {
    package var count: Int64
    /// For distinct values: the last slice with the request's own value; nil if it is not among
    /// them.
    package var own: Int64?

    package init(count: Int64 = 0, own: Int64? = nil) { (self.count, self.own) = (count, own) }
}

/// The values to add to a row.
package struct VelocityRow: Sendable, Hashable {
    package var count: Int64
    package var slice: Int64
    package var endsAt: Int64

    package init(count: Int64, slice: Int64, endsAt: Int64) {
        (self.count, self.slice, self.endsAt) = (count, slice, endsAt)
    }
}

/// Stores counts.
package struct VelocityRepository: Sendable {
    /// Identifies a row.
    package struct Key: Sendable, Hashable {
        package let mark: [UInt8]
        package let part: [UInt8]

        package init(mark: [UInt8], part: [UInt8]) { (self.mark, self.part) = (mark, part) }
    }

    let database: any Database

    /// The stored values, tally by tally.
    package func stored(_ tallies: [VelocityTally]) throws(StoreFailure) -> [StoredVelocity] {
        try database.read { connection throws(StoreFailure) in
            try connection.storedVelocity(tallies)
        }
    }

    /// Adds to rows, and creates missing ones.
    package func add(_ rows: [Key: VelocityRow]) throws(StoreFailure) {
        guard !rows.isEmpty else { return }
        // The order is the same on every host: of two hosts that write the same rows, one waits for
        // the other.
        let sorted = rows.sorted { $0.key < $1.key }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.insert(
                sorted.map {
                    [$0.key.mark, $0.key.part, $0.value.slice, $0.value.count, $0.value.endsAt]
                },
                into: "velocity (mark, part, slice, count, ends_at)",
                """
                ON CONFLICT (mark, part) DO UPDATE SET count = velocity.count + excluded.count, ends_at = excluded.ends_at,
                    slice = CASE WHEN excluded.slice > velocity.slice THEN excluded.slice ELSE velocity.slice END
                """)
        }
    }

    /// Deletes at most 1,000 rows that no longer count; returns how many.
    package func deleteExpired(now: Int64) throws(StoreFailure) -> Int {
        try delete("ends_at <= \(now)", limit: 1_000)
    }

    /// Number of rows beyond `limit`.
    package func excess(over limit: Int64 = VelocityLimits.rows) throws(StoreFailure) -> Int {
        let count: Int64? = try database.value("SELECT COUNT(*) FROM velocity")
        return Int(max(0, (count ?? 0) - limit))
    }

    /// Deletes at most `limit` rows, those that end first; returns how many. Use about a thousand,
    /// so that others do not wait.
    package func trim(_ limit: Int) throws(StoreFailure) -> Int {
        try delete("1 = 1", limit: Int64(limit))
    }

    private func delete(_ condition: SQL, limit: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM velocity WHERE (mark, part) IN (
                    SELECT mark, part FROM velocity WHERE \(condition) ORDER BY ends_at LIMIT \(limit))
                """)
        }
    }
}

extension VelocityRepository.Key: Comparable {
    package static func < (first: Self, second: Self) -> Bool {
        first.mark == second.mark
            ? first.part.lexicographicallyPrecedes(second.part)
            : first.mark.lexicographicallyPrecedes(second.mark)
    }
}

extension DatabaseConnection {
    /// The stored values for tallies, in a reading transaction.
    func storedVelocity(_ tallies: [VelocityTally]) throws(StoreFailure) -> [StoredVelocity] {
        var stored: [StoredVelocity] = []
        for tally in tallies {
            let row =
                tally.isDistinct
                ? try row(
                    """
                    SELECT COUNT(*) AS count, MAX(CASE WHEN part = \(tally.part) THEN slice END) AS own
                    FROM (SELECT part, slice FROM velocity WHERE mark = \(tally.mark) AND slice >= \(tally.since)
                        LIMIT \(VelocityLimits.distinct)) AS found
                    """)
                : try row(
                    """
                    SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) AS count, NULL AS own FROM velocity
                    WHERE mark = \(tally.mark) AND slice >= \(tally.since)
                    """)
            guard let row else { return [] }
            stored.append(StoredVelocity(count: try row["count"], own: try row["own"]))
        }
        return stored
    }
}
