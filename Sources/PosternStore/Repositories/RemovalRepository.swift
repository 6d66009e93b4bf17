// Removal in small steps: what was removed is gone for everyone at once, and its rows go one thousand at a time.

import MailCrypto

/// Takes away what is left of teams and accounts that were removed. Any process may do so, from wherever another one was interrupted.
package struct RemovalRepository: Sendable {
    /// Rows that one transaction deletes: some ten milliseconds, for which other writers wait.
    package static let rows = 1_000
    /// What the end of an account counts for, in rows: names retired, events, and what hangs on it in small numbers.
    private static let rowsPerAccount = 20

    let accounts: AccountRepository

    /// Whether anything is left to be taken away.
    package func isPending() throws -> Bool {
        try !accounts.database.rows("SELECT id FROM teams WHERE removed_at IS NOT NULL LIMIT 1", []).isEmpty
    }

    /// Takes some rows away, in one transaction; whether there were any.
    package func step(now: Int64, rows: Int = rows) throws -> Bool {
        try accounts.events.write(at: now) { connection, watch in
            let team = try connection.row(
                "SELECT id FROM teams WHERE removed_at IS NOT NULL ORDER BY removed_at, id LIMIT 1", [])?.integer(0)
            guard let team else { return false }
            try takeAway(connection, watch, team: team, rows: rows)
            return true
        }
    }

    /// Takes away so many rows of a team that was removed, and the team where that was all.
    func takeAway(_ connection: any DatabaseConnection, _ watch: AccountWatch, team: Int64, rows: Int = rows) throws {
        var left = rows
        guard try connection.clear(RemovedRows.ofMovingApps, team, &left) else { return }
        let limit = max(1, rows / Self.rowsPerAccount)
        let found = try connection.rows(
            "SELECT id FROM accounts WHERE team_id = ?1 ORDER BY id LIMIT ?2", [.integer(team), .integer(Int64(limit))]
        ).map { try $0.integer(0) }
        for account in found {
            guard try connection.clear(RemovedRows.ofAccount, account, &left) else { return }
            try watch.begin(.account(account))
            try accounts.end(connection, account: account)
            left -= Self.rowsPerAccount
            guard left > 0 else { return }
        }
        guard found.count < limit, try connection.clear(RemovedRows.ofTeam, team, &left) else { return }
        try connection.run("DELETE FROM teams WHERE id = ?1", [.integer(team)])
    }

    /// Takes everything away, and leaves others their turn in between. Whoever is at it already is left to it.
    /// - Parameters:
    ///   - steps: at most.
    ///   - pause: called after each step, with the time that it took.
    package func run(now: Int64, steps: Int = .max, pause: (Duration) -> Void = { _ in }) throws {
        guard try isPending(), let lock = try accounts.database.lock("removal") else { return }
        defer { lock.release() }
        for _ in 0..<steps {
            let start = ContinuousClock.now
            guard try step(now: now) else { return }
            pause(ContinuousClock.now - start)
        }
    }
}

/// Rows that hang on an account or a team in great numbers, and go before it does.
private enum RemovedRows {
    struct Table {
        let name: String
        /// Columns that tell rows apart.
        let key: String
        /// Which are meant; `?1` is the account or team.
        let condition: String
        /// What becomes of them: they are deleted, or lose what they refer to.
        var change: String?
    }

    private static let ofItsGrants = "grant_id IN (SELECT id FROM grants WHERE account_id = ?1)"

    static let ofAccount = [
        Table(name: "stored_tokens", key: "token", condition: "account_id = ?1"),
        Table(name: "once_marks", key: "account_id, purpose, mark", condition: "account_id = ?1"),
        Table(name: "daily_counters", key: "account_id, day, kind", condition: "account_id = ?1"),
        Table(name: "checks", key: "decision_id, challenge", condition: ofItsGrants),
        Table(name: "decisions", key: "id", condition: ofItsGrants, change: "grant_id = NULL"),
        Table(name: "refresh_tokens", key: "id", condition: ofItsGrants),
        Table(name: "authorization_codes", key: "code_hash", condition: ofItsGrants),
    ]

    static let ofTeam = [
        Table(name: "decisions", key: "id", condition: "team_id = ?1"),
        Table(name: "rejections", key: "id", condition: "team_id = ?1"),
        Table(name: "idempotency_keys", key: "team_id, endpoint, key_mark", condition: "team_id = ?1"),
        Table(name: "transfer_subs", key: "transfer_sub", condition: "target_team = ?1"),
        Table(name: "upgraded_accounts", key: "team_id, app_account", condition: "team_id = ?1"),
        Table(
            name: "access_tokens", key: "token_hash",
            condition: "app_id IN (SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = ?1)"),
        Table(
            name: "app_signups", key: "app_id, slice",
            condition: "app_id IN (SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = ?1)"),
    ]

    /// Consents to its apps of accounts of a team from which they were moving. Nobody is told: that team gave the apps away.
    static let ofMovingApps = [
        Table(
            name: "grants", key: "id",
            condition: """
                group_id IN (SELECT p.id FROM app_groups p WHERE p.team_id = ?1
                    AND EXISTS (SELECT 1 FROM app_transfers x WHERE x.group_id = p.id AND x.to_team = ?1))
                AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = grants.account_id AND a.team_id = ?1)
                """)
    ]
}

extension DatabaseConnection {
    /// Deletes rows as long as the budget lasts, and takes them from it; whether none is left.
    fileprivate func clear(_ tables: [RemovedRows.Table], _ number: Int64, _ budget: inout Int) throws -> Bool {
        for table in tables {
            guard budget > 0 else { return false }
            let verb = table.change.map { "UPDATE \(table.name) SET \($0)" } ?? "DELETE FROM \(table.name)"
            let count = try run(
                "\(verb) WHERE (\(table.key)) IN (SELECT \(table.key) FROM \(table.name) WHERE \(table.condition) LIMIT ?2)",
                [.integer(number), .integer(Int64(budget))])
            guard count < budget else {
                budget = 0
                return false
            }
            budget -= count
        }
        return true
    }

    /// The same for what hangs on an account.
    func clearAccount(_ account: Int64, rows: inout Int) throws -> Bool { try clear(RemovedRows.ofAccount, account, &rows) }
}
