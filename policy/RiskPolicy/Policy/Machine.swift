// Runs instructions. No allocation, no reference counting on the usual path: everything is reached through pointers.

/// What rules came to.
struct RuleOutcomes {
    var matched: UInt128 = 0
    var missing: UInt128 = 0
    var errors: UInt128 = 0
}

/// The machine over one input.
struct Machine {
    let code: UnsafeBufferPointer<Instruction>
    let slots: UnsafeBufferPointer<SignalSlot>
    let registers: UnsafeMutableBufferPointer<Register>

    /// Runs from an instruction to `halt`; returns the truth in register 0.
    ///
    /// - Parameter outcomes: what the rules on the way came to.
    func run(
        from start: Int, program: borrowing PolicyProgram, policy: borrowing Policy, input: borrowing PolicyInput,
        outcomes: inout RuleOutcomes
    ) -> UInt8 {
        var counter = start
        while true {
            let step = code[counter]
            let target = Int(step.target)
            counter += 1
            switch step.operation {
            case .halt:
                return registers[0].state
            case .ruleEnd:
                switch registers[0].state {
                case 0: break
                case 1: outcomes.matched |= UInt128(1) << UInt128(step.a)
                case 2: outcomes.missing |= UInt128(1) << UInt128(step.a)
                default: outcomes.errors |= UInt128(1) << UInt128(step.a)
                }
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
            case .textIn:
                registers[target].state =
                    slots[Int(step.a)].state == SignalSlot.missing
                    ? 2 : Self.isMember(input.boxed[Int(step.a)], of: program.sets[Int(step.b)]) ? 1 : 0
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
                registers[target].state = left == 0 || right == 0 ? 0 : max(left, right)
            case .or:
                let left = registers[target].state
                let right = registers[Int(step.a)].state
                registers[target].state = left == 1 || right == 1 ? 1 : max(left, right)
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
            case .interpret: registers[target] = program.interpret(Int(step.immediate), policy: policy, input: input)
            }
        }
    }

    private static func isMember(_ value: CELValue, of set: Set<ExactString>) -> Bool {
        if case .string(let text) = value { set.contains(ExactString(text)) } else { false }
    }

    @inline(__always)
    private static func double(_ bits: Int64) -> Double { Double(bitPattern: UInt64(bitPattern: bits)) }

    @inline(__always)
    private static func bits(_ double: Double) -> Int64 { Int64(bitPattern: double.bitPattern) }

    @inline(__always)
    private func compareSlot(_ step: Instruction, _ holds: (Int64, Int64) -> Bool) {
        let slot = slots[Int(step.a)]
        registers[Int(step.target)].state = slot.state != 0 ? slot.state : holds(slot.bits, step.immediate) ? 1 : 0
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
