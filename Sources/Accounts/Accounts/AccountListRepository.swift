// Accounts page by page, as the API lists them.

import Database
import InternetMessage

/// An account in a list.
package struct AccountSummary: Sendable, Hashable {
    package struct GrantSummary: Sendable, Hashable {
        /// `client_id` of the primary app; nil for mail alone.
        package let app: String?
        package let state: Grant.State
    }

    /// The store's own number; later accounts have higher numbers.
    package let number: Int64
    package let teamID: String
    /// Nil for an account of an external issuer.
    package let userID: String?
    package let sub: String
    /// The current relay address; nil if there is none.
    package let address: AddrSpec?
    package let isForwardingOn: Bool
    package let grants: [GrantSummary]
    package let createdAt: Int64
}

package struct AccountListRepository: Sendable {
    let database: any Database

    /// Accounts after the account `after`, oldest first.
    /// - Parameters:
    ///   - team: the store's number; nil for all.
    ///   - user: the operator's identifier; nil for all. Throws `notFound`.
    package func accounts(
        team: Int64?, user: String? = nil, after: Int64 = 0, limit: Int
    ) throws(StoreFailure) -> [AccountSummary] {
        try database.read { connection throws(StoreFailure) in
            var conditions: [SQL] = ["1 = 1"]
            if let team { conditions.append("a.team_id = \(team)") }
            if let user { conditions.append("a.user_id = \(try connection.userNumber(user))") }
            let rows = try connection.rows(
                """
                SELECT a.id, t.handle AS team, u.handle AS user_handle, a.sub, c.local_part, c.domain,
                    COALESCE(c.forwarding_on, 0) AS forwarding_on, a.created_at
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL LEFT JOIN users u ON u.id = a.user_id
                LEFT JOIN relay_addresses c ON c.account_id = a.id AND c.is_current = 1
                WHERE a.id > \(after) AND \(SQL.all(conditions)) ORDER BY a.id LIMIT \(limit)
                """)
            return try rows.map { row throws(StoreFailure) in
                let number: Int64 = try row["id"]
                let grants = try connection.rows(
                    """
                    SELECT p.primary_client_id, g.state FROM grants g JOIN app_groups p ON p.id = g.group_id
                    JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = \(number) ORDER BY g.id
                    """
                ).map { row throws(StoreFailure) in
                    try AccountSummary.GrantSummary(
                        app: row["primary_client_id"], state: row["state"])
                }
                let local: String? = try row["local_part"]
                return try AccountSummary(
                    number: number, teamID: row["team"], userID: row["user_handle"],
                    sub: row["sub"],
                    address: local == nil ? nil : AddrSpec(row: row),
                    isForwardingOn: row["forwarding_on"], grants: grants,
                    createdAt: row["created_at"])
            }
        }
    }
}
