// Adds rows of new users, many with one statement. Most rows of an import are such rows, so this
// makes an import on a server fast.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// Selects rows whose users are new and that share no value with other rows of the batch, so that
/// their order does not matter. All other rows are added one by one elsewhere.
struct ImportBatch {
    /// The number of a user's first inbox.
    private static let inboxNumber: Int64 = 1

    let imports: ImportRepository
    let change: Change

    /// A row that can be added together with others.
    private struct Candidate {
        let index: Int
        let row: ImportRow
        let name: String?
        let inbox: ImportRow.Inbox
        let entry: BlindIndex.Entry
        var team: Team?
        var group: AppGroup?
        var sub: String
        var user: Int64 = 0
        var account: Int64 = 0
    }

    /// Adds the rows that can be added together.
    /// - Returns: the outcome of each row; nil for rows that were not added.
    func apply(
        _ connection: any DatabaseConnection, _ rows: [ImportRow]
    ) throws(StoreFailure) -> [ImportOutcome?] {
        var outcomes = [ImportOutcome?](repeating: nil, count: rows.count)
        var candidates = try known(connection, new(connection, alone(rows)))
        guard !candidates.isEmpty else { return outcomes }
        try addUsers(connection, &candidates)
        try addInboxes(connection, candidates)
        var withAccounts = candidates.filter { $0.team != nil }
        try addAccounts(connection, &withAccounts)
        try addAddresses(connection, withAccounts)
        for candidate in candidates {
            var counts = ImportCounts()
            (counts.users, counts.inboxes) = (1, 1)
            if candidate.team != nil {
                (counts.accounts, counts.grants, counts.addresses) = (1, 1, 1)
            }
            outcomes[candidate.index] = .done(counts)
        }
        return outcomes
    }

    // MARK: Which

    /// Well-formed rows that share no name with another row.
    private func alone(_ rows: [ImportRow]) throws(StoreFailure) -> [Candidate] {
        var handles: [String: Int] = [:]
        var names: [String: Int] = [:]
        var indexes: [[UInt8]: Int] = [:]
        for row in rows {
            handles[row.user, default: 0] += 1
            if let sub = row.account?.sub { names[sub, default: 0] += 1 }
            if let address = row.account?.address { names[address.wireForm, default: 0] += 1 }
            if let inbox = row.inbox {
                indexes[imports.index.entry(inbox.address.revealed).exact, default: 0] += 1
            }
        }
        var candidates: [Candidate] = []
        for (index, row) in rows.enumerated() {
            guard let inbox = row.inbox, !inbox.isReplyOnly, handles[row.user] == 1,
                (try? Identifier.checked(row.user, "a user's identifier")) == row.user
            else { continue }
            let name = row.name.flatMap { try? Identifier.checkedName($0) }
            guard (row.name == nil) == (name == nil) else { continue }
            let address = inbox.address.revealed
            if let domain = HostName(address.domain),
                imports.relayDomains.contains(where: domain.isWithin)
            {
                continue
            }
            let entry = imports.index.entry(address)
            guard indexes[entry.exact] == 1 else { continue }
            let given = [row.account?.sub, row.account?.address?.wireForm].compactMap { $0 }
            guard given.allSatisfy({ names[$0] == 1 }),
                row.account?.address != nil || !imports.relayDomains.isEmpty
            else {
                continue
            }
            let sub = try imports.sub(row.account?.sub)
            candidates.append(
                Candidate(index: index, row: row, name: name, inbox: inbox, entry: entry, sub: sub))
        }
        return candidates
    }

