// A backtest as one HTML page: no script, no request to anywhere, light and dark.

import Foundation
import RiskPolicy

/// Writes the page.
package struct BacktestPage {
    private let backtest: Backtest
    private let label: String
    private let leftOut: Int
    private let madeAt: Int64

    /// - Parameters:
    ///   - label: the candidate, as in `risk-default 2026.2 (mine)`.
    ///   - leftOut: decisions that did not count, for the notes.
    package init(_ backtest: Backtest, label: String, leftOut: Int, madeAt: Int64) {
        self.backtest = backtest
        self.label = label
        self.leftOut = leftOut
        self.madeAt = madeAt
    }

    package var html: String {
        let total = backtest.comparison.total
        let title = Self.escaped("Backtest of \(label)")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(title)</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <main>
            <header>
            <h1>\(title)</h1>
            <p class="sub">\(Self.period(backtest.first, backtest.last)) · \(Figures.count(total.questions)) decisions\(leftOut > 0 ? " · \(Figures.count(leftOut)) of others left out" : "") · made \(Self.time(madeAt))</p>
            </header>
            \(total.questions == 0 ? "<p>No decisions to test against.</p>" : content(total))
            </main>
            </body>
            </html>

            """
    }

    private func content(_ total: PolicyComparison.Count) -> String {
        """
        \(tiles(total))
        <section class="notes" aria-label="Cautions">
        <h2>Before you read the figures</h2>
        <ul>
        \(backtest.cautions.map { "<li>\(Self.escaped($0))</li>" }.joined(separator: "\n"))
        </ul>
        </section>
        <section>
        <h2>Step-up rate over time</h2>
        \(legend([("before", "then"), ("after", "candidate")]))
        \(scrolling("Step-up rate over time", BacktestPlots.curve(backtest)))
        </section>
        <section>
        <h2>Step-up rate by event</h2>
        \(legend([("before", "then"), ("after", "candidate")]))
        \(scrolling("Step-up rate by event", BacktestPlots.events(backtest.comparison)))
        </section>
        <section>
        <h2>Flips per rule</h2>
        \(rules)
        </section>
        \(gone)
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
                : "labelled: \(Figures.count(counts.legitimate)) legitimate, \(Figures.count(counts.fraudulent)) fraudulent"
        }
        return """
            <div class="tiles">
            \(tile("Step-up rate", "\(Figures.percent(before)) <span class=\"arrow\">→</span> \(Figures.percent(after))", Figures.points(before, after)))
            \(tile("Newly asked", Figures.count(total.newlyAsked), labels(newly)))
            \(tile("No longer asked", Figures.count(total.noLongerAsked), labels(gone)))
            \(tile("Asked for other checks", Figures.count(total.otherChallenges), "asked then and by the candidate"))
            </div>
            """
    }

    private func legend(_ items: [(kind: String, name: String)]) -> String {
        "<p class=\"legend\">"
            + items.map { "<span class=\"key\"><span class=\"swatch \($0.kind)\"></span>\(Self.escaped($0.name))</span>" }
            .joined()
            + "</p>"
    }

    private var rules: String {
        let rules = backtest.flippingRules
        guard !rules.isEmpty else { return "<p>None: every decision would have been the same.</p>" }
        let rows = rules.map { rule in
            let cells = [
                rule.count.newlyAsks, rule.flips.newlyAsked.legitimate, rule.flips.newlyAsked.fraudulent, rule.count.noLongerAsks,
                rule.flips.noLongerAsked.legitimate, rule.flips.noLongerAsked.fraudulent,
            ].map { "<td>\($0 == 0 ? "<span class=\"none\">0</span>" : Figures.count($0))</td>" }.joined()
            return "<tr><th scope=\"row\"><code>\(Self.escaped(rule.id))</code></th>\(cells)</tr>"
        }
        let table = """
            <table>
            <thead><tr><th rowspan="2">Rule</th><th colspan="3">newly asks</th><th colspan="3">no longer asks</th></tr>
            <tr><th>people</th><th>legitimate</th><th>fraudulent</th><th>people</th><th>legitimate</th><th>fraudulent</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody></table>
            """
        let plot = BacktestPlots.rules(rules.prefix(20).map { ($0.id, $0.count.newlyAsks, $0.count.noLongerAsks) })
        return """
            \(legend([("gone", "no longer asks"), ("newly", "newly asks")]))
            \(scrolling("Flips per rule, drawn", plot))
            \(scrolling("Flips per rule, in figures", table))
            <p class="sub">A decision may be listed with several rules: the columns need not add up to the totals.</p>
            """
    }

    private var gone: String {
        let counts = backtest.flips.noLongerAsked
        guard counts.asked > 0 else { return "" }
        let kinds = [
            ("passed", counts.passed), ("failed", counts.failed), ("abandoned", counts.abandoned), ("open", counts.open),
        ]
        let names = kinds.filter { $0.1 > 0 }.map {
            (kind: $0.0, name: "\($0.0) \(Figures.count($0.1)) (\(Figures.percent($0.1, of: counts.asked)))")
        }
        return """
            <section>
            <h2>Outcomes for those who would no longer be asked</h2>
            \(legend(names))
            \(scrolling("Outcomes for those who would no longer be asked", BacktestPlots.outcomes(counts)))
            </section>
            """
    }

    /// On a phone wide things keep a width at which they can be read, and scroll; by keys too.
    private func scrolling(_ name: String, _ content: String) -> String {
        "<div class=\"scroll\" role=\"region\" aria-label=\"\(Self.escaped(name))\" tabindex=\"0\">\n\(content)\n</div>"
    }

    // MARK: Text

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
    }

    private static func time(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601.year().month().day().dateSeparator(.dash))
    }

    private static func period(_ first: Int64?, _ last: Int64?) -> String {
        guard let first, let last else { return "no decisions" }
        return time(first) == time(last) ? time(first) : "\(time(first)) to \(time(last))"
    }

    /// Colours that are distinguished without telling red from green, on both grounds.
    private static let style = """
        :root { --ground: #fbfbfa; --card: #ffffff; --text: #1c2024; --soft: #5c656e; --line: #e2e5e8; --before: #9aa5b1; --after: #2563c9;
          --newly: #d9730d; --gone: #0e8074; --failed: #b4495e; --open: #c4cad0; --note: #fff6e5; --noteline: #e8c87a; }
        @media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --text: #e8eaed; --soft: #9aa5b1; --line: #30363c;
          --before: #76818d; --after: #6ea4ff; --newly: #f0944d; --gone: #3cb8aa; --failed: #e07a90; --open: #4a525a; --note: #2a2517;
          --noteline: #6b5a2c; } }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--ground); color: var(--text);
          font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
        main { max-width: 860px; margin: 0 auto; padding: 32px 20px 64px; }
        h1 { font-size: 24px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
        h2 { font-size: 16px; margin: 0 0 8px; }
        .sub { color: var(--soft); font-size: 13px; margin: 6px 0 0; }
        section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin-top: 18px; }
        .tiles { display: grid; grid-template-columns: 1.45fr 1fr 1fr 1fr; gap: 12px; margin-top: 22px; }
        @media (max-width: 720px) { .tiles { grid-template-columns: 1fr 1fr; } .tile:first-child { grid-column: 1 / -1; } }
        .tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
        .tile .name { color: var(--soft); font-size: 13px; }
        .tile .value { font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; margin: 2px 0; white-space: nowrap; }
        .tile .detail { color: var(--soft); font-size: 12.5px; }
        .arrow { color: var(--soft); font-weight: 400; }
        .notes { background: var(--note); border-color: var(--noteline); }
        .notes ul { margin: 0; padding-left: 18px; } .notes li { margin: 4px 0; font-size: 13.5px; }
        .legend { margin: 0 0 6px; font-size: 13px; color: var(--soft); } .key { margin-right: 16px; white-space: nowrap; }
        .swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
        .swatch.before { background: var(--before); } .swatch.after { background: var(--after); } .swatch.newly { background: var(--newly); }
        .swatch.gone, .swatch.passed { background: var(--gone); } .swatch.failed { background: var(--failed); }
        .swatch.abandoned { background: var(--newly); } .swatch.open { background: var(--open); }
        svg { display: block; width: 100%; height: auto; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
        svg text { fill: var(--soft); } svg text.strong { fill: var(--text); font-variant-numeric: tabular-nums; }
        svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
        svg .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
        svg .line.before { stroke: var(--before); } svg .line.after { stroke: var(--after); }
        svg .dot.before { fill: var(--before); } svg .dot.after { fill: var(--after); }
        svg .bar.before { fill: var(--before); } svg .bar.after { fill: var(--after); } svg .bar.newly { fill: var(--newly); }
        svg .bar.gone, svg .bar.passed { fill: var(--gone); } svg .bar.failed { fill: var(--failed); }
        svg .bar.abandoned { fill: var(--newly); } svg .bar.open { fill: var(--open); }
        .scroll { overflow-x: auto; margin-top: 14px; } .scroll:focus-visible { outline: 2px solid var(--after); outline-offset: 4px; }
        @media (max-width: 760px) { .scroll svg { min-width: 720px; } .scroll table { min-width: 560px; } }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
        thead th { color: var(--soft); border-bottom-color: var(--line); } th[scope=row], thead tr:first-child th:first-child { text-align: left; }
        thead th[colspan] { text-align: center; } tbody tr:last-child > * { border-bottom: 0; } .none { color: var(--soft); }
        code { font: 12.5px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
        """
}
