// Consent: given, revoked and given again, and its state for the team's backend.

import Database
import InternetMessage

/// Authorizes and revokes grants. An account has one grant for each group of apps that
/// its user consented to.
package struct GrantRepository: Sendable {
    package let addresses: AddressRepository
    let inboxes: InboxRepository
    private var database: any Database { addresses.database }

    /// Records a user's consent to an app, for the first time, again, or after a revocation.
    ///
    /// Creates the account, `sub` and relay address if they do not exist. They stay the same after
    /// a return, and the earlier status is then the grant's `priorStatus`. `emailKind` counts only
    /// while no grant of the account is live: a consent to one app does not change what another app
    /// already has.
    package func authorize(
        _ request: AuthorizationRequest, _ change: Change
    ) throws(StoreFailure) -> AuthorizedGrant {
        try addresses.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            try authorize(connection, tracker, request, change)
        }
    }

    /// Records a consent within a transaction.
    package func authorize(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker,
        _ request: AuthorizationRequest, _ change: Change
    ) throws(StoreFailure) -> AuthorizedGrant {
        let (team, group) = try connection.appGroup(clientID: request.clientID)
        let user = try connection.userNumber(request.userID)
        try TransferRepository.moveWaiting(
            connection, user: user, group: group.number, addresses: addresses, change)
        let account = try addresses.account(connection, team: team, user: user, change)
        try tracker.snapshot(.account(account))
        try settle(connection, account: account, user: user, request)
        let kind = try connection.authorize(
            account: account, group: group, teamID: team.id, realUserStatus: request.realUserStatus,
            change)
        var found = try connection.account(account)
        var address: RelayAddress?
        if found.emailKind == .privateRelay {
            let current = try addresses.current(
                connection, account: account, team: team.id, user: request.userID, change)
            address = current.address
            if current.isNew { found = try connection.account(account) }
        }
        if let given = request.givenStatus,
            let grant: Int64 = try connection.value(
                "SELECT id FROM grants WHERE account_id = \(account) AND \(SQL.filter("group_id")) = \(group.number)"
            )
        {
            try connection.give(given, grant: grant, now: change.now)
        }
        guard
            let grant = try connection.grants(account: account).first(where: { $0.group == group })
        else {
            throw .permanent(.unexpectedData, "a grant that was just written is missing")
        }
        return AuthorizedGrant(
            kind: kind, team: team, account: found, grant: grant, relayAddress: address)
    }

    private func settle(
        _ connection: any DatabaseConnection, account: Int64, user: Int64,
        _ request: AuthorizationRequest
    ) throws(StoreFailure) {
        let before = try connection.row(
            """
            SELECT CASE WHEN \(Self.isLive("accounts.id")) THEN 1 ELSE 0 END AS is_live, email_kind FROM accounts
            WHERE id = \(account)
            """)
        guard let before else { return }
        let (isLive, known): (Bool, EmailKind) = try (before["is_live"], before["email_kind"])
        let kind = isLive ? known : request.emailKind ?? known
        if !isLive, let kind = request.emailKind {
            try connection.run("UPDATE accounts SET email_kind = \(kind) WHERE id = \(account)")
        }
        if let name = request.inbox {
            let inbox = try inboxes.inbox(connection, user: user, id: request.userID, name)
            guard inbox.isVerified, !inbox.isReplyOnly else {
                throw .refused(
                    .unmet, "mail goes to verified inboxes only, and never to a reply-only one")
            }
            // A team that has the inbox itself would learn this inbox: the change needs the user's
            // consent to share it in this request.
            if kind != .real || !isLive || request.emailKind == .real {
                try connection.run(
                    "UPDATE accounts SET inbox_id = \(inbox.id) WHERE id = \(account)")
            }
        }
        // This inbox is now the shared one, and stays so: the team does not get a later default
        // inbox.
        if request.emailKind == .real, !isLive {
            try connection.run(
                "UPDATE accounts SET inbox_id = target_inbox WHERE id = \(account) AND inbox_id IS NULL"
            )
        }
        if let sharesName = request.sharesName {
            // Every sign-in sets this value. An unchanged value is not written, because a write
            // conflicts with concurrent readers.
            try connection.run(
                "UPDATE accounts SET shares_name = \(sharesName) WHERE id = \(account) AND shares_name <> \(sharesName)"
            )
        }
        if let name = request.name {
            try inboxes.sealer.keep(name, connection, account: account, user: user)
        }
    }

    /// A condition: the account has a live grant to an app that exists. `has_live_grant` says the
    /// same, except for teams with `loses_apps`.
    package static func isLive(_ account: SQL) -> SQL {
        """
        EXISTS (SELECT 1 FROM grants lg JOIN app_groups lp ON lp.id = \(SQL.filter("lg.group_id")) AND lp.removed_from IS NULL
            WHERE lg.account_id = \(account) AND lg.state = 'authorized')
        """
    }

    /// The account's grants, the oldest first.
    package func grants(account number: Int64) throws(StoreFailure) -> [Grant] {
        try database.read { connection throws(StoreFailure) in
            try connection.grants(account: number)
        }
    }

    /// Revokes the account's grant to a group, and with it every code and token. Returns whether
    /// the grant was live. After the last revocation, mail to the address is refused as revoked.
    @discardableResult
    package func revoke(
        account number: Int64, group: AppGroup, _ change: Change
    ) throws(StoreFailure) -> Bool {
        try addresses.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            try tracker.snapshot(.account(number))
            return try connection.revoke(account: number, group: group, at: change.now, change)
        }
    }

    /// Revokes every live grant of an account. Returns how many there were.
    @discardableResult
    package func revokeAll(account number: Int64, _ change: Change) throws(StoreFailure) -> Int {
        try addresses.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            try tracker.snapshot(.account(number))
            var count = 0
            for grant in try connection.grants(account: number) where grant.state == .authorized {
                if try connection.revoke(
                    account: number, group: grant.group, at: change.now, change)
                {
                    count += 1
                }
            }
            return count
        }
    }

    /// The credential state of one of a team's subjects.
    ///
    /// With an app, it is the state of the grant to that app's group. Without an app, it is the
    /// state of the best grant: `authorized` while any grant is. A subject is `notFound` if it is
    /// unknown, of another team, or of a deleted account; an app of another team is `notFound` too.
    /// If an app moved to another team, its subjects are `transferred` for the old team.
    package func credentialState(
        team: String, sub: String, clientID: String? = nil
    ) throws(StoreFailure) -> CredentialState {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(team)
            let account: Int64? = try connection.value(
                "SELECT id FROM accounts WHERE sub = \(sub) AND \(SQL.filter("team_id")) = \(team.number)"
            )
            guard let account else { return .notFound }
            var group: Int64?
            if let clientID {
                group = try connection.value(
                    """
                    SELECT a.group_id FROM apps a JOIN app_groups p ON p.id = a.group_id AND p.removed_from IS NULL
                    WHERE a.client_id = \(clientID)
                    """)
                group = group ?? 0
            }
            let ofGroup: SQL = group.map { "AND \(SQL.filter("g.group_id")) = \($0)" } ?? ""
            let states: [Grant.State] = try connection.values(
                """
                SELECT g.state FROM grants g JOIN app_groups p ON p.id = \(SQL.filter("g.group_id")) AND p.removed_from IS NULL
                WHERE g.account_id = \(account) \(ofGroup)
                """)
            if states.contains(.authorized) { return .authorized }
            let moved: [Int64?] = try connection.values(
                """
                SELECT p.group_id FROM account_transfers t JOIN app_transfers p ON p.id = t.transfer_id
                WHERE t.old_account = \(account)
                """
            )
            if moved.contains(where: { group == nil || $0 == group }) { return .transferred }
            // An account without any remaining app had a consent earlier.
            return states.isEmpty && group != nil ? .notFound : .revoked
        }
    }
}

