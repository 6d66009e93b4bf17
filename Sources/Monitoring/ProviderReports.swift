// Providers' reports in `postern status`.

import Accounts
import Support

/// The figures of the last reported day of one reporter about one subject.
package struct ProviderReports: Encodable, Sendable, Hashable {
    package let source: String
    package let reporter: String
    /// A relay domain, or the IP address of a host.
    package let subject: String
    /// As in `2026-11-28` (UTC).
    package let day: String
    package let figures: [String: String]

    init(_ summary: ProviderSummary) {
        source = summary.source.rawValue
        (reporter, subject, figures) = (summary.reporter, summary.subject, summary.figures)
        day = UTCTime.date(summary.day)
    }

    /// The figures in one line.
    package var line: String {
        "\(subject)  \(reporter) \(day): "
            + figures.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            .joined(separator: ", ")
    }

    /// Gmail's limit for the share of messages that users report as spam.
    private static let spamRate = 0.003
    /// The share of sessions without the encryption that was expected.
    private static let failures = 0.01

    /// What needs the operator; nil for nothing.
    static func trouble(_ summary: ProviderSummary) -> Trouble? {
        let who = "\(summary.reporter) reports of \(summary.subject)"
        switch summary.source {
        case .tls:
            // Anyone may send a report: its numbers may be too large for a sum.
            let failed = summary.count("failures") ?? 0
            let (sum, isTooLarge) = (summary.count("sessions") ?? 0)
                .addingReportingOverflow(failed)
            let all = isTooLarge ? .max : sum
            guard failed > 0, Double(failed) >= failures * Double(all) else { return nil }
            return Trouble(
                "\(who) that \(failed) of \(all) sessions failed to encrypt as its policy asks",
                "see the kinds of failures above, and check the certificate, MTA-STS and DANE with \(.diagnose)"
            )
        case .postmaster:
            // The names of metrics are those of the query.
            let rates = summary.figures.filter {
                $0.key.asciiLowercased.utf8.starts(with: "spam_rate".utf8)
            }.compactMap { Double($0.value) }
            guard let rate = rates.max(), rate >= spamRate else { return nil }
            return Trouble(
                "\(who) a rate of spam complaints of \(rate): Gmail requires less than \(spamRate)",
                "find the team that users complain about: postern delivery show")
        case .networkData:
            let isRed = summary.figures["filter result"]?.hasSameOctets(as: "RED") == true
            let traps = summary.count("trap hits") ?? 0
            guard isRed || traps > 0 else { return nil }
            return Trouble(
                "\(who) "
                    + (isRed
                        ? "that most of its mail counts as spam"
                        : Count.text(Int(traps), "message")
                            + " to traps"),
                "find the team that sends to people who did not ask for it: postern delivery show")
        }
    }
}
