// Removal in small steps: removed objects are invisible to everyone at once, and their rows are
// deleted some hundred at a time.

import Database
import MailCrypto

/// Deletes the remaining rows of removed teams and accounts. Any process may continue after another
/// one was interrupted.
package struct RemovalRepository: Sendable {
    /// Rows that one transaction deletes: some ten milliseconds if they come from a disk; other
    /// writers wait for this time.
    package static let rows = 250
    /// The cost of an account's end in rows: retired names, events, and its few other rows.
    private static let rowsPerAccount = 20

    let accounts: AccountRepository

    /// The objects that are left to delete.
    package struct Backlog: Sendable, Hashable, Encodable {
        /// Removed teams, apps, accounts and endpoints.
        package let count: Int
        /// When the first of them was removed, in seconds since 1970.
        package let oldest: Int64?

        package init(count: Int, oldest: Int64?) { (self.count, self.oldest) = (count, oldest) }
    }

    /// A removed item that still has rows.
    package enum Item: Sendable, Hashable, CustomStringConvertible {
        /// A team, or the team created for an app or an account that was removed alone.
        case team(Int64)
        case endpoint(Int64)

        package var description: String {
            switch self {
            case .team(let number): "team \(number)"
            case .endpoint(let number): "endpoint \(number)"
            }
        }

        fileprivate init(row: SQLRow) throws(StoreFailure) {
            self = try row["kind"] == 0 ? .team(row["id"]) : .endpoint(row["id"])
        }
    }

    /// An item that cannot be deleted, and the reason.
    package struct Failure: Sendable {
        package let item: Item
        package let error: StoreFailure

        package init(item: Item, error: StoreFailure) { (self.item, self.error) = (item, error) }
    }

    private static let waiting: SQL = """
        SELECT 0 AS kind, id, removed_at FROM teams WHERE removed_at IS NOT NULL AND waits_for_hold = 0
        UNION ALL SELECT 1, id, removed_at FROM event_endpoints WHERE removed_at IS NOT NULL
        """

    /// The number of items that are left to delete, and the time of the oldest.
    package func backlog() throws(StoreFailure) -> Backlog {
        let row = try accounts.database.row(
            "SELECT COUNT(*) AS count, MIN(removed_at) AS oldest FROM (\(Self.waiting)) w")
        return try Backlog(count: row?["count"] ?? 0, oldest: row?["oldest"])
    }

    /// All items that are left to delete.
    package func items() throws(StoreFailure) -> Set<Item> {
        Set(try accounts.database.rows(Self.waiting).map(Item.init(row:)))
    }

    /// Whether anything is left to delete.
    package func isPending() throws(StoreFailure) -> Bool {
        try accounts.database.row("\(Self.waiting) LIMIT 1") != nil
    }

    /// Deletes some rows of the item that was removed first, in one transaction.
    /// Returns whether there was one.
    package func step(now: Int64, rows: Int = rows) throws(StoreFailure) -> Bool {
        guard let item = try next(besides: []) else { return false }
        try step(item, now: now, rows: rows)
        return true
    }

    private func next(besides passed: Set<Item>) throws(StoreFailure) -> Item? {
        // The first item that is not skipped is among these.
        try accounts.database.rows(
            "\(Self.waiting) ORDER BY removed_at, kind, id LIMIT \(Int64(passed.count) + 1)"
        ).map(Item.init(row:)).first { !passed.contains($0) }
    }

    private func step(_ item: Item, now: Int64, rows: Int) throws(StoreFailure) {
        try accounts.events.write(at: now) { connection, tracker throws(StoreFailure) in
            switch item {
            case .team(let team):
                // Another process may have deleted it in the meantime.
                guard
                    try connection.row(
                        "SELECT id FROM teams WHERE id = \(team) AND removed_at IS NOT NULL") != nil
                else { return }
                try takeAway(connection, tracker, team: team, rows: rows, now: now)
            case .endpoint(let endpoint): try takeAway(connection, endpoint: endpoint, rows: rows)
            }
        }
    }

    /// Deletes at most `rows` rows of a removed team, and the team itself when no more are left.
    func takeAway(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, team: Int64,
        rows: Int = rows, now: Int64
    ) throws(StoreFailure) {
        var left = rows
        guard try endConsents(connection, tracker, team: team, &left) else { return }
        let limit = max(1, rows / Self.rowsPerAccount)
        let found: [Int64] = try connection.values(
            "SELECT id FROM accounts WHERE team_id = \(team) ORDER BY id LIMIT \(limit)")
        for account in found {
            let held = try connection.heldData(ofAccount: account)
            guard try connection.clear(RemovedRows.ofAccount(account).besides(held), &left) else {
                return
            }
            if RemovedRows.keeps(held) {
                if try accounts.isDetached(connection, account: account) {
                    return try waitForHold(connection, team: team)
                }
                try tracker.snapshot(.ending(account))
                try accounts.detach(connection, account: account, now: now)
            } else {
                try tracker.snapshot(.ending(account))
                try connection.rememberHeld(account: account)
                try accounts.end(connection, account: account)
            }
            left -= Self.rowsPerAccount
            guard left > 0 else { return }
        }
        guard found.count < limit else { return }
        // Last: any consents that its apps have now belong to other teams.
        let isAnyHeld = try connection.hasHold()
        let tables = RemovedRows.ofMovingApps(team) + RemovedRows.ofTeam(team)
        guard
            try connection.clear(
                isAnyHeld ? connection.besidesHeld(tables, ofTeam: team) : tables, &left)
        else { return }
        if try !connection.deleteTeam(team) { try waitForHold(connection, team: team) }
    }

    /// Keeps the rest of a removed team until a hold ends (`HoldRepository.end`).
    private func waitForHold(
        _ connection: any DatabaseConnection, team: Int64
    ) throws(StoreFailure) {
        try connection.run("UPDATE teams SET waits_for_hold = 1 WHERE id = \(team)")
    }

    /// Ends consents to a group of apps that was removed alone. Returns whether none is left but
    /// those that a hold keeps.
    private func endConsents(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, team: Int64,
        _ left: inout Int
    ) throws(StoreFailure) -> Bool {
        let group: Int64? = try connection.value(
            "SELECT id FROM app_groups WHERE team_id = \(team) AND removed_from <> team_id")
        guard let group else { return true }
        let limit = max(1, left / Self.rowsPerAccount)
        // A consent that a hold keeps ends too, and its row stays.
        let remains: SQL =
            try connection.hasHold()
            ? "(state <> 'revoked' OR NOT \(HeldGrants.isHeld("grants.account_id")))" : "1 = 1"
        let found = try connection.rows(
            "SELECT id, account_id FROM grants WHERE group_id = \(group) AND \(remains) ORDER BY id \(SQL.limit(limit))"
        ).map { row throws(StoreFailure) in
            try (grant: row["id"] as Int64, account: row["account_id"] as Int64)
        }
        for (grant, account) in found {
            let held = try connection.heldData(ofAccount: account)
            guard try connection.clear(RemovedRows.ofGrant(grant).besides(held), &left) else {
                return false
            }
            try tracker.snapshot(.ending(account))
            try connection.endConsent(grant, ofAccount: account)
            left -= Self.rowsPerAccount
            guard left > 0 else { return false }
        }
        return found.count < limit
    }

    /// Deletes at most `rows` rows of a removed endpoint, and the endpoint
    /// itself when no more are left.
    func takeAway(
        _ connection: any DatabaseConnection, endpoint: Int64, rows: Int = rows
    ) throws(StoreFailure) {
        var left = rows
        guard try connection.clear(RemovedRows.ofEndpoint(endpoint), &left) else { return }
        try connection.run(
            "DELETE FROM event_endpoints WHERE id = \(endpoint) AND removed_at IS NOT NULL")
    }

    /// Deletes everything that is left, and lets other writers run in between. Does nothing if
    /// another process is already doing it.
    ///
    /// An item that fails is skipped, so that it does not stop the others. A temporary failure of
    /// the store ends the run, because it affects all items. The item that it stopped is tried last
    /// in the next run.
    /// - Parameters:
    ///   - time: the time within which further steps may start.
    ///   - passing: items that failed before, which are skipped.
    ///   - pause: called after each step, with the time that it took.
    /// - Returns: the items that failed in this run.
    package func run(
        now: Int64, within time: Duration? = nil, passing: Set<Item> = [],
        pause: (Duration) -> Void = { _ in }
    ) throws(StoreFailure) -> [Failure] {
        guard try next(besides: passing) != nil, let lock = try accounts.database.lock("removal")
        else { return [] }
        defer { lock.release() }
        var failures: [Failure] = []
        let end = time.map { ContinuousClock.now + $0 }
        while true {
            guard let item = try next(besides: passing.union(failures.map(\.item))) else { break }
            let start = ContinuousClock.now
            do { try step(item, now: now, rows: Self.rows) } catch {
                failures.append(Failure(item: item, error: error))
                if error.isTemporary { break }
            }
            if let end, ContinuousClock.now >= end { break }
            pause(ContinuousClock.now - start)
        }
        return failures
    }
}

