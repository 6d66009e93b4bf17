// The answer of /auth/introspect about a token (RFC 7662).

import Accounts
import Database

/// A token that is valid.
package struct ValidToken: Sendable, Hashable {
    package let clientID: String
    /// Words, with spaces between them.
    package let scope: String
    /// The user as the team knows them; nil for a client's own token.
    package let sub: String?
    /// Seconds since 1970; nil for a refresh token, which ends with the consent.
    package let expiresAt: Int64?
    /// Seconds since 1970; nil for an access token.
    package let issuedAt: Int64?
    /// When the user signed in, in seconds since 1970; nil for a client's own token.
    package let authenticatedAt: Int64?
    package let method: AuthenticationMethod
    package var isAccessToken: Bool { expiresAt != nil }
}

extension ProviderRepository {
    /// The token, if it is valid and was issued to an app of the client's team; nil for any other.
    /// A backend may check a token that another app of its team got.
    package func introspect(
        token: String, client: ProviderClient, now: Int64
    ) throws(StoreFailure) -> ValidToken? {
        let (access, refresh) = (
            secrets.hash(.accessToken, token), secrets.hash(.refreshToken, token)
        )
        let row = try database.row(
            """
            SELECT a.client_id, x.scopes, x.expires_at, NULL AS created_at, n.sub, x.refresh_id,
                r.authenticated_at, r.amr, r.acr
            FROM access_tokens x JOIN apps a ON a.id = x.app_id
            JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL AND g.team_id = \(client.teamNumber)
            LEFT JOIN refresh_tokens r ON r.id = x.refresh_id
            LEFT JOIN grants c ON c.id = r.grant_id AND c.state = 'authorized' AND c.generation = r.generation
            LEFT JOIN accounts n ON n.id = c.account_id AND n.team_id = g.team_id
            WHERE x.token_hash = \(access) AND x.expires_at > \(now)
            UNION ALL
            SELECT a.client_id, r.scopes, NULL, r.created_at, n.sub, r.id, r.authenticated_at, r.amr, r.acr
            FROM refresh_tokens r JOIN apps a ON a.id = r.app_id
            JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL AND g.team_id = \(client.teamNumber)
            JOIN grants c ON c.id = r.grant_id AND c.state = 'authorized' AND c.generation = r.generation
            JOIN accounts n ON n.id = c.account_id AND n.team_id = g.team_id
            WHERE r.token_hash = \(refresh)
            """)
        guard let row else { return nil }
        let (sub, signIn): (String?, Int64?) = try (row["sub"], row["refresh_id"])
        // A user's token whose consent ended.
        guard sub != nil || signIn == nil else { return nil }
        return try ValidToken(
            clientID: row["client_id"], scope: row["scopes"], sub: sub,
            expiresAt: row["expires_at"], issuedAt: row["created_at"],
            authenticatedAt: row["authenticated_at"], method: AuthenticationMethod(row: row))
    }
}
