// Import: many rows in one transaction, each applied completely or not at all, and never twice.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// Adds the content of rows. Existing rows stay unchanged, so that a file can be imported again
/// after an interruption. A row whose values differ from existing ones (another `sub`, another
/// name) is refused.
package struct ImportRepository: Sendable {
    let events: AccountEvents
    let marks: TombstoneMarks
    let users: UserRepository
    let inboxes: InboxRepository
    let addresses: AddressRepository
    let sealer: Sealer
    let index: BlindIndex
    let relayDomains: [HostName]

    /// Applies the rows in one transaction: those of new users together, the others in order. A
    /// refused row changes nothing, and the others are applied. If it throws, no row was applied.
    package func apply(
        _ rows: [ImportRow], _ change: Change
    ) throws(StoreFailure) -> [ImportOutcome] {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            var outcomes: [ImportOutcome] = []
            outcomes.reserveCapacity(rows.count)
            let together = try ImportBatch(imports: self, change: change).apply(connection, rows)
            for (row, outcome) in zip(rows, together) {
                if let outcome {
                    outcomes.append(outcome)
                    continue
                }
                try connection.run("SAVEPOINT import_row")
                do throws(StoreFailure) {
                    outcomes.append(.done(try apply(connection, tracker, row, change)))
                } catch  where error.isRefusal {
                    try connection.run("ROLLBACK TO SAVEPOINT import_row")
                    outcomes.append(.refused(error))
                }
                try connection.run("RELEASE SAVEPOINT import_row")
            }
            return outcomes
        }
    }

    private func apply(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, _ row: ImportRow,
        _ change: Change
    ) throws(StoreFailure) -> ImportCounts {
        var counts = ImportCounts()
        let user = try user(connection, row, change, &counts)
        // Only changes of users who existed before may need a notification.
        let isNew = counts.users > 0
        if let inbox = row.inbox {
            try add(
                connection, isNew ? nil : tracker, inbox, user: user, id: row.user, change, &counts)
        }
        if let account = row.account {
            try add(connection, account, user: user, id: row.user, change, &counts)
        }
        return counts
    }

    /// The given subject, or a random one.
    func sub(_ given: String?) throws(StoreFailure) -> String {
        if let given { return given }
        return Base32.characters(fromRandom: try addresses.random(AddressRepository.subLength))
    }

    // MARK: Users and inboxes

    /// The number of the user, who is added if missing.
    private func user(
        _ connection: any DatabaseConnection, _ row: ImportRow, _ change: Change,
        _ counts: inout ImportCounts
    ) throws(StoreFailure) -> Int64 {
        let id = try Identifier.checked(row.user, "a user's identifier")
        let name = try row.name.map(Identifier.checkedName)
        let found = try connection.row(
            "SELECT id, name_key, name_sealed FROM users WHERE handle = \(id)")
        guard let found else {
            guard let inbox = row.inbox else {
                throw .refused(.unmet, "user \(id) is new, but the row has no inbox")
            }
            guard !inbox.isReplyOnly else {
                throw .refused(
                    .unmet, "user \(id) is new, and the first inbox must not be reply-only")
            }
            counts.users += 1
            return try users.insert(connection, id: id, name: name, change)
        }
        let number: Int64 = try found["id"]
        if let name {
            if let known = try sealer.name(found, user: number) {
                guard known == name else {
                    throw .refused(.exists, "user \(id) already has another name")
                }
            } else {
                try users.setName(connection, user: number, name)
                try connection.audit(change, "user.name", "user:\(id)")
                counts.names += 1
            }
        }
        return number
    }

    private func add(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker?,
        _ inbox: ImportRow.Inbox, user: Int64, id: String,
        _ change: Change, _ counts: inout ImportCounts
    ) throws(StoreFailure) {
        let search = index.search(inbox.address.revealed).exact
        let found = try connection.row(
            """
            SELECT id, verified_at, reply_only FROM inboxes
            WHERE user_id = \(user) AND address_index IN \(list: [search.0, search.1])
            """)
        if let found {
            guard try found["reply_only"] == inbox.isReplyOnly else {
                throw .refused(
                    .exists,
                    "user \(id) has this inbox \(inbox.isReplyOnly ? "for mail too" : "for replies only") already"
                )
            }
            let verifiedAt: Int64? = try found["verified_at"]
            if inbox.isVerified, verifiedAt == nil, let tracker {
                let inbox = try inboxes.inbox(connection, user: user, row: try found["id"])
                _ = try inboxes.confirm(
                    connection, tracker, user: user, id: id, inbox, detail: "import", change)
                counts.confirmed += 1
            }
            return
        }
        if inbox.isVerified { try tracker?.snapshot(.user(user)) }
        let added = try inboxes.insert(
            connection, user: user, id: id, inbox.address, isVerified: inbox.isVerified,
            isReplyOnly: inbox.isReplyOnly, change)
        counts.inboxes += 1
        guard inbox.isDefault else { return }
        let current = try connection.row(
            "SELECT id, verified_at FROM inboxes WHERE user_id = \(user) AND is_default = 1")
        // Mail goes to verified inboxes, so an unverified one does not replace a verified default.
        guard let current, try current["id"] != added else { return }
        let verifiedAt: Int64? = try current["verified_at"]
        guard inbox.isVerified || verifiedAt == nil else { return }
        try inboxes.makeDefault(
            connection, user: user, id: id, inboxes.inbox(connection, user: user, row: added),
            change)
    }

    // MARK: Accounts

    private func add(
        _ connection: any DatabaseConnection, _ row: ImportRow.Account, user: Int64, id: String,
        _ change: Change,
        _ counts: inout ImportCounts
    ) throws(StoreFailure) {
        let team = try connection.team(row.team)
        let account = try account(connection, row, team: team, user: user, change, &counts)
        try grant(connection, row, account: account, team: team, change, &counts)
        try address(connection, row, account: account, user: id, change, &counts)
    }

    private func account(
        _ connection: any DatabaseConnection, _ row: ImportRow.Account, team: Team, user: Int64,
        _ change: Change,
        _ counts: inout ImportCounts
    ) throws(StoreFailure) -> Int64 {
        let found = try connection.row(
            "SELECT id, sub FROM accounts WHERE user_id = \(user) AND \(SQL.filter("team_id")) = \(team.number)"
        )
        if let found {
            if let sub = row.sub, try found["sub"] != sub {
                throw .refused(
                    .exists, "the user has an account with team \(team.id) under another sub")
            }
            return try found["id"]
        }
        if let sub = row.sub, try connection.isRetired(marks.retired(sub)) {
            throw .refused(
                .exists, "this sub belonged to a deleted account, and is never used again")
        }
        let sub = try sub(row.sub)
        let added: Int64? = try connection.value(
            """
            INSERT INTO accounts (team_id, user_id, sub, shares_name, created_at)
            VALUES (\(team.number), \(user), \(sub), \(row.sharesName), \(row.since ?? change.now))
            ON CONFLICT (sub) DO NOTHING RETURNING id
            """)
        guard let added else { throw .refused(.exists, "this sub belongs to another account") }
        counts.accounts += 1
        return added
    }

    /// Adds a consent if there was none. A consent that the user revoked stays revoked, because an
    /// import is not a return of the user.
    private func grant(
        _ connection: any DatabaseConnection, _ row: ImportRow.Account, account: Int64, team: Team,
        _ change: Change,
        _ counts: inout ImportCounts
    ) throws(StoreFailure) {
        let group: AppGroup
        if let app = row.app {
            group = try connection.appGroup(team: team, clientID: app)
        } else {
            let any = try connection.row(
                """
                SELECT g.id FROM grants g JOIN app_groups p ON p.id = \(SQL.filter("g.group_id")) AND p.removed_from IS NULL
                WHERE g.account_id = \(account) LIMIT 1
                """)
            guard any == nil else { return }
            group = try connection.usualGroup(team: team, change)
        }
        let since = row.since ?? change.now
        let added = try connection.run(
            """
            INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status,
                last_seen_at)
            VALUES (\(account), \(group.number), 'authorized', \(since), \(since), \(row.realUserStatus),
                \(row.lastSeen ?? change.now))
            ON CONFLICT (account_id, group_id) DO NOTHING
            """)
        guard added > 0 else { return }
        try connection.audit(
            change, "grant.authorize", "account:\(account)", "team:\(team.id) app:\(group.title)")
        counts.grants += 1
    }

    /// Adds an address if the account never had one. A retired address is not replaced.
    private func address(
        _ connection: any DatabaseConnection, _ row: ImportRow.Account, account: Int64,
        user: String, _ change: Change,
        _ counts: inout ImportCounts
    ) throws(StoreFailure) {
        let known = try connection.rows(
            "SELECT local_part, domain FROM relay_addresses WHERE account_id = \(account)")
        if !known.isEmpty {
            guard let wanted = row.address else { return }
            guard try known.map(AddrSpec.init(row:)).contains(wanted) else {
                throw .refused(.exists, "the account already has another relay address")
            }
            return
        }
        let address: AddrSpec
        if let given = row.address {
            guard try !connection.isRetired(marks.retired(given.wireForm)) else {
                throw .refused(
                    .exists,
                    "this relay address belonged to a deleted account, and is never used again")
            }
            guard try connection.add(given, to: account, at: row.since ?? change.now) else {
                throw .refused(.exists, "this relay address belongs to another account")
            }
            address = given
        } else {
            guard let domain = relayDomains.first else {
                throw .refused(.unmet, "no relay domain is configured: set relay_domains")
            }
            address = try addresses.newAddress(connection, account: account, domain: domain, change)
        }
        if !row.isForwardingOn {
            try connection.run(
                """
                UPDATE relay_addresses SET forwarding_on = 0
                WHERE local_part = \(address.localPart) AND domain = \(address.domain)
                """)
        }
        try connection.audit(
            change, "address.issue", "account:\(account)",
            "user:\(user) \(address.wireForm)\(row.isForwardingOn ? "" : " off")")
        counts.addresses += 1
    }
}
