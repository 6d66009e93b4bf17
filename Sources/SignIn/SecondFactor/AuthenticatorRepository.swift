// Authenticator apps of users: set up and removed on the page, and asked for a code
// after the first factor.

import Accounts
import Database
import MailCrypto
import Support

/// How many codes of an authenticator app are tried.
package enum AuthenticatorLimits {
    /// Wrong codes of a user in `period`, from all browsers and networks: a guess
    /// hits with 3 in a million.
    package static let wrongCodes = 10
    /// Seconds.
    package static let period: Int64 = 6 * 3_600
    /// Seconds for which a new secret is shown before its first code.
    static let setUp: Int64 = 20 * 60
}

/// A user's second factors.
package struct SecondFactors: Sendable, Hashable {
    /// When the authenticator app was set up, seconds since 1970; nil if there is none.
    package let authenticatorSince: Int64?
    package let authenticatorUsedAt: Int64?
    /// Passkeys of one host.
    package let passkeys: Int
    /// Whether every sign-in of the user needs two factors.
    package let isRequired: Bool

    package init(
        authenticatorSince: Int64?, authenticatorUsedAt: Int64?, passkeys: Int, isRequired: Bool
    ) {
        self.authenticatorSince = authenticatorSince
        self.authenticatorUsedAt = authenticatorUsedAt
        self.passkeys = passkeys
        self.isRequired = isRequired
    }

    package var isEmpty: Bool { authenticatorSince == nil && passkeys == 0 }
}

/// The result of a code of an authenticator app.
package enum AuthenticatorResult: Sendable, Hashable {
    case accepted
    /// Wrong, too old, or used already.
    case wrong
    /// Too many were wrong; seconds until the next may be tried.
    case tooMany(Int64)
    /// The user has none.
    case none
}

