// Sign-in codes: six digits in the same message as the link, entered on the
// page that requested them.

import Accounts
import Database
import MailCrypto
import Support

/// Limits of wrong codes. Only a million codes exist, so guessing must stop early.
package enum SignInCodeLimits {
    /// For one code; after that only its link works.
    package static let tries = 5
    /// For all codes of a user in a day; after that no code is valid, and only links work.
    package static let triesPerDay = 10
    static let day: Int64 = 86_400
}

/// One of the sign-ins that a browser has open: each of its tabs may continue another app's
/// request.
struct SignInTab {
    /// The cookie of the browser.
    let browser: String
    /// The handle of the app's request; nil for none.
    let request: String?

    /// Each tab has its own code, so that a code for another tab does not replace it.
    func hash(_ secrets: SecretHash) -> [UInt8] {
        secrets.hash(.browser, browser, context: request ?? "-")
    }
}

extension PortalRepository {
    /// Uses a code and opens a session; returns its token for the cookie. Nil if the code is wrong
    /// or not valid. The reads and writes are the same whether or not a user has the entered inbox.
    /// - Parameters:
    ///   - code: as entered. Text that cannot be a code does not count as a try.
    ///   - browser: the cookie of the requesting browser.
    ///   - request: the handle of the app's request that the browser continues with; only the last
    ///     code for it is valid.
    ///   - known: the value that the browser stores for a user who signed in there
    ///     (`knownBrowser`); nil if none.
    ///   - sealed: the value that `sealSignUp` gave that browser; nil if none.
    ///   - limits: beyond this number of wrong codes of all browsers, a code works only in a
    ///     browser that its user has used before.
    ///   - replacing: the token of a session that the browser has; it ends.
    package func signIn(
        code: String, browser: String, request: String? = nil, known: String? = nil,
        signUp sealed: String? = nil,
        limits: SignInLimits = .standard, replacing old: String?, now: Int64
    ) throws(StoreFailure) -> String? {
        guard let digits = TypedCode.digits(code) else { return nil }
        let tab = SignInTab(browser: browser, request: request).hash(secrets)
        let session = session(of: digits, in: tab)
        let browser = secrets.hash(.browser, browser)
        let user = try events.write(at: now) { connection, tracker throws(StoreFailure) -> Int64? in
            // Counted before the comparison and in one statement, so that simultaneous
            // attempts cannot exceed the limit.
            let row = try connection.row(
                """
                UPDATE page_codes SET tries = tries + 1
                WHERE id = (SELECT MAX(id) FROM page_codes WHERE browser_hash = \(tab))
                    AND tries < \(SignInCodeLimits.tries) AND expires_at > \(now)
                    AND (SELECT COALESCE(SUM(o.tries), 0) FROM page_codes o
                        WHERE (o.user_id = page_codes.user_id OR o.inbox_mark = page_codes.inbox_mark)
                            AND o.created_at > \(now - SignInCodeLimits.day)) < \(SignInCodeLimits.triesPerDay)
                RETURNING id, link_id, user_id, code_hash, inbox_mark
                """)
            // Read for every code, right or wrong, so that both take the same time.
            let isGuarded = try connection.wrongCodes(now: now) >= limits.wrongCodesPerHour
            guard let row,
                constantTimeEqual(try row["code_hash"], secrets.hash(.signInCode, digits)),
                try isOpen(connection, known, user: row["user_id"], isGuarded: isGuarded)
            else {
                if let user = try justSignedIn(connection, session, now: now) { return user }
                try connection.countWrongCode(now: now)
                return nil
            }
            let mark: [UInt8]? = try row["inbox_mark"]
            let used: (user: Int64, inbox: Int64)? =
                if let mark {
                    try signUp(connection, sealed: sealed, mark: mark, browser: browser, now: now)
                } else {
                    try use(connection, link: row["link_id"], browser: browser, now: now)
                }
            guard let used else { return nil }
            try confirmInvited(connection, tracker, used, now: now)
            let number: Int64 = try row["id"]
            try connection.run("DELETE FROM page_codes WHERE id = \(number)")
            try open(connection, session, of: used, by: .mail, replacing: old, now: now)
            return used.user
        }
        guard let user else { return nil }
        hasSignedIn(user)
        return session
    }

