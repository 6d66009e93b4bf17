// Apps and the groups that share consent.

/// What goes with an app when it is removed.
package struct AppDependents: Sendable, Hashable {
    /// Grants that end because the app is the last of its group.
    package let grants: Int
}

/// Adds, finds and removes apps.
package struct AppRepository: Sendable {
    let accounts: AccountRepository
    private var events: AccountEvents { accounts.events }
    private var database: any Database { events.database }

    /// Adds an app: under a primary app of the same team, or on its own as the primary of a new group.
    /// - Parameter redirectURIs: where its authorizations may be answered to.
    package func add(
        team id: String, clientID: String, group primary: String?, redirectURIs: [String] = [], _ change: Change
    ) throws -> App {
        let clientID = try Identifier.checked(clientID, "a client_id")
        let redirectURIs = try redirectURIs.map(RedirectURI.checked)
        return try database.write(.durable) { connection in
            let team = try connection.team(id)
            guard try connection.row("SELECT id FROM apps WHERE client_id = ?1", [.text(clientID)]) == nil else {
                throw StoreRefusal(.exists, "app \(clientID) already exists")
            }
            let group: AppGroup
            if let primary {
                let row = try connection.row(
                    "SELECT id FROM app_groups WHERE team_id = ?1 AND primary_client_id = ?2",
                    [.integer(team.number), .text(primary)])
                guard let row else {
                    throw StoreRefusal(.notFound, "team \(id) has no primary app \(primary): see postern app list \(id)")
                }
                group = AppGroup(number: try row.integer(0), primaryClientID: primary)
            } else {
                let row = try connection.row(
                    "INSERT INTO app_groups (team_id, primary_client_id, created_at) VALUES (?1, ?2, ?3) RETURNING id",
                    [.integer(team.number), .text(clientID), .integer(change.now)])
                guard let row else { throw PermanentStoreError(.unexpectedData, "an insertion returned nothing") }
                group = AppGroup(number: try row.integer(0), primaryClientID: clientID)
            }
            let added = try connection.row(
                "INSERT INTO apps (group_id, client_id, created_at) VALUES (?1, ?2, ?3) RETURNING id",
                [.integer(group.number), .text(clientID), .integer(change.now)])
            guard let added else { throw PermanentStoreError(.unexpectedData, "an insertion returned nothing") }
            try connection.audit(change, "app.add", "team:\(id)", "\(clientID) group \(group.primaryClientID ?? "")")
            for uri in redirectURIs {
                _ = try connection.addRedirect(uri, app: added.integer(0), clientID: clientID, team: id, change)
            }
            return App(clientID: clientID, group: group, createdAt: change.now)
        }
    }

    /// The team's apps, group by group, the oldest first.
    package func apps(team id: String) throws -> [App] {
        try database.read { connection in
            let team = try connection.team(id)
            return try connection.rows(
                """
                SELECT a.client_id, g.id, g.primary_client_id, a.created_at FROM apps a JOIN app_groups g ON g.id = a.group_id
                WHERE g.team_id = ?1 ORDER BY g.id, a.id
                """, [.integer(team.number)]
            ).map { row in
                App(
                    clientID: try row.text(0),
                    group: AppGroup(number: try row.integer(1), primaryClientID: try row.optionalText(2)),
                    createdAt: try row.integer(3))
            }
        }
    }

    private static let decisionSelect = """
        SELECT a.id, a.group_id, g.team_id, t.handle, a.nonce_form, a.nonce_required, a.client_id
        FROM apps a JOIN app_groups g ON g.id = a.group_id JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
        """

    /// What a question about an app needs to know; nil where there is no such app.
    package func decisionApp(clientID: String) throws -> DecisionApp? {
        try database.read { connection in
            guard let row = try connection.row(Self.decisionSelect + " WHERE a.client_id = ?1", [.text(clientID)]) else {
                return nil
            }
            let former = try connection.rows(
                "SELECT group_id, from_team FROM app_transfers WHERE group_id = ?1 AND moved_at IS NOT NULL",
                [.integer(row.integer(1))])
            return try Self.decisionApp(row: row, formerTeams: Self.formerTeams(former))
        }
    }

    /// The same of every app, at most `limit`.
    package func decisionApps(limit: Int) throws -> [DecisionApp] {
        try database.read { connection in
            let former = try Self.formerTeams(
                connection.rows("SELECT group_id, from_team FROM app_transfers WHERE moved_at IS NOT NULL", []))
            return try connection.rows(Self.decisionSelect + " ORDER BY a.id LIMIT ?1", [.integer(Int64(limit))])
                .map { try Self.decisionApp(row: $0, formerTeams: former) }
        }
    }

    /// Teams that groups of apps were transferred from, by group.
    private static func formerTeams(_ rows: [SQLRow]) throws -> [Int64: [Int64]] {
        try rows.reduce(into: [:]) { $0[try $1.integer(0), default: []].append(try $1.integer(1)) }
    }

    private static func decisionApp(row: SQLRow, formerTeams: [Int64: [Int64]]) throws -> DecisionApp {
        DecisionApp(
            number: try row.integer(0), clientID: try row.text(6), groupNumber: try row.integer(1),
            teamNumber: try row.integer(2),
            teamID: try row.text(3), formerTeams: formerTeams[try row.integer(1)] ?? [],
            nonceForm: AppNonceForm(rawValue: try row.text(4)) ?? .raw,
            isNonceRequired: try row.bool(5))
    }

    /// Fixes how an app's identity tokens carry the nonce, and whether there must be one.
    package func setNonce(team id: String, clientID: String, form: AppNonceForm, isRequired: Bool, _ change: Change) throws {
        try database.write(.durable) { connection in
            _ = try connection.appGroup(team: connection.team(id), clientID: clientID)
            try connection.run(
                "UPDATE apps SET nonce_form = ?2, nonce_required = ?3 WHERE client_id = ?1",
                [.text(clientID), .text(form.rawValue), .bool(isRequired)])
            try connection.audit(
                change, "app.nonce", "team:\(id)", "\(clientID) \(form.rawValue) \(isRequired ? "required" : "optional")")
        }
    }

    /// Whether an app has this `client_id`.
    package func isClient(_ clientID: String) throws -> Bool {
        try database.read { connection in
            // A removed app has a name that no one can register, but that anyone may guess.
            try connection.row(
                "SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL WHERE a.client_id = ?1",
                [.text(clientID)]) != nil
        }
    }

    /// What removing the app would end.
    package func dependents(team id: String, clientID: String) throws -> AppDependents {
        try database.read { connection in
            let group = try connection.appGroup(team: connection.team(id), clientID: clientID)
            guard try connection.appCount(group) == 1 else { return AppDependents(grants: 0) }
            let row = try connection.row(
                "SELECT COUNT(*) FROM grants WHERE group_id = ?1 AND state = 'authorized'", [.integer(group.number)])
            return AppDependents(grants: Int(try row?.integer(0) ?? 0))
        }
    }

    /// Removes an app; with the last of a group the group and its grants go. A primary app goes after those grouped under it.
    /// The name is free and consents count no more from then on; rows that may be many stay until `removals` has taken them away,
    /// and with them the group's endpoint is told of each consent.
    package func remove(team id: String, clientID: String, _ change: Change) throws {
        try events.write(at: change.now) { connection, tracker in
            let team = try connection.team(id)
            let group = try connection.appGroup(team: team, clientID: clientID)
            let isLast = try connection.appCount(group) == 1
            guard isLast || group.primaryClientID != clientID else {
                throw StoreRefusal(.unmet, "\(clientID) is the primary app of others: remove those first")
            }
            let removed = try connection.retireApp(
                clientID, of: team.number, group: group.number, withGroup: isLast, now: change.now)
            try connection.audit(change, "app.remove", "team:\(id)", clientID)
            try RemovalRepository(accounts: accounts).takeAway(connection, tracker, team: removed)
        }
    }
}

