// A user's name, and the name that one team got.

import Database
import Support

/// A name in the two parts that apps get (OpenID Connect Core section 5.1). Prints nothing.
package struct PersonName: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// `given_name`; nil if there is none.
    package let given: String?
    /// `family_name`; nil if there is none.
    package let family: String?

    /// Empty parts become nil.
    package init(given: String?, family: String?) {
        self.given = given.flatMap { $0.isEmpty ? nil : $0 }
        self.family = family.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// A stored name: its last word becomes the family name.
    package init(stored name: String?) {
        let words = (name ?? "").utf8.split(separator: 0x20).map { String(Substring($0)) }
        guard words.count > 1, let last = words.last else {
            self.init(given: words.first, family: nil)
            return
        }
        self.init(given: words.dropLast().joined(separator: " "), family: last)
    }

    /// Compares octet by octet: a name is kept as it was typed.
    package static func == (left: PersonName, right: PersonName) -> Bool {
        left.given.map { WireText($0) } == right.given.map { WireText($0) }
            && left.family.map { WireText($0) } == right.family.map { WireText($0) }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(given.map { WireText($0) })
        hasher.combine(family.map { WireText($0) })
    }

    /// `name`; nil if both parts are missing.
    package var full: String? {
        let parts = [given, family].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    package var description: String { "<name>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The name of a user that a team gets.
package enum GivenName: Sendable, Hashable {
    /// The stored name, with its later changes.
    case stored
    /// The name that the user typed for this team, which may be empty.
    case typed(PersonName)

    /// Columns that `Sealer.teamName` reads, of accounts `a` with users `u` and `join`.
    package static let columns: SQL = """
        a.shares_name, u.name_key AS user_key, u.name_sealed AS user_sealed, gn.given_key, gn.given_sealed,
        CASE WHEN gn.account_id IS NULL THEN 0 ELSE 1 END AS has_typed_name
        """
    package static let join: SQL = "LEFT JOIN given_names gn ON gn.account_id = a.id"

    /// A condition: the team of account `a` has a name of its user.
    static let isKnown: SQL = """
        a.shares_name = 1 AND EXISTS (SELECT 1 FROM users yu LEFT JOIN given_names gn ON gn.account_id = a.id
            WHERE yu.id = a.user_id
                AND CASE WHEN gn.account_id IS NULL THEN yu.name_sealed ELSE gn.given_sealed END IS NOT NULL)
        """
}

extension Sealer {
    /// The name that the team of a row with `GivenName.columns` has; nil if it has none.
    /// - Parameter user: the store's number.
    package func teamName(_ row: SQLRow, user: Int64) throws(StoreFailure) -> PersonName? {
        guard try row["shares_name"] else { return nil }
        guard try row["has_typed_name"] else {
            let name = try SealedValue(row: row, "user").map { sealed throws(StoreFailure) in
                try openText(sealed, .userName(user: user))
            }
            return name.map(PersonName.init(stored:))
        }
        return try SealedValue(row: row, "given").map { sealed throws(StoreFailure) in
            let text = try openText(sealed, .givenName(user: user))
            // Names have no control characters, so a line feed separates the parts.
            let parts = text.utf8.split(
                separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
            return PersonName(
                given: parts.first.map { String(Substring($0)) },
                family: parts.dropFirst().first.map { String(Substring($0)) })
        }
    }

    /// Stores which name the account's team gets. An unchanged value is not written, because a
    /// write would conflict with readers.
    /// - Parameters:
    ///   - account: the store's number.
    ///   - user: the store's number of its user.
    func keep(
        _ name: GivenName, _ connection: any DatabaseConnection, account: Int64, user: Int64
    ) throws(StoreFailure) {
        let row = try connection.row(
            """
            SELECT \(GivenName.columns) FROM accounts a JOIN users u ON u.id = a.user_id \(GivenName.join) WHERE a.id = \(account)
            """)
        guard let row else { return }
        switch name {
        case .stored:
            guard try row["has_typed_name"] else { return }
            try connection.run("DELETE FROM given_names WHERE account_id = \(account)")
        case .typed(let typed):
            if try row["has_typed_name"],
                try teamName(row, user: user) ?? PersonName(given: nil, family: nil) == typed
            {
                return
            }
            var sealed: SealedValue?
            if typed.full != nil {
                sealed = try seal(
                    "\(typed.given ?? "")\n\(typed.family ?? "")", .givenName(user: user),
                    connection)
            }
            try connection.run(
                """
                INSERT INTO given_names (account_id, given_key, given_sealed)
                VALUES (\(account), \(sealed?.key), \(sealed?.octets))
                ON CONFLICT (account_id) DO UPDATE SET given_key = excluded.given_key, given_sealed = excluded.given_sealed
                """)
        }
    }
}
