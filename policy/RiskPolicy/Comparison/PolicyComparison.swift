// Counts decisions that differ between two policies, over many requests: generated for `diff`,
// logged for `backtest`.

import CEL

/// The parts of a decision that are compared.
package struct ComparedDecision: Sendable, Equatable {
    package let event: PolicyEvent
    /// Whether a check is required.
    package let asks: Bool
    /// Ids of the rules that require a check. Other causes are in parentheses: a guarantee,
    /// unavailable history.
    package let rules: [String]
    /// Weakest first.
    package let challenges: [String]

    package init(event: PolicyEvent, asks: Bool, rules: [String], challenges: [String]) {
        self.event = event
        self.asks = asks
        self.rules = rules
        self.challenges = challenges
    }

    /// Entry in `rules` for a guarantee that overrode them.
    package static let guarantee = "(guarantee)"
    /// Entry in `rules` for a check that is required while history is unavailable.
    package static let history = "(history unavailable)"

    package init(_ result: PolicyResult, by policy: Policy) {
        var rules = result.asked.map { policy.rules[$0].id }
        let asks = result.decision == .requireVerification
        if result.overridingGuarantee >= 0 {
            rules = [Self.guarantee]
        } else if result.isDegraded, policy.degraded[result.event] != nil {
            rules.append(Self.history)
        }
        self.init(
            event: result.event, asks: asks, rules: asks ? rules : [],
            challenges: policy.challengeKinds(result))
    }
}

/// Counts of the differences.
package struct PolicyComparison: Sendable {
    /// For one event.
    package struct Count: Sendable, Equatable {
        package var questions = 0
        package var askedBefore = 0
        package var askedAfter = 0
        /// Allowed before, a check after.
        package var newlyAsked = 0
        /// A check before, allowed after.
        package var noLongerAsked = 0
        /// A check both times, with other challenges.
        package var otherChallenges = 0

        /// Whether users or teams would notice a difference.
        package var differs: Bool { newlyAsked + noLongerAsked + otherChallenges > 0 }

        static func + (left: Count, right: Count) -> Count {
            Count(
                questions: left.questions + right.questions,
                askedBefore: left.askedBefore + right.askedBefore,
                askedAfter: left.askedAfter + right.askedAfter,
                newlyAsked: left.newlyAsked + right.newlyAsked,
                noLongerAsked: left.noLongerAsked + right.noLongerAsked,
                otherChallenges: left.otherChallenges + right.otherChallenges)
        }
    }

    /// For one rule.
    package struct RuleCount: Sendable, Equatable {
        /// Decisions in which it required a check.
        package var askedBefore = 0
        package var askedAfter = 0
        /// Flips from allow to a check in which the rule requires it.
        package var newlyAsks = 0
        /// Flips from a check to allow in which the rule required it.
        package var noLongerAsks = 0

        package var differs: Bool { askedBefore != askedAfter || newlyAsks + noLongerAsks > 0 }
    }

    package private(set) var events: [PolicyEvent: Count] = [:]
    /// By the rule's id.
    package private(set) var rules: [String: RuleCount] = [:]

    package init() {}

    package var total: Count { events.values.reduce(Count(), +) }

    /// Ids ordered by the size of their difference, then by name.
    package var rulesByWeight: [(id: String, count: RuleCount)] {
        rules.map { ($0.key, $0.value) }.sorted { left, right in
            let (one, other) = (
                left.1.newlyAsks + left.1.noLongerAsks, right.1.newlyAsks + right.1.noLongerAsks
            )
            if one != other { return one > other }
            let (change, otherChange) = (
                abs(left.1.askedAfter - left.1.askedBefore),
                abs(right.1.askedAfter - right.1.askedBefore)
            )
            return change != otherChange ? change > otherChange : left.0 < right.0
        }
    }

    /// Counts one request; returns true if the decision flipped between allow and a check.
    @discardableResult
    package mutating func add(_ before: ComparedDecision, _ after: ComparedDecision) -> Bool {
        var count = events[after.event] ?? Count()
        count.questions += 1
        if before.asks { count.askedBefore += 1 }
        if after.asks { count.askedAfter += 1 }
        if !before.asks, after.asks { count.newlyAsked += 1 }
        if before.asks, !after.asks { count.noLongerAsked += 1 }
        if before.asks, after.asks, before.challenges != after.challenges {
            count.otherChallenges += 1
        }
        events[after.event] = count
        for rule in before.rules { rules[rule, default: RuleCount()].askedBefore += 1 }
        for rule in after.rules { rules[rule, default: RuleCount()].askedAfter += 1 }
        if after.asks, !before.asks {
            for rule in after.rules { rules[rule, default: RuleCount()].newlyAsks += 1 }
        }
        if before.asks, !after.asks {
            for rule in before.rules { rules[rule, default: RuleCount()].noLongerAsks += 1 }
        }
        return before.asks != after.asks
    }

    /// Compares on inputs generated from the values in the conditions of both policies. They show
    /// which decisions can differ, not how often they would: real users are not at every threshold.
    /// - Returns: the counts, and the first few inputs whose decision flips, as text.
    package static func onGeneratedInputs(
        _ old: Policy, _ new: Policy, count: Int = 40_000, now: CELTimestamp
    ) -> (comparison: PolicyComparison, examples: [String]) {
        var comparison = PolicyComparison()
        var examples: [String] = []
        for (seed, maker) in [old, new].enumerated() {
            var generator = InputGenerator(policy: maker, seed: UInt64(seed + 1), now: now)
            for number in 0..<count / 2 {
                let input = generator.next(
                    event: maker.askedEvents[number % maker.askedEvents.count])
                let before = ComparedDecision(old.decide(input), by: old)
                let after = ComparedDecision(new.decide(input), by: new)
                guard comparison.add(before, after), examples.count < 3 else { continue }
                examples.append(example(before, after, old, new, input))
            }
        }
        return (comparison, examples)
    }

    /// An input that flips, shown by the signals that the requiring rules read, before or after.
    private static func example(
        _ before: ComparedDecision, _ after: ComparedDecision, _ old: Policy, _ new: Policy,
        _ input: PolicyInput
    ) -> String {
        var shown: [String] = []
        for (policy, rules) in [(old, before.rules), (new, after.rules)] {
            for id in rules {
                guard let position = policy.rule(id: id) else { continue }
                for slot in policy.rules[position].condition.resolved.variables
                where policy.signals.indices.contains(slot) {
                    let name = policy.signals[slot].name
                    let fact = "\(name) = \(policy.value(slot: slot, of: input).text)"
                    if name != "event", !shown.contains(fact) { shown.append(fact) }
                }
            }
        }
        let (word, by) = after.asks ? ("now asked", after.rules) : ("no longer asked", before.rules)
        let facts = shown.isEmpty ? "" : ": " + shown.joined(separator: ", ")
        return "\(after.event.rawValue) \(word) (\(by.joined(separator: ", ")))\(facts)"
    }
}
