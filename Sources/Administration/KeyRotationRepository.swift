// Seals and indexes the values of older keys again, a few rows at a time.

import Accounts
import Database

extension Store {
    /// Finds and converts the values of older keys.
    package var keyRotation: KeyRotationRepository {
        KeyRotationRepository(database: database, keys: keys, sealer: sealer, index: index)
    }
}

/// Finds the key with which each value is sealed or indexed, and converts values to the keys in
/// use. It stores nothing between two steps, because the rows themselves show what is left. So it
/// can be stopped and continued at any step.
package struct KeyRotationRepository: Sendable {
    /// Rows read in one transaction: a few milliseconds, the longest that other writers wait.
    package static let batch = 200

    let database: any Database
    let keys: KeyHolder
    let sealer: Sealer
    package let index: BlindIndex

    /// The number of values that a key made.
    package struct Usage: Sendable, Hashable {
        package let purpose: KeyPurpose
        package let key: String
        package let count: Int
    }

    /// The position in a pass.
    package struct Position: Sendable, Hashable {
        fileprivate let table: Int
        fileprivate let after: SQLValue

        package static let start = Position(table: 0, after: Table.all[0].start)
    }

    package struct Step: Sendable {
        /// Nil at the end of the pass.
        package let next: Position?
        /// Rows that were read, and the number of these that were changed.
        package let seen: Int
        package let changed: Int
    }

    /// The number of rows that a pass reads. Reads whole tables.
    package func rows() throws(StoreFailure) -> Int {
        try usage().filter { $0.purpose == .seal }.map(\.count).reduce(0, +)
    }

    /// How many values each key of the purposes seal and index made. Reads whole tables.
    package func usage() throws(StoreFailure) -> [Usage] {
        try database.readAtLength { connection throws(StoreFailure) in
            var counts: [KeyPurpose: [String: Int]] = [:]
            func count(
                _ purpose: KeyPurpose, _ column: String, _ table: String
            ) throws(StoreFailure) {
                let rows = try connection.rows(
                    """
                    SELECT \(raw: column) AS key, COUNT(*) AS count FROM \(raw: table) WHERE \(raw: column) IS NOT NULL
                    GROUP BY \(raw: column)
                    """)
                for row in rows {
                    counts[purpose, default: [:]][try row["key"], default: 0] += try row["count"]
                }
            }
            for table in Table.all { try count(.seal, table.key, table.name) }
            try count(.index, "index_key", "inboxes")
            return counts.flatMap { purpose, keys in
                keys.map { Usage(purpose: purpose, key: $0.key, count: $0.value) }
            }
            .sorted { ($0.purpose.rawValue, $0.key) < ($1.purpose.rawValue, $1.key) }
        }
    }

    /// Converts the next rows to the keys in use.
    package func step(_ position: Position, limit: Int = batch) throws(StoreFailure) -> Step {
        guard Table.all.indices.contains(position.table) else {
            return Step(next: nil, seen: 0, changed: 0)
        }
        let table = Table.all[position.table]
        let ring = keys.current
        // Reads first without a writer's lock, so a pass that finds nothing to do blocks no other
        // writer.
        let found = try database.read { connection throws(StoreFailure) in
            try table.rows(connection, after: position.after, limit: limit)
        }
        guard let last = found.last else {
            let next = position.table + 1
            return Step(
                next: Table.all.indices.contains(next)
                    ? Position(table: next, after: Table.all[next].start) : nil, seen: 0,
                changed: 0)
        }
        var changed = 0
        if found.contains(where: { $0.isBehind(ring) }) {
            changed = try database.write(.relaxed) { connection throws(StoreFailure) in
                var count = 0
                for row in try table.rows(connection, after: position.after, limit: limit)
                where row.isBehind(ring) {
                    if row.key != ring.seal.active.idText { try reseal(connection, table, row) }
                    if let key = row.indexKey, key != ring.index.active.idText {
                        try reindex(connection, row)
                    }
                    count += 1
                }
                return count
            }
        }
        return Step(
            next: Position(table: position.table, after: last.identity), seen: found.count,
            changed: changed)
    }

    private func reseal(
        _ connection: any DatabaseConnection, _ table: Table, _ row: Row
    ) throws(StoreFailure) {
        let octets = try sealer.open(SealedValue(key: row.key, octets: row.sealed), row.context)
        let sealed = try sealer.seal(octets, row.context, connection)
        try connection.run(
            """
            UPDATE \(raw: table.name) SET \(raw: table.key) = \(sealed.key), \(raw: table.sealed) = \(sealed.octets)
            WHERE \(raw: table.identity) = \(row.identity)
            """)
    }

    private func reindex(_ connection: any DatabaseConnection, _ row: Row) throws(StoreFailure) {
        let entry = index.entry(
            try sealer.openAddress(SealedValue(key: row.key, octets: row.sealed), row.context))
        try connection.require(.index, entry.key)
        try connection.run(
            """
            UPDATE inboxes SET index_key = \(entry.key), address_index = \(entry.exact), canonical_index = \(entry.canonical)
            WHERE id = \(row.identity)
            """)
    }

    /// From now on every host must make new values with the keys in use here; a host without them
    /// makes none.
    package func demandActiveKeys(_ change: Change) throws(StoreFailure) {
        let ring = keys.current
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.demand(.seal, ring.seal.active.idText)
            try connection.demand(.index, ring.index.active.idText)
            // A host without this key would treat the addresses made with it as forged.
            try connection.demand(.token, ring.token.active.idText)
            try connection.audit(
                change, "keys.file.rotate", "key-file",
                "seal \(ring.seal.active.idText) index \(ring.index.active.idText) token \(ring.token.active.idText)"
            )
        }
    }

    /// Records that a key was removed from the key file.
    package func noteRetired(
        _ purpose: KeyPurpose, _ id: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.audit(
                change, "keys.file.retire", "key-file", "\(purpose.rawValue) \(id)")
        }
    }
}

