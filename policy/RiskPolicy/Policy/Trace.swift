// A decision rule by rule: for the log, `explain` and replay.

import CEL

/// The outcome of a rule.
package enum RuleOutcome: String, Encodable, Sendable {
    case matched
    case notMatched = "not_matched"
    case missing
    case error
    /// Matched, but another rule waived its check.
    case waived
    /// Matched, but a person snoozed it for this account.
    case snoozed
    /// A shadow rule that would have counted.
    case shadow
}

/// A decision, and how it was made.
package struct PolicyTrace: Sendable {
    /// The decision.
    package let result: PolicyResult
    /// All evaluated rules, in the policy's order: position and outcome.
    package let rules: [(rule: Int, outcome: RuleOutcome)]
    /// The resolved signals.
    package let input: PolicyInput
}

extension Policy {
    /// Decides, and records how the decision was made.
    package func trace(_ input: PolicyInput) -> PolicyTrace {
        let result = decide(input)
        let evaluated = RuleSet(bits: plan.events[input.event.index].evaluated)
        var rules: [(rule: Int, outcome: RuleOutcome)] = []
        rules.reserveCapacity(evaluated.count)
        for rule in evaluated { rules.append((rule, outcome(of: rule, in: result))) }
        return PolicyTrace(result: result, rules: rules, input: input)
    }

    /// The outcome of a rule in a decision. A rule that matched because its condition is
    /// missing counts as matched.
    package func outcome(of rule: Int, in result: PolicyResult) -> RuleOutcome {
        if result.errors.contains(rule) { return .error }
        if result.waived.contains(rule) { return .waived }
        if result.snoozed.contains(rule) { return .snoozed }
        if result.asked.contains(rule) || result.skips.contains(rule) { return .matched }
        if result.shadow.contains(rule) { return .shadow }
        return result.missing.contains(rule) ? .missing : .notMatched
    }

    /// The outcome of a rule's condition alone for an input: `matched`,
    /// `notMatched`, `missing` or `error`.
    package func outcome(of rule: Int, _ input: PolicyInput) -> RuleOutcome {
        guard rules.indices.contains(rule) else { return .notMatched }
        // A fault has priority over the rest of the condition.
        if fault(in: rules[rule].condition.resolved, input) != nil { return .error }
        return switch evaluate(rules[rule].condition.resolved, input) {
        case .success(.bool(true)): .matched
        case .success(.missing): rules[rule].matchesWhenMissing ? .matched : .missing
        case .success: .notMatched
        case .failure: .error
        }
    }

    /// Why a rule's condition cannot be evaluated for an input; nil if it can.
    package func fault(of rule: Int, _ input: PolicyInput) -> EvaluationError? {
        fault(in: rules[rule].condition.resolved, input)
    }

    /// Evaluates any part of a condition with the interpreter; returns the reason if it has no
    /// value.
    package func evaluate(
        _ part: ResolvedExpression, _ input: PolicyInput
    ) -> Result<CELValue, EvaluationError> {
        if let fault = fault(in: part, input) { return .failure(fault) }
        var interpreter = Interpreter(variables: adopted(input).variables, zones: zones)
        do throws(EvaluationError) {
            return .success(try interpreter.evaluate(part))
        } catch {
            return .failure(error)
        }
    }

    /// Most errors of a decision for which a reason is given.
    package static let maximumErrorTexts = 8

    /// Why conditions of a decision ended in an error: `rule: division by zero`, for the first of
    /// them. Contains no value of a signal.
    package func errorTexts(_ result: PolicyResult, _ input: PolicyInput) -> [String] {
        guard !result.errors.isEmpty || result.challengeErrors != 0 else { return [] }
        let rules = result.errors.map { (self.rules[$0].id, self.rules[$0].condition.resolved) }
        let others = challenges.indices.filter { result.challengeErrors >> UInt8($0) & 1 == 1 }
            .compactMap { position in
                challenges[position].unavailableWhen.map {
                    (challenges[position].kind, $0.resolved)
                }
            }
        let own = adopted(input)
        // One budget for all, as in the decision.
        var stepsLeft = ExpressionLimits.maximumSteps
        return (rules + others).prefix(Self.maximumErrorTexts).map { name, condition in
            if let fault = fault(in: condition, own) { return "\(name): \(fault.message)" }
            var interpreter = Interpreter(
                variables: own.variables, zones: zones, steps: max(0, stepsLeft))
            defer { stepsLeft = interpreter.stepsLeft }
            do throws(EvaluationError) {
                _ = try interpreter.evaluate(condition)
                // The condition has a value on its own, so the conditions before it used up the
                // steps.
                return
                    "\(name): the conditions of the decision took more than \(ExpressionLimits.maximumSteps) steps together"
            } catch {
                return "\(name): \(error.message)"
            }
        }
    }
}
