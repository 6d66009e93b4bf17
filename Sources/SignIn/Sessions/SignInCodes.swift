// Codes that sign in: six digits in the same message as the link, typed into the page that asked for it.

import Accounts
import Database
import MailCrypto

/// How often codes may be wrong: a million of them are too few to let anyone guess for long.
package enum SignInCodeLimits {
    /// For one code; then only its link is left.
    package static let tries = 5
    /// For all codes of a user in a day; then no code is good, and messages have a link alone.
    package static let triesPerDay = 10
    static let day: Int64 = 86_400
}

extension PortalRepository {
    /// Uses a code up and opens a session: its token for the cookie. Nil where the code is wrong or no longer good; all that is
    /// asked and written is the same whether anyone has the inbox that was typed or not.
    /// - Parameters:
    ///   - code: as typed; spaces and hyphens do not count.
    ///   - browser: the cookie of the browser that asked; its last code alone is good.
    ///   - sealed: what `sealSignUp` gave that browser; nil for nothing.
    ///   - replacing: the token of a session that the browser has; it ends.
    package func signIn(
        code: String, browser: String, signUp sealed: String? = nil, replacing old: String?, now: Int64
    ) throws(StoreFailure) -> String? {
        let digits = String(code.filter { !$0.isWhitespace && $0 != "-" })
        let session = try SecretHash.newToken()
        let browser = secrets.hash(.browser, browser)
        return try events.write(at: now) { connection, tracker throws(StoreFailure) in
            // Counted before it is compared, and in one statement: of many at once none is one too many.
            let row = try connection.row(
                """
                UPDATE page_codes SET tries = tries + 1
                WHERE id = (SELECT MAX(id) FROM page_codes WHERE browser_hash = \(browser))
                    AND tries < \(SignInCodeLimits.tries) AND expires_at > \(now)
                    AND (SELECT COALESCE(SUM(o.tries), 0) FROM page_codes o
                        WHERE (o.user_id = page_codes.user_id OR o.inbox_mark = page_codes.inbox_mark)
                            AND o.created_at > \(now - SignInCodeLimits.day)) < \(SignInCodeLimits.triesPerDay)
                RETURNING id, link_id, code_hash, inbox_mark
                """)
            guard let row, constantTimeEqual(try row["code_hash"], secrets.hash(.signInCode, digits)) else { return nil }
            let mark: [UInt8]? = try row["inbox_mark"]
            let used: (user: Int64, inbox: Int64)? =
                if let mark { try signUp(connection, sealed: sealed, mark: mark, browser: browser, now: now) } else {
                    try use(connection, link: row["link_id"], browser: browser, now: now)
                }
            guard let used else { return nil }
            try confirmInvited(connection, tracker, used, now: now)
            let number: Int64 = try row["id"]
            try connection.run("DELETE FROM page_codes WHERE id = \(number)")
            try open(connection, session, of: used, by: .mail, replacing: old, now: now)
            return session
        }
    }

    /// Uses up the link that a code came with; nil where there is none any more.
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

    /// The code of a link; nil, and one that no one gets in its place, after many wrong ones.
    func addCode(
        _ connection: any DatabaseConnection, link: Int64, user: Int64, browser: String, now: Int64
    ) throws(StoreFailure) -> String? {
        let wrong: Int? = try connection.value(
            """
            SELECT CAST(SUM(tries) AS BIGINT) AS wrong FROM page_codes
            WHERE user_id = \(user) AND created_at > \(now - SignInCodeLimits.day)
            """)
        let code = try SecretHash.newCode()
        try addCode(connection, code, link: link, user: user, browser: browser, now: now)
        return wrong ?? 0 < SignInCodeLimits.triesPerDay ? code : nil
    }

    /// A code that no one gets, for a browser that asked for an inbox that no one has.
    func addCode(browser: String, now: Int64) throws(StoreFailure) {
        let code = try SecretHash.newCode()
        try database.write(.durable) { connection throws(StoreFailure) in
            try addCode(connection, code, link: nil, user: nil, browser: browser, now: now)
        }
    }

    /// - Parameter mark: of an inbox whose owner becomes a user by it.
    func addCode(
        _ connection: any DatabaseConnection, _ code: String, link: Int64?, user: Int64?, mark: [UInt8]? = nil, browser: String,
        now: Int64
    ) throws(StoreFailure) {
        let keptUntil = now + (user == nil && mark == nil ? PageLifetime.link : SignInCodeLimits.day)
        try connection.run(
            """
            INSERT INTO page_codes (browser_hash, code_hash, link_id, user_id, inbox_mark, created_at, expires_at, kept_until)
            VALUES (\(secrets.hash(.browser, browser)), \(secrets.hash(.signInCode, code)), \(link), \(user), \(mark),
                \(now), \(now + PageLifetime.link), \(keptUntil))
            """)
    }
}
