// Permanent failures of inboxes: recorded once for each relayed message. If there are too many, forwarding is suspended.

import Database

/// How many forwarded messages an inbox got and refused within a window of days.
package struct InboxStanding: Sendable, Hashable {
    /// Permanent failures.
    package let failures: Int
    /// Messages forwarded to it.
    package let forwarded: Int
}

/// The outcome of a reported failure.
package enum BounceRecord: Sendable, Hashable {
    /// Already known, or the account is gone.
    case known
    case recorded
    /// Recorded, and forwarding to the inbox is suspended from now on.
    case suspended
}

/// Records the permanent failures of inboxes.
package struct BounceRepository: Sendable {
    let events: AccountEvents
    private var database: any Database { events.database }

    /// A reported failure.
    package struct Failure: Sendable {
        let account: Int64
        let mark: [UInt8]
        let expiresAt: Int64
        let sentDay: Int64
        let rules: Int64

        /// - Parameters:
        ///   - mark: the nonce of the return path, or a hash of it, so that the failure counts once, until `expiresAt`.
        ///   - sentDay: when the message was relayed, in days since 1970.
        ///   - rules: the version of the rules by which it counts.
        package init(account: Int64, mark: [UInt8], expiresAt: Int64, sentDay: Int64, rules: Int64 = 1) {
            self.account = account
            self.mark = mark
            self.expiresAt = expiresAt
            self.sentDay = sentDay
            self.rules = rules
        }
    }

    /// The actor of suspensions in the audit.
    private static let actor = "relay"

    /// Records a permanent failure of the inbox that the account's mail goes to now, and counts it for the account.
    /// - Parameters:
    ///   - days: the window that counts, today included.
    ///   - isReached: whether that standing is bad enough to suspend forwarding; called in the same transaction.
    package func record(
        _ failure: Failure, days: Int, now: Int64, isReached: (InboxStanding) -> Bool
    ) throws(StoreFailure) -> BounceRecord {
        let today = Day.number(now)
        return try events.write(at: now) { connection, tracker throws(StoreFailure) in
            let isNew = try connection.run(
                """
                INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                SELECT id, 'bounce', \(failure.mark), \(failure.expiresAt) FROM accounts WHERE id = \(failure.account)
                ON CONFLICT (account_id, purpose, mark) DO NOTHING
                """)
            guard isNew > 0 else { return .known }
            try connection.count(DailyCounter(accountNumber: failure.account, day: today, kind: .bouncedPermanently, count: 1))
            let row = try connection.row(
                """
                SELECT i.id, i.failures_from, i.suspended_at, u.handle AS user_handle, i.number
                FROM accounts a
                JOIN users u ON u.id = a.user_id
                JOIN inboxes i ON i.id = a.target_inbox
                WHERE a.id = \(failure.account)
                """)
            // Mail that was relayed before the inbox was confirmed, or to another inbox, says nothing about this one.
            guard let row, failure.sentDay >= (try row["failures_from"]) else { return .recorded }
            let inbox: Int64 = try row["id"]
            let suspendedAt: Int64? = try row["suspended_at"]
            let (user, number): (String, Int64) = try (row["user_handle"], row["number"])
            try connection.run(
                """
                INSERT INTO inbox_failures (inbox_id, day, count) VALUES (\(inbox), \(today), 1)
                ON CONFLICT (inbox_id, day) DO UPDATE SET count = inbox_failures.count + 1
                """)
            guard suspendedAt == nil else { return .recorded }
            let standing = try connection.standing(inbox: inbox, since: Self.first(today, days))
            guard isReached(standing) else { return .recorded }
            try tracker.snapshot(.inbox(inbox))
            try connection.run(
                """
                UPDATE inboxes SET suspended_at = \(now), suspended_failures = \(standing.failures), suspended_rules = \(failure.rules)
                WHERE id = \(inbox)
                """)
            try connection.audit(
                Change(actor: Self.actor, now: now), "inbox.suspend", "user:\(user)",
                "inbox \(number), \(standing.failures) permanent failures, \(standing.forwarded) messages forwarded, \(days) days"
            )
            return .suspended
        }
    }

    /// The standing of an inbox.
    /// - Parameter days: the window, today included.
    package func standing(of inbox: Inbox, days: Int, now: Int64) throws(StoreFailure) -> InboxStanding {
        try database.read { connection throws(StoreFailure) in
            try connection.standing(inbox: inbox.id, since: Self.first(Day.number(now), days))
        }
    }

    private static func first(_ today: Int64, _ days: Int) -> Int64 { today - Int64(max(1, days)) + 1 }
}

extension DatabaseConnection {
    /// Failures of an inbox, and messages to it, since a day.
    fileprivate func standing(inbox: Int64, since day: Int64) throws(StoreFailure) -> InboxStanding {
        let failures: Int? = try value(
            "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM inbox_failures WHERE inbox_id = \(inbox) AND day >= \(day)")
        // Forwards are counted by account: take the accounts whose mail goes to this inbox now, since it was confirmed.
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

    /// Resets the failures of an inbox: it was confirmed, or mail goes to it from today on.
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
