// A policy prepared for decisions: the conditions of each event, simplified, and masks that combine
// the outcomes of rules.

import CEL

/// Immutable. One for each loaded policy: an input is valid only for the plan that it was made for.
final class PolicyPlan: Sendable {
    /// A condition, and the slots of the signals that it reads.
    struct Condition: Sendable {
        let expression: ResolvedExpression
        let slots: Set<Int>

        init(_ expression: ResolvedExpression, known: [Int: CELValue]) {
            self.expression = expression.folded(known).markingFreeParts()
            slots = Set(self.expression.variables)
        }
    }

    struct Guarantee: Sendable {
        let condition: Condition
        /// Position among the policy's guarantees.
        let position: Int
        let asks: Bool
    }

    /// The conditions that decide one event.
    struct Event: Sendable {
        /// The conditions of the rules that are evaluated, with the positions of the rules.
        var rules: [(position: Int, condition: Condition)] = []
        var evaluated: UInt128 = 0
        var guarantees: [Guarantee] = []
        /// Challenges that can be offered.
        var offered: UInt8 = 0
        /// `unavailable_when` of the challenges that can be offered, with
        /// the position of the challenge.
        var unavailable: [(position: Int, condition: Condition)] = []
        /// Position of the challenge required while history is unavailable, or -1.
        var degraded = -1

        var conditions: [Condition] {
            rules.map(\.condition) + guarantees.map(\.condition) + unavailable.map(\.condition)
        }
    }

    /// By `PolicyEvent.index`.
    let events: [Event]
    /// Rules by the position of their challenge.
    let byChallenge: [UInt128]
    /// Rules whose challenge is at this position or a weaker one.
    let upToChallenge: [UInt128]
    /// The bit of each rule's reason code.
    let reasonBits: [UInt128]
    let always: UInt128
    let skip: UInt128
    let require: UInt128
    let shadow: UInt128
    let whenMissing: UInt128
    let errorBit: UInt128
    let historyBit: UInt128
    let guaranteeBit: UInt128
    let errorChallenge: Int
    /// Whether a decision is short for all signal values: only texts that are looked up in lists
    /// cost steps.
    let decidesAtOnce: Bool
    let signals: [SignalDeclaration]
    /// Slots that are missing while history is unavailable.
    let historySlots: Set<Int>
    let zones: TimeZoneOffsets

    /// Most nodes of an event's conditions in a decision that counts as short:
    /// some hundred microseconds.
    private static let nodesAtOnce = 2_000

    init(parts: PolicyParts, reasonCodes: [String], zones: TimeZoneOffsets) {
        let eventSlot = parts.signals.firstIndex { $0.name == "event" }
        events = PolicyEvent.allCases.map { event in
            let known = eventSlot.map { [$0: CELValue.string(event.rawValue)] } ?? [:]
            return Self.plan(parts, event, known: known)
        }
        func mask(_ include: (PolicyRule) -> Bool) -> UInt128 {
            parts.rules.enumerated().reduce(0) {
                include($1.element) ? $0 | 1 << UInt128($1.offset) : $0
            }
        }
        func bit(_ code: String) -> UInt128 {
            reasonCodes.firstIndex(of: code).map { 1 << UInt128($0) } ?? 0
        }
        byChallenge = parts.challenges.indices.map { position in mask { $0.challenge == position } }
        upToChallenge = parts.challenges.indices.map { position in mask { $0.challenge <= position }
        }
        reasonBits = parts.rules.map { bit($0.reason) }
        always = mask { $0.effect == .always }
        skip = mask { $0.effect == .skip }
        require = mask { $0.effect == .require }
        shadow = mask { $0.mode == .shadow }
        whenMissing = mask { $0.matchesWhenMissing }
        errorBit = bit(BuiltInReason.policyError)
        historyBit = bit(BuiltInReason.historyUnavailable)
        guaranteeBit = bit(BuiltInReason.policyGuarantee)
        errorChallenge = parts.errorChallenge
        decidesAtOnce = events.allSatisfy { event in
            let expressions = event.conditions.map(\.expression)
            return expressions.allSatisfy(\.isFreeThroughout)
                && expressions.reduce(0) { $0 + $1.nodes } <= Self.nodesAtOnce
        }
        signals = parts.signals
        historySlots = Set(parts.signals.indices.filter { parts.signals[$0].isHistory })
        self.zones = zones
    }

    private static func plan(
        _ parts: PolicyParts, _ event: PolicyEvent, known: [Int: CELValue]
    ) -> Event {
        var plan = Event()
        for (position, rule) in parts.rules.enumerated()
        where rule.mode != .disabled && rule.events.contains(event) {
            plan.rules.append((position, Condition(rule.condition.resolved, known: known)))
            plan.evaluated |= 1 << UInt128(position)
        }
        for (position, guarantee) in parts.guarantees.enumerated() {
            let condition = Condition(guarantee.condition.resolved, known: known)
            if case .constant(.bool(false)) = condition.expression.kind { continue }
            plan.guarantees.append(
                Guarantee(
                    condition: condition, position: position,
                    asks: guarantee.decision == .requireVerification))
        }
        for (position, challenge) in parts.challenges.enumerated()
        where challenge.isOffered(for: event) {
            plan.offered |= 1 << UInt8(position)
            guard let expression = challenge.unavailableWhen?.resolved else { continue }
            plan.unavailable.append((position, Condition(expression, known: known)))
        }
        plan.degraded = parts.degraded[event] ?? -1
        return plan
    }
}
