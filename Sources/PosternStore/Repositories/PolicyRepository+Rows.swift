// The rows behind PolicyRepository, inside a transaction.

/// What a rollback does.
struct PolicyRollbackStep {
    /// The change that is undone.
    let change: Int64
    /// What the name stands for until then.
    let current: NamedPolicy
    /// What it stands for afterwards; nil where it then stands for nothing.
    let hashBefore: String?
    /// The name that becomes the default again; nil where the default stays.
    let restoredDefault: String?
    /// What then decides where the current one did.
    let hash: String
}

extension DatabaseConnection {
    func policyRevision() throws -> Int64 {
        try row("SELECT COALESCE(MAX(id), 0) FROM policy_changes", [])?.integer(0) ?? 0
    }

    func policyNames() throws -> [NamedPolicy] {
        try rows(
            """
            SELECT n.name, p.version, n.hash, n.is_default, n.since FROM policy_names n JOIN policies p ON p.hash = n.hash
            ORDER BY n.name
            """, []
        ).map {
            NamedPolicy(
                name: try $0.text(0), version: try $0.text(1), hash: try $0.text(2), isDefault: try $0.bool(3),
                since: try $0.integer(4))
        }
    }

    func isPolicyBound(_ name: String) throws -> Bool {
        let row = try row(
            """
            SELECT (SELECT COUNT(*) FROM policy_team_bindings WHERE name = ?1) + (SELECT COUNT(*) FROM policy_app_bindings WHERE name = ?1)
            """, [.text(name)])
        return try row?.integer(0) ?? 0 > 0
    }

    func policy(hash: String) throws -> StoredPolicy {
        guard let row = try row("SELECT name, version, document FROM policies WHERE hash = ?1", [.text(hash)]) else {
            throw StoreRefusal(.notFound, "policy \(StoredPolicy.short(hash)) no longer exists: see postern policy list --all")
        }
        return StoredPolicy(name: try row.text(0), version: try row.text(1), document: try row.blob(2), hash: hash)
    }

    /// Puts a policy among those that are kept; a damaged one is fixed.
    func keep(_ policy: StoredPolicy, _ change: Change) throws {
        try run(
            """
            INSERT INTO policies (hash, name, version, document, added_at) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (hash) DO UPDATE SET document = excluded.document
            """,
            [.text(policy.hash), .text(policy.name), .text(policy.version), .blob(policy.document), .integer(change.now)])
    }

    func set(_ name: String, _ hash: String, isDefault: Bool, _ change: Change) throws {
        try run(
            """
            INSERT INTO policy_names (name, hash, is_default, since) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, is_default = excluded.is_default, since = excluded.since
            """, [.text(name), .text(hash), .bool(isDefault), .integer(change.now)])
    }

    func recordPolicyChange(
        _ action: PolicyChange.Action, name: String, version: String = "", hash: String? = nil, before: String? = nil,
        defaultBefore: String? = nil, detail: String = "", _ change: Change
    ) throws {
        try run(
            """
            INSERT INTO policy_changes (at, actor, action, name, version, hash, hash_before, default_before, detail)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """,
            [
                .integer(change.now), .text(change.actor), .text(action.rawValue), .text(name), .text(version), .optional(hash),
                .optional(before), .optional(defaultBefore), .text(detail),
            ])
    }

    func rollbackStep(_ name: String?) throws -> PolicyRollbackStep {
        let names = try policyNames()
        guard let current = names.first(where: { name == nil ? $0.isDefault : $0.name == name }) else {
            throw StoreRefusal(
                .notFound, name.map { "no policy \($0) is active: see postern policy list" } ?? "no policy is active")
        }
        let row = try row(
            """
            SELECT id, hash_before, default_before FROM policy_changes WHERE name = ?1 AND action = 'activate' AND undone = 0
            ORDER BY id DESC LIMIT 1
            """, [.text(current.name)])
        let before = try row?.optionalText(1)
        let standard = try row?.optionalText(2)
        // Someone else may have become the default since, or the earlier default be gone.
        let restored = current.isDefault ? names.first { $0.name == standard } : nil
        guard let row, let hash = restored?.hash ?? before else {
            throw StoreRefusal(.unmet, "cannot roll back: this is the first \(current.name)")
        }
        if before == nil, try isPolicyBound(current.name) {
            throw StoreRefusal(
                .unmet, "there is no earlier \(current.name), and teams or apps are bound to it: unbind them first")
        }
        return PolicyRollbackStep(
            change: try row.integer(0), current: current, hashBefore: before, restoredDefault: restored?.name, hash: hash)
    }

    func appNumber(_ clientID: String) throws -> Int64 {
        guard let row = try row("SELECT id FROM apps WHERE client_id = ?1", [.text(clientID)]) else {
            throw StoreRefusal(.notFound, "there is no app \(clientID): see postern app list TEAM")
        }
        return try row.integer(0)
    }
}
