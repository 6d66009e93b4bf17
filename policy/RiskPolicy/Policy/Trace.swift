// A decision rule by rule: for the log, `explain` and replay.

import CEL

/// The outcome of a rule.
package enum RuleOutcome: String, Sendable {
    case matched
    case notMatched = "not_matched"
    case missing
    case error
    /// Matched, but its request is waived.
    case waived
    /// A shadow rule that would have counted.
    case shadow
}

/// A decision and how it was reached.
package struct PolicyTrace: Sendable {
    /// The decision.
    package let result: PolicyResult
    /// All evaluated rules, in the policy's order: position and outcome.
    package let rules: [(rule: Int, outcome: RuleOutcome)]
    /// The resolved signals.
    package let input: PolicyInput
}

extension Policy {
    /// Decides, and records how the decision was reached.
    package func trace(_ input: PolicyInput) -> PolicyTrace {
        let result = decide(input)
        let evaluated = RuleSet(bits: program.events[input.event.index].evaluated)
        var rules: [(rule: Int, outcome: RuleOutcome)] = []
        rules.reserveCapacity(evaluated.count)
        for rule in evaluated { rules.append((rule, outcome(of: rule, in: result))) }
        return PolicyTrace(result: result, rules: rules, input: input)
    }

    /// The outcome of a rule in a decision. A rule that matched because its condition is missing counts as matched.
    package func outcome(of rule: Int, in result: PolicyResult) -> RuleOutcome {
        if result.errors.contains(rule) { return .error }
        if result.waived.contains(rule) { return .waived }
        if result.asked.contains(rule) || result.skips.contains(rule) { return .matched }
        if result.shadow.contains(rule) { return .shadow }
        return result.missing.contains(rule) ? .missing : .notMatched
    }

    /// The outcome of a rule's condition alone for an input: `matched`, `notMatched`, `missing` or `error`.
    package func outcome(of rule: Int, _ input: PolicyInput) -> RuleOutcome {
        guard rules.indices.contains(rule) else { return .notMatched }
        return switch evaluate(rules[rule].condition.resolved, input) {
        case .success(.bool(true)): .matched
        case .success(.missing): rules[rule].matchesWhenMissing ? .matched : .missing
        case .success: .notMatched
        case .failure: .error
        }
    }

    /// Evaluates any part of a condition by the interpreter; returns the reason where there is no value.
    package func evaluate(_ part: ResolvedExpression, _ input: PolicyInput) -> Result<CELValue, EvaluationError> {
        var interpreter = Interpreter(
            variables: InputVariables(input: adopted(input)), zones: zones)
        do throws(EvaluationError) {
            return .success(try interpreter.evaluate(part))
        } catch {
            return .failure(error)
        }
    }
}
