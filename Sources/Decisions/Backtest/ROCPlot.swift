// The curve of a policy as SVG: the share of fraud that it checks, against the share of other
// people that it checks.

/// Draws the plot.
package enum ROCPlot {
    /// The text under the plot.
    package static let explanation = """
        Each point is a threshold: those who are asked for the strongest check and by most rules come first, then the weaker ones; the last \
        point before the corner is everyone who is asked at all. Up: the share of fraud; to the right: the share of the others.
        """

    /// - Parameter curves: each with its class in the page's style, `before` or `after`.
    package static func svg(_ curves: [(kind: String, roc: ROC)]) -> String {
        let (left, top, side) = (64.0, 30.0, 340.0)
        func x(_ share: Double) -> Double { left + share * side }
        func y(_ share: Double) -> Double { top + (1 - share) * side }
        func line(_ kind: String, _ from: (Double, Double), _ to: (Double, Double)) -> String {
            let n = BacktestPlots.number
            return
                "<line class=\"\(kind)\" x1=\"\(n(x(from.0)))\" y1=\"\(n(y(from.1)))\" x2=\"\(n(x(to.0)))\" y2=\"\(n(y(to.1)))\"/>"
        }
        var parts: [String] = []
        for step in 0...4 {
            let share = Double(step) / 4
            let kind = step == 0 ? "axis" : "grid"
            parts += [line(kind, (0, share), (1, share)), line(kind, (share, 0), (share, 1))]
            parts.append(
                BacktestPlots.text(left - 8, y(share) + 4, "\(step * 25) %", anchor: "end"))
            parts.append(
                BacktestPlots.text(x(share), top + side + 18, "\(step * 25) %", anchor: "middle"))
        }
        parts.append(line("grid", (0, 0), (1, 1)))
        for (kind, roc) in curves {
            let points = roc.points
            let path = points.map {
                "\(BacktestPlots.number(x($0.rest))),\(BacktestPlots.number(y($0.fraud)))"
            }
            parts.append(
                "<polyline class=\"line \(kind)\" points=\"\(path.joined(separator: " "))\"/>")
            for point in points.dropFirst().dropLast() {
                let tip =
                    "\(Figures.percent(point.fraud)) of fraud, \(Figures.percent(point.rest)) of others"
                parts.append(
                    "<circle class=\"dot \(kind)\" cx=\"\(BacktestPlots.number(x(point.rest)))\" cy=\"\(BacktestPlots.number(y(point.fraud)))\" r=\"3.5\"><title>\(tip)</title></circle>"
                )
            }
        }
        parts.append(
            BacktestPlots.text(
                left + side / 2, top + side + 38, "others who are asked", anchor: "middle"))
        parts.append(BacktestPlots.text(left, 14, "fraud that is asked"))
        return BacktestPlots.svg(
            top + side + 46, "Fraud that is asked against others who are asked", parts)
    }
}
