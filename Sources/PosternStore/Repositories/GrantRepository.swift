// Consent: given, revoked, given again, and what a team's backend learns of it.

import InternetMessage

/// Authorizes and revokes grants. An account has one with each group of apps that its user consented to.
package struct GrantRepository: Sendable {
    let addresses: AddressRepository
    let inboxes: InboxRepository
    private var database: any Database { addresses.database }

    /// Notes a user's consent to an app, for the first time, again, or after a revocation.
    ///
    /// Account, `sub` and relay address are made where there are none, and are the same after a return. After a return the
    /// earlier status is the grant's `priorStatus`. `emailKind` counts as long as no grant of the account is live: what one app
    /// was given does not change because of another.
    package func authorize(_ request: AuthorizationRequest, _ change: Change) throws -> AuthorizedGrant {
        try addresses.events.write(at: change.now) { try authorize($0, $1, request, change) }
    }

    /// The same within a transaction.
    func authorize(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, _ request: AuthorizationRequest, _ change: Change
    ) throws -> AuthorizedGrant {
        let (team, group) = try connection.appGroup(clientID: request.clientID)
        let user = try connection.userNumber(request.userID)
        try TransferRepository.moveWaiting(connection, user: user, group: group.number, addresses: addresses, change)
        let account = try addresses.account(connection, team: team, user: user, change)
        try tracker.snapshot(.account(account))
        try settle(connection, account: account, user: user, request)
        let kind = try connection.authorize(
            account: account, group: group, teamID: team.id, realUserStatus: request.realUserStatus, change)
        var found = try connection.account(account)
        var address: RelayAddress?
        if found.emailKind == .privateRelay {
            address = try addresses.current(
                connection, account: account, team: team.id, user: request.userID, change
            ).address
            found = try connection.account(account)
        }
        guard let grant = try connection.grants(account: account).first(where: { $0.group == group }) else {
            throw PermanentStoreError(.unexpectedData, "a grant that was just written is missing")
        }
        return AuthorizedGrant(kind: kind, team: team, account: found, grant: grant, relayAddress: address)
    }

    private func settle(
        _ connection: any DatabaseConnection, account: Int64, user: Int64, _ request: AuthorizationRequest
    ) throws {
        let before = try connection.row(
            "SELECT CASE WHEN \(Self.isLive("accounts.id")) THEN 1 ELSE 0 END, email_kind FROM accounts WHERE id = ?1",
            [.integer(account)])
        guard let before else { return }
        let isLive = try before.bool(0)
        let kind = try isLive ? EmailKind(rawValue: before.text(1)) : request.emailKind ?? EmailKind(rawValue: before.text(1))
        if !isLive, let kind = request.emailKind {
            try connection.run("UPDATE accounts SET email_kind = ?2 WHERE id = ?1", [.integer(account), .text(kind.rawValue)])
        }
        if let name = request.inbox {
            let inbox = try inboxes.inbox(connection, user: user, id: request.userID, name)
            guard inbox.isVerified, !inbox.isReplyOnly else {
                throw StoreRefusal(.unmet, "mail goes to verified inboxes only, and never to a reply-only one")
            }
            // Where the team has the inbox itself, this one is what it would be told: only as the user shares it in this very
            // request.
            if kind != .real || !isLive || request.emailKind == .real {
                try connection.run("UPDATE accounts SET inbox_id = ?2 WHERE id = ?1", [.integer(account), .integer(inbox.id)])
            }
        }
        // What is shared now is this inbox, and stays it: a later default is nothing that the team is told.
        if request.emailKind == .real, !isLive {
            try connection.run(
                "UPDATE accounts SET inbox_id = target_inbox WHERE id = ?1 AND inbox_id IS NULL", [.integer(account)])
        }
        if let sharesName = request.sharesName {
            try connection.run("UPDATE accounts SET shares_name = ?2 WHERE id = ?1", [.integer(account), .bool(sharesName)])
        }
    }

    /// A condition: the account has a live grant to an app that is there. `has_live_grant` says the same, but for teams with
    /// `loses_apps`.
    static func isLive(_ account: String) -> String {
        """
        EXISTS (SELECT 1 FROM grants lg JOIN app_groups lp ON lp.id = lg.group_id AND lp.removed_from IS NULL
            WHERE lg.account_id = \(account) AND lg.state = 'authorized')
        """
    }

    /// The account's grants, the oldest first.
    package func grants(account number: Int64) throws -> [Grant] { try database.read { try $0.grants(account: number) } }

    /// Revokes the account's grant to a group, and with it every code and token; whether it was live. With the last one the
    /// address is refused as revoked.
    @discardableResult
    package func revoke(account number: Int64, group: AppGroup, _ change: Change) throws -> Bool {
        try addresses.events.write(at: change.now) { connection, tracker in
            try tracker.snapshot(.account(number))
            return try connection.revoke(account: number, group: group, at: change.now, change)
        }
    }

    /// Revokes every live grant of an account; how many there were.
    @discardableResult
    package func revokeAll(account number: Int64, _ change: Change) throws -> Int {
        try addresses.events.write(at: change.now) { connection, tracker in
            try tracker.snapshot(.account(number))
            var count = 0
            for grant in try connection.grants(account: number) where grant.state == .authorized {
                if try connection.revoke(account: number, group: grant.group, at: change.now, change) { count += 1 }
            }
            return count
        }
    }

    /// What a team is notified of one of its subjects.
    ///
    /// With an app, of the grant to that app's group; without, of the best there is: authorized while any grant is. Subjects of
    /// other teams, of no one, and of deleted accounts are `notFound`, and so are apps of others, but for one that moved to
    /// another team: its subjects are `transferred` for the old one.
    package func credentialState(team: String, sub: String, clientID: String? = nil) throws -> CredentialState {
        try database.read { connection in
            let team = try connection.team(team)
            guard
                let account = try connection.row(
                    "SELECT id FROM accounts WHERE sub = ?1 AND team_id = ?2", [.text(sub), .integer(team.number)])?.integer(0)
            else { return .notFound }
            let group = try clientID.map { clientID in
                try connection.row(
                    "SELECT a.group_id FROM apps a JOIN app_groups p ON p.id = a.group_id AND p.removed_from IS NULL WHERE a.client_id = ?1",
                    [.text(clientID)])?.integer(0) ?? 0
            }
            let states = try connection.rows(
                """
                SELECT g.state, g.group_id FROM grants g JOIN app_groups p ON p.id = g.group_id AND p.removed_from IS NULL
                WHERE g.account_id = ?1
                """, [.integer(account)]
            ).filter { try group == nil || $0.integer(1) == group }.map { try $0.text(0) }
            if states.contains("authorized") { return .authorized }
            let moved = try connection.rows(
                """
                SELECT p.group_id FROM account_transfers t JOIN app_transfers p ON p.id = t.transfer_id WHERE t.old_account = ?1
                """, [.integer(account)]
            ).filter { try group == nil || $0.integer(0) == group }
            if !moved.isEmpty { return .transferred }
            // An account whose apps are all gone was consented to once.
            return states.isEmpty && group != nil ? .notFound : .revoked
        }
    }
}

