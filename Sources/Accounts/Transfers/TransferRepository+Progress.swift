// The progress of transfers. There may be millions of accounts, so they are counted in pieces, and
// only up to a bound.

import Database

extension TransferRepository {
    /// Transfers, the newest first; of one app, or all. Each of their
    /// counts is at most `bound + 1`.
    package func transfers(
        app clientID: String? = nil, upTo bound: Int = BoundedCount.bound
    ) throws(StoreFailure) -> [AppTransfer] {
        guard let clientID else { return try transfers(where: "1 = 1", upTo: bound) }
        let (_, group) = try database.read { connection throws(StoreFailure) in
            try connection.appGroup(clientID: clientID)
        }
        return try transfers(where: "x.group_id = \(group.number)", upTo: bound)
    }

    /// A transfer that exists.
    func transfer(_ number: Int64) throws(StoreFailure) -> AppTransfer {
        guard let found = try transfers(where: "x.id = \(number)", upTo: BoundedCount.bound).first
        else {
            throw .permanent(.unexpectedData, "a transfer that was just written is missing")
        }
        return found
    }

    /// Grants that have yet to move in a transfer, at most `bound + 1`.
    package func waiting(_ transfer: Int64, upTo bound: Int = .max) throws(StoreFailure) -> Int {
        let row = try database.row(
            "SELECT group_id, from_team, moved_through FROM app_transfers WHERE id = \(transfer) AND state <> 'finished'"
        )
        guard let row else { return 0 }
        let (group, team): (Int64, Int64) = try (row["group_id"], row["from_team"])
        return try database.count(upTo: bound, after: row["moved_through"]) { after, limit in
            """
            SELECT COUNT(CASE WHEN a.team_id = \(team) THEN 1 END) AS count, MAX(g.id) AS last
            FROM (SELECT id, account_id FROM grants WHERE group_id = \(group) AND id > \(after) ORDER BY id \(limit)) g
            JOIN accounts a ON a.id = g.account_id
            """
        }
    }

    private func transfers(
        where condition: SQL, upTo bound: Int
    ) throws(StoreFailure) -> [AppTransfer] {
        try database.rows(
            """
            SELECT x.id, x.group_id, p.primary_client_id, f.handle AS from_team, t.handle AS to_team, x.from_team AS from_number,
                x.to_team AS to_number, x.state, x.started_at, x.moved_at, x.ends_at
            FROM app_transfers x JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL
                JOIN teams f ON f.id = x.from_team AND f.removed_at IS NULL
                JOIN teams t ON t.id = x.to_team AND t.removed_at IS NULL
            WHERE \(condition) ORDER BY x.id DESC
            """
        ).map { row throws(StoreFailure) in
            let (number, from, to): (Int64, Int64, Int64) = try (
                row["id"], row["from_number"], row["to_number"]
            )
            let moved = try database.count(upTo: bound) { after, limit in
                """
                SELECT COUNT(*) AS count, MAX(old_account) AS last FROM (
                    SELECT old_account FROM account_transfers WHERE transfer_id = \(number) AND old_account > \(after)
                    ORDER BY old_account \(limit)) m
                """
            }
            let subjects = try database.count(upTo: bound) { after, limit in
                """
                SELECT COUNT(CASE WHEN a.team_id = \(from) THEN 1 END) AS count, MAX(s.account_id) AS last
                FROM (SELECT account_id FROM transfer_subs WHERE target_team = \(to) AND account_id > \(after)
                    ORDER BY account_id \(limit)) s
                JOIN accounts a ON a.id = s.account_id
                """
            }
            return try AppTransfer(
                number: number, group: AppGroup(row: row), fromTeam: row["from_team"],
                toTeam: row["to_team"],
                state: row["state"],
                startedAt: row["started_at"], movedAt: row["moved_at"], endsAt: row["ends_at"],
                waiting: waiting(number, upTo: bound), moved: moved, subjects: subjects)
        }
    }
}
