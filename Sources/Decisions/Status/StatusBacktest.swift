// Runs a status policy on past first authorizations.

import Accounts
import CEL
import Database
import RiskPolicy
import Support

/// The number of people who would get each status, and how many of those a team has since labelled
/// fraudulent.
package struct StatusBacktest: Sendable {
    /// For one status.
    package struct Count: Sendable, Equatable {
        /// The number to whom it was given.
        package var before = 0
        /// The number to whom the candidate would give it.
        package var after = 0
        /// Of those counted in `after`: consents for which a team reported fraud.
        package var fraudulentAfter = 0
    }

    package private(set) var counts: [PolicyStatus: Count] = [:]
    package private(set) var total = 0

    package subscript(_ status: PolicyStatus) -> Count { counts[status] ?? Count() }

    /// Reads the statuses given since a time.
    /// - Parameter since: seconds since 1970.
    package init(_ policy: Policy, listings: ListingStore, since: Int64) throws(StoreFailure) {
        var (time, last): (Int64, Int64) = (since, 0)
        while true {
            let rows = try listings.database.rows(
                """
                SELECT s.id, s.status, s.signals, s.decided_at, EXISTS (SELECT 1 FROM decisions d WHERE d.grant_id = s.grant_id
                    AND d.label = \(DecisionLabel.fraudulent)) AS is_fraud
                FROM status_decisions s WHERE s.decided_at >= \(time) AND (s.decided_at > \(time) OR s.id > \(last))
                ORDER BY s.decided_at, s.id LIMIT 1000
                """)
            for row in rows {
                (time, last) = try (row["decided_at"], row["id"])
                try add(policy, row)
            }
            if rows.count < 1_000 { return }
        }
    }

    private mutating func add(_ policy: Policy, _ row: SQLRow) throws(StoreFailure) {
        let (given, signals, isFraud): (Int, String, Bool) = try (
            row["status"], row["signals"], row["is_fraud"]
        )
        guard let before = PolicyStatus.allCases.first(where: { $0.code == given }),
            let now = CELTimestamp(seconds: try row["decided_at"]),
            let object = try? StrictJSON.parseObject(Array(signals.utf8), limit: 1 << 20)
        else { return }
        var input = policy.makeInput(event: .signUp, now: now)
        for member in object.members {
            guard let slot = policy.slot(named: member.name),
                let value = LoggedSignals.value(member.value, policy.signals[slot].type)
            else { continue }
            try? policy.set(slot: slot, to: value, in: &input)
        }
        total += 1
        counts[before, default: Count()].before += 1
        let after = policy.status(policy.decide(input))
        counts[after, default: Count()].after += 1
        if isFraud { counts[after, default: Count()].fraudulentAfter += 1 }
    }
}
