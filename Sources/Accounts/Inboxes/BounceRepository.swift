// Permanent failures of inboxes: counted once for each relayed message. If an inbox has too many,
// forwarding to it is suspended.

import Database
import RelayCore

/// How many forwarded messages an inbox got and refused within a window of days.
package struct InboxStanding: Sendable, Hashable {
    /// Permanent failures.
    package let failures: Int
    /// Messages forwarded to it.
    package let forwarded: Int
}

/// Records the permanent failures of inboxes.
package struct BounceRepository: Sendable {
    let events: AccountEvents
    private var database: any Database { events.database }

    /// The actor of suspensions in the audit.
    private static let actor = "relay"

    /// Records a permanent failure of the inbox that the account's mail goes to now. Counts it for
    /// the account, once for each return path.
    /// - Parameters:
    ///   - rate: the rate at which forwarding is suspended, in the same transaction; nil for never.
    ///   - rules: the version of the report rules that count it.
    package func record(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?,
        rules: Int64 = ReportRules.version, now: Int64
    ) throws(StoreFailure) -> FailureRecord {
        let mark = (0..<5).map { UInt8(truncatingIfNeeded: failure.nonce >> (8 * UInt64($0))) }
        let (number, expiresAt, days) = (
            account.stored, (Int64(failure.expiryDay) + 1) * 86_400, rate?.days ?? 1
        )
        let today = Day.number(now)
        return try events.write(at: now) { connection, tracker throws(StoreFailure) in
            let isNew = try connection.run(
                """
                INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                SELECT id, 'bounce', \(mark), \(expiresAt) FROM accounts WHERE id = \(number)
                ON CONFLICT (account_id, purpose, mark) DO NOTHING
                """)
            guard isNew > 0 else { return .known }
            try connection.count(
                DailyCounter(accountNumber: number, day: today, kind: .bouncedPermanently, count: 1)
            )
            let row = try connection.row(
                """
                SELECT i.id, i.failures_from, i.suspended_at, u.handle AS user_handle, i.number
                FROM accounts a
                JOIN users u ON u.id = a.user_id
                JOIN inboxes i ON i.id = a.target_inbox
                WHERE a.id = \(number)
                """)
            // The failure does not count for this inbox if the message was relayed before its
            // confirmation, or to another inbox.
            guard let row, Int64(failure.sentDay) >= (try row["failures_from"]) else {
                return .recorded
            }
            let inbox: Int64 = try row["id"]
            let suspendedAt: Int64? = try row["suspended_at"]
            let (user, inboxNumber): (String, Int64) = try (row["user_handle"], row["number"])
            try connection.run(
                """
                INSERT INTO inbox_failures (inbox_id, day, count) VALUES (\(inbox), \(today), 1)
                ON CONFLICT (inbox_id, day) DO UPDATE SET count = inbox_failures.count + 1
                """)
            guard suspendedAt == nil else { return .recorded }
            let standing = try connection.standing(inbox: inbox, since: Self.first(today, days))
            guard let rate,
                rate.isReached(failures: standing.failures, forwarded: standing.forwarded)
            else {
                return .recorded
            }
            try tracker.snapshot(.inbox(inbox))
            try connection.run(
                """
                UPDATE inboxes SET suspended_at = \(now), suspended_failures = \(standing.failures), suspended_rules = \(rules)
                WHERE id = \(inbox)
                """)
            try connection.audit(
                Change(actor: Self.actor, now: now), "inbox.suspend", "user:\(user)",
                "inbox \(inboxNumber), \(standing.failures) permanent failures, \(standing.forwarded) messages forwarded, \(days) days"
            )
            return .suspended
        }
    }

    /// The standing of an inbox.
    /// - Parameter days: the window, today included.
    package func standing(
        of inbox: Inbox, days: Int, now: Int64
    ) throws(StoreFailure) -> InboxStanding {
        try database.read { connection throws(StoreFailure) in
            try connection.standing(inbox: inbox.id, since: Self.first(Day.number(now), days))
        }
    }

    private static func first(_ today: Int64, _ days: Int) -> Int64 {
        today - Int64(max(1, days)) + 1
    }
}

extension DatabaseConnection {
    /// Failures of an inbox, and messages to it, since a day.
    fileprivate func standing(inbox: Int64, since day: Int64) throws(StoreFailure) -> InboxStanding
    {
        let failures: Int? = try value(
            "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM inbox_failures WHERE inbox_id = \(inbox) AND day >= \(day)"
        )
        // Forwards are counted by account: this adds those of the accounts whose mail goes to this
        // inbox now, since its confirmation.
        let forwarded: Int? = try value(
            """
            SELECT CAST(COALESCE(SUM(n.count), 0) AS BIGINT)
            FROM inboxes i
            JOIN accounts a ON a.user_id = i.user_id AND a.target_inbox = i.id
            JOIN daily_counters n ON n.account_id = a.id AND n.day >= \(day) AND n.kind = 1
            WHERE i.id = \(inbox) AND n.day >= i.failures_from
            """)
        return InboxStanding(failures: failures ?? 0, forwarded: forwarded ?? 0)
    }

    /// Resets the failures of an inbox, because it was confirmed, or because mail goes to it from
    /// this day on.
    func forgetFailures(inbox: Int64, _ change: Change) throws(StoreFailure) {
        try run(
            """
            UPDATE inboxes
            SET failures_from = \(Day.number(change.now)), suspended_at = NULL, suspended_failures = NULL, suspended_rules = NULL
            WHERE id = \(inbox)
            """)
        try run("DELETE FROM inbox_failures WHERE inbox_id = \(inbox)")
    }
}
