// `postern policy stats`: how often each rule asks, and what comes of it.

import ArgumentParser
import PosternStore
import RiskDecisions
import RiskPolicy

struct PolicyStats: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how often people are asked for an extra check, by event and rule, and the outcomes.",
        discussion: """
            Passed, failed and abandoned are shares of the completed checks: passed, reported as failed, or neither within \
            an hour. Labels are what teams reported about people afterwards. A decision that several rules ask for counts with each.
            """)

    @OptionGroup var period: PeriodOptions
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        try installation.withStore { store in
            let now = PosternClock.now()
            let filter = try period.filter(now: now)
            var statistics = PolicyStatistics(now: now)
            let bar = ProgressBar(total: try store.decisions.count(filter))
            defer { bar.clear() }
            var place: Int64 = 0
            var read = 0
            while true {
                let (decisions, next) = try store.decisions.oldest(filter, after: place, limit: 2_000)
                for decision in decisions { statistics.add(decision) }
                read += decisions.count
                bar.update(done: read, count: read, of: "decisions")
                guard let next else { break }
                place = next
            }
            bar.clear()
            if output.json { return try printJSON(Row(statistics)) }
            Self.report(statistics, period.words)
        }
    }

    private static func report(_ statistics: PolicyStatistics, _ words: String) {
        let total = statistics.total
        guard total.questions > 0 else { return print("No decisions\(words).") }
        func rates(_ counts: OutcomeCounts) -> [String] {
            [
                Figures.percent(counts.passRate), Figures.percent(counts.failureRate), Figures.percent(counts.abandonmentRate),
                Figures.count(counts.legitimate), Figures.count(counts.fraudulent),
            ]
        }
        let header = ["PASSED", "FAILED", "ABANDONED", "LEGITIMATE", "FRAUDULENT"]
        var rows: [[String]] = []
        for event in PolicyEvent.allCases {
            guard let counts = statistics.events[event.rawValue] else { continue }
            rows.append(
                [event.rawValue, Figures.count(counts.questions), Figures.percent(counts.stepUpRate)] + rates(counts.outcomes))
        }
        rows.append(["all", Figures.count(total.questions), Figures.percent(total.stepUpRate)] + rates(total.outcomes))
        Table(header: ["EVENT", "DECISIONS", "ASKED"] + header, rows: rows).print()
        print("")
        let rules = statistics.rules.sorted { ($1.value.matched, $0.key) < ($0.value.matched, $1.key) }
        Table(
            header: ["RULE", "MATCHED", "OF ALL", "WAIVED", "SHADOW", "MISSING", "ERRORS"] + header,
            rows: rules.map { id, rule in
                [
                    id, Figures.count(rule.matched), Figures.percent(rule.matched, of: total.questions),
                    Figures.count(rule.waived),
                    Figures.count(rule.shadow), Figures.count(rule.missing), Figures.count(rule.errors),
                ] + rates(rule.outcomes)
            }
        ).print()
        if statistics.degraded > 0 { print("\n\(Figures.count(statistics.degraded)) decisions without history.") }
        if statistics.overridden > 0 {
            print(
                "\n\(Figures.count(statistics.overridden)) decisions in which a guarantee had to override the rules: fix the policy."
            )
        }
    }

    private struct Row: Encodable {
        struct Event: Encodable {
            let decisions: Int
            let stepUpRate: Double?
            let passRate: Double?
            let failureRate: Double?
            let abandonmentRate: Double?
            let outcomes: OutcomeRow

            init(_ event: PolicyStatistics.Event) {
                decisions = event.questions
                stepUpRate = event.stepUpRate
                passRate = event.outcomes.passRate
                failureRate = event.outcomes.failureRate
                abandonmentRate = event.outcomes.abandonmentRate
                outcomes = OutcomeRow(event.outcomes)
            }
        }
        struct Rule: Encodable {
            let rule: String
            let matched: Int
            let stepUpRate: Double
            let waived: Int
            let shadow: Int
            let missing: Int
            let errors: Int
            let passRate: Double?
            let failureRate: Double?
            let abandonmentRate: Double?
            let outcomes: OutcomeRow
        }

        let total: Event
        let events: [String: Event]
        let rules: [Rule]
        let policies: [String: Int]
        let degraded: Int
        let overridden: Int

        init(_ statistics: PolicyStatistics) {
            let all = statistics.total
            total = Event(all)
            events = statistics.events.mapValues(Event.init)
            rules = statistics.rules.sorted { $0.key < $1.key }.map { id, rule in
                Rule(
                    rule: id, matched: rule.matched, stepUpRate: Double(rule.matched) / Double(max(1, all.questions)),
                    waived: rule.waived,
                    shadow: rule.shadow, missing: rule.missing, errors: rule.errors, passRate: rule.outcomes.passRate,
                    failureRate: rule.outcomes.failureRate, abandonmentRate: rule.outcomes.abandonmentRate,
                    outcomes: OutcomeRow(rule.outcomes))
            }
            policies = statistics.policies
            degraded = statistics.degraded
            overridden = statistics.overridden
        }
    }
}
