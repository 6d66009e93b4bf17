// dashboards/: a running service has every metric that they name, and Prometheus accepts every
// expression.

import Foundation
import PostfixHarness
import TestSupport
import Testing

/// Prometheus' own reader of metrics and rules.
enum Promtool {
    static let path = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first(
        where: FileManager.default.isExecutableFile)
}

@Suite(.blocking) struct DashboardTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent(
            "../../../dashboards"
        ).standardizedFileURL

    private struct Board: Decodable {
        struct Panel: Decodable {
            struct Target: Decodable { let expr: String }
            let title: String
            let targets: [Target]
        }
        let panels: [Panel]
    }

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    private static func expressions() throws -> [String] {
        try JSONDecoder().decode(Board.self, from: Data(text("postern.json").utf8)).panels.flatMap {
            $0.targets.map(\.expr)
        }
    }

    @Test func dashboard_namedMetrics_areExported() throws {
        let service = try LiveService()
        let key = try service.key("--operator", "--scope", "metrics:read")
        #expect(try eventually { try service.ask("GET", "/metrics", key: key).status == 200 })
        let metrics = try service.ask("GET", "/metrics", key: key).body
        let known = Set(
            metrics.matches(of: #/(?m)^# TYPE (postern_[a-z_]+) /#).map { String($0.1) })
        let texts = try Self.expressions() + [Self.text("alerts.yml")]
        let named = Set(
            texts.flatMap {
                $0.matches(of: #/postern_[a-z_]+/#).map {
                    $0.output.replacing(#/_bucket$/#, with: "")
                }
            }
            .map { String($0) })
        #expect(named.count >= 15)
        #expect(named.subtracting(known) == [])
        // The dashboard uses every metric except the version, by which its hosts are listed.
        let shown = Set(
            try Self.expressions().joined().matches(of: #/postern_[a-z_]+/#).map {
                String($0.output)
            })
        let left = known.filter { metric in
            !shown.contains(metric) && !shown.contains(metric + "_bucket")
        }
        #expect(left == ["postern_build_info"])
        let types = Dictionary(
            metrics.matches(of: #/(?m)^# TYPE (postern_[a-z_]+) ([a-z]+)$/#).map {
                (String($0.1), String($0.2))
            },
            uniquingKeysWith: { first, _ in first })
        let rows = metrics.matches(of: #/(?m)^# HELP (postern_[a-z_]+) (.+)$/#).map { match in
            "| `\(match.1)` | \(types[String(match.1)] ?? "") | \(match.2) |\n"
        }
        let table = "| metric | type | what |\n|---|---|---|\n" + rows.sorted().joined()
        #expect(
            try DocumentSection("metrics", by: "DashboardTests", in: "OPERATING-MONITORING.md")
                .holds(table))
    }

    @Test(
        .enabled(
            if: Promtool.path != nil, "skipped: promtool is not installed (Debian: prometheus)"))
    func dashboard_alertsAndExpressions_passPromtool() throws {
        let promtool = try #require(Promtool.path)
        let rules = try ManagedProcess.run(
            promtool, ["check", "rules", Self.folder.appendingPathComponent("alerts.yml").path])
        #expect(rules.status == 0, "\(rules.output)")
        let tests = try ManagedProcess.run(
            promtool, ["test", "rules", Self.folder.appendingPathComponent("alerts.test.yml").path])
        #expect(tests.status == 0, "\(tests.output)")
        var lines = ["groups:", "  - name: dashboard", "    rules:"]
        for (number, expression) in try Self.expressions().enumerated() {
            let quoted = expression.replacing("$instance", with: ".*").replacing("'", with: "''")
            lines += ["      - record: dashboard:expression\(number)", "        expr: '\(quoted)'"]
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-\(UUID().uuidString).yml")
        defer { try? FileManager.default.removeItem(at: file) }
        try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
        let dashboard = try ManagedProcess.run(promtool, ["check", "rules", file.path])
        #expect(dashboard.status == 0, "\(dashboard.output)")
    }
}