extension DatabaseConnection {
    /// Assignments for a grant whose user was seen now. Every sign of use within a day of the start
    /// of a visit belongs to that visit. The next visit keeps the time at which the account was
    /// last seen before.
    package static func seen(at now: Int64) -> SQL {
        let began: SQL = "COALESCE(visit_at, last_seen_at, last_authorized_at)"
        return """
            earlier_seen_at = CASE WHEN \(began) <= \(now - Grant.day) THEN COALESCE(last_seen_at, last_authorized_at)
                ELSE earlier_seen_at END,
            visit_at = CASE WHEN \(began) <= \(now - Grant.day) THEN \(now) ELSE \(began) END,
            last_seen_at = CASE WHEN COALESCE(last_seen_at, 0) < \(now) THEN \(now) ELSE last_seen_at END
            """
    }

    /// The team and group of any team's app, or `notFound`.
    package func appGroup(clientID: String) throws(StoreFailure) -> (team: Team, group: AppGroup) {
        let row = try row(
            """
            SELECT \(Team.columns), g.id AS group_id, g.primary_client_id
            FROM apps a JOIN app_groups g ON g.id = a.group_id JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
            WHERE a.client_id = \(clientID)
            """)
        guard let row else {
            throw .refused(.notFound, "there is no app \(clientID): see postern app list")
        }
        return try (Team(row: row), AppGroup(row: row))
    }