extension [RemovedRows.Table] {
    /// Without the tables that holds keep.
    fileprivate func besides(_ held: Set<String>) -> Self {
        filter { table in table.held.map { !held.contains($0.data.name) } ?? true }
    }
}

/// Tables of which an account or a team may have many rows; these are deleted before it.
private enum RemovedRows {
    /// Whether an account has rows of one of these kinds of data.
    static func keeps(_ held: Set<String>) -> Bool {
        ofAccount(0).contains { table in table.held.map { held.contains($0.data.name) } ?? false }
    }

    struct Table {
        let name: String
        /// Columns that identify a row. A number is first only if all columns are numbers: SQLite
        /// compares all of them like the first.
        let key: String
        /// The condition for the table's rows.
        var condition: SQL
        /// The `SET` that clears the rows' reference; nil deletes them.
        var change: String?
        /// The cost of each row, with the rows that the database deletes with it.
        var weight = 1
        /// What a hold keeps of it; nil: nothing.
        var held: HeldTable?
    }

    /// The rows of consents; `condition` selects the consents.
    private static func ofGrants(_ condition: SQL) -> [Table] {
        [
            Table(
                name: "checks", key: "decision_id, challenge", condition: condition, held: .checks),
            Table(
                name: "decisions", key: "id", condition: condition, change: "grant_id = NULL",
                held: .decisions),
            Table(name: "refresh_tokens", key: "id", condition: condition),
            Table(name: "authorization_codes", key: "code_hash", condition: condition),
        ]
    }

