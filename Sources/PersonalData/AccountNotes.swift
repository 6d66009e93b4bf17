// A user's own name and note for an address, which only the user sees. No event, response, log
// or count contains them.

import Accounts
import Database
import InternetMessage
import Support

/// A user's own name and note for an account.
package struct AccountNotes: Sendable, Hashable {
    /// Empty if there is none.
    package let name: String
    /// Empty if there is none; may have several lines.
    package let note: String

    /// Characters.
    package static let maximumName = 80
    package static let maximumNote = 1_000

    /// Throws `refused` for text that is too long or has invisible characters.
    package init(name: String, note: String) throws(StoreFailure) {
        self.name = PersonText.withSingleSpaces(name)
        let lines = PersonText.lines(note)
        self.note =
            note.unicodeScalars.allSatisfy(\.properties.isWhitespace)
            ? "" : lines.joined(separator: "\n")
        guard self.name.unicodeScalars.count <= Self.maximumName,
            self.note.unicodeScalars.count <= Self.maximumNote
        else {
            throw .refused(
                .invalid,
                "a name has at most \(Self.maximumName) characters, and a note \(Self.maximumNote)")
        }
        for text in [self.name] + lines { try Identifier.checkText(text) }
    }

    /// From the columns of `account_notes`, which may be NULL.
    init(row: SQLRow, account: Int64, _ sealer: Sealer) throws(StoreFailure) {
        name = try Self.text(row, .name, account: account, sealer) ?? ""
        note = try Self.text(row, .note, account: account, sealer) ?? ""
    }

    enum Part: String {
        case name, note

        func context(_ account: Int64) -> SealContext {
            switch self {
            case .name: .accountName(account: account)
            case .note: .accountNote(account: account)
            }
        }
    }

    /// One of the two, decrypted; nil if there is none.
    static func text(
        _ row: SQLRow, _ part: Part, account: Int64, _ sealer: Sealer
    ) throws(StoreFailure) -> String? {
        try SealedValue(row: row, part.rawValue).map { sealed throws(StoreFailure) in
            try sealer.openText(sealed, part.context(account))
        }
    }
}

extension UserExportRepository {
    /// Throws `notFound` if the account is not the user's.
    func requireOwn(
        _ connection: any DatabaseConnection, user id: String, account: Int64
    ) throws(StoreFailure) {
        let user = try connection.userNumber(id)
        let found: Int64? = try connection.value(
            "SELECT id FROM accounts WHERE id = \(account) AND user_id = \(user)")
        guard found != nil else { throw .refused(.notFound, "there is no such address") }
    }

    /// Stores a name and a note, replacing earlier ones. Throws `notFound` if the
    /// account is not the user's.
    package func setNotes(
        user id: String, account: Int64, _ notes: AccountNotes
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try requireOwn(connection, user: id, account: account)
            func sealed(
                _ text: String, _ part: AccountNotes.Part
            ) throws(StoreFailure) -> SealedValue? {
                text.isEmpty ? nil : try sealer.seal(text, part.context(account), connection)
            }
            let (name, note) = try (sealed(notes.name, .name), sealed(notes.note, .note))
            try connection.run(
                """
                INSERT INTO account_notes (account_id, name_key, name_sealed, note_key, note_sealed)
                VALUES (\(account), \(name?.key), \(name?.octets), \(note?.key), \(note?.octets))
                ON CONFLICT (account_id) DO UPDATE SET name_key = excluded.name_key, name_sealed = excluded.name_sealed,
                    note_key = excluded.note_key, note_sealed = excluded.note_sealed
                """)
        }
    }

    /// All accounts of the user, for the list.
    /// - Parameter now: seconds since 1970.
    package func addresses(user id: String, now: Int64) throws(StoreFailure) -> [AddressListItem] {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            // One query for all: with thousands of accounts, separate queries would be slow.
            let consents = try connection.rows(
                """
                SELECT g.account_id, p.primary_client_id, y.name FROM grants g JOIN app_groups p ON p.id = g.group_id
                JOIN teams t ON t.id = p.team_id AND t.removed_at IS NULL LEFT JOIN apps y ON y.client_id = p.primary_client_id
                WHERE g.account_id IN (SELECT id FROM accounts WHERE user_id = \(user)) AND g.state = \(Grant.State.authorized)
                ORDER BY g.id
                """)
            var apps: [Int64: [String]] = [:]
            for row in consents {
                let (account, clientID, name): (Int64, String?, String?) = try (
                    row["account_id"], row["primary_client_id"], row["name"]
                )
                apps[account, default: []] += [name ?? clientID].compactMap(\.self)
            }
            let blocks = try Self.blocks(connection, user: user)
            return try connection.rows(
                """
                SELECT a.id, t.name, r.local_part, r.domain, r.forwarding_on, a.created_at, l.at AS last_at,
                    \(Self.usedDay) AS used_day, \(Self.refusedOfWeek(now)) AS refused,
                    \(Self.usingDomains(now)) AS using_domains, n.name_key, n.name_sealed, n.note_key, n.note_sealed,
                    CASE WHEN EXISTS (SELECT 1 FROM account_transfers m WHERE m.old_account = a.id AND m.ends_at > \(now))
                        THEN 1 ELSE 0 END AS has_moved
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                LEFT JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
                LEFT JOIN account_notes n ON n.account_id = a.id
                LEFT JOIN last_mail l ON l.account_id = a.id WHERE a.user_id = \(user)
                """
            ).map { row throws(StoreFailure) in
                let account: Int64 = try row["id"]
                let (isOn, hasMoved): (Bool?, Bool) = try (row["forwarding_on"], row["has_moved"])
                let notes = try AccountNotes(row: row, account: account, sealer)
                let state: AddressState =
                    switch (apps[account] != nil, isOn) {
                    case (true, true?): blocks[account]?.isEverySender == true ? .blocked : .on
                    case (true, false?): .off
                    case (true, nil): .open
                    case (false, _): hasMoved ? .moved : .ended
                    }
                let (lastAt, usedDay): (Int64?, Int64?) = try (row["last_at"], row["used_day"])
                return try AddressListItem(
                    account: account, team: row["name"],
                    address: isOn == nil ? nil : AddrSpec(row: row), state: state,
                    ownName: notes.name, note: notes.note, apps: apps[account] ?? [],
                    createdAt: row["created_at"],
                    activeAt: max(lastAt ?? 0, (usedDay ?? 0) * 86_400),
                    refusedOfWeek: row["refused"], usingDomains: row["using_domains"])
            }
        }
    }
}
