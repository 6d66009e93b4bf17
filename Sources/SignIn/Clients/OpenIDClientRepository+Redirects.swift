// Where responses are sent, and where users return after sign-out.

import Accounts
import Database

extension OpenIDClientRepository {
    /// A client for `/auth/authorize`; nil if there is none with this id.
    package func authorizationClient(
        _ clientID: String
    ) throws(StoreFailure) -> AuthorizationClient? {
        let rows = try database.rows(
            """
            SELECT a.is_public, r.uri FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            LEFT JOIN app_redirects r ON r.app_id = a.id WHERE a.client_id = \(clientID)
            """)
        guard let first = rows.first else { return nil }
        let redirects: [String?] = try rows.map { row throws(StoreFailure) in try row["uri"] }
        return try AuthorizationClient(
            clientID: clientID, redirectURIs: redirects.compactMap(\.self),
            isPublic: first["is_public"])
    }

    /// Whether a redirect URI of any app is of this origin; of any port for a loopback address, as
    /// in `RedirectURI.matches`.
    package func isRegistered(_ origin: WebOrigin) throws(StoreFailure) -> Bool {
        let asked = "\(origin)/"
        let start =
            RedirectURI.withoutPort(loopback: asked).map {
                String(decoding: $0.dropLast(), as: UTF8.self)
            }
            ?? origin.description
        let found: [String] = try database.rows(
            "SELECT DISTINCT uri FROM app_redirects WHERE lower(substr(uri, 1, \(start.utf8.count))) = \(start)"
        ).map { row throws(StoreFailure) in try row["uri"] }
        return found.contains { uri in
            WebOrigin(uri).map { RedirectURI.matches(asked, registered: "\($0)/") } ?? false
        }
    }

    /// Registers a post-logout redirect URI; returns whether it is new.
    package func addLogoutRedirect(
        team id: String, clientID: String, uri: String, _ change: Change
    ) throws(StoreFailure) -> Bool {
        let uri = try RedirectURI.checked(uri)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            let count: Int? = try connection.value(
                "SELECT COUNT(*) FROM logout_redirects WHERE app_id = \(app)")
            guard count ?? 0 < Self.maximumLogoutRedirects else {
                throw .refused(
                    .limit,
                    "app \(clientID) has \(Self.maximumLogoutRedirects) URIs for after signing out, which is the maximum"
                )
            }
            let added = try connection.run(
                """
                INSERT INTO logout_redirects (app_id, uri, created_at) VALUES (\(app), \(uri), \(change.now))
                ON CONFLICT (app_id, uri) DO NOTHING
                """)
            if added > 0 {
                try connection.audit(
                    change, "app.logout-redirect.add", "team:\(id)", "\(clientID) \(uri)")
            }
            return added > 0
        }
    }

    /// Removes a post-logout redirect URI.
    package func removeLogoutRedirect(
        team id: String, clientID: String, uri: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            guard
                try connection.run(
                    "DELETE FROM logout_redirects WHERE app_id = \(app) AND uri = \(uri)") > 0
            else {
                throw .refused(.notFound, "app \(clientID) has no such URI for after signing out")
            }
            try connection.audit(
                change, "app.logout-redirect.remove", "team:\(id)", "\(clientID) \(uri)")
        }
    }

    /// An app's post-logout redirect URIs, in alphabetical order; empty if the app does not exist.
    package func logoutRedirects(clientID: String) throws(StoreFailure) -> [String] {
        try database.read { connection throws(StoreFailure) in
            try connection.values(
                """
                SELECT r.uri FROM logout_redirects r JOIN apps a ON a.id = r.app_id
                JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
                WHERE a.client_id = \(clientID) ORDER BY r.uri
                """)
        }
    }
}
