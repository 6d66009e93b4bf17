// postern delivery tags: what the parts of Feedback-ID stand for.

import Accounts
import ArgumentParser
import Foundation
import Relay
import RelayCore

extension DeliveryCommand {
    struct Tags: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what the tags in Feedback-ID stand for.",
            discussion: """
                Feedback-ID names the team, the kind of mail, the provider and the relay by tags that mean nothing outside. \
                Google's Postmaster Tools show complaints by tag. A team has another tag at each provider; without a tag, those \
                at --provider are listed. The tags change when the token key is rotated.
                """)

        @Argument(help: "Only these tags, at whatever provider.")
        var tags: [String] = []
        @Option(
            help: ArgumentHelp(
                "The provider whose tags are listed: its main domain.", valueName: "domain"))
        var provider = "gmail.com"
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let tag: String
            let part: String
            let value: String
            let provider: String?

            init(_ part: FeedbackFields.Part, _ fields: FeedbackFields) {
                tag = fields.tag(of: part)
                switch part {
                case .team(let team, let provider):
                    (self.part, value, self.provider) = ("team", team, provider)
                case .purpose(let purpose):
                    (self.part, value, provider) = ("purpose", purpose.rawValue, nil)
                case .provider(let domain): (self.part, value, provider) = ("provider", domain, nil)
                case .sender: (self.part, value, provider) = ("sender", "this relay", nil)
                }
            }
        }

        func run() throws {
            let (fields, teams, domains) = try installation.withInstallation { installation in
                guard let keys = TokenKeys(installation.keys.token) else {
                    throw CommandError(
                        status: EX_CONFIG,
                        message:
                            "\(installation.configuration.keyFilePath): the token keys cannot be used"
                    )
                }
                return (
                    FeedbackFields(keys: keys), try installation.store.teams.all().map(\.id),
                    installation.configuration.providers.sharedDomains
                )
            }
            guard let wanted = domains.first(where: { $0.hasSameOctets(as: provider) }) else {
                throw CommandError(
                    status: EX_USAGE,
                    message: "no provider \(provider): \(domains.joined(separator: ", "))")
            }
            let places = tags.isEmpty ? [wanted] : domains + [nil]
            let parts: [FeedbackFields.Part] =
                places.flatMap { place in
                    teams.map { FeedbackFields.Part.team($0, provider: place) }
                        + (place.map { [.provider($0)] } ?? [])
                } + FeedbackFields.Purpose.allCases.map { .purpose($0) } + [.sender]
            let rows = parts.map { Row($0, fields) }.filter { row in
                tags.isEmpty || tags.contains { $0.hasSameOctets(as: row.tag) }
            }
            for tag in tags where !rows.contains(where: { $0.tag.hasSameOctets(as: tag) }) {
                Failure.warn(
                    "no part of Feedback-ID has the tag \(tag) with the token key in use")
            }
            if output.json { return try printJSON(rows) }
            Table(
                header: ["TAG", "PART", "VALUE", "PROVIDER"],
                rows: rows.map { [$0.tag, $0.part, $0.value, $0.provider ?? ""] }
            ).print()
            if rows.isEmpty { throw ExitCode(EX_DATAERR) }
        }
    }
}
