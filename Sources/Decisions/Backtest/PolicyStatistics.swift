// Effects of the rules in force on people: how often each rule requires a check, and the outcomes.

import RiskPolicy

/// Counts over logged decisions, by rule and by event.
package struct PolicyStatistics: Sendable {
    /// For one rule.
    package struct Rule: Sendable, Equatable {
        /// Of the decisions in which it required a check; for a skip rule, of those in which it
        /// matched.
        package var outcomes = OutcomeCounts()
        /// Decisions in which it required a check or, for a skip rule, matched.
        package var matched = 0
        /// Decisions in which it matched, but another rule waived its check.
        package var waived = 0
        /// Decisions in which it would have counted if it had not been in shadow.
        package var shadow = 0
        /// Decisions in which a missing value or an error ended its condition.
        package var missing = 0
        package var errors = 0
    }

    /// For one event.
    package struct Event: Sendable, Equatable {
        package var questions = 0
        package var outcomes = OutcomeCounts()
        /// Share of requests that required a check; nil without requests.
        package var stepUpRate: Double? {
            questions == 0 ? nil : Double(outcomes.asked) / Double(questions)
        }
    }

    /// By rule id.
    package private(set) var rules: [String: Rule] = [:]
    /// By event.
    package private(set) var events: [String: Event] = [:]
    package private(set) var degraded = 0
    package private(set) var overridden = 0
    /// Number of decisions by policy name and version.
    package private(set) var policies: [String: Int] = [:]
    private let now: Int64

    package init(now: Int64) { self.now = now }

    package var total: Event {
        events.values.reduce(into: Event()) { sum, event in
            sum.questions += event.questions
            sum.outcomes = sum.outcomes + event.outcomes
        }
    }

    package mutating func add(_ decision: LoggedDecision) {
        let record = decision.record
        events[record.event, default: Event()].questions += 1
        events[record.event, default: Event()].outcomes.add(decision, now: now)
        policies["\(record.policyName) \(record.policyVersion)", default: 0] += 1
        if record.isDegraded { degraded += 1 }
        if record.overriddenBy != nil { overridden += 1 }
        for id in record.asked + record.skips {
            rules[id, default: Rule()].matched += 1
            rules[id, default: Rule()].outcomes.add(decision, now: now)
        }
        for id in record.waived { rules[id, default: Rule()].waived += 1 }
        for id in record.shadow { rules[id, default: Rule()].shadow += 1 }
        for id in record.missing { rules[id, default: Rule()].missing += 1 }
        for id in record.errors { rules[id, default: Rule()].errors += 1 }
    }
}

extension OutcomeCounts {
    static func + (left: OutcomeCounts, right: OutcomeCounts) -> OutcomeCounts {
        var sum = left
        sum.asked += right.asked
        sum.passed += right.passed
        sum.observed += right.observed
        sum.failed += right.failed
        sum.abandoned += right.abandoned
        sum.open += right.open
        sum.legitimate += right.legitimate
        sum.fraudulent += right.fraudulent
        return sum
    }
}
