// A policy in its flat form: one program per event, and masks that combine what its rules came to.

struct PolicyProgram: Sendable {
    /// Per event.
    struct EventProgram: Sendable {
        var rules = 0
        /// Conditions that can hold for the event.
        var guarantees: [(start: Int, guarantee: Int)] = []
        /// Per challenge: where its `unavailable_when` starts, or -1.
        var unavailable: [Int] = []
        /// Challenges that can be offered at all.
        var offered: UInt8 = 0
        /// Position of the challenge asked while history is unavailable, or -1.
        var degraded = -1
        var evaluated: UInt128 = 0
    }
    let code: [Instruction]
    let expressions: [ResolvedExpression]
    let sets: [Set<ExactString>]
    let symbols: [ExactString: Int]
    let events: [EventProgram]
    let always: UInt128
    let skip: UInt128
    let require: UInt128
    let shadow: UInt128
    let whenMissing: UInt128
    /// Rules by the position of their challenge.
    let byChallenge: [UInt128]
    /// Rules whose challenge is at this position or weaker.
    let upToChallenge: [UInt128]
    /// Bit of each rule's reason code.
    let reasonBits: [UInt128]
    let errorBit: UInt128
    let historyBit: UInt128
    let guaranteeBit: UInt128
    /// Slots that are missing while history is unavailable.
    let historySlots: [Int]

    init(parts: PolicyParts, reasonCodes: [String], zones: TimeZoneOffsets) {
        var compiler = Compiler(signals: parts.signals)
        var events: [EventProgram] = []
        let eventSlot = parts.signals.firstIndex { $0.name == "event" }
        for event in PolicyEvent.allCases {
            let known = eventSlot.map { [$0: CELValue.string(event.rawValue)] } ?? [:]
            var program = EventProgram()
            program.rules = compiler.code.count
            for (position, rule) in parts.rules.enumerated() where rule.mode != .disabled && rule.events.contains(event) {
                _ = compiler.compile(
                    rule.condition.resolved.folded(known), end: Instruction(operation: .ruleEnd, a: UInt16(position)))
                program.evaluated |= 1 << UInt128(position)
            }
            compiler.append(Instruction(operation: .halt))
            for (position, guarantee) in parts.guarantees.enumerated() {
                let condition = guarantee.condition.resolved.folded(known)
                if case .constant(.bool(false)) = condition.kind { continue }
                program.guarantees.append((compiler.compile(condition, end: Instruction(operation: .halt)), position))
            }
            for (position, challenge) in parts.challenges.enumerated() {
                if challenge.isOffered(for: event) { program.offered |= 1 << UInt8(position) }
                program.unavailable.append(
                    challenge.unavailableWhen.map {
                        compiler.compile($0.resolved.folded(known), end: Instruction(operation: .halt))
                    } ?? -1)
            }
            program.degraded = parts.degraded[event] ?? -1
            events.append(program)
        }
        func mask(_ include: (PolicyRule) -> Bool) -> UInt128 {
            parts.rules.enumerated().reduce(0) { include($1.element) ? $0 | 1 << UInt128($1.offset) : $0 }
        }
        func bit(_ code: String) -> UInt128 {
            reasonCodes.firstIndex(of: code).map { 1 << UInt128($0) } ?? 0
        }
        code = compiler.code
        expressions = compiler.expressions
        sets = compiler.sets
        symbols = compiler.symbols
        self.events = events
        always = mask { $0.effect == .always }
        skip = mask { $0.effect == .skip }
        require = mask { $0.effect == .require }
        shadow = mask { $0.mode == .shadow }
        whenMissing = mask { $0.matchesWhenMissing }
        byChallenge = parts.challenges.indices.map { position in mask { $0.challenge == position } }
        upToChallenge = parts.challenges.indices.map { position in mask { $0.challenge <= position } }
        reasonBits = parts.rules.map { bit($0.reason) }
        errorBit = bit(BuiltInReason.policyError)
        historyBit = bit(BuiltInReason.historyUnavailable)
        guaranteeBit = bit(BuiltInReason.policyGuarantee)
        historySlots = parts.signals.indices.filter { parts.signals[$0].isHistory }
    }

    /// Evaluates what has no flat form.
    @inline(never)
    func interpret(_ expression: Int, policy: borrowing Policy, input: borrowing PolicyInput) -> Register {
        var interpreter = Interpreter(
            variables: InputVariables(policySignals: policy.signals, input: copy input), zones: policy.zones)
        guard let value = try? interpreter.evaluate(expressions[expression]) else { return Register(bits: 0, state: 3) }
        return switch value {
        case .bool(let bool): Register(bits: 0, state: bool ? 1 : 0)
        case .int(let int): Register(bits: int, state: 0)
        case .uint(let uint): Register(bits: Int64(bitPattern: uint), state: 0)
        case .double(let double): Register(bits: Int64(bitPattern: double.bitPattern), state: 0)
        case .missing: Register(bits: 0, state: 2)
        default: Register(bits: 0, state: 3)
        }
    }
}
