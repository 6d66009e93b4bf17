// The provider's keys: sealed in the database, so that all hosts of an installation
// sign with the same keys.

import Accounts
import Database

/// Adds, rotates and retires the keys that sign identity tokens and events.
package struct IdentityKeyRepository: Sendable {
    /// Seconds for which a key is published before it may sign: receivers usually cache a
    /// key set for a day at most.
    package static let publicationBeforeUse: Int64 = 86_400
    /// Seconds for which a key stays published after its last signature: an event is accepted up to
    /// 7 days after it was signed; one more day allows for clocks and caches.
    package static let publicationAfterUse: Int64 = 8 * 86_400

    let database: any Database
    let sealer: Sealer

    /// All keys, the newest first.
    package func keys() throws(StoreFailure) -> [IdentityKey] {
        try database.rows("\(Self.select) ORDER BY id DESC").map(IdentityKey.init(row:))
    }

    /// Grows with every change; 0 if no key exists. Cheap enough to read every second.
    package func revision() throws(StoreFailure) -> Int64 { try database.read(revision) }

    /// The active key for ES256 and its private part (PEM), the published keys (active, next,
    /// retiring), and the revision of both. The active one is nil before the first start.
    package func signing() throws(StoreFailure) -> (
        revision: Int64, active: (key: IdentityKey, pem: String)?, published: [IdentityKey]
    ) {
        let (revision, active, published) = try signingKeys()
        return (revision, active[.es256], published)
    }

    /// The same with the active keys of all algorithms; there may be none for RS256,
    /// which few clients ask for.
    package func signingKeys() throws(StoreFailure) -> (
        revision: Int64, active: [SignatureAlgorithm: (key: IdentityKey, pem: String)],
        published: [IdentityKey]
    ) {
        try database.read { connection throws(StoreFailure) in
            let published = try connection.rows(
                """
                \(Self.select) WHERE state <> 'retired'
                ORDER BY algorithm, CASE state WHEN 'active' THEN 0 WHEN 'next' THEN 1 ELSE 2 END, id DESC
                """
            ).map(IdentityKey.init(row:))
            var active: [SignatureAlgorithm: (key: IdentityKey, pem: String)] = [:]
            for key in published where key.state == .active {
                active[key.algorithm] = (key, try pem(connection, key))
            }
            return (try revision(connection), active, published)
        }
    }

    /// Adds the first two keys of an algorithm. One signs at once, since no verifier knows an older
    /// one. Does nothing if the algorithm has an active key. If several hosts start together, one
    /// of them adds the keys.
    /// - Returns: whether the keys were added.
    package func install(
        active: NewIdentityKey, next: NewIdentityKey, _ change: Change
    ) throws(StoreFailure) -> Bool {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard try current(connection, .active, active.algorithm) == nil else { return false }
            if let old = try current(connection, .next, active.algorithm) {
                try end(connection, old, change)
            }
            try insert(connection, active, .active, change)
            try insert(connection, next, .next, change)
            try connection.audit(
                change, "keys.signing.generate", "signing-key:\(active.keyID)", "next \(next.keyID)"
            )
            return true
        }
    }

    /// The algorithms for which keys exist.
    package func algorithms() throws(StoreFailure) -> [SignatureAlgorithm] {
        try database.read { connection throws(StoreFailure) in
            var found: [SignatureAlgorithm] = []
            for algorithm in SignatureAlgorithm.allCases
            where try current(connection, .active, algorithm) != nil {
                found.append(algorithm)
            }
            return found
        }
    }

    /// The next key of the replacement's algorithm becomes active, the active one starts to retire,
    /// and `replacement` is published as the next. Refused if the next key was published less than
    /// `publicationBeforeUse` ago, unless `early`.
    package func rotate(
        replacement: NewIdentityKey, early: Bool, _ change: Change
    ) throws(StoreFailure) -> (active: IdentityKey, replaced: IdentityKey, next: IdentityKey) {
        let rotated = try rotate(replacements: [replacement], early: early, change)
        guard let first = rotated.first else {
            throw .permanent(.unexpectedData, "no key was rotated")
        }
        return first
    }

    /// The same for several algorithms at once: for all of them, or none.
    package func rotate(
        replacements: [NewIdentityKey], early: Bool, _ change: Change
    ) throws(StoreFailure) -> [(active: IdentityKey, replaced: IdentityKey, next: IdentityKey)] {
        try database.write(.durable) { connection throws(StoreFailure) in
            try replacements.map { replacement throws(StoreFailure) in
                try rotate(connection, replacement, early: early, change)
            }
        }
    }

    private func rotate(
        _ connection: any DatabaseConnection, _ replacement: NewIdentityKey, early: Bool,
        _ change: Change
    ) throws(StoreFailure) -> (active: IdentityKey, replaced: IdentityKey, next: IdentityKey) {
        guard let old = try current(connection, .active, replacement.algorithm),
            let new = try current(connection, .next, replacement.algorithm)
        else {
            throw .refused(
                .unmet, "there are no keys yet: postern keys signing generate generates them")
        }
        guard early || change.now - new.createdAt >= Self.publicationBeforeUse else {
            throw .refused(
                .unmet,
                "the next key has been published for less than \(Self.publicationBeforeUse / 3600) hours, and receivers may not "
                    + "know it yet: try again later, or repeat with --early")
        }
        try connection.run(
            """
            UPDATE identity_keys SET state = 'retiring', deactivated_at = \(change.now),
                revision = \(try nextRevision(connection)) WHERE id = \(old.number)
            """)
        try connection.run(
            """
            UPDATE identity_keys SET state = 'active', activated_at = \(change.now),
                revision = \(try nextRevision(connection)) WHERE id = \(new.number)
            """)
        let next = try insert(connection, replacement, .next, change)
        try connection.audit(
            change, "keys.signing.rotate", "signing-key:\(new.keyID)",
            "replaces \(old.keyID), next \(replacement.keyID)")
        return (try key(connection, new.number), try key(connection, old.number), next)
    }

    /// Ends a replaced key early: everything it signed becomes invalid. Refused for the
    /// active and the next key.
    package func retire(_ keyID: String, _ change: Change) throws(StoreFailure) -> IdentityKey {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard let row = try connection.row("\(Self.select) WHERE kid = \(keyID)") else {
                throw .refused(.notFound, "there is no key \(keyID): see postern keys signing list")
            }
            let key = try IdentityKey(row: row)
            switch key.state {
            case .retired: return key
            case .retiring: break
            case .active, .next:
                throw .refused(.unmet, "\(keyID) is the \(key.state.rawValue) key: rotate first")
            }
            try end(connection, key, change)
            try connection.audit(
                change, "keys.signing.retire", "signing-key:\(keyID)", "was retiring")
            return try self.key(connection, key.number)
        }
    }

    /// Ends replaced keys whose signatures can no longer be in use. For housekeeping.
    /// - Returns: how many keys were ended.
    @discardableResult
    package func retireExpired(_ change: Change) throws(StoreFailure) -> Int {
        let bound = change.now - Self.publicationAfterUse
        let query: SQL = "\(Self.select) WHERE state = 'retiring' AND deactivated_at <= \(bound)"
        guard try database.row(query) != nil else { return 0 }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let keys = try connection.rows(query).map(IdentityKey.init(row:))
            for key in keys {
                try end(connection, key, change)
                try connection.audit(
                    change, "keys.signing.retire", "signing-key:\(key.keyID)", "its time was over")
            }
            return keys.count
        }
    }

    private func end(
        _ connection: any DatabaseConnection, _ key: IdentityKey, _ change: Change
    ) throws(StoreFailure) {
        try connection.run(
            """
            UPDATE identity_keys SET state = 'retired', private_key = NULL, private_sealed = NULL, retired_at = \(change.now),
                revision = \(try nextRevision(connection))
            WHERE id = \(key.number)
            """)
    }

    @discardableResult
    private func insert(
        _ connection: any DatabaseConnection, _ new: NewIdentityKey, _ state: IdentityKey.State,
        _ change: Change
    ) throws(StoreFailure) -> IdentityKey {
        let sealed = try sealer.seal(new.pem, .identityKey(new.keyID), connection)
        let number = try connection.inserted(
            """
            INSERT INTO identity_keys
                (kid, algorithm, public_jwk, private_key, private_sealed, state, created_at, activated_at, revision)
            VALUES (\(new.keyID), \(new.algorithm), \(new.publicJWK), \(sealed.key), \(sealed.octets), \(state),
                \(change.now), \(state == .active ? change.now : nil), \(try nextRevision(connection))) RETURNING id
            """)
        return try key(connection, number)
    }

    private func pem(
        _ connection: any DatabaseConnection, _ key: IdentityKey
    ) throws(StoreFailure) -> String {
        let row = try connection.row(
            "SELECT private_key, private_sealed FROM identity_keys WHERE id = \(key.number)")
        guard
            let sealed = try row.flatMap({ row throws(StoreFailure) in
                try SealedValue(row: row, "private")
            })
        else {
            throw .permanent(.unexpectedData, "the active key has no private part")
        }
        return try sealer.openText(sealed, .identityKey(key.keyID))
    }

    private static let select: SQL =
        "SELECT id, kid, algorithm, public_jwk, state, created_at, activated_at, deactivated_at, retired_at FROM identity_keys"

    private func key(
        _ connection: any DatabaseConnection, _ number: Int64
    ) throws(StoreFailure) -> IdentityKey {
        guard let row = try connection.row("\(Self.select) WHERE id = \(number)") else {
            throw .permanent(.unexpectedData, "a key disappeared")
        }
        return try IdentityKey(row: row)
    }

    private func current(
        _ connection: any DatabaseConnection, _ state: IdentityKey.State,
        _ algorithm: SignatureAlgorithm
    ) throws(StoreFailure) -> IdentityKey? {
        try connection.row("\(Self.select) WHERE state = \(state) AND algorithm = \(algorithm)")
            .map(IdentityKey.init(row:))
    }

    private func revision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        try connection.value("SELECT MAX(revision) AS revision FROM identity_keys") ?? 0
    }

    private func nextRevision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        try revision(connection) + 1
    }
}

extension IdentityKey {
    /// From the columns of `IdentityKeyRepository.select`.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["id"], keyID: row["kid"], algorithm: row["algorithm"],
            publicJWK: row["public_jwk"], state: row["state"],
            createdAt: row["created_at"],
            activatedAt: row["activated_at"], deactivatedAt: row["deactivated_at"],
            retiredAt: row["retired_at"])
    }
}