extension DatabaseConnection {
    /// The team and group of an app, whoever asks; or `StoreRefusal` (`notFound`).
    func appGroup(clientID: String) throws -> (team: Team, group: AppGroup) {
        let row = try row(
            """
            SELECT t.id, t.handle, t.name, t.created_at, g.id, g.primary_client_id
            FROM apps a JOIN app_groups g ON g.id = a.group_id JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
            WHERE a.client_id = ?1
            """, [.text(clientID)])
        guard let row else { throw StoreRefusal(.notFound, "there is no app \(clientID): see postern app list") }
        return (try Team(row: row), AppGroup(number: try row.integer(4), primaryClientID: try row.optionalText(5)))
    }

    /// Writes consent.
    func authorize(
        account: Int64, group: AppGroup, teamID: String, realUserStatus: Int?, _ change: Change
    ) throws -> AuthorizedGrant.Kind {
        let status = SQLValue.optional(realUserStatus.map(Int64.init))
        let found = try row(
            "SELECT id, state FROM grants WHERE account_id = ?1 AND group_id = ?2", [.integer(account), .integer(group.number)])
        guard let found else {
            try run(
                """
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status)
                VALUES (?1, ?2, 'authorized', ?3, ?3, ?4)
                """, [.integer(account), .integer(group.number), .integer(change.now), status])
            try audit(change, "grant.authorize", "account:\(account)", "team:\(teamID) app:\(group.title)")
            return .first
        }
        let number = try found.integer(0)
        guard try found.text(1) != "authorized" else {
            try run(
                """
                UPDATE grants SET last_authorized_at = ?2, real_user_status = COALESCE(real_user_status, CAST(?3 AS BIGINT))
                WHERE id = ?1
                """, [.integer(number), .integer(change.now), status])
            return .again
        }
        try rejoin(grant: number, now: change.now)
        try run("UPDATE grants SET real_user_status = ?2 WHERE id = ?1", [.integer(number), status])
        try audit(change, "grant.authorize", "account:\(account)", "team:\(teamID) app:\(group.title) again")
        return .returned
    }

    /// Ends one grant; whether it was live. The caller watches the account.
    /// - Parameter time: of the revocation, seconds since 1970.
    func revoke(account: Int64, group: AppGroup, at time: Int64, _ change: Change) throws -> Bool {
        let changed = try run(
            """
            UPDATE grants SET state = 'revoked', revoked_at = ?3, generation = generation + 1
            WHERE account_id = ?1 AND group_id = ?2 AND state = 'authorized'
            """, [.integer(account), .integer(group.number), .integer(time)])
        guard changed > 0 else { return false }
        try endTokens(account: account, group: group)
        try audit(change, "grant.revoke", "account:\(account)", "app:\(group.title)")
        return true
    }

    /// The account's grants, the oldest first.
    func grants(account number: Int64) throws -> [Grant] {
        try rows(
            """
            SELECT g.id, g.group_id, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at, g.revoked_at,
                g.real_user_status, g.prior_status, g.generation
            FROM grants g JOIN app_groups p ON p.id = g.group_id
            JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = ?1 ORDER BY g.id
            """, [.integer(number)]
        ).map { row in
            Grant(
                number: try row.integer(0), accountNumber: number,
                group: AppGroup(number: try row.integer(1), primaryClientID: try row.optionalText(2)),
                state: try row.text(3) == "authorized" ? .authorized : .revoked, firstAuthorizedAt: try row.integer(4),
                lastAuthorizedAt: try row.integer(5), revokedAt: try row.optionalInteger(6),
                realUserStatus: try row.optionalInteger(7).map(Int.init), priorStatus: try row.optionalInteger(8).map(Int.init),
                generation: try row.integer(9))
        }
    }
}
