// The user's own page: links for sign-in, and sessions.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// Times of the page, in seconds.
package enum PageLifetime {
    /// A mailed link: long enough for a slow mail server, short because of what it gives access to.
    package static let link: Int64 = 20 * 60
    /// How often the use of a session is recorded, instead of at every request.
    static let seen: Int64 = 60
}

/// The purpose of a link of the page.
package enum PageLinkPurpose: String, SQLCodable, Sendable {
    case signIn = "sign-in"
    case deletion
}

/// How a user proved their identity.
package enum SignInMethod: String, SQLCodable, Sendable {
    /// By a code or a link in a message to their inbox.
    case mail
    case passkey
    /// At the operator's OpenID provider.
    case upstream

    /// The authentication method reported to apps. A passkey is requested with user
    /// verification. Without attestation it is unknown whether its key is in hardware, so
    /// neither `hwk` nor `swk` is given.
    /// - Parameter said: the methods that the provider reported.
    /// - Parameter hasSecond: whether a code of an authenticator app followed.
    func authentication(_ said: Set<String>, hasSecond: Bool = false) -> AuthenticationMethod {
        let first =
            switch self {
            case .mail: AuthenticationMethod(references: ["otp"])
            case .passkey:
                AuthenticationMethod(
                    references: ["mfa", "user"], contextClass: AuthenticationClass.passkey.rawValue)
            case .upstream:
                AuthenticationMethod(
                    references: said,
                    contextClass: said.contains("mfa")
                        ? AuthenticationClass.twoFactor.rawValue : nil)
            }
        guard hasSecond, self != .passkey else { return first }
        return AuthenticationMethod(
            references: Set(first.references + ["mfa", "otp"]),
            contextClass: AuthenticationClass.twoFactor.rawValue)
    }
}

/// A link, and the inbox to mail it to.
package struct PageLink: Sendable {
    /// Nil if there is no such user yet.
    package let userID: String?
    package let inbox: InboxAddress
    /// 32 characters of base32; nil if only a code was mailed.
    package let token: String?
    /// Six digits that replace the link in the browser that requested it; nil if the message has no
    /// code, for example after many wrong ones.
    package internal(set) var code: String?
    /// Seconds since 1970.
    package let expiresAt: Int64
}

extension PageLink: CustomStringConvertible, CustomReflectable {
    /// Never includes the token.
    package var description: String { "<link of user \(userID ?? "-")>" }
    package var customMirror: Mirror { Mirror(self, children: ["userID": userID ?? "-"]) }
}

/// A signed-in user.
package struct PageSession: Sendable, Hashable {
    package let number: Int64
    package let userID: String
    /// The inbox by which the user signed in.
    package let inboxNumber: Int64
    /// Seconds since 1970.
    package let createdAt: Int64
    package let method: SignInMethod
    /// When the user proved their identity, in seconds since 1970. At the operator's provider, this
    /// may be earlier than `createdAt`.
    package let authenticatedAt: Int64
    /// The authentication method, as reported to apps.
    package let authentication: AuthenticationMethod
    /// When the user's data is to be deleted, in seconds since 1970; nil if
    /// no deletion is scheduled.
    package let deletesAt: Int64?
    /// Whether every sign-in of the user needs two factors.
    package let needsTwoFactors: Bool
    /// Whether a recovery code took the place of the second factor.
    package let isRecovered: Bool
    /// When a wait for signing in without the second factor ends, in seconds since 1970; nil if
    /// none was begun.
    package let recoveryEndsAt: Int64?
    /// Set if the operator froze the user.
    package let freeze: UserFreeze?

    /// How surely the user signed in.
    package var level: SignInLevel { authentication.level }
}

/// The freeze of a session's user.
package struct UserFreeze: Sendable, Hashable {
    /// Seconds since 1970; nil if it has no end.
    package let endsAt: Int64?
}