/// Sets up authenticator apps, and takes their codes.
package struct AuthenticatorRepository: Sendable {
    let page: PortalRepository
    let sealer: Sealer

    private var database: any Database { page.database }
    private var sealing: SealedTokens { SealedTokens(secrets: page.secrets) }

    /// A user's second factors.
    /// - Parameter host: the host that passkeys must belong to; nil if there are no passkeys here.
    package func factors(user id: String, host: String?) throws(StoreFailure) -> SecondFactors {
        try database.read { connection throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT u.two_factor, a.created_at, a.last_used_at,
                    (SELECT COUNT(*) FROM passkeys p WHERE p.user_id = u.id AND p.rp_id = \(host ?? "")) AS passkeys
                FROM users u LEFT JOIN authenticators a ON a.user_id = u.id WHERE u.handle = \(id)
                """)
            guard let row else { throw .refused(.notFound, "this user does not exist") }
            return try SecondFactors(
                authenticatorSince: row["created_at"], authenticatorUsedAt: row["last_used_at"],
                passkeys: row["passkeys"], isRequired: row["two_factor"])
        }
    }

    // MARK: Setting up

    private struct NewSecret: Codable {
        let secret: [UInt8]
        let session: Int64
        /// Seconds since 1970.
        let expiresAt: Int64
    }

    /// A new secret, and the value that the form of its first code contains: only
    /// that session can use it.
    package func newSecret(
        session: PageSession, now: Int64
    ) throws(StoreFailure) -> (secret: [UInt8], sealed: String) {
        let secret = try SecureRandom.octets(OneTimePassword.secretLength)
        let value = NewSecret(
            secret: secret, session: session.number, expiresAt: now + AuthenticatorLimits.setUp)
        return (secret, try sealing.seal(value, .authenticator))
    }

    /// The secret of a form; nil if it is not of this session, or too old.
    package func secret(_ sealed: String, session: PageSession, now: Int64) -> [UInt8]? {
        guard let value: NewSecret = sealing.open(sealed, .authenticator),
            value.session == session.number,
            value.expiresAt > now
        else { return nil }
        return value.secret
    }

    /// Sets up an authenticator app with its first code, and counts that code as the
    /// session's second factor. From now on every sign-in of the user needs two factors:
    /// the app serves for nothing else.
    /// - Returns: false for a wrong code. A wrong one costs nothing: whoever has
    ///   the form has the secret.
    /// - Throws: `exists` if the user has one.
    package func add(
        session: PageSession, secret: [UInt8], code: String, _ change: Change
    ) throws(StoreFailure) -> Bool {
        guard let digits = TypedCode.digits(code),
            let step = OneTimePassword.step(of: digits, secret, at: change.now)
        else { return false }
        try page.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(session.userID)
            let sealed = try sealer.seal(secret, .authenticator(user: user), connection)
            let added = try connection.run(
                """
                INSERT INTO authenticators (user_id, secret_key, secret_sealed, used_step, wrong_since, created_at, last_used_at)
                VALUES (\(user), \(sealed.key), \(sealed.octets), \(step), \(change.now), \(change.now), \(change.now))
                ON CONFLICT (user_id) DO NOTHING
                """)
            guard added == 1 else {
                throw .refused(.exists, "an authenticator app is set up already: remove it first")
            }
            try connection.run(
                "UPDATE page_sessions SET second_at = \(change.now) WHERE id = \(session.number)")
            try connection.run("UPDATE users SET two_factor = 1 WHERE id = \(user)")
            try connection.audit(change, "authenticator.add", "user:\(session.userID)")
            try tracker.note(.credentialChange, of: .user(user), detail: "create app")
            if try !hasPasskey(connection, user) {
                try tracker.note(
                    .assuranceLevelChange, of: .user(user), detail: "mail mfa increase")
            }
        }
        return true
    }

    /// Removes the authenticator app. Where no second factor is left,
    /// sign-ins need one factor again.
    /// - Throws: `notFound` if there is none.
    package func remove(user id: String, _ change: Change) throws(StoreFailure) {
        try page.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            guard try connection.run("DELETE FROM authenticators WHERE user_id = \(user)") == 1
            else {
                throw .refused(.notFound, "no authenticator app is set up")
            }
            try connection.audit(change, "authenticator.remove", "user:\(id)")
            try tracker.note(.credentialChange, of: .user(user), detail: "delete app")
            if try !hasPasskey(connection, user) {
                try connection.endTwoFactors(user: user)
                try tracker.note(
                    .assuranceLevelChange, of: .user(user), detail: "mfa mail decrease")
            }
        }
    }

    private func hasPasskey(
        _ connection: any DatabaseConnection, _ user: Int64
    ) throws(StoreFailure) -> Bool {
        try connection.row("SELECT id FROM passkeys WHERE user_id = \(user) LIMIT 1") != nil
    }

    /// Whether every sign-in of a user needs two factors.
    /// - Parameter reason: who asks for it, for the audit; empty for the user.
    /// - Throws: `unmet` if the user has no second factor yet; or, to end it, an authenticator app,
    ///   or an app that requires two factors.
    package func require(
        _ isRequired: Bool, user id: String, reason: String = "", _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let app = try connection.row(
                "SELECT user_id FROM authenticators WHERE user_id = \(user)")
            let hasPasskey = try hasPasskey(connection, user)
            if isRequired {
                guard app != nil || hasPasskey else {
                    throw .refused(.unmet, "add a passkey or an authenticator app first")
                }
            } else {
                guard app == nil else {
                    throw .refused(.unmet, "an authenticator app is set up: remove it first")
                }
                guard try connection.highestLevel(user: user) == .any else {
                    throw .refused(.unmet, "an app that you use requires two factors")
                }
            }
            try connection.run(
                "UPDATE users SET two_factor = \(isRequired) WHERE id = \(user)")
            try connection.audit(
                change, "user.two-factor", "user:\(id)",
                (isRequired ? "on" : "off") + (reason.isEmpty ? "" : " for \(reason)"))
        }
    }

    /// Removes the authenticator app and all passkeys of a user who lost them, and ends all
    /// sessions. The user signs in by a code to an inbox then, and makes a new second
    /// factor where one is required.
    /// - Parameters:
    ///   - reason: for the audit.
    ///   - waitBefore: only if a wait of the user ended by then, in seconds since 1970; nil for the
    ///     administrator, who decides without one.
    /// - Throws: `unmet` if there is no such wait.
    package func recover(
        user id: String, reason: String, _ change: Change, waitBefore: Int64? = nil
    ) throws(StoreFailure) {
        try page.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let waits = try connection.run(
                """
                DELETE FROM recovery_waits WHERE user_id = \(user)
                    AND (CAST(\(waitBefore) AS BIGINT) IS NULL OR ends_at <= \(waitBefore))
                    AND ends_at > \(change.now - RecoveryWaitRepository.patience)
                """)
            guard waitBefore == nil || waits == 1 else {
                throw .refused(.unmet, "the wait has not ended, or was stopped")
            }
            let apps = try connection.run("DELETE FROM authenticators WHERE user_id = \(user)")
            let passkeys = try connection.rows(
                "DELETE FROM passkeys WHERE user_id = \(user) RETURNING backup_eligible")
            for row in passkeys {
                let kind = try row["backup_eligible"] ? "fido2-platform" : "fido2-roaming"
                try tracker.note(.credentialChange, of: .user(user), detail: "delete \(kind)")
            }
            if apps > 0 {
                try tracker.note(.credentialChange, of: .user(user), detail: "delete app")
            }
            if apps > 0 || !passkeys.isEmpty {
                let level = passkeys.isEmpty ? "mfa" : "phr"
                try tracker.note(
                    .assuranceLevelChange, of: .user(user), detail: "\(level) mail decrease")
            }
            try tracker.note(.sessionRevoked, of: .user(user))
            try connection.endSessions("user_id = \(user)", now: change.now)
            try connection.run("DELETE FROM page_links WHERE user_id = \(user)")
            try connection.endTwoFactors(user: user)
            try connection.run(
                "UPDATE users SET browser_generation = browser_generation + 1 WHERE id = \(user)")
            try connection.audit(change, "user.recover", "user:\(id)", reason)
        }
    }

    // MARK: Using it

    /// Takes a code as the second factor of a session. A code counts once, on all hosts.
    /// - Parameters:
    ///   - code: as typed. What cannot be a code is no try.
    ///   - isKnown: whether the user showed the second factor in this browser before. Such browsers
    ///     have a limit of their own, so that others cannot use it up.
    package func prove(
        session: PageSession, code: String, isKnown: Bool = false, now: Int64
    ) throws(StoreFailure) -> AuthenticatorResult {
        guard let digits = TypedCode.digits(code) else { return .wrong }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(session.userID)
            // Counted before the comparison and in one statement, so that
            // simultaneous tries cannot exceed the limit.
            let (wrong, since): (SQL, SQL) =
                isKnown
                ? ("wrong_known", "wrong_known_since") : ("wrong", "wrong_since")
            let begins = now - AuthenticatorLimits.period
            let row = try connection.row(
                """
                UPDATE authenticators SET
                    \(wrong) = CASE WHEN \(since) <= \(begins) THEN 1 ELSE \(wrong) + 1 END,
                    \(since) = CASE WHEN \(wrong) = 0 OR \(since) <= \(begins) THEN \(now) ELSE \(since) END
                WHERE user_id = \(user)
                    AND (\(wrong) < \(AuthenticatorLimits.wrongCodes) OR \(since) <= \(begins))
                RETURNING secret_key, secret_sealed, used_step
                """)
            guard let row, let sealed = try SealedValue(row: row, "secret") else {
                let began: Int64? = try connection.value(
                    "SELECT \(since) FROM authenticators WHERE user_id = \(user)")
                return began.map { .tooMany(max(1, $0 + AuthenticatorLimits.period - now)) }
                    ?? .none
            }
            let secret = try sealer.open(sealed, .authenticator(user: user))
            guard let step = OneTimePassword.step(of: digits, secret, at: now),
                try step > row["used_step"]
            else {
                return .wrong
            }
            try connection.run(
                "UPDATE authenticators SET used_step = \(step), \(wrong) = 0, last_used_at = \(now) WHERE user_id = \(user)"
            )
            try connection.run(
                "UPDATE page_sessions SET second_at = \(now) WHERE id = \(session.number)")
            let subject = "user:\(session.userID)"
            try connection.audit(Change(actor: subject, now: now), "page.second-factor", subject)
            return .accepted
        }
    }
}
