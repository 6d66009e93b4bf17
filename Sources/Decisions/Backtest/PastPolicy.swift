// The data that a backtest has about past policies, and the signals that a candidate's conditions
// read.

import CEL
import RiskPolicy
import Support

/// The policy that decided at that time, at one event, compared with a candidate.
package struct PastPolicy: Sendable {
    /// Signals that it declared, counters only if it used them.
    package let signals: Set<String>
    /// By the position of the candidate's rule: the rule of that time with the same condition.
    let rules: [Int: String]
    /// Slots of the candidate whose signal has another meaning than at that time: the logged value
    /// is useless for it.
    let redefined: Set<Int>

    /// - Parameter signals: the signals that it declared, counters only if it used them.
    package init(
        _ policy: Policy, at event: PolicyEvent, signals: Set<String>, for candidate: Policy
    ) {
        self.signals = signals
        let conditions = ReadingCondition.all(of: policy, at: event).map {
            (ConditionMeaning($0, policy), policy.rules[$0.rule].id)
        }
        let known = Dictionary(conditions) { first, _ in first }
        rules = ReadingCondition.all(of: candidate, at: event).reduce(into: [:]) {
            rules, condition in
            rules[condition.rule] = known[ConditionMeaning(condition, candidate)]
        }
        redefined = Self.definable(candidate).filter { slot in
            guard let before = policy.slot(named: candidate.signals[slot].name) else { return true }
            return SignalMeaning(candidate, slot) != SignalMeaning(policy, before)
        }
    }

    /// The slots of signals that a policy defines itself.
    static func definable(_ policy: Policy) -> Set<Int> {
        Set(
            policy.signals.indices.filter { slot in
                if case .postern = policy.signals[slot].source { false } else { true }
            })
    }
}

/// The meaning of a policy's signal. Two meanings are equal if every value is made in the same way
/// and has the same bounds.
struct SignalMeaning: Hashable {
    /// A declaration: of the signal itself, and of the values that a counter counts by.
    private struct Declaration: Hashable {
        let name: ExactString
        let type: String
        let mayBeMissing: Bool
        let minimum: Double?
        let maximum: Double?
        let maximumLength: Int
    }

    private let declarations: [Declaration]
    /// The definition of a counter; nil for other signals.
    private let definition: ExactString?

    init(_ policy: Policy, _ slot: Int) {
        let signal = policy.signals[slot]
        let counter = policy.counters.first { $0.signal.hasSameOctets(as: signal.name) }
        let counted = [counter?.key, counter?.distinct].compactMap {
            $0.flatMap { policy.slot(named: $0.text) }
        }
        definition = counter.map { ExactString($0.definition) }
        declarations = ([slot] + counted).map { slot in
            let signal = policy.signals[slot]
            return Declaration(
                name: ExactString(signal.name), type: signal.type.text,
                mayBeMissing: signal.mayBeMissing,
                minimum: signal.minimum, maximum: signal.maximum,
                maximumLength: signal.maximumLength)
        }
    }
}

/// The meaning of a condition: its text, and the meaning of every name in it. Conditions with equal
/// meanings have the same outcome.
private struct ConditionMeaning: Hashable {
    private enum Part: Hashable {
        case constant(type: String, ExactString)
        case list(Set<ExactString>)
        case liveList(LiveListName)
        case signal(SignalMeaning)
    }

    private let text: ExactString
    /// In the order of the text.
    private let parts: [Part]

    init(_ condition: ReadingCondition, _ policy: Policy) {
        text = ExactString(condition.text)
        var parts: [Part] = []
        policy.rules[condition.rule].condition.resolved.visit { node in
            switch node.kind {
            case .constant(let value):
                parts.append(.constant(type: value.typeName, ExactString(value.text)))
            case .stringSet(let list): parts.append(.list(list.members))
            case .liveList(let list): parts.append(.liveList(list))
            case .variable(let slot), .hasVariable(let slot):
                // The slot after the last signal is the time.
                if policy.signals.indices.contains(slot) {
                    parts.append(.signal(SignalMeaning(policy, slot)))
                }
            default: break
            }
        }
        self.parts = parts
    }
}

/// A rule's condition, with the signals that it reads.
struct ReadingCondition: Sendable {
    /// The position of its rule.
    let rule: Int
    /// With single spaces.
    let text: String
    let slots: Set<Int>
    /// The slots that it tests with `has()`.
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
                rule: rule, text: PersonText.withSingleSpaces(condition.text),
                slots: Set(condition.resolved.variables),
                asked: asked, readsLists: readsLists)
        }
    }

    /// Whether its outcome depends on values that the log lacks: values of these slots, or the
    /// entries of lists.
    /// - Parameter unusable: slots whose value may be unusable, which would make the condition an
    ///   error.
    func depends(
        on hidden: Set<Int>, unusable: Set<Int>, _ input: PolicyInput, _ policy: Policy
    ) -> Bool {
        guard readsLists || !slots.isDisjoint(with: hidden) else { return false }
        guard slots.isDisjoint(with: unusable) else { return true }
        guard asked.isDisjoint(with: hidden) else { return true }
        if case .success(.bool) = policy.evaluate(policy.rules[rule].condition.resolved, input) {
            return false
        }
        return policy.fault(of: rule, input) == nil
    }
}

extension DecisionRecord {
    /// The outcome of a rule's condition at that time.
    func outcome(_ rule: String) -> ConditionOutcome {
        if errors.contains(rule) { return .error }
        if missing.contains(rule) { return .missing }
        return [asked, skips, waived, shadow, snoozed].contains { $0.contains(rule) }
            ? .holds : .fails
    }
}