    /// Whether the number of wrong codes shows that someone guesses at many users at once.
    package func isGuarded(_ limits: SignInLimits, now: Int64) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            try connection.wrongCodes(now: now) >= limits.wrongCodesPerHour
        }
    }

    /// Wrong codes of all browsers within an hour.
    package func wrongCodes(now: Int64) throws(StoreFailure) -> Int {
        try database.read { connection throws(StoreFailure) in try connection.wrongCodes(now: now) }
    }

    /// Whether a correct code opens a session in this browser.
    private func isOpen(
        _ connection: any DatabaseConnection, _ value: String?, user: Int64?, isGuarded: Bool
    ) throws(StoreFailure) -> Bool {
        guard isGuarded else { return true }
        guard let value, let user,
            let id: String = try connection.value("SELECT handle FROM users WHERE id = \(user)")
        else {
            return false
        }
        return constantTimeEqual(
            Array(value.utf8), Array(try knownBrowser(connection, user: id).utf8))
    }

    /// Uses the link that came with a code; nil if the link is gone.
    private func use(
        _ connection: any DatabaseConnection, link: Int64?, browser: [UInt8], now: Int64
    ) throws(StoreFailure) -> (user: Int64, inbox: Int64)? {
        let row = try connection.row(
            """
            DELETE FROM page_links WHERE id = \(link) AND purpose = \(PageLinkPurpose.signIn) AND expires_at > \(now)
                AND browser_hash = \(browser) RETURNING user_id, inbox_id
            """)
        return try row.map { row throws(StoreFailure) in try (row["user_id"], row["inbox_id"]) }
    }

    /// The code of a link. After many wrong ones returns nil, and stores a
    /// code that is sent to no one.
    func addCode(
        _ connection: any DatabaseConnection, link: Int64, user: Int64, _ tab: SignInTab, now: Int64
    ) throws(StoreFailure) -> String? {
        let wrong: Int? = try connection.value(
            """
            SELECT CAST(SUM(tries) AS BIGINT) AS wrong FROM page_codes
            WHERE user_id = \(user) AND created_at > \(now - SignInCodeLimits.day)
            """)
        let code = try SecretHash.newCode()
        try addCode(connection, code, link: link, user: user, tab, now: now)
        return wrong ?? 0 < SignInCodeLimits.triesPerDay ? code : nil
    }

    /// Stores a code that is sent to no one, for a browser that entered an unknown inbox.
    func addCode(_ tab: SignInTab, now: Int64) throws(StoreFailure) {
        let code = try SecretHash.newCode()
        try database.write(.durable) { connection throws(StoreFailure) in
            try addCode(connection, code, link: nil, user: nil, tab, now: now)
        }
    }

    /// - Parameters:
    ///   - mark: the mark of an inbox whose owner becomes a user with the code.
    ///   - token: the token of the link in the same message.
    func addCode(
        _ connection: any DatabaseConnection, _ code: String, link: Int64?, user: Int64?,
        mark: [UInt8]? = nil,
        token: String? = nil,
        _ tab: SignInTab, now: Int64
    ) throws(StoreFailure) {
        let keptUntil =
            now + (user == nil && mark == nil ? PageLifetime.link : SignInCodeLimits.day)
        let hash = token.map { secrets.hash(.pageLink, $0, context: Self.signUpLink) }
        let request = try token.flatMap { token throws(StoreFailure) in try seal(tab.request, token)
        }
        try connection.run(
            """
            INSERT INTO page_codes (browser_hash, code_hash, link_id, user_id, inbox_mark, token_hash, request_sealed, created_at,
                expires_at, kept_until)
            VALUES (\(tab.hash(secrets)), \(secrets.hash(.signInCode, code)), \(link), \(user), \(mark), \(hash), \(request),
                \(now), \(now + PageLifetime.link), \(keptUntil))
            """)
    }
}

extension DatabaseConnection {
    /// Seconds for which wrong codes are counted together.
    private static var period: Int64 { 300 }

    /// Wrong codes of all browsers within an hour.
    fileprivate func wrongCodes(now: Int64) throws(StoreFailure) -> Int {
        let count: Int? = try value(
            """
            SELECT CAST(SUM(count) AS BIGINT) AS count FROM wrong_codes
            WHERE period >= \((now - 3_600) / Self.period)
            """)
        return count ?? 0
    }

    fileprivate func countWrongCode(now: Int64) throws(StoreFailure) {
        let period = now / Self.period
        try run("DELETE FROM wrong_codes WHERE period < \(period - 3_600 / Self.period)")
        try run(
            """
            INSERT INTO wrong_codes (period, count) VALUES (\(period), 1)
            ON CONFLICT (period) DO UPDATE SET count = wrong_codes.count + 1
            """)
    }
}
