// The decision: what the rules came to, combined (POLICY-FORMAT.md, "Combining").

/// A decision in compact form: sets of rules and codes by position. `Policy.answer` spells it out.
package struct PolicyResult: Sendable, Equatable {
    package var event: PolicyEvent
    package var decision: PolicyDecision = .allow
    /// Whether history was unavailable.
    package var isDegraded = false
    /// Rules that ask.
    package var asked = RuleSet()
    /// Skip rules that matched.
    package var skips = RuleSet()
    /// Require rules that matched and are waived.
    package var waived = RuleSet()
    /// Rules whose condition ended missing.
    package var missing = RuleSet()
    /// Rules whose condition ended in an error.
    package var errors = RuleSet()
    /// Shadow rules that would have counted.
    package var shadow = RuleSet()
    /// Reason codes, by position in `Policy.reasonCodes`.
    package var reasons = RuleSet()
    /// Bit per challenge that is listed; passing any of them suffices. 0 exactly when allowed.
    package var challenges: UInt8 = 0
    /// Challenges whose `unavailable_when` ended in an error; they count as available.
    package var challengeErrors: UInt8 = 0
    /// The guarantee that overrode the rules' decision, by position; -1 where none did. To be counted and logged.
    package var overridingGuarantee: Int8 = -1
}

extension Policy {
    /// Decides. Total: every input gets one of the two decisions. Does not allocate where every condition has a flat form.
    package func decide(_ input: borrowing PolicyInput) -> PolicyResult {
        if input.isHistoryUnavailable {
            var without = copy input
            for slot in program.historySlots { without.slots[slot] = SignalSlot() }
            return decide(slots: without, isDegraded: true)
        }
        return decide(slots: input, isDegraded: false)
    }

    private func decide(slots input: borrowing PolicyInput, isDegraded: Bool) -> PolicyResult {
        input.slots.withUnsafeBufferPointer { slots in
            program.code.withUnsafeBufferPointer { code in
                withUnsafeTemporaryAllocation(of: Register.self, capacity: Register.registers) { registers in
                    registers.initialize(repeating: Register(bits: 0, state: 0))
                    return decide(
                        Machine(code: code, slots: slots, registers: registers), input: input, isDegraded: isDegraded)
                }
            }
        }
    }

    private func decide(_ machine: Machine, input: borrowing PolicyInput, isDegraded: Bool) -> PolicyResult {
        var result = PolicyResult(event: input.event)
        var outcomes = RuleOutcomes()
        let index = input.event.index
        _ = machine.run(
            from: program.events[index].rules, program: program, policy: self, input: input, outcomes: &outcomes)
        let matched = outcomes.matched | (outcomes.missing & program.whenMissing)
        let active = matched & ~program.shadow
        let errors = outcomes.errors & ~program.shadow & ~program.skip
        let skips = active & program.skip
        var waived: UInt128 = 0
        let required = (active | errors) & program.require
        if skips != 0, required != 0 {
            let strongest = strongestChallenge(of: skips)
            waived = required & ~errors & program.upToChallenge[strongest]
            if errorChallenge <= strongest { waived |= required & errors }
        }
        let asked = (active | errors) & program.always | (required & ~waived)
        result.asked = RuleSet(bits: asked)
        result.skips = RuleSet(bits: skips)
        result.waived = RuleSet(bits: waived)
        result.missing = RuleSet(bits: outcomes.missing)
        result.errors = RuleSet(bits: outcomes.errors)
        result.shadow = RuleSet(bits: matched & program.shadow)
        result.isDegraded = isDegraded
        var strongest = -1
        if asked != 0 {
            if asked & ~errors != 0 { strongest = strongestChallenge(of: asked & ~errors) }
            if asked & errors != 0 { strongest = max(strongest, errorChallenge) }
        }
        var reasons: UInt128 = 0
        if isDegraded, program.events[index].degraded >= 0 {
            strongest = max(strongest, program.events[index].degraded)
            reasons = program.historyBit
        }
        if asked & errors != 0 { reasons |= program.errorBit }
        let telling = asked != 0 || strongest >= 0 ? asked & ~errors : skips
        for rule in RuleSet(bits: telling) { reasons |= program.reasonBits[rule] }
        result.reasons = RuleSet(bits: reasons)
        result.decision = strongest >= 0 ? .requireVerification : .allow
        holdGuarantees(machine, input, &strongest, &result)
        if strongest >= 0 { offer(from: strongest, machine, input, &result) }
        return result
    }

    /// The strongest challenge of a set that is not empty.
    @inline(__always)
    private func strongestChallenge(of rules: UInt128) -> Int {
        var position = program.byChallenge.count - 1
        while position > 0, rules & program.byChallenge[position] == 0 { position -= 1 }
        return position
    }

    /// Makes the guarantees true of the result, whatever the rules say.
    private func holdGuarantees(
        _ machine: Machine, _ input: borrowing PolicyInput, _ strongest: inout Int, _ result: inout PolicyResult
    ) {
        guard !program.events[input.event.index].guarantees.isEmpty else { return }
        var outcomes = RuleOutcomes()
        var demanded: (decision: PolicyDecision, guarantee: Int)?
        for entry in program.events[input.event.index].guarantees {
            let truth = machine.run(from: entry.start, program: program, policy: self, input: input, outcomes: &outcomes)
            guard truth == 1 else { continue }
            let decision = guarantees[entry.guarantee].decision
            // Of two that contradict each other, the one that asks wins.
            if demanded == nil || decision == .requireVerification { demanded = (decision, entry.guarantee) }
        }
        guard let demanded, demanded.decision != result.decision else { return }
        result.decision = demanded.decision
        result.overridingGuarantee = Int8(truncatingIfNeeded: demanded.guarantee)
        result.reasons = RuleSet(bits: program.guaranteeBit)
        strongest = demanded.decision == .allow ? -1 : errorChallenge
    }

    /// Lists the challenge asked for and stronger ones that are available; else the nearest weaker one; never none.
    private func offer(from strongest: Int, _ machine: Machine, _ input: borrowing PolicyInput, _ result: inout PolicyResult) {
        var outcomes = RuleOutcomes()
        let offered = program.events[input.event.index].offered
        var available = offered
        for (position, start) in program.events[input.event.index].unavailable.enumerated() where start >= 0 {
            guard offered >> UInt8(position) & 1 == 1 else { continue }
            let truth = machine.run(from: start, program: program, policy: self, input: input, outcomes: &outcomes)
            if truth == 1 { available &= ~(1 << UInt8(position)) }
            if truth == 3 { result.challengeErrors |= 1 << UInt8(position) }
        }
        let weaker: UInt8 = (1 << UInt8(strongest)) - 1
        if available & ~weaker != 0 {
            result.challenges = available & ~weaker
        } else if available & weaker != 0 {
            result.challenges = 1 << UInt8(7 - (available & weaker).leadingZeroBitCount)
        } else {
            result.challenges = 1 << UInt8(strongest)
        }
    }
}
