// The rows that belong to a hold: one declaration for each table, which retention, removals and the
// listing of held rows use.

import Database

/// A table with rows that a hold can keep.
package struct HeldTable: Sendable {
    package let data: DataClass
    /// The table's name.
    package let name: String
    /// The columns that identify and order its rows. A listing begins with them.
    let key: [String]
    /// The other columns of a listing.
    let others: [String]
    /// The key's column that a deletion compares first, if that is not the first one: SQLite
    /// compares all columns like the first, so a number is first only if all are numbers.
    fileprivate var comparedFirst: String?
    /// The account that a row `x` is about; nil if it is about no account.
    fileprivate let account: String?
    /// The team that a row `x` is about, if that does not follow from the account.
    fileprivate let team: String?

    private static let ofGrant = "(SELECT g.account_id FROM grants g WHERE g.id = x.grant_id)"

    package static let counters = HeldTable(
        data: .counters, name: "daily_counters", key: ["account_id", "day", "kind"],
        others: ["count"], account: "x.account_id", team: nil)
    package static let counterTotals = HeldTable(
        data: .counters, name: "counter_totals", key: ["account_id", "kind"],
        others: ["count", "last_day"], account: "x.account_id", team: nil)
    package static let checks = HeldTable(
        data: .checks, name: "checks", key: ["decision_id", "challenge"],
        others: ["grant_id", "method", "initiated_at", "passed_at", "failed_at"],
        account: ofGrant, team: nil)
    package static let decisions = HeldTable(
        data: .decisions, name: "decisions", key: ["id"],
        others: [
            "decision_id", "client_id", "grant_id", "claimed_event", "event", "decision",
            "challenges", "reasons", "wire_reasons", "signals", "policy_name", "policy_version",
            "policy_hash", "credential_state", "evaluated_at", "label", "labelled_at",
        ], account: ofGrant, team: "x.team_id")
    package static let statusDecisions = HeldTable(
        data: .decisions, name: "status_decisions", key: ["id"],
        others: [
            "grant_id", "status", "reasons", "signals", "policy_name", "policy_version",
            "policy_hash", "decided_at",
        ], account: ofGrant, team: nil)
    package static let deliveryMarks = HeldTable(
        data: .deliveries, name: "delivery_marks", key: ["account_id", "provider", "what", "day"],
        others: [], comparedFirst: "provider", account: "x.account_id", team: nil)
    package static let deliveryResults = HeldTable(
        data: .deliveries, name: "delivery_results",
        key: ["team_id", "hour", "provider", "outcome"], others: ["count"], account: nil,
        team: "x.team_id")
    package static let rejections = HeldTable(
        data: .rejections, name: "rejections", key: ["id"],
        others: [
            "source", "answer", "reason", "first_at", "last_at", "count", "reference",
        ], account: nil, team: "x.team_id")
    package static let uses = HeldTable(
        data: .usesByOthers, name: "uses_by_others",
        key: ["account_id", "ordinal", "day", "domain"],
        others: ["selector", "count", "first_at"], comparedFirst: "domain", account: "x.account_id",
        team: nil)
    package static let audit = HeldTable(
        data: .audit, name: "audit", key: ["id"],
        others: ["at", "actor", "action", "subject", "detail"], account: nil, team: nil)

    /// Every table, in the order of a listing.
    package static let all: [HeldTable] = [
        decisions, statusDecisions, checks, counters, counterTotals, deliveryMarks,
        deliveryResults, rejections, uses, audit,
    ]

    /// The columns of the key as a deletion compares them.
    var comparedKey: String {
        guard let comparedFirst else { return key.joined(separator: ", ") }
        return ([comparedFirst] + key.filter { $0 != comparedFirst }).joined(separator: ", ")
    }

    /// Whether a row `x` of the table belongs to a hold `h` that keeps its kind of data.
    var isOfHold: SQL {
        guard name != "audit" else { return Self.isAuditOfHold }
        var ways: [SQL] = []
        if let account { ways.append(Self.isOfHold(account: "\(raw: account)")) }
        if let team { ways.append("(h.scope = 'team' AND h.target = \(raw: team))") }
        return "(\(ways.dropFirst().reduce(ways[0]) { "\($0) OR \($1)" }))"
    }

    /// Whether an account with this number, a deleted one included, belongs to a hold `h`.
    static func isOfHold(account: SQL) -> SQL {
        """
        ((h.scope = 'address' AND h.target = \(account))
            OR EXISTS (SELECT 1 FROM held_accounts m WHERE m.hold_id = h.id AND m.account_id = \(account))
            OR EXISTS (SELECT 1 FROM accounts a WHERE a.id = \(account)
                AND ((h.scope = 'user' AND a.user_id = h.target) OR (h.scope = 'team' AND a.team_id = h.target))))
        """
    }

    /// Lines about what the hold names. Of a user also those about the accounts; of a team only
    /// those about the team itself.
    private static let isAuditOfHold: SQL = """
        (x.subject = h.subject OR (h.scope <> 'team' AND SUBSTR(x.subject, 1, 8) = 'account:' AND (
            EXISTS (SELECT 1 FROM held_accounts m WHERE m.hold_id = h.id
                AND x.subject = 'account:' || CAST(m.account_id AS TEXT))
            OR EXISTS (SELECT 1 FROM accounts a WHERE h.scope = 'user' AND a.user_id = h.target
                AND x.subject = 'account:' || CAST(a.id AS TEXT)))))
        """
}

