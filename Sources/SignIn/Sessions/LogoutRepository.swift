// The sessions of the page at apps, and what apps are told when one ends (OpenID Connect Back-Channel Logout 1.0).

import Accounts
import Database
import MailCrypto
import Support

/// An app that is to be told that a session ended.
package struct LogoutNotice: Sendable {
    package let number: Int64
    package let clientID: String
    /// Where it wants to be told.
    package let uri: String
    package let algorithm: SignatureAlgorithm
    /// The user and the session, as this app's tokens name them.
    package let subject: String
    package let sessionID: String
    /// `jti`: the same in every repetition.
    package let id: String
    /// Including the one that follows.
    package let attempts: Int
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// The logout tokens on their way to apps.
package struct LogoutRepository: Sendable {
    let database: any Database

    /// The apps that have notices to be told now, by number.
    package func waitingApps(now: Int64) throws(StoreFailure) -> [Int64] {
        try database.values("SELECT DISTINCT app_id FROM logout_notices WHERE next_attempt_at <= \(now) ORDER BY app_id")
    }

    /// Takes notices of an app that are due, the oldest first. A host that takes one has put it off: whatever becomes of that
    /// host, another one tries again then.
    /// - Parameter delay: seconds until the next attempt, by the number of attempts with this one.
    package func take(app: Int64, limit: Int, now: Int64, delay: (Int) -> Int64) throws(StoreFailure) -> [LogoutNotice] {
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
                        number: number, clientID: row["client_id"], uri: uri, algorithm: row["id_token_algorithm"],
                        subject: row["sub"], sessionID: row["sid"], id: row["jti"], attempts: attempts,
                        createdAt: row["created_at"]))
            }
            return taken
        }
    }

    /// Deletes a notice: the app has it, or is not told any more.
    package func end(_ number: Int64) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM logout_notices WHERE id = \(number)")
        }
    }

    /// Notices that wait; those of one app alone, or of all.
    package func waiting(clientID: String? = nil) throws(StoreFailure) -> Int {
        try database.value(
            """
            SELECT COUNT(*) FROM logout_notices n JOIN apps a ON a.id = n.app_id
            WHERE CAST(\(clientID) AS TEXT) IS NULL OR a.client_id = \(clientID)
            """) ?? 0
    }
}

extension DatabaseConnection {
    /// What the tokens of an app call a session: the same whenever the user signs in there with this session.
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

    /// Ends sessions of the page, and notes for the apps where their users signed in that they ended. Returns how many ended.
    /// - Parameter condition: of `page_sessions`.
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
            let (app, subject, session): (Int64, String, String) = try (row["app_id"], row["sub"], row["sid"])
            try run(
                """
                INSERT INTO logout_notices (app_id, sub, sid, jti, created_at, next_attempt_at)
                VALUES (\(app), \(subject), \(session), \(try SecretHash.newToken()), \(now), 0)
                """)
        }
        // What it was asked for and not fetched yet ends with it, and later tokens do not name it: no one would end it again.
        let names: SQL = """
            SELECT sid FROM app_sessions WHERE session_id IN (SELECT id FROM page_sessions WHERE \(condition))
            """
        try run("DELETE FROM authorization_codes WHERE sid IN (\(names))")
        try run("UPDATE refresh_tokens SET sid = NULL WHERE sid IN (\(names))")
        return try run("DELETE FROM page_sessions WHERE \(condition)")
    }

    /// Puts a new session in the place of the one that the browser had. Apps go on with it if it is the same user's.
    func replace(session old: Int64, of former: Int64, by new: Int64, of user: Int64, now: Int64) throws(StoreFailure) {
        if former == user { try run("UPDATE app_sessions SET session_id = \(new) WHERE session_id = \(old)") }
        try endSessions("id = \(old)", now: now)
    }
}
