// Providers' reports in `postern status`.

import Accounts
import Database
import PosternConfiguration
import RelayCore
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
    /// The teams whose tags of Feedback-ID are in names of figures, by these names.
    package let teams: [String: String]

    /// - Parameter tags: teams by their tags.
    init(_ summary: ProviderSummary, tags: [String: String] = [:]) {
        teams = summary.figures.keys.reduce(into: [:]) { teams, name in
            // A tag is a word of the name: `spam_rate` of one loop is asked for under a name.
            teams[name] = FeedbackTags.words(of: name).lazy.compactMap { tags[$0] }.first
        }
        source = summary.source.rawValue
        (reporter, subject, figures) = (summary.reporter, summary.subject, summary.figures)
        day = UTCTime.date(summary.day)
    }

    /// The figures in one line.
    package var line: String {
        "\(subject)  \(reporter) \(day): "
            + figures.sorted { $0.key < $1.key }.map { name, value in
                "\(name)\(teams[name].map { " (team \($0))" } ?? "") \(value)"
            }.joined(separator: ", ")
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

/// The tags of teams in Feedback-ID, as providers show them.
enum FeedbackTags {
    /// The runs of lower-case letters and digits of a text, which are ASCII.
    static func words(of text: String) -> [String] {
        text.utf8.split {
            !((0x61...0x7A).contains($0) || (0x30...0x39).contains($0))
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Teams by their tags at every provider, with the token key in use; empty if the keys cannot
    /// be used.
    static func teams(of installation: Installation) throws(StoreFailure) -> [String: String] {
        guard let keys = TokenKeys(installation.keys.token) else { return [:] }
        let fields = FeedbackFields(keys: keys)
        let places = installation.configuration.providers.sharedDomains.map(Optional.some) + [nil]
        let teams = try installation.store.teams.all().map(\.id)
        return Dictionary(
            teams.flatMap { team in
                places.map { (fields.tag(of: .team(team, provider: $0)), team) }
            }, uniquingKeysWith: { first, _ in first })
    }
}
