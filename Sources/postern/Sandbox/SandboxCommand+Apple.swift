// postern sandbox --as apple: a double of Sign in with Apple, only on this machine.

import Decisions
import Foundation
import Logging
import Rehearsal
import RiskPolicy

extension SandboxCommand {
    private struct AppleFacts: Encodable {
        let url: String
        let issuer: String
        let teams: [Team]

        struct Team: Encodable {
            let teamId: String
            let keyIds: [String]
            let clientIds: [String]
        }

        init(_ seed: AppleSeed, url: String) {
            self.url = url
            issuer = seed.issuer ?? url
            teams = seed.teams.map { team in
                Team(
                    teamId: team.id, keyIds: team.keys.map(\.id),
                    clientIds: seed.clients.filter { $0.team == team.id }.map(\.id))
            }
        }
    }

    func runApple() async throws {
        if printSeed { return print(AppleSeed.standardText, terminator: "") }
        let seed: AppleSeed
        do {
            seed =
                try self.seed.map {
                    try AppleSeed.read(
                        InputFile.text($0, maximum: BoundedYAML.maximumOctets), name: $0)
                } ?? .standard()
        } catch let fault as AppleSeedFault {
            throw CommandError.data(fault.description)
        }
        // A line for each refusal, on standard error.
        var logger = Logger(label: "postern") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .notice
        let json = output.json
        let announcement = Announcement()
        try await AppleSandbox.run(
            AppleSandbox.Settings(port: port, seed: seed, auto: auto), now: PosternClock.now,
            logger: logger
        ) { url in
            let facts = AppleFacts(seed, url: url)
            announcement.make {
                if json { try printJSON(facts) } else { print(Self.introduction(facts)) }
            }
        }
        try announcement.check()
    }

    /// The text that is printed at the start.
    private static func introduction(_ facts: AppleFacts) -> String {
        let teams = facts.teams.map { team in
            "  team \(team.teamId), keys \(team.keyIds.joined(separator: ", ")), clients \(team.clientIds.joined(separator: ", "))"
        }
        return """
            A double of Sign in with Apple listens on \(facts.url). Everything in it is deleted when it ends (Ctrl-C).

            \(teams.joined(separator: "\n"))

            In the configuration of your app, put it in the place of https://appleid.apple.com: /auth/authorize, /auth/token, \
            /auth/revoke, /auth/keys. Tokens have iss \(facts.issuer).

            The key for client secrets:  curl \(facts.url)/sandbox/keys/\(facts.teams.first?.keyIds.first ?? "KEY")
            What was asked, and why it was refused:  \(facts.url)/
            """
    }
}
