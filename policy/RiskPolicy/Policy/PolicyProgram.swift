// A policy in flat form: one program for each event, and masks that combine the outcomes of its rules. All data that a decision
// reads are in plain memory owned by the program, so that a decision needs no reference counting.

import CEL

/// Memory of a fixed size, filled once.
struct Table<Element: BitwiseCopyable> {
    let start: UnsafeMutablePointer<Element>
    let count: Int

    /// Not freed automatically: its owner calls `free`.
    init(_ elements: [Element]) {
        start = .allocate(capacity: max(1, elements.count))
        start.initialize(from: elements, count: elements.count)
        count = elements.count
    }

    @inline(__always)
    subscript(index: Int) -> Element { start[index] }

    func free() { start.deallocate() }
}

/// Immutable after its creation, and therefore safe to share.
final class PolicyProgram: @unchecked Sendable {
    /// The data for one event.
    struct EventProgram: BitwiseCopyable {
        /// Start of its rules.
        var rules = 0
        /// Its range of `guarantees`.
        var firstGuarantee = 0
        var endOfGuarantees = 0
        /// Challenges that can be offered, and those of them with an `unavailable_when`.
        var offered: UInt8 = 0
        var conditional: UInt8 = 0
        /// Position of the challenge asked for while history is unavailable, or -1.
        var degraded = -1
        var evaluated: UInt128 = 0
    }

    struct GuaranteeProgram: BitwiseCopyable {
        let start: Int
        /// Position among the policy's guarantees.
        let guarantee: Int
        let asks: Bool
    }

    let code: Table<Instruction>
    let events: Table<EventProgram>
    let guarantees: Table<GuaranteeProgram>
    /// Start of each `unavailable_when`, by event and challenge.
    let unavailable: Table<Int>
    /// Rules by the position of their challenge.
    let byChallenge: Table<UInt128>
    /// Rules whose challenge is at this position or a weaker one.
    let upToChallenge: Table<UInt128>
    /// The bit of each rule's reason code.
    let reasonBits: Table<UInt128>
    let always: UInt128
    let skip: UInt128
    let require: UInt128
    let shadow: UInt128
    let whenMissing: UInt128
    let errorBit: UInt128
    let historyBit: UInt128
    let guaranteeBit: UInt128
    let errorChallenge: Int
    /// Slots that are missing while history is unavailable.
    let historySlots: [Int]
    let symbols: [ExactString: Int]
    /// By slot: the box of its value if it does not fit into a slot, else -1.
    let boxes: [Int]
    private let expressions: [ResolvedExpression]
    private let sets: [StringList]
    private let liveLists: [LiveListName]
    let signals: [SignalDeclaration]
    let readers: SlotReaders
    private let zones: TimeZoneOffsets

