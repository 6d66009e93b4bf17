// A plot of the durations of requests: each curve from the median to the slowest in ten thousand.

import Foundation

/// Draws.
package enum LatencyPlot {
    /// A curve with its name. Dashed curves show an earlier state.
    package struct Curve: Codable, Sendable {
        package let name: String
        package let isBefore: Bool
        package let latencies: Latencies

        package init(_ name: String, isBefore: Bool = false, _ latencies: Latencies) {
            (self.name, self.isBefore, self.latencies) = (name, isBefore, latencies)
        }
    }

    private static let percents = [50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99]
    private static let marked: Set<Double> = [50, 90, 99, 99.9, 99.99]
    /// - Parameter curves: at most eight. A curve has the colour of its name without the part in
    ///   brackets.
    package static func svg(_ title: String, _ curves: [Curve]) -> String {
        let (left, top, width, height) = (64.0, 40.0, 560.0, 320.0)
        let values = curves.flatMap { curve in percents.map { curve.latencies.percentile($0) } }
            .filter { $0 > 0 }
        let low = floor(log10(values.min() ?? 0.1))
        let high = max(low + 1, ceil(log10(values.max() ?? 1)))
        // The scale is the number of nines: 50 % at the left, 99.99 % at the right.
        func x(_ percent: Double) -> Double {
            left + width * log(50 / (100 - percent)) / log(50 / 0.01)
        }
        func y(_ value: Double) -> Double {
            top + height * (high - log10(max(value, pow(10, low)))) / (high - low)
        }
        func n(_ value: Double) -> String { String(format: "%.1f", value) }
        var parts = [
            "<text x=\"\(n(left))\" y=\"20\">\(title)</text>",
            "<text x=\"\(n(left + width / 2))\" y=\"\(n(top + height + 40))\" text-anchor=\"middle\">of all requests, in the order of how long they took</text>",
        ]
        for power in Int(low)...Int(high) {
            let value = pow(10, Double(power))
            parts.append(
                "<line class=\"grid\" x1=\"\(n(left))\" x2=\"\(n(left + width))\" y1=\"\(n(y(value)))\" y2=\"\(n(y(value)))\"/>"
            )
            parts.append(
                "<text x=\"\(n(left - 6))\" y=\"\(n(y(value) + 4))\" text-anchor=\"end\">\(power < 0 ? "\(value)" : "\(Int(value))") ms</text>"
            )
        }
        for percent in percents where marked.contains(percent) {
            parts.append(
                "<line class=\"grid\" x1=\"\(n(x(percent)))\" x2=\"\(n(x(percent)))\" y1=\"\(n(top))\" y2=\"\(n(top + height))\"/>"
            )
            parts.append(
                "<text x=\"\(n(x(percent)))\" y=\"\(n(top + height + 18))\" text-anchor=\"middle\">\(percent == 50 || percent == 90 || percent == 99 ? "\(Int(percent))" : "\(percent)") %</text>"
            )
        }
        var names: [String] = []
        for (index, curve) in curves.enumerated() {
            if !names.contains(curve.name) { names.append(curve.name) }
            let colour = (names.firstIndex(of: curve.name) ?? 0) % 4
            let points = percents.map { "\(n(x($0))),\(n(y(curve.latencies.percentile($0))))" }
                .joined(separator: " ")
            let style = "line c\(colour)\(curve.isBefore ? " before" : "")"
            parts.append("<polyline class=\"\(style)\" points=\"\(points)\"/>")
            let row = top + height + 64 + Double(index) * 20
            parts.append("<path class=\"\(style)\" d=\"M\(n(left)) \(n(row - 4))h36\"/>")
            parts.append(
                "<text x=\"\(n(left + 44))\" y=\"\(n(row))\">\(curve.name)\(curve.isBefore ? ", before" : "")</text>"
            )
        }
        let total = top + height + 74 + Double(curves.count) * 20
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(n(left + width + 40)) \(n(total))" role="img">
            <title>\(title)</title>
            <style>
            \(PlotStyle.css)
            </style>
            \(parts.joined(separator: "\n"))
            </svg>

            """
    }
}
