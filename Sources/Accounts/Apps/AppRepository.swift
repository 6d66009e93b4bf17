// Apps and the groups that share consent.

import Database

/// The rows that are removed together with an app.
package struct AppDependents: Sendable, Hashable {
    /// Grants that end because the app is the last of its group.
    package let grants: Int
}

/// Adds, finds and removes apps.
package struct AppRepository: Sendable {
    let accounts: AccountRepository
    private var events: AccountEvents { accounts.events }
    var database: any Database { events.database }

    /// Adds an app: under a primary app of the same team, or on its own as
    /// the primary of a new group.
    /// - Parameters:
    ///   - redirectURIs: the URIs that the responses to its authorization requests may go to.
    ///   - name: for people; nil for none.
    ///   - identityTokenAlgorithm: `ES256` or `RS256`; `Store.addApp` has the default for new apps.
    package func add(
        team id: String, clientID: String, group primary: String?, redirectURIs: [String] = [],
        name: String? = nil,
        icon: AppIcon? = nil, identityTokenAlgorithm: String = "ES256", _ change: Change
    ) throws(StoreFailure) -> App {
        let clientID = try Identifier.checked(clientID, "a client_id")
        let name = try name.map(Identifier.checkedName)
        let redirectURIs = try redirectURIs.map(RedirectURI.checked)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            guard try connection.row("SELECT id FROM apps WHERE client_id = \(clientID)") == nil
            else {
                throw .refused(.exists, "app \(clientID) already exists")
            }
            let group: AppGroup
            if let primary {
                let number: Int64? = try connection.value(
                    "SELECT id FROM app_groups WHERE team_id = \(team.number) AND primary_client_id = \(primary)"
                )
                guard let number else {
                    throw .refused(
                        .notFound,
                        "team \(id) has no primary app \(primary): see postern app list \(id)")
                }
                group = AppGroup(number: number, primaryClientID: primary)
            } else {
                group = try connection.addGroup(team: team, primary: clientID, change)
            }
            let added = try connection.inserted(
                """
                INSERT INTO apps (group_id, client_id, created_at, name, icon, id_token_algorithm)
                VALUES (\(group.number), \(clientID), \(change.now), \(name), \(icon?.png),
                    \(identityTokenAlgorithm)) RETURNING id
                """)
            try connection.audit(
                change, "app.add", "team:\(id)", "\(clientID) group \(group.primaryClientID ?? "")")
            for uri in redirectURIs {
                _ = try connection.addRedirect(
                    uri, app: added, clientID: clientID, team: id, change)
            }
            return App(
                clientID: clientID, group: group, createdAt: change.now, name: name,
                hasIcon: icon != nil)
        }
    }

    /// The team's apps, group by group, the oldest first.
    package func apps(team id: String) throws(StoreFailure) -> [App] {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(id)
            return try connection.rows(
                """
                SELECT a.client_id, g.id AS group_id, g.primary_client_id, a.created_at, a.name,
                    CASE WHEN a.icon IS NULL THEN 0 ELSE 1 END AS has_icon
                FROM apps a JOIN app_groups g ON g.id = a.group_id
                WHERE g.team_id = \(team.number) ORDER BY g.id, a.id
                """
            ).map { row throws(StoreFailure) in
                try App(
                    clientID: row["client_id"], group: AppGroup(row: row),
                    createdAt: row["created_at"], name: row["name"],
                    hasIcon: row["has_icon"])
            }
        }
    }

    private static let decisionSelect: SQL = """
        SELECT a.id, a.group_id, g.team_id, t.handle AS team, a.nonce_form, a.nonce_required, a.client_id
        FROM apps a JOIN app_groups g ON g.id = a.group_id JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL
        """

    /// The facts about an app that a decision request needs; nil if the app does not exist.
    package func decisionApp(clientID: String) throws(StoreFailure) -> DecisionApp? {
        try database.read { connection throws(StoreFailure) in
            guard
                let row = try connection.row(
                    "\(Self.decisionSelect) WHERE a.client_id = \(clientID)")
            else {
                return nil
            }
            let group: Int64 = try row["group_id"]
            let former: [Int64] = try connection.values(
                "SELECT from_team FROM app_transfers WHERE group_id = \(group) AND moved_at IS NOT NULL"
            )
            return try DecisionApp(row: row, formerTeams: former)
        }
    }

    /// The same facts about all apps, at most `limit`.
    package func decisionApps(limit: Int) throws(StoreFailure) -> [DecisionApp] {
        try database.read { connection throws(StoreFailure) in
            var former: [Int64: [Int64]] = [:]
            for row in try connection.rows(
                "SELECT group_id, from_team FROM app_transfers WHERE moved_at IS NOT NULL")
            {
                former[try row["group_id"], default: []].append(try row["from_team"])
            }
            return try connection.rows("\(Self.decisionSelect) ORDER BY a.id LIMIT \(limit)")
                .map { row throws(StoreFailure) in
                    try DecisionApp(row: row, formerTeams: former[try row["group_id"]] ?? [])
                }
        }
    }

    /// Sets how an app's identity tokens carry the nonce, and whether a nonce is required.
    package func setNonce(
        team id: String, clientID: String, form: AppNonceForm, isRequired: Bool, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            _ = try connection.appGroup(team: connection.team(id), clientID: clientID)
            try connection.run(
                "UPDATE apps SET nonce_form = \(form), nonce_required = \(isRequired) WHERE client_id = \(clientID)"
            )
            try connection.audit(
                change, "app.nonce", "team:\(id)",
                "\(clientID) \(form.rawValue) \(isRequired ? "required" : "optional")")
        }
    }

    /// Whether an app has this `client_id`.
    package func isClient(_ clientID: String) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            // The name of a removed app cannot be registered, but it can be guessed.
            try connection.row(
                """
                SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
                WHERE a.client_id = \(clientID)
                """) != nil
        }
    }

    /// The grants that would end with the app; at most `bound + 1` are counted.
    package func dependents(
        team id: String, clientID: String, upTo bound: Int = BoundedCount.bound
    ) throws(StoreFailure) -> AppDependents {
        try database.read { connection throws(StoreFailure) in
            let group = try connection.appGroup(team: connection.team(id), clientID: clientID)
            guard try connection.appCount(group) == 1 else { return AppDependents(grants: 0) }
            let grants = try connection.count(upTo: bound) { after, limit in
                """
                SELECT COUNT(CASE WHEN state = 'authorized' THEN 1 END) AS count, MAX(id) AS last FROM (
                    SELECT id, state FROM grants WHERE group_id = \(group.number) AND id > \(after) ORDER BY id \(limit)) g
                """
            }
            return AppDependents(grants: grants)
        }
    }

    /// Removes an app. The last app of a group takes the group and its grants with it. A primary
    /// app can be removed only after the apps grouped under it. From then on the name is free and
    /// its consents do not count. Tables with many rows keep them until `removals` deletes them; it
    /// notifies the group's endpoint of each consent.
    package func remove(team id: String, clientID: String, _ change: Change) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let team = try connection.team(id)
            let group = try connection.appGroup(team: team, clientID: clientID)
            let isLast = try connection.appCount(group) == 1
            guard isLast || group.primaryClientID != clientID else {
                throw .refused(
                    .unmet, "\(clientID) is the primary app of others: remove those first")
            }
            let removed = try connection.retireApp(
                clientID, of: team.number, group: group.number, withGroup: isLast, now: change.now)
            try connection.audit(change, "app.remove", "team:\(id)", clientID)
            try RemovalRepository(accounts: accounts).takeAway(
                connection, tracker, team: removed, now: change.now)
        }
    }
}

