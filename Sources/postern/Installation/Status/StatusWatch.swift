// postern status --watch: status, live in the terminal.

import Foundation
import Monitoring

struct StatusWatch {
    /// The allowed seconds between two updates.
    static let intervals = 1...60
    static let usualInterval = 2

    /// Seconds between two updates.
    let interval: Int

    /// Returns when the user quits. Throws `CommandError` if standard input or
    /// output is not a terminal.
    func run(_ options: InstallationOptions) throws {
        guard isTerminal, isatty(STDIN_FILENO) == 1 else {
            throw CommandError.usage("--watch needs a terminal: leave it out")
        }
        try options.withInstallation { installation in
            let terminal = try RawTerminal()
            defer { terminal.restore() }
            var previous: StatusReport?
            var at = ContinuousClock.now
            while true {
                let report = try StatusReport(installation, now: PosternClock.now())
                let now = ContinuousClock.now
                let (seconds, attoseconds) = (now - at).components
                let elapsed = Double(seconds) + Double(attoseconds) / 1e18
                terminal.draw(screen(report, previous, max(0.1, elapsed)))
                (previous, at) = (report, now)
                switch terminal.wait(seconds: interval) {
                case .quit: return
                case .resized: terminal.draw(screen(report, nil, 1))
                case .nothing: break
                }
            }
        }
    }

    /// Rates, then the screen of `postern status`.
    private func screen(
        _ report: StatusReport, _ previous: StatusReport?, _ elapsed: Double
    ) -> [String] {
        func rate(_ names: [String]) -> String {
            guard let previous else { return "-" }
            let count = names.reduce(0) { $0 + report.total($1) - previous.total($1) }
            return "\((Double(max(0, count)) / elapsed * 10).rounded() / 10)/s"
        }
        let directions = ["forward", "reply", "report", "answer", "operator"]
        func mail(_ outcome: String) -> String {
            rate(directions.map { "messages \($0) \(outcome)" })
        }
        let clock = timestamp(PosternClock.now())
        let now =
            "relayed \(mail("relayed"))  deferred \(mail("deferred"))  refused \(mail("refused"))  "
            + "decisions \(rate(["decisions allow", "decisions require_verification"]))  http \(rate(["http 2xx", "http 4xx", "http 5xx"]))"
        // Warnings come first: small terminals show only the upper part.
        let care = report.warnings.map { "  ! \($0.text)" }
        return ["\(clock)  every \(interval) s, q quits", emphasised("Now") + "  " + now] + care + [
            ""
        ]
            + StatusScreen.lines(report, withWarnings: false)
    }
}
