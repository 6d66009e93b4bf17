// Figures over time, or over the size of the store, in panels one above the other.

import Foundation

/// Draws.
package enum TimePlot {
    /// A line of a panel: minutes, or numbers of places, and values.
    package struct Line: Sendable {
        package let name: String
        package let points: [(minute: Double, value: Double)]

        package init(_ name: String, _ points: [(minute: Double, value: Double)]) {
            (self.name, self.points) = (name, points)
        }
    }

    /// Lines with one axis of values.
    package struct Panel: Sendable {
        package let title: String
        package let lines: [Line]

        package init(_ title: String, _ lines: [Line]) { (self.title, self.lines) = (title, lines) }
    }

    /// - Parameter places: names of the places 0, 1, … on the axis; if empty, it shows minutes.
    package static func svg(_ title: String, _ panels: [Panel], places: [String] = []) -> String {
        let (left, width, height, gap) = (64.0, 640.0, 110.0, 58.0)
        let last =
            places.isEmpty
            ? max(1, panels.flatMap(\.lines).flatMap(\.points).map(\.minute).max() ?? 1)
            : Double(max(1, places.count - 1))
        func n(_ value: Double) -> String { String(format: "%.1f", value) }
        var parts = ["<text x=\"\(n(left))\" y=\"20\">\(title)</text>"]
        for (index, panel) in panels.enumerated() {
            let top = 56 + Double(index) * (height + gap)
            let most = max(1e-9, panel.lines.flatMap(\.points).map(\.value).max() ?? 1) * 1.1
            func x(_ minute: Double) -> Double { left + width * minute / last }
            func y(_ value: Double) -> Double { top + height * (1 - value / most) }
            parts.append("<text x=\"\(n(left))\" y=\"\(n(top - 8))\">\(panel.title)</text>")
            for step in 0...2 {
                let value = most * Double(step) / 2
                parts.append(
                    "<line class=\"grid\" x1=\"\(n(left))\" x2=\"\(n(left + width))\" y1=\"\(n(y(value)))\" y2=\"\(n(y(value)))\"/>"
                )
                parts.append(
                    "<text x=\"\(n(left - 6))\" y=\"\(n(y(value) + 4))\" text-anchor=\"end\">\(String(format: value < 1000 ? "%.3g" : "%.0f", value))</text>"
                )
            }
            for (number, line) in panel.lines.enumerated() {
                let points = line.points.map { "\(n(x($0.minute))),\(n(y($0.value)))" }.joined(
                    separator: " ")
                parts.append("<polyline class=\"line c\(number % 4)\" points=\"\(points)\"/>")
                let place = left + Double(number) * 150
                parts.append(
                    "<path class=\"line c\(number % 4)\" d=\"M\(n(place)) \(n(top + height + 14))h24\"/>"
                )
                parts.append(
                    "<text x=\"\(n(place + 30))\" y=\"\(n(top + height + 18))\">\(line.name)</text>"
                )
            }
        }
        let total = 76 + Double(panels.count) * (height + gap)
        for (place, name) in places.isEmpty
            ? [(last, "\(n(last)) minutes")] : places.enumerated().map({ (Double($0.0), $0.1) })
        {
            let anchor = place == 0 ? "start" : place == last ? "end" : "middle"
            parts.append(
                "<text x=\"\(n(left + width * place / last))\" y=\"\(n(total - 30))\" text-anchor=\"\(anchor)\">\(name)</text>"
            )
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(n(left + width + 24)) \(n(total))" role="img">
            <title>\(title)</title>
            <style>
            \(PlotStyle.css)
            </style>
            \(parts.joined(separator: "\n"))
            </svg>

            """
    }
}

/// Colours of plots, for a light and a dark page.
enum PlotStyle {
    static let css = """
        text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
        .grid { stroke: #cbd2d9; } .line { fill: none; stroke-width: 2; } .before { stroke-dasharray: 5 4; }
        .c0 { stroke: #2f8f6f; } .c1 { stroke: #3b6fb6; } .c2 { stroke: #b5632b; } .c3 { stroke: #8a4fa3; }
        @media (prefers-color-scheme: dark) {
          text { fill: #e4e7eb; } .grid { stroke: #3e4c59; }
          .c0 { stroke: #4fb892; } .c1 { stroke: #7aa7e0; } .c2 { stroke: #e09a63; } .c3 { stroke: #c08fd6; }
        }
        """
}
