// The wait of days after which a user who lost the second factor signs in without it. Every inbox
// and every browser of the user is told, and each of them can stop it.

import Accounts
import Database
import MailCrypto
import Support

/// Begins, stops and ends waits.
package struct RecoveryWaitRepository: Sendable {
    /// Seconds after the wait within which the user must come back; afterwards it counts as none.
    package static let patience: Int64 = 7 * 86_400

    let page: PortalRepository
    let authenticators: AuthenticatorRepository

    private var database: any Database { page.database }

    /// When a user's wait ends, in seconds since 1970; nil if none was begun, or it was not used.
    package func end(user id: String, now: Int64) throws(StoreFailure) -> Int64? {
        try database.value(
            """
            SELECT w.ends_at FROM recovery_waits w JOIN users u ON u.id = w.user_id
            WHERE u.handle = \(id) AND w.ends_at > \(now - Self.patience)
            """)
    }

    /// Begins a wait; nil if one is under way.
    /// - Parameter days: how long it lasts.
    /// - Returns: the token of the link that stops it, and its end in seconds since 1970.
    /// - Throws: `unmet` if the user does not need two factors.
    package func begin(
        user id: String, days: Int, _ change: Change
    ) throws(StoreFailure) -> (token: String, endsAt: Int64)? {
        let token = try SecretHash.newToken()
        let endsAt = change.now + Int64(days) * 86_400
        let isBegun = try database.write(.durable) { connection throws(StoreFailure) -> Bool in
            let user = try connection.userNumber(id)
            let begun = try connection.run(
                """
                INSERT INTO recovery_waits (user_id, stop_hash, begun_at, ends_at)
                VALUES (\(user), \(hash(token)), \(change.now), \(endsAt))
                ON CONFLICT (user_id) DO UPDATE SET stop_hash = excluded.stop_hash,
                    begun_at = excluded.begun_at, ends_at = excluded.ends_at
                    WHERE recovery_waits.ends_at <= \(change.now - Self.patience)
                """)
            guard begun == 1 else { return false }
            try connection.audit(change, "recovery.begin", "user:\(id)")
            return true
        }
        return isBegun ? (token, endsAt) : nil
    }

    /// Whether a link stops a wait.
    package func isStoppable(_ token: String, now: Int64) throws(StoreFailure) -> Bool {
        try database.row(
            """
            SELECT 1 FROM recovery_waits
            WHERE stop_hash = \(hash(token)) AND ends_at > \(now - Self.patience)
            """) != nil
    }

    /// Stops a wait by its link, which anyone who reads an inbox of the user has. Does nothing if
    /// it was stopped already.
    package func stop(_ token: String, now: Int64) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user: Int64? = try connection.value(
                "DELETE FROM recovery_waits WHERE stop_hash = \(hash(token)) RETURNING user_id")
            guard let user,
                let id: String = try connection.value("SELECT handle FROM users WHERE id = \(user)")
            else { return }
            let subject = "user:\(id)"
            try connection.audit(
                Change(actor: subject, now: now), "recovery.stop", subject,
                "by the link of a message")
        }
    }

    /// Stops a user's wait.
    package func stop(user id: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            guard try connection.run("DELETE FROM recovery_waits WHERE user_id = \(user)") == 1
            else { return }
            try connection.audit(change, "recovery.stop", "user:\(id)", "signed in")
        }
    }

    /// Removes every second factor of a user whose wait is over, and ends all sessions.
    /// - Throws: `unmet` before its end, or if it was stopped.
    package func finish(user id: String, _ change: Change) throws(StoreFailure) {
        try authenticators.recover(
            user: id, reason: "after the wait", change, waitBefore: change.now)
    }

    private func hash(_ token: String) -> [UInt8] { page.secrets.hash(.recoveryWait, token) }
}
