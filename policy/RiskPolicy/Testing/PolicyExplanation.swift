// A decision as text for people: what was asked for by which rule, what was waived, what could not be determined.

import CEL

/// The text for a trace.
package struct PolicyExplanation {
    private let policy: Policy
    private let trace: PolicyTrace

    /// Explains a trace under the policy that made it.
    package init(policy: Policy, trace: PolicyTrace) {
        self.policy = policy
        self.trace = trace
    }

    /// Several lines, without colours.
    package var text: String {
        let answer = policy.answer(trace.result)
        var lines = [
            "\(answer.status == nil ? answer.event.rawValue : "status"): \(answer.word)   (\(policy.name) \(policy.version))"
        ]
        func fact(_ name: String, _ values: [String]) {
            if !values.isEmpty { lines.append("  \(Self.padded(name, 11)) \(values.joined(separator: ", "))") }
        }
        if answer.status == nil { fact("challenges", answer.challenges) }
        fact("reasons", answer.reasons)
        if answer.status == nil { fact("waived", answer.waived) }
        if answer.degraded { lines.append("  history was unavailable: signals from it count as missing") }
        if let guarantee = answer.overriddenBy { lines.append("  overridden by the guarantee: \(guarantee)") }
        for (outcome, title) in Self.titles {
            let rules = trace.rules.filter { $0.outcome == outcome && !policy.isDefault($0.rule) }
            guard !rules.isEmpty else { continue }
            lines += ["", title]
            for rule in rules { lines += explain(policy.rules[rule.rule]) }
        }
        return lines.joined(separator: "\n")
    }

    private static let titles: [(RuleOutcome, String)] = [
        (.matched, "matched"), (.waived, "matched, but waived"), (.error, "ended in an error"),
        (.shadow, "would have counted (shadow)"), (.missing, "unknown: a signal is missing"),
        (.notMatched, "did not match"),
    ]

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.unicodeScalars.count))
    }

    private func explain(_ rule: PolicyRule) -> [String] {
        let challenge = policy.challenges[rule.challenge].kind
        let effect =
            switch rule.effect {
            case _ where policy.kind == .status: policy.status(of: rule).rawValue
            case .always: "always asks for \(challenge)"
            case .require: "asks for \(challenge)"
            case .skip: "waives up to \(challenge)"
            }
        var lines = ["  \(Self.padded(rule.id, 26)) \(Self.padded(effect, 31)) \(rule.reason)"]
        for part in rule.condition.resolved.conditionParts {
            lines.append("      \(rule.condition.text(of: part))  → \(shown(part))")
            for slot in part.variables where policy.signals.indices.contains(slot) && policy.signals[slot].name != "event" {
                lines.append("          \(policy.signals[slot].name) = \(policy.value(slot: slot, of: trace.input).text)")
            }
        }
        return lines
    }

    private func shown(_ part: ResolvedExpression) -> String {
        switch policy.evaluate(part, trace.input) {
        case .success(let value): value.text
        case .failure(let error): "error: \(error.message)"
        }
    }
}
