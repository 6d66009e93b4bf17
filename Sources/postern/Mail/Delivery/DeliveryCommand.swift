// postern delivery: what became of forwarded mail, by team and provider.

import Accounts
import ArgumentParser
import RelayCore

struct DeliveryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delivery",
        abstract: "Show what became of forwarded mail, by team and provider.",
        discussion: """
            Postern counts each forward when it accepts it, and each permanent failure when it is reported to the return \
            path. What was delivered and what waits is in Postfix's log: let postern delivery read read it.

            Providers are families by their mail servers, such as google or microsoft; all small ones are other.

            After complaints of many users, or many refusals for its reputation, mail of a team to this provider is slowed, and \
            then held: Postern answers 451, and the senders keep the mail. delivery.* in postern.yaml has the thresholds. \
            It ends by itself when the figures recover.
            """,
        subcommands: [
            Show.self, Read.self, Import.self, Tags.self, Allow.self, Hold.self, Lift.self,
        ])
}

extension ProviderFamily: ExpressibleByArgument {
    /// The provider with this name.
    public init?(argument: String) { self.init(rawValue: argument) }

    /// Every name, for completion and help.
    public static var allValueStrings: [String] { allCases.map(\.rawValue) }
}

extension DeliveryCommand {
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the counts of each team at each provider.",
            discussion: """
                A message can be in several columns: one that was deferred and then delivered is in both. REPUTATION, RATE \
                and POLICY count messages that the provider refused or deferred; COMPLAINTS counts users who reported \
                mail as unwanted, once a day each. Do not give a team figures of a few messages: they could reveal the \
                provider of a user.
                """)

        @Option(help: ArgumentHelp("Only this team.", valueName: "identifier"))
        var team: String?
        @Option(help: ArgumentHelp("Only this provider.", valueName: "family"))
        var provider: ProviderFamily?
        @Option(
            help: ArgumentHelp(
                "From when: 12h, 30d, 8w, or a date as in 2026-11-01.", valueName: "time"))
        var since = "7d"
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        /// The columns after forwarded, with their headings.
        private static let columns: [(DeliveryOutcome, String)] = [
            (.delivered, "DELIVERED"), (.deferred, "DEFERRED"), (.reputation, "REPUTATION"),
            (.rate, "RATE"), (.policy, "POLICY"), (.noSuchUser, "NO-USER"), (.full, "FULL"),
            (.other, "OTHER"),
        ]

        /// State and reason; a decision goes before the figures.
        private static func state(_ limit: DeliveryLimit?, _ now: Int64) -> [String] {
            guard let limit else { return ["open", ""] }
            guard limit.isDecided(now: now), let decision = limit.decision else {
                return [limit.inForce(now: now).rawValue, limit.figures]
            }
            let until = limit.decisionUntil.map { " until \(timestamp($0))" } ?? ""
            return [
                limit.inForce(now: now).rawValue,
                "\(decision.rawValue)\(until): \(limit.decisionReason ?? "")",
            ]
        }

        func run() throws {
            let start = try ExpiryText.start(since, now: PosternClock.now())
            let now = PosternClock.now()
            let (found, limits) = try installation.withStore { store in
                if let team { _ = try store.teams.team(team) }
                return (
                    try store.deliveries.figures(
                        since: start / 3_600, team: team, provider: provider),
                    try store.deliveries.limits(now: now)
                )
            }
            func limit(_ figures: DeliveryFigures) -> DeliveryLimit? {
                limits.first { $0.team == figures.team && $0.provider == figures.provider }
            }
            // A limit can outlast the figures.
            let rows =
                found
                + limits.filter { limit in
                    (team ?? limit.team) == limit.team
                        && (provider ?? limit.provider) == limit.provider
                        && !found.contains {
                            $0.team == limit.team && $0.provider == limit.provider
                        }
                }.map { DeliveryFigures(team: $0.team, provider: $0.provider) }
            let names =
                ["TEAM", "PROVIDER", "FORWARDED"] + Self.columns.map(\.1)
                + ["COMPLAINTS", "STATE", "WHY"]
            try output.print(rows, names) { figures in
                let limit = limit(figures)
                return [
                    "state": limit?.inForce(now: now).rawValue ?? "open",
                    "cause": limit?.cause?.rawValue, "since": limit.map { timestamp($0.since) },
                    "decision": limit.flatMap {
                        $0.isDecided(now: now) ? $0.decision?.rawValue : nil
                    }, "decision_until": limit?.decisionUntil.map(timestamp),
                    "reason": limit?.decisionReason,
                    "team": figures.team, "provider": figures.provider.rawValue,
                    "counts": Dictionary(
                        uniqueKeysWithValues: DeliveryOutcome.allCases.map {
                            ($0.rawValue, figures.count($0))
                        }),
                    "complaints": figures.complaints,
                ] as Members
            } columns: { figures in
                [figures.team, figures.provider.rawValue, "\(figures.count(.forwarded))"]
                    + Self.columns.map { "\(figures.count($0.0))" } + ["\(figures.complaints)"]
                    + Self.state(limit(figures), now)
            }
        }
    }
}
