// What came of decisions, counted.

import RiskPolicy

/// Of some decisions: what teams reported of their checks, and how they labelled the people.
package struct OutcomeCounts: Sendable, Equatable {
    /// Decisions that asked for a check.
    package var asked = 0
    /// Of those: a check was passed.
    package var passed = 0
    /// None was passed, and one was reported as failed.
    package var failed = 0
    /// None was begun, or begun and nothing reported within an hour.
    package var abandoned = 0
    /// Not decided yet: asked less than an hour ago.
    package var open = 0
    /// Labels, of asked and allowed alike.
    package var legitimate = 0
    package var fraudulent = 0

    package init() {}

    /// Asked, and settled one way or another.
    package var settled: Int { passed + failed + abandoned }
    package var labelled: Int { legitimate + fraudulent }

    /// Shares of what is settled, 0 … 1; nil where nothing is.
    package var passRate: Double? { rate(passed) }
    package var failureRate: Double? { rate(failed) }
    package var abandonmentRate: Double? { rate(abandoned) }

    private func rate(_ count: Int) -> Double? { settled == 0 ? nil : Double(count) / Double(settled) }

    /// Counts one decision as of now.
    package mutating func add(_ decision: LoggedDecision, now: Int64) {
        switch decision.label {
        case .legitimate: legitimate += 1
        case .fraudulent: fraudulent += 1
        case nil: break
        }
        guard decision.record.decision == PolicyDecision.requireVerification.rawValue else { return }
        asked += 1
        if decision.checks.contains(where: { $0.passedAt != nil }) {
            passed += 1
        } else if decision.checks.contains(where: { $0.failedAt != nil }) {
            failed += 1
        } else if decision.checks.allSatisfy({ $0.failure(now: now) != nil }),
            now - decision.record.evaluatedAt >= CheckRecord.timeout
        {
            abandoned += 1
        } else {
            open += 1
        }
    }
}
