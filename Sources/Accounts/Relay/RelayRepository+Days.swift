// The number of messages to each domain on a day, for operators who watch the reputation of a new
// host.

import Database

extension RelayRepository {
    /// Accounts read for a day at most. If there are more, only every second, third, … account is
    /// read.
    private static let sample: Int64 = 20_000

    /// Messages forwarded on a day, by the domain of the inbox; an estimate if
    /// there are many accounts.
    /// - Parameter day: days since 1970 UTC.
    package func forwardedByDomain(day: Int64) throws(StoreFailure) -> [String: Int] {
        let accounts: Int64 =
            try database.row(
                "SELECT COUNT(*) AS found FROM daily_counters WHERE day = \(day) AND kind = \(CounterKind.forwarded)"
            )?["found"]
            ?? 0
        let every = max(1, (accounts + Self.sample - 1) / Self.sample)
        let rows = try database.rows(
            """
            SELECT c.count, i.user_id, i.address_key, i.address_sealed FROM daily_counters c
            JOIN accounts a ON a.id = c.account_id JOIN inboxes i ON i.id = a.target_inbox
            WHERE c.day = \(day) AND c.kind = \(CounterKind.forwarded) AND c.account_id % \(every) = 0
            """)
        var domains: [String: Int] = [:]
        for row in rows {
            // Another check reports an inbox that cannot be opened.
            guard let inbox = try? inboxAddress(row) else { continue }
            let count: Int = try row["count"]
            domains[inbox.revealed.domain.lowercased(), default: 0] += count * Int(every)
        }
        return domains
    }
}
