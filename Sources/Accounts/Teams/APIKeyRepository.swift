// API keys.

import Database

/// Issues, lists, rotates and revokes API keys.
package struct APIKeyRepository: Sendable {
    let database: any Database

    /// The facts about a key that a running service needs.
    package struct Credential: Sendable {
        package let key: APIKey
        package let hash: [UInt8]
    }

    /// Changes with every change of keys: a new key has a higher revision, and keys disappear only
    /// with their team.
    package struct Revision: Sendable, Hashable {
        let highest: Int64
        let count: Int64
    }

    /// Issues a key to a team, or to the operator if `team` is nil. The text is not stored
    /// and cannot be shown again.
    /// - Parameter show: gets the key before it is valid. If it throws, the key is not issued. It
    ///   is called again if the transaction is repeated because of a concurrent change.
    package func issue(
        team: String?, scopes: Set<Scope>, expiresAt: Int64?, note: String, _ change: Change,
        show: (APIKey, APIKeyText) throws(StoreFailure) -> Void = { _, _ in }
    ) throws(StoreFailure) -> (key: APIKey, text: APIKeyText) {
        let owner: Scope.Owner = team == nil ? .operator : .team
        let available = Scope.available(to: owner)
        guard !scopes.isEmpty else {
            throw .refused(
                .invalid,
                "a key needs at least one scope of \(available.map(\.rawValue).joined(separator: ", "))"
            )
        }
        for scope in scopes where !available.contains(scope) {
            throw .refused(
                .invalid,
                "\(scope.rawValue) is not a scope of \(owner == .team ? "a team's" : "an operator's") key: it can have "
                    + available.map(\.rawValue).joined(separator: ", "))
        }
        if let expiresAt, expiresAt <= change.now {
            throw .refused(.invalid, "the key would already be expired")
        }
        let note = note.isEmpty ? "" : try Identifier.checkedName(note)
        let text = try APIKeyText.random()
        return try database.write(.durable) { connection throws(StoreFailure) in
            let team = try team.map { id throws(StoreFailure) in try connection.team(id) }
            try insert(
                connection, text, team: team?.number, scopes: scopes, expiresAt: expiresAt,
                note: note, change)
            try connection.audit(
                change, "api-key.issue", "key:\(text.id)",
                "\(team.map { "team:\($0.id)" } ?? "operator") \(Self.text(scopes))")
            let key = try key(connection, text.id)
            try show(key, text)
            return (key, text)
        }
    }

    /// Issues a key with the same owner and scopes. The old one ends after `overlap` seconds, or at
    /// its earlier expiry. The keys that the old one issued end with it: if it was stolen, the
    /// thief may have issued some.
    /// - Parameter show: as for `issue`.
    package func rotate(
        _ id: String, overlap: Int64, expiresAt: Int64?, _ change: Change,
        show: (APIKey, APIKeyText) throws(StoreFailure) -> Void = { _, _ in }
    ) throws(StoreFailure) -> (key: APIKey, text: APIKeyText, old: APIKey) {
        let text = try APIKeyText.random()
        return try database.write(.durable) { connection throws(StoreFailure) in
            let old = try key(connection, id)
            guard old.state(now: change.now) == .active else {
                throw .refused(
                    .unmet, "key \(id) is \(old.state(now: change.now).rawValue): issue a new one")
            }
            if let next = old.rotatedTo {
                throw .refused(.unmet, "key \(id) was already rotated to \(next): rotate that one")
            }
            if let expiresAt, expiresAt <= change.now {
                throw .refused(.invalid, "the key would already be expired")
            }
            try insert(
                connection, text, team: old.team?.number, scopes: old.scopes, expiresAt: expiresAt,
                note: old.note,
                issuedBy: old.issuedBy, change)
            let end = min(
                old.expiresAt ?? .max,
                change.now.addingReportingOverflow(max(0, overlap)).partialValue)
            try connection.run(
                """
                UPDATE api_keys SET expires_at = \(end), rotated_to = \(text.id), revision = \(try nextRevision(connection))
                WHERE handle = \(id)
                """)
            try connection.run(
                """
                UPDATE api_keys SET expires_at = \(end), revision = \(try nextRevision(connection))
                WHERE issued_by = \(id) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > \(end))
                """)
            try connection.audit(change, "api-key.rotate", "key:\(id)", "to key:\(text.id)")
            let new = try key(connection, text.id)
            try show(new, text)
            return (new, text, try key(connection, id))
        }
    }

    /// Revokes a key at once, with the keys that it issued. For a revoked key it changes nothing.
    package func revoke(_ id: String, _ change: Change) throws(StoreFailure) -> APIKey {
        try database.write(.durable) { connection throws(StoreFailure) in
            let key = try key(connection, id)
            guard key.revokedAt == nil else { return key }
            try connection.run(
                """
                UPDATE api_keys SET revoked_at = \(change.now), revision = \(try nextRevision(connection))
                WHERE revoked_at IS NULL AND (handle = \(id) OR issued_by = \(id))
                """)
            try connection.audit(change, "api-key.revoke", "key:\(id)")
            return try self.key(connection, id)
        }
    }

    // MARK: By a team's own key

    /// Keys that the keys of one team may issue, not counting revoked and expired ones.
    package static let maximumIssued = 50

    /// Issues a key with some of the scopes of a team's key, never with `keys:write`: otherwise a
    /// leaked key could leave behind keys that are not traceable to it. The new key ends with that
    /// key at the latest.
    /// - Parameter parent: the handle of the requesting key; refused (`unmet`) if it was
    ///   revoked or has expired.
    package func issueLesser(
        by parent: String, scopes: Set<Scope>, expiresAt: Int64?, note: String, _ change: Change
    ) throws(StoreFailure) -> (key: APIKey, text: APIKeyText) {
        guard !scopes.isEmpty else { throw .refused(.invalid, "a key needs at least one scope") }
        if let expiresAt, expiresAt <= change.now {
            throw .refused(.invalid, "the key would already be expired")
        }
        let note = note.isEmpty ? "" : try Identifier.checkedName(note)
        let text = try APIKeyText.random()
        return try database.write(.durable) { connection throws(StoreFailure) in
            let own = try key(connection, parent)
            guard let team = own.team, own.state(now: change.now) == .active else {
                throw .refused(.unmet, "the requesting key was revoked or has expired")
            }
            for scope in scopes
            where !own.scopes.contains(where: { $0.grants(scope) }) || scope == .keysWrite {
                throw .refused(
                    .invalid,
                    scope == .keysWrite
                        ? "a key issued by another key cannot have \(scope.rawValue)"
                        : "the requesting key does not have the scope \(scope.rawValue.prefix(64))")
            }
            let issued: Int? = try connection.value(
                """
                SELECT COUNT(*) FROM api_keys WHERE team_id = \(team.number) AND issued_by IS NOT NULL AND revoked_at IS NULL
                    AND (expires_at IS NULL OR expires_at > \(change.now))
                """)
            guard issued ?? 0 < Self.maximumIssued else {
                throw .refused(
                    .limit,
                    "the team's keys have issued \(Self.maximumIssued) keys, which is the maximum: revoke one"
                )
            }
            let end = own.expiresAt.map { min($0, expiresAt ?? $0) } ?? expiresAt
            try insert(
                connection, text, team: team.number, scopes: scopes, expiresAt: end, note: note,
                issuedBy: parent, change)
            try connection.audit(
                change, "api-key.issue", "key:\(text.id)", "team:\(team.id) \(Self.text(scopes))")
            return (try key(connection, text.id), text)
        }
    }

    /// Revokes a key that a team's key issued, or that key itself; every other key is `notFound`.
    package func revokeLesser(
        _ id: String, by parent: String, _ change: Change
    ) throws(StoreFailure) {
        let own: Int64? = try database.value(
            "SELECT id FROM api_keys WHERE handle = \(id) AND (handle = \(parent) OR issued_by = \(parent))"
        )
        guard own != nil else { throw .refused(.notFound, "this key issued no such key") }
        _ = try revoke(id, change)
    }

    /// All keys, or those of one team, the oldest first.
    package func keys(team: String? = nil) throws(StoreFailure) -> [APIKey] {
        try database.read { connection throws(StoreFailure) in
            guard let team else {
                return try connection.rows("\(Self.select) ORDER BY k.id").map(APIKey.init(row:))
            }
            let number = try connection.team(team).number
            return try connection.rows("\(Self.select) WHERE k.team_id = \(number) ORDER BY k.id")
                .map(
                    APIKey.init(row:))
        }
    }

    /// The key, or `notFound`.
    package func key(_ id: String) throws(StoreFailure) -> APIKey {
        try database.read { connection throws(StoreFailure) in try key(connection, id) }
    }

    /// Cheap enough to read every second.
    package func revision() throws(StoreFailure) -> Revision { try database.read(revision) }

    /// Every key that is not revoked, and the revision of this list.
    package func credentials() throws(StoreFailure) -> (
        revision: Revision, credentials: [Credential]
    ) {
        try database.read { connection throws(StoreFailure) in
            let rows = try connection.rows("\(Self.select) WHERE k.revoked_at IS NULL")
            return try (
                revision(connection),
                rows.map { row throws(StoreFailure) in
                    try Credential(key: APIKey(row: row), hash: row["secret_hash"])
                }
            )
        }
    }

    /// Records the day on which keys were last used.
    package func used(_ ids: [String], day: Int64) throws(StoreFailure) {
        guard !ids.isEmpty else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            for id in ids {
                try connection.run(
                    """
                    UPDATE api_keys SET last_used_day = \(day)
                    WHERE handle = \(id) AND (last_used_day IS NULL OR last_used_day < \(day))
                    """)
            }
        }
    }

    private static let select: SQL = """
        SELECT k.handle, t.handle AS team, k.team_id, k.scopes, k.note, k.created_at, k.expires_at, k.revoked_at, k.last_used_day,
            k.rotated_to, k.issued_by, k.secret_hash
        FROM api_keys k LEFT JOIN teams t ON t.id = k.team_id
        """

    private func insert(
        _ connection: any DatabaseConnection, _ text: APIKeyText, team: Int64?, scopes: Set<Scope>,
        expiresAt: Int64?,
        note: String, issuedBy: String? = nil, _ change: Change
    ) throws(StoreFailure) {
        try connection.run(
            """
            INSERT INTO api_keys (handle, team_id, scopes, note, secret_hash, created_at, expires_at, issued_by, revision)
            VALUES (\(text.id), \(team), \(Self.text(scopes)), \(note), \(text.hash), \(change.now), \(expiresAt), \(issuedBy),
                \(try nextRevision(connection)))
            """)
    }

    private func key(
        _ connection: any DatabaseConnection, _ id: String
    ) throws(StoreFailure) -> APIKey {
        guard let row = try connection.row("\(Self.select) WHERE k.handle = \(id)") else {
            throw .refused(.notFound, "there is no such key: see postern api-key list")
        }
        return try APIKey(row: row)
    }

    private func revision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Revision {
        let row = try connection.row(
            "SELECT COALESCE(MAX(revision), 0) AS highest, COUNT(*) AS keys FROM api_keys")
        return try Revision(highest: row?["highest"] ?? 0, count: row?["keys"] ?? 0)
    }

    private func nextRevision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        try revision(connection).highest + 1
    }

    private static func text(_ scopes: Set<Scope>) -> String {
        scopes.map(\.rawValue).sorted().joined(separator: " ")
    }
}

extension APIKey {
    /// From the columns of `APIKeyRepository.select`.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        let scopes: String = try row["scopes"]
        let team: String? = try row["team"]
        try self.init(
            id: row["handle"],
            team: team.map { team throws(StoreFailure) in
                TeamName(id: team, number: try row["team_id"])
            },
            scopes: Set(scopes.split(separator: " ").map { Scope(rawValue: String($0)) }),
            note: row["note"],
            createdAt: row["created_at"], expiresAt: row["expires_at"],
            revokedAt: row["revoked_at"],
            lastUsedDay: row["last_used_day"], rotatedTo: row["rotated_to"],
            issuedBy: row["issued_by"])
    }
}
