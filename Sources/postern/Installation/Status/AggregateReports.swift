// postern status --dmarc: receivers' reports about mail from the relay domains.

import Accounts

enum AggregateReports {
    private static let days: Int64 = 30
    /// The number of hosts that are shown.
    private static let limit = 20

    static func print(_ installation: InstallationOptions, _ output: OutputOptions) throws {
        let since = PosternClock.now() - days * 86_400
        let (summaries, failing) = try installation.withStore { store in
            (
                try store.aggregateReports.summaries(since: since),
                try store.aggregateReports.failing(since: since, limit: limit)
            )
        }
        if output.json {
            return try printJSON(
                [
                    "days": days,
                    "receivers": summaries.map {
                        [
                            "domain": $0.domain, "reporter": $0.reporter, "reports": $0.reports,
                            "passed": $0.passed,
                            "failed": $0.failed,
                        ] as Members
                    },
                    "failing": failing.map {
                        [
                            "address": $0.address, "disposition": $0.disposition,
                            "reporters": $0.reporters,
                            "messages": $0.messages,
                        ] as Members
                    },
                ] as Members)
        }
        guard !summaries.isEmpty else {
            return Swift.print(
                "No report came in the last \(days) days. rua of the DMARC record has to name an address at a relay domain that reaches you: see postern doctor."
            )
        }
        Table(
            header: ["DOMAIN", "RECEIVER", "REPORTS", "PASSED", "FAILED"],
            rows: summaries.map {
                [$0.domain, $0.reporter, "\($0.reports)", "\($0.passed)", "\($0.failed)"]
            }
        ).printInReport()
        guard !failing.isEmpty else { return Swift.print("\nEverything passed.") }
        Swift.print(
            "\nHosts whose mail did not pass: your own, if they do not sign it; or forgers, whose mail p=reject stops"
        )
        Table(
            header: ["HOST", "RECEIVERS", "MESSAGES", "DISPOSITION"],
            rows: failing.map { [$0.address, "\($0.reporters)", "\($0.messages)", $0.disposition] }
        ).printInReport()
    }
}
