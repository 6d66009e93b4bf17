// Codes and tokens: issued, exchanged, refreshed and ended. Only keyed hashes of them are stored.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// Issues codes and tokens. Everything that a call issues is written first, in the transaction in
/// which `finish` makes the response: if the response cannot be made, nothing remains.
package struct ProviderRepository: Sendable {
    let grants: GrantRepository
    let users: UserRepository
    let inboxes: InboxRepository
    let secrets: SecretHash
    private var events: AccountEvents { grants.addresses.events }
    var database: any Database { events.database }

    // MARK: Authorization

    /// Records the user's consent and issues a code. Refused for an unknown app, user or inbox, and
    /// for a redirect URI that is not registered for the app. Also refused for an email address if
    /// the user has no verified inbox.
    /// - Parameters:
    ///   - statuses: gives the status if the request has none; if nil, 0 is given.
    ///   - keep: stores the response in the same transaction; if it throws, there was no consent.
    package func authorize<T>(
        _ request: ProviderAuthorization, statuses: (any StatusSource)? = nil, _ change: Change,
        keep: (T, any DatabaseConnection) throws(StoreFailure) -> Void = { _, _ in },
        finish: (IssuedCode) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        let code = try Self.token("pc_")
        return try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let app = try app(connection, request)
            if request.scopes.contains(UserScope.email) {
                try refuseUnreachable(connection, request.grant.userID)
            }
            var grant = request.grant
            if grant.realUserStatus == nil {
                grant.givenStatus = try statuses?.status(connection, of: request, now: change.now)
                if statuses == nil { grant.realUserStatus = 0 }
            }
            let given = try grants.authorize(connection, tracker, grant, change)
            // A work or school account is one that an organization signs in.
            try connection.run(
                """
                UPDATE users SET is_managed = \(request.orgID != nil)
                WHERE handle = \(request.grant.userID) AND (is_managed IS NULL OR is_managed <> \(request.orgID != nil))
                """)
            let status = given.deliversProfile ? given.grant.realUserStatus : nil
            let sessionID = try request.session.map { session throws(StoreFailure) in
                try connection.name(ofSession: session, app: app, grant: given.grant.number)
            }
            try connection.run(
                """
                INSERT INTO authorization_codes
                    (code_hash, grant_id, generation, app_id, redirect_uri, scopes, nonce, challenge, real_user_status, org_id,
                    authenticated_at, amr, acr, sid, expires_at)
                VALUES (\(secrets.hash(.authorizationCode, code)), \(given.grant.number), \(given.grant.generation), \(app),
                    \(request.redirectURI), \(Self.text(request.scopes)), \(request.nonce), \(request.challenge), \(status),
                    \(request.orgID), \(request.authenticatedAt), \(request.method.text), \(request.method.contextClass),
                    \(sessionID), \(change.now + ProviderLifetime.code))
                """)
            let subject = try subject(
                connection, clientID: request.grant.clientID, group: given.grant.group.number,
                account: given.account,
                scopes: request.scopes, nonce: request.nonce, status: status, orgID: request.orgID,
                authenticatedAt: request.authenticatedAt, method: request.method,
                sessionID: sessionID, now: change.now)
            let isNamed = given.deliversProfile && UserScope.haveName(request.scopes)
            let name = isNamed ? try users.user(connection, request.grant.userID).name : nil
            let answer = try finish(
                IssuedCode(
                    code: code, subject: subject, deliversProfile: given.deliversProfile,
                    userName: name))
            try keep(answer, connection)
            return answer
        }
    }

    /// The user that `user_hint` names for this client. The hint is the `sub` that the client's
    /// team knows. After a move of the app it may also be the `sub` that the earlier team knew,
    /// even if the user's grant has not moved yet. Nil for anything else.
    package func userID(
        hint sub: String, clientID: String, now: Int64
    ) throws(StoreFailure) -> String? {
        try database.read { connection throws(StoreFailure) in
            let (team, group) = try connection.appGroup(clientID: clientID)
            return try connection.value(
                """
                SELECT u.handle FROM accounts a JOIN users u ON u.id = a.user_id
                WHERE a.sub = \(sub) AND (a.team_id = \(team.number) OR EXISTS (
                    SELECT 1 FROM account_transfers t JOIN app_transfers p ON p.id = t.transfer_id
                    WHERE t.old_account = a.id AND p.group_id = \(group.number) AND t.ends_at > \(now)) OR EXISTS (
                    SELECT 1 FROM grants g JOIN app_transfers p ON p.group_id = g.group_id AND p.state = 'moving'
                    WHERE g.account_id = a.id AND \(SQL.filter("g.group_id")) = \(group.number) AND p.from_team = a.team_id))
                """)
        }
    }

    private func refuseUnreachable(
        _ connection: any DatabaseConnection, _ user: String
    ) throws(StoreFailure) {
        let verified = try connection.row(
            """
            SELECT id FROM inboxes WHERE user_id = (SELECT id FROM users WHERE handle = \(user)) AND verified_at IS NOT NULL
                AND reply_only = 0 LIMIT 1
            """)
        guard verified == nil else { return }
        _ = try connection.userNumber(user)
        throw .refused(.unmet, "user \(user) has no verified inbox")
    }

    // MARK: Tokens

    /// Exchanges a code for an access token and a refresh token. A second use of a code ends
    /// the tokens of the first.
    /// - Parameter challenge: SHA-256 of the `code_verifier`; nil if the client sent none.
    package func redeem<T: Sendable>(
        code: String, client: ProviderClient, redirectURI: String, challenge: [UInt8]?, now: Int64,
        finish: (IssuedTokens) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> TokenOutcome<T> {
        let hash = secrets.hash(.authorizationCode, code)
        let (outcome, grant) = try database.write(.durable) {
            connection throws(StoreFailure) -> (TokenOutcome<T>, Int64?) in
            let row = try connection.row(
                """
                SELECT c.grant_id, c.generation, c.app_id, c.redirect_uri, c.scopes, c.nonce, c.challenge, c.real_user_status,
                    c.org_id, c.authenticated_at, c.amr, c.acr, c.sid, c.expires_at, g.state, g.generation AS grant_generation
                FROM authorization_codes c JOIN grants g ON g.id = c.grant_id WHERE c.code_hash = \(hash)
                """)
            guard let row else {
                let ended = try connection.run(
                    "DELETE FROM refresh_tokens WHERE code_hash = \(hash) AND \(SQL.filter("app_id")) = \(client.appNumber)"
                )
                return (
                    .refused(
                        .invalid(
                            ended > 0
                                ? "the code was used before: the tokens it gave are revoked"
                                : "the code is not valid")),
                    nil
                )
            }
            let (grant, generation): (Int64, Int64) = try (row["grant_id"], row["generation"])
            guard try row["app_id"] == client.appNumber, try row["expires_at"] > now,
                try row["state"] == Grant.State.authorized,
                try row["grant_generation"] == generation
            else { return (.refused(.invalid("the code is not valid")), nil) }
            let asked: String = try row["redirect_uri"]
            guard asked.hasSameOctets(as: redirectURI) else {
                return (
                    .refused(.invalid("redirect_uri differs from that of the authorization")), nil
                )
            }
            if let problem = Self.verifierProblem(asked: try row["challenge"], given: challenge) {
                return (.refused(.invalid(problem)), nil)
            }
            guard let account = try account(connection, grant: grant, client, now: now) else {
                return (.refused(.invalid("the code is not valid")), nil)
            }
            try connection.run("DELETE FROM authorization_codes WHERE code_hash = \(hash)")
            let refresh = try RefreshToken(isPublic: client.isPublic)
            let (scopes, orgID): (String, String?) = try (row["scopes"], row["org_id"])
            let authenticatedAt: Int64 = try row["authenticated_at"]
            let method = try AuthenticationMethod(row: row)
            let sessionID: String? = try row["sid"]
            let number = try connection.inserted(
                """
                INSERT INTO refresh_tokens
                    (token_hash, family_hash, code_hash, grant_id, generation, app_id, scopes, org_id, authenticated_at, amr, acr,
                    sid, created_at)
                VALUES (\(refresh.hash(secrets)), \(refresh.familyHash(secrets)), \(hash), \(grant), \(generation), \(client.appNumber),
                    \(scopes), \(orgID), \(authenticatedAt), \(method.text), \(method.contextClass), \(sessionID), \(now))
                RETURNING id
                """)
            let access = try accessToken(
                connection, app: client.appNumber, refresh: number, scopes: scopes, now: now)
            let subject = try subject(
                connection, clientID: client.clientID, group: client.groupNumber, account: account,
                scopes: Self.scopes(scopes),
                nonce: row["nonce"], status: row["real_user_status"], orgID: orgID,
                authenticatedAt: authenticatedAt,
                method: method, sessionID: sessionID, now: now)
            let tokens = IssuedTokens(
                accessToken: access, refreshToken: refresh.text, subject: subject)
            return (.issued(try finish(tokens)), grant)
        }
        if let grant {
            database.keepNewest(
                [(ProviderLifetime.refreshTokensPerGrant, "refresh_tokens")],
                "grant_id = \(grant) AND \(SQL.filter("app_id")) = \(client.appNumber)")
        }
        return outcome
    }

    /// Another access token for a refresh token, as long as the grant lives; for a public app
    /// the next refresh token too.
    /// - Parameters:
    ///   - asked: the scopes of this request (RFC 6749 section 6); nil for all granted ones.
    ///   - dailyLimit: the most refreshes with one token on one day (UTC).
    package func refresh<T: Sendable>(
        token: String, client: ProviderClient, scopes asked: Set<String>? = nil, dailyLimit: Int,
        now: Int64,
        finish: (IssuedTokens) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> TokenOutcome<T> {
        let given = RefreshToken(token)
        let (hash, next) = (given.hash(secrets), given.next(secrets))
        return try database.write(.durable) { connection throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT r.id, r.app_id, r.scopes, r.org_id, r.authenticated_at, r.amr, r.acr, r.sid, r.used_day, r.uses, r.generation,
                    r.token_hash, r.former_hash, r.rotated_at, r.grant_id, g.state, g.generation AS grant_generation
                FROM refresh_tokens r JOIN grants g ON g.id = r.grant_id
                WHERE r.token_hash = \(hash) OR r.family_hash = \(given.familyHash(secrets))
                """)
            guard let row, try row["app_id"] == client.appNumber, next != nil || !client.isPublic
            else {
                return .refused(.invalid("the refresh token is not valid"))
            }
            let isPresent = try constantTimeEqual(row["token_hash"], hash)
            if !isPresent {
                let (former, rotatedAt): ([UInt8]?, Int64?) = try (
                    row["former_hash"], row["rotated_at"]
                )
                let isLast = former.map { constantTimeEqual($0, hash) } ?? false
                guard isLast, let rotatedAt, now - rotatedAt <= RefreshToken.patience else {
                    try connection.run(
                        "DELETE FROM refresh_tokens WHERE id = \(row["id"] as Int64)")
                    return .refused(
                        .invalid(
                            "the refresh token was used before: the tokens of this sign-in are revoked"
                        ))
                }
            }
            let (number, generation): (Int64, Int64) = try (row["id"], row["generation"])
            guard try row["state"] == Grant.State.authorized,
                try row["grant_generation"] == generation
            else {
                return .refused(.invalid("the user's consent was revoked"))
            }
            let granted = Self.scopes(try row["scopes"])
            let scopes = asked ?? granted
            guard scopes.isSubset(of: granted) else { return .refused(.scope) }
            guard let account = try account(connection, grant: row["grant_id"], client, now: now)
            else {
                return .refused(.invalid("the refresh token is not valid"))
            }
            let day = Day.number(now)
            let uses: Int = try row["used_day"] == day ? row["uses"] : 0
            guard uses < dailyLimit else { return .refused(.tooMany) }
            try connection.run(
                "UPDATE refresh_tokens SET used_day = \(day), uses = \(uses + 1) WHERE id = \(number)"
            )
            if isPresent, let next {
                try connection.run(
                    """
                    UPDATE refresh_tokens SET token_hash = \(next.hash(secrets)), former_hash = \(hash), rotated_at = \(now)
                    WHERE id = \(number)
                    """)
            }
            let access = try accessToken(
                connection, app: client.appNumber, refresh: number, scopes: Self.text(scopes),
                now: now)
            let subject = try subject(
                connection, clientID: client.clientID, group: client.groupNumber, account: account,
                scopes: scopes, nonce: nil,
                status: nil, orgID: row["org_id"], authenticatedAt: row["authenticated_at"],
                method: AuthenticationMethod(row: row), sessionID: row["sid"], now: now)
            return .issued(
                try finish(
                    IssuedTokens(accessToken: access, refreshToken: next?.text, subject: subject)))
        }
    }

    /// An access token for the client itself.
    package func clientToken(
        _ client: ProviderClient, scope: String, now: Int64
    ) throws(StoreFailure) -> String {
        try database.write(.durable) { connection throws(StoreFailure) in
            try accessToken(
                connection, app: client.appNumber, refresh: nil, scopes: scope, now: now)
        }
    }

    /// The holder of an access token; nil if the token is unknown, has
    /// expired, or its consent ended.
    package func holder(
        accessToken token: String, now: Int64
    ) throws(StoreFailure) -> AccessTokenHolder? {
        let row = try database.row(
            """
            SELECT a.client_id, t.handle, x.scopes FROM access_tokens x
            JOIN apps a ON a.id = x.app_id JOIN app_groups g ON g.id = a.group_id
            JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
            WHERE x.token_hash = \(secrets.hash(.accessToken, token)) AND x.expires_at > \(now)
                AND (x.refresh_id IS NULL OR EXISTS (
                SELECT 1 FROM refresh_tokens r JOIN grants c ON c.id = r.grant_id
                WHERE r.id = x.refresh_id AND c.state = 'authorized' AND c.generation = r.generation))
            """)
        return try row.map { row throws(StoreFailure) in
            try AccessTokenHolder(
                clientID: row["client_id"], teamID: row["handle"],
                scopes: Self.scopes(row["scopes"]))
        }
    }

    /// The app that holds its own access token, which no user gave it; nil for any other token.
    package func app(accessToken token: String, now: Int64) throws(StoreFailure) -> AppCaller? {
        let row = try database.row(
            """
            SELECT a.client_id, a.group_id, g.team_id, t.handle, x.scopes FROM access_tokens x
            JOIN apps a ON a.id = x.app_id JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
            WHERE x.token_hash = \(secrets.hash(.accessToken, token)) AND x.expires_at > \(now) AND x.refresh_id IS NULL
            """)
        return try row.map { row throws(StoreFailure) in
            try AppCaller(
                clientID: row["client_id"], group: row["group_id"],
                team: APIKey.TeamName(id: row["handle"], number: row["team_id"]),
                scopes: Self.scopes(row["scopes"]))
        }
    }

    /// Revokes a token. For a user's token, ends the grant with all its codes and tokens, and
    /// notifies endpoints. For a client's own token, ends only that token. A public client proves
    /// only that it has the token: only the token and others from the same sign-in end.
    package func revoke(
        token: String, client: ProviderClient, _ change: Change
    ) throws(StoreFailure) -> RevocationOutcome {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let (access, refresh) = (secrets.hash(.accessToken, token), RefreshToken(token))
            let row = try connection.row(
                """
                SELECT r.app_id, r.grant_id, r.id FROM refresh_tokens r
                WHERE r.token_hash = \(refresh.hash(secrets)) OR r.family_hash = \(refresh.familyHash(secrets))
                UNION ALL SELECT x.app_id, r.grant_id, r.id FROM access_tokens x LEFT JOIN refresh_tokens r ON r.id = x.refresh_id
                WHERE x.token_hash = \(access)
                """)
            guard let row else { return .unknown }
            guard try row["app_id"] == client.appNumber else { return .otherClient }
            guard let number: Int64 = try row["grant_id"] else {
                try connection.run("DELETE FROM access_tokens WHERE token_hash = \(access)")
                return .revoked
            }
            guard !client.isPublic else {
                let signIn: Int64? = try row["id"]
                return try connection.run("DELETE FROM refresh_tokens WHERE id = \(signIn)") > 0
                    ? .revoked : .unknown
            }
            // The new team's endpoint is notified of its own account.
            try TransferRepository.move(
                connection, grant: number, addresses: grants.addresses, change)
            let grant = try connection.row(
                """
                SELECT g.account_id, g.group_id, p.primary_client_id FROM grants g JOIN app_groups p ON p.id = g.group_id
                WHERE g.id = \(number)
                """)
            guard let grant else { return .unknown }
            let (account, group): (Int64, AppGroup) = try (
                grant["account_id"], AppGroup(row: grant)
            )
            try tracker.snapshot(.account(account))
            return try connection.revoke(account: account, group: group, at: change.now, change)
                ? .revoked : .unknown
        }
    }

    /// Deletes expired codes, access tokens, assertions and requests, at most 1,000 of each at a
    /// time; returns the largest of the four counts.
    package func deleteExpired(now: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try [
                ("authorization_codes", "code_hash"), ("access_tokens", "token_hash"),
                ("client_assertions", "jti_hash"),
                ("pending_requests", "id"),
            ].map { table, key throws(StoreFailure) in
                try connection.run(
                    """
                    DELETE FROM \(raw: table)
                    WHERE \(raw: key) IN (SELECT \(raw: key) FROM \(raw: table) WHERE expires_at <= \(now) LIMIT 1000)
                    """)
            }.max() ?? 0
        }
    }

    // MARK: Parts

    /// The app of a request. Refused if there is none, or if the redirect URI
    /// is not registered for it.
    private func app(
        _ connection: any DatabaseConnection, _ request: ProviderAuthorization
    ) throws(StoreFailure) -> Int64 {
        let clientID = request.grant.clientID
        let row = try connection.row(
            """
            SELECT a.id, r.app_id AS registered FROM apps a
            LEFT JOIN app_redirects r ON r.app_id = a.id AND r.uri = \(request.redirectURI) WHERE a.client_id = \(clientID)
            """)
        guard let row else {
            throw .refused(.notFound, "there is no app \(clientID): see postern app list")
        }
        let id: Int64 = try row["id"]
        guard try row["registered"] as Int64? == nil else { return id }
        // A redirect URI on a loopback address has a port that changes with each start.
        let registered: [String] = try connection.values(
            "SELECT uri FROM app_redirects WHERE app_id = \(id)")
        guard
            registered.contains(where: { RedirectURI.matches(request.redirectURI, registered: $0) })
        else {
            throw .refused(.invalid, "this redirect_uri is not registered for app \(clientID)")
        }
        return id
    }

    private func accessToken(
        _ connection: any DatabaseConnection, app: Int64, refresh: Int64?, scopes: String,
        now: Int64
    ) throws(StoreFailure) -> String {
        let token = try Self.token(SecretHash.accessTokenPrefix)
        try connection.run(
            """
            INSERT INTO access_tokens (token_hash, refresh_id, app_id, scopes, expires_at)
            VALUES (\(secrets.hash(.accessToken, token)), \(refresh), \(app), \(scopes), \(now + ProviderLifetime.accessToken))
            """)
        return token
    }

    /// The account of a grant, as the client's team knows it. During a transfer, this moves the
    /// grant with its app, because the new team must not learn the old team's identifier of the
    /// user. Nil if the grant does not move, if the app was just removed, or if user or team is
    /// frozen.
    func account(
        _ connection: any DatabaseConnection, grant: Int64, _ client: ProviderClient, now: Int64
    ) throws(StoreFailure) -> Account? {
        let change = Change(actor: "client:\(client.clientID)", now: now)
        try TransferRepository.move(connection, grant: grant, addresses: grants.addresses, change)
        return try connection.row(
            """
            \(AccountRepository.select) JOIN grants g ON g.account_id = a.id
            JOIN app_groups p ON p.id = g.group_id AND \(SQL.filter("p.team_id")) = \(client.teamNumber) AND p.removed_from IS NULL
            WHERE g.id = \(grant) AND \(SQL.filter("a.team_id")) = \(client.teamNumber)
                AND NOT EXISTS (SELECT 1 FROM user_freezes f WHERE f.user_id = a.user_id)
                AND NOT EXISTS (SELECT 1 FROM team_freezes f WHERE f.team_id = a.team_id)
            """
        ).map(Account.init(row:))
    }

    /// - Parameter group: the group of apps that the token is for: each group moves by its own
    ///   transfer, or stays.
    func subject(
        _ connection: any DatabaseConnection, clientID: String, group: Int64, account: Account,
        scopes: Set<String>,
        nonce: String?, status: Int?, orgID: String?, authenticatedAt: Int64,
        method: AuthenticationMethod,
        sessionID: String?, now: Int64
    ) throws(StoreFailure) -> TokenSubject {
        let transferSub: String? = try connection.value(
            """
            SELECT s.transfer_sub FROM account_transfers t
            JOIN app_transfers x ON x.id = t.transfer_id AND x.group_id = \(group)
            JOIN accounts a ON a.id = t.new_account
            JOIN transfer_subs s ON s.account_id = t.old_account AND s.target_team = a.team_id
            WHERE t.new_account = \(account.number) AND t.ends_at > \(now) ORDER BY t.transfer_id DESC LIMIT 1
            """)
        return TokenSubject(
            clientID: clientID, sub: account.sub, scopes: scopes,
            email: scopes.contains(UserScope.email) ? try inboxes.email(connection, account) : nil,
            nonce: nonce,
            realUserStatus: status,
            orgID: orgID, authenticatedAt: authenticatedAt, transferSub: transferSub,
            method: method, sessionID: sessionID)
    }

    /// The problem of a `code_verifier` (RFC 7636 section 4.6); nil if there is none.
    /// - Parameters:
    ///   - asked: the `code_challenge` of the authorization.
    ///   - given: the challenge computed from the given verifier.
    private static func verifierProblem(asked: [UInt8]?, given: [UInt8]?) -> String? {
        switch (asked, given) {
        case (nil, nil): nil
        case (.some, nil): "code_verifier is missing: the authorization had a code_challenge"
        case (nil, .some):
            "code_verifier is for authorizations with a code_challenge; this one had none"
        case (let asked?, let given?):
            constantTimeEqual(asked, given)
                ? nil : "code_verifier does not belong to the authorization's code_challenge"
        }
    }

    private static func token(_ prefix: String) throws(StoreFailure) -> String {
        prefix + (try SecretHash.newToken())
    }
    private static func text(_ scopes: Set<String>) -> String {
        scopes.sorted().joined(separator: " ")
    }
    static func scopes(_ text: String) -> Set<String> {
        Set(text.split(separator: " ").map(String.init))
    }
}

extension AuthenticationMethod {
    /// From the columns `amr` and `acr`.
    init(row: SQLRow) throws(StoreFailure) {
        let text: String? = try row["amr"]
        self.init(
            references: Set((text ?? "").split(separator: " ").map(String.init)),
            contextClass: try row["acr"])
    }

    /// The stored form; nil if nothing is known.
    var text: String? { references.isEmpty ? nil : references.joined(separator: " ") }
}
