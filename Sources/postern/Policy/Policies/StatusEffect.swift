// The effect of a policy change on the status policy: for `diff` and `activate`.

import Accounts
import Decisions
import RiskPolicy
import Support

/// The change, the status policy in force, and the number of people with each status among those
/// affected.
struct StatusEffect {
    /// The maximum number of decisions to compare, the newest of the log.
    static let decisions = 10_000

    let influence: StatusInfluence
    /// Nil without a store.
    let tally: StatusTally?

    /// - Parameter store: if nil, compares with the status policy in the program, and counts no
    ///   users.
    init?(from old: Policy, to new: Policy, in store: Store?) throws {
        guard old.kind == .verification, new.kind == .verification else { return nil }
        let status =
            try store.map { store in try ReferredPolicy(PolicyKind.statusName) { store.policies } }
            ?? ReferredPolicy(.builtInStatus)
        influence = StatusInfluence(from: old, to: new, status: status.policy)
        guard !influence.isEmpty else { return nil }
        tally = try store.map { store in
            StatusTally(
                old, new, on: try store.decisions.newest(DecisionFilter(), limit: Self.decisions))
        }
    }

    var sentences: [String] {
        influence.sentences
            + (tally.map { $0.sentences(of: "the last \(Count.text($0.read)) logged decisions") }
                ?? [])
    }

    /// As JSON.
    var members: Members {
        let counts = tally?.counts.map { status, count -> Members in
            [
                "status": status?.rawValue, "concerned": count.concerned,
                "answered_the_same": count.unchanged,
            ]
        }
        return ["sentences": influence.sentences, "decisions": tally?.read, "statuses": counts]
    }
}
