// Others than the team that wrote to a relay address (`UseByOthers`): stored for the user, with
// the proof; the team is told how many there were.

import Accounts
import Database
import InternetMessage
import RelayCore
import Support

/// Uses of addresses, grouped by address, day and proved domain.
struct AddressUses {
    /// Proved domains kept for an address and day, because a sender can sign as any number of
    /// domains of its own. Further ones are not kept.
    static let maximumDomains = 10
    /// The messages of a domain, or without proof, that are counted for an address and day.
    static let maximumCount = 100

    private struct Key: Hashable, Comparable {
        let account: Int64
        let day: Int64
        /// In lower case.
        let address: AddrSpec
        /// In the address's canonical form, to find the user's own mail.
        let author: AddrSpec
        /// Empty without proof.
        let domain: String

        private var order: (Int64, Int64, String, String, String) {
            (account, day, address.wireForm, domain, author.wireForm)
        }

        static func < (left: Key, right: Key) -> Bool { left.order < right.order }
    }

    private struct Use {
        var selector: String
        var count: Int
        var first: Int64
    }

    private var uses: [Key: Use] = [:]

    init(_ events: [RefusedForward]) {
        for event in events {
            for use in event.uses {
                let key = Key(
                    account: use.account.stored, day: Day.number(event.at),
                    address: use.address.folded, author: use.author.folded,
                    domain: use.proof?.domain ?? "")
                let selector = use.proof?.selector ?? ""
                var known = uses[key] ?? Use(selector: selector, count: 0, first: event.at)
                if event.at < known.first { (known.first, known.selector) = (event.at, selector) }
                known.count = min(known.count + 1, Self.maximumCount)
                uses[key] = known
            }
        }
    }

    /// Adds them to the stored uses, except mail from an inbox of the user. Every host locks rows
    /// in the same order, so that two hosts never wait for each other.
    func add(
        to connection: any DatabaseConnection, _ index: BlindIndex
    ) throws(StoreFailure) {
        for (key, use) in uses.sorted(by: { $0.key < $1.key }) {
            let ordinal: Int64? = try connection.value(
                """
                SELECT ordinal FROM relay_addresses WHERE local_part = \(key.address.localPart)
                    AND domain = \(key.address.domain) AND account_id = \(key.account)
                """)
            // The address was deleted in the meantime.
            guard let ordinal else { continue }
            let inbox = index.search(key.author).canonical
            let own: Int64? = try connection.value(
                """
                SELECT MIN(i.id) FROM accounts a JOIN inboxes i ON i.user_id = a.user_id
                WHERE a.id = \(key.account) AND i.canonical_index IN (\(inbox.0), \(inbox.1))
                """)
            guard own == nil else { continue }
            if !key.domain.isEmpty {
                let others: Int64? = try connection.value(
                    """
                    SELECT COUNT(*) FROM uses_by_others WHERE account_id = \(key.account) AND ordinal = \(ordinal)
                        AND day = \(key.day) AND domain <> '' AND domain <> \(key.domain)
                    """)
                guard others ?? 0 < Self.maximumDomains else { continue }
            }
            try connection.run(
                """
                INSERT INTO uses_by_others (account_id, ordinal, day, domain, selector, count, first_at)
                VALUES (\(key.account), \(ordinal), \(key.day), \(key.domain), \(use.selector), \(use.count), \(use.first))
                ON CONFLICT (account_id, ordinal, day, domain) DO UPDATE SET count =
                    CASE WHEN uses_by_others.count + excluded.count < \(Self.maximumCount)
                        THEN uses_by_others.count + excluded.count ELSE \(Self.maximumCount) END
                """)
        }
    }
}

/// A domain that is proved to have written to an address that only the team was given.
package struct AddressUse: Sendable, Hashable {
    /// `d=` of the signature, lower case.
    package let domain: String
    /// `s=` of the signature of the first message.
    package let selector: String
    /// Messages; at most 100 are counted in a day.
    package let count: Int
    /// The first message and the latest day, in seconds and in days since 1970.
    package let firstAt: Int64
    package let lastDay: Int64
}

/// All uses of one address by others, as long as they are kept.
package struct AddressUseList: Sendable, Hashable {
    /// An earlier address of the account may be among them.
    package let address: AddrSpec
    /// The latest first.
    package let proved: [AddressUse]
    /// Messages without proof; at most 100 are counted in a day.
    package let unproved: Int
}

extension UserExportRepository {
    /// Days for which uses are kept at most (`DataClass.usesByOthers`).
    static let useDays: Int64 = 30

    /// The proved domains that used an account's addresses, for an account `a`.
    static func usingDomains(_ now: Int64) -> SQL {
        """
        (SELECT COUNT(DISTINCT x.domain) FROM uses_by_others x
            WHERE x.account_id = a.id AND x.domain <> '' AND x.day > \(Day.number(now) - useDays))
        """
    }

