// `postern policy backtest`: runs a candidate on past decisions.

import ArgumentParser
import CEL
import Database
import Decisions
import Foundation
import RiskPolicy
import Support

struct PolicyBacktest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backtest",
        abstract: "Run a policy on the logged decisions.",
        discussion: """
            Shows how many people would have been asked for an extra check, before and after; which rules make the difference; \
            and what is known about the people whose decision changes. Decisions of teams that the candidate would not serve \
            are left out. --team uses only the decisions of one team, even if the team is bound to another policy.

            The result is not a forecast: people who were allowed were never checked. The report gives figures for this.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var candidate: String

    @OptionGroup var period: PeriodOptions

    @Option(
        help: ArgumentHelp("Also write a self-contained page with plots.", valueName: "file"),
        completion: .file(),
        transform: filePath)
    var html: String?

    @Flag(help: "Show the expression behind each sentence.")
    var source = false

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        try installation.refuse(output: html)
        try installation.withListings { listings in
            let now = PosternClock.now()
            let referred = try ReferredPolicy(candidate) { listings.policies }
            guard referred.policy.kind == .verification else {
                return try status(referred, listings, now: now)
            }
            let filter = try period.filter(now: now)
            let slice: Int64 = now - (filter.since ?? 0) <= 4 * 86_400 ? 3_600 : 86_400
            var run = try BacktestRun(
                referred.policy, listings: listings, filter: filter, sliceSeconds: slice, now: now)
            let bar = DecisionBar(now: now)
            defer { bar.clear() }
            try run.run(progress: bar.update)
            bar.clear()
            if let html {
                let page = BacktestPage(
                    run.backtest, label: referred.label, leftOut: run.leftOut, madeAt: now)
                try OwnedFile.write(page.html.utf8, to: html)
            }
            if output.json { return try printJSON(Self.members(run, referred)) }
            print(
                "\(referred.label) on \(Count.text(run.backtest.comparison.total.questions, "decision"))\(period.words)\n"
            )
            print(shownLines(run.backtest.text(leftOut: run.leftOut, showsSource: source)))
            if let html { print("\nWrote \(html)") }
        }
    }
}

/// The decisions of the log to use.
struct PeriodOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How far back: 12h, 30d, 8w, or a day as in 2026-11-01.", valueName: "time"))
    var since = "30d"

    @Option(help: ArgumentHelp("Only decisions of this team.", valueName: "team"))
    var team: String?

    var words: String { " since \(since)" + (team.map { " of team \($0)" } ?? "") }

    func filter(now: Int64) throws -> DecisionFilter {
        DecisionFilter(since: try ExpiryText.start(since, now: now), team: team)
    }
}

extension PolicyBacktest {
    private static func members(_ run: BacktestRun, _ referred: ReferredPolicy) -> Members {
        let backtest = run.backtest
        let flips = backtest.flippingRules.map { rule -> Members in
            [
                "rule": rule.id, "sentence": backtest.sentence(of: rule.id),
                "newly_asks": rule.count.newlyAsks,
                "no_longer_asks": rule.count.noLongerAsks,
                "newly": rule.flips.newlyAsked.members,
                "no_longer": rule.flips.noLongerAsked.members,
            ]
        }
        let slices = backtest.slices.sorted { $0.key < $1.key }.map { time, slice -> Members in
            [
                "at": timestamp(time), "questions": slice.questions,
                "asked_before": slice.askedBefore,
                "asked_after": slice.askedAfter,
            ]
        }
        return [
            "candidate": "\(referred.policy.name) \(referred.policy.version)",
            "hash": referred.hash,
            "first": backtest.first.map(timestamp), "last": backtest.last.map(timestamp),
            "left_out": run.leftOut,
            "step_up_before": backtest.stepUpBefore, "step_up_after": backtest.stepUpAfter,
            "comparison": backtest.comparison.members, "flips": flips,
            "newly_asked": backtest.flips.newlyAsked.members,
            "statuses": backtest.statuses.counts.map { status, count -> Members in
                [
                    "status": status?.rawValue, "concerned": count.concerned,
                    "answered_the_same": count.unchanged,
                ]
            },
            "no_longer_asked": backtest.flips.noLongerAsked.members, "slices": slices,
            "lacking_decisions": backtest.lackingRows,
            "untold": backtest.untold, "untold_rules": backtest.untoldRules,
            "lacking_signals": backtest.lacking, "broken_guarantees": backtest.brokenGuaranteeCount,
            "unreadable": backtest.unreadable, "cautions": backtest.cautions,
        ]
    }
}

extension OutcomeCounts {
    /// As JSON.
    var members: Members {
        [
            "asked": asked, "passed": passed, "observed": observed, "failed": failed,
            "abandoned": abandoned,
            "open": open, "legitimate": legitimate,
            "fraudulent": fraudulent,
        ]
    }
}

/// Shows the progress through the log by time, because counting the decisions first would read the
/// log twice.
final class DecisionBar {
    private let now: Int64
    private var bar: ProgressBar?
    /// The time of the first decision.
    private var start: Int64 = 0

    init(now: Int64) { self.now = now }

    func update(_ read: Int, _ last: LoggedDecision) {
        let time = last.record.evaluatedAt
        guard let bar else {
            (start, bar) = (time, ProgressBar(total: Int(now - time)))
            return
        }
        bar.update(done: Int(time - start), count: read, of: "decisions")
    }

    func clear() { bar?.clear() }
}
