// The rules by event, and the parts of conditions (each true, false and missing), that a policy's
// tests do not exercise.

import CEL

/// The rules and parts that the tests exercise.
package struct PolicyCoverage: Sendable {
    /// The tests of one rule's events.
    package struct Rule: Sendable {
        /// The rule's id; `KIND unavailable_when` for a challenge's condition.
        package let id: String
        /// By event: tests in which its condition was true, and tests in which it
        /// was false, missing or an error.
        package var events: [Event]
        /// The parts of its condition, in the order written.
        package var parts: [Part]

        /// Tests in which its condition was true.
        package var matched: Int { events.reduce(0) { $0 + $1.matched } }
        /// Tests in which it was false, missing or an error.
        package var notMatched: Int { events.reduce(0) { $0 + $1.notMatched } }

        /// Whether it matched and did not match on each event, and every part of its
        /// condition had every possible result.
        package var isComplete: Bool {
            events.allSatisfy { $0.matched > 0 && $0.notMatched > 0 }
                && parts.allSatisfy(\.isComplete)
        }
    }

    /// A rule's tests on one of its events.
    package struct Event: Sendable {
        package let event: PolicyEvent
        package var matched = 0
        package var notMatched = 0
    }

    /// A part of a condition: an operand of `&&`, `||`, `!` and `?:`.
    package struct Part: Sendable {
        /// As written.
        package let text: String
        /// Whether it reads a signal that may be missing, so that its result can be missing.
        package let canBeMissing: Bool
        /// Whether a test made it true.
        package var wasTrue = false
        /// Whether a test made it false.
        package var wasFalse = false
        /// Whether a test made it missing.
        package var wasMissing = false

        package var isComplete: Bool { wasTrue && wasFalse && (wasMissing || !canBeMissing) }
    }

    /// Every rule that is not disabled, in the policy's order, then the conditions of challenges.
    package var rules: [Rule]

    /// Counts over the tests of a suite. Each part is evaluated separately, for all results of the
    /// parts before it.
    package init(policy: Policy, suite: PolicyTestSuite) {
        rules = policy.rules.enumerated().filter {
            $0.element.mode != .disabled && !policy.isDefault($0.offset)
        }.map {
            position, rule in
            Self.covered(rule.id, rule.condition, rule.events, policy, suite) {
                policy.outcome(of: position, $0) == .matched
            }
        }
        for challenge in policy.challenges {
            guard let condition = challenge.unavailableWhen else { continue }
            let events = Set(PolicyEvent.allCases.filter { challenge.isOffered(for: $0) })
            var covered = Self.covered(
                "\(challenge.kind) unavailable_when", condition, events, policy, suite
            ) { input in
                if case .success(.bool(true)) = policy.evaluate(condition.resolved, input) {
                    true
                } else {
                    false
                }
            }
            // The condition is the same for every event for which the challenge is offered.
            let first = PolicyEvent.allCases.first { events.contains($0) } ?? .signUp
            covered.events = [
                Event(event: first, matched: covered.matched, notMatched: covered.notMatched)
            ]
            rules.append(covered)
        }
    }

    private static func covered(
        _ id: String, _ condition: PolicyExpression, _ events: Set<PolicyEvent>, _ policy: Policy,
        _ suite: PolicyTestSuite,
        matches: (PolicyInput) -> Bool
    ) -> Rule {
        let nodes = condition.resolved.conditionParts
        let parts = nodes.map { node in
            let reads = node.variables.filter { policy.signals.indices.contains($0) }
            return Part(
                text: condition.text(of: node),
                canBeMissing: !node.usesHas && reads.contains { policy.signals[$0].mayBeMissing })
        }
        var covered = Rule(
            id: id, events: PolicyEvent.allCases.filter(events.contains).map { Event(event: $0) },
            parts: parts)
        for test in suite.tests {
            guard let place = covered.events.firstIndex(where: { $0.event == test.input.event })
            else { continue }
            if matches(test.input) {
                covered.events[place].matched += 1
            } else {
                covered.events[place].notMatched += 1
            }
            for (index, node) in nodes.enumerated() {
                switch policy.evaluate(node, test.input) {
                case .success(.bool(true)): covered.parts[index].wasTrue = true
                case .success(.bool(false)): covered.parts[index].wasFalse = true
                case .success(.missing): covered.parts[index].wasMissing = true
                default: break
                }
            }
        }
        return covered
    }

    /// Lines that name the parts that no test exercises; empty if there are none.
    package var gaps: [String] {
        rules.flatMap { rule -> [String] in
            var lines: [String] = []
            func add(_ what: String, _ events: [Event]) {
                if events.count == rule.events.count, !events.isEmpty {
                    lines.append("\(rule.id): \(what)")
                } else if !events.isEmpty {
                    lines.append(
                        "\(rule.id): \(what) on \(events.map(\.event.rawValue).joined(separator: ", "))"
                    )
                }
            }
            add("never matched", rule.events.filter { $0.matched == 0 })
            add("never failed to match", rule.events.filter { $0.notMatched == 0 })
            for part in rule.parts {
                if !part.wasTrue { lines.append("\(rule.id): never true: \(part.text)") }
                if !part.wasFalse { lines.append("\(rule.id): never false: \(part.text)") }
                if part.canBeMissing, !part.wasMissing {
                    lines.append("\(rule.id): never missing: \(part.text)")
                }
            }
            return lines
        }
    }
}

extension ResolvedExpression {
    /// The parts of a condition that are themselves true or false.
    package var conditionParts: [ResolvedExpression] {
        switch kind {
        case .binary(.and, let left, let right), .binary(.or, let left, let right):
            left.conditionParts + right.conditionParts
        case .not(let operand): operand.conditionParts
        case .conditional(let condition, let yes, let no) where type == .bool:
            condition.conditionParts + yes.conditionParts + no.conditionParts
        default: [self]
        }
    }
}

extension PolicyExpression {
    /// The text of a part.
    package func text(of node: ResolvedExpression) -> String {
        let bytes = Array(text.utf8)
        let range = node.span.clamped(to: 0..<bytes.count)
        return String(decoding: bytes[range], as: UTF8.self)
    }
}