    init(parts: PolicyParts, reasonCodes: [String], zones: TimeZoneOffsets) {
        var compiler = Compiler(signals: parts.signals)
        var events: [EventProgram] = []
        var guarantees: [GuaranteeProgram] = []
        var unavailable: [Int] = []
        let halt = Instruction(operation: .halt)
        let eventSlot = parts.signals.firstIndex { $0.name == "event" }
        var readers = SlotReaders()
        for event in PolicyEvent.allCases {
            let known = eventSlot.map { [$0: CELValue.string(event.rawValue)] } ?? [:]
            var program = EventProgram()
            program.rules = compiler.code.count
            // The slot after the last signal is `now`.
            var reading = Array(repeating: UInt128(0), count: parts.signals.count + 1)
            for (position, rule) in parts.rules.enumerated() where rule.mode != .disabled && rule.events.contains(event) {
                let end = Instruction(operation: .ruleEnd, a: UInt16(position))
                let condition = rule.condition.resolved.folded(known)
                _ = compiler.compile(condition, end: end)
                program.evaluated |= 1 << UInt128(position)
                for slot in condition.variables { reading[slot] |= 1 << UInt128(position) }
            }
            readers.rules.append(reading)
            compiler.append(halt)
            program.firstGuarantee = guarantees.count
            for (position, guarantee) in parts.guarantees.enumerated() {
                let condition = guarantee.condition.resolved.folded(known)
                if case .constant(.bool(false)) = condition.kind { continue }
                let start = compiler.compile(condition, end: halt)
                readers.guarantees.append(Set(condition.variables))
                guarantees.append(
                    GuaranteeProgram(start: start, guarantee: position, asks: guarantee.decision == .requireVerification))
            }
            program.endOfGuarantees = guarantees.count
            for (position, challenge) in parts.challenges.enumerated() {
                if challenge.isOffered(for: event) { program.offered |= 1 << UInt8(position) }
                if challenge.unavailableWhen != nil { program.conditional |= program.offered & 1 << UInt8(position) }
                let condition = challenge.unavailableWhen?.resolved.folded(known)
                unavailable.append(condition.map { compiler.compile($0, end: halt) } ?? 0)
                readers.unavailable.append(Set(condition?.variables ?? []))
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
        code = Table(compiler.code)
        self.events = Table(events)
        self.guarantees = Table(guarantees)
        self.unavailable = Table(unavailable)
        byChallenge = Table(parts.challenges.indices.map { position in mask { $0.challenge == position } })
        upToChallenge = Table(parts.challenges.indices.map { position in mask { $0.challenge <= position } })
        reasonBits = Table(parts.rules.map { bit($0.reason) })
        always = mask { $0.effect == .always }
        skip = mask { $0.effect == .skip }
        require = mask { $0.effect == .require }
        shadow = mask { $0.mode == .shadow }
        whenMissing = mask { $0.matchesWhenMissing }
        errorBit = bit(BuiltInReason.policyError)
        historyBit = bit(BuiltInReason.historyUnavailable)
        guaranteeBit = bit(BuiltInReason.policyGuarantee)
        errorChallenge = parts.errorChallenge
        historySlots = parts.signals.indices.filter { parts.signals[$0].isHistory }
        symbols = compiler.symbols
        var boxed = 0
        boxes = parts.signals.map { signal in
            if signal.type == .bool || signal.type.isNumber { return -1 }
            boxed += 1
            return boxed - 1
        }
        expressions = compiler.expressions
        sets = compiler.sets
        liveLists = compiler.liveLists
        signals = parts.signals
        self.readers = readers
        self.zones = zones
    }

    deinit {
        code.free()
        events.free()
        guarantees.free()
        unavailable.free()
        byChallenge.free()
        upToChallenge.free()
        reasonBits.free()
    }

    /// Whether every condition has a flat form, so that a decision takes microseconds for all signal values.
    var isFlat: Bool { expressions.isEmpty }

    /// Evaluates a part without a flat form, with the decision's remaining steps.
    @inline(never)
    func interpret(_ expression: Int, _ input: borrowing PolicyInput, _ stepsLeft: inout Int) -> Register {
        var interpreter = Interpreter(variables: InputVariables(input: copy input), zones: zones, steps: stepsLeft)
        let value = try? interpreter.evaluate(expressions[expression])
        stepsLeft = interpreter.stepsLeft
        return switch value {
        case .bool(let bool): Register(bits: 0, state: bool ? 1 : 0)
        case .int(let int): Register(bits: int, state: 0)
        case .uint(let uint): Register(bits: Int64(bitPattern: uint), state: 0)
        case .double(let double): Register(bits: Int64(bitPattern: double.bitPattern), state: 0)
        case .missing: Register(bits: 0, state: 2)
        default: Register(bits: 0, state: 3)
        }
    }

    /// State: whether a string signal is in a list. Its octets are hashed.
    @inline(never)
    func membership(slot: Int, set: Int, _ input: borrowing PolicyInput, _ stepsLeft: inout Int) -> UInt8 {
        guard case .string(let text) = input.storage.boxed[boxes[slot]] else { return 0 }
        stepsLeft = max(-1, stepsLeft - 1 - ExpressionLimits.steps(octets: text.utf8.count))
        guard stepsLeft >= 0 else { return 3 }
        return sets[set].contains(text) ? 1 : 0
    }

    /// State: whether a string signal is in a live list; missing where the lists are unknown.
    @inline(never)
    func liveMembership(slot: Int, list: Int, _ input: borrowing PolicyInput, _ stepsLeft: inout Int) -> UInt8 {
        guard case .string(let text) = input.storage.boxed[boxes[slot]] else { return 0 }
        stepsLeft = max(-1, stepsLeft - 1 - ExpressionLimits.steps(octets: text.utf8.count))
        guard stepsLeft >= 0 else { return 3 }
        guard let lists = input.storage.lists else { return 2 }
        return lists.contains(text, in: liveLists[list]) ? 1 : 0
    }
}
