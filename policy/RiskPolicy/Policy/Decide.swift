// The decision: the outcomes of the rules, combined (docs/POLICY-REFERENCE.md, "How
// a decision is made").

import CEL

/// A decision in compact form: sets of rules and codes by position.
/// `Policy.answer` gives the names.
package struct PolicyResult: Sendable, Equatable {
    /// The event of the request.
    package var event: PolicyEvent
    /// One of the two.
    package var decision: PolicyDecision = .allow
    /// Whether history was unavailable.
    package var isDegraded = false
    /// Rules that require a check.
    package var asked = RuleSet()
    /// Skip rules that matched.
    package var skips = RuleSet()
    /// Require rules that matched, but were waived.
    package var waived = RuleSet()
    /// Rules whose condition is missing.
    package var missing = RuleSet()
    /// Rules whose condition ended in an error.
    package var errors = RuleSet()
    /// Rules that would have required a check, but were snoozed.
    package var snoozed = RuleSet()
    /// Shadow rules that would have counted.
    package var shadow = RuleSet()
    /// Reason codes, by position in `Policy.reasonCodes`.
    package var reasons = RuleSet()
    /// One bit for each offered challenge; passing any one is enough. 0 exactly when allowed.
    package var challenges: UInt8 = 0
    /// Challenges whose `unavailable_when` ended in an error; they count as available.
    package var challengeErrors: UInt8 = 0
    /// Position of the guarantee that overrode the rules' decision; -1 if none did. It is counted
    /// and logged.
    package var overridingGuarantee: Int8 = -1
}

extension Policy {
    /// Decides. Every input gets one of the two decisions.
    package func decide(_ input: PolicyInput) -> PolicyResult {
        if input.plan === plan, !input.isHistoryUnavailable { return plan.decide(input) }
        var own = adopted(input)
        if own.isHistoryUnavailable { own.removeHistory() }
        return plan.decide(own)
    }
}

/// The outcomes of rules, as sets of their positions.
struct RuleOutcomes {
    var matched: UInt128 = 0
    var missing: UInt128 = 0
    var errors: UInt128 = 0

    mutating func note(_ outcome: ConditionOutcome, rule: Int) {
        let bit: UInt128 = 1 << UInt128(rule)
        switch outcome {
        case .holds: matched |= bit
        case .fails: break
        case .missing: missing |= bit
        case .error: errors |= bit
        }
    }
}

/// Outcomes of conditions by the position of their rule.
package struct KnownOutcomes: Sendable {
    /// The rules whose outcome is known.
    fileprivate var rules: UInt128 = 0
    fileprivate var outcomes = RuleOutcomes()

    package init() {}

    /// - Parameter rule: its position in the policy.
    package mutating func set(_ outcome: ConditionOutcome, rule: Int) {
        let others = ~(1 << UInt128(rule) as UInt128)
        outcomes.matched &= others
        outcomes.missing &= others
        outcomes.errors &= others
        outcomes.note(outcome, rule: rule)
        rules |= ~others
    }

    fileprivate func replace(_ own: inout RuleOutcomes, among evaluated: UInt128) {
        let rules = self.rules & evaluated
        own.matched = own.matched & ~rules | outcomes.matched & rules
        own.missing = own.missing & ~rules | outcomes.missing & rules
        own.errors = own.errors & ~rules | outcomes.errors & rules
    }
}

extension PolicyPlan {
    func decide(_ input: PolicyInput) -> PolicyResult {
        var result = PolicyResult(event: input.event)
        var outcomes = RuleOutcomes()
        let event = events[input.event.index]
        // One budget for all conditions.
        var interpreter = Interpreter(variables: input.variables, zones: zones)
        for rule in event.rules {
            outcomes.note(interpreter.outcome(rule.condition.expression), rule: rule.position)
        }
        input.known.replace(&outcomes, among: event.evaluated)
        let isDoubtful = !input.faults.isEmpty
        let doubtful = isDoubtful ? holdFaults(input, &outcomes) : 0
        let matched = outcomes.matched | (outcomes.missing & whenMissing)
        let active = matched & ~shadow
        let errors = outcomes.errors & ~shadow & ~skip
        let skips = active & skip
        var waived: UInt128 = 0
        let required = (active | errors) & require
        if skips != 0, required != 0 {
            let strongest = strongestChallenge(of: skips)
            waived = required & ~errors & upToChallenge[strongest]
            if errorChallenge <= strongest {
                waived |= required & errors & (~doubtful | upToChallenge[strongest])
            }
        }
        let asking = (active | errors) & always | (required & ~waived)
        let asked = asking & ~input.snoozed.bits
        result.asked = RuleSet(bits: asked)
        result.snoozed = RuleSet(bits: asking & input.snoozed.bits)
        result.skips = RuleSet(bits: skips)
        result.waived = RuleSet(bits: waived)
        result.missing = RuleSet(bits: outcomes.missing)
        result.errors = RuleSet(bits: outcomes.errors)
        result.shadow = RuleSet(bits: matched & shadow)
        result.isDegraded = input.isHistoryUnavailable
        var strongest = -1
        var reasons: UInt128 = 0
        if asked & ~errors != 0 { strongest = strongestChallenge(of: asked & ~errors) }
        if asked & errors != 0 {
            strongest = max(strongest, errorChallenge)
            // A usable value might have required the rule's own challenge.
            if asked & errors & doubtful != 0 {
                strongest = max(strongest, strongestChallenge(of: asked & errors & doubtful))
            }
            reasons |= errorBit
        }
        if input.isHistoryUnavailable, event.degraded >= 0 {
            strongest = max(strongest, event.degraded)
            reasons |= historyBit
        }
        for rule in RuleSet(bits: strongest >= 0 ? asked & ~errors : skips) {
            reasons |= reasonBits[rule]
        }
        result.reasons = RuleSet(bits: reasons)
        result.decision = strongest >= 0 ? .requireVerification : .allow
        holdGuarantees(input, &interpreter, &strongest, &result)
        if strongest >= 0 { offer(from: strongest, input, &interpreter, &result) }
        return result
    }

