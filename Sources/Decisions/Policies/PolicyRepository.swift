// Risk policies: the stored ones, the arrangement of teams and apps, and the history. The caller
// checks policies first.

import Accounts
import Database

/// Stores policies and returns which of them decide.
package struct PolicyRepository: Sendable {
    /// Whether an activated policy serves all teams and apps that are bound to no other policy.
    package enum Reach: Sendable {
        /// Yes, unless a team or app is bound to its name.
        case automatic
        case everyone
        /// Only for those bound to its name. If it is the default, it stays the default.
        case bound
        /// For no decisions: it gives users their status.
        case status
    }

    let database: any Database

    package init(database: any Database) { self.database = database }

    /// Activates a policy under its name. The very first policy serves all teams and apps, with any
    /// `reach`.
    package func activate(
        _ policy: StoredPolicy, reach: Reach = .automatic, _ change: Change
    ) throws(StoreFailure) -> PolicyActivation {
        let name = try Identifier.checked(policy.name, "a policy's name")
        return try database.write(.durable) { connection throws(StoreFailure) in
            let before = try connection.policyNames()
            let own = before.first { $0.name == name }
            let standard = before.first(where: \.isDefault)
            let becomesDefault: Bool
            switch reach {
            case .automatic:
                becomesDefault = own?.isDefault == true ? true : try !connection.isPolicyBound(name)
            case .everyone: becomesDefault = true
            case .bound: becomesDefault = own?.isDefault == true
            case .status: becomesDefault = false
            }
            let isDefault = becomesDefault || (standard == nil && reach != .status)
            if let own, own.hash == policy.hash, own.isDefault == isDefault {
                try connection.keep(policy, change)
                return PolicyActivation(
                    policy: own, replaced: own.hash, replacedDefault: nil, isChange: false)
            }
            try connection.keep(policy, change)
            let replacedDefault = isDefault && standard?.name != name ? standard?.name : nil
            if replacedDefault != nil {
                try connection.run("UPDATE policy_names SET is_default = 0 WHERE is_default = 1")
            }
            try connection.set(name, policy.hash, isDefault: isDefault, change)
            try connection.recordPolicyChange(
                .activate, name: name, version: policy.version, hash: policy.hash,
                before: own?.hash,
                defaultBefore: replacedDefault,
                change)
            try connection.audit(
                change, "policy.activate", "policy:\(name)", StoredPolicy.short(policy.hash))
            let now = NamedPolicy(
                name: name, version: policy.version, hash: policy.hash, isDefault: isDefault,
                since: change.now)
            return PolicyActivation(
                policy: now, replaced: own?.hash, replacedDefault: replacedDefault, isChange: true)
        }
    }

    /// The policy that a rollback of a name (nil: the default) would restore. Throws `unmet` if
    /// there is no earlier one.
    package func rollbackTarget(_ name: String?) throws(StoreFailure) -> StoredPolicy {
        try database.read { connection throws(StoreFailure) in
            let step = try connection.rollbackStep(name)
            return try connection.policy(hash: step.hash)
        }
    }

    /// Undoes the last activation of a name (nil: the default). Each further call goes back one
    /// step more.
    package func rollback(
        _ name: String?, _ change: Change
    ) throws(StoreFailure) -> PolicyActivation {
        try database.write(.durable) { connection throws(StoreFailure) in
            let step = try connection.rollbackStep(name)
            if step.restoredDefault != nil {
                try connection.run("UPDATE policy_names SET is_default = 0 WHERE is_default = 1")
            }
            if let hash = step.hashBefore {
                let isDefault = step.current.isDefault && step.restoredDefault == nil
                try connection.set(step.current.name, hash, isDefault: isDefault, change)
            } else {
                try connection.run("DELETE FROM policy_names WHERE name = \(step.current.name)")
            }
            if let restored = step.restoredDefault {
                try connection.run(
                    "UPDATE policy_names SET is_default = 1, since = \(change.now) WHERE name = \(restored)"
                )
            }
            let target = try connection.policy(hash: step.hash)
            try connection.run("UPDATE policy_changes SET undone = 1 WHERE id = \(step.change)")
            try connection.recordPolicyChange(
                .rollback, name: target.name, version: target.version, hash: target.hash,
                before: step.current.hash,
                defaultBefore: step.restoredDefault == nil ? nil : step.current.name, change)
            try connection.audit(
                change, "policy.rollback", "policy:\(target.name)", StoredPolicy.short(target.hash))
            let isDefault = try connection.policyNames().contains {
                $0.name == target.name && $0.isDefault
            }
            let now = NamedPolicy(
                name: target.name, version: target.version, hash: target.hash, isDefault: isDefault,
                since: change.now)
            return PolicyActivation(
                policy: now, replaced: step.current.hash,
                replacedDefault: step.restoredDefault == nil ? nil : step.current.name,
                isChange: true)
        }
    }

    /// Records that a candidate was refused, so that `policy list` can show it. `reason` is
    /// cut to 2,000 characters.
    package func recordRefusal(
        name: String, version: String, reason: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.recordPolicyChange(
                .refuse, name: String(name.prefix(128)), version: String(version.prefix(64)),
                detail: String(reason.prefix(2_000)),
                change)
            try connection.audit(change, "policy.refuse", "policy", "candidate not accepted")
        }
    }

    // MARK: Bindings

    /// The team or app with this identifier. Throws `notFound`, or `unmet` if both a team and an
    /// app have it.
    package func target(_ text: String) throws(StoreFailure) -> PolicyBindingTarget {
        try database.read { connection throws(StoreFailure) in
            let isTeam = try connection.row("SELECT id FROM teams WHERE handle = \(text)") != nil
            let isApp = try connection.row("SELECT id FROM apps WHERE client_id = \(text)") != nil
            switch (isTeam, isApp) {
            case (true, false): return .team(text)
            case (false, true): return .app(text)
            case (true, true):
                throw .refused(.unmet, "\(text) is a team and an app: choose with --team or --app")
            case (false, false):
                throw .refused(
                    .notFound,
                    "there is no team and no app \(text): see postern team list, postern app list TEAM"
                )
            }
        }
    }

    /// Binds a team or an app to the policy of this name; an app's own binding has
    /// priority over its team's.
    package func bind(
        _ target: PolicyBindingTarget, to name: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard try connection.row("SELECT name FROM policy_names WHERE name = \(name)") != nil
            else {
                throw .refused(.notFound, "no policy \(name) is active: see postern policy list")
            }
            switch target {
            case .team(let id):
                try connection.run(
                    """
                    INSERT INTO policy_team_bindings (team_id, name) VALUES (\(try connection.team(id).number), \(name))
                    ON CONFLICT (team_id) DO UPDATE SET name = excluded.name
                    """)
            case .app(let clientID):
                try connection.run(
                    """
                    INSERT INTO policy_app_bindings (app_id, name) VALUES (\(try connection.appNumber(clientID)), \(name))
                    ON CONFLICT (app_id) DO UPDATE SET name = excluded.name
                    """)
            }
            try connection.recordPolicyChange(.bind, name: name, detail: target.description, change)
            try connection.audit(change, "policy.bind", "policy:\(name)", target.description)
        }
    }

    /// Removes the binding of a team or an app. Throws `notFound` if there is none.
    /// - Returns: the policy that decides now: for an app that of its team, otherwise the default;
    ///   nil if none is active.
    @discardableResult
    package func unbind(
        _ target: PolicyBindingTarget, _ change: Change
    ) throws(StoreFailure) -> String? {
        try database.write(.durable) { connection throws(StoreFailure) in
            let standard = try connection.policyNames().first(where: \.isDefault)?.name
            var after: String?
            let removed: String?
            switch target {
            case .team(let id):
                removed = try connection.value(
                    "DELETE FROM policy_team_bindings WHERE team_id = \(try connection.team(id).number) RETURNING name"
                )
            case .app(let clientID):
                removed = try connection.value(
                    "DELETE FROM policy_app_bindings WHERE app_id = \(try connection.appNumber(clientID)) RETURNING name"
                )
                after = try connection.value(
                    """
                    SELECT b.name FROM apps a JOIN app_groups g ON g.id = a.group_id
                    JOIN policy_team_bindings b ON b.team_id = g.team_id WHERE a.client_id = \(clientID)
                    """)
            }
            guard let removed else {
                throw .refused(.notFound, "\(target) has no policy of its own")
            }
            try connection.recordPolicyChange(
                .unbind, name: removed, detail: target.description, change)
            try connection.audit(change, "policy.unbind", "policy:\(removed)", target.description)
            return after ?? standard
        }
    }

    // MARK: Reading

    /// Increases with every change. Cheap enough to be read every second.
    package func revision() throws(StoreFailure) -> Int64 {
        try database.read { connection throws(StoreFailure) in try connection.policyRevision() }
    }

    /// The arrangement of policies, teams and apps now.
    package func arrangement() throws(StoreFailure) -> PolicyArrangement {
        try database.read { connection throws(StoreFailure) in
            let teams = try connection.rows(
                "SELECT t.handle, t.id, b.name FROM policy_team_bindings b JOIN teams t ON t.id = b.team_id ORDER BY t.handle"
            ).map { row throws(StoreFailure) in
                try PolicyBinding(
                    target: .team(row["handle"]), teamNumber: row["id"], name: row["name"])
            }
            let apps = try connection.rows(
                """
                SELECT a.client_id, g.team_id, b.name FROM policy_app_bindings b
                JOIN apps a ON a.id = b.app_id JOIN app_groups g ON g.id = a.group_id ORDER BY a.client_id
                """
            ).map { row throws(StoreFailure) in
                try PolicyBinding(
                    target: .app(row["client_id"]), teamNumber: row["team_id"], name: row["name"])
            }
            return PolicyArrangement(
                revision: try connection.policyRevision(), policies: try connection.policyNames(),
                bindings: teams + apps)
        }
    }

    /// A policy by its hash. Throws `notFound`.
    package func policy(hash: String) throws(StoreFailure) -> StoredPolicy {
        try database.read { connection throws(StoreFailure) in try connection.policy(hash: hash) }
    }

    /// All stored policies, by name, the newest first.
    package func policies() throws(StoreFailure) -> [PolicySummary] {
        try database.rows(
            "SELECT hash, name, version, added_at FROM policies ORDER BY name, added_at DESC, hash"
        ).map {
            row throws(StoreFailure) in
            try PolicySummary(
                hash: row["hash"], name: row["name"], version: row["version"],
                addedAt: row["added_at"])
        }
    }

    /// Resolves a text to a hash. The text is a name (for its current policy), a hash, or at least
    /// the first six digits of one. Throws `notFound`, or `unmet` if several match.
    package func resolve(_ text: String) throws(StoreFailure) -> String {
        if let named = try arrangement().policies.first(where: { $0.name == text }) {
            return named.hash
        }
        let digits = text.hasPrefix("sha256:") ? text : "sha256:" + text
        let found =
            digits.utf8.count >= 13
            ? try policies().filter { $0.hash.hasPrefix(digits.lowercased()) } : []
        guard let first = found.first else {
            throw .refused(
                .notFound,
                "there is no policy \(text): give a name, or at least six digits of its hash; see postern policy list --all"
            )
        }
        guard found.count == 1 else {
            throw .refused(
                .unmet,
                "several policies begin with \(text): \(found.map { StoredPolicy.short($0.hash) }.joined(separator: ", "))"
            )
        }
        return first.hash
    }

    /// The newest changes first, at most `limit`.
    package func changes(limit: Int = 50) throws(StoreFailure) -> [PolicyChange] {
        try database.rows(
            """
            SELECT id, at, actor, action, name, version, hash, hash_before, detail FROM policy_changes ORDER BY id DESC
            LIMIT \(limit)
            """
        ).map(PolicyChange.init(row:))
    }

    /// Hashes that a name meant before, the latest first, each once: for a host on which the
    /// present policy does not load.
    package func earlier(_ name: String, limit: Int = 10) throws(StoreFailure) -> [String] {
        let found: [String] = try database.values(
            """
            SELECT hash_before FROM policy_changes
            WHERE name = \(name) AND action IN ('activate', 'rollback') AND hash_before IS NOT NULL
            ORDER BY id DESC LIMIT \(limit)
            """)
        var hashes: [String] = []
        for hash in found where !hashes.contains(hash) { hashes.append(hash) }
        return hashes
    }

    // MARK: Deleting

    /// Seconds after a host's last report during which it may still decide by the same policy, if
    /// it cannot reach the store.
    private static let hostDelay: Int64 = 30 * 86_400

    /// Deletes policies added before a time that are no longer needed, and the reports of hosts
    /// silent since that time. A policy is needed if a name means it, a rollback can restore it, or
    /// a host decides by it. It is also needed if the log goes back to a time when a name or a host
    /// used it. A search for its hash in the log would read the whole log.
    /// - Returns: the number of policies.
    package func deleteUnneeded(addedBefore time: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM policy_hosts WHERE at < \(time)")
            let oldest = [
                try connection.value(
                    "SELECT evaluated_at FROM decisions ORDER BY evaluated_at LIMIT 1", Int64.self),
                try connection.value(
                    "SELECT decided_at FROM status_decisions ORDER BY decided_at LIMIT 1",
                    Int64.self),
            ].compactMap { $0 }.min()
            let start = (oldest ?? .max) - Self.hostDelay
            return try connection.run(
                """
                DELETE FROM policies WHERE added_at < \(time) AND served_at < \(start)
                AND hash NOT IN (SELECT hash FROM policy_names)
                AND hash NOT IN (SELECT serving FROM policy_hosts WHERE serving IS NOT NULL)
                AND hash NOT IN (
                    SELECT hash_before FROM policy_changes WHERE hash_before IS NOT NULL AND id IN (
                        SELECT MAX(id) FROM policy_changes WHERE action = 'activate' AND undone = 0 GROUP BY name))
                AND NOT EXISTS (SELECT 1 FROM policy_changes c WHERE c.hash_before = policies.hash AND c.at >= \(start))
                """)
        }
    }

    // MARK: Hosts

    /// Replaces a host's report about its policies.
    package func report(host: String, _ states: [PolicyHostState]) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM policy_hosts WHERE host = \(host)")
            for state in states {
                try connection.run(
                    "UPDATE policies SET served_at = \(state.at) WHERE hash = \(state.serving) AND served_at < \(state.at)"
                )
                try connection.run(
                    """
                    INSERT INTO policy_hosts (host, name, wanted, serving, reason, at)
                    VALUES (\(host), \(state.name), \(state.wanted), \(state.serving),
                        \(state.reason.map { String($0.prefix(2_000)) }), \(state.at))
                    """)
            }
        }
    }

    /// The last reports of the hosts, by host and name.
    package func hosts() throws(StoreFailure) -> [PolicyHostState] {
        try database.rows(
            "SELECT host, name, wanted, serving, reason, at FROM policy_hosts ORDER BY host, name"
        ).map {
            row throws(StoreFailure) in
            try PolicyHostState(
                host: row["host"], name: row["name"], wanted: row["wanted"],
                serving: row["serving"], reason: row["reason"],
                at: row["at"])
        }
    }
}

extension PolicyChange {
    /// From columns id, at, actor, action, name, version, hash, hash_before, detail.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["id"], at: row["at"], actor: row["actor"], action: row["action"],
            name: row["name"],
            version: row["version"], hash: row["hash"], hashBefore: row["hash_before"],
            detail: row["detail"])
    }
}
