// Grants that follow an app to another team, many at a time.

import Database
import InternetMessage
import MailCrypto
import Support

/// Moves a range of a group's grants with few statements. It reads only the rows that it moves,
/// because users sign up at the same time.
struct TransferBatch {
    let addresses: AddressRepository
    let transfer: Int64
    let group: Int64
    let team: Team
    let endsAt: Int64
    let change: Change

    /// A grant of a user who has no account with the new team yet.
    private struct Grant {
        let number: Int64
        let oldAccount: Int64
        let user: Int64
        let userID: String
        let inbox: Int64?
        let sharesName: Bool
        let hasTypedName: Bool
        let emailKind: EmailKind
        let isForwardingOff: Bool
        let isLive: Bool
        let hasSubject: Bool
        let sub: String
        var newAccount: Int64 = 0
    }

    /// Reads the grants after the grant `after`, and moves those that have not moved yet.
    /// - Returns: the last one, and how many there were; nil if there were none.
    func move(
        _ connection: any DatabaseConnection, after: Int64, limit: Int
    ) throws(StoreFailure) -> (last: Int64, count: Int)? {
        let found = try connection.rows(
            "SELECT id, account_id FROM grants WHERE group_id = \(group) AND id > \(after) ORDER BY id \(SQL.limit(limit))"
        ).map { row throws(StoreFailure) in
            try (number: row["id"] as Int64, account: row["account_id"] as Int64)
        }
        guard let last = found.last else { return nil }
        var waiting = try grants(
            connection,
            Dictionary(
                found.map { ($0.account, $0.number) }, uniquingKeysWith: { first, _ in first }))
        try addAccounts(connection, &waiting)
        try addAddresses(connection, waiting.filter { $0.emailKind == .privateRelay })
        try connection.update(
            waiting.map { [$0.number, $0.newAccount, change.now] }, of: "grants", key: "id",
            "account_id = v.column2, transferred_at = v.column3")
        try connection.insert(
            waiting.filter { !$0.hasSubject }.map { row throws(StoreFailure) in
                [
                    Base32.characters(fromRandom: try SecureRandom.octets(32)), row.oldAccount,
                    team.number, change.now,
                ]
            }, into: "transfer_subs (transfer_sub, account_id, target_team, created_at)")
        try connection.insert(
            waiting.map { [$0.oldAccount, transfer, $0.newAccount, change.now, endsAt] },
            into: "account_transfers (old_account, transfer_id, new_account, moved_at, ends_at)",
            "ON CONFLICT (old_account, transfer_id) DO NOTHING")
        return (last.number, found.count)
    }

    /// The grants that have yet to move, by their accounts. The grants of a removed account do not
    /// move, even if rows of it are left. Less common cases are moved here at once, one by one.
    private func grants(
        _ connection: any DatabaseConnection, _ numbers: [Int64: Int64]
    ) throws(StoreFailure) -> [Grant] {
        // PostgreSQL may evaluate EXISTS by reading the whole table once. Then each batch would
        // read all accounts that moved before it.
        let rows = try connection.rows(for: numbers.keys.sorted()) { list in
            """
            SELECT a.id, a.user_id, u.handle, a.inbox_id, a.shares_name, a.email_kind,
                COALESCE((SELECT 1 FROM grants g
                    WHERE g.account_id = a.id AND \(SQL.filter("g.group_id")) = \(group) AND g.state = 'authorized' LIMIT 1), 0)
                    AS is_live,
                COALESCE((SELECT 1 FROM relay_addresses o
                    WHERE o.account_id = a.id AND o.is_current = 1 AND o.forwarding_on = 0 LIMIT 1), 0) AS is_forwarding_off,
                COALESCE((SELECT 1 FROM transfer_subs s
                    WHERE s.account_id = a.id AND s.target_team = \(team.number) LIMIT 1), 0) AS has_subject,
                COALESCE((SELECT 1 FROM given_names y WHERE y.account_id = a.id), 0) AS has_typed_name,
                COALESCE((SELECT 1 FROM accounts k
                    WHERE k.user_id = a.user_id AND \(SQL.filter("k.team_id")) = \(team.number) LIMIT 1), 0) AS is_known
            FROM accounts a JOIN teams o ON o.id = a.team_id AND o.removed_at IS NULL
            LEFT JOIN users u ON u.id = a.user_id WHERE a.id IN \(list) AND a.team_id <> \(team.number)
            """
        }
        var grants: [Grant] = []
        for row in rows {
            let account: Int64 = try row["id"]
            guard let number = numbers[account] else { continue }
            guard let user: Int64 = try row["user_id"], let userID: String = try row["handle"],
                try !row["is_known"]
            else {
                try TransferRepository.move(connection, grant: number, addresses: addresses, change)
                continue
            }
            grants.append(
                try Grant(
                    number: number, oldAccount: account, user: user, userID: userID,
                    inbox: row["inbox_id"],
                    sharesName: row["shares_name"], hasTypedName: row["has_typed_name"],
                    emailKind: row["email_kind"],
                    isForwardingOff: row["is_forwarding_off"],
                    isLive: row["is_live"], hasSubject: row["has_subject"],
                    sub: Base32.characters(
                        fromRandom: addresses.random(AddressRepository.subLength))))
        }
        return grants
    }

    /// The user's choices for the old team apply to the new one.
    private func addAccounts(
        _ connection: any DatabaseConnection, _ grants: inout [Grant]
    ) throws(StoreFailure) {
        let retired = try connection.retired(grants.map { addresses.marks.retired($0.sub) })
        guard retired.isEmpty else {
            throw .permanent(.unexpectedData, "160 random bits came twice")
        }
        // The rows have the right has_live_grant from the start, so the trigger of grants writes no
        // second version of the account.
        let added = try connection.insert(
            grants.map {
                [
                    team.number, $0.user, $0.sub, $0.inbox, $0.sharesName, $0.emailKind, change.now,
                    $0.isLive,
                ]
            },
            into:
                "accounts (team_id, user_id, sub, inbox_id, shares_name, email_kind, created_at, has_live_grant)",
            "RETURNING sub, id")
        var numbers: [String: Int64] = [:]
        for row in added { numbers[try row["sub"]] = try row["id"] }
        for index in grants.indices {
            guard let number = numbers[grants[index].sub] else {
                throw .permanent(.unexpectedData, "an account that was just added is missing")
            }
            grants[index].newAccount = number
        }
        try TransferRepository.copyNames(
            connection, grants.filter(\.hasTypedName).map { ($0.oldAccount, $0.newAccount) })
    }

    private func addAddresses(
        _ connection: any DatabaseConnection, _ grants: [Grant]
    ) throws(StoreFailure) {
        let issued = try addresses.newAddresses(
            connection,
            grants.map {
                (account: $0.newAccount, isForwardingOn: !$0.isForwardingOff, since: change.now)
            })
        try connection.audit(
            change,
            grants.compactMap { grant in
                issued[grant.newAccount].map {
                    (
                        "address.issue", "account:\(grant.newAccount)",
                        "team:\(team.id) user:\(grant.userID) \($0.wireForm)"
                    )
                }
            })
    }
}
