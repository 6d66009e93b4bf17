// The provider's clients: their redirect URIs, and the keys that their secrets are signed with.

import Database

/// Registers redirect URIs and keys.
package struct ClientRepository: Sendable {
    /// Redirect URIs of one app, and keys of one team.
    package static let maximumRedirects = 50
    package static let maximumKeys = 10

    let database: any Database

    /// A client with its team's keys; nil if no client has this id.
    package func client(_ clientID: String) throws(StoreFailure) -> ProviderClient? {
        // One statement, because each sign-in runs this twice.
        let rows = try database.rows(
            """
            SELECT a.id, a.group_id, a.is_public, a.id_token_algorithm, t.id AS team_id, t.handle, k.kid, k.public_key, k.created_at
            FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            JOIN teams t ON t.id = g.team_id LEFT JOIN client_keys k ON k.team_id = t.id
            WHERE a.client_id = \(clientID) ORDER BY k.id
            """)
        guard let row = rows.first else { return nil }
        let hasKeys = try row["kid"] as String? != nil
        return try ProviderClient(
            clientID: clientID, appNumber: row["id"], groupNumber: row["group_id"],
            teamNumber: row["team_id"],
            teamID: row["handle"], keys: hasKeys ? rows.map(Self.key) : [],
            isPublic: row["is_public"],
            identityTokenAlgorithm: row["id_token_algorithm"])
    }

    // MARK: Redirect URIs

    /// Registers a redirect URI. Returns whether it is new.
    @discardableResult
    package func addRedirect(
        team id: String, clientID: String, uri: String, _ change: Change
    ) throws(StoreFailure) -> Bool {
        let uri = try RedirectURI.checked(uri)
        return try database.write(.durable) { connection throws(StoreFailure) in
            try connection.addRedirect(
                uri, app: app(connection, team: id, clientID: clientID), clientID: clientID,
                team: id, change)
        }
    }

    /// Removes a redirect URI; codes that were issued for it are invalid from then on.
    package func removeRedirect(
        team id: String, clientID: String, uri: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try app(connection, team: id, clientID: clientID)
            let removed = try connection.run(
                "DELETE FROM app_redirects WHERE app_id = \(app) AND uri = \(uri)")
            guard removed > 0 else {
                throw .refused(
                    .notFound, "app \(clientID) has no such redirect URI: see postern app list")
            }
            try connection.run(
                "DELETE FROM authorization_codes WHERE app_id = \(app) AND redirect_uri = \(uri)")
            try connection.audit(change, "app.redirect.remove", "team:\(id)", "\(clientID) \(uri)")
        }
    }

    /// The redirect URIs of a team's apps by client_id, each in alphabetical order.
    package func redirects(team id: String) throws(StoreFailure) -> [String: [String]] {
        try database.read { connection throws(StoreFailure) in
            var result: [String: [String]] = [:]
            let rows = try connection.rows(
                """
                SELECT a.client_id, r.uri FROM app_redirects r JOIN apps a ON a.id = r.app_id
                JOIN app_groups g ON g.id = a.group_id
                WHERE g.team_id = \(connection.team(id).number) ORDER BY a.client_id, r.uri
                """)
            for row in rows { result[try row["client_id"], default: []].append(try row["uri"]) }
            return result
        }
    }

    // MARK: Keys

    /// Registers a public key. Its form and curve are already checked. Refused if the
    /// team has a key of this id.
    package func addKey(
        team id: String, keyID: String, pem: String, _ change: Change
    ) throws(StoreFailure) -> ClientKey {
        let isPlain = keyID.utf8.allSatisfy { octet in
            let isAlphanumeric =
                (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5A)
                || (octet >= 0x61 && octet <= 0x7A)
            return isAlphanumeric || [0x2D, 0x2E, 0x5F].contains(octet)
        }
        guard isPlain, (1...128).contains(keyID.utf8.count) else {
            throw .refused(.invalid, "a key id must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
        }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            guard try keys(connection, team: team.number).count < Self.maximumKeys else {
                throw .refused(
                    .limit,
                    "team \(id) has \(Self.maximumKeys) keys, which is the maximum: remove one")
            }
            let row = try connection.row(
                """
                INSERT INTO client_keys (team_id, kid, public_key, created_at)
                VALUES (\(team.number), \(keyID), \(pem), \(change.now))
                ON CONFLICT (team_id, kid) DO NOTHING RETURNING id
                """)
            guard row != nil else {
                throw .refused(.exists, "team \(id) already has a key \(keyID)")
            }
            try connection.audit(change, "app.key.add", "team:\(id)", keyID)
            return ClientKey(keyID: keyID, pem: pem, createdAt: change.now)
        }
    }

    /// The team's keys, the oldest first.
    package func keys(team id: String) throws(StoreFailure) -> [ClientKey] {
        try database.read { connection throws(StoreFailure) in
            try keys(connection, team: connection.team(id).number)
        }
    }

    /// Removes a key: secrets that it signed are refused from then on.
    package func removeKey(team id: String, keyID: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let removed = try connection.run(
                "DELETE FROM client_keys WHERE team_id = \(connection.team(id).number) AND kid = \(keyID)"
            )
            guard removed > 0 else {
                throw .refused(
                    .notFound, "team \(id) has no such key: see postern app key list \(id)")
            }
            try connection.audit(change, "app.key.remove", "team:\(id)", keyID)
        }
    }

    private func keys(
        _ connection: any DatabaseConnection, team: Int64
    ) throws(StoreFailure) -> [ClientKey] {
        try connection.rows(
            "SELECT kid, public_key, created_at FROM client_keys WHERE team_id = \(team) ORDER BY id"
        ).map(
            Self.key)
    }

    private static func key(_ row: SQLRow) throws(StoreFailure) -> ClientKey {
        try ClientKey(keyID: row["kid"], pem: row["public_key"], createdAt: row["created_at"])
    }

    private func app(
        _ connection: any DatabaseConnection, team id: String, clientID: String
    ) throws(StoreFailure) -> Int64 {
        let number: Int64? = try connection.value(
            """
            SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id
            WHERE a.client_id = \(clientID) AND g.team_id = \(connection.team(id).number)
            """)
        guard let number else {
            throw .refused(
                .notFound, "team \(id) has no app \(clientID): see postern app list \(id)")
        }
        return number
    }
}

extension DatabaseConnection {
    /// Registers a checked redirect URI. Returns whether it is new.
    func addRedirect(
        _ uri: String, app: Int64, clientID: String, team: String, _ change: Change
    ) throws(StoreFailure) -> Bool {
        let count: Int? = try value(
            "SELECT COUNT(*) AS count FROM app_redirects WHERE app_id = \(app)")
        guard count ?? 0 < ClientRepository.maximumRedirects else {
            throw .refused(
                .limit,
                "app \(clientID) has \(ClientRepository.maximumRedirects) redirect URIs, which is the maximum"
            )
        }
        let added = try run(
            """
            INSERT INTO app_redirects (app_id, uri, created_at) VALUES (\(app), \(uri), \(change.now))
            ON CONFLICT (app_id, uri) DO NOTHING
            """)
        if added > 0 { try audit(change, "app.redirect.add", "team:\(team)", "\(clientID) \(uri)") }
        return added > 0
    }
}
