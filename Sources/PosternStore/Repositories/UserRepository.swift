// Users.

import InternetMessage

/// What goes with a user who is removed.
package struct UserDependents: Sendable, Hashable {
    package let inboxes: Int
    package let accounts: Int
    package let addresses: Int
}

/// Adds, finds and removes users.
package struct UserRepository: Sendable {
    let accounts: AccountRepository
    let sealer: Sealer
    let inboxes: InboxRepository
    private var database: any Database { accounts.database }

    /// Adds a user with a first inbox.
    package func add(
        id: String, name: String?, inbox: InboxAddress, isVerified: Bool, _ change: Change
    ) throws -> User {
        let id = try Identifier.checked(id, "a user's identifier")
        let name = try name.map(Identifier.checkedName)
        return try database.write(.durable) { connection in
            let number = try insert(connection, id: id, name: name, change)
            _ = try inboxes.insert(connection, user: number, id: id, inbox, isVerified: isVerified, isReplyOnly: false, change)
            return User(number: number, id: id, name: name, createdAt: change.now)
        }
    }

    /// Adds a user without an inbox; identifier and name were checked. Gives the store's number.
    func insert(_ connection: any DatabaseConnection, id: String, name: String?, _ change: Change) throws -> Int64 {
        let row = try connection.row(
            "INSERT INTO users (handle, created_at) VALUES (?1, ?2) ON CONFLICT (handle) DO NOTHING RETURNING id",
            [.text(id), .integer(change.now)])
        guard let row else { throw StoreRefusal(.exists, "user \(id) already exists") }
        let number = try row.integer(0)
        if let name { try setName(connection, user: number, name) }
        try connection.audit(change, "user.add", "user:\(id)")
        return number
    }

    /// Seals the name, which was checked, in place of what was there.
    func setName(_ connection: any DatabaseConnection, user: Int64, _ name: String) throws {
        let sealed = try sealer.seal(name, .userName(user: user), connection)
        try connection.run(
            "UPDATE users SET name_key = ?2, name_sealed = ?3 WHERE id = ?1",
            [.integer(user), .text(sealed.key), .blob(sealed.octets)])
    }

    /// The user, or `StoreRefusal` (`notFound`).
    package func user(_ id: String) throws -> User { try database.read { try user($0, id) } }

    /// All users by identifier, from the one after `after`, at most `limit`.
    package func all(after: String = "", limit: Int = Int(Int32.max)) throws -> [User] {
        try database.read { connection in
            try connection.rows(
                "SELECT id, handle, name_key, name_sealed, created_at FROM users WHERE handle > ?1 ORDER BY handle LIMIT ?2",
                [.text(after), .integer(Int64(limit))]
            ).map(user(row:))
        }
    }

    /// What removing the user would take along.
    package func dependents(_ id: String) throws -> UserDependents {
        try database.read { connection in
            let user = try user(connection, id)
            let row = try connection.row(
                """
                SELECT (SELECT COUNT(*) FROM inboxes WHERE user_id = ?1), (SELECT COUNT(*) FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL WHERE a.user_id = ?1),
                    (SELECT COUNT(*) FROM relay_addresses r JOIN accounts a ON a.id = r.account_id
                        JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL WHERE a.user_id = ?1)
                """, [.integer(user.number)])
            guard let row else { return UserDependents(inboxes: 0, accounts: 0, addresses: 0) }
            return UserDependents(
                inboxes: Int(try row.integer(0)), accounts: Int(try row.integer(1)), addresses: Int(try row.integer(2)))
        }
    }

    /// Removes the user with inboxes, name, accounts and relay addresses, at once. Every `sub` and address is retired
    /// permanently; for 30 days tombstones remain.
    package func remove(_ id: String, _ change: Change) throws {
        try accounts.events.write(at: change.now) { connection, tracker in
            let user = try connection.userNumber(id)
            try accounts.deleteAll(connection, tracker, user: user, now: change.now)
            try connection.run("DELETE FROM users WHERE id = ?1", [.integer(user)])
            try connection.audit(change, "user.remove", "user:\(id)")
        }
    }

    func user(_ connection: any DatabaseConnection, _ id: String) throws -> User {
        let row = try connection.row(
            "SELECT id, handle, name_key, name_sealed, created_at FROM users WHERE handle = ?1", [.text(id)])
        guard let row else { throw Self.unknown(id) }
        return try user(row: row)
    }

    private func user(row: SQLRow) throws -> User {
        let number = try row.integer(0)
        return User(
            number: number, id: try row.text(1), name: try sealer.name(row, 2, user: number), createdAt: try row.integer(4))
    }

    static func unknown(_ id: String) -> StoreRefusal {
        // An inbox that was typed by mistake is not repeated.
        StoreRefusal(.notFound, "there is no \(id.contains("@") ? "such user" : "user \(id)"): see postern user list")
    }
}

extension Sealer {
    /// A name from two columns, key and sealed octets; nil where they are NULL.
    func name(_ row: SQLRow, _ column: Int, user: Int64) throws -> String? {
        guard !row.isNull(column) else { return nil }
        return try openText(SealedValue(key: row.text(column), octets: row.blob(column + 1)), .userName(user: user))
    }

    /// An inbox address from two columns.
    func inbox(_ row: SQLRow, _ column: Int, user: Int64) throws -> InboxAddress {
        InboxAddress(try openAddress(SealedValue(key: row.text(column), octets: row.blob(column + 1)), .inbox(user: user)))
    }
}

extension DatabaseConnection {
    /// The store's number of a user, or `StoreRefusal` (`notFound`).
    func userNumber(_ id: String) throws -> Int64 {
        guard let row = try row("SELECT id FROM users WHERE handle = ?1", [.text(id)]) else { throw UserRepository.unknown(id) }
        return try row.integer(0)
    }
}
