// A decision as text for people: the checks that rules required, the waived rules, and the
// conditions that could not be determined.

import CEL
import Support

/// The text for a trace.
package struct PolicyExplanation {
    private let policy: Policy
    private let input: PolicyInput
    private let rules: [(rule: Int, outcome: RuleOutcome)]
    private let result: PolicyResult?
    /// Signals whose values are unknown now.
    private let hidden: Set<String>
    /// Whether the text has the expression behind each sentence.
    package var showsSource = false

    /// Explains a trace under the policy that made it.
    package init(policy: Policy, trace: PolicyTrace) {
        (self.policy, input, rules, result, hidden) = (
            policy, trace.input, trace.rules, trace.result, []
        )
    }

    /// Explains a decision from its stored outcomes.
    /// - Parameters:
    ///   - rules: their positions, in the policy's order.
    ///   - hidden: signals whose values were not stored.
    package init(
        policy: Policy, input: PolicyInput, rules: [(rule: Int, outcome: RuleOutcome)],
        hidden: Set<String>
    ) {
        (self.policy, self.input, self.rules, result, self.hidden) = (
            policy, input, rules, nil, hidden
        )
    }

    /// Several lines, without colours.
    package var text: String { ((result.map(head) ?? []) + ruleLines).joined(separator: "\n") }

    private func head(_ result: PolicyResult) -> [String] {
        let answer = policy.answer(result)
        var lines = [
            "\(answer.status == nil ? answer.event.rawValue : "status"): \(answer.word)   (\(policy.name) \(policy.version))"
        ]
        func fact(_ name: String, _ values: [String]) {
            if !values.isEmpty {
                lines.append("  \(Self.padded(name, 11)) \(values.joined(separator: ", "))")
            }
        }
        if answer.status == nil { fact("challenges", answer.challenges) }
        fact("reasons", answer.reasons)
        if answer.status == nil { fact("waived", answer.waived) }
        if answer.degraded {
            lines.append("  history was unavailable: signals from it count as missing")
        }
        if let guarantee = answer.overriddenBy {
            lines.append("  overridden by the guarantee: \(RuleWords(policy).guarantee(guarantee))")
        }
        return lines
    }

    /// One rule in a decision: its condition, the parts of it, and the values that they compared.
    package struct Rule: Encodable, Sendable {
        /// A part of a condition that is itself true or false.
        package struct Part: Encodable, Sendable {
            package let condition: String
            /// The condition in words.
            package let says: String
            package let value: String
            package let signals: [Signal]
        }

        package struct Signal: Encodable, Sendable {
            package let name: String
            package let value: String
        }

        package let id: String
        package let outcome: RuleOutcome
        package let effect: String
        package let reason: String
        package let condition: String
        /// The condition in words, for the event.
        package let says: String
        /// The effect of the rule, in one sentence or two.
        package let sentence: String
        /// The result of the whole condition.
        package let value: String
        /// Whether it matched because it was missing.
        package let isMatchedWhenMissing: Bool
        /// The condition itself if it has no parts.
        package let parts: [Part]
    }

    /// All rules that were evaluated, in the policy's order.
    package var explained: [Rule] {
        rules.filter { !policy.isDefault($0.rule) }.map { explain($0.rule, $0.outcome) }
    }

    /// The same as text; a blank line before each outcome.
    package var ruleLines: [String] {
        let all = explained
        var lines: [String] = []
        for (outcome, title) in Self.titles {
            let rules = all.filter { $0.outcome == outcome }
            guard !rules.isEmpty else { continue }
            lines += ["", title]
            for rule in rules { lines += self.lines(rule) }
        }
        return lines
    }

    private static let titles: [(RuleOutcome, String)] = [
        (.matched, "matched"), (.waived, "matched, but waived"),
        (.snoozed, "matched, but snoozed for this account"),
        (.error, "ended in an error"),
        (.shadow, "would have counted (shadow)"), (.missing, "unknown: a signal is missing"),
        (.notMatched, "did not match"),
    ]

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.unicodeScalars.count))
    }

    private func explain(_ position: Int, _ outcome: RuleOutcome) -> Rule {
        let rule = policy.rules[position]
        let challenge = policy.challenges[rule.challenge].kind
        let effect =
            switch rule.effect {
            case _ where policy.kind == .status: policy.status(of: rule).rawValue
            case .always: "always asks for \(challenge)"
            case .require: "asks for \(challenge)"
            case .skip: "waives up to \(challenge)"
            }
        let whole = rule.condition.resolved
        let value = shown(whole)
        let words = RuleWords(policy)
        return Rule(
            id: rule.id, outcome: outcome, effect: effect, reason: rule.reason,
            condition: Self.oneLine(rule.condition.text),
            says: words.text(whole, of: rule.condition, at: input.event),
            sentence: words.sentence(rule), value: value,
            isMatchedWhenMissing: policy.outcome(of: position, input) == .matched
                && value == CELValue.missing.text,
            parts: whole.conditionParts.map { part in
                Rule.Part(
                    condition: Self.oneLine(rule.condition.text(of: part)),
                    says: words.text(part, of: rule.condition, at: input.event), value: shown(part),
                    signals: part.variables.filter {
                        policy.signals.indices.contains($0) && policy.signals[$0].name != "event"
                    }
                    .map { Rule.Signal(name: policy.signals[$0].name, value: shown($0)) })
            })
    }

    private func lines(_ rule: Rule) -> [String] {
        var lines = ["  \(Self.padded(rule.id, 26)) \(Self.padded(rule.effect, 31)) \(rule.reason)"]
        lines.append(
            "      \(rule.says)  → \(rule.value)"
                + (rule.isMatchedWhenMissing
                    ? ": it matches, since the rule says when_missing: match" : ""))
        if showsSource { lines.append("      = \(rule.condition)") }
        let isDivided = rule.parts.count > 1 || rule.parts.first?.condition != rule.condition
        for part in rule.parts {
            if isDivided { lines.append("        \(part.says)  → \(part.value)") }
            if isDivided, showsSource { lines.append("        = \(part.condition)") }
            lines += part.signals.map { "          \($0.name) = \($0.value)" }
        }
        return lines
    }

    /// A condition may be written over several lines.
    private static func oneLine(_ text: String) -> String { PersonText.withSingleSpaces(text) }

    private func shown(_ slot: Int) -> String {
        hidden.contains(policy.signals[slot].name)
            ? "(only a hash of it is kept)" : policy.value(slot: slot, of: input).text
    }

    private func shown(_ part: ResolvedExpression) -> String {
        var isHidden = part.variables.contains {
            policy.signals.indices.contains($0) && hidden.contains(policy.signals[$0].name)
        }
        // The content of a list at that time is not stored.
        if result == nil { part.visit { if case .liveList = $0.kind { isHidden = true } } }
        guard !isHidden else { return "(not kept)" }
        return switch policy.evaluate(part, input) {
        case .success(let value): value.text
        case .failure(let error): "error: \(error.message)"
        }
    }
}