extension DatabaseConnection {
    /// The group of a team's app, or `notFound`.
    package func appGroup(team: Team, clientID: String) throws(StoreFailure) -> AppGroup {
        let row = try row(
            """
            SELECT g.id AS group_id, g.primary_client_id FROM apps a JOIN app_groups g ON g.id = a.group_id
            WHERE g.team_id = \(team.number) AND a.client_id = \(clientID)
            """)
        guard let row else {
            throw .refused(
                .notFound, "team \(team.id) has no app \(clientID): see postern app list \(team.id)"
            )
        }
        return try AppGroup(row: row)
    }

    /// Moves an app into a separate removed team: alone, or with its group and all consents. Its
    /// names are free afterwards.
    /// - Returns: the removed team.
    fileprivate func retireApp(
        _ clientID: String, of team: Int64, group: Int64, withGroup: Bool, now: Int64
    ) throws(StoreFailure) -> Int64 {
        guard let app: Int64 = try value("SELECT id FROM apps WHERE client_id = \(clientID)") else {
            throw .permanent(.unexpectedData, "an app that was just found is not there")
        }
        // No valid name contains a space.
        let name = "removed app \(app)"
        let removed = try inserted(
            "INSERT INTO teams (handle, name, created_at, removed_at) VALUES (\(name), '', \(now), \(now)) RETURNING id"
        )
        for table in [
            "app_redirects", "client_secrets", "logout_redirects", "policy_app_bindings",
            "attested_apps",
        ] {
            try run("DELETE FROM \(raw: table) WHERE app_id = \(app)")
        }
        try run("UPDATE apps SET backchannel_logout_uri = NULL WHERE id = \(app)")
        guard withGroup else {
            try run(
                """
                INSERT INTO app_groups (team_id, primary_client_id, created_at, removed_from)
                VALUES (\(removed), \(name), \(now), \(removed))
                """)
            try run(
                """
                UPDATE apps SET client_id = \(name), group_id = (SELECT id FROM app_groups WHERE team_id = \(removed))
                WHERE id = \(app)
                """)
            return removed
        }
        try run("UPDATE apps SET client_id = \(name) WHERE id = \(app)")
        // If the group was being transferred, consents that have not moved yet belong to another
        // team.
        try run(
            """
            UPDATE teams SET loses_apps = 1
            WHERE id = \(team) OR id IN (SELECT from_team FROM app_transfers WHERE group_id = \(group) AND state = 'moving')
            """)
        try run("DELETE FROM app_transfers WHERE group_id = \(group) AND state = 'started'")
        try run(
            "UPDATE app_transfers SET state = 'finished' WHERE group_id = \(group) AND state = 'moving'"
        )
        try run(
            "UPDATE app_groups SET team_id = \(removed), primary_client_id = \(name), removed_from = \(team) WHERE id = \(group)"
        )
        return removed
    }