/// A row with a sealed value.
private struct Row {
    let identity: SQLValue
    let key: String
    let sealed: [UInt8]
    let context: SealContext
    /// The key of the blind index; nil if the row has none.
    let indexKey: String?

    func isBehind(_ ring: KeyRing) -> Bool {
        key != ring.seal.active.idText || (indexKey.map { $0 != ring.index.active.idText } ?? false)
    }
}

/// A table with sealed values.
private struct Table: Sendable {
    package let name: String
    /// The column that identifies and orders rows, and the value before the first.
    let identity: String
    let start: SQLValue
    let key: String
    let sealed: String
    /// The columns of the seal's context, and the function that makes the context from them.
    let place: String
    let context: @Sendable (SQLRow) throws(StoreFailure) -> SealContext
    var hasIndex = false

    func rows(
        _ connection: any DatabaseConnection, after: SQLValue, limit: Int
    ) throws(StoreFailure) -> [Row] {
        try connection.rows(
            """
            SELECT \(raw: identity) AS identity, \(raw: key) AS key, \(raw: sealed) AS sealed, \(raw: place),
                \(raw: hasIndex ? "index_key" : "NULL AS index_key")
            FROM \(raw: name) WHERE \(raw: identity) > \(after) AND \(raw: key) IS NOT NULL
            ORDER BY \(raw: identity) LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in
            let identity: SQLValue =
                if case .text = start { .text(try row["identity"]) } else {
                    .integer(try row["identity"])
                }
            return try Row(
                identity: identity, key: row["key"], sealed: row["sealed"], context: context(row),
                indexKey: row["index_key"])
        }
    }

    static let all = [
        Table(
            name: "users", identity: "id", start: .integer(0), key: "name_key",
            sealed: "name_sealed", place: "id",
            context: { row throws(StoreFailure) in .userName(user: try row["id"]) }),
        Table(
            name: "inboxes", identity: "id", start: .integer(0), key: "address_key",
            sealed: "address_sealed", place: "user_id",
            context: { row throws(StoreFailure) in .inbox(user: try row["user_id"]) },
            hasIndex: true),
        Table(
            name: "stored_tokens", identity: "token", start: .text(""), key: "address_key",
            sealed: "address_sealed",
            place: "token", context: { row throws(StoreFailure) in .storedToken(try row["token"]) }),
        Table(
            name: "dkim_keys", identity: "id", start: .integer(0), key: "private_key",
            sealed: "private_sealed",
            place: "domain, selector",
            context: { row throws(StoreFailure) in
                .dkimKey(domain: try row["domain"], selector: try row["selector"])
            }),
        Table(
            name: "identity_keys", identity: "id", start: .integer(0), key: "private_key",
            sealed: "private_sealed",
            place: "kid", context: { row throws(StoreFailure) in .identityKey(try row["kid"]) }),
        Table(
            name: "passkeys", identity: "id", start: .integer(0), key: "name_key",
            sealed: "name_sealed", place: "user_id",
            context: { row throws(StoreFailure) in .passkeyName(user: try row["user_id"]) }),
        Table(
            name: "authenticators", identity: "user_id", start: .integer(0), key: "secret_key",
            sealed: "secret_sealed",
            place: "user_id",
            context: { row throws(StoreFailure) in .authenticator(user: try row["user_id"]) }),
        Table(
            name: "given_names", identity: "account_id", start: .integer(0), key: "given_key",
            sealed: "given_sealed",
            place:
                "(SELECT a.user_id FROM accounts a WHERE a.id = given_names.account_id) AS user_id",
            context: { row throws(StoreFailure) in .givenName(user: try row["user_id"]) }),
        Table(
            name: "account_notes", identity: "account_id", start: .integer(0), key: "name_key",
            sealed: "name_sealed",
            place: "account_id",
            context: { row throws(StoreFailure) in .accountName(account: try row["account_id"]) }),
        Table(
            name: "account_notes", identity: "account_id", start: .integer(0), key: "note_key",
            sealed: "note_sealed",
            place: "account_id",
            context: { row throws(StoreFailure) in .accountNote(account: try row["account_id"]) }),
        Table(
            name: "last_mail", identity: "account_id", start: .integer(0), key: "sender_key",
            sealed: "sender_sealed",
            place: "account_id",
            context: { row throws(StoreFailure) in .lastSender(account: try row["account_id"]) }),
        Table(
            name: "devices", identity: "id", start: .integer(0), key: "public_key",
            sealed: "public_sealed", place: "mark",
            context: { row throws(StoreFailure) in .deviceKey(mark: try row["mark"]) }),
        Table(
            name: "event_streams", identity: "endpoint_id", start: .integer(0),
            key: "authorization_key",
            sealed: "authorization_sealed", place: "stream_id",
            context: { row throws(StoreFailure) in .streamAuthorization(try row["stream_id"]) }),
        Table(
            name: "issuer_polls", identity: "issuer", start: .text(""), key: "token_key",
            sealed: "token_sealed", place: "issuer",
            context: { row throws(StoreFailure) in .issuerPoll(try row["issuer"]) }),
    ]
}
