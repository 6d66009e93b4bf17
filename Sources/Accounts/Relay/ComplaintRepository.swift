// Users' complaints about mail of teams: counted, and reported to the team.

import Database
import RelayCore

/// Complaints about a team's mail on one day.
package struct ComplaintDay: Sendable, Hashable {
    /// Days since 1970 UTC.
    package let day: Int64
    package let complaints: Int
    /// How many accounts complained.
    package let accounts: Int
}

package struct ComplaintRepository: Sendable {
    let events: AccountEvents

    /// Counts a complaint of an account, and notifies the endpoints of the apps that it uses.
    /// - Parameters:
    ///   - mark: of the message that the complaint names; each counts once a day.
    ///   - provider: of the account's inbox; nil if it has none.
    ///   - day: days since 1970 UTC.
    /// - Returns: false if the complaint is already known, or the account was deleted.
    package func record(
        account: Int64, mark: [UInt8], provider: ProviderFamily?, day: Int64, now: Int64
    ) throws(StoreFailure) -> Bool {
        try events.write(at: now) { connection, tracker throws(StoreFailure) in
            let daily = mark + (0..<8).map { UInt8(truncatingIfNeeded: day >> (8 * Int64($0))) }
            guard
                try connection.run(
                    """
                    INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                    SELECT id, 'complaint', \(daily), \((day + 2) * 86_400) FROM accounts WHERE id = \(account)
                    ON CONFLICT (account_id, purpose, mark) DO NOTHING
                    """) > 0
            else { return false }
            try connection.count(
                DailyCounter(accountNumber: account, day: day, kind: .complaints, count: 1))
            if let provider {
                try connection.note(.complaint, account: account, at: provider, day: day)
            }
            try tracker.note(complaintOf: account)
            return true
        }
    }

    /// The days since `day` on which users of a team complained, the latest first; only
    /// while counters are kept.
    package func days(team: Int64, since day: Int64) throws(StoreFailure) -> [ComplaintDay] {
        try events.database.rows(
            // The kind is a literal, because the database uses the index only for a value that it
            // knows in advance.
            """
            SELECT c.day, SUM(c.count) AS complaints, COUNT(DISTINCT c.account_id) AS accounts
            FROM daily_counters c CROSS JOIN accounts a
            WHERE c.kind = 21 AND c.day >= \(day) AND a.id = c.account_id AND a.team_id = \(team)
            GROUP BY c.day ORDER BY c.day DESC
            """
        ).map { row throws(StoreFailure) in
            try ComplaintDay(
                day: row["day"], complaints: row["complaints"], accounts: row["accounts"])
        }
    }
}
