// The mail that an address received lately, and the refused mail, for lists and cards: read for all
// of a user's accounts at once.

import Accounts
import Database
import InternetMessage

/// When and why forwarding was last switched.
package struct ForwardingSwitch: Sendable, Hashable {
    package let cause: SwitchCause
    /// Seconds since 1970.
    package let at: Int64
}

/// The senders of an account's team that the user blocks.
package struct AccountBlocks: Sendable, Hashable {
    package let count: Int
    /// Whether they are all senders that the team registered.
    package let isEverySender: Bool

    package static let none = AccountBlocks(count: 0, isEverySender: false)

    /// - Parameters:
    ///   - blocked: domains, each with all its subdomains, and addresses.
    ///   - sources: those of the team, in the same form.
    init(_ blocked: [String], sources: [String]) {
        count = blocked.count
        isEverySender =
            !sources.isEmpty
            && sources.allSatisfy { source in
                blocked.contains { UserExportRepository.covers($0, source) }
            }
    }

    private init(count: Int, isEverySender: Bool) {
        (self.count, self.isEverySender) = (count, isEverySender)
    }
}

extension UserExportRepository {
    /// The blocks of a user's accounts that block any sender.
    /// - Parameter user: the store's number.
    static func blocks(
        _ connection: any SQLQuerying, user: Int64
    ) throws(StoreFailure) -> [Int64: AccountBlocks] {
        var blocked: [Int64: [String]] = [:]
        for row in try connection.rows(
            """
            SELECT b.account_id, b.value FROM account_blocks b JOIN accounts a ON a.id = b.account_id WHERE a.user_id = \(user)
            """)
        {
            blocked[try row["account_id"], default: []].append(try row["value"])
        }
        guard !blocked.isEmpty else { return [:] }
        var sources: [Int64: [String]] = [:]
        for row in try connection.rows(
            """
            SELECT a.id, s.value FROM accounts a JOIN outbound_sources s ON s.team_id = a.team_id
            WHERE a.user_id = \(user) AND EXISTS (SELECT 1 FROM account_blocks b WHERE b.account_id = a.id)
            """)
        {
            sources[try row["id"], default: []].append(try row["value"])
        }
        return blocked.reduce(into: [:]) {
            $0[$1.key] = AccountBlocks($1.value, sources: sources[$1.key] ?? [])
        }
    }

    /// Messages that were refused in the last seven days, for an account `a`.
    static func refusedOfWeek(_ now: Int64) -> SQL {
        """
        COALESCE((SELECT CAST(SUM(x.count) AS BIGINT) FROM account_refusals x
            WHERE x.account_id = a.id AND x.day > \(Day.number(now) - 7)), 0)
        """
    }

    /// The last day (days since 1970) on which a message was relayed in either
    /// direction, for an account `a`.
    static let usedDay: SQL = """
        (SELECT MAX(u.day) FROM (
            SELECT c.day FROM daily_counters c WHERE c.account_id = a.id
                AND c.kind IN (\(CounterKind.forwarded), \(CounterKind.replied))
            UNION ALL
            SELECT s.last_day FROM counter_totals s WHERE s.account_id = a.id
                AND s.kind IN (\(CounterKind.forwarded), \(CounterKind.replied))) u)
        """
}
