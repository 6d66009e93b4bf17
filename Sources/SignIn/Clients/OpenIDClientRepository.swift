// Apps as OpenID Connect clients: authentication, token algorithm, and post-logout redirect URIs.

import Accounts
import Database
import MailCrypto
import Support

/// An app's registration as a client (OpenID Connect Dynamic Client Registration section 2,
/// done by the operator).
package struct ClientSettings: Sendable, Hashable {
    /// Whether the client has no secret: it authenticates by PKCE alone, and its
    /// refresh tokens serve once.
    package var isPublic: Bool
    /// `id_token_signed_response_alg`.
    package var algorithm: SignatureAlgorithm
    /// `backchannel_logout_uri`: the address that gets notices of ended sessions; nil for none.
    package var logoutURI: String?

    /// For a new client: the default that libraries expect (OpenID Connect Dynamic Client
    /// Registration section 2).
    package static let standardAlgorithm = SignatureAlgorithm.rs256

    package init(isPublic: Bool, algorithm: SignatureAlgorithm, logoutURI: String? = nil) {
        self.isPublic = isPublic
        self.algorithm = algorithm
        self.logoutURI = logoutURI
    }
}

/// A client secret that Postern issued, without the secret.
package struct IssuedClientSecret: Sendable, Hashable {
    /// 8 characters of base32: also the second part of the secret.
    package let name: String
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// Registers the credentials of clients.
package struct OpenIDClientRepository: Sendable {
    /// The most secrets of one app: one in use, and one that replaces it.
    package static let maximumSecrets = 2
    /// The most post-logout redirect URIs of one app.
    package static let maximumLogoutRedirects = 50

    let database: any Database
    let secrets: SecretHash

    // MARK: Settings

    /// An app's registration. Throws `notFound`.
    package func settings(team id: String, clientID: String) throws(StoreFailure) -> ClientSettings
    {
        try database.read { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            let row = try connection.row(
                "SELECT is_public, id_token_algorithm, backchannel_logout_uri FROM apps WHERE id = \(app)"
            )
            guard let row else { throw .permanent(.unexpectedData, "an app disappeared") }
            return try ClientSettings(
                isPublic: row["is_public"], algorithm: row["id_token_algorithm"],
                logoutURI: row["backchannel_logout_uri"])
        }
    }

    /// Changes an app's registration. Refuses to make an app with secrets public, and a `logoutURI`
    /// that is not https, unless it is of this machine.
    package func set(
        _ settings: ClientSettings, team id: String, clientID: String, _ change: Change
    ) throws(StoreFailure) {
        if let uri = settings.logoutURI {
            let url = try EndpointURL(uri, name: "backchannel_logout_uri")
            guard
                url.isSecure
                    || ["127.0.0.1", "::1"].contains(where: { url.host.hasSameOctets(as: $0) })
            else {
                throw .refused(.invalid, "backchannel_logout_uri must begin with https://")
            }
        }
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            let issued = try issued(connection, app: app)
            guard !settings.isPublic || issued.isEmpty else {
                throw .refused(
                    .unmet,
                    "app \(clientID) has client secrets: revoke them first (postern app secret revoke)"
                )
            }
            try connection.run(
                """
                UPDATE apps SET is_public = \(settings.isPublic), id_token_algorithm = \(settings.algorithm),
                    backchannel_logout_uri = \(settings.logoutURI)
                WHERE id = \(app)
                """)
            let logout = settings.logoutURI.map { " logout \($0)" } ?? ""
            try connection.audit(
                change, "app.client", "team:\(id)",
                "\(clientID) \(settings.isPublic ? "public" : "confidential") \(settings.algorithm.rawValue)\(logout)"
            )
        }
    }

    // MARK: Secrets

    /// Issues a client secret, which is shown once. Refused beyond
    /// `maximumSecrets`, and for a public app.
    /// - Parameter show: shows the secret before it is stored; if it throws, no secret is issued.
    ///   It is called again if the transaction is repeated.
    package func issueSecret(
        team id: String, clientID: String, _ change: Change,
        show: (String) throws(StoreFailure) -> Void = { _ in }
    ) throws(StoreFailure) -> (secret: String, issued: IssuedClientSecret) {
        let name = String(try SecretHash.newToken().prefix(8))
        let secret = "ps_\(name)_\(try SecretHash.newToken())"
        return try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            guard try connection.value("SELECT is_public FROM apps WHERE id = \(app)") != 1 else {
                throw .refused(
                    .unmet,
                    "app \(clientID) is public and has no secret: see postern app client \(id) \(clientID) --no-public"
                )
            }
            guard try issued(connection, app: app).count < Self.maximumSecrets else {
                throw .refused(
                    .limit,
                    "app \(clientID) has \(Self.maximumSecrets) client secrets, which is the maximum: revoke the one that is no "
                        + "longer used")
            }
            try connection.run(
                """
                INSERT INTO client_secrets (app_id, name, secret_hash, created_at)
                VALUES (\(app), \(name), \(secrets.hash(.clientSecret, secret)), \(change.now))
                """)
            try connection.audit(change, "app.secret.issue", "team:\(id)", "\(clientID) \(name)")
            try show(secret)
            return (secret, IssuedClientSecret(name: name, createdAt: change.now))
        }
    }

    /// An app's secrets, the oldest first.
    package func secrets(
        team id: String, clientID: String
    ) throws(StoreFailure) -> [IssuedClientSecret] {
        try database.read { connection throws(StoreFailure) in
            try issued(connection, app: connection.app(team: id, clientID: clientID))
        }
    }

    /// Revokes a secret, which is refused from then on.
    package func revokeSecret(
        team id: String, clientID: String, name: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            let removed = try connection.run(
                "DELETE FROM client_secrets WHERE app_id = \(app) AND name = \(name)")
            guard removed > 0 else {
                throw .refused(
                    .notFound,
                    "app \(clientID) has no such secret: see postern app secret list \(id) \(clientID)"
                )
            }
            try connection.audit(change, "app.secret.revoke", "team:\(id)", "\(clientID) \(name)")
        }
    }

    /// Whether the client has this secret. All of its secrets are compared, each in constant time.
    package func isSecret(_ secret: String, of client: ProviderClient) throws(StoreFailure) -> Bool
    {
        let given = secrets.hash(.clientSecret, secret)
        let known: [[UInt8]] = try database.values(
            "SELECT secret_hash FROM client_secrets WHERE app_id = \(client.appNumber)")
        return known.reduce(false) { found, hash in constantTimeEqual(hash, given) || found }
    }

    private func issued(
        _ connection: any DatabaseConnection, app: Int64
    ) throws(StoreFailure) -> [IssuedClientSecret] {
        try connection.rows(
            "SELECT name, created_at FROM client_secrets WHERE app_id = \(app) ORDER BY id"
        )
        .map { row throws(StoreFailure) in
            try IssuedClientSecret(name: row["name"], createdAt: row["created_at"])
        }
    }

    // MARK: Assertions

    /// Marks an assertion as used; returns whether it was unused before.
    /// - Parameter expiresAt: seconds since 1970; until then its `jti` is remembered.
    package func useAssertion(
        _ jti: String, of client: ProviderClient, expiresAt: Int64
    ) throws(StoreFailure) -> Bool {
        let hash = secrets.hash(.clientAssertion, jti, context: "\(client.appNumber)")
        return try database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO client_assertions (jti_hash, expires_at) VALUES (\(hash), \(expiresAt))
                ON CONFLICT (jti_hash) DO NOTHING
                """) > 0
        }
    }
}

extension DatabaseConnection {
    /// The number of a team's app. Throws `notFound`.
    func app(team id: String, clientID: String) throws(StoreFailure) -> Int64 {
        let team = try team(id)
        let number: Int64? = try value(
            """
            SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id
            WHERE a.client_id = \(clientID) AND g.team_id = \(team.number)
            """)
        guard let number else {
            throw .refused(
                .notFound, "team \(id) has no app \(clientID): see postern app list \(id)")
        }
        return number
    }
}
