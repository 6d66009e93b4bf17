// The page's sessions at apps, and the notices to apps when a session ends (OpenID Connect
// Back-Channel Logout 1.0).

import Accounts
import Database
import MailCrypto
import Support

/// A notice for an app that a session ended.
package struct LogoutNotice: Sendable {
    package let number: Int64
    package let clientID: String
    /// The app's address for notices.
    package let uri: String
    package let algorithm: SignatureAlgorithm
    /// The user and the session, as this app's tokens name them.
    package let subject: String
    package let sessionID: String
    /// `jti`: the same in every repetition.
    package let id: String
    /// The number of attempts, with the next one.
    package let attempts: Int
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// The logout notices that wait for delivery.
package struct LogoutRepository: Sendable {
    let database: any Database

    /// The apps that have notices due now, by number.
    package func waitingApps(now: Int64) throws(StoreFailure) -> [Int64] {
        try database.values(
            "SELECT DISTINCT app_id FROM logout_notices WHERE next_attempt_at <= \(now) ORDER BY app_id"
        )
    }

    /// Takes notices of an app that are due, the oldest first. Taking a notice postpones it: if
    /// this host fails, another host tries again after the delay.
    /// - Parameter delay: seconds until the next attempt, by the number of attempts including this
    ///   one.
    package func take(
        app: Int64, limit: Int, now: Int64, delay: (Int) -> Int64
    ) throws(StoreFailure) -> [LogoutNotice] {
        try database.write(.durable) { connection throws(StoreFailure) in
            let rows = try connection.rows(
                """
                SELECT n.id, n.sub, n.sid, n.jti, n.attempts, n.created_at, a.client_id, a.backchannel_logout_uri,
                    a.id_token_algorithm
                FROM logout_notices n JOIN apps a ON a.id = n.app_id
                WHERE n.app_id = \(app) AND n.next_attempt_at <= \(now) ORDER BY n.id LIMIT \(limit)
                """)
            var taken: [LogoutNotice] = []
            for row in rows {
                let number: Int64 = try row["id"]
                guard let uri: String = try row["backchannel_logout_uri"] else {
                    try connection.run("DELETE FROM logout_notices WHERE id = \(number)")
                    continue
                }
                let attempts: Int = try row["attempts"] + 1
                try connection.run(
                    """
                    UPDATE logout_notices SET attempts = \(attempts), next_attempt_at = \(now + delay(attempts))
                    WHERE id = \(number)
                    """)
                taken.append(
                    try LogoutNotice(
                        number: number, clientID: row["client_id"], uri: uri,
                        algorithm: row["id_token_algorithm"],
                        subject: row["sub"], sessionID: row["sid"], id: row["jti"],
                        attempts: attempts,
                        createdAt: row["created_at"]))
            }
            return taken
        }
    }

    /// Deletes a notice, because the app has it or because delivery was given up.
    package func end(_ number: Int64) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM logout_notices WHERE id = \(number)")
        }
    }

    /// The number of waiting notices, of one app or of all.
    package func waiting(clientID: String? = nil) throws(StoreFailure) -> Int {
        try database.value(
            """
            SELECT COUNT(*) FROM logout_notices n JOIN apps a ON a.id = n.app_id
            WHERE CAST(\(clientID) AS TEXT) IS NULL OR a.client_id = \(clientID)
            """) ?? 0
    }
}

extension DatabaseConnection {
    /// The `sid` of a session in the tokens of an app: the same each time the user signs in there
    /// with this session.
    func name(ofSession session: Int64, app: Int64, grant: Int64) throws(StoreFailure) -> String {
        let name: String? = try value(
            """
            INSERT INTO app_sessions (session_id, app_id, grant_id, sid)
            VALUES (\(session), \(app), \(grant), \(try SecretHash.newToken()))
            ON CONFLICT (session_id, app_id) DO UPDATE SET grant_id = excluded.grant_id RETURNING sid
            """)
        guard let name else { throw .permanent(.unexpectedData, "a session has no name") }
        return name
    }

    /// Ends sessions of the page, and adds notices for the apps where their users signed in.
    /// Returns the number of ended sessions.
    /// - Parameter condition: on the rows of `page_sessions`.
    @discardableResult
    func endSessions(_ condition: SQL, now: Int64) throws(StoreFailure) -> Int {
        let told = try rows(
            """
            SELECT s.app_id, a.sub, s.sid FROM app_sessions s
            JOIN apps c ON c.id = s.app_id AND c.backchannel_logout_uri IS NOT NULL
            JOIN app_groups q ON q.id = c.group_id
            JOIN grants g ON g.id = s.grant_id AND g.state = 'authorized'
            JOIN accounts a ON a.id = g.account_id AND a.team_id = q.team_id
            WHERE s.session_id IN (SELECT id FROM page_sessions WHERE \(condition)) ORDER BY s.session_id, s.app_id
            """)
        for row in told {
            let (app, subject, session): (Int64, String, String) = try (
                row["app_id"], row["sub"], row["sid"]
            )
            try run(
                """
                INSERT INTO logout_notices (app_id, sub, sid, jti, created_at, next_attempt_at)
                VALUES (\(app), \(subject), \(session), \(try SecretHash.newToken()), \(now), 0)
                """)
        }
        // Codes that apps have not redeemed end with their session. Later tokens must not name the
        // session, because no app would get another notice of its end.
        let names: SQL = """
            SELECT sid FROM app_sessions WHERE session_id IN (SELECT id FROM page_sessions WHERE \(condition))
            """
        try run("DELETE FROM authorization_codes WHERE sid IN (\(names))")
        try run("UPDATE refresh_tokens SET sid = NULL WHERE sid IN (\(names))")
        return try run("DELETE FROM page_sessions WHERE \(condition)")
    }

    /// Replaces the browser's old session by a new one. Apps continue with the new session if it
    /// belongs to the same user.
    func replace(
        session old: Int64, of former: Int64, by new: Int64, of user: Int64, now: Int64
    ) throws(StoreFailure) {
        if former == user {
            try run("UPDATE app_sessions SET session_id = \(new) WHERE session_id = \(old)")
        }
        try endSessions("id = \(old)", now: now)
    }
}
