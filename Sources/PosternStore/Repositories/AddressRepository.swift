// Accounts, grants and relay addresses: who has which address with which team.

import InternetMessage
import MailCrypto

/// What `issue` found or made.
package struct IssuedAddress: Sendable {
    package let address: RelayAddress
    /// Whether it was made now.
    package let isNew: Bool
    /// Whether mail can reach the user: false until an inbox is verified.
    package let hasVerifiedInbox: Bool
}

/// Issues, finds and switches relay addresses.
package struct AddressRepository: Sendable {
    /// Attempts at a new local part before giving up. With 50 bits a second one is already a rarity.
    private static let attempts = 8
    /// Characters of `sub`: 160 bits.
    static let subLength = 32

    let database: any Database
    let relayDomains: [HostName]
    let addressLength: Int
    /// A number of random octets; a parameter for the test of collisions.
    package var random: @Sendable (Int) throws -> [UInt8] = { try SecureRandom.bytes(count: $0) }

    init(database: any Database, relayDomains: [HostName], addressLength: Int) {
        self.database = database
        self.relayDomains = relayDomains
        self.addressLength = min(max(addressLength, 10), 16)
    }

    /// The user's address for the team: made where there is none, otherwise the one there is.
    ///
    /// Consent goes to the group of the app named. Where none is named, a live grant suffices; without one it is given to the
    /// team's oldest group, which for a team without apps is a group of mail alone, so that a team may relay before it has apps.
    package func issue(
        team teamID: String, user userID: String, app clientID: String? = nil, sharesName: Bool? = nil, _ change: Change
    ) throws -> IssuedAddress {
        guard let domain = relayDomains.first else {
            throw StoreRefusal(.unmet, "no relay domain is configured: set relay_domains")
        }
        return try database.write(.durable) { connection in
            let team = try connection.team(teamID)
            let user = try connection.userNumber(userID)
            let account = try account(connection, team: team, user: user, change)
            try authorize(connection, account: account, team: team, app: clientID, change)
            if let sharesName {
                try connection.run(
                    "UPDATE accounts SET shares_name = ?2 WHERE id = ?1", [.integer(account), .bool(sharesName)])
            }
            let current = try connection.row(
                "SELECT local_part, domain FROM relay_addresses WHERE account_id = ?1 AND is_current = 1", [.integer(account)])
            let address: AddrSpec
            if let current {
                address = AddrSpec(localPart: try current.text(0), domain: try current.text(1))
            } else {
                address = try newAddress(connection, account: account, domain: domain, change)
                try connection.audit(
                    change, "address.issue", "account:\(account)", "team:\(teamID) user:\(userID) \(address.wireForm)")
            }
            let verified = try connection.row(
                "SELECT id FROM inboxes WHERE user_id = ?1 AND verified_at IS NOT NULL AND reply_only = 0 LIMIT 1",
                [.integer(user)])
            return IssuedAddress(
                address: try self.address(connection, address), isNew: current == nil, hasVerifiedInbox: verified != nil)
        }
    }

    private func account(
        _ connection: any DatabaseConnection, team: Team, user: Int64, _ change: Change
    ) throws -> Int64 {
        let found = try connection.row(
            "SELECT id FROM accounts WHERE team_id = ?1 AND user_id = ?2", [.integer(team.number), .integer(user)])
        if let found { return try found.integer(0) }
        let sub = Base32.characters(fromRandom: try random(Self.subLength))
        let row = try connection.row(
            "INSERT INTO accounts (team_id, user_id, sub, created_at) VALUES (?1, ?2, ?3, ?4) RETURNING id",
            [.integer(team.number), .integer(user), .text(sub), .integer(change.now)])
        guard let row else { throw PermanentStoreError(.unexpectedData, "an insertion returned nothing") }
        return try row.integer(0)
    }

    private func authorize(
        _ connection: any DatabaseConnection, account: Int64, team: Team, app clientID: String?, _ change: Change
    ) throws {
        let group: AppGroup
        if let clientID {
            group = try connection.appGroup(team: team, clientID: clientID)
        } else {
            let live = try connection.row(
                "SELECT id FROM grants WHERE account_id = ?1 AND state = 'authorized' LIMIT 1", [.integer(account)])
            guard live == nil else { return }
            group = try connection.usualGroup(team: team, change)
        }
        let changed = try connection.run(
            """
            INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
            VALUES (?1, ?2, 'authorized', ?3, ?3)
            ON CONFLICT (account_id, group_id) DO UPDATE
                SET state = 'authorized', last_authorized_at = excluded.last_authorized_at, revoked_at = NULL
                WHERE grants.state <> 'authorized'
            """, [.integer(account), .integer(group.number), .integer(change.now)])
        if changed > 0 {
            try connection.audit(
                change, "grant.authorize", "account:\(account)", "team:\(team.id) app:\(group.primaryClientID ?? "(mail alone)")")
        }
    }

    /// A random address for the account, of which nothing is audited here.
    func newAddress(
        _ connection: any DatabaseConnection, account: Int64, domain: HostName, _ change: Change
    ) throws -> AddrSpec {
        for _ in 0..<Self.attempts {
            let local = Base32.characters(fromRandom: try random(addressLength))
            let row = try connection.row(
                """
                INSERT INTO relay_addresses (account_id, local_part, domain, created_at) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (local_part, domain) DO NOTHING RETURNING id
                """, [.integer(account), .text(local), .text(domain.text), .integer(change.now)])
            if row != nil { return AddrSpec(localPart: local, domain: domain.text) }
        }
        throw PermanentStoreError(.unexpectedData, "no free relay address after \(Self.attempts) random ones")
    }

    /// A relay address, or `StoreRefusal` (`notFound`).
    package func address(_ address: AddrSpec) throws -> RelayAddress { try database.read { try self.address($0, address) } }

    /// Relay addresses by team and user identifier, the oldest first within each; nil stands for all.
    package func addresses(team: String? = nil, user: String? = nil) throws -> [RelayAddress] {
        try database.read { connection in
            var conditions: [String] = []
            var arguments: [SQLValue] = []
            if let team {
                arguments.append(.integer(try connection.team(team).number))
                conditions.append("a.team_id = ?\(arguments.count)")
            }
            if let user {
                arguments.append(.integer(try connection.userNumber(user)))
                conditions.append("a.user_id = ?\(arguments.count)")
            }
            let condition = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
            return try connection.rows(Self.select + condition + " ORDER BY t.handle, u.handle, r.id", arguments)
                .map(Self.address(row:))
        }
    }

    /// Switches forwarding; whether that changed anything. Refused for a retired address.
    @discardableResult
    package func setForwarding(_ address: AddrSpec, on isOn: Bool, _ change: Change) throws -> Bool {
        try database.write(.durable) { connection in
            let found = try self.address(connection, address)
            guard found.retiredAt == nil else { throw StoreRefusal(.unmet, "this address is retired: it cannot be switched") }
            guard found.isForwardingOn != isOn else { return false }
            try connection.run(
                "UPDATE relay_addresses SET forwarding_on = ?3 WHERE local_part = ?1 AND domain = ?2",
                [.text(found.address.localPart), .text(found.address.domain), .bool(isOn)])
            try connection.count(
                DailyCounter(
                    accountNumber: found.account.number, day: Day.number(change.now), kind: .forwardingToggled, count: 1))
            try connection.audit(
                change, isOn ? "address.on" : "address.off", "account:\(found.account.number)", found.address.wireForm)
            return true
        }
    }

    /// Retires an address for good: mail to it is refused from then on, and `issue` makes another one.
    package func retire(_ address: AddrSpec, _ change: Change) throws {
        try database.write(.durable) { connection in
            let found = try self.address(connection, address)
            guard found.retiredAt == nil else { return }
            try connection.run(
                "UPDATE relay_addresses SET is_current = 0, retired_at = ?3 WHERE local_part = ?1 AND domain = ?2",
                [.text(found.address.localPart), .text(found.address.domain), .integer(change.now)])
            try connection.audit(change, "address.retire", "account:\(found.account.number)", found.address.wireForm)
        }
    }

    /// The account's grants, the oldest first.
    package func grants(account number: Int64) throws -> [Grant] {
        try database.read { connection in
            try connection.rows(
                """
                SELECT g.group_id, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at, g.real_user_status
                FROM grants g JOIN app_groups p ON p.id = g.group_id WHERE g.account_id = ?1 ORDER BY g.id
                """, [.integer(number)]
            ).map { row in
                Grant(
                    accountNumber: number, group: AppGroup(number: try row.integer(0), primaryClientID: try row.optionalText(1)),
                    state: try row.text(2) == "authorized" ? .authorized : .revoked, firstAuthorizedAt: try row.integer(3),
                    lastAuthorizedAt: try row.integer(4), realUserStatus: try row.optionalInteger(5).map(Int.init))
            }
        }
    }

    /// Revokes the account's grant to a group; whether it was live. With the last one the address is refused as revoked.
    @discardableResult
    package func revoke(account number: Int64, group: AppGroup, _ change: Change) throws -> Bool {
        try database.write(.durable) { connection in
            let changed = try connection.run(
                """
                UPDATE grants SET state = 'revoked', revoked_at = ?3
                WHERE account_id = ?1 AND group_id = ?2 AND state = 'authorized'
                """, [.integer(number), .integer(group.number), .integer(change.now)])
            guard changed > 0 else { return false }
            try connection.audit(
                change, "grant.revoke", "account:\(number)", "app:\(group.primaryClientID ?? "(mail alone)")")
            return true
        }
    }

    private static let select = """
        SELECT r.local_part, r.domain, r.is_current, r.forwarding_on, r.retired_at, r.created_at,
            a.id, t.handle, u.handle, a.sub, a.shares_name, a.created_at,
            CASE WHEN EXISTS (SELECT 1 FROM grants g WHERE g.account_id = a.id AND g.state = 'authorized') THEN 1 ELSE 0 END
        FROM relay_addresses r JOIN accounts a ON a.id = r.account_id JOIN teams t ON t.id = a.team_id
            LEFT JOIN users u ON u.id = a.user_id
        """

    private func address(_ connection: any DatabaseConnection, _ address: AddrSpec) throws -> RelayAddress {
        let address = address.folded
        let row = try connection.row(
            Self.select + " WHERE r.local_part = ?1 AND r.domain = ?2", [.text(address.localPart), .text(address.domain)])
        guard let row else {
            // What is at another domain may be an inbox that was typed by mistake: it is not repeated.
            let isOurs = relayDomains.contains { $0.text == address.domain }
            throw StoreRefusal(
                .notFound, isOurs
                    ? "there is no relay address \(address.wireForm): see postern address list"
                    : "this address is not at a relay domain: see postern address list")
        }
        return try Self.address(row: row)
    }

    private static func address(row: SQLRow) throws -> RelayAddress {
        let account = Account(
            number: try row.integer(6), teamID: try row.text(7), userID: try row.optionalText(8), sub: try row.text(9),
            sharesName: try row.bool(10), createdAt: try row.integer(11))
        return RelayAddress(
            address: AddrSpec(localPart: try row.text(0), domain: try row.text(1)), account: account, isCurrent: try row.bool(2),
            isForwardingOn: try row.bool(3), retiredAt: try row.optionalInteger(4), hasLiveGrant: try row.bool(12),
            createdAt: try row.integer(5))
    }
}
