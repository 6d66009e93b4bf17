// Rules for new users on the sign-in page. A mailed code proves their inbox.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// Rules for people who become users by proving that an inbox is theirs.
package struct SignUpRules: Sendable, Hashable {
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// No person may become a user.
        case closed
        /// Users whom the operator added and who have no confirmed inbox yet.
        case invited
        /// Invited users and anyone else.
        case open
    }

    package let mode: Mode
    /// With `open`, the allowed domains of inboxes; empty for all.
    private let domains: [String]

    package static let closed = SignUpRules(.closed)

    package init(_ mode: Mode, domains: [String] = []) {
        self.mode = mode
        self.domains = domains.map { DomainName.toASCII($0) ?? $0 }
    }

    /// Whether a person with this inbox may become a user.
    func takes(_ inbox: InboxAddress) -> Bool {
        guard mode == .open else { return false }
        guard !domains.isEmpty else { return true }
        return DomainName.toASCII(inbox.revealed.domain).map(domains.contains) ?? false
    }
}

/// An address that passes through the browser in which it was entered.
private struct SignUp: Codable {
    let address: String
    let browser: [UInt8]
    /// Seconds since 1970.
    let expiresAt: Int64
}

extension PortalRepository {
    /// The value that every browser stores while its user reads the mail: the sealed address, in
    /// base64url.
    package func sealSignUp(
        _ inbox: InboxAddress, browser: String, now: Int64
    ) throws(StoreFailure) -> String {
        let value = SignUp(
            address: inbox.revealed.wireForm, browser: secrets.hash(.browser, browser),
            expiresAt: now + PageLifetime.link)
        return try SealedTokens(secrets: secrets).seal(value, .signUp)
    }

    /// The address for which a browser requested a code; nil if it requested none, or too long ago.
    package func typedInbox(_ sealed: String?, browser: String, now: Int64) -> InboxAddress? {
        openSignUp(sealed, browser: secrets.hash(.browser, browser), now: now)
    }

    private func openSignUp(_ sealed: String?, browser: [UInt8], now: Int64) -> InboxAddress? {
        guard let sealed, let value: SignUp = SealedTokens(secrets: secrets).open(sealed, .signUp),
            constantTimeEqual(value.browser, browser), value.expiresAt > now
        else { return nil }
        return (try? AddrSpec.typed(value.address)).map(InboxAddress.init)
    }

    /// The value that a code is bound to in place of a user.
    private func mark(_ inbox: InboxAddress) -> [UInt8] {
        secrets.hash(
            .signUp, inboxes.index.lasting(inbox.revealed).map { String($0, radix: 16) }.joined(),
            context: "inbox")
    }

    /// A link and a code for a person who is not a user yet; only the link after many wrong codes
    /// for this inbox. Throws `limit` beyond a limit.
    func signUpCode(
        for inbox: InboxAddress, _ tab: SignInTab, network: [UInt8]?, limits: NoticeLimits,
        now: Int64
    ) throws(StoreFailure) -> PageLink {
        let mark = mark(inbox)
        let domain = secrets.hash(
            .inboxDomain, DomainName.toASCII(inbox.revealed.domain) ?? inbox.revealed.domain)
        let token = try SecretHash.newToken()
        return try database.write(.durable) { connection throws(StoreFailure) in
            try connection.reserveNotice(
                .signIn, index: inboxes.index.search(inbox.revealed).canonical, user: nil,
                source: NoticeSource(network: network, domain: domain), limits: limits, now: now)
            let wrong: Int? = try connection.value(
                """
                SELECT CAST(SUM(tries) AS BIGINT) AS wrong FROM page_codes
                WHERE inbox_mark = \(mark) AND created_at > \(now - SignInCodeLimits.day)
                """)
            let code = try SecretHash.newCode()
            try addCode(
                connection, code, link: nil, user: nil, mark: mark, token: token, tab, now: now)
            return PageLink(
                userID: nil, inbox: inbox, token: token,
                code: wrong ?? 0 < SignInCodeLimits.triesPerDay ? code : nil,
                expiresAt: now + PageLifetime.link)
        }
    }

    /// Distinguishes the hash of such a link from the hashes of users' links.
    static var signUpLink: String { "sign-up" }

    private func signUpRow(
        _ connection: any DatabaseConnection, link token: String, now: Int64
    ) throws(StoreFailure) -> (row: SQLRow, request: String?)? {
        let row = try connection.row(
            """
            SELECT id, browser_hash, inbox_mark, request_sealed FROM page_codes
            WHERE token_hash = \(secrets.hash(.pageLink, token, context: Self.signUpLink)) AND expires_at > \(now)
            """)
        guard let row else { return nil }
        let sealed: [UInt8]? = try row["request_sealed"]
        return (
            row,
            sealed.flatMap {
                SealedTokens(secrets: secrets).decrypt($0, Array(token.utf8), .pageLink)
            }
        )
    }

    /// The state of the link of a person who is not a user yet.
    func signUpState(
        of token: String, browser: String?, now: Int64
    ) throws(StoreFailure) -> LinkState {
        try database.read { connection throws(StoreFailure) -> LinkState in
            guard let (row, request) = try signUpRow(connection, link: token, now: now) else {
                return .gone
            }
            guard let browser,
                constantTimeEqual(
                    try row["browser_hash"],
                    SignInTab(browser: browser, request: request).hash(secrets))
            else { return .otherBrowser }
            return .good
        }
    }

