// Accounts: lookup and permanent deletion.

import Database
import InternetMessage

/// Finds and deletes accounts.
package struct AccountRepository: Sendable {
    package let events: AccountEvents
    let marks: TombstoneMarks
    var database: any Database { events.database }

    /// The account with this subject, or `notFound`.
    /// - Parameter team: the team that it must belong to; nil for any.
    package func account(sub: String, team: String? = nil) throws(StoreFailure) -> Account {
        let row = try database.row("\(Self.select) WHERE a.sub = \(sub)")
        guard let account = try row.map(Account.init(row:)), team == nil || account.teamID == team
        else {
            throw .refused(.notFound, "unknown account: see postern account list")
        }
        return account
    }

    /// The account with this number, or `notFound`.
    package func account(_ number: Int64) throws(StoreFailure) -> Account {
        try database.account(number)
    }

    /// The account whose consent has this number; nil if it was deleted.
    package func account(grant number: Int64) throws(StoreFailure) -> Account? {
        try database.row(
            "\(Self.select) WHERE a.id = (SELECT account_id FROM grants WHERE id = \(number))"
        ).map(
            Account.init(row:))
    }

    /// Accounts by team and user identifier, the oldest first; nil means all.
    package func accounts(
        team: String? = nil, user: String? = nil
    ) throws(StoreFailure) -> [Account] {
        try page(team: team, user: user, after: nil, limit: Int(Int32.max)).rows
    }

    /// Accounts by team and user identifier, page by page, the oldest first.
    /// - Parameters:
    ///   - after: the account after which to begin.
    ///   - limit: accounts to read. Those of removed teams are not in the page.
    /// - Returns: accounts, and the account after which to continue; nil at the end.
    package func page(
        team: String?, user: String?, after: Int64?, limit: Int
    ) throws(StoreFailure) -> (rows: [Account], next: Int64?) {
        let page = try database.accountPage(
            Self.select, "a.id", team: team, user: user, after: after, limit: limit)
        return (try page.rows.map(Account.init(row:)), page.next)
    }

    package static let select: SQL = """
        SELECT \(Account.columns) FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
            LEFT JOIN users u ON u.id = a.user_id
        """

    /// Deletes an account. Its grants and relay addresses end at once. Its codes, tokens, stored
    /// correspondents and counters are deleted in the same transaction, or in later steps if they
    /// are too many. `sub` and addresses are retired permanently: mail to them is rejected as
    /// unknown. For 30 days a tombstone records that an account of this inbox was deleted. Every
    /// app that ever had a grant is notified. The user and the user's other accounts stay.
    /// - Parameter isTeams: whether the team deletes it. Then the inbox gets no tombstone, because
    ///   the user deleted nothing.
    package func delete(
        account number: Int64, isTeams: Bool = false, _ change: Change
    ) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let account = try connection.account(number)
            if !isTeams { try recordTombstone(connection, account: number, now: change.now) }
            var rows = RemovalRepository.rows
            try remove(connection, tracker, account: number, rows: &rows, now: change.now)
            try connection.audit(
                change, "account.delete", "account:\(number)", "team:\(account.teamID)")
        }
    }

    /// Deletes all accounts of a user.
    func deleteAll(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, user: Int64,
        now: Int64
    ) throws(StoreFailure) {
        var rows = RemovalRepository.rows
        let found = try connection.rows(
            "SELECT a.id, t.removed_at FROM accounts a JOIN teams t ON t.id = a.team_id WHERE a.user_id = \(user) ORDER BY a.id"
        )
        for row in found {
            let account: Int64 = try row["id"]
            let teamRemovedAt: Int64? = try row["removed_at"]
            // The user did not remove the team, so the inbox gets no tombstone for it.
            if teamRemovedAt == nil { try recordTombstone(connection, account: account, now: now) }
            try remove(connection, tracker, account: account, rows: &rows, now: now)
        }
    }

    /// Removes an account with its rows at once, if these are at most `rows`. Otherwise the account
    /// loses its names, its user and its consents, and moves to a removed team. The other rows are
    /// deleted in steps, together with that team.
    func remove(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, account: Int64,
        rows: inout Int, now: Int64
    ) throws(StoreFailure) {
        try tracker.snapshot(.ending(account))
        try connection.leaveMarks(ofAccount: account)
        if try connection.clearAccount(account, rows: &rows) {
            try connection.rememberHeld(account: account)
            return try end(connection, account: account)
        }
        try detach(connection, account: account, now: now)
    }

    /// The name of a removed team of one account, and the account's in place of its `sub`. No valid
    /// name contains a space.
    private func detachedName(_ account: Int64) -> String { "removed account \(account)" }

    /// Whether the account is alone in a removed team.
    func isDetached(
        _ connection: any DatabaseConnection, account: Int64
    ) throws(StoreFailure) -> Bool {
        try connection.row(
            "SELECT id FROM accounts WHERE id = \(account) AND sub = \(detachedName(account))")
            != nil
    }

    /// Takes names, user and consents from an account, and moves it to a removed team of its own,
    /// for rows that are deleted later: because they are many, or because a hold keeps them.
    func detach(
        _ connection: any DatabaseConnection, account: Int64, now: Int64
    ) throws(StoreFailure) {
        try connection.rememberHeld(account: account)
        let held = try connection.heldData(ofAccount: account)
        if !held.isEmpty, !held.contains(DataClass.decisions.name) {
            try connection.run(
                """
                DELETE FROM rule_snoozes
                WHERE grant_id IN (SELECT id FROM grants WHERE account_id = \(account))
                """)
            try connection.run("DELETE FROM decision_objections WHERE account_id = \(account)")
        }
        try connection.deleteUnheld(ofAccount: account, held: held)
        try retireNames(connection, account: account)
        for table in [
            "relay_addresses", "external_identities", "transfer_subs", "account_notes",
            "given_names",
            "account_blocks", "last_mail", "account_refusals_told",
        ] {
            try connection.run("DELETE FROM \(raw: table) WHERE account_id = \(account)")
        }
        try connection.run(
            "DELETE FROM account_transfers WHERE old_account = \(account) OR new_account = \(account)"
        )
        try connection.run(
            "UPDATE grants SET state = 'revoked', generation = generation + 1 WHERE account_id = \(account)"
        )
        let name = detachedName(account)
        let team = try connection.inserted(
            "INSERT INTO teams (handle, name, created_at, removed_at) VALUES (\(name), '', \(now), \(now)) RETURNING id"
        )
        try connection.run(
            "UPDATE accounts SET team_id = \(team), user_id = NULL, inbox_id = NULL, sub = \(name) WHERE id = \(account)"
        )
    }

    /// Retires the names and removes the account's row with all rows that depend on it.
    func end(_ connection: any DatabaseConnection, account: Int64) throws(StoreFailure) {
        try retireNames(connection, account: account)
        try connection.deleteAccount(account)
    }

    private func retireNames(
        _ connection: any DatabaseConnection, account: Int64
    ) throws(StoreFailure) {
        let names: [String] = try connection.values(
            """
            SELECT sub FROM accounts WHERE id = \(account)
            UNION ALL SELECT local_part || '@' || domain FROM relay_addresses WHERE account_id = \(account)
            """)
        for name in names {
            try connection.run(
                "INSERT INTO retired_names (mark) VALUES (\(marks.retired(name))) ON CONFLICT (mark) DO NOTHING"
            )
        }
        // Pending events keep their address until they are delivered.
        try connection.run(
            "UPDATE outbox SET email = NULL, detail = NULL WHERE account_id = \(account) AND state <> 'pending'"
        )
    }

    /// Writes the tombstones of an account that its user deletes: the deletion on the present day,
    /// and failed checks on their own days.
    func recordTombstone(
        _ connection: any DatabaseConnection, account: Int64, now: Int64
    ) throws(StoreFailure) {
        var tombstones: [[UInt8]] = try connection.values(
            """
            SELECT DISTINCT i.tombstone_index FROM accounts a JOIN inboxes i ON i.user_id = a.user_id
            WHERE a.id = \(account) AND i.verified_at IS NOT NULL AND i.reply_only = 0
            """)
        tombstones += try connection.rows(
            "SELECT issuer, subject FROM external_identities WHERE account_id = \(account)"
        ).map { row throws(StoreFailure) in
            try marks.identity(issuer: row["issuer"], subject: row["subject"])
        }
        // A check that is not passed within an hour of its start has failed.
        let failures = try connection.rows(
            """
            SELECT day, COUNT(*) AS failures FROM (
                SELECT COALESCE(k.failed_at, k.initiated_at + 3600) / 86400 AS day FROM grants g
                JOIN checks k ON k.grant_id = g.id
                WHERE g.account_id = \(account) AND k.passed_at IS NULL
                    AND COALESCE(k.failed_at, k.initiated_at + 3600) <= \(now)
            ) failed WHERE day > \(Day.number(now) - Tombstone.days) GROUP BY day
            """)
        for mark in tombstones {
            try connection.recordTombstone(mark, day: Day.number(now), deletions: 1, failures: 0)
            for row in failures {
                try connection.recordTombstone(
                    mark, day: row["day"], deletions: 0, failures: row["failures"])
            }
        }
    }

    /// Links an account of an external issuer with a user, so that the user's inboxes count for it.
    /// Refused if the user already has an account with that team.
    package func link(account number: Int64, user id: String, _ change: Change) throws(StoreFailure)
    {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let account = try connection.account(number)
            let user = try connection.userNumber(id)
            let external = try connection.row(
                "SELECT issuer FROM external_identities WHERE account_id = \(number)")
            guard external != nil else {
                throw .refused(
                    .unmet,
                    "account \(number) does not belong to an external issuer: its user cannot change"
                )
            }
            guard account.userID != id else { return }
            guard account.userID == nil else {
                throw .refused(.exists, "account \(number) is already linked with another user")
            }
            let taken = try connection.row(
                """
                SELECT b.id FROM accounts a JOIN accounts b ON \(SQL.filter("b.team_id")) = a.team_id
                WHERE a.id = \(number) AND b.user_id = \(user)
                """)
            guard taken == nil else {
                throw .refused(
                    .exists, "user \(id) already has an account with team \(account.teamID)")
            }
            try tracker.snapshot(.account(number))
            try connection.run("UPDATE accounts SET user_id = \(user) WHERE id = \(number)")
            try connection.audit(
                change, "account.link", "account:\(number)", "team:\(account.teamID) user:\(id)")
        }
    }
}

