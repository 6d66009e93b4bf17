// Runs instructions. No allocation and usually no reference counting: all data are reached through pointers.

import CEL

/// The outcomes of rules, and the rest of the decision's budget.
struct RuleOutcomes {
    /// Starts at `ExpressionLimits.maximumSteps`; below zero once the steps are used up. Instructions are not counted: a
    /// program has no loops, and no more instructions than the policy has nodes.
    var stepsLeft = ExpressionLimits.maximumSteps
    var matched: UInt128 = 0
    var missing: UInt128 = 0
    var errors: UInt128 = 0

    /// Without branches, because a processor cannot predict the outcomes of rules.
    @inline(__always)
    mutating func note(_ state: UInt8, rule: UInt16) {
        let bit: UInt128 = 1 &<< UInt128(truncatingIfNeeded: rule)
        let low = 0 &- UInt128(truncatingIfNeeded: state & 1)
        let high = 0 &- UInt128(truncatingIfNeeded: state &>> 1)
        matched |= bit & low & ~high
        missing |= bit & high & ~low
        errors |= bit & high & low
    }
}

/// Runs programs on one input.
struct Machine {
    let slots: UnsafePointer<SignalSlot>
    /// `Register.registers` registers. Every program writes a register before it reads it.
    let registers: UnsafeMutablePointer<Register>

    /// Runs from an instruction to `halt`; returns the truth in register 0.
    ///
    /// - Parameter outcomes: collects the outcomes of the rules that are run.
    func run(
        from start: Int, program: PolicyProgram, input: borrowing PolicyInput, outcomes: inout RuleOutcomes
    ) -> UInt8 {
        var counter = start
        let code = program.code.start
        while true {
            let step = code[counter]
            let target = Int(step.target)
            counter &+= 1
            switch step.operation {
            case .halt:
                return registers[0].state
            case .ruleEnd:
                outcomes.note(registers[0].state, rule: step.a)
            case .setTruth: registers[target].state = UInt8(truncatingIfNeeded: step.immediate)
            case .setNumber: registers[target] = Register(bits: step.immediate, state: 0)
            case .loadNumber:
                let slot = slots[Int(step.a)]
                registers[target] = Register(bits: slot.bits, state: slot.state)
            case .loadTruth: registers[target].state = slots[Int(step.a)].state
            case .hasSlot: registers[target].state = slots[Int(step.a)].state == SignalSlot.missing ? 0 : 1
            case .intEqual: compareSlot(step) { $0 == $1 }
            case .intNotEqual: compareSlot(step) { $0 != $1 }
            case .intLess: compareSlot(step) { $0 < $1 }
            case .intLessOrEqual: compareSlot(step) { $0 <= $1 }
            case .intGreater: compareSlot(step) { $0 > $1 }
            case .intGreaterOrEqual: compareSlot(step) { $0 >= $1 }
            case .symbolEqual: compareSlot(step) { $0 == $1 }
            case .symbolNotEqual: compareSlot(step) { $0 != $1 }
            case .symbolIn: compareSlot(step) { $0 >= 0 && $0 < 64 && UInt64(bitPattern: $1) >> UInt64($0) & 1 == 1 }
            case .symbolHeld: compareSlot(step) { $0 & $1 != 0 }
            case .textIn:
                registers[target].state =
                    slots[Int(step.a)].state == SignalSlot.missing
                    ? 2 : program.membership(slot: Int(step.a), set: Int(step.b), input, &outcomes.stepsLeft)
            case .textInLive:
                registers[target].state =
                    slots[Int(step.a)].state == SignalSlot.missing
                    ? 2 : program.liveMembership(slot: Int(step.a), list: Int(step.b), input, &outcomes.stepsLeft)
            case .compareInt: compare(step) { ($0, $1) }
            case .compareUInt: compare(step) { (UInt64(bitPattern: $0), UInt64(bitPattern: $1)) }
            case .compareDouble: compare(step) { (Self.double($0), Self.double($1)) }
            case .addInt: arithmetic(step) { $0.addingReportingOverflow($1) }
            case .subtractInt: arithmetic(step) { $0.subtractingReportingOverflow($1) }
            case .multiplyInt: arithmetic(step) { $0.multipliedReportingOverflow(by: $1) }
            case .divideInt: arithmetic(step) { $0.dividedReportingOverflow(by: $1) }
            case .remainderInt: arithmetic(step) { $0.remainderReportingOverflow(dividingBy: $1) }
            case .addUInt: unsigned(step) { $0.addingReportingOverflow($1) }
            case .subtractUInt: unsigned(step) { $0.subtractingReportingOverflow($1) }
            case .multiplyUInt: unsigned(step) { $0.multipliedReportingOverflow(by: $1) }
            case .divideUInt: unsigned(step) { $0.dividedReportingOverflow(by: $1) }
            case .remainderUInt: unsigned(step) { $0.remainderReportingOverflow(dividingBy: $1) }
            case .addDouble: floating(step) { $0 + $1 }
            case .subtractDouble: floating(step) { $0 - $1 }
            case .multiplyDouble: floating(step) { $0 * $1 }
            case .divideDouble: floating(step) { $0 / $1 }
            case .negateInt:
                let operand = registers[Int(step.a)]
                let result = Int64.zero.subtractingReportingOverflow(operand.bits)
                registers[target] = Register(
                    bits: result.partialValue, state: operand.state != 0 ? operand.state : result.overflow ? 3 : 0)
            case .negateDouble:
                let operand = registers[Int(step.a)]
                registers[target] = Register(bits: Self.bits(-Self.double(operand.bits)), state: operand.state)
            case .intToDouble:
                let operand = registers[Int(step.a)]
                registers[target] = Register(bits: Self.bits(Double(operand.bits)), state: operand.state)
            case .uintToDouble:
                let operand = registers[Int(step.a)]
                registers[target] = Register(
                    bits: Self.bits(Double(UInt64(bitPattern: operand.bits))), state: operand.state)
            case .not:
                let state = registers[Int(step.a)].state
                registers[target].state = state < 2 ? 1 - state : state
            case .and:
                let left = registers[target].state
                let right = registers[Int(step.a)].state
                registers[target].state = Self.looked(up: left, right, in: 0b11_11_11_00_11_10_10_00_11_10_01_00_00_00_00_00)
            case .or:
                let left = registers[target].state
                let right = registers[Int(step.a)].state
                registers[target].state = Self.looked(up: left, right, in: 0b11_11_01_11_11_10_01_10_01_01_01_01_11_10_01_00)
            case .skipIfFalse: if registers[target].state == 0 { counter = Int(step.b) }
            case .skipIfTrue: if registers[target].state == 1 { counter = Int(step.b) }
            case .branch:
                let state = registers[Int(step.a)].state
                if state == 0 {
                    counter = Int(step.b)
                } else if state > 1 {
                    registers[target].state = state
                    counter = Int(step.immediate)
                }
            case .jump: counter = Int(step.b)
            case .interpret: registers[target] = program.interpret(Int(step.immediate), input, &outcomes.stepsLeft)
            }
        }
    }