    /// Candidates whose values do not exist in the store yet.
    private func new(
        _ connection: any DatabaseConnection, _ candidates: [Candidate]
    ) throws(StoreFailure) -> [Candidate] {
        let users = try Set<String>(
            connection.values(for: candidates.map(\.row.user)) {
                "SELECT handle FROM users WHERE handle IN \($0)"
            })
        let searched = candidates.filter(\.inbox.isVerified).map {
            imports.index.search($0.inbox.address.revealed).exact
        }
        let owned = try Set(
            connection.values(for: searched.flatMap { [$0.0, $0.1] }) {
                "SELECT address_index FROM inboxes WHERE address_index IN \($0) AND verified_at IS NOT NULL"
            }.map(SQLValue.blob))
        let given = candidates.compactMap(\.row.account)
        let subs = try Set<String>(
            connection.values(for: given.compactMap(\.sub)) {
                "SELECT sub FROM accounts WHERE sub IN \($0)"
            })
        let taken = Set(
            try connection.rows(for: given.compactMap(\.address?.localPart)) {
                "SELECT local_part, domain FROM relay_addresses WHERE local_part IN \($0)"
            }.map(AddrSpec.init(row:)))
        func marks(_ account: ImportRow.Account) -> [[UInt8]] {
            [account.sub, account.address?.wireForm].compactMap { $0 }.map(imports.marks.retired)
        }
        let retired = try connection.retired(given.flatMap(marks))
        return candidates.filter { candidate in
            let search = imports.index.search(candidate.inbox.address.revealed).exact
            guard !users.contains(candidate.row.user),
                !candidate.inbox.isVerified
                    || !(owned.contains(search.0) || owned.contains(search.1))
            else { return false }
            guard let account = candidate.row.account else { return true }
            return !(account.sub.map(subs.contains) ?? false)
                && retired.isDisjoint(with: marks(account))
                && !(account.address.map { taken.contains($0) } ?? false)
        }
    }

    /// Candidates whose team and group of apps exist, with the numbers of both.
    private func known(
        _ connection: any DatabaseConnection, _ candidates: [Candidate]
    ) throws(StoreFailure) -> [Candidate] {
        struct Place: Hashable {
            let team: String
            let app: String?
        }
        var places: [Place: (Team, AppGroup)?] = [:]
        func find(_ place: Place) throws(StoreFailure) -> (Team, AppGroup)? {
            do {
                let team = try connection.team(place.team)
                if let app = place.app {
                    return (team, try connection.appGroup(team: team, clientID: app))
                }
                return try connection.knownUsualGroup(team: team).map { (team, $0) }
            } catch  where error.isRefusal {
                return nil
            }
        }
        var known: [Candidate] = []
        for var candidate in candidates {
            if let account = candidate.row.account {
                let place = Place(team: account.team, app: account.app)
                if places[place] == nil { places[place] = .some(try find(place)) }
                guard let found = places[place] ?? nil else { continue }
                (candidate.team, candidate.group) = (found.0, found.1)
            }
            known.append(candidate)
        }
        return known
    }

    // MARK: Adding

    private func addUsers(
        _ connection: any DatabaseConnection, _ candidates: inout [Candidate]
    ) throws(StoreFailure) {
        let added = try connection.insert(
            candidates.map { [$0.row.user, change.now, Self.inboxNumber] },
            into: "users (handle, created_at, last_inbox_number)", "RETURNING handle AS name, id")
        try Self.number(&candidates, \.user, by: \.row.user, added)
        try imports.sealer.require(connection)
        var names: [[any SQLBindable]] = []
        for candidate in candidates {
            guard let name = candidate.name else { continue }
            let sealed = try imports.sealer.seal(name, .userName(user: candidate.user), nil)
            names.append([candidate.user, sealed.key, sealed.octets])
        }
        try connection.update(
            names, of: "users", key: "id", "name_key = v.column2, name_sealed = v.column3")
        try connection.audit(change, candidates.map { ("user.add", "user:\($0.row.user)", "") })
    }