    /// The strongest challenge of a set that is not empty.
    private func strongestChallenge(of rules: UInt128) -> Int {
        var position = byChallenge.count - 1
        while position > 0, rules & byChallenge[position] == 0 { position -= 1 }
        return position
    }

    /// Enforces the guarantees on the result, after any decision of the rules.
    private func holdGuarantees(
        _ input: PolicyInput, _ interpreter: inout Interpreter, _ strongest: inout Int,
        _ result: inout PolicyResult
    ) {
        var overriding = -1
        var asks = false
        for guarantee in events[input.event.index].guarantees
        where overriding < 0 || (guarantee.asks && !asks) {
            let outcome = interpreter.outcome(guarantee.condition.expression)
            let holds =
                // A guarantee that reads an unusable value holds only if it requires a check.
                isDoubtful(guarantee.condition, input)
                ? guarantee.asks
                // A guarantee that requires a check holds if no steps are left for it, so that no
                // one is allowed for lack of steps.
                : outcome == .holds
                    || (outcome == .error && guarantee.asks && interpreter.stepsLeft < 0)
            guard holds else { continue }
            overriding = guarantee.position
            asks = guarantee.asks
        }
        // A skip that was left out because of an unusable value must not lead to a weaker check
        // than the guarantee would have required.
        if !input.faults.isEmpty, asks, result.decision == .requireVerification {
            strongest = max(strongest, errorChallenge)
        }
        guard overriding >= 0, asks != (result.decision == .requireVerification) else { return }
        result.decision = asks ? .requireVerification : .allow
        result.overridingGuarantee = Int8(truncatingIfNeeded: overriding)
        result.reasons = RuleSet(bits: guaranteeBit)
        strongest = asks ? errorChallenge : -1
    }

    /// Offers the required challenge and stronger ones that are available; otherwise the nearest
    /// weaker one; at least one.
    private func offer(
        from strongest: Int, _ input: PolicyInput, _ interpreter: inout Interpreter,
        _ result: inout PolicyResult
    ) {
        let event = events[input.event.index]
        var available = event.offered
        var doubtful: UInt8 = 0
        for (position, condition) in event.unavailable {
            let bit: UInt8 = 1 << UInt8(position)
            if isDoubtful(condition, input) {
                doubtful |= bit
                continue
            }
            switch interpreter.outcome(condition.expression) {
            case .holds: available &= ~bit
            case .error: result.challengeErrors |= bit
            case .fails, .missing: break
            }
        }
        let weaker: UInt8 = (1 &<< UInt8(truncatingIfNeeded: strongest)) &- 1
        result.challengeErrors |= doubtful
        if doubtful != 0 { available = narrowed(available, doubtful, weaker: weaker) }
        if available & ~weaker != 0 {
            result.challenges = available & ~weaker
        } else if available & weaker != 0 {
            result.challenges =
                1 &<< UInt8(truncatingIfNeeded: 7 - (available & weaker).leadingZeroBitCount)
        } else {
            result.challenges = 1 &<< UInt8(truncatingIfNeeded: strongest)
        }
    }

    /// The challenges to choose from if it is unknown whether some are available. Passing one of
    /// them must never be easier than it would be if this were known.
    private func narrowed(_ available: UInt8, _ doubtful: UInt8, weaker: UInt8) -> UInt8 {
        let certain = available & ~doubtful
        if certain & ~weaker != 0 { return certain }
        let enough = available & doubtful & ~weaker
        guard enough != 0 else { return available }
        return 1 &<< UInt8(truncatingIfNeeded: 7 - enough.leadingZeroBitCount)
    }
}
