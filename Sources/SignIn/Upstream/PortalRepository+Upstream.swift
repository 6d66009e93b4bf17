// Sign-in by the operator's OpenID provider. Issuer and subject identify a user. An address does
// not, since it may pass to another person.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// The result of a sign-in by the provider.
package enum UpstreamOutcome: Sendable, Hashable {
    /// The token of a session.
    case session(String)
    /// The user is unknown, and must not become a user this way.
    case unknown
    /// The user is unknown or has no confirmed inbox, and the provider gives no address that
    /// can be trusted as theirs.
    case noAddress
    /// The address belongs to a user who does not sign in this way.
    case taken
}

extension PortalRepository {
    /// Begins an attempt at the provider: the request to it, and the sealed
    /// value that the browser keeps.
    /// - Parameters:
    ///   - browser: the cookie of the browser.
    ///   - request: the app's request that the user signs in for, and its handle; nil for none.
    package func beginUpstream(
        browser: String, for request: (pending: PendingAuthorization, handle: String)?, now: Int64
    ) throws(StoreFailure) -> (attempt: UpstreamAttempt, sealed: String) {
        let asked = request?.pending.request
        let attempt = try UpstreamAttempt(
            browser: secrets.hash(.browser, browser), request: request?.handle, now: now,
            isFresh: asked?.prompts.contains(.login) ?? false,
            maximumAge: asked?.maximumAge)
        return (attempt, try SealedTokens(secrets: secrets).seal(attempt, .upstream))
    }

    /// The attempt that a browser stored; nil for an invalid value.
    package func upstreamAttempt(_ sealed: String?) -> UpstreamAttempt? {
        sealed.flatMap { SealedTokens(secrets: secrets).open($0, .upstream) }
    }

    /// Whether an attempt was begun in this browser, whose cookie changes with each sign-in.
    package func isOf(_ attempt: UpstreamAttempt, browser: String?) -> Bool {
        browser.map { constantTimeEqual(attempt.browser, secrets.hash(.browser, $0)) } ?? false
    }

    /// Opens a session for the user that the provider identified.
    /// - Parameters:
    ///   - rules: who may become a user.
    ///   - links: whether a user here with the same verified inbox is the same person.
    ///   - replacing: the token of a session that the browser has; it ends.
    package func signIn(
        _ identity: UpstreamIdentity, rules: SignUpRules, links: UpstreamSettings.Links,
        replacing old: String?, now: Int64
    ) throws(StoreFailure) -> UpstreamOutcome {
        let session = try SecretHash.newToken()
        // Read before the transaction, because it starts its own read.
        let invited: (user: Int64, id: String, inbox: Int64)? =
            if let address = identity.address, rules.mode != .closed { try invited(address) } else {
                nil
            }
        let (outcome, user) = try events.write(at: now) {
            connection, tracker throws(StoreFailure) -> (UpstreamOutcome, Int64?) in
            var used: (user: Int64, inbox: Int64)
            if let user = try known(connection, identity, now: now) {
                guard let inbox = try entrance(connection, user: user) else {
                    return (.noAddress, nil)
                }
                used = (user, inbox)
            } else {
                guard let address = identity.address else { return (.noAddress, nil) }
                switch try owner(connection, address) {
                case .user(let user, let inbox):
                    guard links == .verifiedAddress,
                        try !isNamed(connection, user: user, issuer: identity.issuer)
                    else {
                        return (.taken, nil)
                    }
                    used = (user, inbox)
                case .notAnEntrance: return (.taken, nil)
                case .none:
                    if let invited {
                        let inbox: Int64? = try connection.value(
                            "SELECT id FROM inboxes WHERE user_id = \(invited.user) AND number = \(invited.inbox)"
                        )
                        guard let inbox else { return (.unknown, nil) }
                        used = (invited.user, inbox)
                        try confirmInvited(connection, tracker, used, now: now)
                    } else {
                        guard rules.takes(address), !inboxes.isRelayed(address) else {
                            return (.unknown, nil)
                        }
                        used = try newUser(connection, address, name: identity.name, now: now)
                    }
                }
                let added: Int64? = try connection.value(
                    """
                    INSERT INTO upstream_identities (issuer, subject, user_id, created_at, last_used_at)
                    VALUES (\(identity.issuer), \(identity.subject), \(used.user), \(now), \(now))
                    ON CONFLICT (issuer, subject) DO NOTHING RETURNING id
                    """)
                // Another host was faster: at the next attempt the user is known.
                guard added != nil else {
                    throw .temporary(.busy, "the same sign-in is under way on another host")
                }
            }
            try open(connection, session, of: used, by: .upstream, replacing: old, now: now)
            try connection.run(
                """
                UPDATE page_sessions SET authenticated_at = \(identity.authenticatedAt),
                    amr = \(identity.references.sorted().joined(separator: " "))
                WHERE token_hash = \(secrets.hash(.session, session))
                """)
            return (.session(session), used.user)
        }
        if let user { hasSignedIn(user) }
        return outcome
    }

    /// The user that issuer and subject identify.
    private func known(
        _ connection: any DatabaseConnection, _ identity: UpstreamIdentity, now: Int64
    ) throws(StoreFailure) -> Int64? {
        try connection.value(
            """
            UPDATE upstream_identities SET last_used_at = \(now)
            WHERE issuer = \(identity.issuer) AND subject = \(identity.subject) RETURNING user_id
            """)
    }

    /// The inbox of the new session: the default one, or the first confirmed one.
    private func entrance(
        _ connection: any DatabaseConnection, user: Int64
    ) throws(StoreFailure) -> Int64? {
        try connection.value(
            """
            SELECT id FROM inboxes WHERE user_id = \(user) AND verified_at IS NOT NULL
            ORDER BY is_default DESC, reply_only, id LIMIT 1
            """)
    }

    private enum Owner { case user(Int64, inbox: Int64), notAnEntrance, none }

    /// The user with this mailbox as a verified inbox. Another spelling of it proves nothing here,
    /// because no message was sent to it. Nor does a reply-only inbox, with which no one signs in.
    private func owner(
        _ connection: any DatabaseConnection, _ address: InboxAddress
    ) throws(StoreFailure) -> Owner {
        let search = inboxes.index.search(address.revealed)
        let row = try connection.row(
            """
            SELECT id, user_id, CASE WHEN reply_only = 0 AND address_index IN (\(search.exact.0), \(search.exact.1))
                THEN 1 ELSE 0 END AS is_exact
            FROM inboxes WHERE canonical_index IN (\(search.canonical.0), \(search.canonical.1)) AND verified_at IS NOT NULL
            ORDER BY 3 DESC LIMIT 1
            """)
        guard let row else { return .none }
        return try row["is_exact"] ? .user(row["user_id"], inbox: row["id"]) : .notAnEntrance
    }

    /// Whether another subject of the issuer already identifies the user. If so, the address passed
    /// to another person.
    private func isNamed(
        _ connection: any DatabaseConnection, user: Int64, issuer: String
    ) throws(StoreFailure) -> Bool {
        let found: Int64? = try connection.value(
            "SELECT id FROM upstream_identities WHERE user_id = \(user) AND issuer = \(issuer) LIMIT 1"
        )
        return found != nil
    }
}
