// Counts the outcomes of decisions.

import RiskPolicy

/// For a set of decisions: the outcomes of the checks, seen by Postern or reported by the teams,
/// and the teams' labels for the people.
package struct OutcomeCounts: Sendable, Equatable {
    /// Decisions that required a check.
    package var asked = 0
    /// Of those: at least one check was passed.
    package var passed = 0
    /// Of `passed`: Postern carried out a check that was passed. The teams reported the others.
    package var observed = 0
    /// No check was passed, and at least one was reported as failed.
    package var failed = 0
    /// No check was begun, or no report came within an hour after one was begun.
    package var abandoned = 0
    /// Not final yet: the decision, or the start of a check, is less than an hour old.
    package var open = 0
    /// Labels of all decisions, with and without a check.
    package var legitimate = 0
    package var fraudulent = 0

    package init() {}

    /// Decisions that required a check and have a final outcome.
    package var settled: Int { passed + failed + abandoned }
    package var labelled: Int { legitimate + fraudulent }

    /// Shares of `settled`, 0 … 1; nil if `settled` is 0.
    package var passRate: Double? { rate(passed) }
    /// Share of `passed`; nil without passes.
    package var observedRate: Double? { passed == 0 ? nil : Double(observed) / Double(passed) }
    package var failureRate: Double? { rate(failed) }
    package var abandonmentRate: Double? { rate(abandoned) }

    private func rate(_ count: Int) -> Double? {
        settled == 0 ? nil : Double(count) / Double(settled)
    }

    /// Counts one decision as of now.
    package mutating func add(_ decision: LoggedDecision, now: Int64) {
        switch decision.label {
        case .legitimate: legitimate += 1
        case .fraudulent: fraudulent += 1
        case nil: break
        }
        guard decision.record.decision == PolicyDecision.requireVerification.rawValue else {
            return
        }
        asked += 1
        let passes = decision.checks.filter { $0.passedAt != nil }
        if !passes.isEmpty {
            passed += 1
            if passes.contains(where: { $0.source == .observed }) { observed += 1 }
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
