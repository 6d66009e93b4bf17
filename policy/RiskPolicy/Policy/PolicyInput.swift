// The input of a decision: one slot for each declared signal.

import CEL

/// Why a value is refused as a signal.
package struct PolicyInputError: Error, Sendable, Equatable {
    /// One line, for the operator: it may name the signal, but never its value.
    package let message: String
    /// The problem of a declared signal's value; nil if the signal is not declared.
    package let fault: SignalFault?

    init(message: String, fault: SignalFault? = nil) {
        self.message = message
        self.fault = fault
    }
}

/// The signals of one request, created by `Policy.makeInput`. A value type: change one, or create
/// one for each request.
package struct PolicyInput: Sendable {
    /// As determined by Postern.
    package let event: PolicyEvent
    /// The time at which the request is answered; conditions may read it as `now`.
    package var now: CELTimestamp {
        get { time }
        set {
            time = newValue
            values[values.count - 1] = .timestamp(newValue)
        }
    }
    /// Whether the store is unavailable: signals from it then count as missing.
    package var isHistoryUnavailable = false
    /// Rules that require no check of this account now, because a person snoozed them.
    package var snoozed = RuleSet()
    /// Outcomes of conditions that are known from the log. They replace values that the log does
    /// not contain.
    package var known = KnownOutcomes()
    /// The current live lists; nil if they are unknown: values that depend on them are then
    /// missing.
    package var lists: (any LiveLists)?
    private var time: CELTimestamp
    /// The policy that it was made for: slots are valid only there.
    let plan: PolicyPlan
    /// By slot, and `now` last.
    private var values: [CELValue?]
    /// By slot: why the value that was sent is unusable. Usually empty.
    private(set) var faults: [Int: SignalFault] = [:]

    init(event: PolicyEvent, now: CELTimestamp, plan: PolicyPlan) {
        self.event = event
        self.plan = plan
        time = now
        values = Array(repeating: .missing, count: plan.signals.count) + [.timestamp(now)]
    }

    /// The value of a signal as it was set; history signals are missing
    /// while history is unavailable.
    func value(slot: Int) -> CELValue {
        guard plan.signals.indices.contains(slot), let value = values[slot] else { return .missing }
        return isHistoryUnavailable && plan.historySlots.contains(slot) ? .missing : value
    }

    /// The values that conditions read.
    var variables: ExpressionVariables {
        guard isHistoryUnavailable else { return ExpressionVariables(values, lists: lists) }
        var own = self
        own.removeHistory()
        return ExpressionVariables(own.values, lists: lists)
    }

    mutating func write(_ value: CELValue, slot: Int) {
        values[slot] = value
        if !faults.isEmpty { faults[slot] = nil }
    }

    /// Removes the values of all history signals, and their faults.
    mutating func removeHistory() {
        for slot in plan.historySlots { write(.missing, slot: slot) }
    }

    /// Removes the value of a slot, because the value that was sent is unusable.
    mutating func mark(_ slot: Int, _ fault: SignalFault) {
        write(.missing, slot: slot)
        faults[slot] = fault
    }
}

extension Policy {
    /// An input in which every signal except `event` is missing.
    package func makeInput(event: PolicyEvent, now: CELTimestamp) -> PolicyInput {
        var input = PolicyInput(event: event, now: now, plan: plan)
        if let slot = slot(named: "event") { input.write(.string(event.rawValue), slot: slot) }
        return input
    }

    /// Sets a signal by name. `.missing` and `.null` remove it. An int is accepted for a declared
    /// double.
    ///
    /// - Throws: `PolicyInputError` if the signal is not declared, has another type, or is out of
    ///   its declared bounds.
    package func set(
        _ name: String, to value: CELValue, in input: inout PolicyInput
    ) throws(PolicyInputError) {
        guard let slot = slot(named: name) else {
            throw PolicyInputError(
                message:
                    "unknown signal '\(name)'\(suggestion(for: name, among: signals.map(\.name)))")
        }
        guard name != "event" else {
            throw PolicyInputError(message: "'event' is fixed when the input is created")
        }
        try set(slot: slot, to: value, in: &input)
    }

    /// Sets a signal by its slot.
    package func set(
        slot: Int, to value: CELValue, in input: inout PolicyInput
    ) throws(PolicyInputError) {
        guard signals.indices.contains(slot) else {
            throw PolicyInputError(message: "no such slot")
        }
        if input.plan !== plan { input = adopted(input) }
        let signal = signals[slot]
        var value = value
        if case .int(let int) = value, signal.type == .double { value = .double(Double(int)) }
        if case .null = value { value = .missing }
        guard value.isMissing || Self.fits(value, signal.type) else {
            throw PolicyInputError(
                message: "'\(signal.name)' is \(signal.type.text), not \(value.typeName)",
                fault: .wrongType)
        }
        guard Self.isWithinBounds(value, signal) else {
            throw PolicyInputError(
                message: "'\(signal.name)' is out of its bounds", fault: .outOfBounds)
        }
        input.write(value, slot: slot)
    }

    /// The value of a signal as it was set; history signals are missing
    /// while history is unavailable.
    package func value(slot: Int, of input: PolicyInput) -> CELValue {
        adopted(input).value(slot: slot)
    }

    /// An input for this policy. It is unchanged if this policy made it. If another policy made it
    /// (one that was active a moment ago), the result has the same signals, as far as this policy
    /// declares them with the same type.
    func adopted(_ input: PolicyInput) -> PolicyInput {
        if input.plan === plan { return input }
        var own = makeInput(event: input.event, now: input.now)
        for (slot, signal) in input.plan.signals.enumerated() where signal.name != "event" {
            // A signal that this policy does not declare, or declares with another type, is missing
            // in it.
            try? set(signal.name, to: input.value(slot: slot), in: &own)
        }
        for (slot, fault) in input.faults {
            if let slot = self.slot(named: input.plan.signals[slot].name) {
                mark(slot: slot, fault, in: &own)
            }
        }
        own.isHistoryUnavailable = input.isHistoryUnavailable
        own.lists = input.lists
        return own
    }

    private static func fits(_ value: CELValue, _ type: CELType) -> Bool {
        switch (value, type) {
        case (.bool, .bool), (.int, .int), (.uint, .uint), (.double, .double), (.string, .string),
            (.timestamp, .timestamp),
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
            return elements.count <= PolicyFileLimits.maximumListElements
                && elements.allSatisfy { isWithinBounds($0, signal) }
        }
        return true
    }
}
