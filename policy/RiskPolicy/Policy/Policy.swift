// A loaded policy: its content, and the plan of its decisions.

import CEL

/// A way to verify a person.
package struct PolicyChallenge: Sendable {
    /// Its name in the API, such as `email_code`.
    package let kind: String
    /// One bit for each event (`PolicyEvent.index`).
    let events: UInt8
    /// If it is true, the challenge is not offered.
    package let unavailableWhen: PolicyExpression?
    /// How much a browser must compute that Postern itself checks, in units of a million iterations
    /// of PBKDF2; nil for other kinds than `human_check`.
    package var effort: Int?

    /// The only kind with an effort.
    package static let humanCheck = "human_check"
    /// The most takes a telephone some minutes.
    package static let efforts = 1...100
    /// About a second of one core.
    package static let standardEffort = 2

    /// Whether it can be offered for an event.
    package func isOffered(for event: PolicyEvent) -> Bool { events >> UInt8(event.index) & 1 == 1 }
}

/// An expression of a policy with its text.
package struct PolicyExpression: Sendable {
    /// As written, after YAML's own folding and escapes.
    package let text: String
    /// The expression that is evaluated.
    package let resolved: ResolvedExpression
    /// Its position in policy.yaml.
    package let position: SourcePosition
}

/// A rule.
package struct PolicyRule: Sendable {
    /// Distinct within the policy.
    package let id: String
    /// The effect of a match.
    package let effect: RuleEffect
    /// Whether it counts.
    package let mode: RuleMode
    /// The events for which it is evaluated; never empty.
    package let events: Set<PolicyEvent>
    /// Position of the challenge that it requires (always, require), or of the strongest one that
    /// it waives (skip).
    package let challenge: Int
    /// Its reason code.
    package let reason: String
    /// `review: true`: people should look at decisions in which it matches.
    package var isForReview = false
    /// `when_missing: match`.
    package let matchesWhenMissing: Bool
    /// When the rule matches; of type bool.
    package let condition: PolicyExpression
    /// Whether its condition reads facts that span teams.
    package let spansTeams: Bool
    /// The purpose of the rule, in the words of its author: one line of plain text.
    package var description: String?
}

/// A condition with the decision that is then required.
package struct PolicyGuarantee: Sendable {
    /// When the guarantee applies; of type bool.
    package let condition: PolicyExpression
    /// The required decision if the condition holds.
    package let decision: PolicyDecision
}

/// A policy. Immutable; can be shared between threads. Created by `PolicyLoader`.
package struct Policy: Sendable {
    /// The value of `policy:`.
    package let name: String
    /// The value of `version:`.
    package let version: String
    package let kind: PolicyKind
    /// In the order of slots; the slot after the last is `now`.
    package let signals: [SignalDeclaration]
    /// Weakest first.
    package let challenges: [PolicyChallenge]
    /// Its counters, in the order of the file.
    package let counters: [PolicyCounter]
    /// In the order of the file; `RuleSet` uses these positions.
    package let rules: [PolicyRule]
    /// In the order of the file.
    package let guarantees: [PolicyGuarantee]
    /// The challenge that an evaluation error requires.
    package let errorChallenge: Int
    /// The challenge required while history is unavailable, by event.
    package let degraded: [PolicyEvent: Int]
    /// The names of its expressions.
    package let scope: ExpressionScope
    /// All reason codes: first the evaluator's own, then in order of appearance.
    package let reasonCodes: [String]
    let zones: TimeZoneOffsets
    let plan: PolicyPlan
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
        plan = PolicyPlan(parts: parts, reasonCodes: codes, zones: zones)
    }

    /// Its live lists, in alphabetical order.
    package var liveLists: [LiveListName] { scope.liveLists.values.sorted { $0.name < $1.name } }

    /// The slot of a signal; nil if the policy does not declare it.
    package func slot(named name: String) -> Int? { slots[name] }

    /// Whether a decision is short for all signal values, some hundred microseconds at most;
    /// otherwise it may take `ExpressionLimits.maximumSteps`.
    package var decidesAtOnce: Bool { plan.decidesAtOnce }

    /// The rule's position in `rules`.
    package func rule(id: String) -> Int? { rules.firstIndex { $0.id == id } }

    /// The rules with these ids; unknown ids are ignored.
    package func ruleSet(ids: [String]) -> RuleSet {
        ids.compactMap(rule(id:)).reduce(into: RuleSet()) { $0.bits |= 1 << UInt128($1) }
    }

    /// The slots that a decision about an event may read.
    package func slotsRead(at event: PolicyEvent) -> Set<Int> {
        let rules = rules.filter { $0.mode != .disabled && $0.events.contains(event) }.map(
            \.condition)
        let others = guarantees.map(\.condition) + challenges.compactMap(\.unavailableWhen)
        return (rules + others).reduce(into: []) { $0.formUnion($1.resolved.variables) }
    }

    /// Whether a rule with `review: true` matched, even if waived, snoozed or in
    /// shadow, or ended in an error.
    package func isForReview(_ result: PolicyResult) -> Bool {
        let matched = [
            result.asked, result.skips, result.waived, result.snoozed, result.shadow, result.errors,
        ]
        .reduce(0) { $0 | $1.bits }
        return RuleSet(bits: matched).contains { rules[$0].isForReview }
    }
}

/// Parts collected by a loader.
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
