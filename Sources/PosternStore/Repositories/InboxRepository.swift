// Inboxes: sealed, and found by a blind index.

import InternetMessage

/// How a command names an inbox of a user.
package enum InboxName: Sendable {
    /// `Inbox.number`.
    case number(Int64)
    case address(InboxAddress)
}

/// Adds, confirms and removes inboxes.
package struct InboxRepository: Sendable {
    /// Inboxes of one user: each is compared with every reply, and searched for in it.
    package static let maximumPerUser = 20

    let events: AccountEvents
    private var database: any Database { events.database }
    let sealer: Sealer
    let index: BlindIndex
    let marks: TombstoneMarks
    let relayDomains: [HostName]

    /// How many inboxes forwarding is suspended to, and the users of those that were suspended last, each once.
    package func suspended(limit: Int) throws -> (count: Int, users: [String]) {
        try database.read { connection in
            let count = try connection.row("SELECT COUNT(*) FROM inboxes WHERE suspended_at IS NOT NULL", [])?.integer(0) ?? 0
            let users = try connection.rows(
                """
                SELECT u.handle FROM inboxes i JOIN users u ON u.id = i.user_id
                WHERE i.suspended_at IS NOT NULL GROUP BY u.handle ORDER BY MAX(i.suspended_at) DESC, u.handle LIMIT ?1
                """, [.integer(Int64(limit))])
            return (Int(count), try users.map { try $0.text(0) })
        }
    }

    /// Adds an inbox. Refused at a relay domain, where the user has it already, or where it is verified for another user.
    package func add(
        user id: String, _ inbox: InboxAddress, isVerified: Bool, isReplyOnly: Bool, _ change: Change
    ) throws -> Inbox {
        try events.write(at: change.now) { connection, tracker in
            let user = try connection.userNumber(id)
            // A verified one may take the place of a default that is not.
            if isVerified { try tracker.snapshot(.user(user)) }
            let row = try insert(
                connection, user: user, id: id, inbox, isVerified: isVerified, isReplyOnly: isReplyOnly, change)
            return try self.inbox(connection, user: user, row: row)
        }
    }

    /// The same within a transaction; gives the store's id of the inbox.
    func insert(
        _ connection: any DatabaseConnection, user: Int64, id: String, _ inbox: InboxAddress, isVerified: Bool, isReplyOnly: Bool,
        _ change: Change
    ) throws -> Int64 {
        let address = inbox.revealed
        if let domain = HostName(address.domain), relayDomains.contains(where: domain.isWithin) {
            throw StoreRefusal(.invalid, "an inbox at the relay domain \(domain) would be a loop: give the user's real address")
        }
        let entry = index.entry(address)
        try connection.require(.index, entry.key)
        if isVerified { try refuseOwned(connection, inbox) }
        guard try row(connection, user: user, inbox) == nil else { throw owned(by: id) }
        let count = try connection.row("SELECT COUNT(*) FROM inboxes WHERE user_id = ?1", [.integer(user)])
        guard try count?.integer(0) ?? 0 < Self.maximumPerUser else {
            throw StoreRefusal(.limit, "user \(id) has \(Self.maximumPerUser) inboxes, which is the maximum: remove one")
        }
        let sealed = try sealer.seal(address, .inbox(user: user), connection)
        let number = try nextNumber(connection, user: user)
        let row = try connection.row(
            """
            INSERT INTO inboxes
                (user_id, address_key, address_sealed, index_key, address_index, canonical_index, reply_only, created_at,
                verified_at, velocity_index, tombstone_index, number)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (user_id, address_index) DO NOTHING RETURNING id
            """,
            [
                .integer(user), .text(sealed.key), .blob(sealed.octets), .text(entry.key), .blob(entry.exact),
                .blob(entry.canonical), .bool(isReplyOnly), .integer(change.now),
                .optional(isVerified ? change.now : nil), .blob(index.velocity(address)),
                .blob(marks.inbox(canonicalIndex: index.lasting(address))), .integer(number),
            ])
        guard let row else { throw owned(by: id) }
        try updateDefault(connection, user: user, change)
        try connection.audit(
            change, "inbox.add", "user:\(id)",
            "inbox \(number)\(isVerified ? " verified" : "")\(isReplyOnly ? " reply-only" : "")")
        return try row.integer(0)
    }

    /// The user's next number, taken. A number that one of the user's inboxes had before numbers were the user's is left out.
    private func nextNumber(_ connection: any DatabaseConnection, user: Int64) throws -> Int64 {
        while true {
            let row = try connection.row(
                "UPDATE users SET last_inbox_number = last_inbox_number + 1 WHERE id = ?1 RETURNING last_inbox_number",
                [.integer(user)])
            guard let row else { throw PermanentStoreError(.unexpectedData, "an inbox is added for a user who does not exist") }
            let number = try row.integer(0)
            let former = try connection.row(
                "SELECT id FROM inboxes WHERE user_id = ?1 AND former_number = ?2", [.integer(user), .integer(number)])
            if former == nil { return number }
        }
    }

    /// The user's inboxes, the oldest first.
    package func inboxes(user id: String) throws -> [Inbox] {
        try database.read { connection in
            let user = try connection.userNumber(id)
            return try connection.rows(Self.select + " WHERE user_id = ?1 ORDER BY id", [.integer(user)])
                .map { try inbox(row: $0, user: user) }
        }
    }

    /// Marks an inbox as verified: real, and owned by the user. It becomes the default where that one is unverified.
    /// Refused if it is verified for another user. A repetition is not an error, and ends a suspension of forwarding to it.
    package func confirm(user id: String, _ name: InboxName, _ change: Change) throws -> Inbox {
        try events.write(at: change.now) { connection, tracker in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            guard inbox.isVerified else { return try confirm(connection, tracker, user: user, id: id, inbox, change) }
            guard inbox.isSuspended else { return inbox }
            try tracker.snapshot(.user(user))
            try connection.forgetFailures(inbox: inbox.id, change)
            try connection.audit(change, "inbox.confirm", "user:\(id)", "inbox \(inbox.number), suspension ended")
            return try self.inbox(connection, user: user, row: inbox.id)
        }
    }

    /// Marks an unverified inbox as verified.
    /// - Parameter detail: how that was found, for the audit.
    func confirm(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, user: Int64, id: String, _ inbox: Inbox,
        detail: String = "",
        _ change: Change
    ) throws -> Inbox {
        try tracker.snapshot(.user(user))
        try refuseOwned(connection, inbox.address)
        try connection.run(
            "UPDATE inboxes SET verified_at = ?2 WHERE id = ?1", [.integer(inbox.id), .integer(change.now)])
        try connection.forgetFailures(inbox: inbox.id, change)
        try updateDefault(connection, user: user, change)
        try connection.audit(
            change, "inbox.confirm", "user:\(id)", "inbox \(inbox.number)" + (detail.isEmpty ? "" : " \(detail)"))
        return try self.inbox(connection, user: user, row: inbox.id)
    }

    /// Makes an inbox the one that mail goes to. Refused for reply-only and unverified ones.
    package func makeDefault(user id: String, _ name: InboxName, _ change: Change) throws {
        try events.write(at: change.now) { connection, tracker in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            try tracker.snapshot(.user(user))
            guard inbox.isVerified, !inbox.isReplyOnly else {
                throw StoreRefusal(.unmet, "mail goes to verified inboxes only, and never to a reply-only one")
            }
            guard !inbox.isDefault else {
                return try connection.audit(change, "inbox.default", "user:\(id)", "inbox \(inbox.number)")
            }
            try makeDefault(connection, user: user, id: id, inbox, change)
        }
    }

    /// The same within a transaction, for an inbox that may be one.
    func makeDefault(
        _ connection: any DatabaseConnection, user: Int64, id: String, _ inbox: Inbox, _ change: Change
    ) throws {
        try setDefault(connection, user: user, row: inbox.id, change)
        try connection.audit(change, "inbox.default", "user:\(id)", "inbox \(inbox.number)")
    }

    /// Bounces of mail from before, which went to another inbox, do not count against this one. A suspension stays.
    private func setDefault(_ connection: any DatabaseConnection, user: Int64, row id: Int64, _ change: Change) throws {
        try connection.run("UPDATE inboxes SET is_default = 0 WHERE user_id = ?1 AND is_default = 1", [.integer(user)])
        try connection.run(
            "UPDATE inboxes SET is_default = 1, failures_from = ?2 WHERE id = ?1",
            [.integer(id), .integer(Day.number(change.now))])
    }

    /// One inbox of a user.
    package func inbox(user id: String, _ name: InboxName) throws -> Inbox {
        try database.read { try inbox($0, user: $0.userNumber(id), id: id, name) }
    }

    /// Removes an inbox. Where it was the default, the oldest verified one takes its place.
    package func remove(user id: String, _ name: InboxName, _ change: Change) throws {
        try events.write(at: change.now) { connection, tracker in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            try tracker.snapshot(.user(user))
            // Nor does the number come back that it had before numbers were the user's.
            try connection.run(
                "UPDATE users SET last_inbox_number = f.former_number FROM inboxes f WHERE f.id = ?2 AND users.id = ?1 AND f.former_number > last_inbox_number",
                [.integer(user), .integer(inbox.id)])
            try connection.run("DELETE FROM inboxes WHERE id = ?1", [.integer(inbox.id)])
            try updateDefault(connection, user: user, change)
            try connection.audit(change, "inbox.remove", "user:\(id)", "inbox \(inbox.number)")
        }
    }

    /// Who has this address as a verified inbox; nil where no one has.
    package func userID(verified inbox: InboxAddress) throws -> String? {
        let search = index.search(inbox.revealed).exact
        return try database.read { connection in
            try connection.row(
                """
                SELECT u.handle FROM inboxes i JOIN users u ON u.id = i.user_id
                WHERE i.address_index IN (?1, ?2) AND i.verified_at IS NOT NULL
                """, [search.0, search.1])?.text(0)
        }
    }

    /// The store's id of this inbox of a user; nil where they do not have it.
    func row(_ connection: any DatabaseConnection, user: Int64, _ inbox: InboxAddress) throws -> Int64? {
        let search = index.search(inbox.revealed).exact
        return try connection.row(
            "SELECT id FROM inboxes WHERE user_id = ?1 AND address_index IN (?2, ?3)", [.integer(user), search.0, search.1])?
            .integer(0)
    }

    private func owned(by id: String) -> StoreRefusal {
        StoreRefusal(.exists, "user \(id) already has this inbox: see postern inbox list \(id)")
    }

    private func refuseOwned(_ connection: any DatabaseConnection, _ inbox: InboxAddress) throws {
        let search = index.search(inbox.revealed).exact
        let owned = try connection.row(
            "SELECT user_id FROM inboxes WHERE address_index IN (?1, ?2) AND verified_at IS NOT NULL", [search.0, search.1])
        guard owned == nil else {
            throw StoreRefusal(.exists, "this inbox is already verified for a user, and an inbox belongs to one user")
        }
    }

    /// Ensures that the default is a verified inbox if there is one, and keeps it otherwise.
    private func updateDefault(_ connection: any DatabaseConnection, user: Int64, _ change: Change) throws {
        let rows = try connection.rows(
            """
            SELECT id, is_default, CASE WHEN verified_at IS NULL THEN 0 ELSE 1 END FROM inboxes
            WHERE user_id = ?1 AND reply_only = 0 ORDER BY 3 DESC, is_default DESC, id
            """, [.integer(user)])
        guard let best = rows.first, try !best.bool(1) else { return }
        try setDefault(connection, user: user, row: try best.integer(0), change)
    }

    private static let select =
        """
        SELECT id, address_key, address_sealed, verified_at, is_default, reply_only, created_at, suspended_at, suspended_failures, number
        FROM inboxes
        """

    func inbox(_ connection: any DatabaseConnection, user: Int64, id: String, _ name: InboxName) throws -> Inbox {
        let row: SQLRow?
        switch name {
        case .number(let number):
            row = try connection.row(Self.select + " WHERE user_id = ?1 AND number = ?2", [.integer(user), .integer(number)])
            if row == nil { try refuseFormer(connection, user: user, id: id, number) }
        case .address(let inbox):
            let search = index.search(inbox.revealed).exact
            row = try connection.row(
                Self.select + " WHERE user_id = ?1 AND address_index IN (?2, ?3)", [.integer(user), search.0, search.1])
        }
        guard let row else { throw StoreRefusal(.notFound, "user \(id) has no such inbox: see postern inbox list \(id)") }
        return try inbox(row: row, user: user)
    }

    /// The user's inbox with this id of the store's.
    func inbox(_ connection: any DatabaseConnection, user: Int64, row id: Int64) throws -> Inbox {
        let row = try connection.row(Self.select + " WHERE user_id = ?1 AND id = ?2", [.integer(user), .integer(id)])
        guard let row else { throw StoreRefusal(.notFound, "this inbox has been removed") }
        return try inbox(row: row, user: user)
    }

    /// Says the new number of an inbox that is named by the one it had before numbers were the user's.
    private func refuseFormer(_ connection: any DatabaseConnection, user: Int64, id: String, _ former: Int64) throws {
        let row = try connection.row(
            "SELECT number FROM inboxes WHERE user_id = ?1 AND former_number = ?2", [.integer(user), .integer(former)])
        guard let number = try row?.integer(0) else { return }
        throw StoreRefusal(
            .notFound,
            "inbox \(former) of user \(id) is now inbox \(number), because inboxes are numbered for each user: see postern inbox list \(id)"
        )
    }

    private func inbox(row: SQLRow, user: Int64) throws -> Inbox {
        Inbox(
            id: try row.integer(0), number: try row.integer(9), address: try sealer.inbox(row, 1, user: user),
            verifiedAt: try row.optionalInteger(3),
            isDefault: try row.bool(4), isReplyOnly: try row.bool(5), createdAt: try row.integer(6),
            suspendedAt: try row.optionalInteger(7),
            suspendedFailures: Int(try row.optionalInteger(8) ?? 0))
    }
}
