// postern team outgoing: the outgoing identity of a team.

import Accounts
import ArgumentParser
import RelayCore

extension TeamCommand {
    struct Outgoing: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "outgoing",
            abstract: "Show and set the name and address by which a team's forwards leave.",
            discussion: """
                outgoing.identities in postern.yaml has the identities; standard is Postfix's own. Mail that is on its way \
                keeps the identity that it has. A running service needs no restart.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(
            help: ArgumentHelp(
                "A name of outgoing.identities, or standard; nothing shows the present one.",
                valueName: "identity"))
        var identity: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withInstallation { installation in
                let teams = installation.store.teams
                let names = installation.configuration.outgoingIdentities.map(\.name)
                var present = try teams.outgoingIdentity(team)
                if let identity {
                    let wanted: OutgoingIdentityName? =
                        identity.hasSameOctets(as: Self.standard)
                        ? nil : OutgoingIdentityName(identity)
                    guard
                        identity.hasSameOctets(as: Self.standard)
                            || wanted.map(names.contains) == true
                    else {
                        throw CommandError.usage(
                            "\(identity.withoutControls(limit: 64)) is not an outgoing identity: there are \(([Self.standard] + names.map(\.text)).joined(separator: ", "))"
                        )
                    }
                    try teams.setOutgoingIdentity(team, wanted, thisChange())
                    present = wanted
                }
                if let name = present, !names.contains(name) {
                    Failure.warn(
                        "outgoing.identities has no \(name): the team's mail leaves by the standard identity"
                    )
                }
                let shown = present?.text ?? Self.standard
                try output.print(["team": team, "outgoing": shown]) {
                    [("team", team), ("outgoing", shown)]
                }
            }
        }

        private static let standard = "standard"
    }
}
