// What a backtest knows of the policies that decided, and what a candidate's conditions read.

import CEL
import RiskPolicy
import Support

/// The policy that decided at that time, at one event.
package struct PastPolicy: Sendable {
    /// Signals that it declared, counters only if it used them.
    package let signals: Set<String>
    /// Its rules by the text of their condition.
    package let rules: [String: String]

    package init(_ policy: Policy, at event: PolicyEvent, signals: Set<String>) {
        self.signals = signals
        let conditions = ReadingCondition.all(of: policy, at: event)
        rules = Dictionary(conditions.map { ($0.text, policy.rules[$0.rule].id) }) { first, _ in first }
    }
}

/// A rule's condition, with what it reads.
struct ReadingCondition: Sendable {
    /// The position of its rule.
    let rule: Int
    /// Two with the same text have the same outcome.
    let text: String
    let slots: Set<Int>
    /// The slots that it asks with `has()`.
    private let asked: Set<Int>
    private let readsLists: Bool

    /// The conditions that are evaluated at an event.
    static func all(of policy: Policy, at event: PolicyEvent) -> [ReadingCondition] {
        guard let now = CELTimestamp(seconds: 0) else { return [] }
        return policy.trace(policy.makeInput(event: event, now: now)).rules.map { rule, _ in
            let condition = policy.rules[rule].condition
            var (asked, readsLists): (Set<Int>, Bool) = ([], false)
            condition.resolved.visit { node in
                if case .hasVariable(let slot) = node.kind { asked.insert(slot) }
                if case .liveList = node.kind { readsLists = true }
            }
            return ReadingCondition(
                rule: rule, text: PersonText.withSingleSpaces(condition.text), slots: Set(condition.resolved.variables),
                asked: asked, readsLists: readsLists)
        }
    }

    /// Whether its outcome depends on what the log does not have: values of these slots, or the entries of lists.
    func depends(on hidden: Set<Int>, _ input: PolicyInput, _ policy: Policy) -> Bool {
        guard readsLists || !slots.isDisjoint(with: hidden) else { return false }
        guard asked.isDisjoint(with: hidden) else { return true }
        if case .success(.bool) = policy.evaluate(policy.rules[rule].condition.resolved, input) { return false }
        return policy.fault(of: rule, input) == nil
    }
}

extension DecisionRecord {
    /// The outcome of a rule's condition at that time.
    func outcome(_ rule: String) -> ConditionOutcome {
        if errors.contains(rule) { return .error }
        if missing.contains(rule) { return .missing }
        return [asked, skips, waived, shadow, snoozed].contains { $0.contains(rule) } ? .holds : .fails
    }
}