    fileprivate func appCount(_ group: AppGroup) throws(StoreFailure) -> Int64 {
        try value("SELECT COUNT(*) FROM apps WHERE group_id = \(group.number)") ?? 0
    }

    /// The group of a consent when the request names no app: the team's oldest group with apps. For
    /// a team without apps it is the mail-only group, created if it does not exist.
    package func usualGroup(team: Team, _ change: Change) throws(StoreFailure) -> AppGroup {
        if let known = try knownUsualGroup(team: team) { return known }
        return try addGroup(team: team, primary: nil, change)
    }

    fileprivate func addGroup(
        team: Team, primary: String?, _ change: Change
    ) throws(StoreFailure) -> AppGroup {
        let number = try inserted(
            """
            INSERT INTO app_groups (team_id, primary_client_id, created_at) VALUES (\(team.number), \(primary), \(change.now))
            RETURNING id
            """)
        return AppGroup(number: number, primaryClientID: primary)
    }

    /// That group, but only if it already exists.
    package func knownUsualGroup(team: Team) throws(StoreFailure) -> AppGroup? {
        try row(
            """
            SELECT id AS group_id, primary_client_id FROM app_groups WHERE team_id = \(team.number)
            ORDER BY CASE WHEN primary_client_id IS NULL THEN 1 ELSE 0 END, id LIMIT 1
            """
        ).map(AppGroup.init(row:))
    }
}

extension AppGroup {
    /// From the columns `group_id` and `primary_client_id`.
    package init(row: SQLRow) throws(StoreFailure) {
        try self.init(number: row["group_id"], primaryClientID: row["primary_client_id"])
    }
}

extension DecisionApp {
    /// From the columns of `AppRepository.decisionSelect`.
    fileprivate init(row: SQLRow, formerTeams: [Int64]) throws(StoreFailure) {
        try self.init(
            number: row["id"], clientID: row["client_id"], groupNumber: row["group_id"],
            teamNumber: row["team_id"],
            teamID: row["team"], formerTeams: formerTeams, nonceForm: row["nonce_form"],
            isNonceRequired: row["nonce_required"])
    }
}
