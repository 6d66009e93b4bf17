// The plots of a backtest as SVG. Colours and fonts come from the page's style, so that they
// work in light and dark.

import Foundation
import RiskPolicy
import Support

/// Draws the plots.
enum BacktestPlots {
    static let width = 800.0

    static func number(_ value: Double) -> String { String(format: "%.1f", value) }

    static func svg(_ height: Double, _ title: String, _ parts: [String]) -> String {
        "<svg viewBox=\"0 0 \(Int(width)) \(number(height))\" role=\"img\" aria-label=\"\(HTMLText.escaped(title))\">\n"
            + parts.joined(separator: "\n") + "\n</svg>"
    }

    static func text(
        _ x: Double, _ y: Double, _ text: String, anchor: String = "start", isStrong: Bool = false
    ) -> String {
        "<text x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor)\"\(isStrong ? " class=\"strong\"" : "")>\(HTMLText.escaped(text))</text>"
    }

    /// A round number at or above the largest value, and the step between grid
    /// lines. Values are shares of 1.
    private static func scale(_ largest: Double) -> (top: Double, step: Double) {
        for step in [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2] where largest <= step * 5 {
            let top = max(step, (largest / step).rounded(.up) * step)
            return (top, step)
        }
        return (1, 0.25)
    }

    // MARK: Over time

    /// Two curves: the share of requests that required a check, in the past and with the candidate.
    static func curve(_ backtest: Backtest) -> String {
        let slices = backtest.slices.sorted { $0.key < $1.key }
        guard let first = slices.first, let last = slices.last else { return "" }
        let (left, right, top, bottom, height) = (52.0, width - 14, 12.0, 228.0, 256.0)
        let rates = slices.map { slice in
            (
                time: slice.key,
                before: Double(slice.value.askedBefore) / Double(max(1, slice.value.questions)),
                after: Double(slice.value.askedAfter) / Double(max(1, slice.value.questions)),
                questions: slice.value.questions
            )
        }
        let (ceiling, step) = scale(rates.map { max($0.before, $0.after) }.max() ?? 0)
        let span = Double(max(1, last.key - first.key))
        func x(_ time: Int64) -> Double {
            slices.count == 1
                ? (left + right) / 2 : left + Double(time - first.key) / span * (right - left)
        }
        func y(_ rate: Double) -> Double { bottom - min(1, rate / ceiling) * (bottom - top) }
        var parts: [String] = []
        for line in 0...Int((ceiling / step).rounded()) {
            let rate = Double(line) * step
            let kind = line == 0 ? "axis" : "grid"
            parts.append(
                "<line class=\"\(kind)\" x1=\"\(number(left))\" x2=\"\(number(right))\" y1=\"\(number(y(rate)))\" y2=\"\(number(y(rate)))\"/>"
            )
            let label =
                step < 0.01
                ? String(format: "%.1f %%", rate * 100) : "\(Int((rate * 100).rounded())) %"
            parts.append(text(left - 8, y(rate) + 4, label, anchor: "end"))
        }
        let every = max(1, (slices.count + 6) / 7)
        for (position, slice) in slices.enumerated() where position % every == 0 {
            let anchor =
                position == 0 && slices.count > 1
                ? "start" : position == slices.count - 1 ? "end" : "middle"
            parts.append(
                text(
                    x(slice.key), bottom + 20, day(slice.key, backtest.sliceSeconds), anchor: anchor
                ))
        }
        for (kind, rate) in [
            ("before", \(time: Int64, before: Double, after: Double, questions: Int).before),
            ("after", \.after),
        ] {
            let points = rates.map { "\(number(x($0.time))),\(number(y($0[keyPath: rate])))" }
                .joined(separator: " ")
            parts.append("<polyline class=\"line \(kind)\" points=\"\(points)\"/>")
            if rates.count <= 62 {
                for point in rates {
                    let name = kind == "before" ? "then" : "candidate"
                    let tip =
                        "\(day(point.time, backtest.sliceSeconds)), \(name): \(Figures.percent(point[keyPath: rate])) of \(Count.text(point.questions))"
                    parts.append(
                        "<circle class=\"dot \(kind)\" cx=\"\(number(x(point.time)))\" cy=\"\(number(y(point[keyPath: rate])))\" r=\"3\"><title>\(HTMLText.escaped(tip))</title></circle>"
                    )
                }
            }
        }
        return svg(height, "Step-up rate over time, then and by the candidate", parts)
    }

    private static func day(_ time: Int64, _ slice: Int64) -> String {
        let date = Date(timeIntervalSince1970: Double(time))
        let day = date.formatted(.iso8601.month().day().dateSeparator(.dash))
        return slice < 86_400
            ? day + " " + date.formatted(.iso8601.time(includingFractionalSeconds: false)).prefix(5)
            : day
    }

    // MARK: Bars

    /// A pair of bars for each event.
    static func events(_ comparison: PolicyComparison) -> String {
        let events = PolicyEvent.allCases.compactMap { event in
            comparison.events[event].map { (event, $0) }
        }
        let (left, right) = (140.0, width - 150)
        let largest =
            events.map {
                Double(max($0.1.askedBefore, $0.1.askedAfter)) / Double(max(1, $0.1.questions))
            }.max() ?? 0
        let ceiling = max(scale(largest).top, 0.002)
        var parts: [String] = []
        var y = 6.0
        for (event, count) in events {
            parts.append(text(left - 12, y + 20, event.rawValue, anchor: "end", isStrong: true))
            for (kind, asked) in [("before", count.askedBefore), ("after", count.askedAfter)] {
                let rate = Double(asked) / Double(max(1, count.questions))
                let length = max(1.5, rate / ceiling * (right - left))
                parts.append(
                    "<rect class=\"bar \(kind)\" x=\"\(number(left))\" y=\"\(number(y))\" width=\"\(number(length))\" height=\"13\" rx=\"2.5\"><title>\(Count.text(asked)) of \(Count.text(count.questions))</title></rect>"
                )
                parts.append(text(left + length + 8, y + 11, Figures.percent(rate), isStrong: true))
                y += 16
            }
            y += 12
        }
        return svg(y, "Step-up rate by event, then and by the candidate", parts)
    }

    /// Bars to both sides: on the left the people that a rule no longer checks, on the right those
    /// that it newly checks.
    static func rules(_ rules: [(id: String, newly: Int, gone: Int)]) -> String {
        let (left, right) = (220.0, width)
        let (mostGone, mostNewly) = (
            rules.map { $0.gone }.max() ?? 0, rules.map { $0.newly }.max() ?? 0
        )
        // One scale for both sides, so that lengths can be compared; room for a
        // number at each end that has one.
        let (leftMargin, rightMargin) = (mostGone > 0 ? 60.0 : 0, mostNewly > 0 ? 60.0 : 0)
        let unit = (right - left - leftMargin - rightMargin) / Double(max(1, mostGone + mostNewly))
        let middle = left + leftMargin + Double(mostGone) * unit
        var parts: [String] = []
        var y = 4.0
        for rule in rules {
            let name = rule.id.count > 30 ? String(rule.id.prefix(29)) + "…" : rule.id
            parts.append(text(0, y + 12, name, isStrong: true))
            for (kind, count, direction) in [("gone", rule.gone, -1.0), ("newly", rule.newly, 1.0)]
            where count > 0 {
                let length = max(1.5, Double(count) * unit)
                let start = direction < 0 ? middle - length : middle
                parts.append(
                    "<rect class=\"bar \(kind)\" x=\"\(number(start))\" y=\"\(number(y))\" width=\"\(number(length))\" height=\"16\" rx=\"2.5\"/>"
                )
                parts.append(
                    text(
                        middle + direction * (length + 7), y + 12, Count.text(count),
                        anchor: direction < 0 ? "end" : "start",
                        isStrong: true))
            }
            y += 25
        }
        parts.append(
            "<line class=\"axis\" x1=\"\(number(middle))\" x2=\"\(number(middle))\" y1=\"0\" y2=\"\(number(y - 4))\"/>"
        )
        return svg(y, "Flips per rule", parts)
    }

    /// One bar, divided into parts.
    static func outcomes(_ counts: OutcomeCounts) -> String {
        let total = Double(max(1, counts.asked))
        var parts: [String] = []
        var x = 0.0
        let kinds = [
            ("passed", counts.passed), ("failed", counts.failed), ("abandoned", counts.abandoned),
            ("open", counts.open),
        ]
        for (kind, count) in kinds where count > 0 {
            let length = Double(count) / total * width
            parts.append(
                "<rect class=\"bar \(kind)\" x=\"\(number(x))\" y=\"0\" width=\"\(number(max(1, length - 1.5)))\" height=\"26\" rx=\"2.5\"><title>\(kind): \(Count.text(count))</title></rect>"
            )
            x += length
        }
        return svg(28, "Outcomes of the checks of those who would no longer be asked", parts)
    }
}
