// What users may see of themselves: their accounts for the page, and everything that is stored for their download.

import InternetMessage

/// Reads for the page of one's own.
package struct UserExportRepository: Sendable {
    let database: any Database
    let sealer: Sealer
    let inboxes: InboxRepository
    let tombstones: TombstoneRepository

    /// The user's accounts by the name of the team; those where mail can come, first.
    /// - Parameters:
    ///   - day: days since 1970, from which `recent` counts.
    ///   - now: seconds since 1970.
    package func accounts(user id: String, since day: Int64, now: Int64) throws -> [UserExportAccount] {
        try database.read { connection in
            let user = try connection.userNumber(id)
            let rows = try connection.rows(
                """
                SELECT a.id, t.id, t.handle, t.name, t.created_at, r.local_part, r.domain, r.forwarding_on, a.created_at, a.inbox_id,
                    (SELECT i.number FROM inboxes i WHERE i.id = a.target_inbox), a.email_kind, a.shares_name,
                    (SELECT MAX(c.day) FROM daily_counters c WHERE c.account_id = a.id AND c.kind = \(CounterKind.inboxWritten.rawValue))
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                LEFT JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
                WHERE a.user_id = ?1 ORDER BY t.name, a.id
                """, [.integer(user)])
            let accounts = try rows.map { row in
                let number = try row.integer(0)
                let own = try row.optionalInteger(9)
                let consents = try consents(connection, account: number)
                return UserExportAccount(
                    number: number, team: try Team(row: row, first: 1),
                    address: try row.optionalText(5).map { AddrSpec(localPart: $0, domain: try row.text(6)) },
                    isForwardingOn: try row.optionalInteger(7) == 1, createdAt: try row.integer(8),
                    inboxNumber: try row.optionalInteger(10), hasOwnInbox: own != nil,
                    emailKind: EmailKind(rawValue: try row.text(11)) ?? .none, sharesName: try row.bool(12),
                    inboxWrittenDay: try row.optionalInteger(13),
                    consents: consents,
                    move: consents.contains(where: \.isLive) ? nil : try move(connection, account: number, now: now),
                    recent: try usage(connection, account: number, since: day),
                    total: try usage(connection, account: number, since: 0))
            }
            return accounts.filter(\.isActive) + accounts.filter { !$0.isActive }
        }
    }

    private func consents(_ connection: any DatabaseConnection, account: Int64) throws -> [UserExportConsent] {
        try connection.rows(
            """
            SELECT g.group_id, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at
            FROM grants g JOIN app_groups p ON p.id = g.group_id
            JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = ?1 ORDER BY g.id
            """, [.integer(account)]
        ).map { row in
            let group = AppGroup(number: try row.integer(0), primaryClientID: try row.optionalText(1))
            let apps = try connection.rows("SELECT client_id FROM apps WHERE group_id = ?1 ORDER BY id", [.integer(group.number)])
            return UserExportConsent(
                group: group, clientIDs: try apps.map { try $0.text(0) }, isLive: try row.text(2) == "authorized",
                firstAuthorizedAt: try row.integer(3), lastAuthorizedAt: try row.integer(4))
        }
    }

    /// Where its app went, as long as the old address takes mail.
    private func move(_ connection: any DatabaseConnection, account: Int64, now: Int64) throws -> UserExportMove? {
        try connection.row(
            """
            SELECT t.name, m.new_account, p.primary_client_id, m.moved_at, m.ends_at
            FROM account_transfers m JOIN accounts b ON b.id = m.new_account JOIN teams t ON t.id = b.team_id AND t.removed_at IS NULL
            JOIN app_transfers x ON x.id = m.transfer_id JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL
            WHERE m.old_account = ?1 AND m.ends_at > ?2 ORDER BY m.moved_at DESC, m.transfer_id DESC LIMIT 1
            """, [.integer(account), .integer(now)]
        ).map { row in
            UserExportMove(
                team: try row.text(0), account: try row.integer(1), clientID: try row.optionalText(2),
                movedAt: try row.integer(3),
                endsAt: try row.integer(4))
        }
    }

    private func usage(_ connection: any DatabaseConnection, account: Int64, since day: Int64) throws -> DailyUsage {
        let row = try connection.row(
            """
            SELECT COALESCE(SUM(CASE WHEN kind = 1 THEN count ELSE 0 END), 0), COALESCE(SUM(CASE WHEN kind = 2 THEN count ELSE 0 END), 0)
            FROM daily_counters WHERE account_id = ?1 AND day >= ?2 AND kind IN (1, 2)
            """, [.integer(account), .integer(day)])
        return DailyUsage(forwarded: Int(try row?.integer(0) ?? 0), replied: Int(try row?.integer(1) ?? 0))
    }

    /// Everything that is stored about a user, section by section. Keyed hashes, of which no one can read anything, are told by
    /// what they are for and when they go. Consistent: from one snapshot.
    package func records(user id: String, now: Int64) throws -> [UserExportRecords] {
        let earlier = try tombstones.tombstones(user: id, now: now).map { tombstone in
            [
                (name: "day", value: UserExportRecords.Value.day(tombstone.day)),
                (name: "deletions", value: .integer(Int64(tombstone.deletions))),
                (name: "failures", value: .integer(Int64(tombstone.failures))),
            ]
        }
        return try stored(user: id) + [UserExportRecords(name: "earlier_accounts", rows: earlier)]
    }

    private func stored(user id: String) throws -> [UserExportRecords] {
        try database.read { connection in
            let user = try connection.userNumber(id)
            return try UserExportSection.all.map { section in
                let rows = try connection.rows(
                    section.sql, section.isByHandle ? [.text("user:\(id)"), .integer(user)] : [.integer(user)])
                return UserExportRecords(name: section.name, rows: try rows.map { try values(section, $0, user: user) })
            }
        }
    }

    private func values(
        _ section: UserExportSection, _ row: SQLRow, user: Int64
    ) throws -> [(name: String, value: UserExportRecords.Value)] {
        var column = 0
        return try section.fields.map { field in
            defer { column += field.kind.width }
            return (field.name, row.isNull(column) ? .null : try value(field.kind, row, column, user: user))
        }
    }

    private func value(
        _ kind: UserExportSection.Kind, _ row: SQLRow, _ column: Int, user: Int64
    ) throws -> UserExportRecords.Value {
        switch kind {
        case .integer: .integer(try row.integer(column))
        case .text: .text(try row.text(column))
        case .flag: .flag(try row.bool(column))
        case .time: .time(try row.integer(column))
        case .day: .day(try row.integer(column))
        case .words: .words(try row.text(column).split(separator: " ").map(String.init))
        case .json: .json(try row.text(column))
        case .counter: .text(CounterKind(rawValue: try row.integer(column)).name)
        case .userName: try sealer.name(row, column, user: user).map { .text($0) } ?? .null
        case .inbox: .text(try sealer.inbox(row, column, user: user).revealed.wireForm)
        case .correspondent:
            // key, octets, token
            .text(
                try sealer.openAddress(
                    SealedValue(key: row.text(column), octets: row.blob(column + 1)), .storedToken(row.text(column + 2))
                ).wireForm)
        }
    }
}

extension CounterKind {
    /// For people.
    fileprivate var name: String {
        switch self {
        case .forwarded: "messages_to_you"
        case .replied: "messages_from_you"
        case .bouncedPermanently: "permanent_failures_of_your_inbox"
        case .bouncedTemporarily: "other_failures_of_your_inbox"
        case .automaticRelayed: "automatic_notes_relayed"
        case .automaticDiscarded: "automatic_notes_discarded"
        case .overLimit: "refused_over_daily_limit"
        case .refusedForwardingOff: "refused_forwarding_off"
        case .forwardingToggled: "forwarding_switched"
        case .reportsDropped: "reports_dropped"
        case .reportsRelayed: "reports_relayed"
        case .addressesStored: "correspondents_stored"
        case .inboxWritten: "messages_in_which_the_team_wrote_your_inbox"
        case .quoteHidden: "your_inbox_hidden_in_quotations"
        case .textAddresses: "addresses_of_others_in_text"
        default: "kind_\(rawValue)"
        }
    }
}