/// A session as its user sees it.
package struct OpenSession: Sendable, Hashable {
    package let number: Int64
    /// Seconds since 1970.
    package let createdAt: Int64
    /// Seconds since 1970, accurate to a minute.
    package let seenAt: Int64
    package let method: SignInMethod
    /// Nil if it is not known.
    package let browser: BrowserName?
}

/// Links and sessions of the page.
package struct PortalRepository: Sendable {
    /// The most valid links of one user at a time; a new one replaces the oldest.
    private static let linksPerUser = 5
    /// The most sessions of one user; a new one replaces the oldest.
    private static let sessionsPerUser = 10

    /// Seconds for which a used code or link opens its session again.
    private static let patience: Int64 = 60

    let events: AccountEvents
    let inboxes: InboxRepository
    let users: UserRepository
    let secrets: SecretHash
    let lifetime: SessionLifetime
    var database: any Database { events.database }

    /// A link for a user with this verified inbox, or a person who may become a user with it; nil
    /// for anyone else. Any spelling of a mailbox is accepted, and the link goes to the verified
    /// one. Throws `limit` beyond a limit.
    /// - Parameters:
    ///   - browser: the cookie of the requesting browser; the link works only there.
    ///   - request: the handle of the app's request that the browser continues with; nil for none.
    ///     A browser may have several.
    ///   - network: the widest network that the request counts for; nil if it is not known.
    package func signInLink(
        for inbox: InboxAddress, browser: String, request: String? = nil, network: String? = nil,
        rules: SignUpRules = .closed,
        limits: NoticeLimits, now: Int64
    ) throws(StoreFailure) -> PageLink? {
        let tab = SignInTab(browser: browser, request: request)
        let network = network.map { secrets.hash(.network, $0) }
        let search = inboxes.index.search(inbox.revealed)
        let found = try database.read {
            connection throws(StoreFailure) -> (Int64, String, Int64)? in
            let rows = try connection.rows(
                """
                SELECT i.user_id, u.handle, i.number,
                    CASE WHEN i.address_index IN (\(search.exact.0), \(search.exact.1)) THEN 1 ELSE 0 END AS is_exact
                FROM inboxes i JOIN users u ON u.id = i.user_id
                WHERE i.canonical_index IN (\(search.canonical.0), \(search.canonical.1)) AND i.verified_at IS NOT NULL
                    AND i.reply_only = 0 ORDER BY 4 DESC, i.id LIMIT 2
                """)
            guard let first = rows.first else { return nil }
            // If two users have different spellings of one mailbox,
            // only the exact spelling decides.
            let (user, isExact): (Int64, Bool) = try (first["user_id"], first["is_exact"])
            if !isExact, rows.count > 1, try rows[1]["user_id"] != user { return nil }
            return try (user, first["handle"], first["number"])
        }
        var known = found
        if known == nil, rules.mode != .closed { known = try invited(inbox) }
        do throws(StoreFailure) {
            guard let (user, id, number) = known else {
                guard rules.takes(inbox), !inboxes.isRelayed(inbox) else {
                    try addCode(tab, now: now)
                    return nil
                }
                return try signUpCode(for: inbox, tab, network: network, limits: limits, now: now)
            }
            return try link(
                .signIn, user: user, id: id, inbox: number, tab, network: network, limits: limits,
                now: now)
        } catch  where error.isRefusal {
            try addCode(tab, now: now)
            throw error
        }
    }

    /// A link that confirms the deletion of a user; it goes to the inbox of the session.
    package func deletionLink(
        for session: PageSession, browser: String, limits: NoticeLimits, now: Int64
    ) throws(StoreFailure) -> PageLink {
        let user = try database.read { connection throws(StoreFailure) in
            try connection.userNumber(session.userID)
        }
        return try link(
            .deletion, user: user, id: session.userID, inbox: session.inboxNumber,
            SignInTab(browser: browser, request: nil),
            network: nil, limits: limits, now: now)
    }

    private func link(
        _ purpose: PageLinkPurpose, user: Int64, id: String, inbox number: Int64, _ tab: SignInTab,
        network: [UInt8]?,
        limits: NoticeLimits, now: Int64
    ) throws(StoreFailure) -> PageLink {
        let token = try SecretHash.newToken()
        let request = try seal(tab.request, token)
        let link = try database.write(.durable) { connection throws(StoreFailure) in
            let inbox = try inboxes.inbox(connection, user: user, id: id, .number(number))
            try connection.reserveNotice(
                purpose == .signIn ? .signIn : .deletion,
                index: inboxes.index.search(inbox.address.revealed).canonical,
                user: user, source: NoticeSource(network: network, domain: nil), limits: limits,
                now: now)
            let number = try connection.inserted(
                """
                INSERT INTO page_links
                    (purpose, token_hash, browser_hash, user_id, inbox_id, request_sealed, created_at, expires_at)
                VALUES (\(purpose), \(secrets.hash(.pageLink, token, context: purpose.rawValue)),
                    \(secrets.hash(.browser, tab.browser)), \(user), \(inbox.id), \(request), \(now),
                    \(now + PageLifetime.link)) RETURNING id
                """)
            var link = PageLink(
                userID: id, inbox: inbox.address, token: token, expiresAt: now + PageLifetime.link)
            if purpose == .signIn {
                link.code = try addCode(connection, link: number, user: user, tab, now: now)
            }
            return link
        }
        database.keepNewest([(Self.linksPerUser, "page_links")], "user_id = \(user)")
        return link
    }

    /// The current state of a link, without using it.
    package enum LinkState: Sendable, Hashable {
        case good
        /// Valid, but requested in another browser.
        case otherBrowser
        /// Unknown, used or expired.
        case gone
    }

    /// Checks a link.
    package func state(
        of token: String, _ purpose: PageLinkPurpose, browser: String?, now: Int64
    ) throws(StoreFailure) -> LinkState {
        let wanted: [UInt8]? = try database.value(
            """
            SELECT browser_hash FROM page_links
            WHERE token_hash = \(secrets.hash(.pageLink, token, context: purpose.rawValue))
                AND purpose = \(purpose) AND expires_at > \(now)
            """)
        guard let wanted else {
            return purpose == .signIn
                ? try signUpState(of: token, browser: browser, now: now) : .gone
        }
        guard let browser, constantTimeEqual(wanted, secrets.hash(.browser, browser)) else {
            return .otherBrowser
        }
        return .good
    }

    /// The handle of the app's request that a sign-in link continues; nil if there is none, or if
    /// the link is not valid.
    package func request(of token: String, now: Int64) throws(StoreFailure) -> String? {
        let sealed: [UInt8]? = try database.value(
            """
            SELECT request_sealed FROM page_links
            WHERE token_hash = \(secrets.hash(.pageLink, token, context: PageLinkPurpose.signIn.rawValue)) AND expires_at > \(now)
            UNION ALL
            SELECT request_sealed FROM page_codes
            WHERE token_hash = \(secrets.hash(.pageLink, token, context: Self.signUpLink)) AND expires_at > \(now)
            """)
        return sealed.flatMap { sealing.decrypt($0, Array(token.utf8), .pageLink) }
    }

    /// The handle of a request, encrypted with a key made from a link's token.
    func seal(_ request: String?, _ token: String) throws(StoreFailure) -> [UInt8]? {
        guard let request else { return nil }
        return try sealing.encrypt(request, Array(token.utf8), .pageLink)
    }

    private var sealing: SealedTokens { SealedTokens(secrets: secrets) }

    /// Uses a link and opens a session; returns its token for the cookie. Nil if the link is
    /// not valid in this browser.
    /// - Parameters:
    ///   - sealed: the value that `sealSignUp` gave the browser; nil if none.
    ///   - replacing: the token of a session that the browser has; it ends.
    package func signIn(
        link token: String, browser: String, signUp sealed: String? = nil, replacing old: String?,
        now: Int64
    ) throws(StoreFailure) -> String? {
        let session = session(of: token, in: secrets.hash(.browser, browser))
        let user = try events.write(at: now) { connection, tracker throws(StoreFailure) -> Int64? in
            var found = try use(connection, token, .signIn, browser: browser, now: now)
            if found == nil {
                found = try signUp(
                    connection, link: token, sealed: sealed, browser: browser, now: now)
            }
            guard let used = found else { return try justSignedIn(connection, session, now: now) }
            try confirmInvited(connection, tracker, used, now: now)
            try open(connection, session, of: used, by: .mail, replacing: old, now: now)
            return used.user
        }
        guard let user else { return nil }
        hasSignedIn(user)
        return session
    }

    /// The token of the session that a code or a link opens in a browser: always the same, and only
    /// our secret can compute it. A user who presses twice, or loses the answer, gets the same
    /// session again.
    func session(of secret: String, in browser: [UInt8]) -> String {
        Base32.characters(fromRandom: secrets.hash(.session, secret, context: Hex.encode(browser)))
    }

    /// The user of a session that was opened within the last minute.
    func justSignedIn(
        _ connection: any DatabaseConnection, _ session: String, now: Int64
    ) throws(StoreFailure) -> Int64? {
        try connection.value(
            """
            SELECT user_id FROM page_sessions WHERE token_hash = \(secrets.hash(.session, session))
                AND created_at > \(now - Self.patience)
            """)
    }

    /// Opens the session of a token for a user who proved that an inbox is theirs. The caller calls
    /// `hasSignedIn` after that transaction.
    func open(
        _ connection: any DatabaseConnection, _ session: String,
        of used: (user: Int64, inbox: Int64), by method: SignInMethod,
        replacing old: String?, now: Int64
    ) throws(StoreFailure) {
        let replaced = try old.flatMap { old throws(StoreFailure) in
            try connection.row(
                "SELECT id, user_id FROM page_sessions WHERE token_hash = \(secrets.hash(.session, old))"
            )
        }
        let number = try connection.inserted(
            """
            INSERT INTO page_sessions (token_hash, user_id, inbox_id, created_at, seen_at, expires_at, method)
            VALUES (\(secrets.hash(.session, session)), \(used.user), \(used.inbox), \(now), \(now),
                \(now + lifetime.total), \(method))
            RETURNING id
            """)
        if let replaced {
            try connection.replace(
                session: replaced["id"], of: replaced["user_id"], by: number, of: used.user,
                now: now)
        }
        try connection.run(
            "INSERT INTO page_sign_ins (user_id, at, method) VALUES (\(used.user), \(now), \(method))"
        )
        let user: String? = try connection.value("SELECT handle FROM users WHERE id = \(used.user)")
        let subject = "user:\(user ?? "")"
        try connection.audit(Change(actor: subject, now: now), "page.sign-in", subject, "\(method)")
    }

    /// Deletes the sessions and recorded sign-ins of a user beyond their limits.
    func hasSignedIn(_ user: Int64) {
        database.keepNewest([(Self.signInsPerUser, "page_sign_ins")], "user_id = \(user)")
        // Sessions by one factor take no place from those by two.
        database.keepNewest(
            [(Self.sessionsPerUser, "page_sessions")],
            "user_id = \(user) AND second_at IS NULL AND method <> 'passkey'")
        database.keepNewest(
            [(Self.sessionsPerUser, "page_sessions")],
            "user_id = \(user) AND (second_at IS NOT NULL OR method = 'passkey')")
    }

    /// Uses a deletion link; returns whether it was valid, in this browser and for
    /// the user of this session.
    package func useDeletionLink(
        _ token: String, session: PageSession, browser: String, now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(session.userID)
            return try use(connection, token, .deletion, browser: browser, user: user, now: now)
                != nil
        }
    }

    private func use(
        _ connection: any DatabaseConnection, _ token: String, _ purpose: PageLinkPurpose,
        browser: String, user: Int64? = nil,
        now: Int64
    ) throws(StoreFailure) -> (user: Int64, inbox: Int64)? {
        // All checks are in one statement, which deletes the row or nothing: of
        // two simultaneous calls one wins.
        let row = try connection.row(
            """
            DELETE FROM page_links WHERE token_hash = \(secrets.hash(.pageLink, token, context: purpose.rawValue))
                AND purpose = \(purpose) AND expires_at > \(now) AND browser_hash = \(secrets.hash(.browser, browser))
                AND (CAST(\(user) AS BIGINT) IS NULL OR user_id = \(user))
            RETURNING user_id, inbox_id
            """)
        return try row.map { row throws(StoreFailure) in try (row["user_id"], row["inbox_id"]) }
    }

    /// The session of a cookie; nil if it is unknown, has expired or was idle too long.
    package func session(_ token: String, now: Int64) throws(StoreFailure) -> PageSession? {
        let hash = secrets.hash(.session, token)
        let row = try database.row(
            """
            SELECT s.id, u.handle, i.number, s.created_at, s.seen_at, s.method, s.authenticated_at, s.amr, s.second_at, s.is_recovered, u.deletes_at,
                u.two_factor, w.ends_at, f.began_at AS frozen_at, f.ends_at AS frozen_until
            FROM page_sessions s JOIN users u ON u.id = s.user_id JOIN inboxes i ON i.id = s.inbox_id
                LEFT JOIN user_freezes f ON f.user_id = u.id
                LEFT JOIN recovery_waits w ON w.user_id = u.id AND w.ends_at > \(now - RecoveryWaitRepository.patience)
            WHERE s.token_hash = \(hash) AND s.expires_at > \(now) AND s.seen_at > \(now - lifetime.idle)
            """)
        guard let row else { return nil }
        let number: Int64 = try row["id"]
        if try row["seen_at"] <= now - PageLifetime.seen {
            try database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.run(
                    "UPDATE page_sessions SET seen_at = \(now) WHERE id = \(number) AND seen_at < \(now)"
                )
            }
        }
        let (method, createdAt): (SignInMethod, Int64) = try (row["method"], row["created_at"])
        let (authenticatedAt, said, secondAt): (Int64?, String?, Int64?) =
            try (row["authenticated_at"], row["amr"], row["second_at"])
        return try PageSession(
            number: number, userID: row["handle"], inboxNumber: row["number"], createdAt: createdAt,
            method: method,
            authenticatedAt: authenticatedAt ?? createdAt,
            authentication: method.authentication(
                Set((said ?? "").split(separator: " ").map(String.init)), hasSecond: secondAt != nil
            ),
            deletesAt: row["deletes_at"], needsTwoFactors: row["two_factor"],
            isRecovered: row["is_recovered"],
            recoveryEndsAt: row["ends_at"],
            freeze: try row["frozen_at"] as Int64? == nil
                ? nil : UserFreeze(endsAt: row["frozen_until"]))
    }

    /// The valid sessions of a user, the newest first.
    package func sessions(user id: String, now: Int64) throws(StoreFailure) -> [OpenSession] {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            return try connection.rows(
                """
                SELECT id, created_at, seen_at, method, browser FROM page_sessions
                WHERE user_id = \(user) AND expires_at > \(now) AND seen_at > \(now - lifetime.idle) ORDER BY id DESC
                """
            ).map { row throws(StoreFailure) in
                let browser: String? = try row["browser"]
                return try OpenSession(
                    number: row["id"], createdAt: row["created_at"], seenAt: row["seen_at"],
                    method: row["method"],
                    browser: browser.flatMap(BrowserName.init(stored:)))
            }
        }
    }

    /// Records the browser of a session, for its user to read.
    package func note(_ browser: BrowserName, ofSession token: String) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                "UPDATE page_sessions SET browser = \(browser.stored) WHERE token_hash = \(secrets.hash(.session, token))"
            )
        }
    }

    /// Ends another session of the same user; throws `notFound` if there is none with that number.
    package func end(
        session number: Int64, of session: PageSession, now: Int64
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(session.userID)
            guard try connection.endSessions("id = \(number) AND user_id = \(user)", now: now) == 1
            else {
                throw .refused(.notFound, "this session has ended already")
            }
            let subject = "user:\(session.userID)"
            try connection.audit(
                Change(actor: subject, now: now), "page.sign-out", subject, "another session")
        }
    }

    /// Ends a session, or all sessions of its user; then browsers are no longer recognized.
    package func signOut(_ session: PageSession, everywhere: Bool, now: Int64) throws(StoreFailure)
    {
        try events.write(at: now) { connection, tracker throws(StoreFailure) in
            if everywhere {
                let user = try connection.userNumber(session.userID)
                try tracker.note(.sessionRevoked, of: .user(user))
                try connection.endSessions("user_id = \(user)", now: now)
                try connection.run("DELETE FROM page_links WHERE user_id = \(user)")
                try connection.run(
                    "UPDATE users SET browser_generation = browser_generation + 1 WHERE id = \(user)"
                )
            } else {
                try connection.endSessions("id = \(session.number)", now: now)
            }
            let subject = "user:\(session.userID)"
            try connection.audit(
                Change(actor: subject, now: now), "page.sign-out", subject,
                everywhere ? "everywhere" : "")
        }
    }
}

