// How many forwards of new hosts left on a day, by team.

import Database
import RelayCore
import Support

/// The counts of a host and a team on one day.
package struct WarmUpCount: Sendable, Hashable {
    package let host: String
    package let team: String
    /// Since 1970 (UTC).
    package let day: Int64
    /// Forwards that left.
    package let messages: Int
    /// How often a forward was deferred: a sender that tries again counts again.
    package let deferred: Int
}

extension DeliveryRepository {
    /// Counts one forward unless that would exceed the ceiling, or the team's share of it if other
    /// teams send too; then counts that it was deferred. Exact over all processes.
    /// - Parameters:
    ///   - day: since 1970 (UTC).
    ///   - ceiling: 1 or more.
    /// - Returns: whether the forward was counted.
    package func reserveWarmUp(
        host: String, team: String, day: Int64, ceiling: Int
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let isOpen = try connection.isWarmUpOpen(host, team, day, ceiling)
            try connection.run(
                """
                INSERT INTO warm_up_counts (host, team, day, messages, deferred)
                VALUES (\(host), \(team), \(day), \(isOpen ? 1 : 0), \(isOpen ? 0 : 1))
                ON CONFLICT (host, day, team) DO UPDATE SET messages = warm_up_counts.messages + excluded.messages,
                    deferred = warm_up_counts.deferred + excluded.deferred
                """)
            return isOpen
        }
    }

    /// Takes back a count of `reserveWarmUp`, for a message that was not accepted after all.
    package func releaseWarmUp(
        host: String, team: String, day: Int64
    ) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE warm_up_counts SET messages = messages - 1
                WHERE host = \(host) AND team = \(team) AND day = \(day) AND messages >= 1
                """)
        }
    }

    /// The result that `reserveWarmUp` would have now, without counting: for `postern explain`.
    package func wouldReserveWarmUp(
        host: String, team: String, day: Int64, ceiling: Int
    ) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            try connection.isWarmUpOpen(host, team, day, ceiling)
        }
    }

    /// The counts of a day (since 1970, UTC), of all hosts.
    package func warmUpCounts(day: Int64) throws(StoreFailure) -> [WarmUpCount] {
        try database.rows(
            """
            SELECT host, team, day, messages, deferred FROM warm_up_counts
            WHERE day = \(day) ORDER BY host, team
            """
        ).map { row throws(StoreFailure) in
            try WarmUpCount(
                host: row["host"], team: row["team"], day: row["day"], messages: row["messages"],
                deferred: row["deferred"])
        }
    }
}

extension DatabaseConnection {
    /// Other teams are those that sent, or tried to, on this day or the day before.
    fileprivate func isWarmUpOpen(
        _ host: String, _ team: String, _ day: Int64, _ ceiling: Int
    ) throws(StoreFailure) -> Bool {
        let row = try row(
            """
            SELECT CAST(COALESCE(SUM(CASE WHEN day = \(day) THEN messages ELSE 0 END), 0) AS BIGINT) AS total,
                CAST(COALESCE(SUM(CASE WHEN day = \(day) AND team = \(team) THEN messages ELSE 0 END), 0) AS BIGINT) AS own,
                COALESCE(MAX(CASE WHEN team <> \(team) THEN 1 ELSE 0 END), 0) AS has_others
            FROM warm_up_counts WHERE host = \(host) AND day >= \(day - 1) AND day <= \(day)
            """)
        let (total, own, hasOthers): (Int, Int, Bool) = try (
            row?["total"] ?? 0, row?["own"] ?? 0, row?["has_others"] ?? false
        )
        return total < ceiling && (!hasOthers || own < WarmUp.share(of: ceiling))
    }
}
