// A run as one HTML page, in the frame of a backtest page.

import Decisions
import Support

/// Writes the page.
package enum FraudPage {
    /// - Parameters:
    ///   - label: the policy, for example `risk-default 2026.3`.
    ///   - sub: the description of the population, plain text.
    package static func html(_ report: FraudReport, label: String, sub: String) -> String {
        var curve = ""
        if let area = report.signUps.area {
            curve = """
                <section>
                <h2>Sign-ups: attacks against people</h2>
                \(ReportPage.legend([("after", "area \(Figures.decimal(area))")]))
                \(ReportPage.scrolling("Sign-ups: attacks against people", ROCPlot.svg([("after", report.signUps)])))
                <p class="sub">\(ROCPlot.explanation)</p>
                </section>
                """
        }
        return ReportPage.html(
            title: "Policy bench of \(label)", sub: sub,
            content: """
                <section>
                <h2>Attacks that are asked</h2>
                \(table("Attacks that are asked", FraudReport.attackHeader, report.attackRows))
                <p class="sub">Cents: what an account costs the attacker, checks included, by assumed prices.</p>
                </section>
                <section>
                <h2>People who are asked</h2>
                \(table("People who are asked", FraudReport.peopleHeader, report.peopleRows))
                </section>
                \(curve)
                """)
    }

    private static func table(_ name: String, _ header: [String], _ rows: [[String]]) -> String {
        let head = header.map { "<th scope=\"col\">\(HTMLText.escaped($0))</th>" }.joined()
        let body = rows.map { row in
            "<tr><th scope=\"row\">\(HTMLText.escaped(row[0]))</th>"
                + row.dropFirst().map { "<td>\(HTMLText.escaped($0))</td>" }.joined() + "</tr>"
        }
        return ReportPage.scrolling(
            name,
            "<table>\n<thead><tr>\(head)</tr></thead>\n<tbody>\n\(body.joined(separator: "\n"))\n</tbody></table>"
        )
    }
}
