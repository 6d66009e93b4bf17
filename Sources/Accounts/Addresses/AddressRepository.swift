// Relay addresses of users with teams: issued, found, switched and retired.

import Database
import InternetMessage
import MailCrypto
import Support

/// The address that `issue` found or created.
package struct IssuedAddress: Sendable {
    package let address: RelayAddress
    /// Whether `issue` created it.
    package let isNew: Bool
    /// Whether mail can reach the user: false until an inbox is verified.
    package let hasVerifiedInbox: Bool
}

/// The cause of a switch of forwarding. The raw values are in databases: never change or reuse one.
package enum SwitchCause: Int64, SQLCodable, Sendable, Hashable, CaseIterable {
    /// The user, now.
    case user = 1
    /// An administrator.
    case administrator = 2
    /// The user, who chose this day earlier.
    case day = 3
    /// The user, who chose this number of messages earlier.
    case count = 4
}

/// Issues, finds and switches relay addresses.
package struct AddressRepository: Sendable {
    /// Attempts to find a free local part. With 50 bits even a second attempt is rare.
    private static let attempts = 8
    /// Characters of `sub`: 160 bits.
    package static let subLength = 32

    let database: any Database
    package let events: AccountEvents
    let marks: TombstoneMarks
    let relayDomains: [HostName]
    let addressLength: Int
    /// Returns this number of random octets; replaceable, so that collisions can be tested.
    package var random: @Sendable (Int) throws(StoreFailure) -> [UInt8] = {
        count throws(StoreFailure) in
        try SecureRandom.octets(count)
    }

    init(events: AccountEvents, marks: TombstoneMarks, relayDomains: [HostName], addressLength: Int)
    {
        database = events.database
        self.events = events
        self.marks = marks
        self.relayDomains = relayDomains
        self.addressLength = min(max(addressLength, 10), 16)
    }

    /// The user's address for the team; created if there is none.
    ///
    /// Consent goes to the group of the named app. If no app is named, a live grant is enough;
    /// without one, consent goes to the team's oldest group. For a team without apps this is a
    /// mail-only group, so that a team can relay before it has apps.
    package func issue(
        team teamID: String, user userID: String, app clientID: String? = nil,
        sharesName: Bool? = nil, _ change: Change
    ) throws(StoreFailure) -> IssuedAddress {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let team = try connection.team(teamID)
            let user = try connection.userNumber(userID)
            let account = try account(connection, team: team, user: user, change)
            try tracker.snapshot(.account(account))
            try authorize(connection, account: account, team: team, app: clientID, change)
            if let sharesName {
                try connection.run(
                    "UPDATE accounts SET shares_name = \(sharesName) WHERE id = \(account)")
            }
            let (address, isNew) = try current(
                connection, account: account, team: teamID, user: userID, change)
            let verified = try connection.row(
                "SELECT id FROM inboxes WHERE user_id = \(user) AND verified_at IS NOT NULL AND reply_only = 0 LIMIT 1"
            )
            return IssuedAddress(address: address, isNew: isNew, hasVerifiedInbox: verified != nil)
        }
    }

    /// The account of a user with a team; created if there is none.
    package func account(
        _ connection: any DatabaseConnection, team: Team, user: Int64, _ change: Change
    ) throws(StoreFailure) -> Int64 {
        let found = try connection.value(
            "SELECT id FROM accounts WHERE user_id = \(user) AND \(SQL.filter("team_id")) = \(team.number)",
            Int64.self)
        if let found { return found }
        return try insertAccount(connection, team: team, user: user, change)
    }

    /// Creates an account without a known user.
    func unlinkedAccount(
        _ connection: any DatabaseConnection, team: Team, _ change: Change
    ) throws(StoreFailure) -> Int64 {
        try insertAccount(connection, team: team, user: nil, change)
    }

    private func insertAccount(
        _ connection: any DatabaseConnection, team: Team, user: Int64?, _ change: Change
    ) throws(StoreFailure) -> Int64 {
        for _ in 0..<Self.attempts {
            let sub = Base32.characters(fromRandom: try random(Self.subLength))
            guard try !connection.isRetired(marks.retired(sub)) else { continue }
            return try connection.inserted(
                """
                INSERT INTO accounts (team_id, user_id, sub, created_at)
                VALUES (\(team.number), \(user), \(sub), \(change.now)) RETURNING id
                """)
        }
        throw .permanent(.unexpectedData, "no free sub after \(Self.attempts) random ones")
    }

    private func authorize(
        _ connection: any DatabaseConnection, account: Int64, team: Team, app clientID: String?,
        _ change: Change
    ) throws(StoreFailure) {
        let group: AppGroup
        if let clientID {
            group = try connection.appGroup(team: team, clientID: clientID)
        } else {
            let live = try connection.row(
                "SELECT 1 AS live WHERE \(GrantRepository.isLive("\(account)"))")
            guard live == nil else { return }
            group = try connection.usualGroup(team: team, change)
        }
        _ = try connection.authorize(
            account: account, group: group, teamID: team.id, realUserStatus: nil, change)
    }

    /// The domains of relay addresses, in order, with the number of addresses of each.
    package func domains() throws(StoreFailure) -> [(domain: String, addresses: Int)] {
        try database.rows(
            "SELECT domain, COUNT(*) AS addresses FROM relay_addresses GROUP BY domain ORDER BY domain"
        ).map {
            row throws(StoreFailure) in try (row["domain"], row["addresses"])
        }
    }

    /// The account's current address, created if there is none, and whether it is new.
    package func current(
        _ connection: any DatabaseConnection, account: Int64, team: String, user: String,
        _ change: Change
    ) throws(StoreFailure) -> (address: RelayAddress, isNew: Bool) {
        if let current = try current(connection, account: account) { return (current, false) }
        guard let domain = relayDomains.first else {
            throw .refused(.unmet, "no relay domain is configured: set relay_domains")
        }
        let new = try newAddress(connection, account: account, domain: domain, change)
        try connection.audit(
            change, "address.issue", "account:\(account)",
            "team:\(team) user:\(user) \(new.wireForm)")
        return (try address(connection, new), true)
    }

    /// Creates a random address for the account, without an audit entry.
    package func newAddress(
        _ connection: any DatabaseConnection, account: Int64, domain: HostName, _ change: Change
    ) throws(StoreFailure) -> AddrSpec {
        for _ in 0..<Self.attempts {
            let local = Base32.characters(fromRandom: try random(addressLength))
            guard try !connection.isRetired(marks.retired("\(local)@\(domain)")) else { continue }
            let address = AddrSpec(localPart: local, domain: domain.text)
            if try connection.add(address, to: account, at: change.now) { return address }
        }
        throw .permanent(
            .unexpectedData, "no free relay address after \(Self.attempts) random ones")
    }

    /// Creates random addresses for accounts that never had one, without audit entries.
    /// Returns them by account.
    package func newAddresses(
        _ connection: any DatabaseConnection,
        _ accounts: [(account: Int64, isForwardingOn: Bool, since: Int64)]
    ) throws(StoreFailure) -> [Int64: AddrSpec] {
        guard !accounts.isEmpty else { return [:] }
        guard let domain = relayDomains.first else {
            throw .refused(.unmet, "no relay domain is configured: set relay_domains")
        }
        var issued: [Int64: AddrSpec] = [:]
        for _ in 0..<Self.attempts where issued.count < accounts.count {
            let tried = try accounts.filter { issued[$0.account] == nil }.map {
                entry throws(StoreFailure) in
                (entry, local: Base32.characters(fromRandom: try random(addressLength)))
            }
            let retired = try connection.retired(
                tried.map { marks.retired("\($0.local)@\(domain)") })
            let free = tried.filter { !retired.contains(marks.retired("\($0.local)@\(domain)")) }
            let added = try connection.insert(
                free.map { [$0.account, 1, $1, domain.text, $0.since, $0.isForwardingOn] },
                into:
                    "relay_addresses (account_id, ordinal, local_part, domain, created_at, forwarding_on)",
                "ON CONFLICT (local_part, domain) DO NOTHING RETURNING account_id, local_part")
            for row in added {
                issued[try row["account_id"]] = AddrSpec(
                    localPart: try row["local_part"], domain: domain.text)
            }
        }
        guard issued.count == accounts.count else {
            throw .permanent(
                .unexpectedData, "no free relay address after \(Self.attempts) random ones")
        }
        return issued
    }

    /// A relay address, or `notFound`.
    package func address(_ address: AddrSpec) throws(StoreFailure) -> RelayAddress {
        try database.read { connection throws(StoreFailure) in try self.address(connection, address)
        }
    }

    /// Relay addresses by team and user identifier, the oldest first within each; nil means all.
    package func addresses(
        team: String? = nil, user: String? = nil
    ) throws(StoreFailure) -> [RelayAddress] {
        try database.read { connection throws(StoreFailure) in
            let condition = SQL.all(try connection.accountConditions(team: team, user: user))
            return try connection.rows(
                "\(Self.select) WHERE \(condition) ORDER BY t.handle, u.handle, r.account_id, r.ordinal"
            ).map(RelayAddress.init(row:))
        }
    }

    /// All relay addresses by account, page by page as `AccountRepository.page`.
    package func page(
        team: String?, user: String?, after: Int64?, limit: Int
    ) throws(StoreFailure) -> (rows: [RelayAddress], next: Int64?) {
        let page = try database.accountPage(
            Self.select, "a.id, r.ordinal", team: team, user: user, after: after, limit: limit)
        return (try page.rows.map(RelayAddress.init(row:)), page.next)
    }

    /// The account's current address; nil if it has none.
    package func current(account number: Int64) throws(StoreFailure) -> RelayAddress? {
        try current(database, account: number)
    }

    private func current(
        _ connection: any SQLQuerying, account number: Int64
    ) throws(StoreFailure) -> RelayAddress? {
        try connection.row("\(Self.select) WHERE r.account_id = \(number) AND r.is_current = 1")
            .map(RelayAddress.init(row:))
    }

    /// Switches forwarding. Returns whether that changed anything. Refused for a retired address.
    /// - Parameter cause: the cause that Postern shows to the user.
    @discardableResult
    package func setForwarding(
        _ address: AddrSpec, on isOn: Bool, by cause: SwitchCause = .administrator, _ change: Change
    ) throws(StoreFailure) -> Bool {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let found = try self.address(connection, address)
            guard found.retiredAt == nil else {
                throw .refused(.unmet, "this address is retired: it cannot be switched on or off")
            }
            guard found.isForwardingOn != isOn else { return false }
            try tracker.snapshot(.account(found.account.number))
            try connection.run(
                """
                UPDATE relay_addresses SET forwarding_on = \(isOn), switches_at = NULL, ends_at_count = NULL,
                    switched_at = \(change.now), switched_by = \(cause)
                WHERE local_part = \(found.address.localPart) AND domain = \(found.address.domain)
                """)
            try connection.count(
                DailyCounter(
                    accountNumber: found.account.number, day: Day.number(change.now),
                    kind: .forwardingToggled, count: 1))
            try connection.audit(
                change, isOn ? "address.on" : "address.off", "account:\(found.account.number)",
                found.address.wireForm)
            return true
        }
    }

    /// Retires an address permanently: mail to it is refused from then on, and
    /// `issue` makes another one.
    package func retire(_ address: AddrSpec, _ change: Change) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let found = try self.address(connection, address)
            guard found.retiredAt == nil else { return }
            try tracker.snapshot(.account(found.account.number))
            try retire(connection, found, change)
        }
    }

    /// Retires an address within a transaction.
    package func retire(
        _ connection: any DatabaseConnection, _ found: RelayAddress, _ change: Change
    ) throws(StoreFailure) {
        try connection.run(
            """
            UPDATE relay_addresses SET is_current = 0, retired_at = \(change.now), switches_at = NULL,
                ends_at_count = NULL
            WHERE local_part = \(found.address.localPart) AND domain = \(found.address.domain)
            """)
        try connection.audit(
            change, "address.retire", "account:\(found.account.number)", found.address.wireForm)
    }

    private static let select: SQL = """
        SELECT r.local_part, r.domain, r.is_current, r.forwarding_on, r.retired_at, r.created_at, \(Account.columns),
            CASE WHEN \(GrantRepository.isLive("a.id")) THEN 1 ELSE 0 END AS has_live_grant
        FROM relay_addresses r JOIN accounts a ON a.id = r.account_id JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
            LEFT JOIN users u ON u.id = a.user_id
        """

    /// A relay address within a transaction, or `notFound`.
    package func address(
        _ connection: any DatabaseConnection, _ address: AddrSpec
    ) throws(StoreFailure) -> RelayAddress {
        let address = address.folded
        let row = try connection.row(
            "\(Self.select) WHERE r.local_part = \(address.localPart) AND r.domain = \(address.domain)"
        )
        guard let row else {
            // An address at another domain may be an inbox typed by
            // mistake: the error does not repeat it.
            let isOurs = relayDomains.contains { $0.text == address.domain }
            throw .refused(
                .notFound,
                isOurs
                    ? "there is no relay address \(address.wireForm): see postern address list"
                    : "this address is not at a relay domain: see postern address list")
        }
        return try RelayAddress(row: row)
    }
}

extension RelayAddress {
    /// From the columns of `AddressRepository.select`.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            address: AddrSpec(row: row), account: Account(row: row), isCurrent: row["is_current"],
            isForwardingOn: row["forwarding_on"], retiredAt: row["retired_at"],
            hasLiveGrant: row["has_live_grant"],
            createdAt: row["created_at"])
    }
}

extension AddrSpec {
    /// From the columns `local_part` and `domain`.
    package init(row: SQLRow) throws(StoreFailure) {
        try self.init(localPart: row["local_part"], domain: row["domain"])
    }
}

extension DatabaseConnection {
    /// Adds a relay address to an account without a current one; false if another account has the
    /// address.
    package func add(
        _ address: AddrSpec, to account: Int64, at now: Int64
    ) throws(StoreFailure) -> Bool {
        try run(
            """
            INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
            VALUES (\(account), (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM relay_addresses
                WHERE account_id = \(account)), \(address.localPart), \(address.domain), \(now))
            ON CONFLICT (local_part, domain) DO NOTHING
            """) == 1
    }
}
