// Unusable values of declared signals. The request still gets an answer, with at least the checks
// that any usable value would require, so that a sender of such a value gains nothing.

import CEL

/// Why the value that was sent for a declared signal is unusable.
package enum SignalFault: String, Sendable, CaseIterable {
    /// It has another type than the declared one.
    case wrongType = "type"
    /// It is beyond a declared bound.
    case outOfBounds = "bounds"

    /// For people, after the name of the signal.
    package var text: String {
        switch self {
        case .wrongType: "has another type than the policy declares"
        case .outOfBounds: "is out of the bounds that the policy declares"
        }
    }
}

extension Policy {
    /// Marks a signal as having an unusable value. It has no value, and every condition that reads
    /// it, or a count by it, is an error. The other parts of the condition do not change this.
    package func mark(slot: Int, _ fault: SignalFault, in input: inout PolicyInput) {
        guard signals.indices.contains(slot) else { return }
        if input.plan !== plan { input = adopted(input) }
        let name = signals[slot].name
        let counts = counters.filter { counter in
            [counter.key, counter.distinct].contains { $0?.text == name }
        }
        for slot in [slot] + counts.compactMap({ self.slot(named: $0.signal) }) {
            input.mark(slot, fault)
        }
    }

    /// Why a part of a condition cannot be evaluated for an input; nil if it can.
    func fault(in part: ResolvedExpression, _ input: PolicyInput) -> EvaluationError? {
        let input = adopted(input)
        guard !input.faults.isEmpty else { return nil }
        for slot in part.variables {
            guard let fault = input.faults[slot] else { continue }
            return EvaluationError(unusable: "'\(signals[slot].name)' \(fault.text)")
        }
        return nil
    }
}

extension PolicyPlan {
    /// The rules that read an unusable value: they count as errors.
    func holdFaults(_ input: PolicyInput, _ outcomes: inout RuleOutcomes) -> UInt128 {
        var doubtful: UInt128 = 0
        for rule in events[input.event.index].rules where isDoubtful(rule.condition, input) {
            doubtful |= 1 << UInt128(rule.position)
        }
        outcomes.matched &= ~doubtful
        outcomes.missing &= ~doubtful
        outcomes.errors |= doubtful
        return doubtful
    }

    /// Whether a condition reads an unusable value.
    func isDoubtful(_ condition: Condition, _ input: PolicyInput) -> Bool {
        !input.faults.isEmpty && !condition.slots.isDisjoint(with: input.faults.keys)
    }
}
