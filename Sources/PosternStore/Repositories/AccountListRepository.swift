// Accounts page by page, as the API lists them.

import InternetMessage

/// An account in a list.
package struct AccountSummary: Sendable, Hashable {
    package struct GrantSummary: Sendable, Hashable {
        /// `client_id` of the primary app; nil for mail alone.
        package let app: String?
        package let state: Grant.State
    }

    /// The store's own number: later ones are higher.
    package let number: Int64
    package let teamID: String
    /// Nil for an account of an external issuer.
    package let userID: String?
    package let sub: String
    /// The current relay address; nil where there is none.
    package let address: AddrSpec?
    package let isForwardingOn: Bool
    package let grants: [GrantSummary]
    package let createdAt: Int64
}

package struct AccountListRepository: Sendable {
    let database: any Database

    /// Accounts from the one after `after` on, oldest first.
    /// - Parameters:
    ///   - team: the store's number; nil for all.
    ///   - user: the operator's identifier; nil for all. Throws `StoreRefusal` (`notFound`).
    package func accounts(team: Int64?, user: String? = nil, after: Int64 = 0, limit: Int) throws -> [AccountSummary] {
        try database.read { connection in
            let user = try user.map { try connection.userNumber($0) }
            let rows = try connection.rows(
                """
                SELECT a.id, t.handle, u.handle, a.sub, c.local_part, c.domain, c.forwarding_on, a.created_at
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL LEFT JOIN users u ON u.id = a.user_id
                LEFT JOIN relay_addresses c ON c.account_id = a.id AND c.is_current = 1
                WHERE a.id > ?1 AND (?2 = 0 OR a.team_id = ?2) AND (?3 = 0 OR a.user_id = ?3) ORDER BY a.id LIMIT ?4
                """, [.integer(after), .integer(team ?? 0), .integer(user ?? 0), .integer(Int64(limit))])
            return try rows.map { row in
                let number = try row.integer(0)
                let grants = try connection.rows(
                    """
                    SELECT p.primary_client_id, g.state FROM grants g JOIN app_groups p ON p.id = g.group_id
                    JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = ?1 ORDER BY g.id
                    """, [.integer(number)]
                ).map {
                    AccountSummary.GrantSummary(
                        app: try $0.optionalText(0), state: Grant.State(rawValue: try $0.text(1)) ?? .revoked)
                }
                return AccountSummary(
                    number: number, teamID: try row.text(1), userID: try row.optionalText(2), sub: try row.text(3),
                    address: row.isNull(4) ? nil : AddrSpec(localPart: try row.text(4), domain: try row.text(5)),
                    isForwardingOn: try row.optionalInteger(6) == 1, grants: grants, createdAt: try row.integer(7))
            }
        }
    }
}
