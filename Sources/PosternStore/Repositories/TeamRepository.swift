// Teams.

/// What goes with a team when it is removed.
package struct TeamDependents: Sendable, Hashable {
    package let sources: Int
    package let apps: Int
    package let accounts: Int
    package let addresses: Int
    package var isEmpty: Bool { sources + apps + accounts + addresses == 0 }
}

/// Adds, finds and removes teams.
package struct TeamRepository: Sendable {
    let accounts: AccountRepository
    private var database: any Database { accounts.database }

    /// Adds a team. Refused where the identifier is taken or malformed.
    package func add(id: String, name: String, _ change: Change) throws -> Team {
        let id = try Identifier.checked(id, "a team's identifier")
        let name = try Identifier.checkedName(name)
        return try database.write(.durable) { connection in
            let row = try connection.row(
                "INSERT INTO teams (handle, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (handle) DO NOTHING RETURNING id",
                [.text(id), .text(name), .integer(change.now)])
            guard let row else { throw StoreRefusal(.exists, "team \(id) already exists") }
            try connection.audit(change, "team.add", "team:\(id)")
            return Team(number: try row.integer(0), id: id, name: name, createdAt: change.now)
        }
    }

    /// The team, or `StoreRefusal` (`notFound`).
    package func team(_ id: String) throws -> Team { try database.read { try $0.team(id) } }

    /// All teams by identifier.
    package func all() throws -> [Team] {
        try database.read { connection in
            try connection.rows("SELECT id, handle, name, created_at FROM teams WHERE removed_at IS NULL ORDER BY handle", [])
                .map(Team.init(row:))
        }
    }

    /// What removing the team would take along.
    package func dependents(_ id: String) throws -> TeamDependents {
        try database.read { connection in
            let team = try connection.team(id)
            let row = try connection.row(
                """
                SELECT (SELECT COUNT(*) FROM outbound_sources WHERE team_id = ?1),
                    (SELECT COUNT(*) FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = ?1),
                    (SELECT COUNT(*) FROM accounts WHERE team_id = ?1),
                    (SELECT COUNT(*) FROM relay_addresses r JOIN accounts a ON a.id = r.account_id WHERE a.team_id = ?1)
                """, [.integer(team.number)])
            guard let row else { return TeamDependents(sources: 0, apps: 0, accounts: 0, addresses: 0) }
            return TeamDependents(
                sources: Int(try row.integer(0)), apps: Int(try row.integer(1)), accounts: Int(try row.integer(2)),
                addresses: Int(try row.integer(3)))
        }
    }

    /// Removes the team with its sources, apps, accounts and relay addresses: mail to them is answered as unknown from then on,
    /// and their names are free. Rows that may be many stay until `removals` has taken them away; nothing finds them any more.
    package func remove(_ id: String, _ change: Change) throws {
        try accounts.events.write(at: change.now) { connection, tracker in
            let team = try connection.team(id)
            let number: [SQLValue] = [.integer(team.number)]
            for table in ["outbound_sources", "api_keys", "client_keys", "policy_team_bindings"] {
                try connection.run("DELETE FROM \(table) WHERE team_id = ?1", number)
            }
            let ofApps = "app_id IN (SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = ?1)"
            for table in ["app_redirects", "policy_app_bindings"] {
                try connection.run("DELETE FROM \(table) WHERE \(ofApps)", number)
            }
            try connection.run(
                """
                UPDATE teams SET loses_apps = 1 WHERE id IN (
                    SELECT x.from_team FROM app_transfers x JOIN app_groups p ON p.id = x.group_id
                    WHERE p.team_id = ?1 AND x.to_team = ?1 AND x.state = 'moving')
                """, number)
            // No app goes to a team that is gone, and what has not followed from one goes with it.
            try connection.run("DELETE FROM app_transfers WHERE state = 'started' AND (from_team = ?1 OR to_team = ?1)", number)
            try connection.run(
                "UPDATE app_transfers SET state = 'finished' WHERE state = 'moving' AND (from_team = ?1 OR to_team = ?1)", number)
            // No name that may be chosen has a space in it.
            try connection.run(
                """
                UPDATE apps SET client_id = 'removed ' || CAST(id AS TEXT)
                WHERE group_id IN (SELECT id FROM app_groups WHERE team_id = ?1)
                """, number)
            try connection.run(
                "UPDATE app_groups SET primary_client_id = 'removed ' || CAST(id AS TEXT), removed_from = ?1 WHERE team_id = ?1",
                number)
            try connection.run(
                "UPDATE teams SET handle = 'removed ' || CAST(id AS TEXT), removed_at = ?2 WHERE id = ?1",
                number + [.integer(change.now)])
            try connection.audit(change, "team.remove", "team:\(id)")
            try RemovalRepository(accounts: accounts).takeAway(connection, tracker, team: team.number)
        }
    }
}

extension Team {
    /// From columns id, handle, name, created_at, beginning at `first`.
    init(row: SQLRow, first: Int) throws {
        self.init(
            number: try row.integer(first), id: try row.text(first + 1), name: try row.text(first + 2),
            createdAt: try row.integer(first + 3))
    }

    init(row: SQLRow) throws { try self.init(row: row, first: 0) }
}

extension DatabaseConnection {
    /// The team, or `StoreRefusal` (`notFound`).
    func team(_ id: String) throws -> Team {
        let row = try row("SELECT id, handle, name, created_at FROM teams WHERE handle = ?1 AND removed_at IS NULL", [.text(id)])
        guard let row else { throw StoreRefusal(.notFound, "there is no team \(id): see postern team list") }
        return try Team(row: row)
    }
}