    /// Mail goes to the first inbox of a user.
    private func addInboxes(
        _ connection: any DatabaseConnection, _ candidates: [Candidate]
    ) throws(StoreFailure) {
        guard let first = candidates.first else { return }
        try connection.require(.index, first.entry.key)
        try connection.insert(
            candidates.map { candidate throws(StoreFailure) in
                let address = candidate.inbox.address.revealed
                let sealed = try imports.sealer.seal(address, .inbox(user: candidate.user), nil)
                return [
                    candidate.user, sealed.key, sealed.octets, candidate.entry.key,
                    candidate.entry.exact,
                    candidate.entry.canonical, 1, Day.number(change.now), change.now,
                    candidate.inbox.isVerified ? change.now : nil, imports.index.velocity(address),
                    imports.marks.inbox(canonicalIndex: imports.index.lasting(address)),
                    Self.inboxNumber,
                ]
            },
            into: """
                inboxes (user_id, address_key, address_sealed, index_key, address_index, canonical_index, is_default,
                    failures_from, created_at, verified_at, velocity_index, tombstone_index, number)
                """)
        try connection.audit(
            change,
            candidates.map {
                (
                    "inbox.add", "user:\($0.row.user)",
                    "inbox \(Self.inboxNumber)\($0.inbox.isVerified ? " verified" : "")"
                )
            })
    }

    private func addAccounts(
        _ connection: any DatabaseConnection, _ candidates: inout [Candidate]
    ) throws(StoreFailure) {
        // The rows have a live grant from the start, so the trigger of grants writes no second
        // version of the account.
        let added = try connection.insert(
            candidates.compactMap { candidate in
                guard let team = candidate.team, let account = candidate.row.account else {
                    return nil
                }
                return [
                    team.number, candidate.user, candidate.sub, account.sharesName,
                    account.since ?? change.now, true,
                ]
            }, into: "accounts (team_id, user_id, sub, shares_name, created_at, has_live_grant)",
            "RETURNING sub AS name, id")
        try Self.number(&candidates, \.account, by: \.sub, added)
        try connection.insert(
            candidates.compactMap { candidate in
                guard let group = candidate.group, let account = candidate.row.account else {
                    return nil
                }
                let since = account.since ?? change.now
                return [
                    candidate.account, group.number, Grant.State.authorized, since, since,
                    account.realUserStatus,
                    account.lastSeen ?? change.now,
                ]
            },
            into: """
                grants (account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status,
                    last_seen_at)
                """)
        try connection.audit(
            change,
            candidates.compactMap { candidate in
                guard let team = candidate.team, let group = candidate.group else { return nil }
                return (
                    "grant.authorize", "account:\(candidate.account)",
                    "team:\(team.id) app:\(group.title)"
                )
            })
    }

    private func addAddresses(
        _ connection: any DatabaseConnection, _ candidates: [Candidate]
    ) throws(StoreFailure) {
        var issued = try imports.addresses.newAddresses(
            connection,
            candidates.compactMap { candidate in
                guard let account = candidate.row.account, account.address == nil else {
                    return nil
                }
                return (candidate.account, account.isForwardingOn, change.now)
            })
        try connection.insert(
            candidates.compactMap { candidate in
                guard let account = candidate.row.account, let address = account.address else {
                    return nil
                }
                issued[candidate.account] = address
                return [
                    candidate.account, 1, address.localPart, address.domain,
                    account.since ?? change.now, account.isForwardingOn,
                ]
            },
            into:
                "relay_addresses (account_id, ordinal, local_part, domain, created_at, forwarding_on)"
        )
        try connection.audit(
            change,
            candidates.compactMap { candidate in
                guard let account = candidate.row.account, let address = issued[candidate.account]
                else { return nil }
                return (
                    "address.issue", "account:\(candidate.account)",
                    "user:\(candidate.row.user) \(address.wireForm)\(account.isForwardingOn ? "" : " off")"
                )
            })
    }

    /// Sets the numbers of added rows, from rows of `name` and `id`.
    private static func number(
        _ candidates: inout [Candidate], _ number: WritableKeyPath<Candidate, Int64>,
        by name: KeyPath<Candidate, String>,
        _ rows: [SQLRow]
    ) throws(StoreFailure) {
        var numbers: [String: Int64] = [:]
        for row in rows { numbers[try row["name"]] = try row["id"] }
        for index in candidates.indices {
            guard let found = numbers[candidates[index][keyPath: name]] else {
                throw .permanent(.unexpectedData, "a row that was just added is missing")
            }
            candidates[index][keyPath: number] = found
        }
    }
}
