// Accounts: found, and ended permanently.

import InternetMessage

/// Finds and deletes accounts.
package struct AccountRepository: Sendable {
    let events: AccountEvents
    let marks: TombstoneMarks
    var database: any Database { events.database }

    /// The account with this subject, or `StoreRefusal` (`notFound`).
    /// - Parameter team: whose it must be; nil for any.
    package func account(sub: String, team: String? = nil) throws -> Account {
        try database.read { connection in
            let row = try connection.row(Self.select + " WHERE a.sub = ?1", [.text(sub)])
            guard let account = try row.map({ try Account(row: $0, first: 0) }), team == nil || account.teamID == team else {
                throw StoreRefusal(.notFound, "unknown account: see postern account list")
            }
            return account
        }
    }

    /// The account with this number, or `StoreRefusal` (`notFound`).
    package func account(_ number: Int64) throws -> Account { try database.read { try $0.account(number) } }

    /// Accounts by team and user identifier, the oldest first; nil stands for all.
    package func accounts(
        team: String? = nil, user: String? = nil, after: Int64 = 0, limit: Int = Int(Int32.max)
    ) throws -> [Account] {
        try database.read { connection in
            var conditions = ["a.id > ?1"]
            var arguments: [SQLValue] = [.integer(after), .integer(Int64(limit))]
            if let team {
                arguments.append(.integer(try connection.team(team).number))
                conditions.append("a.team_id = ?\(arguments.count)")
            }
            if let user {
                arguments.append(.integer(try connection.userNumber(user)))
                conditions.append("a.user_id = ?\(arguments.count)")
            }
            return try connection.rows(
                Self.select + " WHERE " + conditions.joined(separator: " AND ") + " ORDER BY a.id LIMIT ?2", arguments
            ).map { try Account(row: $0, first: 0) }
        }
    }

    static let select = """
        SELECT \(Account.columns) FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
            LEFT JOIN users u ON u.id = a.user_id
        """

    /// Deletes an account: grants, codes and tokens, relay addresses, stored correspondents, counters and what it shared are gone
    /// at once, `sub` and addresses are retired permanently (mail to them is answered as unknown), and for 30 days a tombstone
    /// says that this inbox had an account deleted. Every app that ever had a grant is notified. The user and other accounts
    /// stay.
    /// - Parameter isTeams: the team ends it: that is nothing the user did, so no tombstone is held against the inbox.
    package func delete(account number: Int64, isTeams: Bool = false, _ change: Change) throws {
        try events.write(at: change.now) { connection, tracker in
            let account = try connection.account(number)
            if !isTeams { try recordTombstone(connection, account: number, now: change.now) }
            var rows = RemovalRepository.rows
            try remove(connection, tracker, account: number, rows: &rows, now: change.now)
            try connection.audit(change, "account.delete", "account:\(number)", "team:\(account.teamID)")
        }
    }

    /// Deletes all accounts of a user.
    func deleteAll(_ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, user: Int64, now: Int64) throws {
        var rows = RemovalRepository.rows
        let found = try connection.rows(
            """
            SELECT a.id, CASE WHEN t.removed_at IS NULL THEN 1 ELSE 0 END FROM accounts a JOIN teams t ON t.id = a.team_id
            WHERE a.user_id = ?1 ORDER BY a.id
            """, [.integer(user)])
        for row in found {
            // That a team was removed is nothing the user did: it is not held against the inbox.
            if try row.bool(1) { try recordTombstone(connection, account: row.integer(0), now: now) }
            try remove(connection, tracker, account: row.integer(0), rows: &rows, now: now)
        }
    }

    /// Removes an account at once, and what hangs on it as far as that is not more than so many rows. Otherwise it loses its
    /// names, its user and its consents, and goes to a team that was removed, with which the rest goes in steps.
    func remove(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, account: Int64, rows: inout Int, now: Int64
    ) throws {
        try tracker.snapshot(.ending(account))
        if try connection.clearAccount(account, rows: &rows) { return try end(connection, account: account) }
        try retireNames(connection, account: account)
        for table in ["relay_addresses", "external_identities", "transfer_subs"] {
            try connection.run("DELETE FROM \(table) WHERE account_id = ?1", [.integer(account)])
        }
        try connection.run("DELETE FROM account_transfers WHERE old_account = ?1 OR new_account = ?1", [.integer(account)])
        try connection.run(
            "UPDATE grants SET state = 'revoked', generation = generation + 1 WHERE account_id = ?1", [.integer(account)])
        let name = "removed account \(account)"
        let team = try connection.row(
            "INSERT INTO teams (handle, name, created_at, removed_at) VALUES (?1, '', ?2, ?2) RETURNING id",
            [.text(name), .integer(now)])
        guard let team else { throw PermanentStoreError(.unexpectedData, "an insertion returned nothing") }
        try connection.run(
            "UPDATE accounts SET team_id = ?2, user_id = NULL, inbox_id = NULL, sub = ?3 WHERE id = ?1",
            [.integer(account), .integer(team.integer(0)), .text(name)])
    }

    /// Retires the names and removes the row with all that hangs on it.
    func end(_ connection: any DatabaseConnection, account: Int64) throws {
        try retireNames(connection, account: account)
        try connection.run("DELETE FROM accounts WHERE id = ?1", [.integer(account)])
    }

    private func retireNames(_ connection: any DatabaseConnection, account: Int64) throws {
        let names = try connection.rows(
            """
            SELECT sub FROM accounts WHERE id = ?1
            UNION ALL SELECT local_part || '@' || domain FROM relay_addresses WHERE account_id = ?1
            """, [.integer(account)])
        for name in names {
            try connection.run(
                "INSERT INTO retired_names (mark) VALUES (?1) ON CONFLICT (mark) DO NOTHING",
                [.blob(marks.retired(try name.text(0)))])
        }
        // Events that are still under way keep their address until they have arrived.
        try connection.run(
            "UPDATE outbox SET email = NULL WHERE account_id = ?1 AND state <> 'pending'", [.integer(account)])
    }

    /// Writes the tombstones of an account that its user deletes: the deletion today, and failed checks on their days.
    func recordTombstone(_ connection: any DatabaseConnection, account: Int64, now: Int64) throws {
        var tombstones = try connection.rows(
            """
            SELECT DISTINCT i.tombstone_index FROM accounts a JOIN inboxes i ON i.user_id = a.user_id
            WHERE a.id = ?1 AND i.verified_at IS NOT NULL AND i.reply_only = 0
                AND i.tombstone_index IS NOT NULL
            """, [.integer(account)]
        ).map { try $0.blob(0) }
        tombstones += try connection.rows(
            "SELECT issuer, subject FROM external_identities WHERE account_id = ?1", [.integer(account)]
        ).map { marks.identity(issuer: try $0.text(0), subject: try $0.text(1)) }
        // A check that was begun and not passed within an hour failed.
        let failures = try connection.rows(
            """
            SELECT day, COUNT(*) FROM (
                SELECT COALESCE(k.failed_at, k.initiated_at + 3600) / 86400 AS day FROM grants g JOIN checks k ON k.grant_id = g.id
                WHERE g.account_id = ?1 AND k.passed_at IS NULL AND COALESCE(k.failed_at, k.initiated_at + 3600) <= ?2
            ) failed WHERE day > ?3 GROUP BY day
            """, [.integer(account), .integer(now), .integer(Day.number(now) - Tombstone.days)])
        for mark in tombstones {
            try connection.recordTombstone(mark, day: Day.number(now), deletions: 1, failures: 0)
            for row in failures {
                try connection.recordTombstone(mark, day: try row.integer(0), deletions: 0, failures: try row.integer(1))
            }
        }
    }

    /// Links an account of an external issuer with a user, so that the user's inboxes count for it.
    /// Refused where the user has an account with that team.
    package func link(account number: Int64, user id: String, _ change: Change) throws {
        try events.write(at: change.now) { connection, tracker in
            let account = try connection.account(number)
            let user = try connection.userNumber(id)
            let external = try connection.row(
                "SELECT issuer FROM external_identities WHERE account_id = ?1", [.integer(number)])
            guard external != nil else {
                throw StoreRefusal(.unmet, "account \(number) does not belong to an external issuer: its user cannot change")
            }
            guard account.userID != id else { return }
            guard account.userID == nil else {
                throw StoreRefusal(.exists, "account \(number) is already linked with another user")
            }
            let taken = try connection.row(
                "SELECT b.id FROM accounts a JOIN accounts b ON b.team_id = a.team_id WHERE a.id = ?1 AND b.user_id = ?2",
                [.integer(number), .integer(user)])
            guard taken == nil else {
                throw StoreRefusal(.exists, "user \(id) already has an account with team \(account.teamID)")
            }
            try tracker.snapshot(.account(number))
            try connection.run("UPDATE accounts SET user_id = ?2 WHERE id = ?1", [.integer(number), .integer(user)])
            try connection.audit(change, "account.link", "account:\(number)", "team:\(account.teamID) user:\(id)")
        }
    }
}

