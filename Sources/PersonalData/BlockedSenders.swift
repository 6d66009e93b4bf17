// The senders that users block, for one of their addresses.

import Accounts
import Database
import InternetMessage

extension UserExportRepository {
    /// The most blocked senders of one account.
    package static var maximumBlocks: Int { 100 }

    /// The senders that the user blocks for an account: domains, each with all its subdomains,
    /// and addresses, in order.
    package func blocks(account: Int64) throws(StoreFailure) -> [String] {
        try database.rows(
            "SELECT value FROM account_blocks WHERE account_id = \(account) ORDER BY value"
        ).map {
            row throws(StoreFailure) in try row["value"]
        }
    }

    /// Blocks a domain or address of the account's team. Throws `invalid` for other text or another
    /// team's sender, `limit` beyond a hundred, and `notFound` if the account is not the user's.
    package func block(
        user id: String, account: Int64, _ text: String, now: Int64
    ) throws(StoreFailure) {
        let value = try Self.blocked(text)
        try database.write(.durable) { connection throws(StoreFailure) in
            try requireOwn(connection, user: id, account: account)
            let sources: [String] = try connection.values(
                """
                SELECT s.value FROM outbound_sources s JOIN accounts a ON a.team_id = s.team_id WHERE a.id = \(account)
                """)
            guard sources.contains(where: { Self.covers($0, value) || Self.covers(value, $0) })
            else {
                throw .refused(.invalid, "mail from there does not come to this address")
            }
            let count: Int? = try connection.value(
                "SELECT COUNT(*) AS count FROM account_blocks WHERE account_id = \(account)")
            guard (count ?? 0) < Self.maximumBlocks else {
                throw .refused(
                    .limit,
                    "you have blocked as many senders as one can: unblock one, or turn forwarding off"
                )
            }
            try connection.run(
                """
                INSERT INTO account_blocks (account_id, value, created_at) VALUES (\(account), \(value), \(now))
                ON CONFLICT (account_id, value) DO NOTHING
                """)
        }
    }

    /// Unblocks a domain or address. Throws `notFound` if the account is not the user's.
    package func unblock(user id: String, account: Int64, _ value: String) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try requireOwn(connection, user: id, account: account)
            try connection.run(
                "DELETE FROM account_blocks WHERE account_id = \(account) AND value = \(value)")
        }
    }

    /// A domain or an address in stored form: lower case, domains in A-labels.
    private static func blocked(_ text: String) throws(StoreFailure) -> String {
        let text = text.filter { !$0.isWhitespace }.trimmingPrefix("@")
        if let address = try? AddrSpec.typed(String(text)) { return address.folded.wireForm }
        guard !text.contains("@"), let domain = HostName(String(text)) else {
            throw .refused(.invalid, "this is neither a domain nor an address")
        }
        return domain.text
    }

    /// Whether a domain or address equals the other one or contains it.
    static func covers(_ outer: String, _ inner: String) -> Bool {
        guard outer != inner else { return true }
        guard let outer = HostName(outer),
            let domain = inner.split(separator: "@").last.flatMap({ HostName(String($0)) })
        else {
            return false
        }
        return domain.isWithin(outer)
    }
}
