// The page of one's own: links that sign in, and sessions.

import InternetMessage
import MailCrypto

/// How long links and sessions last, in seconds.
package enum PageLifetime {
    /// A link that was mailed: long enough for a slow mail server, short for what it opens.
    package static let link: Int64 = 20 * 60
    /// A session no one uses.
    package static let idle: Int64 = 30 * 60
    /// Any session.
    package static let session: Int64 = 12 * 3600
    /// How often it is noted that a session is in use: not with every request.
    static let seen: Int64 = 60
}

/// What a link of the page does.
package enum PageLinkPurpose: String, SQLCodable, Sendable {
    case signIn = "sign-in"
    case deletion
}

/// A link to be mailed, and where.
package struct PageLink: Sendable {
    package let userID: String
    package let inbox: InboxAddress
    /// 32 characters of base32.
    package let token: String
    /// Seconds since 1970.
    package let expiresAt: Int64
}

extension PageLink: CustomStringConvertible, CustomReflectable {
    /// Never the token.
    package var description: String { "<link of user \(userID)>" }
    package var customMirror: Mirror { Mirror(self, children: ["userID": userID]) }
}

/// Someone who is signed in.
package struct PageSession: Sendable, Hashable {
    package let number: Int64
    package let userID: String
    /// Through which inbox they signed in.
    package let inboxNumber: Int64
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// Links and sessions of the page.
package struct PortalRepository: Sendable {
    /// Links of one user that are good at one time; a new one beyond takes the place of the oldest.
    private static let linksPerUser = 5
    /// Sessions of one user; in the same way.
    private static let sessionsPerUser = 10

    let database: any Database
    let inboxes: InboxRepository
    let secrets: SecretHash

    /// A link for anyone who has this verified inbox; nil where no one has it. Any spelling of a mailbox will do, and the link
    /// goes to the one that was verified. Throws `StoreRefusal` (`limit`) beyond a limit.
    /// - Parameter browser: the cookie of the browser that asked; the link works there alone.
    package func signInLink(
        for inbox: InboxAddress, browser: String, limits: NoticeLimits, now: Int64
    ) throws -> PageLink? {
        let search = inboxes.index.search(inbox.revealed)
        let found = try database.read { connection -> (Int64, String, Int64)? in
            let rows = try connection.rows(
                """
                SELECT i.user_id, u.handle, i.number, CASE WHEN i.address_index IN (?1, ?2) THEN 1 ELSE 0 END
                FROM inboxes i JOIN users u ON u.id = i.user_id
                WHERE i.canonical_index IN (?3, ?4) AND i.verified_at IS NOT NULL AND i.reply_only = 0 ORDER BY 4 DESC, i.id LIMIT 2
                """,
                [search.exact.0, search.exact.1, search.canonical.0, search.canonical.1])
            guard let first = rows.first else { return nil }
            // Two users with two spellings of one mailbox: only the spelling itself tells which.
            if try rows.count > 1 && !first.bool(3) && rows[1].integer(0) != first.integer(0) { return nil }
            return (try first.integer(0), try first.text(1), try first.integer(2))
        }
        guard let (user, id, number) = found else { return nil }
        return try link(.signIn, user: user, id: id, inbox: number, browser: browser, limits: limits, now: now)
    }

    /// A link that asks again before a user is deleted; it goes to the inbox of the session.
    package func deletionLink(
        for session: PageSession, browser: String, limits: NoticeLimits, now: Int64
    ) throws -> PageLink {
        let user = try database.read { try $0.userNumber(session.userID) }
        return try link(
            .deletion, user: user, id: session.userID, inbox: session.inboxNumber, browser: browser, limits: limits, now: now)
    }

    private func link(
        _ purpose: PageLinkPurpose, user: Int64, id: String, inbox number: Int64, browser: String, limits: NoticeLimits,
        now: Int64
    ) throws -> PageLink {
        let token = try SecretHash.newToken()
        return try database.write(.durable) { connection in
            let inbox = try inboxes.inbox(connection, user: user, id: id, .number(number))
            try connection.reserveNotice(
                purpose == .signIn ? .signIn : .deletion, index: inboxes.index.search(inbox.address.revealed).canonical,
                user: user,
                limits: limits, now: now)
            try connection.run(
                """
                INSERT INTO page_links (purpose, token_hash, browser_hash, user_id, inbox_id, created_at, expires_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                """,
                [
                    .text(purpose.rawValue), .blob(secrets.hash(.pageLink, token, context: purpose.rawValue)),
                    .blob(secrets.hash(.browser, browser)), .integer(user), .integer(inbox.id), .integer(now),
                    .integer(now + PageLifetime.link),
                ])
            try connection.keepNewest(Self.linksPerUser, of: "page_links", user: user)
            return PageLink(userID: id, inbox: inbox.address, token: token, expiresAt: now + PageLifetime.link)
        }
    }

    /// What a link is good for just now, without using it up.
    package enum LinkState: Sendable, Hashable {
        case good
        /// Right, but asked for in another browser.
        case otherBrowser
        /// Unknown, used or expired.
        case gone
    }

    /// Looks at a link.
    package func state(of token: String, _ purpose: PageLinkPurpose, browser: String?, now: Int64) throws -> LinkState {
        let row = try database.read {
            try $0.row(
                "SELECT browser_hash FROM page_links WHERE token_hash = ?1 AND purpose = ?2 AND expires_at > ?3",
                [.blob(secrets.hash(.pageLink, token, context: purpose.rawValue)), .text(purpose.rawValue), .integer(now)])
        }
        guard let row else { return .gone }
        guard let browser, constantTimeEqual(try row.blob(0), secrets.hash(.browser, browser)) else { return .otherBrowser }
        return .good
    }

    /// Uses a link up and opens a session: its token for the cookie. Nil where the link is not good in this browser.
    /// - Parameter replacing: the token of a session that the browser has; it ends.
    package func signIn(link token: String, browser: String, replacing old: String?, now: Int64) throws -> String? {
        let session = try SecretHash.newToken()
        return try database.write(.durable) { connection in
            guard let used = try use(connection, token, .signIn, browser: browser, now: now) else { return nil }
            if let old {
                try connection.run("DELETE FROM page_sessions WHERE token_hash = ?1", [.blob(secrets.hash(.session, old))])
            }
            try connection.run(
                """
                INSERT INTO page_sessions (token_hash, user_id, inbox_id, created_at, seen_at, expires_at)
                VALUES (?1, ?2, ?3, ?4, ?4, ?5)
                """,
                [
                    .blob(secrets.hash(.session, session)), .integer(used.user), .integer(used.inbox), .integer(now),
                    .integer(now + PageLifetime.session),
                ])
            try connection.keepNewest(Self.sessionsPerUser, of: "page_sessions", user: used.user)
            return session
        }
    }

    /// Uses a link of deletion up; whether it was good, in this browser and for the user of this session.
    package func useDeletionLink(_ token: String, session: PageSession, browser: String, now: Int64) throws -> Bool {
        try database.write(.durable) { connection in
            let user = try connection.userNumber(session.userID)
            return try use(connection, token, .deletion, browser: browser, user: user, now: now) != nil
        }
    }

    private func use(
        _ connection: any DatabaseConnection, _ token: String, _ purpose: PageLinkPurpose, browser: String, user: Int64? = nil,
        now: Int64
    ) throws -> (user: Int64, inbox: Int64)? {
        // All in the condition: what is looked for by its hash is deleted or nothing is, so that of two at once one wins.
        let row = try connection.row(
            """
            DELETE FROM page_links WHERE token_hash = ?1 AND purpose = ?2 AND expires_at > ?3 AND browser_hash = ?4
                AND (CAST(?5 AS BIGINT) IS NULL OR user_id = ?5)
            RETURNING user_id, inbox_id
            """,
            [
                .blob(secrets.hash(.pageLink, token, context: purpose.rawValue)), .text(purpose.rawValue), .integer(now),
                .blob(secrets.hash(.browser, browser)), .optional(user),
            ])
        return try row.map { (try $0.integer(0), try $0.integer(1)) }
    }

    /// The session of a cookie; nil where it is unknown, has expired or was idle for too long.
    package func session(_ token: String, now: Int64) throws -> PageSession? {
        let hash = secrets.hash(.session, token)
        let row = try database.read {
            try $0.row(
                """
                SELECT s.id, u.handle, i.number, s.created_at, s.seen_at
                FROM page_sessions s JOIN users u ON u.id = s.user_id JOIN inboxes i ON i.id = s.inbox_id
                WHERE s.token_hash = ?1 AND s.expires_at > ?2 AND s.seen_at > ?3
                """, [.blob(hash), .integer(now), .integer(now - PageLifetime.idle)])
        }
        guard let row else { return nil }
        let number = try row.integer(0)
        if try row.integer(4) <= now - PageLifetime.seen {
            try database.write(.relaxed) {
                try $0.run(
                    "UPDATE page_sessions SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?2", [.integer(number), .integer(now)])
            }
        }
        return PageSession(
            number: number, userID: try row.text(1), inboxNumber: try row.integer(2), createdAt: try row.integer(3))
    }

    /// Ends a session, or all of its user's.
    package func signOut(_ session: PageSession, everywhere: Bool) throws {
        try database.write(.durable) { connection in
            if everywhere {
                let user = try connection.userNumber(session.userID)
                try connection.run("DELETE FROM page_sessions WHERE user_id = ?1", [.integer(user)])
                try connection.run("DELETE FROM page_links WHERE user_id = ?1", [.integer(user)])
            } else {
                try connection.run("DELETE FROM page_sessions WHERE id = ?1", [.integer(session.number)])
            }
        }
    }
}

extension DatabaseConnection {
    /// Deletes all but the newest rows of a user.
    fileprivate func keepNewest(_ count: Int, of table: String, user: Int64) throws {
        try run(
            """
            DELETE FROM \(table) WHERE user_id = ?1 AND id NOT IN
                (SELECT id FROM \(table) WHERE user_id = ?1 ORDER BY id DESC LIMIT ?2)
            """, [.integer(user), .integer(Int64(count))])
    }
}

extension PortalRepository {
    /// A random value for the cookie of a browser: 32 characters of base32.
    package static func newBrowserToken() throws -> String { try SecretHash.newToken() }
}