extension Account {
    /// Columns of accounts `a` with teams `t` and users `u`.
    static let columns: SQL = """
        a.id AS account_id, t.handle AS team, u.handle AS user_handle, a.sub, a.email_kind,
            CASE WHEN \(GivenName.isKnown) THEN 1 ELSE 0 END AS shares_name,
            (SELECT i.number FROM inboxes i WHERE i.id = a.inbox_id) AS inbox_number, a.created_at AS account_created_at
        """

    /// From `columns`.
    package init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["account_id"], teamID: row["team"], userID: row["user_handle"],
            sub: row["sub"],
            sharesName: row["shares_name"], emailKind: row["email_kind"],
            inboxNumber: row["inbox_number"],
            createdAt: row["account_created_at"])
    }
}

extension Database {
    /// One page of rows by account: those of at most `limit` accounts after `after`. Accounts of
    /// removed teams, of which there may be millions, count toward `limit`.
    /// - Parameters:
    ///   - select: the query without a condition; accounts are `a`.
    ///   - order: the order of the rows, by account first.
    /// - Returns: the rows, and the account after which to continue; nil at the end.
    func accountPage(
        _ select: SQL, _ order: SQL, team: String?, user: String?, after: Int64?, limit: Int
    ) throws(StoreFailure) -> (rows: [SQLRow], next: Int64?) {
        try read { connection throws(StoreFailure) in
            let known = SQL.all(try connection.accountConditions(team: team, user: user))
            let condition: SQL = "a.id > \(after ?? 0) AND \(known)"
            let last: Int64? = try connection.value(
                "SELECT MAX(id) FROM (SELECT a.id FROM accounts a WHERE \(condition) ORDER BY a.id \(SQL.limit(limit))) page"
            )
            guard let last else { return ([], nil) }
            return (
                try connection.rows(
                    "\(select) WHERE \(condition) AND a.id <= \(last) ORDER BY \(order)"), last
            )
        }
    }
}

extension SQLQuerying {
    /// The account, or `notFound`.
    package func account(_ number: Int64) throws(StoreFailure) -> Account {
        guard let row = try row("\(AccountRepository.select) WHERE a.id = \(number)") else {
            throw .refused(.notFound, "there is no account \(number): see postern account list")
        }
        return try Account(row: row)
    }
}

extension DatabaseConnection {
    /// Conditions for the accounts `a` of a team and of a user, by their
    /// identifiers; nil means all.
    func accountConditions(team: String?, user: String?) throws(StoreFailure) -> [SQL] {
        var conditions: [SQL] = []
        if let team { conditions.append("a.team_id = \(try self.team(team).number)") }
        if let user { conditions.append("a.user_id = \(try userNumber(user))") }
        return conditions
    }

    /// Whether the name with this mark was retired.
    package func isRetired(_ mark: [UInt8]) throws(StoreFailure) -> Bool {
        try row("SELECT mark FROM retired_names WHERE mark = \(mark)") != nil
    }
}
