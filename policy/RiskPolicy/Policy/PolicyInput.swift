// The input of a decision: one slot for each declared signal. Strings are converted to small numbers when they are set, so that
// evaluation compares numbers.

import CEL

/// Why a value is refused as a signal.
package struct PolicyInputError: Error, Sendable, Equatable {
    /// One line, for the operator: it may name the signal, never its value.
    package let message: String
    /// What is wrong with the value of a declared signal; nil where the signal is not declared.
    package let fault: SignalFault?

    init(message: String, fault: SignalFault? = nil) {
        self.message = message
        self.fault = fault
    }
}

/// A signal's value in the form for programs.
struct SignalSlot: Sendable {
    static let present: UInt8 = 0
    static let missing: UInt8 = 2

    /// An int or uint, a double's bits, or a string's symbol (-1 where no condition names it).
    var bits: Int64 = 0
    /// `present` or `missing`; for a bool 0, 1 or `missing`.
    var state: UInt8 = SignalSlot.missing
}

/// The signals of one question, created by `Policy.makeInput`. A value type: change one, or create one for each question.
package struct PolicyInput: Sendable {
    /// As determined by Postern.
    package let event: PolicyEvent
    /// The time at which the question is answered; conditions may read it as `now`.
    package var now: CELTimestamp
    /// Whether the store is down: signals from it then count as missing.
    package var isHistoryUnavailable = false
    /// Rules that do not ask this account for now, because a person snoozed them.
    package var snoozed = RuleSet()
    private(set) var storage: InputStorage

    init(event: PolicyEvent, now: CELTimestamp, program: PolicyProgram) {
        self.event = event
        self.now = now
        storage = InputStorage(program: program)
    }

    /// The current live lists; nil where they are unknown: what depends on them is then missing.
    package var lists: (any LiveLists)? {
        get { storage.lists }
        set {
            if !isKnownUniquelyReferenced(&storage) { storage = InputStorage(copying: storage) }
            storage.lists = newValue
        }
    }

    /// Writes only to this copy.
    mutating func write(_ stored: SignalSlot, slot: Int, boxed: CELValue? = nil, box: Int = -1) {
        guard slot >= 0, slot < storage.count else { return }
        if !isKnownUniquelyReferenced(&storage) { storage = InputStorage(copying: storage) }
        storage.slots[slot] = stored
        if !storage.faults.isEmpty { storage.faults[slot] = nil }
        if let boxed, storage.boxed.indices.contains(box) { storage.boxed[box] = boxed }
    }

    /// Takes the value of a slot away, because what was sent cannot be used.
    mutating func mark(_ slot: Int, _ fault: SignalFault) {
        write(SignalSlot(), slot: slot)
        storage.faults[slot] = fault
    }
}

/// The memory of an input: one reference, so that passing an input costs one reference count. Changed only while one input owns
/// it, and therefore safe to share.
final class InputStorage: @unchecked Sendable {
    /// The policy that it was made for: slots and symbols are valid only there.
    let program: PolicyProgram
    let slots: UnsafeMutablePointer<SignalSlot>
    let count: Int
    /// Values that do not fit into a slot (strings, times, lists), by their box.
    fileprivate(set) var boxed: [CELValue]
    fileprivate(set) var lists: (any LiveLists)?
    /// By slot: why what was sent for it cannot be used. Usually empty.
    fileprivate(set) var faults: [Int: SignalFault] = [:]

    init(program: PolicyProgram) {
        self.program = program
        count = program.signals.count
        slots = .allocate(capacity: max(1, count))
        slots.initialize(repeating: SignalSlot(), count: max(1, count))
        boxed = Array(repeating: .missing, count: program.boxes.count { $0 >= 0 })
    }

    init(copying other: InputStorage) {
        program = other.program
        slots = .allocate(capacity: max(1, other.count))
        slots.initialize(from: other.slots, count: max(1, other.count))
        count = other.count
        boxed = other.boxed
        lists = other.lists
        faults = other.faults
    }

    deinit { slots.deallocate() }
}

extension Policy {
    /// An input in which every signal but `event` is missing.
    package func makeInput(event: PolicyEvent, now: CELTimestamp) -> PolicyInput {
        var input = PolicyInput(event: event, now: now, program: program)
        if let slot = slot(named: "event") { store(.string(event.rawValue), slot: slot, in: &input) }
        return input
    }

    /// Sets a signal by name. `.missing` and `.null` remove it. An int is accepted where a double is declared.
    ///
    /// - Throws: `PolicyInputError` where the signal is not declared, has another type, or is out of its declared bounds.
    package func set(_ name: String, to value: CELValue, in input: inout PolicyInput) throws(PolicyInputError) {
        guard let slot = slot(named: name) else {
            throw PolicyInputError(message: "unknown signal '\(name)'\(suggestion(for: name, among: signals.map(\.name)))")
        }
        guard name != "event" else { throw PolicyInputError(message: "'event' is fixed when the input is created") }
        try set(slot: slot, to: value, in: &input)
    }

