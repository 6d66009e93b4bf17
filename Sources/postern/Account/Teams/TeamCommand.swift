// postern team: developer teams.

import Accounts
import ArgumentParser

struct TeamCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "team",
        abstract:
            "Add, list, show, rename, freeze and remove teams, set how surely their users sign in, and read complaints.",
        subcommands: [
            Add.self, Rename.self, List.self, Show.self, SignInLevelCommand.self, Complaints.self,
            Outgoing.self, FreezeTeam.self, UnfreezeTeam.self, Remove.self,
        ])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add a team.")

        @Argument(help: "The team's identifier, of your choice: letters, digits and . _ - :")
        var team: String
        @Option(help: "The team's display name.")
        var name: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                _ = try store.teams.add(id: team, name: name, thisChange())
                print("Added team \(team). Next: postern source add \(team) DOMAIN-OR-ADDRESS")
            }
        }
    }

    struct Rename: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the display name of a team.",
            discussion: "The identifier stays, because addresses and keys depend on it.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The new display name.")
        var name: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                try store.teams.rename(team, name: name, thisChange())
                print("Team \(team) is called \(name) now.")
            }
        }
    }

    private static func members(_ team: Team) -> Members {
        ["team": team.id, "name": team.name, "created_at": timestamp(team.createdAt)]
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List teams.")

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let teams = try installation.withStore { try $0.teams.all() }
            try output.print(teams, ["TEAM", "NAME", "SINCE"], json: members) {
                [$0.id, $0.name, timestamp($0.createdAt)]
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a team, its sources and its apps.")

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                let found = try store.teams.team(team)
                let sources = try store.sourceClaims.list(team: team, now: PosternClock.now())
                let apps = try store.apps.apps(team: team)
                let redirects = try store.clients.redirects(team: team)
                let accounts = try store.teams.accountCount(team)
                let freeze = try store.freezes.freeze(of: .team(team))
                if output.json {
                    return try printJSON(
                        members(found).merging([
                            "sources": sources.map { SourceView($0, team: found.id) },
                            "apps": apps.map {
                                AppCommand.members($0, team: found.id, redirects: redirects)
                            },
                            "accounts": accounts,
                            "frozen": freeze?.members,
                        ]))
                }
                var lines = [
                    ("team", found.id), ("name", found.name), ("since", timestamp(found.createdAt)),
                    ("accounts", "\(accounts)"),
                ]
                if let freeze { lines.append(("frozen", freeze.summary)) }
                lines += sources.map { listed in
                    let envelope = listed.source.envelopeDomain.map { " (envelope \($0))" } ?? ""
                    return (
                        "source",
                        listed.source.value + envelope + (listed.serves ? "" : " (\(listed.state))")
                    )
                }
                lines += apps.map {
                    (
                        "app",
                        $0.clientID
                            + ($0.isPrimary ? "" : " (with \($0.group.primaryClientID ?? ""))")
                    )
                }
                Properties(lines: lines).print()
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a team with its sources, apps, accounts and relay addresses.",
            discussion: """
                Mail to its relay addresses is then refused as unknown, and every app that had consent is notified. Its rows \
                are deleted in small steps: if the command is interrupted, a running service continues.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let dependents = try store.teams.dependents(team)
                try confirmation.check(
                    "team \(team)",
                    takes: [
                        (dependents.sources, "source"), (dependents.apps, "app"),
                        (dependents.accounts, "account"),
                        (dependents.addresses, "relay address"),
                    ], isFinal: true)
                try store.teams.remove(team, thisChange())
                print("Removed team \(team).")
                takeAway(from: store)
            }
        }
    }
}
