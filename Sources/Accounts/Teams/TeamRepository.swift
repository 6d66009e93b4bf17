// Teams.

import Database
import RelayCore

/// The rows that are removed together with a team.
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

    /// Adds a team. Refused if the identifier is malformed or another team has it.
    package func add(id: String, name: String, _ change: Change) throws(StoreFailure) -> Team {
        let id = try Identifier.checked(id, "a team's identifier")
        let name = try Identifier.checkedName(name)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let number: Int64? = try connection.value(
                """
                INSERT INTO teams (handle, name, created_at) VALUES (\(id), \(name), \(change.now))
                ON CONFLICT (handle) DO NOTHING RETURNING id
                """)
            guard let number else {
                throw .refused(
                    .exists,
                    "team \(id) already exists: postern team rename \(id) NAME changes its name")
            }
            try connection.audit(change, "team.add", "team:\(id)")
            return Team(number: number, id: id, name: name, createdAt: change.now)
        }
    }

    /// Changes a team's name for people.
    package func rename(_ id: String, name: String, _ change: Change) throws(StoreFailure) {
        let name = try Identifier.checkedName(name)
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            try connection.run("UPDATE teams SET name = \(name) WHERE id = \(team.number)")
            try connection.audit(change, "team.name", "team:\(id)")
        }
    }

    /// The team, or `notFound`.
    package func team(_ id: String) throws(StoreFailure) -> Team {
        try database.team(id)
    }

    /// All teams by identifier.
    package func all() throws(StoreFailure) -> [Team] {
        try database.rows(
            "SELECT \(Team.columns) FROM teams t WHERE t.removed_at IS NULL ORDER BY t.handle"
        )
        .map(Team.init(row:))
    }

    /// How many accounts the team has.
    package func accountCount(_ id: String) throws(StoreFailure) -> Int {
        let team = try team(id).number
        return try database.count(upTo: .max) { Self.accountPiece(team, after: $0, $1) }
    }

    private static func accountPiece(_ team: Int64, after: Int64, _ limit: SQL) -> SQL {
        """
        SELECT COUNT(*) AS count, MAX(id) AS last
        FROM (SELECT id FROM accounts WHERE team_id = \(team) AND id > \(after) ORDER BY id \(limit)) a
        """
    }

    /// The rows that would be removed with the team. At most `bound + 1` accounts and addresses are
    /// counted.
    package func dependents(
        _ id: String, upTo bound: Int = BoundedCount.bound
    ) throws(StoreFailure) -> TeamDependents {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(id).number
            let sources: Int? = try connection.value(
                "SELECT COUNT(*) FROM outbound_sources WHERE team_id = \(team)")
            let apps: Int? = try connection.value(
                "SELECT COUNT(*) FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = \(team)"
            )
            let addresses = try connection.count(upTo: bound) { after, limit in
                """
                SELECT COUNT(r.account_id) AS count, MAX(a.id) AS last
                FROM (SELECT id FROM accounts WHERE team_id = \(team) AND id > \(after) ORDER BY id \(limit)) a
                LEFT JOIN relay_addresses r ON r.account_id = a.id
                """
            }
            return TeamDependents(
                sources: sources ?? 0, apps: apps ?? 0,
                accounts: try connection.count(upTo: bound) {
                    Self.accountPiece(team, after: $0, $1)
                }, addresses: addresses)
        }
    }

    /// The outgoing identity of a team; nil for the standard. Throws `notFound`.
    package func outgoingIdentity(_ id: String) throws(StoreFailure) -> OutgoingIdentityName? {
        let database = accounts.events.database
        return try database.read { connection throws(StoreFailure) in
            let name: String? = try connection.value(
                "SELECT outgoing_identity FROM teams WHERE id = \(connection.team(id).number)")
            return name.flatMap(OutgoingIdentityName.init)
        }
    }

    /// Gives a team an outgoing identity, or the standard. Throws `notFound`.
    package func setOutgoingIdentity(
        _ id: String, _ identity: OutgoingIdentityName?, _ change: Change
    ) throws(StoreFailure) {
        try accounts.events.database.write(.durable) { connection throws(StoreFailure) in
            let number = try connection.team(id).number
            let changed = try connection.run(
                """
                UPDATE teams SET outgoing_identity = \(identity?.text ?? "")
                WHERE id = \(number) AND outgoing_identity <> \(identity?.text ?? "")
                """)
            guard changed > 0 else { return }
            try connection.audit(
                change, "team.outgoing", "team:\(id)", identity?.text ?? "standard")
        }
    }

    /// Removes the team with its sources, apps, accounts and relay addresses. Mail to them is
    /// rejected as unknown from then on, and their names are free. Tables with many rows keep them
    /// until `removals` deletes them; no query finds these rows.
    package func remove(_ id: String, _ change: Change) throws(StoreFailure) {
        try accounts.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let team = try connection.team(id)
            let number = team.number
            for table in [
                "outbound_sources", "source_claims", "api_keys", "client_keys",
                "policy_team_bindings",
            ] {
                try connection.run("DELETE FROM \(raw: table) WHERE team_id = \(number)")
            }
            for table in [
                "app_redirects", "client_secrets", "logout_redirects", "policy_app_bindings",
                "attested_apps",
            ] {
                try connection.run(
                    """
                    DELETE FROM \(raw: table) WHERE app_id IN (
                        SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id WHERE g.team_id = \(number))
                    """)
            }
            try connection.run(
                """
                UPDATE apps SET backchannel_logout_uri = NULL
                WHERE group_id IN (SELECT id FROM app_groups WHERE team_id = \(number))
                """)
            try connection.run(
                """
                UPDATE teams SET loses_apps = 1 WHERE id IN (
                    SELECT x.from_team FROM app_transfers x JOIN app_groups p ON p.id = x.group_id
                    WHERE p.team_id = \(number) AND x.to_team = \(number) AND x.state = 'moving')
                """)
            // No app can move to a removed team. Apps that have not yet moved away from a removed
            // team are removed with it.
            let ofTeam: SQL = "(from_team = \(number) OR to_team = \(number))"
            try connection.run("DELETE FROM app_transfers WHERE state = 'started' AND \(ofTeam)")
            try connection.run(
                "UPDATE app_transfers SET state = 'finished' WHERE state = 'moving' AND \(ofTeam)")
            // No valid name contains a space.
            try connection.run(
                """
                UPDATE apps SET client_id = 'removed ' || CAST(id AS TEXT)
                WHERE group_id IN (SELECT id FROM app_groups WHERE team_id = \(number))
                """)
            try connection.run(
                """
                UPDATE app_groups SET primary_client_id = 'removed ' || CAST(id AS TEXT), removed_from = \(number)
                WHERE team_id = \(number)
                """)
            try connection.run(
                "UPDATE teams SET handle = 'removed ' || CAST(id AS TEXT), removed_at = \(change.now) WHERE id = \(number)"
            )
            try connection.audit(change, "team.remove", "team:\(id)")
            try RemovalRepository(accounts: accounts).takeAway(
                connection, tracker, team: team.number, now: change.now)
        }
    }
}

extension Team {
    /// The columns of a team `t`, under names that no other table has.
    package static let columns: SQL =
        "t.id AS team_id, t.handle AS team, t.name AS team_name, t.created_at AS team_created_at"

    /// From `columns`.
    package init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["team_id"], id: row["team"], name: row["team_name"],
            createdAt: row["team_created_at"])
    }
}

extension SQLQuerying {
    /// The team, or `notFound`.
    package func team(_ id: String) throws(StoreFailure) -> Team {
        let row = try row(
            "SELECT \(Team.columns) FROM teams t WHERE t.handle = \(id) AND t.removed_at IS NULL")
        guard let row else {
            throw .refused(.notFound, "there is no team \(id): see postern team list")
        }
        return try Team(row: row)
    }
}
