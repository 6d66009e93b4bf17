// What the relay reads, once for each recipient.

import InternetMessage

/// Reads for the path of mail: one query for a relay address, two in one snapshot for an account.
package struct RelayRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    /// Everything about a relay address, or nil for one that does not exist. Letter case aside. One statement; more only for an
    /// address whose app has moved to another team, and while a removed app's consents go.
    /// - Parameter now: seconds since 1970, for `successors` and the day of `forwarded`; nil looks for none.
    package func relayAddress(localPart: String, domain: String, now: Int64? = nil) throws -> RelayAddressRecord? {
        let address = AddrSpec(localPart: localPart.lowercased(), domain: domain.lowercased())
        let arguments: [SQLValue] = [
            .text(address.localPart), .text(address.domain), .optional(now), .optional(now.map(Day.number)),
        ]
        let rows = try database.rows(Self.lookup, arguments)
        guard let first = rows.first else { return nil }
        let hasSuccessors = try now != nil && first.bool(19)
        guard try hasSuccessors || first.bool(21) else { return try record(nil, rows, address) }
        // Together with those that came after it: again, on one snapshot.
        return try database.read { connection in
            guard var record = try self.record(connection, connection.rows(Self.lookup, arguments), address) else { return nil }
            guard let now, hasSuccessors else { return record }
            // Of each account in turn: the sources of a team stand together.
            let rows = try connection.rows(
                Self.successors, [.integer(record.accountNumber), .integer(now), .integer(now), .integer(Day.number(now))])
            var numbers: [Int64] = []
            for row in rows where try !numbers.contains(row.integer(0)) { numbers.append(try row.integer(0)) }
            record.successors = try numbers.compactMap { number in
                try self.record(connection, try rows.filter { try $0.integer(0) == number }, address)
            }
            return record
        }
    }

    private static func sources(_ rows: [SQLRow]) throws -> [OutboundSource] {
        let sources = try rows.filter { !$0.isNull(15) }.map { try OutboundSource(row: $0, first: 15) }
        // Here rather than in the query, where each engine would gather and sort the rows, most often a single one.
        return sources.count < 2
            ? sources : sources.sorted { ($0.value, $0.envelopeDomain ?? "") < ($1.value, $1.envelopeDomain ?? "") }
    }

    /// - Parameters:
    ///   - connection: of the same snapshot; needed where the account's team loses an app.
    ///   - rows: one for each source of the team, everything else repeated; nil of none.
    private func record(
        _ connection: (any DatabaseConnection)?, _ rows: [SQLRow], _ address: AddrSpec
    ) throws -> RelayAddressRecord? {
        guard let row = rows.first else { return nil }
        let current = try row.optionalText(8).map { AddrSpec(localPart: $0, domain: try row.text(9)) }
        var record = RelayAddressRecord(
            accountNumber: try row.integer(0), team: try Team(row: row, first: 1), address: address,
            currentAddress: current ?? address, isForwardingOn: try row.bool(5), isRetired: !row.isNull(6),
            hasLiveGrant: try hasLiveGrant(connection, account: row.integer(0), noted: row.bool(7), losesApps: row.bool(21)),
            inbox: try inbox(row, user: 10, address: 11), isInboxVerified: !row.isNull(13),
            isInboxSuspended: !row.isNull(14), forwarded: Int(try row.optionalInteger(20) ?? 0))
        record.sources = try Self.sources(rows)
        return record
    }

    /// Whether a consent counts that is noted: its app may have been removed, and the consent not yet.
    private func hasLiveGrant(
        _ connection: (any DatabaseConnection)?, account: Int64, noted: Bool, losesApps: Bool
    ) throws -> Bool {
        guard noted, losesApps, let connection else { return noted }
        return try connection.row("SELECT 1 AS live WHERE \(GrantRepository.isLive("\(account)"))") != nil
    }

    private static let lookup = relayAddress + "WHERE r.local_part = ?1 AND r.domain = ?2"
    private static let successors =
        relayAddress + """
            WHERE r.is_current = 1 AND r.account_id IN (SELECT m.new_account FROM \(moves) WHERE m.old_account = ?1 AND m.ends_at > ?2)
            """

    /// Where accounts moved with apps that are still there.
    private static let moves = """
        account_transfers m JOIN app_transfers x ON x.id = m.transfer_id
            JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL
        """

    /// With ten million addresses every index and every row is on its own page, so as few as possible are looked at: the
    /// account's current address only where this is an earlier one (no row has a NULL account).
    private static let relayAddress = """
        SELECT a.id, t.id, t.handle, t.name, t.created_at, r.forwarding_on, r.retired_at,
            a.has_live_grant,
            CASE WHEN r.is_current = 1 THEN r.local_part ELSE c.local_part END,
            CASE WHEN r.is_current = 1 THEN r.domain ELSE c.domain END,
            a.user_id, i.address_key, i.address_sealed, i.verified_at, i.suspended_at,
            s.kind, s.value, s.envelope_domain, s.created_at,
            CASE WHEN EXISTS (SELECT 1 FROM \(moves) WHERE m.old_account = a.id AND m.ends_at > ?3) THEN 1 ELSE 0 END,
            (SELECT n.count FROM daily_counters n WHERE n.account_id = a.id AND n.day = ?4 AND n.kind = 1),
            t.loses_apps
        FROM relay_addresses r
        JOIN accounts a ON a.id = r.account_id
        JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
        LEFT JOIN relay_addresses c ON c.account_id = CASE WHEN r.is_current = 1 THEN NULL ELSE a.id END AND c.is_current = 1
        LEFT JOIN inboxes i ON i.id = a.target_inbox
        LEFT JOIN outbound_sources s ON s.team_id = t.id

        """

    /// Everything about an account by the number in a token, or nil for one that does not exist.
    /// - Parameter day: whose counts `usage` holds, days since 1970 UTC.
    package func account(number: Int64, day: Int64) throws -> AccountRecord? {
        try database.read { connection in
            // One row for each inbox of the user, the account's columns repeated.
            let rows = try connection.rows(
                """
                SELECT t.id, t.handle, t.name, t.created_at, c.local_part, c.domain, c.forwarding_on,
                    a.has_live_grant, a.shares_name, a.user_id, u.name_key, u.name_sealed,
                    (SELECT n.count FROM daily_counters n WHERE n.account_id = a.id AND n.day = ?2 AND n.kind = 1),
                    (SELECT n.count FROM daily_counters n WHERE n.account_id = a.id AND n.day = ?2 AND n.kind = 2),
                    a.target_inbox, i.id, i.address_key, i.address_sealed, i.verified_at, i.reply_only, i.is_default, c.is_current,
                    i.suspended_at, t.loses_apps
                FROM accounts a
                JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                LEFT JOIN users u ON u.id = a.user_id
                LEFT JOIN relay_addresses c ON c.account_id = a.id
                    AND c.ordinal = (SELECT MAX(x.ordinal) FROM relay_addresses x WHERE x.account_id = a.id)
                LEFT JOIN inboxes i ON i.user_id = a.user_id
                WHERE a.id = ?1 ORDER BY i.id
                """, [.integer(number), .integer(day)])
            guard let first = rows.first else { return nil }
            let team = try Team(row: first, first: 0)
            let targetNumber = try first.optionalInteger(14)
            var inboxes: [InboxRecord] = []
            var target: InboxRecord?
            for row in rows {
                guard let address = try inbox(row, user: 9, address: 16) else { continue }
                let record = InboxRecord(
                    address: address, isVerified: !row.isNull(18), isReplyOnly: try row.bool(19), isDefault: try row.bool(20),
                    isSuspended: !row.isNull(22))
                inboxes.append(record)
                if try row.integer(15) == targetNumber { target = record }
            }
            let last = try first.optionalText(4).map { AddrSpec(localPart: $0, domain: try first.text(5)) }
            let isCurrent = try first.optionalInteger(21) == 1
            let name = try first.optionalInteger(9).flatMap { try sealer.name(first, 10, user: $0) }
            return AccountRecord(
                accountNumber: number, team: team,
                currentAddress: isCurrent ? last : nil, lastAddress: last,
                isForwardingOn: try isCurrent && first.bool(6),
                hasLiveGrant: try hasLiveGrant(connection, account: number, noted: first.bool(7), losesApps: first.bool(23)),
                inbox: target?.address, isInboxVerified: target?.isVerified ?? false,
                isInboxSuspended: target?.isSuspended ?? false, inboxes: inboxes,
                sharesName: try first.bool(8), userName: name, sources: try connection.sources(teamNumber: team.number),
                usage: DailyUsage(
                    forwarded: Int(try first.optionalInteger(12) ?? 0), replied: Int(try first.optionalInteger(13) ?? 0)))
        }
    }

    /// An inbox from columns `address` and `address + 1`, bound to the user in column `user`; nil for NULL.
    private func inbox(_ row: SQLRow, user: Int, address: Int) throws -> InboxAddress? {
        guard let number = try row.optionalInteger(user), !row.isNull(address) else { return nil }
        return try sealer.inbox(row, address, user: number)
    }
}