    /// Sets a signal by its slot.
    package func set(slot: Int, to value: CELValue, in input: inout PolicyInput) throws(PolicyInputError) {
        guard signals.indices.contains(slot) else { throw PolicyInputError(message: "no such slot") }
        if input.storage.program !== program { input = adopted(input) }
        let signal = signals[slot]
        var value = value
        if case .int(let int) = value, signal.type == .double { value = .double(Double(int)) }
        if case .null = value { value = .missing }
        guard value.isMissing || Self.fits(value, signal.type) else {
            throw PolicyInputError(
                message: "'\(signal.name)' is \(signal.type.text), not \(value.typeName)", fault: .wrongType)
        }
        guard Self.isWithinBounds(value, signal) else {
            throw PolicyInputError(message: "'\(signal.name)' is out of its bounds", fault: .outOfBounds)
        }
        store(value, slot: slot, in: &input)
    }

    /// The value of a signal as it was set; history signals are missing while history is unavailable.
    package func value(slot: Int, of input: PolicyInput) -> CELValue {
        InputVariables(input: adopted(input)).value(slot: slot) ?? .missing
    }

    /// An input for this policy: unchanged or, if another policy made it (one that was active a moment ago), one with the same
    /// signals, as far as this policy declares them with the same type.
    func adopted(_ input: PolicyInput) -> PolicyInput {
        if input.storage.program === program { return input }
        var own = makeInput(event: input.event, now: input.now)
        let variables = InputVariables(input: input)
        for (slot, signal) in input.storage.program.signals.enumerated() {
            guard signal.name != "event", let value = variables.value(slot: slot) else { continue }
            // A signal that this policy does not declare, or declares with another type, is missing in it.
            try? set(signal.name, to: value, in: &own)
        }
        for (slot, fault) in input.storage.faults {
            if let slot = self.slot(named: input.storage.program.signals[slot].name) { mark(slot: slot, fault, in: &own) }
        }
        own.isHistoryUnavailable = input.isHistoryUnavailable
        own.lists = input.lists
        return own
    }

    private static func fits(_ value: CELValue, _ type: CELType) -> Bool {
        switch (value, type) {
        case (.bool, .bool), (.int, .int), (.uint, .uint), (.double, .double), (.string, .string), (.timestamp, .timestamp),
            (.duration, .duration):
            true
        case (.list(let elements), .list(let element)): elements.allSatisfy { fits($0, element) }
        default: false
        }
    }

    private static func isWithinBounds(_ value: CELValue, _ signal: SignalDeclaration) -> Bool {
        let number: Double? =
            switch value {
            case .int(let int): Double(int)
            case .uint(let uint): Double(uint)
            case .double(let double): double
            default: nil
            }
        if let number {
            if number.isNaN { return false }
            if let minimum = signal.minimum, number < minimum { return false }
            if let maximum = signal.maximum, number > maximum { return false }
        }
        if case .string(let text) = value { return text.utf8.count <= signal.maximumLength }
        if case .list(let elements) = value {
            return elements.count <= PolicyFileLimits.maximumListElements && elements.allSatisfy { isWithinBounds($0, signal) }
        }
        return true
    }

    private func store(_ value: CELValue, slot: Int, in input: inout PolicyInput) {
        var stored = SignalSlot(bits: 0, state: SignalSlot.present)
        switch value {
        case .bool(let bool): stored.state = bool ? 1 : 0
        case .int(let int): stored.bits = int
        case .uint(let uint): stored.bits = Int64(bitPattern: uint)
        case .double(let double): stored.bits = Int64(bitPattern: double.bitPattern)
        case .string(let text):
            stored.bits = Int64(program.symbols[ExactString(text)] ?? -1)
            return input.write(stored, slot: slot, boxed: value, box: program.boxes[slot])
        case .missing, .null: stored.state = SignalSlot.missing
        case .list(let elements):
            // Records which of the first 64 symbols it contains: conditions test for those with `in`.
            for case .string(let text) in elements {
                if let symbol = program.symbols[ExactString(text)], symbol < 64 { stored.bits |= 1 << Int64(symbol) }
            }
            return input.write(stored, slot: slot, boxed: value, box: program.boxes[slot])
        default: return input.write(stored, slot: slot, boxed: value, box: program.boxes[slot])
        }
        input.write(stored, slot: slot)
    }
}

/// The signals in the form for an interpreter.
struct InputVariables: ExpressionVariables {
    let input: PolicyInput

    var lists: (any LiveLists)? { input.lists }

    func value(slot: Int) -> CELValue? {
        let program = input.storage.program
        guard slot >= 0, slot < input.storage.count else { return .timestamp(input.now) }
        let stored = input.storage.slots[slot]
        if stored.state == SignalSlot.missing || (input.isHistoryUnavailable && program.signals[slot].isHistory) {
            return .missing
        }
        return switch program.signals[slot].type {
        case .bool: .bool(stored.state == 1)
        case .int: .int(stored.bits)
        case .uint: .uint(UInt64(bitPattern: stored.bits))
        case .double: .double(Double(bitPattern: UInt64(bitPattern: stored.bits)))
        default: input.storage.boxed[program.boxes[slot]]
        }
    }
}
