// How well a policy separates fraud from the rest: the share of each that is checked, from the
// strictest threshold to none.

import RiskPolicy

/// Labelled cases by how strong a check a policy requires.
package struct ROC: Sendable, Equatable {
    private struct Count: Sendable, Equatable {
        var fraud = 0
        var rest = 0
    }

    /// By score.
    private var cases: [Int: Count] = [:]

    package init() {}

    /// How strong a check a decision requires: first by the strongest check, then by the number of
    /// rules. 0: none.
    package static func score(rank: Int, rules: Int) -> Int { rank * 128 + min(127, rules) }

    /// By the kind of check: its rank, 1 for the weakest.
    package static func ranks(_ policy: Policy) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: policy.challenges.enumerated().map { ($1.kind, $0 + 1) })
    }

    static func score(_ decision: ComparedDecision, ranks: [String: Int]) -> Int {
        guard decision.asks else { return 0 }
        return score(
            rank: decision.challenges.first.flatMap { ranks[$0] } ?? 1, rules: decision.rules.count)
    }

    package mutating func add(_ score: Int, isFraud: Bool) {
        if isFraud {
            cases[score, default: Count()].fraud += 1
        } else {
            cases[score, default: Count()].rest += 1
        }
    }

    /// Shares of 1 that score at least as high as each threshold, from none to all.
    package var points: [(rest: Double, fraud: Double)] {
        let all = cases.values.reduce(Count()) {
            Count(fraud: $0.fraud + $1.fraud, rest: $0.rest + $1.rest)
        }
        guard all.fraud > 0, all.rest > 0 else { return [] }
        var points: [(rest: Double, fraud: Double)] = [(0, 0)]
        var sum = Count()
        for (_, count) in cases.sorted(by: { $0.key > $1.key }) {
            sum = Count(fraud: sum.fraud + count.fraud, rest: sum.rest + count.rest)
            points.append(
                (Double(sum.rest) / Double(all.rest), Double(sum.fraud) / Double(all.fraud)))
        }
        return points
    }

    /// The area under the curve, 0.5 … 1 for a policy that is better than chance; nil unless there
    /// are cases of both kinds.
    package var area: Double? {
        let points = points
        guard points.count > 1 else { return nil }
        return zip(points, points.dropFirst()).reduce(0) {
            $0 + ($1.1.rest - $1.0.rest) * ($1.1.fraud + $1.0.fraud) / 2
        }
    }
}
