// The rows of PolicyRepository, inside a transaction.

import Accounts
import Database

/// One step of a rollback.
struct PolicyRollbackStep {
    /// The change to undo.
    let change: Int64
    /// The policy that the name means before the rollback.
    let current: NamedPolicy
    /// The hash that the name means afterwards; nil if it then means no policy.
    let hashBefore: String?
    /// The name that becomes the default again; nil if the default stays.
    let restoredDefault: String?
    /// The hash of the policy that decides afterwards in place of the current one.
    let hash: String
}

extension DatabaseConnection {
    func policyRevision() throws(StoreFailure) -> Int64 {
        try value("SELECT MAX(id) AS revision FROM policy_changes") ?? 0
    }

    func policyNames() throws(StoreFailure) -> [NamedPolicy] {
        try rows(
            """
            SELECT n.name, p.version, n.hash, n.is_default, n.since FROM policy_names n JOIN policies p ON p.hash = n.hash
            ORDER BY n.name
            """
        ).map { row throws(StoreFailure) in
            try NamedPolicy(
                name: row["name"], version: row["version"], hash: row["hash"],
                isDefault: row["is_default"], since: row["since"])
        }
    }

    func isPolicyBound(_ name: String) throws(StoreFailure) -> Bool {
        try row(
            """
            SELECT name FROM policy_team_bindings WHERE name = \(name)
            UNION ALL SELECT name FROM policy_app_bindings WHERE name = \(name) LIMIT 1
            """) != nil
    }

    func policy(hash: String) throws(StoreFailure) -> StoredPolicy {
        guard let row = try row("SELECT name, version, document FROM policies WHERE hash = \(hash)")
        else {
            throw .refused(
                .notFound,
                "policy \(StoredPolicy.short(hash)) no longer exists: see postern policy list --all"
            )
        }
        return try StoredPolicy(
            name: row["name"], version: row["version"], document: row["document"], hash: hash)
    }

    /// Stores a policy; a damaged copy is replaced.
    func keep(_ policy: StoredPolicy, _ change: Change) throws(StoreFailure) {
        try run(
            """
            INSERT INTO policies (hash, name, version, document, added_at)
            VALUES (\(policy.hash), \(policy.name), \(policy.version), \(policy.document), \(change.now))
            ON CONFLICT (hash) DO UPDATE SET document = excluded.document
            """)
    }

    func set(_ name: String, _ hash: String, isDefault: Bool, _ change: Change) throws(StoreFailure)
    {
        try run(
            """
            INSERT INTO policy_names (name, hash, is_default, since) VALUES (\(name), \(hash), \(isDefault), \(change.now))
            ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, is_default = excluded.is_default, since = excluded.since
            """)
    }

    func recordPolicyChange(
        _ action: PolicyChange.Action, name: String, version: String = "", hash: String? = nil,
        before: String? = nil,
        defaultBefore: String? = nil, detail: String = "", _ change: Change
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO policy_changes (at, actor, action, name, version, hash, hash_before, default_before, detail)
            VALUES (\(change.now), \(change.actor), \(action), \(name), \(version), \(hash), \(before),
                \(defaultBefore), \(detail))
            """)
    }

    func rollbackStep(_ name: String?) throws(StoreFailure) -> PolicyRollbackStep {
        let names = try policyNames()
        guard let current = names.first(where: { name == nil ? $0.isDefault : $0.name == name })
        else {
            throw .refused(
                .notFound,
                name.map { "no policy \($0) is active: see postern policy list" }
                    ?? "no policy is active")
        }
        let row = try row(
            """
            SELECT id, hash_before, default_before FROM policy_changes
            WHERE name = \(current.name) AND action = 'activate' AND undone = 0
            ORDER BY id DESC LIMIT 1
            """)
        let (before, standard): (String?, String?) = try (
            row?["hash_before"], row?["default_before"]
        )
        // Another policy may have become the default since, or the earlier default may be gone.
        let restored = current.isDefault ? names.first { $0.name == standard } : nil
        guard let row, let hash = restored?.hash ?? before else {
            throw .refused(
                .unmet,
                "cannot roll back \(current.name): it has no earlier activation left to undo. postern policy list --all shows earlier policies: activate one with postern policy activate HASH"
            )
        }
        if before == nil, try isPolicyBound(current.name) {
            throw .refused(
                .unmet,
                "there is no earlier \(current.name), and teams or apps are bound to it: unbind them first"
            )
        }
        return PolicyRollbackStep(
            change: try row["id"], current: current, hashBefore: before,
            restoredDefault: restored?.name, hash: hash)
    }

    func appNumber(_ clientID: String) throws(StoreFailure) -> Int64 {
        guard let number: Int64 = try value("SELECT id FROM apps WHERE client_id = \(clientID)")
        else {
            throw .refused(.notFound, "there is no app \(clientID): see postern app list TEAM")
        }
        return number
    }
}
