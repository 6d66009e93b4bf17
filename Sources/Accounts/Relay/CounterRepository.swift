// Daily counters, their limits, and marks of actions that may happen once.

import Database

/// Counts for accounts and days.
package struct CounterRepository: Sendable {
    let database: any Database

    /// Counts one more unless that would exceed the limit. Returns whether it was counted. Exact
    /// over all processes and hosts.
    package func reserve(
        account: Int64, kind: CounterKind, day: Int64, limit: Int
    ) throws(StoreFailure) -> Bool {
        try reserve(account: account, kind: kind, day: day, limit: limit, adding: 0) != nil
    }

    /// As `reserve`, and adds the counts that were collected in memory before. These are written
    /// even beyond the limit, which may be 0 or less by then.
    /// - Returns: the count with the new one; nil if that would exceed the limit.
    func reserve(
        account: Int64, kind: CounterKind, day: Int64, limit: Int, adding pending: Int
    ) throws(StoreFailure) -> Int? {
        guard limit > 0 || pending > 0 else { return nil }
        return try database.writeRow(.relaxed) { connection throws(StoreFailure) in
            if pending > 0 {
                try connection.count(
                    DailyCounter(accountNumber: account, day: day, kind: kind, count: pending))
            }
            guard limit > 0 else { return nil }
            return try connection.value(
                """
                INSERT INTO daily_counters (account_id, day, kind, count) VALUES (\(account), \(day), \(kind), 1)
                ON CONFLICT (account_id, day, kind) DO UPDATE SET count = daily_counters.count + 1
                    WHERE daily_counters.count < \(limit)
                RETURNING count
                """)
        }
    }

    /// Takes back a count of `reserve`, for a message that was not accepted after all.
    package func release(account: Int64, kind: CounterKind, day: Int64) throws(StoreFailure) {
        try database.writeRow(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE daily_counters SET count = count - 1
                WHERE account_id = \(account) AND day = \(day) AND kind = \(kind) AND count >= 1
                """)
        }
    }

    /// The result that `reserve` would have now, without counting: for `postern explain`.
    package func wouldReserve(
        account: Int64, kind: CounterKind, day: Int64, limit: Int
    ) throws(StoreFailure) -> Bool {
        try count(account: account, kind: kind, day: day) < limit
    }

    /// The present count; 0 if nothing was counted.
    package func count(account: Int64, kind: CounterKind, day: Int64) throws(StoreFailure) -> Int {
        try database.value(
            "SELECT count FROM daily_counters WHERE account_id = \(account) AND day = \(day) AND kind = \(kind)"
        ) ?? 0
    }

    /// The account's counters since a day, oldest first.
    package func counters(account: Int64, since day: Int64) throws(StoreFailure) -> [DailyCounter] {
        try database.rows(
            "SELECT day, kind, count FROM daily_counters WHERE account_id = \(account) AND day >= \(day) ORDER BY day, kind"
        ).map { row throws(StoreFailure) in
            try DailyCounter(
                accountNumber: account, day: row["day"], kind: row["kind"], count: row["count"])
        }
    }

    /// Adds many counts in one transaction. Accounts that no longer exist are skipped.
    package func add(_ counters: [DailyCounter]) throws(StoreFailure) {
        guard !counters.isEmpty else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            // Every host locks rows in the same order, so that no two hosts block each other.
            for counter in counters.sorted(by: {
                ($0.accountNumber, $0.day, $0.kind.rawValue) < (
                    $1.accountNumber, $1.day, $1.kind.rawValue
                )
            }) { try connection.count(counter) }
        }
    }

    /// Whether this is the first automatic note between the account and the correspondent
    /// on that day; remembers it.
    /// - Parameter correspondentKey: a keyed hash of the correspondent's address, never the
    ///   address; deleted two days later.
    package func automaticReplyReserve(
        account: Int64, correspondentKey: [UInt8], day: Int64
    ) throws(StoreFailure) -> Bool {
        try once(
            account: account, purpose: "automatic",
            mark: correspondentKey
                + (0..<8).map { UInt8(truncatingIfNeeded: day >> (8 * Int64($0))) },
            expiresAt: (day + 2) * 86_400)
    }

    /// The result that `automaticReplyReserve` would have now, without remembering it.
    package func wouldReserveAutomaticReply(
        account: Int64, correspondentKey: [UInt8], day: Int64
    ) throws(StoreFailure) -> Bool {
        let mark =
            correspondentKey + (0..<8).map { UInt8(truncatingIfNeeded: day >> (8 * Int64($0))) }
        return try database.row(
            """
            SELECT expires_at FROM once_marks WHERE account_id = \(account) AND purpose = 'automatic' AND mark = \(mark)
            """) == nil
    }

    /// Whether this is the first time for the mark (a keyed hash or a nonce) of this account;
    /// remembers it until it expires. Bounces use it once for each nonce of a return path. False if
    /// the account was deleted.
    package func once(
        account: Int64, purpose: String, mark: [UInt8], expiresAt: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                SELECT id, \(purpose), \(mark), \(expiresAt) FROM accounts WHERE id = \(account)
                ON CONFLICT (account_id, purpose, mark) DO NOTHING
                """) > 0
        }
    }

    /// Remembers many marks in one transaction. Accounts that no longer exist are skipped.
    /// - Parameter old: another purpose, under which the same marks are deleted.
    package func mark(
        purpose: String, _ marks: [(account: Int64, mark: [UInt8], expiresAt: Int64)],
        _ durability: Durability = .relaxed,
        inPlaceOf old: String? = nil
    ) throws(StoreFailure) {
        try database.write(durability) { connection throws(StoreFailure) in
            for mark in marks.sorted(by: {
                $0.account == $1.account
                    ? $0.mark.lexicographicallyPrecedes($1.mark) : $0.account < $1.account
            }) {
                if let old {
                    try connection.run(
                        "DELETE FROM once_marks WHERE account_id = \(mark.account) AND purpose = \(old) AND mark = \(mark.mark)"
                    )
                }
                try connection.run(
                    """
                    INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                    SELECT id, \(purpose), \(mark.mark), \(mark.expiresAt) FROM accounts WHERE id = \(mark.account)
                    ON CONFLICT (account_id, purpose, mark) DO UPDATE SET expires_at = excluded.expires_at
                    """)
            }
        }
    }

    /// Deletes marks; marks that do not exist are ignored.
    package func unmark(account: Int64, purpose: String, _ marks: [[UInt8]]) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            for mark in marks {
                try connection.run(
                    "DELETE FROM once_marks WHERE account_id = \(account) AND purpose = \(purpose) AND mark = \(mark)"
                )
            }
        }
    }

    /// Whether a mark is remembered and has not expired.
    package func isMarked(
        account: Int64, purpose: String, mark: [UInt8], now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            try connection.row(
                """
                SELECT expires_at FROM once_marks
                WHERE account_id = \(account) AND purpose = \(purpose) AND mark = \(mark) AND expires_at > \(now)
                """) != nil
        }
    }

    /// Sums up counters of days before `day`, and deletes expired marks, at most `limit` of each at
    /// a time, so that mail does not wait. Returns the largest of the numbers: if it is `limit`,
    /// there may be more.
    package func deleteExpired(
        countersBefore day: Int64, now: Int64, limit: Int = 1000
    ) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let counters = try sumUp(connection, before: day, limit: limit)
            let marks = try connection.run(
                """
                DELETE FROM once_marks WHERE (mark, account_id, purpose) IN
                    (SELECT mark, account_id, purpose FROM once_marks WHERE expires_at <= \(now) LIMIT \(limit))
                """)
            let failures = try connection.run(
                """
                DELETE FROM inbox_failures WHERE (inbox_id, day) IN
                    (SELECT inbox_id, day FROM inbox_failures WHERE day < \(day) LIMIT \(limit))
                """)
            return max(counters, marks, failures)
        }
    }

    /// Moves the counts of old days into one sum for each account and kind. Returns the number of
    /// rows that went.
    private func sumUp(
        _ connection: any DatabaseConnection, before day: Int64, limit: Int
    ) throws(StoreFailure) -> Int {
        let gone = try connection.takePast(.counters, where: "x.day < \(day)", limit: limit)
        var sums: [CounterSum: (count: Int64, lastDay: Int64)] = [:]
        for row in gone {
            let sum = try CounterSum(account: row["account_id"], kind: row["kind"])
            let (count, lastDay) = sums[sum] ?? (0, .min)
            sums[sum] = try (count + row["count"], max(lastDay, row["day"]))
        }
        // Every host locks rows in the same order, so that no two hosts block each other.
        let rows = sums.sorted { $0.key < $1.key }.map { sum, value in
            [sum.account, sum.kind, value.count, value.lastDay]
        }
        try connection.insert(
            rows, into: "counter_totals (account_id, kind, count, last_day)",
            """
            ON CONFLICT (account_id, kind) DO UPDATE SET count = counter_totals.count + excluded.count,
                last_day = CASE WHEN excluded.last_day > counter_totals.last_day THEN excluded.last_day
                    ELSE counter_totals.last_day END
            """)
        return gone.count
    }
}

/// What one row of `counter_totals` is about.
private struct CounterSum: Hashable, Comparable {
    let account, kind: Int64

    static func < (one: CounterSum, other: CounterSum) -> Bool {
        (one.account, one.kind) < (other.account, other.kind)
    }
}

extension DatabaseConnection {
    /// Adds to one counter; does nothing if the account was deleted.
    func count(_ counter: DailyCounter) throws(StoreFailure) {
        try run(
            """
            INSERT INTO daily_counters (account_id, day, kind, count)
            SELECT id, \(counter.day), \(counter.kind), \(counter.count) FROM accounts WHERE id = \(counter.accountNumber)
            ON CONFLICT (account_id, day, kind) DO UPDATE SET count = daily_counters.count + excluded.count
            """)
    }
}
