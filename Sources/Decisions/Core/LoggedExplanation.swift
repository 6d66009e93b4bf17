// A logged decision rule by rule, with the values that were compared. Pure.

import RiskPolicy

extension PolicyExplanation {
    /// Explains a decision under the policy of that time, with the outcomes of the log; nil if its
    /// signals cannot be read.
    package init?(_ record: DecisionRecord, policy: Policy) {
        guard let logged = LoggedSignals(record, for: policy) else { return nil }
        let outcomes: [(RuleOutcome, [String])] = [
            (.error, record.errors), (.waived, record.waived), (.snoozed, record.snoozed),
            (.matched, record.asked + record.skips), (.shadow, record.shadow),
            (.missing, record.missing),
        ]
        let rules = policy.trace(logged.input).rules.map { rule, _ in
            let id = policy.rules[rule].id
            return (rule: rule, outcome: outcomes.first { $0.1.contains(id) }?.0 ?? .notMatched)
        }
        self.init(policy: policy, input: logged.input, rules: rules, hidden: Set(logged.hashed))
    }
}
