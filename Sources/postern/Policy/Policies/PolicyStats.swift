// `postern policy stats`: how often each rule required verification, and the outcomes.

import ArgumentParser
import Decisions
import RiskPolicy
import Support

struct PolicyStats: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract:
            "Show how often people are asked for an extra check, by event and rule, and the outcomes.",
        discussion: """
            Passed, failed and abandoned are shares of the checks that are complete: passed, reported as failed, or neither \
            within an hour. Labels are what teams reported about people afterwards. A decision for which several rules asked \
            counts for each of them.
            """)

    @OptionGroup var period: PeriodOptions
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        try installation.withListings { listings in
            let now = PosternClock.now()
            let filter = try period.filter(now: now)
            var statistics = PolicyStatistics(now: now)
            let bar = DecisionBar(now: now)
            defer { bar.clear() }
            var read = 0
            try listings.decisions.walk(filter) { decisions in
                for decision in decisions { statistics.add(decision) }
                read += decisions.count
                if let last = decisions.last { bar.update(read, last) }
            }
            bar.clear()
            if output.json { return try printJSON(Self.members(statistics)) }
            Self.report(statistics, period.words)
        }
    }

    private static func report(_ statistics: PolicyStatistics, _ words: String) {
        let total = statistics.total
        guard total.questions > 0 else { return print("No decisions\(words).") }
        func rates(_ counts: OutcomeCounts) -> [String] {
            [
                Figures.percent(counts.passRate), Figures.percent(counts.observedRate),
                Figures.percent(counts.failureRate),
                Figures.percent(counts.abandonmentRate),
                Count.text(counts.legitimate), Count.text(counts.fraudulent),
            ]
        }
        let header = ["PASSED", "OBSERVED", "FAILED", "ABANDONED", "LEGITIMATE", "FRAUDULENT"]
        var rows: [[String]] = []
        for event in PolicyEvent.allCases {
            guard let counts = statistics.events[event.rawValue] else { continue }
            rows.append(
                [event.rawValue, Count.text(counts.questions), Figures.percent(counts.stepUpRate)]
                    + rates(counts.outcomes))
        }
        rows.append(
            ["all", Count.text(total.questions), Figures.percent(total.stepUpRate)]
                + rates(total.outcomes))
        Table(header: ["EVENT", "DECISIONS", "ASKED"] + header, rows: rows).printInReport()
        print("")
        let rules = statistics.rules.sorted {
            ($1.value.matched, $0.key) < ($0.value.matched, $1.key)
        }
        Table(
            header: ["RULE", "MATCHED", "OF ALL", "WAIVED", "SHADOW", "MISSING", "ERRORS"] + header,
            rows: rules.map { id, rule in
                [
                    id, Count.text(rule.matched),
                    Figures.percent(rule.matched, of: total.questions),
                    Count.text(rule.waived),
                    Count.text(rule.shadow), Count.text(rule.missing), Count.text(rule.errors),
                ] + rates(rule.outcomes)
            }
        ).printInReport()
        if statistics.degraded > 0 {
            print("\n\(Count.text(statistics.degraded, "decision")) without history.")
        }
        if statistics.overridden > 0 {
            print(
                "\n\(Count.text(statistics.overridden, "decision")) in which a guarantee had to override the rules: fix the policy."
            )
        }
    }

    private static func members(_ statistics: PolicyStatistics) -> Members {
        let all = statistics.total
        func rates(_ outcomes: OutcomeCounts) -> Members {
            [
                "pass_rate": outcomes.passRate, "observed_rate": outcomes.observedRate,
                "failure_rate": outcomes.failureRate,
                "abandonment_rate": outcomes.abandonmentRate, "outcomes": outcomes.members,
            ]
        }
        func event(_ event: PolicyStatistics.Event) -> Members {
            (["decisions": event.questions, "step_up_rate": event.stepUpRate] as Members).merging(
                rates(event.outcomes))
        }
        let rules = statistics.rules.sorted { $0.key < $1.key }.map { id, rule in
            ([
                "rule": id, "matched": rule.matched,
                "step_up_rate": Double(rule.matched) / Double(max(1, all.questions)),
                "waived": rule.waived, "shadow": rule.shadow, "missing": rule.missing,
                "errors": rule.errors,
            ] as Members).merging(rates(rule.outcomes))
        }
        return [
            "total": event(all), "events": statistics.events.mapValues(event), "rules": rules,
            "policies": statistics.policies,
            "degraded": statistics.degraded, "overridden": statistics.overridden,
        ]
    }
}
