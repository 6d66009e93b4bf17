// The answer of /auth/userinfo about the user of an access token (OpenID Connect Core section 5.3).

import Accounts
import Database

/// The data about a user that an app may have.
package struct UserInfo: Sendable, CustomStringConvertible, CustomReflectable {
    package let subject: TokenSubject
    /// The name that the user gave to the app's team, if the scope includes it.
    package let name: PersonName?

    package var description: String { "<user info>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ProviderRepository {
    /// The user of an access token; nil if it is unknown, has expired, its consent ended, or it
    /// is a client's own token.
    package func userInfo(accessToken token: String, now: Int64) throws(StoreFailure) -> UserInfo? {
        let hash = secrets.hash(.accessToken, token)
        // A write: during a transfer, this moves the grant with its app, as a refresh does.
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT a.id AS app_id, a.client_id, a.group_id, a.is_public, a.id_token_algorithm, t.id AS team_id, t.handle,
                    x.scopes, r.grant_id, r.org_id, r.authenticated_at, r.amr, r.acr
                FROM access_tokens x JOIN apps a ON a.id = x.app_id JOIN app_groups g ON g.id = a.group_id
                JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
                JOIN refresh_tokens r ON r.id = x.refresh_id
                JOIN grants c ON c.id = r.grant_id AND c.state = 'authorized' AND c.generation = r.generation
                WHERE x.token_hash = \(hash) AND x.expires_at > \(now)
                """)
            guard let row else { return nil }
            let client = try ProviderClient(
                clientID: row["client_id"], appNumber: row["app_id"], groupNumber: row["group_id"],
                teamNumber: row["team_id"],
                teamID: row["handle"], keys: [], isPublic: row["is_public"],
                identityTokenAlgorithm: row["id_token_algorithm"])
            guard let account = try account(connection, grant: row["grant_id"], client, now: now)
            else { return nil }
            let scopes = Self.scopes(try row["scopes"])
            let subject = try subject(
                connection, clientID: client.clientID, group: client.groupNumber, account: account,
                scopes: scopes, nonce: nil,
                status: nil, orgID: row["org_id"], authenticatedAt: row["authenticated_at"],
                method: AuthenticationMethod(row: row), sessionID: nil, now: now)
            guard UserScope.haveName(scopes) else { return UserInfo(subject: subject, name: nil) }
            let known = try connection.row(
                """
                SELECT \(GivenName.columns), u.id AS user_number
                FROM accounts a JOIN users u ON u.id = a.user_id \(GivenName.join) WHERE a.id = \(account.number)
                """)
            guard let known else { return UserInfo(subject: subject, name: nil) }
            return try UserInfo(
                subject: subject, name: users.sealer.teamName(known, user: known["user_number"]))
        }
    }
}