    /// Looks up a truth table of two states, with two bits for each entry; the left state has the weight four.
    @inline(__always)
    private static func looked(up left: UInt8, _ right: UInt8, in table: UInt32) -> UInt8 {
        UInt8(truncatingIfNeeded: table &>> UInt32(truncatingIfNeeded: (left &<< 2 | right) &<< 1) & 3)
    }

    @inline(__always)
    private static func double(_ bits: Int64) -> Double { Double(bitPattern: UInt64(bitPattern: bits)) }

    @inline(__always)
    private static func bits(_ double: Double) -> Int64 { Int64(bitPattern: double.bitPattern) }

    @inline(__always)
    private func compareSlot(_ step: Instruction, _ holds: (Int64, Int64) -> Bool) {
        let slot = slots[Int(step.a)]
        // The state is 0 or 2 (missing); without a branch.
        let truth: UInt8 = holds(slot.bits, step.immediate) ? 1 : 0
        registers[Int(step.target)].state = slot.state | (truth & ~(slot.state &>> 1))
    }

    @inline(__always)
    private func compare<Number: Comparable>(_ step: Instruction, _ numbers: (Int64, Int64) -> (Number, Number)) {
        let left = registers[Int(step.a)]
        let right = registers[Int(step.b)]
        var state = max(left.state, right.state)
        if state == 0, let comparison = Comparison(rawValue: step.immediate) {
            let (one, other) = numbers(left.bits, right.bits)
            state = comparison.holds(one, other) ? 1 : 0
        }
        registers[Int(step.target)].state = state
    }

    @inline(__always)
    private func arithmetic(_ step: Instruction, _ compute: (Int64, Int64) -> (partialValue: Int64, overflow: Bool)) {
        let left = registers[Int(step.a)]
        let right = registers[Int(step.b)]
        let state = max(left.state, right.state)
        let result = compute(left.bits, right.bits)
        registers[Int(step.target)] = Register(bits: result.partialValue, state: state != 0 ? state : result.overflow ? 3 : 0)
    }

    @inline(__always)
    private func unsigned(_ step: Instruction, _ compute: (UInt64, UInt64) -> (partialValue: UInt64, overflow: Bool)) {
        arithmetic(step) {
            let result = compute(UInt64(bitPattern: $0), UInt64(bitPattern: $1))
            return (Int64(bitPattern: result.partialValue), result.overflow)
        }
    }

    @inline(__always)
    private func floating(_ step: Instruction, _ compute: (Double, Double) -> Double) {
        arithmetic(step) { (Self.bits(compute(Self.double($0), Self.double($1))), false) }
    }
}