    /// Writes consent. Throws `frozen` if the user or the team is frozen.
    package func authorize(
        account: Int64, group: AppGroup, teamID: String, realUserStatus: Int?, _ change: Change
    ) throws(StoreFailure) -> AuthorizedGrant.Kind {
        try checkFreeze(account: account)
        let found = try row(
            "SELECT id, state FROM grants WHERE account_id = \(account) AND \(SQL.filter("group_id")) = \(group.number)"
        )
        guard let found else {
            try run(
                """
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status)
                VALUES (\(account), \(group.number), 'authorized', \(change.now), \(change.now), \(realUserStatus))
                """)
            try audit(
                change, "grant.authorize", "account:\(account)", "team:\(teamID) app:\(group.title)"
            )
            return .first
        }
        let (number, state): (Int64, Grant.State) = try (found["id"], found["state"])
        guard state == .revoked else {
            try run(
                """
                UPDATE grants SET last_authorized_at = \(change.now), \(Self.seen(at: change.now)),
                    real_user_status = COALESCE(real_user_status, CAST(\(realUserStatus) AS BIGINT))
                WHERE id = \(number)
                """)
            try audit(
                change, "grant.authorize", "account:\(account)",
                "team:\(teamID) app:\(group.title) standing")
            return .again
        }
        try rejoin(grant: number, now: change.now)
        try run("UPDATE grants SET real_user_status = \(realUserStatus) WHERE id = \(number)")
        try audit(
            change, "grant.authorize", "account:\(account)",
            "team:\(teamID) app:\(group.title) again")
        return .returned
    }

    /// Ends one grant. Returns whether it was live. The caller tracks the account's changes.
    /// - Parameter time: of the revocation, seconds since 1970.
    package func revoke(
        account: Int64, group: AppGroup, at time: Int64, _ change: Change
    ) throws(StoreFailure) -> Bool {
        let changed = try run(
            """
            UPDATE grants SET state = 'revoked', revoked_at = \(time), generation = generation + 1
            WHERE account_id = \(account) AND \(SQL.filter("group_id")) = \(group.number) AND state = 'authorized'
            """)
        guard changed > 0 else { return false }
        try endTokens(account: account, group: group)
        try audit(change, "grant.revoke", "account:\(account)", "app:\(group.title)")
        return true
    }

    /// Restores a revoked consent. The status is delivered again, the earlier one becomes the prior
    /// status, and the next request is a sign-up again. A check that is still due stays due. A
    /// removed app gets no consent back.
    package func rejoin(grant: Int64, now: Int64) throws(StoreFailure) {
        let account: Int64? = try value(
            """
            UPDATE grants SET state = 'authorized', revoked_at = NULL, last_authorized_at = \(now), \(Self.seen(at: now)),
                prior_status = COALESCE(real_user_status, prior_status), real_user_status = NULL, first_asked_at = NULL
            WHERE id = \(grant) AND state = 'revoked'
                AND EXISTS (SELECT 1 FROM app_groups p WHERE p.id = grants.group_id AND p.removed_from IS NULL)
            RETURNING account_id
            """)
        guard let account else { return }
        try count(
            DailyCounter(accountNumber: account, day: Day.number(now), kind: .rejoined, count: 1))
    }

    /// Ends every code and token of a grant.
    package func endTokens(account: Int64, group: AppGroup) throws(StoreFailure) {
        for table in ["authorization_codes", "refresh_tokens"] {
            try run(
                """
                DELETE FROM \(raw: table) WHERE grant_id IN (SELECT id FROM grants
                    WHERE account_id = \(account) AND \(SQL.filter("group_id")) = \(group.number))
                """)
        }
    }

    /// The account's grants, the oldest first.
    func grants(account number: Int64) throws(StoreFailure) -> [Grant] {
        try rows(
            """
            SELECT g.id, g.group_id, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at, g.revoked_at,
                g.real_user_status, g.prior_status, g.generation
            FROM grants g JOIN app_groups p ON p.id = \(SQL.filter("g.group_id"))
            JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = \(number) ORDER BY g.id
            """
        ).map { row throws(StoreFailure) in
            try Grant(
                number: row["id"], accountNumber: number, group: AppGroup(row: row),
                state: row["state"],
                firstAuthorizedAt: row["first_authorized_at"],
                lastAuthorizedAt: row["last_authorized_at"],
                revokedAt: row["revoked_at"], realUserStatus: row["real_user_status"],
                priorStatus: row["prior_status"],
                generation: row["generation"])
        }
    }
}
