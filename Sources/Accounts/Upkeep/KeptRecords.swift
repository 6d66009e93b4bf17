// What holds keep of a user who is deleted, as far as the user may know.

import Database

/// The records of a user that outlive the user's deletion, and until when.
package struct KeptRecords: Sendable, Hashable {
    /// The kinds, in the order of `DataClass.all`; never empty.
    package let data: [DataClass]
    /// When the last of the holds ends, in seconds since 1970.
    package let endsAt: Int64

    /// The kinds that can be kept of a user.
    private static let kinds = DataClass.all.filter { $0.scopes.contains(.user) }

    /// Seconds since 1970: the end of the year 9999, which every calendar can write.
    private static let latest: Int64 = 253_402_300_800

    init?(data: [DataClass], endsAt: Int64) {
        guard !data.isEmpty, endsAt < Self.latest else { return nil }
        (self.data, self.endsAt) = (data, endsAt)
    }

    /// Of a number as `number` gives it; nil for any other one.
    package init?(number: Int64) {
        guard number > 0 else { return nil }
        let bits = number & (1 << Self.kinds.count - 1)
        let data = Self.kinds.indices.filter { bits & (1 << $0) != 0 }.map { Self.kinds[$0] }
        self.init(data: data, endsAt: number >> Self.kinds.count)
    }

    /// The records as one number, for a cookie between two pages.
    package var number: Int64 {
        let bits = Self.kinds.indices.filter { data.contains(Self.kinds[$0]) }
            .reduce(into: Int64(0)) { $0 |= 1 << $1 }
        return endsAt << Self.kinds.count | bits
    }
}

extension DatabaseConnection {
    /// Whether a hold of which the user must not know keeps something of the user.
    package func hasConfidentialHold(ofUser user: Int64) throws(StoreFailure) -> Bool {
        try row(
            """
            SELECT 1 AS found FROM holds h WHERE h.ended_at IS NULL AND h.is_confidential = 1 AND (
                (h.scope = 'user' AND h.target = \(user))
                OR EXISTS (SELECT 1 FROM accounts a WHERE a.user_id = \(user)
                    AND ((h.scope = 'address' AND h.target = a.id) OR (h.scope = 'team' AND h.target = a.team_id)))
                OR EXISTS (SELECT 1 FROM held_accounts m JOIN accounts a ON a.id = m.account_id
                    WHERE m.hold_id = h.id AND a.user_id = \(user)))
            LIMIT 1
            """) != nil
    }
}

extension HoldRepository {
    /// The records that holds keep if the user is deleted now; nil if there are none. A hold that
    /// the user must not know of is left out.
    package func kept(ofUser id: String) throws(StoreFailure) -> KeptRecords? {
        try addresses.events.database.read { connection throws(StoreFailure) in
            guard try connection.hasHold() else { return nil }
            // The audit that a hold on a team keeps is not about its users.
            let rows = try connection.rows(
                """
                SELECT k.data, MAX(h.ends_at) AS ends_at
                FROM holds h JOIN hold_data k ON k.hold_id = h.id JOIN users u ON u.handle = \(id)
                WHERE h.ended_at IS NULL AND h.is_confidential = 0 AND (
                    (h.scope = 'user' AND h.target = u.id)
                    OR (h.scope = 'address'
                        AND h.target IN (SELECT a.id FROM accounts a WHERE a.user_id = u.id))
                    OR (h.scope = 'team' AND k.data <> \(DataClass.audit.name)
                        AND h.target IN (SELECT a.team_id FROM accounts a WHERE a.user_id = u.id)))
                GROUP BY k.data
                """
            ).map { row throws(StoreFailure) in
                try (data: row["data"] as String, endsAt: row["ends_at"] as Int64)
            }
            let data = DataClass.all.filter { kind in
                kind.scopes.contains(.user)
                    && rows.contains { $0.data.hasSameOctets(as: kind.name) }
            }
            let ends = rows.filter { row in data.contains { $0.name.hasSameOctets(as: row.data) } }
            return KeptRecords(data: data, endsAt: ends.map(\.endsAt).max() ?? 0)
        }
    }
}