extension DatabaseConnection {
    /// The group of a team's app, or `StoreRefusal` (`notFound`).
    func appGroup(team: Team, clientID: String) throws -> AppGroup {
        let row = try row(
            """
            SELECT g.id, g.primary_client_id FROM apps a JOIN app_groups g ON g.id = a.group_id
            WHERE g.team_id = ?1 AND a.client_id = ?2
            """, [.integer(team.number), .text(clientID)])
        guard let row else {
            throw StoreRefusal(.notFound, "team \(team.id) has no app \(clientID): see postern app list \(team.id)")
        }
        return AppGroup(number: try row.integer(0), primaryClientID: try row.optionalText(1))
    }

    /// Puts an app into a team of its own, which was removed: alone, or with its group and all consents. Names are free
    /// afterwards.
    /// - Returns: that team.
    fileprivate func retireApp(_ clientID: String, of team: Int64, group: Int64, withGroup: Bool, now: Int64) throws -> Int64 {
        guard let app = try row("SELECT id FROM apps WHERE client_id = ?1", [.text(clientID)])?.integer(0) else {
            throw PermanentStoreError(.unexpectedData, "an app that was just found is not there")
        }
        // No name that may be chosen has a space in it.
        let name = SQLValue.text("removed app \(app)")
        let removed = try row(
            "INSERT INTO teams (handle, name, created_at, removed_at) VALUES (?1, '', ?2, ?2) RETURNING id",
            [name, .integer(now)])
        guard let removed = try removed?.integer(0) else {
            throw PermanentStoreError(.unexpectedData, "an insertion returned nothing")
        }
        for table in ["app_redirects", "policy_app_bindings"] {
            try run("DELETE FROM \(table) WHERE app_id = ?1", [.integer(app)])
        }
        guard withGroup else {
            try run(
                "INSERT INTO app_groups (team_id, primary_client_id, created_at, removed_from) VALUES (?1, ?2, ?3, ?1)",
                [.integer(removed), name, .integer(now)])
            try run(
                "UPDATE apps SET client_id = ?2, group_id = (SELECT id FROM app_groups WHERE team_id = ?3) WHERE id = ?1",
                [.integer(app), name, .integer(removed)])
            return removed
        }
        try run("UPDATE apps SET client_id = ?2 WHERE id = ?1", [.integer(app), name])
        // Where it was on its way, consents that have not followed are another team's.
        try run(
            """
            UPDATE teams SET loses_apps = 1
            WHERE id = ?2 OR id IN (SELECT from_team FROM app_transfers WHERE group_id = ?1 AND state = 'moving')
            """, [.integer(group), .integer(team)])
        try run("DELETE FROM app_transfers WHERE group_id = ?1 AND state = 'started'", [.integer(group)])
        try run("UPDATE app_transfers SET state = 'finished' WHERE group_id = ?1 AND state = 'moving'", [.integer(group)])
        try run(
            "UPDATE app_groups SET team_id = ?2, primary_client_id = ?3, removed_from = ?4 WHERE id = ?1",
            [.integer(group), .integer(removed), name, .integer(team)])
        return removed
    }

