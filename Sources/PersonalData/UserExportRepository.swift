// Users' own data: their accounts for the page, and all stored data for their download.

import Accounts
import Database
import InternetMessage
import RelayCore

/// Reads data for the user's own page.
package struct UserExportRepository: Sendable {
    let database: any Database
    let sealer: Sealer
    let tombstones: TombstoneRepository
    let events: AccountEvents

    /// The user's accounts by the name of the team; those that can receive mail come first.
    /// - Parameters:
    ///   - numbers: which accounts, by the store's numbers; nil for all.
    ///   - day: days since 1970, from which `recent` counts.
    ///   - now: seconds since 1970.
    package func accounts(
        user id: String, numbers: [Int64]? = nil, since day: Int64, now: Int64
    ) throws(StoreFailure) -> [UserExportAccount] {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            var chosen: SQL = ""
            if let numbers {
                guard let first = numbers.first else { return [] }
                let list = numbers.dropFirst().reduce("\(first)" as SQL) { "\($0), \($1)" }
                chosen = "AND a.id IN (\(list))"
            }
            let blocks = try Self.blocks(connection, user: user)
            let rows = try connection.rows(
                """
                SELECT a.id, \(Team.columns), r.local_part, r.domain, r.forwarding_on, r.switches_at, r.switched_at, r.switched_by,
                    r.ends_at_count - \(CounterKind.forwarded.total(account: "a.id")) AS messages_left,
                    a.created_at, a.inbox_id,
                    (SELECT i.number FROM inboxes i WHERE i.id = a.target_inbox) AS inbox_number, a.email_kind, \(GivenName.columns),
                    \(Self.usedDay) AS used_day, \(Self.refusedOfWeek(now)) AS refused,
                    \(Self.usingDomains(now)) AS using_domains,
                    l.at AS last_at, l.sender_key, l.sender_sealed, n.name_key, n.name_sealed, n.note_key, n.note_sealed
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                JOIN users u ON u.id = a.user_id \(GivenName.join)
                LEFT JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
                LEFT JOIN account_notes n ON n.account_id = a.id LEFT JOIN last_mail l ON l.account_id = a.id
                WHERE a.user_id = \(user) \(chosen) ORDER BY t.name, a.id
                """)
            let accounts = try rows.map { row throws(StoreFailure) in
                let number: Int64 = try row["id"]
                let (own, isForwardingOn): (Int64?, Bool?) = try (
                    row["inbox_id"], row["forwarding_on"]
                )
                let consents = try consents(connection, account: number)
                return try UserExportAccount(
                    number: number, team: Team(row: row),
                    address: isForwardingOn == nil ? nil : AddrSpec(row: row),
                    isForwardingOn: isForwardingOn == true, switched: Self.switched(row),
                    blocks: blocks[number] ?? .none,
                    switchesAt: row["switches_at"],
                    messagesLeft: (row["messages_left"] as Int64?).map { Int(max(0, $0)) },
                    createdAt: row["created_at"],
                    inboxNumber: row["inbox_number"],
                    hasOwnInbox: own != nil, emailKind: row["email_kind"],
                    teamName: sealer.teamName(row, user: user),
                    lastUsedDay: row["used_day"],
                    lastMail: lastMail(row, account: number, now: now),
                    refusedOfWeek: row["refused"], usingDomains: row["using_domains"],
                    notes: AccountNotes(row: row, account: number, sealer), consents: consents,
                    move: consents.contains(where: \.isLive)
                        ? nil : move(connection, account: number, now: now),
                    recent: usage(connection, account: number, since: day),
                    total: usage(connection, account: number))
            }
            return accounts.filter(\.isActive) + accounts.filter { !$0.isActive }
        }
    }

    private static func switched(_ row: SQLRow) throws(StoreFailure) -> ForwardingSwitch? {
        guard let at: Int64 = try row["switched_at"],
            let cause: SwitchCause = try row["switched_by"]
        else { return nil }
        return ForwardingSwitch(cause: cause, at: at)
    }

    /// Whether the user chose the inbox for any account that can receive mail.
    package func isChosen(user id: String, inbox number: Int64) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            let account: Int64? = try connection.value(
                """
                SELECT MIN(a.id) FROM accounts a JOIN inboxes i ON i.id = a.inbox_id
                JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
                WHERE a.user_id = \(connection.userNumber(id)) AND i.number = \(number) AND a.has_live_grant = 1
                """)
            return account != nil
        }
    }

    private func consents(
        _ connection: any DatabaseConnection, account: Int64
    ) throws(StoreFailure) -> [UserExportConsent] {
        try connection.rows(
            """
            SELECT g.group_id, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at
            FROM grants g JOIN app_groups p ON p.id = g.group_id
            JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL WHERE g.account_id = \(account) ORDER BY g.id
            """
        ).map { row throws(StoreFailure) in
            let (group, state): (AppGroup, Grant.State) = try (AppGroup(row: row), row["state"])
            return try UserExportConsent(
                group: group,
                apps: connection.rows(
                    """
                    SELECT client_id, name, CASE WHEN icon IS NULL THEN 0 ELSE 1 END AS has_icon FROM apps
                    WHERE group_id = \(group.number) ORDER BY id
                    """
                ).map { app throws(StoreFailure) in
                    try UserExportApp(
                        clientID: app["client_id"], name: app["name"], hasIcon: app["has_icon"])
                },
                isLive: state == .authorized, firstAuthorizedAt: row["first_authorized_at"],
                lastAuthorizedAt: row["last_authorized_at"])
        }
    }

    /// The team to which its app moved, while the old address still accepts mail.
    private func move(
        _ connection: any DatabaseConnection, account: Int64, now: Int64
    ) throws(StoreFailure) -> UserExportMove? {
        try connection.row(
            """
            SELECT t.name, m.new_account, p.primary_client_id, m.moved_at, m.ends_at,
                (SELECT y.name FROM apps y WHERE y.client_id = p.primary_client_id) AS app_name
            FROM account_transfers m JOIN accounts b ON b.id = m.new_account
            JOIN teams t ON t.id = b.team_id AND t.removed_at IS NULL
            JOIN app_transfers x ON x.id = m.transfer_id JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL
            WHERE m.old_account = \(account) AND m.ends_at > \(now) ORDER BY m.moved_at DESC, m.transfer_id DESC LIMIT 1
            """
        ).map { row throws(StoreFailure) in
            try UserExportMove(
                team: row["name"], account: row["new_account"],
                app: (row["primary_client_id"] as String?).map { clientID throws(StoreFailure) in
                    try UserExportApp(clientID: clientID, name: row["app_name"], hasIcon: false)
                }, movedAt: row["moved_at"], endsAt: row["ends_at"])
        }
    }

    /// - Parameter day: days since 1970; nil: all that was ever counted.
    private func usage(
        _ connection: any DatabaseConnection, account: Int64, since day: Int64? = nil
    ) throws(StoreFailure) -> DailyUsage {
        func sum(_ kind: CounterKind) -> SQL {
            guard let day else { return kind.total(account: "\(account)") }
            return """
                (SELECT COALESCE(SUM(c.count), 0) FROM daily_counters c
                    WHERE c.account_id = \(account) AND c.day >= \(day) AND c.kind = \(kind))
                """
        }
        let row = try connection.row(
            "SELECT \(sum(.forwarded)) AS forwarded, \(sum(.replied)) AS replied")
        return try DailyUsage(forwarded: row?["forwarded"] ?? 0, replied: row?["replied"] ?? 0)
    }

    /// All stored data about a user, section by section. Keyed hashes, which no one can read, are
    /// described by their purpose and deletion time. All data comes from one snapshot.
    package func records(user id: String, now: Int64) throws(StoreFailure) -> [UserExportRecords] {
        let earlier = try tombstones.tombstones(user: id, now: now).map { tombstone in
            [
                (name: "day", value: UserExportRecords.Value.day(tombstone.day)),
                (name: "deletions", value: .integer(Int64(tombstone.deletions))),
                (name: "failures", value: .integer(Int64(tombstone.failures))),
            ]
        }
        return try stored(user: id, now: now) + [
            UserExportRecords(name: "earlier_accounts", rows: earlier)
        ]
    }

    private func stored(
        user id: String, now: Int64
    ) throws(StoreFailure) -> [UserExportRecords] {
        var days: [DataClass: Int] = [:]
        for kept in try RetentionRepository(database: database).all() {
            days[kept.dataClass] = kept.days
        }
        return try database.read { [days] connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let oldest: ((DataClass) -> Int64)? =
                try connection.hasConfidentialHold(ofUser: user)
                ? { now - Int64(days[$0] ?? $0.standardDays) * 86_400 } : nil
            return try UserExportSection.all(user: user, id: id, oldest: oldest).map {
                section throws(StoreFailure) in
                UserExportRecords(
                    name: section.name,
                    rows: try connection.rows(section.sql).map { row throws(StoreFailure) in
                        try section.fields.map { field throws(StoreFailure) in
                            (
                                name: field.name,
                                value: try value(field.kind, row, field.name, user: user)
                            )
                        }
                    })
            }
        }
    }

    private func value(
        _ kind: UserExportSection.Kind, _ row: SQLRow, _ name: String, user: Int64
    ) throws(StoreFailure) -> UserExportRecords.Value {
        func read<Stored: SQLReadable>(
            _ value: (Stored) -> UserExportRecords.Value
        ) throws(StoreFailure) -> UserExportRecords.Value {
            let stored: Stored? = try row[name]
            return stored.map(value) ?? .null
        }
        return switch kind {
        case .integer: try read { .integer($0) }
        case .text: try read { .text($0) }
        case .flag: try read { .flag($0) }
        case .time: try read { .time($0) }
        case .day: try read { .day($0) }
        case .words:
            try read { (text: String) in .words(text.split(separator: " ").map(String.init)) }
        case .json: try read { .json($0) }
        case .counter: try read { (kind: CounterKind) in .text(kind.name) }
        case .refusal: try read { (kind: UserRefusal) in .text(kind.name) }
        case .cause: try read { (cause: SwitchCause) in .text(cause.name) }
        case .userName: try sealer.name(row, user: user).map { .text($0) } ?? .null
        case .teamName: try sealer.teamName(row, user: user)?.full.map { .text($0) } ?? .null
        case .passkeyName:
            try SealedValue(row: row, "name").map { sealed throws(StoreFailure) in
                .text(
                    String(
                        decoding: try sealer.open(sealed, .passkeyName(user: user)), as: UTF8.self))
            } ?? .null
        case .accountName, .accountNote:
            try AccountNotes.text(
                row, kind == .accountName ? .name : .note, account: row["account_id"], sealer
            ).map { .text($0) }
                ?? .null
        case .lastSender:
            try SealedValue(row: row, "sender").map { sealed throws(StoreFailure) in
                .text(try sealer.openText(sealed, .lastSender(account: row["account"])))
            } ?? .null
        case .inbox: .text(try sealer.inbox(row, user: user).revealed.wireForm)
        case .correspondent:
            try SealedValue(row: row, "address").map { sealed throws(StoreFailure) in
                .text(try sealer.openAddress(sealed, .storedToken(row["token"])).wireForm)
            } ?? .null
        }
    }
}

extension UserRefusal {
    /// Name in the download.
    fileprivate var name: String {
        switch self {
        case .forwardingOff: "forwarding_off"
        case .stopped: "you_had_stopped"
        case .inbox: "inbox_not_confirmed_or_refusing"
        case .limit: "daily_limit"
        case .stranger: "sender_not_of_the_team"
        case .unproved: "sender_not_proved"
        case .blocked: "sender_blocked"
        case .content: "could_not_be_passed_on"
        case .replaced: "earlier_address"
        case .waiting: "mail_of_the_team_waits"
        case .frozen: "frozen_by_the_operator"
        }
    }
}

extension SwitchCause {
    /// Name in the download.
    fileprivate var name: String {
        switch self {
        case .user: "by_you"
        case .administrator: "by_an_administrator"
        case .day: "on_the_day_you_chose"
        case .count: "after_the_count_you_chose"
        }
    }
}

extension CounterKind {
    /// Name in the download.
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
        case .complaints: "complaints_about_messages_to_you"
        case .riskEvents: "risk_events_of_your_identity_provider"
        case .addressesStored: "correspondents_stored"
        default: "kind_\(rawValue)"
        }
    }
}
