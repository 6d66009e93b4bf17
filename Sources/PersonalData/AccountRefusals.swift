// What was refused on its way to a user, and whom the user blocks: read and set on the user's own page.

import Accounts
import Database
import InternetMessage

/// Refusals of one kind that named one domain.
package struct AccountRefusal: Sendable, Hashable {
    package let kind: RefusalKind
    /// As the sender named it, which nothing proves; empty for those beyond the twenty of a day.
    package let domain: String
    /// Of the last 7, 30 and 90 days.
    package let week: Int
    package let month: Int
    package let quarter: Int
    /// Seconds since 1970.
    package let lastAt: Int64
}

extension UserExportRepository {
    /// Blocked senders of one account.
    package static var maximumBlocks: Int { 100 }

    /// What was refused for an account, the latest first, at most `limit`.
    /// - Parameter now: seconds since 1970.
    package func refusals(account: Int64, now: Int64, limit: Int = 20) throws(StoreFailure) -> [AccountRefusal] {
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
                kind: row["kind"], domain: row["domain"], week: row["week"], month: row["month"], quarter: row["quarter"],
                lastAt: row["last_at"])
        }
    }

    /// Whom the user blocks of an account: domains, each with all below it, and addresses, in order.
    package func blocks(account: Int64) throws(StoreFailure) -> [String] {
        try database.rows("SELECT value FROM account_blocks WHERE account_id = \(account) ORDER BY value").map {
            row throws(StoreFailure) in try row["value"]
        }
    }

    /// Blocks a domain or address of the account's team. Throws `invalid` for what is neither or not of the team, `limit` beyond a
    /// hundred, and `notFound` where the account is not the user's.
    package func block(user id: String, account: Int64, _ text: String, now: Int64) throws(StoreFailure) {
        let value = try Self.blocked(text)
        try database.write(.durable) { connection throws(StoreFailure) in
            try requireOwn(connection, user: id, account: account)
            let sources: [String] = try connection.values(
                """
                SELECT s.value FROM outbound_sources s JOIN accounts a ON a.team_id = s.team_id WHERE a.id = \(account)
                """)
            guard sources.contains(where: { Self.covers($0, value) || Self.covers(value, $0) }) else {
                throw .refused(.invalid, "mail from there does not come to this address")
            }
            let count: Int? = try connection.value("SELECT COUNT(*) AS count FROM account_blocks WHERE account_id = \(account)")
            guard (count ?? 0) < Self.maximumBlocks else {
                throw .refused(.limit, "you have blocked as many senders as one can: unblock one, or turn forwarding off")
            }
            try connection.run(
                """
                INSERT INTO account_blocks (account_id, value, created_at) VALUES (\(account), \(value), \(now))
                ON CONFLICT (account_id, value) DO NOTHING
                """)
        }
    }

    /// Takes mail from a blocked domain or address again. Throws `notFound` where the account is not the user's.
    package func unblock(user id: String, account: Int64, _ value: String) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try requireOwn(connection, user: id, account: account)
            try connection.run("DELETE FROM account_blocks WHERE account_id = \(account) AND value = \(value)")
        }
    }

    /// A domain or an address as it is stored: lower case, domains in A-labels.
    private static func blocked(_ text: String) throws(StoreFailure) -> String {
        let text = text.filter { !$0.isWhitespace }.trimmingPrefix("@")
        if let address = try? AddrSpec.typed(String(text)) { return address.folded.wireForm }
        guard !text.contains("@"), let domain = HostName(String(text)) else {
            throw .refused(.invalid, "this is neither a domain nor an address")
        }
        return domain.text
    }

    /// Whether a domain or address is the other one or has it in it.
    private static func covers(_ outer: String, _ inner: String) -> Bool {
        guard outer != inner else { return true }
        guard let outer = HostName(outer), let domain = inner.split(separator: "@").last.flatMap({ HostName(String($0)) }) else {
            return false
        }
        return domain.isWithin(outer)
    }
}
