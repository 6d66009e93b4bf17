// The rules of a policy as sentences in plain English, for people. docs/POLICY-REFERENCE.md,
// "Expressions", has the language of conditions. Parts without words are given as expressions
// between backquotes.

import CEL
import Support

/// Writes sentences about one policy. Pure.
package struct RuleWords {
    private let policy: Policy

    package init(_ policy: Policy) { self.policy = policy }

    /// The meaning of a condition at some events.
    package struct Clause: Sendable, Equatable {
        /// In the order of the events; not empty.
        package let events: [PolicyEvent]
        /// After "when"; nil if the condition is always, or never, true.
        package let text: String?
        /// For a condition without words: whether it is always true.
        package let isAlways: Bool
    }

    // MARK: Conditions

    /// A condition by itself: `the account was not seen for half a year`.
    package func text(_ condition: PolicyExpression) -> String {
        let reader = StatementReader(policy, condition)
        let statement = reader.statement()
        return reader.text(statement) ?? Self.always(statement == .always(true))
    }

    /// The words for a condition, or for a part of one, at an event.
    package func text(
        _ part: ResolvedExpression, of condition: PolicyExpression, at event: PolicyEvent
    ) -> String {
        let reader = StatementReader(policy, condition)
        let known = policy.slot(named: "event").map { [$0: CELValue.string(event.rawValue)] } ?? [:]
        // A part that is only about the event is given as written.
        for values in [known, [:]] {
            if let text = reader.text(reader.statement(of: part, values)) { return text }
        }
        return Self.always(reader.statement(of: part, known) == .always(true))
    }

    private static func always(_ bool: Bool) -> String { bool ? "in every case" : "in no case" }

    /// The meaning of a condition for each event: one clause if it does not depend on the event.
    package func clauses(_ condition: PolicyExpression, at events: Set<PolicyEvent>) -> [Clause] {
        let reader = StatementReader(policy, condition)
        let slot = policy.slot(named: "event")
        var found: [(statement: Statement, events: [PolicyEvent])] = []
        for event in PolicyEvent.allCases where events.contains(event) {
            let statement = reader.statement(slot.map { [$0: .string(event.rawValue)] } ?? [:])
            if let place = found.firstIndex(where: { $0.statement == statement }) {
                found[place].events.append(event)
            } else {
                found.append((statement, [event]))
            }
        }
        return found.map {
            Clause(
                events: $0.events, text: reader.text($0.statement),
                isAlways: $0.statement == .always(true))
        }
    }

    /// The condition of a rule, with the events if it depends on them: `diff` compares this text.
    package func condition(of rule: PolicyRule) -> String {
        let clauses = clauses(rule.condition, at: rule.events)
        return clauses.map { clause in
            let words = clause.text.map { "when \($0)" } ?? Self.always(clause.isAlways)
            return clauses.count == 1 || policy.kind == .status
                ? words : "at \(PolicyEvent.words(clause.events)) \(words)"
        }.joined(separator: "; ")
    }

    // MARK: Rules

    /// One sentence or two; the rule's own description first.
    package func sentence(_ rule: PolicyRule) -> String {
        [rule.description.map(Self.closed), generated(rule)].compactMap { $0 }.joined(
            separator: " ")
    }

    /// The text with a full stop at its end.
    private static func closed(_ text: String) -> String {
        let text = PersonText.withSingleSpaces(text)
        return text.unicodeScalars.last.map { ".!?".unicodeScalars.contains($0) } == true
            ? text : text + "."
    }

    private func generated(_ rule: PolicyRule) -> String {
        let missing = rule.matchesWhenMissing ? ", and also when this is not known" : ""
        if policy.kind == .status {
            let status = "\"\(policy.status(of: rule).words)\""
            if rule.effect == .require {
                return "The status is \(status) when no other rule says so."
            }
            let condition = text(rule.condition)
            return "The status is \(status) when \(condition)\(missing)."
        }
        let clauses = clauses(rule.condition, at: rule.events)
        return clauses.map { clause in
            let place = "at \(PolicyEvent.words(clause.events))"
            guard let text = clause.text else {
                return clause.isAlways
                    ? "\(action(rule)) \(place) in every case." : "Does nothing \(place)."
            }
            return "\(action(rule)) \(place) when \(text)\(missing)."
        }.joined(separator: " ")
    }

    /// Rules with their sentences, as a list below a report.
    package func lines(_ rules: [PolicyRule], showsSource: Bool) -> [String] {
        rules.flatMap { rule in
            ["  \(rule.id): \(sentence(rule))"]
                + (showsSource ? ["    = \(PersonText.withSingleSpaces(rule.condition.text))"] : [])
        }
    }

    private func action(_ rule: PolicyRule) -> String {
        let challenge = policy.challenges[rule.challenge].kind
        return switch rule.effect {
        case .always: "Always asks for \(challenge)"
        case .require: "Asks for \(challenge)"
        case .skip: "Waives checks up to \(challenge)"
        }
    }

    /// `require_verification is guaranteed when …`.
    package func sentence(_ guarantee: PolicyGuarantee) -> String {
        "\(policy.word(guarantee)) when \(text(guarantee.condition))"
    }

    /// The same by the text of its condition, as decisions name it; the text itself for a guarantee
    /// of another policy.
    package func guarantee(_ condition: String) -> String {
        policy.guarantees.first { sameCodePoints($0.condition.text, condition) }.map(sentence)
            ?? condition
    }

    // MARK: Counters

    /// `sign-ups of the inbox's domain within a day`.
    package func text(_ counter: PolicyCounter) -> String {
        guard case .count(_, let many, let rest, _) = counter.phrase.kind else {
            return counter.definition
        }
        return "\(many) \(rest)"
    }
}
