// A policy that was loaded: what it says, and the program that decides.

import CEL

/// A way of verifying a person.
package struct PolicyChallenge: Sendable {
    /// Its name on the wire, such as `email_code`.
    package let kind: String
    /// Bit per event (`PolicyEvent.index`).
    let events: UInt8
    /// Where it ends true, the challenge is not offered.
    package let unavailableWhen: PolicyExpression?

    /// Whether it can be offered for an event at all.
    package func isOffered(for event: PolicyEvent) -> Bool { events >> UInt8(event.index) & 1 == 1 }
}

/// An expression of a policy with its text.
package struct PolicyExpression: Sendable {
    /// As written, after YAML's own folding and escapes.
    package let text: String
    /// What is evaluated.
    package let resolved: ResolvedExpression
    /// Where it is in policy.yaml.
    package let position: SourcePosition
}

/// A rule.
package struct PolicyRule: Sendable {
    /// Distinct within the policy.
    package let id: String
    /// What it does when it matches.
    package let effect: RuleEffect
    /// Whether it counts.
    package let mode: RuleMode
    /// The events it is evaluated for; never empty.
    package let events: Set<PolicyEvent>
    /// What is asked for (always, require) or the strongest that is waived (skip): position among the challenges.
    package let challenge: Int
    /// The code that is given for it.
    package let reason: String
    /// `review: true`: decisions in which it matches are for people to look at.
    package var isForReview = false
    /// `when_missing: match`.
    package let matchesWhenMissing: Bool
    /// When it holds; of type bool.
    package let condition: PolicyExpression
    /// Whether its condition reads facts that span teams.
    package let spansTeams: Bool
}

/// What must hold of every decision.
package struct PolicyGuarantee: Sendable {
    /// When it holds; of type bool.
    package let condition: PolicyExpression
    /// What must be decided where the condition holds.
    package let decision: PolicyDecision
}

/// A policy, immutable and free to share between threads. Made by `PolicyLoader`.
package struct Policy: Sendable {
    /// As under `policy:`.
    package let name: String
    /// As under `version:`.
    package let version: String
    package let kind: PolicyKind
    /// Slot by slot; the slot after the last is `now`.
    package let signals: [SignalDeclaration]
    /// Weakest first.
    package let challenges: [PolicyChallenge]
    /// What it has counted, in the order of the file.
    package let counters: [PolicyCounter]
    /// In the order of the file; `RuleSet` counts by it.
    package let rules: [PolicyRule]
    /// In the order of the file.
    package let guarantees: [PolicyGuarantee]
    /// What an evaluation error asks for.
    package let errorChallenge: Int
    /// What is asked while history is unavailable, by event.
    package let degraded: [PolicyEvent: Int]
    /// The names of its expressions.
    package let scope: ExpressionScope
    /// Every reason code, the evaluator's own first, then in order of appearance.
    package let reasonCodes: [String]
    let zones: TimeZoneOffsets
    let program: PolicyProgram
    private let slots: [String: Int]

    init(parts: PolicyParts, zones: TimeZoneOffsets) {
        name = parts.name
        version = parts.version
        kind = parts.kind
        signals = parts.signals
        challenges = parts.challenges
        counters = parts.counters
        rules = parts.rules
        guarantees = parts.guarantees
        errorChallenge = parts.errorChallenge
        degraded = parts.degraded
        scope = parts.scope
        self.zones = zones
        var codes = BuiltInReason.all
        for rule in parts.rules where !codes.contains(rule.reason) { codes.append(rule.reason) }
        reasonCodes = codes
        slots = Dictionary(uniqueKeysWithValues: parts.signals.enumerated().map { ($1.name, $0) })
        program = PolicyProgram(parts: parts, reasonCodes: codes, zones: zones)
    }

    /// The live lists that it declares, in alphabetical order.
    package var liveLists: [LiveListName] { scope.liveLists.values.sorted { $0.name < $1.name } }

    /// The slot of a signal; nil where the policy does not declare it.
    package func slot(named name: String) -> Int? { slots[name] }

    /// Whether a decision takes microseconds whatever the signals say; else it may take `ExpressionLimits.maximumSteps`.
    package var decidesAtOnce: Bool { program.isFlat }

    /// The rule's position among `rules`.
    package func rule(id: String) -> Int? { rules.firstIndex { $0.id == id } }

    /// The rules of these ids; those that it does not have are left out.
    package func ruleSet(ids: [String]) -> RuleSet {
        ids.compactMap(rule(id:)).reduce(into: RuleSet()) { $0.bits |= 1 << UInt128($1) }
    }

    /// The slots that a decision about an event may read.
    package func slotsRead(at event: PolicyEvent) -> Set<Int> {
        let rules = rules.filter { $0.mode != .disabled && $0.events.contains(event) }.map(\.condition)
        let others = guarantees.map(\.condition) + challenges.compactMap(\.unavailableWhen)
        return (rules + others).reduce(into: []) { $0.formUnion($1.resolved.variables) }
    }

    /// Whether a rule that wants people to look at it matched, be it waived, snoozed or in shadow.
    package func isForReview(_ result: PolicyResult) -> Bool {
        let matched = [result.asked, result.skips, result.waived, result.snoozed, result.shadow].reduce(0) { $0 | $1.bits }
        return RuleSet(bits: matched).contains { rules[$0].isForReview }
    }
}

/// What a loader gathered.
struct PolicyParts {
    var name = ""
    var version = ""
    var kind = PolicyKind.verification
    var signals: [SignalDeclaration] = []
    var counters: [PolicyCounter] = []
    var challenges: [PolicyChallenge] = []
    var rules: [PolicyRule] = []
    var guarantees: [PolicyGuarantee] = []
    var errorChallenge = 0
    var degraded: [PolicyEvent: Int] = [:]
    var scope = ExpressionScope()
}