    fileprivate func appCount(_ group: AppGroup) throws -> Int64 {
        try row("SELECT COUNT(*) FROM apps WHERE group_id = ?1", [.integer(group.number)])?.integer(0) ?? 0
    }

    /// The group that consent goes to where no one named an app: the team's oldest group with apps; for a team without apps
    /// the group of mail alone, made now if need be.
    func usualGroup(team: Team, _ change: Change) throws -> AppGroup {
        if let known = try knownUsualGroup(team: team) { return known }
        let added = try row(
            "INSERT INTO app_groups (team_id, primary_client_id, created_at) VALUES (?1, NULL, ?2) RETURNING id",
            [.integer(team.number), .integer(change.now)])
        guard let added else { throw PermanentStoreError(.unexpectedData, "an insertion returned nothing") }
        return AppGroup(number: try added.integer(0), primaryClientID: nil)
    }

    /// The same where it is there already.
    func knownUsualGroup(team: Team) throws -> AppGroup? {
        try row(
            """
            SELECT id, primary_client_id FROM app_groups WHERE team_id = ?1
            ORDER BY CASE WHEN primary_client_id IS NULL THEN 1 ELSE 0 END, id LIMIT 1
            """, [.integer(team.number)]
        ).map { AppGroup(number: try $0.integer(0), primaryClientID: try $0.optionalText(1)) }
    }
}
