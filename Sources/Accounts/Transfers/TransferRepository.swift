// Transfer of apps between teams: the grants move with all their data, and no user has to consent
// again.

import Database
import MailCrypto
import Support

/// Starts and finishes transfers, and exchanges the subjects by which two teams identify a user.
package struct TransferRepository: Sendable {
    let addresses: AddressRepository
    let accounts: AccountRepository
    let inboxes: InboxRepository
    var database: any Database { addresses.database }

    // MARK: Administration

    /// Announces the transfer of an app with its whole group. Refused if one is in progress, or if
    /// it would change nothing.
    package func start(
        team from: String, app clientID: String, to: String, _ change: Change
    ) throws(StoreFailure) -> AppTransfer {
        let number = try database.write(.durable) { connection throws(StoreFailure) in
            let (old, new) = (try connection.team(from), try connection.team(to))
            guard old != new else {
                throw .refused(.invalid, "app \(clientID) already belongs to team \(to)")
            }
            let group = try connection.appGroup(team: old, clientID: clientID)
            let number: Int64? = try connection.value(
                """
                INSERT INTO app_transfers (group_id, from_team, to_team, state, started_at)
                VALUES (\(group.number), \(old.number), \(new.number), 'started', \(change.now))
                ON CONFLICT (group_id) WHERE state <> 'finished' DO NOTHING RETURNING id
                """)
            guard let number else {
                throw .refused(
                    .exists,
                    "a transfer of app \(clientID) is in progress: see postern transfer status")
            }
            try connection.audit(
                change, "transfer.start", "team:\(from)", "app:\(group.title) to team:\(to)")
            return number
        }
        return try transfer(number)
    }

    /// Cancels a transfer that was only announced. Transfer subjects stay unchanged, in case the
    /// transfer is started again.
    package func cancel(app clientID: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let found = try underWay(connection, clientID)
            guard found.state == .started else {
                throw .refused(
                    .unmet,
                    "app \(clientID) already belongs to team \(found.toTeam.id): run postern transfer finish again"
                )
            }
            try connection.run("DELETE FROM app_transfers WHERE id = \(found.number)")
            try connection.audit(
                change, "transfer.cancel", "team:\(found.fromTeam.id)",
                "app:\(found.group.title) to team:\(found.toTeam.id)")
        }
    }

    /// Grants that one transaction moves: some ten milliseconds.
    package static let batch = 128

    /// Runs one `step` of at most `limit` grants, and returns the progress.
    package func finish(
        app clientID: String, keepingRedirects: Bool = false, limit: Int = batch, _ change: Change
    ) throws(StoreFailure) -> AppTransfer {
        let (number, _) = try step(
            app: clientID, keepingRedirects: keepingRedirects, limit: limit, change)
        return try transfer(number)
    }

    /// Gives the apps to the new team, or continues to, and moves at most `limit` grants. Repeat it
    /// until the transfer is finished, also after an interruption. From the first call on the apps
    /// belong to the new team. The endpoint of the group must then be set again: pending events for
    /// the old endpoint still go there. Nothing is counted: a transaction that reads all grants
    /// would conflict with sign-ups.
    /// - Parameters:
    ///   - keepingRedirects: whether the apps' redirect URIs stay. The old team's URIs would
    ///     receive the new team's `sub` and address.
    ///   - range: grants that one statement of the final check reads.
    /// - Returns: the transfer's number, and whether it is finished.
    package func step(
        app clientID: String, keepingRedirects: Bool = false, limit: Int = batch,
        range: Int = 20_000, _ change: Change
    ) throws(StoreFailure) -> (number: Int64, isFinished: Bool) {
        // Alone: the rows of sign-ups are on the same index pages, so on PostgreSQL each concurrent
        // sign-up would make a step fail.
        let (found, isEnd) = try database.writeAlone(.durable) { connection throws(StoreFailure) in
            var found = try underWay(connection, clientID)
            if found.state == .started {
                found = try begin(connection, found, keepingRedirects: keepingRedirects, change)
            }
            let batch = TransferBatch(
                addresses: addresses, transfer: found.number, group: found.group.number,
                team: found.toTeam,
                endsAt: found.endsAt ?? change.now + AppTransfer.overlap, change: change)
            guard let moved = try batch.move(connection, after: found.movedThrough, limit: limit)
            else { return (found, true) }
            try connection.run(
                "UPDATE app_transfers SET moved_through = \(moved.last) WHERE id = \(found.number)")
            return (found, moved.count < limit)
        }
        guard isEnd else { return (found.number, false) }
        // A user who signed up at the moment of the change may have a grant number that the steps
        // have already passed.
        let left = try firstLeft(
            group: found.group.number, team: found.fromTeam.number, range: range)
        try database.write(.durable) { connection throws(StoreFailure) in
            if let left {
                try connection.run(
                    "UPDATE app_transfers SET moved_through = \(left - 1) WHERE id = \(found.number)"
                )
            } else {
                try connection.run(
                    "UPDATE app_transfers SET state = 'finished' WHERE id = \(found.number) AND state = 'moving'"
                )
            }
        }
        return (found.number, left == nil)
    }

    /// The first grant of the group that is still the old team's. Reads a range at a time: with
    /// millions of grants, one statement would exceed the time limit.
    private func firstLeft(group: Int64, team: Int64, range: Int) throws(StoreFailure) -> Int64? {
        var after: Int64 = 0
        while true {
            let row = try database.row(
                """
                SELECT MAX(g.id) AS last, MIN(CASE WHEN a.team_id = \(team) THEN g.id END) AS first_left
                FROM (SELECT id, account_id FROM grants WHERE group_id = \(group) AND id > \(after) ORDER BY id \(SQL.limit(range))) g
                JOIN accounts a ON a.id = g.account_id
                """)
            if let found: Int64 = try row?["first_left"] { return found }
            guard let last: Int64 = try row?["last"] else { return nil }
            after = last
        }
    }

    /// Runs steps until the transfer is finished. It can be continued after an interruption or an
    /// error.
    /// - Parameter pause: called after each step with the maximum number of grants that it read,
    ///   and its duration.
    package func complete(
        app clientID: String, keepingRedirects: Bool = false, _ change: Change,
        pause: (Int, Duration) throws(StoreFailure) -> Void = { _, _ in }
    ) throws(StoreFailure) {
        var start = ContinuousClock.now
        while try !step(app: clientID, keepingRedirects: keepingRedirects, change).isFinished {
            try pause(Self.batch, ContinuousClock.now - start)
            start = .now
        }
    }

    private func begin(
        _ connection: any DatabaseConnection, _ found: Underway, keepingRedirects: Bool,
        _ change: Change
    ) throws(StoreFailure) -> Underway {
        let endsAt = change.now + AppTransfer.overlap
        try connection.run(
            "UPDATE app_groups SET team_id = \(found.toTeam.number) WHERE id = \(found.group.number)"
        )
        // The old team knows these secrets.
        try connection.run(
            "DELETE FROM client_secrets WHERE app_id IN (SELECT id FROM apps WHERE group_id = \(found.group.number))"
        )
        // The old team also has codes and tokens that were issued for them. With these it could
        // manage the new team's stream, and get the user's new `sub` and address. A browser that is
        // redirected to its redirect URI would bring it new ones.
        let tables: [SQL] = ["access_tokens", "authorization_codes"]
        for table in tables + (keepingRedirects ? [] : ["app_redirects", "logout_redirects"]) {
            try connection.run(
                "DELETE FROM \(table) WHERE app_id IN (SELECT id FROM apps WHERE group_id = \(found.group.number))"
            )
        }
        if !keepingRedirects {
            try connection.run(
                "UPDATE apps SET backchannel_logout_uri = NULL WHERE group_id = \(found.group.number)"
            )
        }
        try connection.run(
            "UPDATE event_endpoints SET group_id = NULL WHERE group_id = \(found.group.number)")
        try connection.run(
            "UPDATE event_endpoints SET stream_group = NULL WHERE stream_group = \(found.group.number)"
        )
        try connection.run(
            """
            UPDATE app_transfers SET state = 'moving', moved_at = \(change.now), ends_at = \(endsAt) WHERE id = \(found.number)
            """)
        try connection.audit(
            change, "transfer.finish", "team:\(found.fromTeam.id)",
            "app:\(found.group.title) to team:\(found.toTeam.id) redirect URIs \(keepingRedirects ? "kept" : "ended")"
        )
        var begun = found
        (begun.state, begun.endsAt) = (.moving, endsAt)
        return begun
    }

    /// Deletes old accounts whose 60 days are over and that have no grant left, at most `limit`.
    /// Returns the number, or `limit` if more are left than one transaction may delete. No endpoint
    /// is notified, because the team that knew them gave them away.
    package func endExpired(now: Int64, limit: Int = 500) throws(StoreFailure) -> Int {
        let isOver: SQL = """
            t.ends_at <= \(now) AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.account_id = t.old_account)
            AND NOT EXISTS (SELECT 1 FROM account_transfers u WHERE u.old_account = t.old_account AND u.ends_at > \(now))
            """
        // Most of them stay because of other apps: a read finds and skips these, while no writer
        // waits.
        let found: [Int64] = try database.values(
            "SELECT t.old_account FROM account_transfers t WHERE \(isOver) LIMIT \(limit)")
        guard !found.isEmpty else { return 0 }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let old: [Int64] = try connection.values(for: Array(Set(found)).sorted()) {
                "SELECT DISTINCT t.old_account FROM account_transfers t WHERE t.old_account IN \($0) AND \(isOver)"
            }
            var rows = RemovalRepository.rows
            for account in old {
                // An account with too many rows for one transaction continues in the next.
                guard try connection.clearAccount(account, rows: &rows) else {
                    if rows > 0 {
                        // Only what a hold keeps is left.
                        try accounts.detach(connection, account: account, now: now)
                        continue
                    }
                    return limit
                }
                try connection.rememberHeld(account: account)
                try accounts.end(connection, account: account)
            }
            return old.count
        }
    }

    // MARK: Subjects

    /// The subject by which the old team can identify a user to the new one: always the
    /// same for this target. Nil if the team has no such subject, or no transfer of the app
    /// to the target was started.
    package func transferSubject(
        sub: String, client: ProviderClient, target: String, _ change: Change
    ) throws(StoreFailure) -> String? {
        try database.write(.durable) { connection throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT a.id, x.to_team FROM accounts a
                JOIN grants g ON g.account_id = a.id AND \(SQL.filter("g.group_id")) = \(client.groupNumber)
                JOIN app_transfers x ON x.group_id = \(client.groupNumber) AND x.from_team = a.team_id AND x.state = 'started'
                JOIN teams t ON t.id = x.to_team
                WHERE a.sub = \(sub) AND \(SQL.filter("a.team_id")) = \(client.teamNumber) AND t.handle = \(target)
                """)
            guard let row else { return nil }
            return try connection.transferSubject(
                account: row["id"], target: row["to_team"], now: change.now)
        }
    }

    /// The new team's account for a transfer subject. Nil if the subject is not for this client, or
    /// the 60 days are over.
    package func account(
        transferSubject: String, client: ProviderClient, _ change: Change
    ) throws(StoreFailure) -> MigratedAccount? {
        try database.write(.durable) { connection throws(StoreFailure) in
            let old: Int64? = try connection.value(
                """
                SELECT s.account_id FROM transfer_subs s
                WHERE s.transfer_sub = \(transferSubject) AND s.target_team = \(client.teamNumber)
                """)
            guard let old else { return nil }
            // The move may not have reached this grant yet.
            let waiting: Int64? = try connection.value(
                """
                SELECT g.id FROM grants g JOIN app_groups p ON p.id = \(client.groupNumber)
                WHERE g.account_id = \(old) AND \(SQL.filter("g.group_id")) = \(client.groupNumber)
                    AND p.team_id = \(client.teamNumber)
                """)
            if let waiting { try move(connection, grant: waiting, change) }
            let new: Int64? = try connection.value(
                """
                SELECT t.new_account FROM account_transfers t JOIN app_transfers x ON x.id = t.transfer_id
                JOIN accounts a ON a.id = t.new_account AND \(SQL.filter("a.team_id")) = \(client.teamNumber)
                WHERE t.old_account = \(old) AND x.group_id = \(client.groupNumber) AND t.ends_at > \(change.now)
                ORDER BY t.transfer_id DESC LIMIT 1
                """)
            guard let new else { return nil }
            let account = try connection.account(new)
            return MigratedAccount(sub: account.sub, email: try inboxes.email(connection, account))
        }
    }

    // MARK: Moving

    /// Moves the grant of a user for a group in transfer, if it has not moved yet. So no user has
    /// to consent again while a transfer runs.
    static func moveWaiting(
        _ connection: any DatabaseConnection, user: Int64, group: Int64,
        addresses: AddressRepository, _ change: Change
    ) throws(StoreFailure) {
        // Both conditions on the state, because SQLite uses the index of the second only if the
        // query contains that condition.
        let moving = try connection.row(
            "SELECT id FROM app_transfers WHERE group_id = \(group) AND state = 'moving' AND state <> 'finished'"
        )
        guard moving != nil else { return }
        let waiting: [Int64] = try connection.values(
            """
            SELECT g.id FROM accounts a JOIN grants g ON g.account_id = a.id AND \(SQL.filter("g.group_id")) = \(group)
            JOIN teams o ON o.id = a.team_id AND o.removed_at IS NULL
            JOIN app_groups p ON p.id = \(group)
            WHERE a.user_id = \(user) AND a.team_id <> p.team_id
            """)
        for grant in waiting { try move(connection, grant: grant, addresses: addresses, change) }
    }

    private func move(
        _ connection: any DatabaseConnection, grant: Int64, _ change: Change
    ) throws(StoreFailure) {
        try Self.move(connection, grant: grant, addresses: addresses, change)
    }

    /// Moves one grant. Does nothing if it has moved, or if its app is not in transfer.
    package static func move(
        _ connection: any DatabaseConnection, grant: Int64, addresses: AddressRepository,
        _ change: Change
    ) throws(StoreFailure) {
        let row = try connection.row(
            """
            SELECT g.account_id, g.group_id, a.user_id, u.handle, x.id AS transfer_id, x.ends_at, \(Team.columns)
            FROM grants g JOIN accounts a ON a.id = g.account_id JOIN teams o ON o.id = a.team_id AND o.removed_at IS NULL
            JOIN app_transfers x ON x.group_id = g.group_id AND x.state = 'moving'
            JOIN teams t ON t.id = x.to_team LEFT JOIN users u ON u.id = a.user_id
            WHERE g.id = \(grant) AND a.team_id <> x.to_team
            """)
        guard let row, let endsAt: Int64 = try row["ends_at"] else { return }
        let (old, group, team): (Int64, Int64, Team) = try (
            row["account_id"], row["group_id"], Team(row: row)
        )
        let transfer: Int64 = try row["transfer_id"]
        let new: Int64
        if let user: Int64 = try row["user_id"], let handle: String = try row["handle"] {
            let known = try connection.row(
                "SELECT id FROM accounts WHERE user_id = \(user) AND \(SQL.filter("team_id")) = \(team.number)"
            )
            new = try addresses.account(connection, team: team, user: user, change)
            if known == nil {
                try copy(
                    connection, from: old, to: new, team: team.id, user: handle, addresses, change)
            }
        } else {
            new = try externalAccount(connection, of: old, team: team, addresses, change)
        }
        // A consent that the user gave to the new team in the meantime is the same consent. The
        // older row is kept, because it has the known facts.
        let given: Int64? = try connection.value(
            "SELECT id FROM grants WHERE account_id = \(new) AND \(SQL.filter("group_id")) = \(group)"
        )
        if let given { try connection.mergeConsent(given, into: grant) }
        try connection.followHeld(from: old, to: new)
        try connection.run(
            "UPDATE grants SET account_id = \(new), transferred_at = \(change.now) WHERE id = \(grant)"
        )
        // Decisions for the old team do not apply to the new one.
        try connection.run("DELETE FROM rule_snoozes WHERE grant_id = \(grant)")
        _ = try connection.transferSubject(account: old, target: team.number, now: change.now)
        try connection.run(
            """
            INSERT INTO account_transfers (old_account, transfer_id, new_account, moved_at, ends_at)
            VALUES (\(old), \(transfer), \(new), \(change.now), \(endsAt))
            ON CONFLICT (old_account, transfer_id) DO NOTHING
            """)
    }

    /// The user's choices for the old team apply to the new one: inbox, name, kind of address,
    /// and whether mail is wanted.
    private static func copy(
        _ connection: any DatabaseConnection, from old: Int64, to new: Int64, team: String,
        user: String,
        _ addresses: AddressRepository, _ change: Change
    ) throws(StoreFailure) {
        try connection.run(
            """
            UPDATE accounts SET inbox_id = (SELECT inbox_id FROM accounts WHERE id = \(old)),
                shares_name = (SELECT shares_name FROM accounts WHERE id = \(old)),
                email_kind = (SELECT email_kind FROM accounts WHERE id = \(old))
            WHERE id = \(new)
            """)
        try copyNames(connection, [(old, new)])
        guard try connection.account(new).emailKind == .privateRelay else { return }
        _ = try addresses.current(connection, account: new, team: team, user: user, change)
        try connection.run(
            """
            UPDATE relay_addresses SET forwarding_on = 0 WHERE account_id = \(new) AND is_current = 1 AND EXISTS (
                SELECT 1 FROM relay_addresses o WHERE o.account_id = \(old) AND o.is_current = 1 AND o.forwarding_on = 0)
            """)
    }

    /// The names that users typed for the old team.
    static func copyNames(
        _ connection: any DatabaseConnection, _ accounts: [(old: Int64, new: Int64)]
    ) throws(StoreFailure) {
        for (old, new) in accounts {
            try connection.run(
                """
                INSERT INTO given_names (account_id, given_key, given_sealed)
                SELECT \(new), given_key, given_sealed FROM given_names WHERE account_id = \(old)
                ON CONFLICT (account_id) DO UPDATE SET given_key = excluded.given_key, given_sealed = excluded.given_sealed
                """)
        }
    }

    /// The account of the same external subject with the new team.
    private static func externalAccount(
        _ connection: any DatabaseConnection, of old: Int64, team: Team,
        _ addresses: AddressRepository, _ change: Change
    ) throws(StoreFailure) -> Int64 {
        let known: Int64? = try connection.value(
            """
            SELECT k.account_id FROM external_identities k JOIN external_identities o
                ON o.account_id = \(old) AND o.issuer = k.issuer AND o.subject = k.subject
            WHERE k.team_id = \(team.number)
            """)
        if let known { return known }
        let new = try addresses.unlinkedAccount(connection, team: team, change)
        try connection.run(
            """
            INSERT INTO external_identities
                (team_id, issuer, subject, account_id, forwarding_on, email_event_at, consent_event_at, created_at)
            SELECT CAST(\(team.number) AS BIGINT), issuer, subject, CAST(\(new) AS BIGINT), forwarding_on, email_event_at,
                consent_event_at, CAST(\(change.now) AS BIGINT)
            FROM external_identities WHERE account_id = \(old)
            """)
        return new
    }

    // MARK: Rows

    /// A transfer that is not finished, without counts.
    private struct Underway {
        let number: Int64
        let group: AppGroup
        let fromTeam: (number: Int64, id: String)
        let toTeam: Team
        var state: AppTransfer.State
        var endsAt: Int64?
        let movedThrough: Int64
    }

    private func underWay(
        _ connection: any DatabaseConnection, _ clientID: String
    ) throws(StoreFailure) -> Underway {
        let (_, group) = try connection.appGroup(clientID: clientID)
        let row = try connection.row(
            """
            SELECT x.id, x.state, x.ends_at, x.moved_through, x.from_team, f.handle AS from_handle, \(Team.columns)
            FROM app_transfers x JOIN teams f ON f.id = x.from_team JOIN teams t ON t.id = x.to_team
            WHERE x.group_id = \(group.number) AND x.state <> 'finished'
            """)
        guard let row else {
            throw .refused(
                .notFound,
                "no transfer of app \(clientID) is in progress: see postern transfer status")
        }
        return try Underway(
            number: row["id"], group: group, fromTeam: (row["from_team"], row["from_handle"]),
            toTeam: Team(row: row),
            state: row["state"], endsAt: row["ends_at"], movedThrough: row["moved_through"])
    }
}

extension DatabaseConnection {
    /// The transfer subject of an account for a team; created if there is none.
    fileprivate func transferSubject(
        account: Int64, target: Int64, now: Int64
    ) throws(StoreFailure) -> String {
        let known: String? = try value(
            "SELECT transfer_sub FROM transfer_subs WHERE account_id = \(account) AND target_team = \(target)"
        )
        if let known { return known }
        let subject = Base32.characters(fromRandom: try SecureRandom.octets(32))
        try run(
            """
            INSERT INTO transfer_subs (transfer_sub, account_id, target_team, created_at)
            VALUES (\(subject), \(account), \(target), \(now))
            """)
        return subject
    }
}