    static func ofGrant(_ grant: Int64) -> [Table] { ofGrants("grant_id = \(grant)") }

    static func ofAccount(_ account: Int64) -> [Table] {
        [
            Table(name: "stored_tokens", key: "token", condition: "account_id = \(account)"),
            Table(
                name: "once_marks", key: "mark, account_id, purpose",
                condition: "account_id = \(account)"),
            Table(
                name: "daily_counters", key: "account_id, day, kind",
                condition: "account_id = \(account)", held: .counters),
            Table(
                name: "counter_totals", key: "account_id, kind",
                condition: "account_id = \(account)", held: .counterTotals),
            Table(
                name: "account_refusals", key: "domain, account_id, day, kind",
                condition: "account_id = \(account)"),
            Table(
                name: "uses_by_others", key: "domain, account_id, ordinal, day",
                condition: "account_id = \(account)", held: .uses),
            Table(
                name: "delivery_marks", key: "provider, account_id, what, day",
                condition: "account_id = \(account)", held: .deliveryMarks),
        ] + ofGrants("grant_id IN (SELECT id FROM grants WHERE account_id = \(account))")
    }

    static func ofEndpoint(_ endpoint: Int64) -> [Table] {
        [
            Table(name: "outbox", key: "id", condition: "endpoint_id = \(endpoint)"),
            Table(
                name: "stream_exclusions", key: "account_id, endpoint_id",
                condition: "endpoint_id = \(endpoint)"),
        ]
    }

