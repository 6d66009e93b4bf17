// Text and figures of a backtest, shared by the text report, the page and the warnings.

import Foundation
import RiskPolicy
import Support

/// Formats figures for people.
package enum Figures {
    /// `12.3 %`; `–` where the whole is 0.
    package static func percent(_ part: Int, of whole: Int) -> String {
        whole == 0 ? "–" : percent(Double(part) / Double(whole))
    }

    package static func percent(_ share: Double?) -> String {
        guard let share else { return "–" }
        return String(format: "%.1f %%", share * 100)
    }

    /// `0.93`.
    package static func decimal(_ value: Double) -> String { String(format: "%.2f", value) }

    /// A change in percentage points: `+1.2`.
    package static func points(_ before: Double, _ after: Double) -> String {
        String(format: "%+.1f points", (after - before) * 100)
    }
}

extension Backtest {
    package var stepUpBefore: Double? { rate(comparison.total.askedBefore) }
    package var stepUpAfter: Double? { rate(comparison.total.askedAfter) }

    private func rate(_ count: Int) -> Double? {
        let questions = comparison.total.questions
        return questions == 0 ? nil : Double(count) / Double(questions)
    }

    /// Rules that flip anything, the heaviest first.
    package var flippingRules: [(id: String, count: PolicyComparison.RuleCount, flips: Flips)] {
        comparison.rulesByWeight.filter { $0.count.newlyAsks + $0.count.noLongerAsks > 0 }.map {
            ($0.id, $0.count, ruleFlips[$0.id] ?? Flips())
        }
    }