extension Database {
    /// Deletes all but the newest rows of each table that meet a condition. It does not wait for a
    /// busy store: the next added row starts it again.
    ///
    /// It runs outside the change that adds a row. On PostgreSQL, a change that reads one user's
    /// rows through an index conflicts with changes that add rows of other users to the same index
    /// page. Both would be repeated. A row that is chosen here may be gone before its deletion.
    func keepNewest(_ limits: [(count: Int, table: String)], _ condition: SQL) {
        do throws(StoreFailure) {
            let queries = limits.map { count, table -> SQL in
                """
                SELECT '\(raw: table)' AS place, id FROM (SELECT id FROM \(raw: table) WHERE \(condition)
                    ORDER BY id DESC LIMIT 1000 OFFSET \(count)) \(raw: table)
                """
            }
            let found = try rows(queries.dropFirst().reduce(queries[0]) { "\($0) UNION ALL \($1)" })
            var surplus: [String: [Int64]] = [:]
            for row in found { surplus[try row["place"], default: []].append(try row["id"]) }
            guard !surplus.isEmpty else { return }
            try write(.relaxed, timeout: .milliseconds(250)) { connection throws(StoreFailure) in
                // Every host deletes in the same order of tables, so that two hosts do not wait for
                // each other.
                for (_, table) in limits {
                    guard let rows = surplus[table] else { continue }
                    try connection.run(for: rows) { "DELETE FROM \(raw: table) WHERE id IN \($0)" }
                }
            }
        } catch {
            assert(error.isTemporary, "\(error)")
        }
    }
}

extension PortalRepository {
    /// The value that a browser keeps after this user signed in there: 32 characters of base32. It
    /// gives no access, and changes when the user signs out everywhere.
    package func knownBrowser(user id: String) throws(StoreFailure) -> String {
        try database.read { connection throws(StoreFailure) in
            try knownBrowser(connection, user: id)
        }
    }

    func knownBrowser(
        _ connection: any DatabaseConnection, user id: String
    ) throws(StoreFailure) -> String {
        let generation: Int64? = try connection.value(
            "SELECT browser_generation FROM users WHERE handle = \(id)")
        let times = generation ?? 0
        return Base32.characters(
            fromRandom: secrets.hash(.knownBrowser, times == 0 ? id : "\(id) \(times)"))
    }

    /// A random value for the cookie of a browser: 32 characters of base32.
    package static func newBrowserToken() throws(StoreFailure) -> String {
        try SecretHash.newToken()
    }
}
