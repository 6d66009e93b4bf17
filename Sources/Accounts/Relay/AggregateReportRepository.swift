// Receivers' reports about mail from relay domains (RFC 9990).

import Database
import RelayCore

package struct AggregateReportRepository: Sendable {
    let database: any Database

    /// The counts that a receiver reported over a period.
    package struct Summary: Sendable, Hashable {
        package let domain: String
        package let reporter: String
        package let reports: Int
        package let passed: Int
        package let failed: Int
    }

    /// Reports accepted in a day, from one author and from all. Receivers of a large relay send
    /// some hundred. Any domain that signs could send any number, and use up the limit of the
    /// others.
    private static let dailyLimit: Int64 = 50
    private static let wholeLimit: Int64 = 5_000

    /// Adds a report.
    /// - Parameter reporter: the domain that is proved to have written it.
    /// - Returns: false if it is known, or if more than the limit came in the last 24 hours.
    package func add(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let since = now - 86_400
            let own: Int64? = try connection.value(
                "SELECT COUNT(*) FROM aggregate_reports WHERE reporter = \(reporter) AND received_at > \(since)"
            )
            let all: Int64? = try connection.value(
                "SELECT COUNT(*) FROM aggregate_reports WHERE received_at > \(since)")
            guard own ?? 0 < Self.dailyLimit, all ?? 0 < Self.wholeLimit else { return false }
            let number: Int64? = try connection.value(
                """
                INSERT INTO aggregate_reports (domain, reporter, identifier, received_at, passed, failed)
                VALUES (\(report.domain), \(reporter), \(report.identifier), \(now), \(report.passed), \(report.failed))
                ON CONFLICT (reporter, identifier, domain) DO NOTHING RETURNING id
                """)
            guard let number else { return false }
            for (source, count) in report.messages {
                try connection.run(
                    """
                    INSERT INTO aggregate_sources (report_number, address, passes_dkim, passes_spf, disposition, messages)
                    VALUES (\(number), \(source.address.description), \(source.passesDKIM), \(source.passesSPF), \(source.disposition),
                        \(count))
                    """)
            }
            return true
        }
    }

    /// The counts received since a time, by domain and receiver, the most messages first.
    package func summaries(since: Int64) throws(StoreFailure) -> [Summary] {
        try database.rows(
            """
            SELECT domain, reporter, COUNT(*) AS reports, SUM(passed) AS passed, SUM(failed) AS failed FROM aggregate_reports
            WHERE received_at >= \(since) GROUP BY domain, reporter ORDER BY SUM(passed) + SUM(failed) DESC, domain, reporter
            """
        ).map { row throws(StoreFailure) in
            try Summary(
                domain: row["domain"], reporter: row["reporter"], reports: row["reports"],
                passed: row["passed"],
                failed: row["failed"])
        }
    }

    /// A host whose mail did not pass, and how many receivers report it.
    package struct Failing: Sendable, Hashable {
        package let address: String
        package let disposition: String
        package let reporters: Int
        package let messages: Int
    }

    /// The hosts whose mail did not pass. Those that most receivers report come first, because a
    /// single receiver may report anything.
    package func failing(since: Int64, limit: Int) throws(StoreFailure) -> [Failing] {
        try database.rows(
            """
            SELECT s.address, s.disposition, COUNT(DISTINCT r.reporter) AS reporters, SUM(s.messages) AS messages
            FROM aggregate_reports r CROSS JOIN aggregate_sources s
            WHERE s.report_number = r.id AND r.received_at >= \(since) AND s.passes_dkim = 0 AND s.passes_spf = 0
            GROUP BY s.address, s.disposition
            ORDER BY COUNT(DISTINCT r.reporter) DESC, SUM(s.messages) DESC, s.address, s.disposition LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in
            try Failing(
                address: row["address"], disposition: row["disposition"],
                reporters: row["reporters"], messages: row["messages"])
        }
    }

    /// Deletes reports received before a time, at most `limit`, each with up to fifty
    /// hosts. Returns the number.
    package func deleteExpired(before time: Int64, limit: Int = 50) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM aggregate_reports WHERE id IN
                    (SELECT id FROM aggregate_reports WHERE received_at < \(time) LIMIT \(limit))
                """)
        }
    }
}