    /// The uses of each address of an account, the current address first.
    /// - Parameter now: seconds since 1970.
    package func uses(account: Int64, now: Int64) throws(StoreFailure) -> [AddressUseList] {
        let rows = try database.rows(
            """
            SELECT r.local_part, r.domain, x.ordinal, x.domain AS signer, x.selector, x.count, x.first_at, x.day
            FROM uses_by_others x JOIN relay_addresses r ON r.account_id = x.account_id AND r.ordinal = x.ordinal
            WHERE x.account_id = \(account) AND x.day > \(Day.number(now) - Self.useDays)
            ORDER BY x.ordinal DESC, x.day, x.domain
            """)
        var lists: [AddressUseList] = []
        var rest = rows[...]
        while let first = rest.first {
            let ordinal: Int64 = try first["ordinal"]
            var proved: [String: AddressUse] = [:]
            var unproved = 0
            while let row = rest.first {
                let next: Int64 = try row["ordinal"]
                guard next == ordinal else { break }
                rest = rest.dropFirst()
                let (domain, count): (String, Int) = try (row["signer"], row["count"])
                guard !domain.isEmpty else {
                    unproved += count
                    continue
                }
                let earlier = proved[domain]
                let (selector, firstAt, day): (String, Int64, Int64) = try (
                    row["selector"], row["first_at"], row["day"]
                )
                proved[domain] = AddressUse(
                    domain: domain, selector: earlier?.selector ?? selector,
                    count: count + (earlier?.count ?? 0), firstAt: earlier?.firstAt ?? firstAt,
                    lastDay: day)
            }
            lists.append(
                AddressUseList(
                    address: try AddrSpec(row: first),
                    proved: proved.values.sorted {
                        ($1.lastDay, $0.domain) < ($0.lastDay, $1.domain)
                    }, unproved: unproved))
        }
        return lists
    }

    /// Deletes uses from before a day, at most `limit`; returns how many.
    package func deleteUses(before day: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.deletePast(.uses, where: "x.day < \(day)", limit: limit)
        }
    }

    // MARK: The team

    /// Seconds after a day in which hosts record their refusals of that day.
    private static let grace: Int64 = 600

    /// Writes the event for each address that others are proved to have used on a day that is
    /// over, at most `limit`. An address without proof gets no event: a flood from anywhere would
    /// cause it.
    /// - Parameter now: seconds since 1970.
    /// - Returns: how many addresses and days were read.
    package func tellTeamsOfUses(now: Int64, limit: Int = 100) throws(StoreFailure) -> Int {
        let today = Day.number(now - Self.grace)
        return try events.write(at: now) { connection, tracker throws(StoreFailure) in
            let due = try connection.rows(
                """
                SELECT DISTINCT account_id, ordinal, day FROM uses_by_others
                WHERE told = 0 AND day < \(today) ORDER BY day, account_id, ordinal LIMIT \(limit)
                """)
            for row in due {
                let (account, ordinal, day): (Int64, Int64, Int64) = try (
                    row["account_id"], row["ordinal"], row["day"]
                )
                let counts = try connection.row(
                    """
                    SELECT r.local_part, r.domain, CAST(SUM(CASE WHEN x.domain <> '' THEN 1 ELSE 0 END) AS BIGINT) AS proved,
                        CAST(SUM(CASE WHEN x.domain = '' THEN x.count ELSE 0 END) AS BIGINT) AS unproved,
                        MAX(CASE WHEN x.told = 1 THEN 1 ELSE 0 END) AS is_told
                    FROM uses_by_others x JOIN relay_addresses r ON r.account_id = x.account_id AND r.ordinal = x.ordinal
                    WHERE x.account_id = \(account) AND x.ordinal = \(ordinal) AND x.day = \(day)
                    GROUP BY r.local_part, r.domain
                    """)
                let proved: Int64 = try counts?["proved"] ?? 0
                // 2: there was nothing to tell.
                try connection.run(
                    """
                    UPDATE uses_by_others SET told = \(proved > 0 ? 1 : 2)
                    WHERE account_id = \(account) AND ordinal = \(ordinal) AND day = \(day)
                    """)
                // A host may have recorded a refusal late, when the team was told already.
                guard let counts else { continue }
                let (unproved, isTold): (Int64, Bool) = try (
                    counts["unproved"], counts["is_told"]
                )
                guard proved > 0, !isTold else { continue }
                let detail: JSONObject = [
                    "day": .string(UTCTime.date(day)), "proved": .integer(proved),
                    "unproved": .integer(unproved),
                ]
                try tracker.note(
                    .addressUsedByOthers, of: .account(account),
                    email: AddrSpec(row: counts).wireForm, detail: JSONValue.object(detail).text)
            }
            return due.count
        }
    }
}
