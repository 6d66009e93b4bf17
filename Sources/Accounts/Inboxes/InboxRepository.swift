// Inboxes: stored sealed, and found by a blind index.

import Database
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
    var database: any Database { events.database }
    let sealer: Sealer
    package let index: BlindIndex
    let marks: TombstoneMarks
    let relayDomains: [HostName]

    /// The number of inboxes to which forwarding is suspended, and the users of
    /// the latest ones, each once.
    package func suspended(limit: Int) throws(StoreFailure) -> (count: Int, users: [String]) {
        try database.read { connection throws(StoreFailure) in
            let count: Int? = try connection.value(
                "SELECT COUNT(*) AS count FROM inboxes WHERE suspended_at IS NOT NULL")
            // Reads more inboxes than users, because some users have several.
            let last: [String] = try connection.values(
                """
                SELECT u.handle FROM inboxes i JOIN users u ON u.id = i.user_id
                WHERE i.suspended_at IS NOT NULL ORDER BY i.suspended_at DESC, i.id LIMIT \(Self.maximumPerUser * limit)
                """)
            let users = last.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
                .prefix(limit)
            return (count ?? 0, Array(users))
        }
    }

    /// Adds an inbox. Refused at a relay domain, if the user already has it, or if it is
    /// verified for another user.
    package func add(
        user id: String, _ inbox: InboxAddress, isVerified: Bool, isReplyOnly: Bool,
        _ change: Change
    ) throws(StoreFailure) -> Inbox {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            // A verified inbox may replace an unverified default.
            if isVerified { try tracker.snapshot(.user(user)) }
            let row = try insert(
                connection, user: user, id: id, inbox, isVerified: isVerified,
                isReplyOnly: isReplyOnly, change)
            return try self.inbox(connection, user: user, row: row)
        }
    }

    /// Whether mail to it would come back to this relay.
    package func isRelayed(_ inbox: InboxAddress) -> Bool {
        HostName(inbox.revealed.domain).map { relayDomains.contains(where: $0.isWithin) } ?? false
    }

    /// Adds an inbox within a transaction. Returns the store's id of the inbox.
    package func insert(
        _ connection: any DatabaseConnection, user: Int64, id: String, _ inbox: InboxAddress,
        isVerified: Bool, isReplyOnly: Bool,
        _ change: Change
    ) throws(StoreFailure) -> Int64 {
        let address = inbox.revealed
        if isRelayed(inbox) {
            throw .refused(
                .invalid,
                "an inbox at the relay domain \(address.domain) would be a loop: give the user's real address"
            )
        }
        let entry = index.entry(address)
        try connection.require(.index, entry.key)
        if isVerified { try refuseOwned(connection, inbox) }
        guard try row(connection, user: user, inbox) == nil else { throw owned(by: id) }
        let count: Int? = try connection.value(
            "SELECT COUNT(*) AS count FROM inboxes WHERE user_id = \(user)")
        guard count ?? 0 < Self.maximumPerUser else {
            throw .refused(
                .limit,
                "user \(id) has \(Self.maximumPerUser) inboxes, which is the maximum: remove one")
        }
        let sealed = try sealer.seal(address, .inbox(user: user), connection)
        let number = try nextNumber(connection, user: user)
        let added: Int64? = try connection.value(
            """
            INSERT INTO inboxes
                (user_id, address_key, address_sealed, index_key, address_index, canonical_index, reply_only, created_at,
                verified_at, velocity_index, tombstone_index, number)
            VALUES (\(user), \(sealed.key), \(sealed.octets), \(entry.key), \(entry.exact), \(entry.canonical), \(isReplyOnly),
                \(change.now), \(isVerified ? change.now : nil), \(index.velocity(address)),
                \(marks.inbox(canonicalIndex: index.lasting(address))), \(number))
            ON CONFLICT (user_id, address_index) DO NOTHING RETURNING id
            """)
        guard let added else { throw owned(by: id) }
        try updateDefault(connection, user: user, change)
        try connection.audit(
            change, "inbox.add", "user:\(id)",
            "inbox \(number)\(isVerified ? " verified" : "")\(isReplyOnly ? " reply-only" : "")")
        return added
    }

    /// Reserves the user's next inbox number.
    private func nextNumber(
        _ connection: any DatabaseConnection, user: Int64
    ) throws(StoreFailure) -> Int64 {
        let number: Int64? = try connection.value(
            "UPDATE users SET last_inbox_number = last_inbox_number + 1 WHERE id = \(user) RETURNING last_inbox_number"
        )
        guard let number else {
            throw .permanent(.unexpectedData, "an inbox is added for a user who does not exist")
        }
        return number
    }

    /// The user's inboxes, the oldest first.
    package func inboxes(user id: String) throws(StoreFailure) -> [Inbox] {
        let rows = try database.rows(
            "\(Self.select) WHERE user_id = (SELECT id FROM users WHERE handle = \(id)) ORDER BY id"
        )
        // No rows: the user has no inbox, or does not exist.
        if rows.isEmpty { _ = try database.userNumber(id) }
        return try rows.map { row throws(StoreFailure) in try inbox(row: row, user: row["user_id"])
        }
    }

    /// Marks an inbox as verified: real, and owned by the user. It becomes the default if the
    /// present default is unverified. Refused if it is verified for another user. A repetition is
    /// not an error, and ends a suspension of forwarding to it.
    package func confirm(
        user id: String, _ name: InboxName, _ change: Change
    ) throws(StoreFailure) -> Inbox {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            guard inbox.isVerified else {
                return try confirm(connection, tracker, user: user, id: id, inbox, change)
            }
            guard inbox.isSuspended else { return inbox }
            try tracker.snapshot(.user(user))
            try connection.forgetFailures(inbox: inbox.id, change)
            try connection.audit(
                change, "inbox.confirm", "user:\(id)", "inbox \(inbox.number), suspension ended")
            return try self.inbox(connection, user: user, row: inbox.id)
        }
    }

    /// Marks an unverified inbox as verified.
    /// - Parameter detail: how it was verified, for the audit.
    package func confirm(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, user: Int64,
        id: String, _ inbox: Inbox,
        detail: String = "",
        _ change: Change
    ) throws(StoreFailure) -> Inbox {
        try tracker.snapshot(.user(user))
        try refuseOwned(connection, inbox.address)
        try connection.run(
            "UPDATE inboxes SET verified_at = \(change.now) WHERE id = \(inbox.id)")
        try connection.forgetFailures(inbox: inbox.id, change)
        try updateDefault(connection, user: user, change)
        try connection.audit(
            change, "inbox.confirm", "user:\(id)",
            "inbox \(inbox.number)" + (detail.isEmpty ? "" : " \(detail)"))
        return try self.inbox(connection, user: user, row: inbox.id)
    }

    /// Makes an inbox the default, to which mail goes. Refused for reply-only and unverified ones.
    package func makeDefault(
        user id: String, _ name: InboxName, _ change: Change
    ) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            try tracker.snapshot(.user(user))
            guard inbox.isVerified, !inbox.isReplyOnly else {
                throw .refused(
                    .unmet, "mail goes to verified inboxes only, and never to a reply-only one")
            }
            guard !inbox.isDefault else {
                return try connection.audit(
                    change, "inbox.default", "user:\(id)", "inbox \(inbox.number)")
            }
            try makeDefault(connection, user: user, id: id, inbox, change)
        }
    }

    /// Sends the mail of one account to a separate inbox from now on, or to the default again.
    /// Refused for reply-only and unverified inboxes, and if the team has the inbox itself. Throws
    /// `notFound` if the account is not the user's.
    /// - Parameter name: nil for the default.
    /// - Returns: the number of the inbox that mail goes to now; nil if none.
    package func lead(
        account: Int64, user id: String, to name: InboxName?, _ change: Change
    ) throws(StoreFailure) -> Int64? {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let kind: EmailKind? = try connection.value(
                "SELECT email_kind FROM accounts WHERE id = \(account) AND user_id = \(user)")
            guard let kind else { throw .refused(.notFound, "there is no such account") }
            guard kind != .real else {
                throw .refused(
                    .unmet,
                    "the team has the address of this inbox, so its mail does not pass through Postern"
                )
            }
            try tracker.snapshot(.user(user))
            var chosen: Inbox?
            if let name {
                let inbox = try inbox(connection, user: user, id: id, name)
                guard inbox.isVerified, !inbox.isReplyOnly else {
                    throw .refused(
                        .unmet, "mail goes to verified inboxes only, and never to a reply-only one")
                }
                chosen = inbox
            }
            try connection.run("UPDATE accounts SET inbox_id = \(chosen?.id) WHERE id = \(account)")
            try connection.audit(
                change, "account.inbox", "account:\(account)",
                chosen.map { "inbox \($0.number)" } ?? "the default")
            return try connection.value(
                "SELECT i.number FROM accounts a JOIN inboxes i ON i.id = a.target_inbox WHERE a.id = \(account)"
            )
        }
    }

    /// Makes an inbox the default within a transaction. It must be verified and not reply-only.
    package func makeDefault(
        _ connection: any DatabaseConnection, user: Int64, id: String, _ inbox: Inbox,
        _ change: Change
    ) throws(StoreFailure) {
        try setDefault(connection, user: user, row: inbox.id, change)
        try connection.audit(change, "inbox.default", "user:\(id)", "inbox \(inbox.number)")
    }

    /// Makes an inbox the default. Bounces of earlier mail, which went to another inbox, do not
    /// count against this one. A suspension stays.
    private func setDefault(
        _ connection: any DatabaseConnection, user: Int64, row id: Int64, _ change: Change
    ) throws(StoreFailure) {
        try connection.run(
            "UPDATE inboxes SET is_default = 0 WHERE user_id = \(user) AND is_default = 1")
        try connection.run(
            "UPDATE inboxes SET is_default = 1, failures_from = \(Day.number(change.now)) WHERE id = \(id)"
        )
    }

    /// One inbox of a user.
    package func inbox(user id: String, _ name: InboxName) throws(StoreFailure) -> Inbox {
        try database.read { connection throws(StoreFailure) in
            try inbox(connection, user: connection.userNumber(id), id: id, name)
        }
    }

    /// Removes an inbox. If it was the default, the oldest verified one replaces it.
    package func remove(user id: String, _ name: InboxName, _ change: Change) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let inbox = try inbox(connection, user: user, id: id, name)
            try tracker.snapshot(.user(user))
            try connection.run("DELETE FROM inboxes WHERE id = \(inbox.id)")
            try updateDefault(connection, user: user, change)
            try connection.audit(change, "inbox.remove", "user:\(id)", "inbox \(inbox.number)")
        }
    }

    /// The user who has this address as a verified inbox; nil if no user has.
    package func userID(verified inbox: InboxAddress) throws(StoreFailure) -> String? {
        let search = index.search(inbox.revealed).exact
        return try database.value(
            """
            SELECT u.handle FROM inboxes i JOIN users u ON u.id = i.user_id
            WHERE i.address_index IN (\(search.0), \(search.1)) AND i.verified_at IS NOT NULL
            """)
    }

    /// The users who have this address as an inbox, verified or not, with the inbox's number. The
    /// user who verified it comes first.
    /// - Parameter anySpelling: whether to add users whose inbox is another spelling of the same
    ///   mailbox, for example `j.doe` and `jdoe` at gmail.com.
    package func owners(
        of inbox: InboxAddress, anySpelling: Bool = false
    ) throws(StoreFailure) -> [InboxOwner] {
        let found = index.search(inbox.revealed)
        let (search, column): (_, SQL) =
            anySpelling ? (found.canonical, "canonical_index") : (found.exact, "address_index")
        return try database.rows(
            """
            SELECT u.handle, i.number, i.verified_at FROM inboxes i JOIN users u ON u.id = i.user_id
            WHERE i.\(column) IN (\(search.0), \(search.1))
            ORDER BY CASE WHEN i.verified_at IS NULL THEN 1 ELSE 0 END, i.id
            """
        ).map { row throws(StoreFailure) in
            let verifiedAt: Int64? = try row["verified_at"]
            return try InboxOwner(
                userID: row["handle"], number: row["number"], isVerified: verifiedAt != nil)
        }
    }

    /// The store's id of this inbox of a user; nil if the user does not have it.
    func row(
        _ connection: any DatabaseConnection, user: Int64, _ inbox: InboxAddress
    ) throws(StoreFailure) -> Int64? {
        let search = index.search(inbox.revealed).exact
        return try connection.value(
            "SELECT id FROM inboxes WHERE user_id = \(user) AND address_index IN (\(search.0), \(search.1))"
        )
    }

    private func owned(by id: String) -> StoreFailure {
        StoreFailure.refused(
            .exists, "user \(id) already has this inbox: see postern inbox list \(id)")
    }

    private func refuseOwned(
        _ connection: any DatabaseConnection, _ inbox: InboxAddress
    ) throws(StoreFailure) {
        let search = index.search(inbox.revealed).exact
        let owned = try connection.row(
            "SELECT user_id FROM inboxes WHERE address_index IN (\(search.0), \(search.1)) AND verified_at IS NOT NULL"
        )
        guard owned == nil else {
            throw .refused(
                .exists,
                "this inbox is already verified for a user, and an inbox belongs to one user")
        }
    }

    /// Chooses the default again: a verified inbox before an unverified one, then the present
    /// default, then the oldest. A reply-only inbox is never the default.
    private func updateDefault(
        _ connection: any DatabaseConnection, user: Int64, _ change: Change
    ) throws(StoreFailure) {
        let rows = try connection.rows(
            """
            SELECT id, is_default, CASE WHEN verified_at IS NULL THEN 0 ELSE 1 END AS is_verified FROM inboxes
            WHERE user_id = \(user) AND reply_only = 0 ORDER BY 3 DESC, is_default DESC, id
            """)
        guard let best = rows.first, try !best["is_default"] else { return }
        try setDefault(connection, user: user, row: try best["id"], change)
    }

    static let select: SQL = """
        SELECT id, user_id, address_key, address_sealed, verified_at, is_default, reply_only, created_at, suspended_at,
            suspended_failures, number
        FROM inboxes
        """

    package func inbox(
        _ connection: any DatabaseConnection, user: Int64, id: String, _ name: InboxName
    ) throws(StoreFailure) -> Inbox {
        let row: SQLRow?
        switch name {
        case .number(let number):
            row = try connection.row(
                "\(Self.select) WHERE user_id = \(user) AND number = \(number)")
        case .address(let inbox):
            let search = index.search(inbox.revealed).exact
            row = try connection.row(
                "\(Self.select) WHERE user_id = \(user) AND address_index IN (\(search.0), \(search.1))"
            )
        }
        guard let row else {
            throw .refused(.notFound, "user \(id) has no such inbox: see postern inbox list \(id)")
        }
        return try inbox(row: row, user: user)
    }

    /// The user's inbox with this id of the store.
    package func inbox(
        _ connection: any DatabaseConnection, user: Int64, row id: Int64
    ) throws(StoreFailure) -> Inbox {
        let row = try connection.row("\(Self.select) WHERE user_id = \(user) AND id = \(id)")
        guard let row else { throw .refused(.notFound, "this inbox has been removed") }
        return try inbox(row: row, user: user)
    }

    func inbox(row: SQLRow, user: Int64) throws(StoreFailure) -> Inbox {
        try Inbox(
            id: row["id"], number: row["number"], address: sealer.inbox(row, user: user),
            verifiedAt: row["verified_at"],
            isDefault: row["is_default"], isReplyOnly: row["reply_only"],
            createdAt: row["created_at"],
            suspendedAt: row["suspended_at"], suspendedFailures: row["suspended_failures"] ?? 0)
    }
}

/// A user who has an address as an inbox.
package struct InboxOwner: Sendable, Hashable {
    package let userID: String
    /// The inbox's number among the user's inboxes, from 1.
    package let number: Int64
    package let isVerified: Bool
}