extension Account {
    /// Columns of accounts `a` with teams `t` and users `u`.
    static let columns =
        """
        a.id, t.handle, u.handle, a.sub, a.shares_name, a.email_kind, (SELECT i.number FROM inboxes i WHERE i.id = a.inbox_id), a.created_at
        """
    static let columnCount = 8

    /// From `columns`, beginning at `first`.
    init(row: SQLRow, first: Int) throws {
        self.init(
            number: try row.integer(first), teamID: try row.text(first + 1), userID: try row.optionalText(first + 2),
            sub: try row.text(first + 3), sharesName: try row.bool(first + 4),
            emailKind: EmailKind(rawValue: try row.text(first + 5)) ?? .none, inboxNumber: try row.optionalInteger(first + 6),
            createdAt: try row.integer(first + 7))
    }
}

extension DatabaseConnection {
    /// The account, or `StoreRefusal` (`notFound`).
    func account(_ number: Int64) throws -> Account {
        guard let row = try row(AccountRepository.select + " WHERE a.id = ?1", [.integer(number)]) else {
            throw StoreRefusal(.notFound, "there is no account \(number): see postern account list")
        }
        return try Account(row: row, first: 0)
    }

    /// Whether the name behind the mark ended once.
    func isRetired(_ mark: [UInt8]) throws -> Bool {
        try row("SELECT mark FROM retired_names WHERE mark = ?1", [.blob(mark)]) != nil
    }
}
