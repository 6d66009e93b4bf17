// Users.

import Database
import InternetMessage

/// The rows that are removed together with a user.
package struct UserDependents: Sendable, Hashable {
    package let inboxes: Int
    package let accounts: Int
    package let addresses: Int
}

/// Adds, finds and removes users.
package struct UserRepository: Sendable {
    let accounts: AccountRepository
    package let sealer: Sealer
    let inboxes: InboxRepository
    var database: any Database { accounts.database }

    /// Adds a user with a first inbox.
    package func add(
        id: String, name: String?, inbox: InboxAddress, isVerified: Bool, _ change: Change
    ) throws(StoreFailure) -> User {
        let id = try Identifier.checked(id, "a user's identifier")
        let name = try name.map(Identifier.checkedName)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let number = try insert(connection, id: id, name: name, change)
            _ = try inboxes.insert(
                connection, user: number, id: id, inbox, isVerified: isVerified, isReplyOnly: false,
                change)
            return User(number: number, id: id, name: name, createdAt: change.now)
        }
    }

    /// Adds a user without an inbox; identifier and name are already checked.
    /// Returns the store's number.
    package func insert(
        _ connection: any DatabaseConnection, id: String, name: String?, _ change: Change
    ) throws(StoreFailure) -> Int64 {
        let number: Int64? = try connection.value(
            """
            INSERT INTO users (handle, created_at) VALUES (\(id), \(change.now)) ON CONFLICT (handle) DO NOTHING RETURNING id
            """)
        guard let number else { throw .refused(.exists, "user \(id) already exists") }
        if let name { try setName(connection, user: number, name) }
        try connection.audit(change, "user.add", "user:\(id)")
        return number
    }

    /// Seals the checked name, and replaces the previous one.
    package func setName(
        _ connection: any DatabaseConnection, user: Int64, _ name: String
    ) throws(StoreFailure) {
        let sealed = try sealer.seal(name, .userName(user: user), connection)
        try connection.run(
            "UPDATE users SET name_key = \(sealed.key), name_sealed = \(sealed.octets) WHERE id = \(user)"
        )
    }

    /// The user, or `notFound`.
    package func user(_ id: String) throws(StoreFailure) -> User {
        try user(database, id)
    }

    /// The users after `after` by identifier, at most `limit`.
    package func all(after: String = "", limit: Int = Int(Int32.max)) throws(StoreFailure) -> [User]
    {
        try database.rows(
            """
            SELECT id, handle, name_key, name_sealed, created_at FROM users WHERE handle > \(after) ORDER BY handle
            LIMIT \(limit)
            """
        ).map(user(row:))
    }

    /// The rows that would be removed with the user.
    package func dependents(_ id: String) throws(StoreFailure) -> UserDependents {
        try database.read { connection throws(StoreFailure) in
            let user = try user(connection, id)
            let row = try connection.row(
                """
                SELECT (SELECT COUNT(*) FROM inboxes WHERE user_id = u.id) AS inboxes,
                    (SELECT COUNT(*) FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                        WHERE a.user_id = u.id) AS accounts,
                    (SELECT COUNT(*) FROM relay_addresses r JOIN accounts a ON a.id = r.account_id
                        JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL WHERE a.user_id = u.id) AS addresses
                FROM users u WHERE u.id = \(user.number)
                """)
            guard let row else { return UserDependents(inboxes: 0, accounts: 0, addresses: 0) }
            return try UserDependents(
                inboxes: row["inboxes"], accounts: row["accounts"], addresses: row["addresses"])
        }
    }

    /// Removes the user with inboxes, name, accounts and relay addresses, at once. Every `sub` and
    /// address is retired permanently; for 30 days tombstones remain.
    package func remove(_ id: String, _ change: Change) throws(StoreFailure) {
        try accounts.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            try remove(connection, tracker, user: try connection.userNumber(id), id: id, change)
        }
    }

    func remove(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, user: Int64,
        id: String, _ change: Change
    ) throws(StoreFailure) {
        try accounts.deleteAll(connection, tracker, user: user, now: change.now)
        try connection.deleteUser(user)
        try connection.audit(change, "user.remove", "user:\(id)")
    }

    package func user(_ connection: any SQLQuerying, _ id: String) throws(StoreFailure) -> User {
        let row = try connection.row(
            "SELECT id, handle, name_key, name_sealed, created_at FROM users WHERE handle = \(id)")
        guard let row else { throw Self.unknown(id) }
        return try user(row: row)
    }

    private func user(row: SQLRow) throws(StoreFailure) -> User {
        let number: Int64 = try row["id"]
        return try User(
            number: number, id: row["handle"], name: sealer.name(row, user: number),
            createdAt: row["created_at"])
    }

    static func unknown(_ id: String) -> StoreFailure {
        // The error does not repeat an inbox that was typed by mistake.
        StoreFailure.refused(
            .notFound,
            "there is no \(id.contains("@") ? "such user" : "user \(id)"): see postern user list")
    }
}

extension SQLQuerying {
    /// The store's number of a user, or `notFound`.
    package func userNumber(_ id: String) throws(StoreFailure) -> Int64 {
        guard let number: Int64 = try value("SELECT id FROM users WHERE handle = \(id)") else {
            throw UserRepository.unknown(id)
        }
        return number
    }
}
