// Data that a user already gave to an app's team, so that a sign-in page asks only for new data.

import Accounts
import Database
import InternetMessage

/// The data that a user gave to the team of an app.
package struct StandingConsent: Sendable, Hashable {
    /// Whether the consent to the app's group is live.
    package let isLive: Bool
    /// Whether any consent to the team is live. If it is, the team keeps everything that the user
    /// gave it.
    package let isTeamsLive: Bool
    package let emailKind: EmailKind
    /// Whether an app of the group asked for the name before, and the user agreed.
    package let sharesName: Bool
    /// The same for the address.
    package let sharesEmail: Bool
    /// The name that the team has; nil if it has none.
    package let name: PersonName?
    /// The relay address that the team has; nil if none.
    package let address: AddrSpec?
    /// `Inbox.number` of the inbox that the user chose for this team; nil for the default one.
    package let inboxNumber: Int64?
}

extension StandingConsent: CustomStringConvertible, CustomReflectable {
    package var description: String { "<consent>" }
    package var customMirror: Mirror { Mirror(self, children: ["isLive": isLive]) }
}

extension ProviderRepository {
    /// The data that the team of an app has from a user; nil for none. Refused (`notFound`) if the
    /// app or the user does not exist.
    package func consent(user id: String, clientID: String) throws(StoreFailure) -> StandingConsent?
    {
        // One statement, because every step of a sign-in reads this.
        let row = try database.row(
            """
            SELECT a.id, a.email_kind, \(GivenName.columns), u.id AS user_number, i.number AS inbox_number, r.local_part, r.domain,
                CASE WHEN g.state = 'authorized' THEN 1 ELSE 0 END AS is_live,
                CASE WHEN \(Self.wasGiven(Self.hasEmail)) THEN 1 ELSE 0 END AS was_given_email,
                CASE WHEN \(Self.wasGiven(Self.hasName)) THEN 1 ELSE 0 END AS was_given_name,
                CASE WHEN \(GrantRepository.isLive("a.id")) THEN 1 ELSE 0 END AS is_teams_live
            FROM apps y JOIN app_groups p ON p.id = y.group_id JOIN teams m ON m.id = p.team_id AND m.removed_at IS NULL
            JOIN users u ON u.handle = \(id)
            LEFT JOIN accounts a ON a.user_id = u.id AND \(SQL.filter("a.team_id")) = m.id
            \(GivenName.join)
            LEFT JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
            LEFT JOIN inboxes i ON i.id = a.inbox_id
            LEFT JOIN grants g ON g.account_id = a.id AND \(SQL.filter("g.group_id")) = p.id
            WHERE y.client_id = \(clientID)
            """)
        guard let row else {
            try database.read { connection throws(StoreFailure) in
                _ = try (connection.appGroup(clientID: clientID), connection.userNumber(id))
            }
            return nil
        }
        guard try row["id"] as Int64? != nil else { return nil }
        let (local, sharesName, wasGivenName): (String?, Bool, Bool) = try (
            row["local_part"], row["shares_name"], row["was_given_name"]
        )
        return try StandingConsent(
            isLive: row["is_live"], isTeamsLive: row["is_teams_live"], emailKind: row["email_kind"],
            sharesName: sharesName && wasGivenName, sharesEmail: row["was_given_email"],
            name: users.sealer.teamName(row, user: row["user_number"]),
            address: local == nil ? nil : AddrSpec(row: row), inboxNumber: row["inbox_number"])
    }

    /// A condition: a code or a refresh token of grant `g` has such scopes.
    private static func wasGiven(_ scopes: SQL) -> SQL {
        """
        (EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.grant_id = g.id AND \(scopes))
            OR EXISTS (SELECT 1 FROM authorization_codes t WHERE t.grant_id = g.id AND \(scopes)))
        """
    }

    /// Scopes are words with a space between.
    private static let hasEmail: SQL = "' ' || t.scopes || ' ' LIKE '% email %'"
    private static let hasName: SQL =
        "(' ' || t.scopes || ' ' LIKE '% name %' OR ' ' || t.scopes || ' ' LIKE '% profile %')"
}