    static func ofTeam(_ team: Int64) -> [Table] {
        let ofItsApps: SQL =
            "app_id IN (SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = \(team))"
        return [
            Table(name: "decisions", key: "id", condition: "team_id = \(team)", held: .decisions),
            Table(name: "rejections", key: "id", condition: "team_id = \(team)", held: .rejections),
            Table(
                name: "delivery_standings", key: "provider, team_id",
                condition: "team_id = \(team)"),
            Table(
                name: "delivery_results", key: "provider, team_id, hour, outcome",
                condition: "team_id = \(team)", held: .deliveryResults),
            Table(
                name: "idempotency_keys", key: "key_mark, team_id, endpoint",
                condition: "team_id = \(team)"),
            Table(name: "transfer_subs", key: "transfer_sub", condition: "target_team = \(team)"),
            Table(
                name: "upgraded_accounts", key: "app_account, team_id",
                condition: "team_id = \(team)"),
            Table(
                name: "live_list_entries", key: "value, list_id, generation",
                condition: "list_id IN (SELECT id FROM live_lists WHERE team_id = \(team))"),
            Table(name: "access_tokens", key: "token_hash", condition: ofItsApps),
            Table(name: "refresh_tokens", key: "id", condition: ofItsApps),
            Table(name: "authorization_codes", key: "code_hash", condition: ofItsApps),
            Table(name: "app_signups", key: "app_id, slice", condition: ofItsApps),
            // Each device also has the accounts that were seen on it: usually few.
            Table(name: "devices", key: "id", condition: ofItsApps, weight: 10),
            Table(
                name: "account_transfers", key: "old_account, transfer_id",
                condition: """
                    transfer_id IN (SELECT id FROM app_transfers WHERE from_team = \(team) OR to_team = \(team)
                        OR group_id IN (SELECT id FROM app_groups WHERE team_id = \(team)))
                    """),
        ]
    }

    /// Consents to its apps of accounts that still belong to the apps' former team. No endpoint is
    /// notified, because that team gave them away.
    static func ofMovingApps(_ team: Int64) -> [Table] {
        [
            Table(
                name: "grants", key: "id",
                condition: """
                    group_id IN (SELECT p.id FROM app_groups p WHERE p.team_id = \(team)
                        AND EXISTS (SELECT 1 FROM app_transfers x WHERE x.group_id = p.id AND x.to_team = \(team)))
                    AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = grants.account_id AND a.team_id = \(team))
                    """)
        ]
    }
}

extension DatabaseConnection {
    /// Deletes rows until the budget is used up, and subtracts them from it.
    /// Returns whether none is left.
    fileprivate func clear(
        _ tables: [RemovedRows.Table], _ budget: inout Int
    ) throws(StoreFailure) -> Bool {
        for table in tables {
            guard budget > 0 else { return false }
            let verb =
                table.change.map { "UPDATE \(table.name) SET \($0)" } ?? "DELETE FROM \(table.name)"
            let limit = max(1, budget / table.weight)
            let count = try run(
                """
                \(raw: verb) WHERE (\(raw: table.key)) IN (SELECT \(raw: table.key) FROM \(raw: table.name)
                    WHERE \(table.condition) LIMIT \(limit))
                """)
            guard count < limit else {
                budget = 0
                return false
            }
            budget -= count * table.weight
        }
        return true
    }

    /// Deletes the rows of an account in the same way. Returns false too if holds keep some.
    func clearAccount(_ account: Int64, rows: inout Int) throws(StoreFailure) -> Bool {
        let held = try heldData(ofAccount: account)
        return try clear(RemovedRows.ofAccount(account).besides(held), &rows)
            && !RemovedRows.keeps(held)
    }

    /// The tables without the rows that holds keep: of the team, and of users whose decisions or
    /// consents are there.
    fileprivate func besidesHeld(
        _ tables: [RemovedRows.Table], ofTeam team: Int64
    ) throws(StoreFailure) -> [RemovedRows.Table] {
        let held = try heldData(ofTeam: team)
        let isFree = try isFree(.decisions)
        return tables.besides(held).map { table in
            var table = table
            if table.name == "decisions" {
                table.condition =
                    "id IN (SELECT id FROM decisions x WHERE x.team_id = \(team) AND \(isFree))"
            } else if table.name == "grants" {
                table.condition =
                    "\(table.condition) AND NOT \(HeldGrants.isHeld("grants.account_id"))"
            }
            return table
        }
    }
}
