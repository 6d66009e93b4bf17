// A decision rule by rule: for the log, for `explain`, for replay.

import CEL

/// What a rule came to.
package enum RuleOutcome: String, Sendable {
    case matched
    case notMatched = "not_matched"
    case missing
    case error
    /// Matched, and its request is waived.
    case waived
    /// A shadow rule that would have counted.
    case shadow
}

/// A decision with what led to it.
package struct PolicyTrace: Sendable {
    /// The decision.
    package let result: PolicyResult
    /// Every rule that was evaluated, in the policy's order: its position and what it came to.
    package let rules: [(rule: Int, outcome: RuleOutcome)]
    /// The signals as they were resolved.
    package let input: PolicyInput
}

extension Policy {
    /// Decides, and keeps what led to it.
    package func trace(_ input: PolicyInput) -> PolicyTrace {
        let result = decide(input)
        let evaluated = RuleSet(bits: program.events[input.event.index].evaluated)
        var rules: [(rule: Int, outcome: RuleOutcome)] = []
        rules.reserveCapacity(evaluated.count)
        for rule in evaluated { rules.append((rule, outcome(of: rule, in: result))) }
        return PolicyTrace(result: result, rules: rules, input: input)
    }

    /// What a rule came to in a decision. A rule that matched because its condition ended missing counts as matched.
    package func outcome(of rule: Int, in result: PolicyResult) -> RuleOutcome {
        if result.errors.contains(rule) { return .error }
        if result.waived.contains(rule) { return .waived }
        if result.asked.contains(rule) || result.skips.contains(rule) { return .matched }
        if result.shadow.contains(rule) { return .shadow }
        return result.missing.contains(rule) ? .missing : .notMatched
    }

    /// Whether a rule's condition holds for an input, for itself: `matched`, `notMatched`, `missing` or `error`.
    package func outcome(of rule: Int, _ input: PolicyInput) -> RuleOutcome {
        guard rules.indices.contains(rule) else { return .notMatched }
        return switch evaluate(rules[rule].condition.resolved, input) {
        case .success(.bool(true)): .matched
        case .success(.missing): rules[rule].matchesWhenMissing ? .matched : .missing
        case .success: .notMatched
        case .failure: .error
        }
    }

    /// Evaluates any part of a condition by the interpreter; says why where there is no value.
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
