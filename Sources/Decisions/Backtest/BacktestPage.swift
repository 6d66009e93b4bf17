// A backtest as one HTML page: no script, no external requests, light and dark.

import Foundation
import RiskPolicy
import Support

/// Writes the page.
package struct BacktestPage {
    private let backtest: Backtest
    private let label: String
    private let leftOut: Int
    private let madeAt: Int64

    /// - Parameters:
    ///   - label: the candidate, for example `risk-default 2026.3 (mine)`.
    ///   - leftOut: number of decisions that did not count, for the notes.
    package init(_ backtest: Backtest, label: String, leftOut: Int, madeAt: Int64) {
        self.backtest = backtest
        self.label = label
        self.leftOut = leftOut
        self.madeAt = madeAt
    }

    package var html: String {
        let total = backtest.comparison.total
        let period =
            "\(Self.period(backtest.first, backtest.last)) · \(Count.text(total.questions, "decision"))\(leftOut > 0 ? " · \(Count.text(leftOut)) of others left out" : "") · made \(Self.time(madeAt))"
        return ReportPage.html(
            title: "Backtest of \(label)", sub: period,
            content: total.questions == 0 ? "<p>No decisions to test against.</p>" : content(total))
    }

    private func content(_ total: PolicyComparison.Count) -> String {
        """
        \(tiles(total))
        <section class="notes" aria-label="Cautions">
        <h2>Before you read the figures</h2>
        <ul>
        \(backtest.cautions.map { "<li>\(HTMLText.escaped($0))</li>" }.joined(separator: "\n"))
        </ul>
        </section>
        <section>
        <h2>Step-up rate over time</h2>
        \(ReportPage.legend([("before", "then"), ("after", "candidate")]))
        \(ReportPage.scrolling("Step-up rate over time", BacktestPlots.curve(backtest)))
        </section>
        <section>
        <h2>Step-up rate by event</h2>
        \(ReportPage.legend([("before", "then"), ("after", "candidate")]))
        \(ReportPage.scrolling("Step-up rate by event", BacktestPlots.events(backtest.comparison)))
        </section>
        <section>
        <h2>Flips per rule</h2>
        \(rules)
        </section>
        \(statuses)
        \(gone)
        \(roc)
        """
    }

    // MARK: Parts

    private func tiles(_ total: PolicyComparison.Count) -> String {
        let (before, after) = (backtest.stepUpBefore ?? 0, backtest.stepUpAfter ?? 0)
        let (newly, gone) = (backtest.flips.newlyAsked, backtest.flips.noLongerAsked)
        func tile(_ name: String, _ value: String, _ detail: String) -> String {
            "<div class=\"tile\"><div class=\"name\">\(name)</div><div class=\"value\">\(value)</div><div class=\"detail\">\(detail)</div></div>"
        }
        func labels(_ counts: OutcomeCounts) -> String {
            counts.labelled == 0
                ? "none labelled"
                : "labelled: \(Count.text(counts.legitimate)) legitimate, \(Count.text(counts.fraudulent)) fraudulent"
        }
        return """
            <div class="tiles">
            \(tile("Step-up rate", "\(Figures.percent(before)) <span class=\"arrow\">→</span> \(Figures.percent(after))", Figures.points(before, after)))
            \(tile("Newly asked", Count.text(total.newlyAsked), labels(newly)))
            \(tile("No longer asked", Count.text(total.noLongerAsked), labels(gone)))
            \(tile("Asked for other checks", Count.text(total.otherChallenges), "asked then and by the candidate"))
            </div>
            """
    }

    private var rules: String {
        let rules = backtest.flippingRules
        guard !rules.isEmpty else { return "<p>None: every decision would have been the same.</p>" }
        let rows = rules.map { rule in
            let cells = [
                rule.count.newlyAsks, rule.flips.newlyAsked.legitimate,
                rule.flips.newlyAsked.fraudulent, rule.count.noLongerAsks,
                rule.flips.noLongerAsked.legitimate, rule.flips.noLongerAsked.fraudulent,
            ].map { "<td>\($0 == 0 ? "<span class=\"none\">0</span>" : Count.text($0))</td>" }
                .joined()
            let says =
                backtest.sentence(of: rule.id).map {
                    "<div class=\"sub\">\(HTMLText.escaped($0))</div>"
                } ?? ""
            return
                "<tr><th scope=\"row\"><code>\(HTMLText.escaped(rule.id))</code>\(says)</th>\(cells)</tr>"
        }
        let table = """
            <table>
            <thead><tr><th rowspan="2">Rule</th><th colspan="3">newly asks</th><th colspan="3">no longer asks</th></tr>
            <tr><th>people</th><th>legitimate</th><th>fraudulent</th><th>people</th><th>legitimate</th><th>fraudulent</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody></table>
            """
        let plot = BacktestPlots.rules(
            rules.prefix(20).map { ($0.id, $0.count.newlyAsks, $0.count.noLongerAsks) })
        return """
            \(ReportPage.legend([("gone", "no longer asks"), ("newly", "newly asks")]))
            \(ReportPage.scrolling("Flips per rule, drawn", plot))
            \(ReportPage.scrolling("Flips per rule, in figures", table))
            <p class="sub">A decision may be listed with several rules: the columns need not add up to the totals.</p>
            """
    }

    private var statuses: String {
        let sentences = backtest.statusSentences
        guard !sentences.isEmpty else { return "" }
        let items = sentences.map { "<p>\(HTMLText.escaped($0))</p>" }.joined(separator: "\n")
        return """
            <section>
            <h2>The status of the people concerned</h2>
            \(items)
            </section>
            """
    }

    private var gone: String {
        let counts = backtest.flips.noLongerAsked
        guard counts.asked > 0 else { return "" }
        let kinds = [
            ("passed", counts.passed), ("failed", counts.failed), ("abandoned", counts.abandoned),
            ("open", counts.open),
        ]
        let names = kinds.filter { $0.1 > 0 }.map {
            (
                kind: $0.0,
                name: "\($0.0) \(Count.text($0.1)) (\(Figures.percent($0.1, of: counts.asked)))"
            )
        }
        return """
            <section>
            <h2>Outcomes for those who would no longer be asked</h2>
            \(ReportPage.legend(names))
            \(ReportPage.scrolling("Outcomes for those who would no longer be asked", BacktestPlots.outcomes(counts)))
            </section>
            """
    }

    /// The labels' verdict on the earlier policy and on the candidate; empty unless there are
    /// labels of both kinds.
    private var roc: String {
        guard let before = backtest.rocBefore.area, let after = backtest.rocAfter.area else {
            return ""
        }
        let plot = ROCPlot.svg([("before", backtest.rocBefore), ("after", backtest.rocAfter)])
        return """
            <section>
            <h2>Fraudulent against legitimate, by the labels</h2>
            \(ReportPage.legend([("before", "then: area \(Figures.decimal(before))"), ("after", "candidate: area \(Figures.decimal(after))")]))
            \(ReportPage.scrolling("Fraudulent against legitimate", plot))
            <p class="sub">\(ROCPlot.explanation)</p>
            </section>
            """
    }

    // MARK: Text

    private static func time(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            .iso8601.year().month().day().dateSeparator(.dash))
    }

    private static func period(_ first: Int64?, _ last: Int64?) -> String {
        guard let first, let last else { return "no decisions" }
        return time(first) == time(last) ? time(first) : "\(time(first)) to \(time(last))"
    }
}
