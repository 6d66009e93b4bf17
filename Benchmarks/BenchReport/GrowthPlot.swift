// A plot of figures by the size of the store, from the results of benchmarks in .build/bench.json.

import Foundation

/// Draws.
package enum GrowthPlot {
    /// Accounts, then decisions in the log, for each place on the axis, with its name.
    private static let places: [(size: String, name: String)] = [
        ("10000", "10 thousand accounts"), ("1000000", "1 million"), ("10000000", "10 million"),
        ("10000000.100000000", "10 million, log: 100 million"),
    ]

    /// The content: a panel's title, and names of results up to the engine and after the size.
    private static let panels:
        [(title: String, kinds: [(name: String, suffix: String, line: String)])] = [
            (
                "decisions at full load, ms",
                [("decisions", ".full.p50", "p50"), ("decisions", ".full.p99", "p99")]
            ),
            (
                "decisions at 70 %, ms",
                [("decisions", ".70.p50", "p50"), ("decisions", ".70.p99", "p99")]
            ),
            ("decisions a second", [("decisions", ".rate", "")]),
            ("look-up of an address, µs of processor", [("lookup", ".cpu", "")]),
            (
                "forwards at 70 %, from end of data to answer, ms",
                [("tail.forward", ".p50", "p50"), ("tail.forward", ".p99", "p99")]
            ),
            ("replies, the same", [("tail.reply", ".p50", "p50"), ("tail.reply", ".p99", "p99")]),
            (
                "a whole sign-in at 100 a second, ms",
                [("signin.100", ".p50", "p50"), ("signin.100", ".p99", "p99")]
            ),
            ("the page /me, ms", [("portal.300", ".p50", "p50"), ("portal.300", ".p99", "p99")]),
        ]

    /// All figures that were measured with at least two sizes.
    package static func svg(_ results: [BenchResult]) -> String {
        let values = Dictionary(results.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        // Only measured sizes have a place.
        let places = places.filter { place in
            panels.flatMap(\.kinds).contains { kind in
                ["sqlite", "postgres"].contains {
                    values["\(kind.name).\($0).\(place.size)\(kind.suffix)"] != nil
                }
            }
        }
        let drawn = panels.compactMap { title, kinds -> TimePlot.Panel? in
            let lines = ["sqlite", "postgres"].flatMap { engine in
                kinds.compactMap { name, suffix, line -> TimePlot.Line? in
                    let points = places.enumerated().compactMap { place, entry in
                        values["\(name).\(engine).\(entry.size)\(suffix)"].map {
                            (minute: Double(place), value: $0)
                        }
                    }
                    return points.count > 1
                        ? TimePlot.Line(line.isEmpty ? engine : "\(engine), \(line)", points) : nil
                }
            }
            return lines.isEmpty ? nil : TimePlot.Panel(title, lines)
        }
        return TimePlot.svg("As the store grows", drawn, places: places.map(\.name))
    }
}
