// The reads of the relay for each recipient.

import Database
import InternetMessage
import RelayCore

/// Reads for the mail path: one query for a relay address, two in one snapshot for an account.
package struct RelayRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    /// Everything about a relay address, or nil if it does not exist. Ignores letter case. Uses one
    /// statement, and more only in two cases: the address's app has moved to another team, or a
    /// removed app's consents are being deleted.
    /// - Parameter now: seconds since 1970, for `successors` and the day of
    ///   `forwarded`; nil reads neither.
    package func relayAddress(
        localPart: String, domain: String, now: Int64? = nil
    ) throws(StoreFailure) -> RelayAccount? {
        let address = AddrSpec(localPart: localPart.lowercased(), domain: domain.lowercased())
        let lookup: SQL = """
            \(Self.relayAddress(now)) WHERE r.local_part = \(address.localPart) AND r.domain = \(address.domain)
            """
        let rows = try database.rows(lookup)
        guard let first = rows.first else { return nil }
        let (successors, losesApps): (Bool, Bool) = try (
            first["has_successors"], first["loses_apps"]
        )
        let hasSuccessors = now != nil && successors
        guard hasSuccessors || losesApps else { return try record(nil, rows, address) }
        // Read again, together with its successors, on one snapshot.
        return try database.read { connection throws(StoreFailure) in
            guard var record = try self.record(connection, connection.rows(lookup), address) else {
                return nil
            }
            guard let now, hasSuccessors, !record.isRetired else { return record }
            let rows = try connection.rows(
                """
                \(Self.relayAddress(now)) WHERE r.is_current = 1 AND r.account_id IN (
                    SELECT m.new_account FROM account_transfers m JOIN app_transfers x ON x.id = m.transfer_id
                    JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL
                    WHERE m.old_account = \(record.number.stored) AND m.ends_at > \(now))
                """)
            // Grouped by account: each row of an account is one source of its team.
            var successors: [(account: Int64, rows: [SQLRow])] = []
            for row in rows {
                let account: Int64 = try row["id"]
                let place = successors.firstIndex { $0.account == account }
                if let place {
                    successors[place].rows.append(row)
                } else {
                    successors.append((account, [row]))
                }
            }
            for successor in successors {
                let found = try self.record(
                    connection, successor.rows, address, isWanted: record.isForwardingOn)
                if let found { record.successors.append(found) }
            }
            return record
        }
    }

    private static func sources(_ rows: [SQLRow]) throws(StoreFailure) -> [RegisteredSource] {
        var sources: [OutboundSource] = []
        for row in rows where try row["kind"] as String? != nil {
            sources.append(try OutboundSource(row: row))
        }
        // Sorted here, because in the query each engine would collect and sort the rows, although
        // there is usually only one.
        if sources.count > 1 {
            sources.sort {
                ($0.value, $0.envelopeDomain ?? "") < ($1.value, $1.envelopeDomain ?? "")
            }
        }
        return sources.compactMap(\.registered)
    }

    /// - Parameters:
    ///   - connection: of the same snapshot; required if the account's team loses an app.
    ///   - rows: one for each source of the team, with the same values in all other columns; an
    ///     empty array gives nil.
    ///   - isWanted: whether the user wants mail through the requested address.
    private func record(
        _ connection: (any DatabaseConnection)?, _ rows: [SQLRow], _ address: AddrSpec,
        isWanted: Bool = true
    ) throws(StoreFailure) -> RelayAccount? {
        guard let row = rows.first else { return nil }
        let (number, team, current): (Int64, Team, String?) = try (
            row["id"], Team(row: row), row["local_part"]
        )
        let (retiredAt, isForwardingOn): (Int64?, Bool) = try (
            row["retired_at"], row["forwarding_on"]
        )
        return try RelayAccount(
            number: AccountNumber(stored: number), relayAddress: address,
            currentAddress: current == nil ? nil : AddrSpec(row: row),
            isForwardingOn: isWanted && isForwardingOn,
            isRetired: retiredAt != nil,
            hasLiveGrant: hasLiveGrant(connection, row, account: number), inbox: inbox(row),
            inboxes: [], sources: Self.sources(rows), hasBlocks: row["has_blocks"], team: team.id,
            identity: OutgoingIdentityName(row["outgoing_identity"] as String),
            freeze: AccountFreeze.of(row), counted: row["forwarded"] ?? 0)
    }

    /// Whether a recorded consent counts. Its app may already be removed while the consent still
    /// exists.
    private func hasLiveGrant(
        _ connection: (any DatabaseConnection)?, _ row: SQLRow, account: Int64
    ) throws(StoreFailure) -> Bool {
        let (isNoted, losesApps): (Bool, Bool) = try (row["has_live_grant"], row["loses_apps"])
        guard isNoted, losesApps, let connection else { return isNoted }
        return try connection.row("SELECT 1 AS live WHERE \(GrantRepository.isLive("\(account)"))")
            != nil
    }

    /// With ten million addresses every index entry and every row is on a separate page, so the
    /// query reads as few as possible. It reads the account's current address only if this is an
    /// earlier one (no row has a NULL account).
    private static func relayAddress(_ now: Int64?) -> SQL {
        """
        SELECT a.id, \(Team.columns), r.forwarding_on, r.retired_at, a.has_live_grant,
            CASE WHEN r.is_current = 1 THEN r.local_part ELSE c.local_part END AS local_part,
            CASE WHEN r.is_current = 1 THEN r.domain ELSE c.domain END AS domain,
            a.user_id, i.address_key, i.address_sealed, i.verified_at, i.suspended_at,
            s.kind, s.value, s.envelope_domain, s.created_at,
            CASE WHEN EXISTS (SELECT 1 FROM account_transfers m WHERE m.old_account = a.id AND m.ends_at > \(now)) THEN 1 ELSE 0 END
                AS has_successors,
            (SELECT n.count FROM daily_counters n WHERE n.account_id = a.id AND n.day = \(now.map(Day.number)) AND n.kind = 1)
                AS forwarded,
            CASE WHEN EXISTS (SELECT 1 FROM account_blocks b WHERE b.account_id = a.id) THEN 1 ELSE 0 END AS has_blocks,
            t.loses_apps, t.outgoing_identity, \(AccountFreeze.column)
        FROM relay_addresses r
        JOIN accounts a ON a.id = r.account_id
        JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
        LEFT JOIN relay_addresses c ON c.account_id = CASE WHEN r.is_current = 1 THEN NULL ELSE a.id END AND c.is_current = 1
        LEFT JOIN inboxes i ON i.id = a.target_inbox
        LEFT JOIN outbound_sources s ON s.team_id = t.id
        """
    }

    /// Whether the account's user has blocked this address, its domain or a parent domain.
    package func isBlocked(_ author: AddrSpec, account: AccountNumber) throws(StoreFailure) -> Bool
    {
        let values = SourceRepository.values(covering: author).reduce("''" as SQL) {
            "\($0), \($1)"
        }
        return try !database.rows(
            "SELECT 1 FROM account_blocks WHERE account_id = \(account.stored) AND value IN (\(values))"
        )
        .isEmpty
    }

    /// Everything about an account by the number in a token, or nil if it does not exist.
    /// - Parameter day: the day of `counted`, days since 1970 UTC.
    package func account(_ account: AccountNumber, day: Int64) throws(StoreFailure) -> RelayAccount?
    {
        let number = account.stored
        return try database.read { connection throws(StoreFailure) in
            // One row for each inbox of the user; every row repeats the account's columns.
            let rows = try connection.rows(
                """
                SELECT \(Team.columns), c.local_part, c.domain, c.forwarding_on, a.has_live_grant, a.user_id, \(GivenName.columns),
                    (SELECT n.count FROM daily_counters n WHERE n.account_id = a.id AND n.day = \(day) AND n.kind = 2) AS replied,
                    a.target_inbox, i.id AS inbox_id, i.address_key, i.address_sealed, i.verified_at, i.reply_only, i.is_default,
                    c.is_current, i.suspended_at, t.loses_apps,
                    \(AccountFreeze.column)
                FROM accounts a
                JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                LEFT JOIN users u ON u.id = a.user_id \(GivenName.join)
                LEFT JOIN relay_addresses c ON c.account_id = a.id
                    AND c.ordinal = (SELECT MAX(x.ordinal) FROM relay_addresses x WHERE x.account_id = a.id)
                LEFT JOIN inboxes i ON i.user_id = a.user_id
                WHERE a.id = \(number) ORDER BY i.id
                """)
            guard let first = rows.first else { return nil }
            let (team, user, targetNumber): (Team, Int64?, Int64?) = try (
                Team(row: first), first["user_id"], first["target_inbox"]
            )
            var (inboxes, target): ([UserInbox], UserInbox?) = ([], nil)
            for row in rows {
                guard let inbox = try inbox(row) else { continue }
                inboxes.append(inbox)
                if try row["inbox_id"] == targetNumber { target = inbox }
            }
            let (isCurrent, isForwardingOn): (Bool?, Bool?) = try (
                first["is_current"], first["forwarding_on"]
            )
            // Mail cannot reach an account without any address.
            guard let isCurrent else { return nil }
            let address = try AddrSpec(row: first)
            return try RelayAccount(
                number: account, relayAddress: address, currentAddress: isCurrent ? address : nil,
                isForwardingOn: isCurrent && isForwardingOn == true, isRetired: !isCurrent,
                hasLiveGrant: hasLiveGrant(connection, first, account: number), inbox: target,
                inboxes: inboxes,
                sharedName: user.flatMap { user throws(StoreFailure) in
                    try sealer.teamName(first, user: user)?.full
                },
                sources: connection.sources(teamNumber: team.number).compactMap(\.registered),
                team: team.id, freeze: AccountFreeze.of(first), counted: first["replied"] ?? 0)
        }
    }

    /// What an account's return paths are written against: the domains of its team, and all of its
    /// relay addresses. Nil if the account was deleted.
    package func senderContext(_ account: AccountNumber) throws(StoreFailure) -> SenderContext? {
        try database.read { connection throws(StoreFailure) in
            guard
                let team: Int64 = try connection.value(
                    "SELECT team_id FROM accounts WHERE id = \(account.stored)")
            else { return nil }
            let addresses = try connection.rows(
                """
                SELECT local_part, domain FROM relay_addresses WHERE account_id = \(account.stored)
                ORDER BY ordinal DESC
                """)
            return try SenderContext(
                sources: connection.sources(teamNumber: team).compactMap(\.registered),
                relayAddresses: addresses.map { row throws(StoreFailure) in try AddrSpec(row: row) }
            )
        }
    }

    /// The inbox of a row, bound to the user in `user_id`; nil for NULL.
    func inbox(_ row: SQLRow) throws(StoreFailure) -> UserInbox? {
        guard let address = try inboxAddress(row) else { return nil }
        let (verifiedAt, suspendedAt): (Int64?, Int64?) = try (
            row["verified_at"], row["suspended_at"]
        )
        return UserInbox(
            address: address, isVerified: verifiedAt != nil, isSuspended: suspendedAt != nil)
    }

    func inboxAddress(_ row: SQLRow) throws(StoreFailure) -> InboxAddress? {
        guard let user: Int64 = try row["user_id"],
            let sealed = try SealedValue(row: row, "address")
        else { return nil }
        return InboxAddress(try sealer.openAddress(sealed, .inbox(user: user)))
    }
}