    /// Why the figures may mislead: one sentence each, the most serious first.
    package var cautions: [String] {
        var lines: [String] = []
        let total = comparison.total
        if brokenGuaranteeCount > 0 {
            let names = brokenGuarantees.map(\.decision).joined(separator: ", ")
            lines.append(
                "The candidate's rules break its own guarantees in \(Count.text(brokenGuaranteeCount)) logged decisions "
                    + "(\(names)\(brokenGuaranteeCount > brokenGuarantees.count ? ", …" : "")): activate would refuse it."
            )
        }
        if untold > 0 {
            func each(_ counts: [String: Int]) -> String {
                counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
                    "\($0.key) in \(Count.text($0.value))"
                }
                .joined(separator: ", ")
            }
            lines.append(
                "For \(Count.text(untold)) of \(Count.text(total.questions + untold, "decision")) it cannot be told what the candidate "
                    + "would have decided, and they are in none of the figures. It depends on \(untoldRules.count == 1 ? "the rule" : "rules") "
                    + "\(each(untoldRules)). The log lacks what they read"
                    + (untoldSignals.isEmpty
                        ? ": the entries that lists had." : " (\(each(untoldSignals))): ")
                    + (untoldSignals.isEmpty
                        ? ""
                        : "a signal that was not declared was not gathered, and context.* is kept as a keyed hash only.")
            )
        }
        if total.questions > 0 {
            let labelled = Figures.percent(outcomes.labelled, of: total.questions)
            lines.append(
                "Selection bias: the log shows what people did under the policy of that time. Those who were allowed were never checked, so "
                    + "it is unknown whether they would have passed; those who were asked and gave up may have been real people all the "
                    + "same. Labels (\(labelled) of the decisions; \(Figures.percent(outcomes.labelled - allowed.labelled, of: outcomes.asked)) of the asked, "
                    + "\(Figures.percent(allowed.labelled, of: total.questions - outcomes.asked)) of the allowed) are given "
                    + "where a person checked. Read the flips one rule at a time, not the totals as a forecast."
            )
            lines.append(
                "A decision changes what is known later: with the candidate, checks would have been passed or failed that the log "
                    + "does not contain, and accounts would have stayed pending or not.")
        }
        if unreadable > 0 {
            lines.append("\(Count.text(unreadable, "decision")) of the log could not be read.")
        }
        return lines
    }

    /// The sentence of a candidate's rule; nil for a rule that it does not have.
    package func sentence(of rule: String) -> String? {
        candidate.rule(id: rule).map { RuleWords(candidate).sentence(candidate.rules[$0]) }
    }

    /// The number of people with each status, among those concerned. Empty if the candidate does
    /// not read the status, or no person is concerned.
    package var statusSentences: [String] {
        let name = StandardSignal.realUserStatus.rawValue
        guard candidate.slot(named: name) != nil, statuses.total.concerned > 0 else { return [] }
        return statuses.sentences(of: Count.text(statuses.read, "decision"))
    }

    // MARK: Text

    /// The report for a terminal, without colours.
    package func text(leftOut: Int, showsSource: Bool = false) -> String {
        let total = comparison.total
        guard total.questions + untold > 0 else { return "No decisions to test against." }
        var lines: [String] = []
        func row(_ name: String, _ values: [String]) -> String {
            let width = 28
            return "  " + name
                + String(repeating: " ", count: max(1, width - name.unicodeScalars.count))
                + values.map {
                    String(repeating: " ", count: max(1, 14 - $0.unicodeScalars.count)) + $0
                }.joined()
        }
        lines.append("step-up rate")
        lines.append(row("", ["before", "after", "newly asked", "no longer", "decisions"]))
        func add(_ name: String, _ count: PolicyComparison.Count) {
            lines.append(
                row(
                    name,
                    [
                        Figures.percent(count.askedBefore, of: count.questions),
                        Figures.percent(count.askedAfter, of: count.questions),
                        Count.text(count.newlyAsked), Count.text(count.noLongerAsked),
                        Count.text(count.questions),
                    ]))
        }
        for event in PolicyEvent.allCases {
            if let count = comparison.events[event] { add(event.rawValue, count) }
        }
        add("all", total)
        lines += ["", "flips per rule"]
        let rules = flippingRules
        if rules.isEmpty {
            lines.append(
                untold == 0
                    ? "  none: every decision would have been the same"
                    : "  none among the decisions of which it can be told")
        } else {
            lines.append(
                row(
                    "",
                    [
                        "newly asks", "legitimate", "fraudulent", "no longer", "legitimate",
                        "fraudulent",
                    ]))
            for rule in rules {
                lines.append(
                    row(
                        rule.id,
                        [
                            rule.count.newlyAsks, rule.flips.newlyAsked.legitimate,
                            rule.flips.newlyAsked.fraudulent,
                            rule.count.noLongerAsks, rule.flips.noLongerAsked.legitimate,
                            rule.flips.noLongerAsked.fraudulent,
                        ].map { Count.text($0) }))
            }
            let told = rules.compactMap { rule in
                candidate.rule(id: rule.id).map { candidate.rules[$0] }
            }
            if !told.isEmpty {
                lines +=
                    ["", "the candidate's rules"]
                    + RuleWords(candidate).lines(told, showsSource: showsSource)
            }
        }
        if !statusSentences.isEmpty {
            lines += ["", "the status of the people concerned"] + statusSentences.map { "  " + $0 }
        }
        let gone = flips.noLongerAsked
        if gone.asked > 0 {
            lines += [
                "", "outcomes for the \(Count.text(gone.asked)) who would no longer be asked",
            ]
            for (name, count) in [
                ("passed", gone.passed), ("passed, observed", gone.observed),
                ("failed", gone.failed), ("abandoned", gone.abandoned),
                ("open", gone.open),
            ] where count > 0 {
                lines.append(
                    row(name, [Count.text(count), Figures.percent(count, of: gone.asked)]))
            }
        }
        if leftOut > 0 {
            lines += [
                "",
                "\(Count.text(leftOut, "decision")) of teams and apps with policies of their own \(leftOut == 1 ? "was" : "were") left out.",
            ]
        }
        for caution in cautions { lines += ["", "! " + caution] }
        return lines.joined(separator: "\n")
    }
}