extension DatabaseConnection {
    /// The condition that no hold keeps a row `x` of the table.
    ///
    /// Without a hold on its kind of data it is always true, so that the usual deletion reads
    /// nothing more than before.
    func isFree(_ table: HeldTable) throws(StoreFailure) -> SQL {
        guard try hasHold(on: table.data) else { return "1 = 1" }
        return """
            NOT EXISTS (SELECT 1 FROM holds h JOIN hold_data k ON k.hold_id = h.id
                AND k.data = \(table.data.name)
                WHERE h.ended_at IS NULL AND \(table.isOfHold))
            """
    }

    /// Whether a hold in force keeps this kind of data; nil: any kind.
    func hasHold(on data: DataClass? = nil) throws(StoreFailure) -> Bool {
        let ofKind: SQL = data.map { "k.data = \($0.name)" } ?? "1 = 1"
        return try row(
            """
            SELECT 1 AS found FROM holds h JOIN hold_data k ON k.hold_id = h.id
            WHERE h.ended_at IS NULL AND \(ofKind) LIMIT 1
            """) != nil
    }

    /// The kinds of data that holds keep of an account.
    func heldData(ofAccount account: Int64) throws(StoreFailure) -> Set<String> {
        guard try hasHold() else { return [] }
        let kinds: [String] = try values(
            """
            SELECT DISTINCT k.data FROM hold_data k JOIN holds h ON h.id = k.hold_id
            WHERE h.ended_at IS NULL AND \(HeldTable.isOfHold(account: "\(account)"))
            """)
        return Set(kinds)
    }

    /// The kinds of data that holds keep of a team.
    func heldData(ofTeam team: Int64) throws(StoreFailure) -> Set<String> {
        let kinds: [String] = try values(
            """
            SELECT DISTINCT k.data FROM hold_data k JOIN holds h ON h.id = k.hold_id
            WHERE h.ended_at IS NULL AND h.scope = 'team' AND h.target = \(team)
            """)
        return Set(kinds)
    }

    /// Records that a hold is about an account that is being deleted, so that its rows, and the
    /// audit's lines about it, still belong to the hold.
    func rememberHeld(account: Int64) throws(StoreFailure) {
        guard try hasHold() else { return }
        try run(
            """
            INSERT INTO held_accounts (hold_id, account_id)
            SELECT h.id, CAST(\(account) AS BIGINT) FROM holds h
            WHERE h.ended_at IS NULL AND \(HeldTable.isOfHold(account: "\(account)"))
            ON CONFLICT DO NOTHING
            """)
    }
}
