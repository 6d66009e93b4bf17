// What providers report about the hosts and domains of the relay: figures of a day, from their
// files.

import Database
import Support

/// The kind of a report. The raw values are in databases.
package enum ReportSource: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// SMTP TLS reports (RFC 8460).
    case tls
    /// Google Postmaster Tools.
    case postmaster
    /// Smart Network Data Services of Outlook.
    case networkData = "snds"
}

/// One figure of a report. Contains no address of a user.
package struct ProviderFigure: Sendable, Hashable {
    package let source: ReportSource
    /// The organization that reports, one line.
    package let reporter: String
    /// A relay domain, or the IP address of a host.
    package let subject: String
    /// Since 1970 (UTC).
    package let day: Int64
    /// As in `failures certificate-expired`, one line.
    package let name: String
    /// Identifies the report if several are about one day; otherwise empty.
    package let report: String
    package let value: String

    package init(
        source: ReportSource, reporter: String, subject: String, day: Int64, name: String,
        report: String = "", value: String
    ) {
        (self.source, self.reporter, self.subject) = (source, reporter, subject)
        (self.day, self.name, self.report, self.value) = (day, name, report, value)
    }
}

/// The figures of the last reported day about one subject.
package struct ProviderSummary: Sendable, Hashable {
    package let source: ReportSource
    package let reporter: String
    package let subject: String
    /// Since 1970 (UTC).
    package let day: Int64
    /// By name. Counts of several reports are added.
    package var figures: [String: String]

    /// A number of messages or sessions; nil if there is none.
    package func count(_ name: String) -> Int64? { figures[name].flatMap { Int64($0) } }
}

extension DeliveryRepository {
    /// Stores figures. One that is known is replaced, so that a report counts once.
    /// - Returns: how many are new or differ.
    package func add(_ figures: [ProviderFigure]) throws(StoreFailure) -> Int {
        try database.write(.durable) { connection throws(StoreFailure) in
            var changed = 0
            for figure in figures {
                changed += try connection.run(
                    """
                    INSERT INTO provider_figures (source, reporter, subject, day, name, report, value)
                    VALUES (\(figure.source), \(figure.reporter), \(figure.subject), \(figure.day), \(figure.name),
                        \(figure.report), \(figure.value))
                    ON CONFLICT (source, reporter, subject, day, name, report) DO UPDATE SET value = excluded.value
                        WHERE provider_figures.value <> excluded.value
                    """)
            }
            return changed
        }
    }

    /// The latest figures of each reporter about each subject, of a day (since 1970) or later.
    package func summaries(since day: Int64) throws(StoreFailure) -> [ProviderSummary] {
        var found: [ProviderSummary] = []
        for row in try database.rows(
            """
            SELECT f.source, f.reporter, f.subject, f.day, f.name, f.value FROM provider_figures f
            WHERE f.day >= \(day) AND f.day = (SELECT MAX(l.day) FROM provider_figures l
                WHERE l.source = f.source AND l.reporter = f.reporter AND l.subject = f.subject)
            ORDER BY f.subject, f.source, f.reporter, f.name, f.report
            """)
        {
            let summary = try ProviderSummary(
                source: row["source"], reporter: row["reporter"], subject: row["subject"],
                day: row["day"], figures: [:])
            if found.last?.subject.hasSameOctets(as: summary.subject) != true
                || found.last?.source != summary.source
                || found.last?.reporter.hasSameOctets(as: summary.reporter) != true
            {
                found.append(summary)
            }
            let (name, value): (String, String) = try (row["name"], row["value"])
            let last = found.count - 1
            if let before = found[last].count(name), let more = Int64(value) {
                let (sum, isTooLarge) = before.addingReportingOverflow(more)
                found[last].figures[name] = String(isTooLarge ? .max : sum)
            } else {
                found[last].figures[name] = value
            }
        }
        return found
    }
}
