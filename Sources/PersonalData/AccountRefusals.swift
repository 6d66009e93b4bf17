// Mail to a user that was refused, shown only to the user: counts by day, kind and the domain
// that the sender named.

import Accounts
import Database
import RelayCore

/// Refusals of one kind that named one domain.
package struct AccountRefusal: Sendable, Hashable {
    package let kind: UserRefusal
    /// As the sender named it, without proof; empty for domains beyond the twenty of a day.
    package let domain: String
    /// In the last 7, 30 and 90 days.
    package let week: Int
    package let month: Int
    package let quarter: Int
    /// Seconds since 1970.
    package let lastAt: Int64
}

/// Refusals grouped by account, day, kind and domain.
struct AccountRefusals {
    /// Distinct domains kept for an account and day, because a sender can name any number.
    /// Others count without a domain.
    static let maximumDomains = 20
    /// Days for which they are kept: the page shows the same number.
    static let days: Int64 = 90

    private struct Key: Hashable, Comparable {
        let account: Int64
        let day: Int64
        let kind: UserRefusal
        let domain: String

        static func < (left: Key, right: Key) -> Bool {
            (left.account, left.day, left.kind.rawValue, left.domain) < (
                right.account, right.day, right.kind.rawValue, right.domain
            )
        }
    }

    private var counts: [Key: (count: Int, last: Int64)] = [:]

    init(_ events: [RefusedForward]) {
        for event in events {
            guard let kind = event.reply.facts.forUser else { continue }
            let domain = event.attribution.author.folded.domain
            let key = Key(
                account: event.attribution.account.stored, day: Day.number(event.at), kind: kind,
                domain: domain.utf8.count <= 253 ? domain : "")
            let known = counts[key] ?? (0, 0)
            counts[key] = (known.count + 1, max(known.last, event.at))
        }
    }

    /// Adds them to the stored counts. Every host locks rows in the same order, so that two hosts
    /// never wait for each other.
    func add(to connection: any DatabaseConnection) throws(StoreFailure) {
        for (key, value) in counts.sorted(by: { $0.key < $1.key }) {
            let others: [String] = try connection.values(
                """
                SELECT DISTINCT domain FROM account_refusals
                WHERE account_id = \(key.account) AND day = \(key.day) AND domain <> \(key.domain)
                """)
            let domain = others.count < Self.maximumDomains ? key.domain : ""
            try connection.run(
                """
                INSERT INTO account_refusals (account_id, day, kind, domain, count, last_at)
                SELECT a.id, \(key.day), \(key.kind), \(domain), \(value.count), \(value.last) FROM accounts a
                WHERE a.id = \(key.account)
                ON CONFLICT (account_id, day, kind, domain) DO UPDATE
                    SET count = account_refusals.count + excluded.count, last_at = excluded.last_at
                """)
        }
    }
}

extension Store {
    /// Collects refusals, for teams and for users.
    package func refusalBuffer() -> RejectionBuffer {
        RejectionBuffer { events throws(StoreFailure) in try self.add(refusals: events) }
    }

    /// Stores refusals, for teams (`RejectionRepository`) and for users, in one transaction.
    package func add(refusals events: [RefusedForward]) throws(StoreFailure) {
        try rejections.add(events) { connection throws(StoreFailure) in
            try AccountRefusals(events).add(to: connection)
            try AddressUses(events).add(to: connection, index)
        }
    }
}

extension UserExportRepository {
    /// Deletes refusals older than the 90 days that users see, at most `limit`; returns how many.
    package func deleteRefusals(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        let day = Day.number(now) - AccountRefusals.days
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM account_refusals WHERE (account_id, day, kind, domain) IN
                    (SELECT account_id, day, kind, domain FROM account_refusals WHERE day < \(day) LIMIT \(limit))
                """)
        }
    }

    /// The refusals of an account, the latest first, at most `limit`.
    /// - Parameter now: seconds since 1970.
    package func refusals(
        account: Int64, now: Int64, limit: Int = 20
    ) throws(StoreFailure) -> [AccountRefusal] {
        let today = Day.number(now)
        return try database.rows(
            """
            SELECT kind, domain, MAX(last_at) AS last_at,
                CAST(SUM(CASE WHEN day > \(today - 7) THEN count ELSE 0 END) AS BIGINT) AS week,
                CAST(SUM(CASE WHEN day > \(today - 30) THEN count ELSE 0 END) AS BIGINT) AS month,
                CAST(SUM(count) AS BIGINT) AS quarter
            FROM account_refusals WHERE account_id = \(account) AND day > \(today - 90)
            GROUP BY kind, domain ORDER BY MAX(last_at) DESC, kind, domain LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in
            try AccountRefusal(
                kind: row["kind"], domain: row["domain"], week: row["week"], month: row["month"],
                quarter: row["quarter"],
                lastAt: row["last_at"])
        }
    }
}