    /// Uses the link of a person who is not a user yet; nil if it is not valid in this browser.
    func signUp(
        _ connection: any DatabaseConnection, link token: String, sealed: String?, browser: String,
        now: Int64
    ) throws(StoreFailure) -> (user: Int64, inbox: Int64)? {
        guard let (row, request) = try signUpRow(connection, link: token, now: now),
            let mark: [UInt8] = try row["inbox_mark"],
            constantTimeEqual(
                try row["browser_hash"], SignInTab(browser: browser, request: request).hash(secrets)
            )
        else { return nil }
        let number: Int64 = try row["id"]
        // Of two simultaneous uses one wins: the other finds no row.
        guard
            try connection.run(
                "UPDATE page_codes SET token_hash = NULL WHERE id = \(number) AND token_hash IS NOT NULL"
            ) > 0,
            let used = try signUp(
                connection, sealed: sealed, mark: mark, browser: secrets.hash(.browser, browser),
                now: now)
        else { return nil }
        try connection.run("DELETE FROM page_codes WHERE id = \(number)")
        return used
    }

    /// Makes a user with this inbox, or returns a user who got it while the mail was in transit.
    /// - Parameters:
    ///   - sealed: as made by `sealSignUp`.
    ///   - mark: the mark of the entered code.
    func signUp(
        _ connection: any DatabaseConnection, sealed: String?, mark wanted: [UInt8],
        browser: [UInt8], now: Int64
    ) throws(StoreFailure) -> (user: Int64, inbox: Int64)? {
        guard let inbox = openSignUp(sealed, browser: browser, now: now),
            constantTimeEqual(wanted, mark(inbox))
        else {
            return nil
        }
        let search = inboxes.index.search(inbox.revealed)
        let known = try connection.row(
            """
            SELECT id, user_id, CASE WHEN address_index IN (\(search.exact.0), \(search.exact.1)) THEN 1 ELSE 0 END AS is_exact
            FROM inboxes WHERE canonical_index IN (\(search.canonical.0), \(search.canonical.1)) AND verified_at IS NOT NULL
                AND reply_only = 0 ORDER BY 3 DESC LIMIT 1
            """)
        if let known {
            // Another person became a user with a different spelling while the mail was in transit.
            // The mailbox gets no second user. A new request sends a message to the verified
            // spelling, which proves that the mailbox is the same.
            return try known["is_exact"] ? (known["user_id"], known["id"]) : nil
        }
        return try newUser(connection, inbox, name: nil, now: now)
    }

    /// A new user with this inbox, which was proved to be theirs.
    /// - Parameter name: characters that a name cannot have are removed; ignored if it is too long.
    func newUser(
        _ connection: any DatabaseConnection, _ inbox: InboxAddress, name: String?, now: Int64
    ) throws(StoreFailure) -> (user: Int64, inbox: Int64) {
        let id = "u-" + (try SecretHash.newToken()).prefix(20)
        let change = Change(actor: "user:\(id)", now: now)
        let name = name.flatMap { try? Identifier.checkedName(PersonText.cleaned($0).text) }
        let user = try users.insert(connection, id: id, name: name, change)
        let row = try inboxes.insert(
            connection, user: user, id: id, inbox, isVerified: true, isReplyOnly: false, change)
        return (user, row)
    }

    /// A user whom the operator added with this inbox, and who has no confirmed inbox yet; nil if
    /// there is none, or more than one. Inboxes that users add themselves do not count: those users
    /// have another, confirmed one.
    func invited(
        _ inbox: InboxAddress
    ) throws(StoreFailure) -> (user: Int64, id: String, inbox: Int64)? {
        let search = inboxes.index.search(inbox.revealed).exact
        let rows = try database.rows(
            """
            SELECT i.user_id, u.handle, i.number FROM inboxes i JOIN users u ON u.id = i.user_id
            WHERE i.address_index IN (\(search.0), \(search.1)) AND i.verified_at IS NULL AND i.reply_only = 0
                AND NOT EXISTS (SELECT 1 FROM inboxes o WHERE o.user_id = i.user_id AND o.verified_at IS NOT NULL)
            LIMIT 2
            """)
        guard rows.count == 1, let row = rows.first else { return nil }
        return try (row["user_id"], row["handle"], row["number"])
    }

    /// Confirms the inbox used for sign-in, if it is not confirmed: by signing in, invited users
    /// prove that it is theirs.
    func confirmInvited(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker,
        _ used: (user: Int64, inbox: Int64), now: Int64
    ) throws(StoreFailure) {
        let inbox = try inboxes.inbox(connection, user: used.user, row: used.inbox)
        guard !inbox.isVerified,
            let id: String = try connection.value(
                "SELECT handle FROM users WHERE id = \(used.user)")
        else { return }
        _ = try inboxes.confirm(
            connection, tracker, user: used.user, id: id, inbox, detail: "by signing in",
            Change(actor: "user:\(id)", now: now))
    }
}
