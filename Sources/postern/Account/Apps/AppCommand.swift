// postern app: the clients of a team.

import Accounts
import ArgumentParser
import SignIn

struct AppCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract:
            "Add, list and remove a team's apps, their redirect URIs, secrets, nonces and the team's keys.",
        discussion: """
            Users consent to a group of apps: a primary app and those grouped under it. All apps of a team share a user's \
            relay address. A team may relay mail before it has any app.
            """,
        subcommands: [
            Add.self, List.self, Remove.self, Appearance.self, Redirect.self, Client.self,
            SignInLevelCommand.self, Secret.self, Key.self, Nonce.self,
            Attestation.self,
        ])

    static func members(_ app: App, team: String, redirects: [String: [String]]) -> Members {
        [
            "team": team, "client_id": app.clientID, "group": app.group.primaryClientID,
            "primary": app.isPrimary,
            "name": app.name, "has_icon": app.hasIcon,
            "redirect_uris": redirects[app.clientID] ?? [],
            "created_at": timestamp(app.createdAt),
        ]
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add an app.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(
            help: "The app's client_id: a bundle or services identifier, as in com.example.juice.")
        var clientID: String
        @Option(
            help: ArgumentHelp(
                "The primary app to group it under. Without this option it is a primary app itself.",
                valueName: "client-id"))
        var group: String?
        @Option(
            help: ArgumentHelp(
                "A redirect URI for sign-in, exactly as the app sends it; may be repeated.",
                valueName: "uri"))
        var redirectURI: [String] = []
        @OptionGroup var identityTokens: IdentityTokenOptions
        @OptionGroup var appearance: AppAppearanceOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let (icon, algorithm) = (try appearance.readIcon(), try identityTokens.algorithm())
            try installation.withStore { store in
                let app = try store.addApp(
                    team: team, clientID: clientID, group: group, redirectURIs: redirectURI,
                    name: appearance.name, icon: icon,
                    algorithm: algorithm ?? ClientSettings.standardAlgorithm, thisChange())
                print("Added app \(app.clientID) of team \(team).")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List a team's apps, or every team's.")

        @Argument(help: "The team's identifier. By default all teams.")
        var team: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let apps = try installation.withStore { store in
                try (team.map { [$0] } ?? store.teams.all().map(\.id)).flatMap { team in
                    let redirects = try store.clients.redirects(team: team)
                    return try store.apps.apps(team: team).map {
                        (team: team, app: $0, redirects: redirects)
                    }
                }
            }
            try output.print(
                apps, ["TEAM", "CLIENT_ID", "NAME", "GROUP", "SINCE", "REDIRECT URIS"]
            ) {
                members($0.app, team: $0.team, redirects: $0.redirects)
            } columns: { team, app, redirects in
                [
                    team, app.clientID, app.name ?? "-",
                    app.isPrimary ? "(primary)" : app.group.primaryClientID ?? "-",
                    timestamp(app.createdAt),
                    redirects[app.clientID].flatMap { $0.isEmpty ? nil : $0.joined(separator: " ") }
                        ?? "-",
                ]
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Remove an app. If it is the last app of its group, users' consent to the group ends."
        )

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let dependents = try store.apps.dependents(team: team, clientID: clientID)
                try confirmation.check(
                    "app \(clientID)", takes: [(dependents.grants, "grant")], isFinal: true)
                try store.apps.remove(team: team, clientID: clientID, thisChange())
                print("Removed app \(clientID) of team \(team).")
                takeAway(from: store)
            }
        }
    }
}
