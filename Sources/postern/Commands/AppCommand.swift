// postern app: the clients of a team.

import ArgumentParser
import PosternServer
import PosternStore

struct AppCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app", abstract: "Add, list and remove a team's apps.",
        discussion: """
            Users consent to a group of apps: a primary app and those grouped under it. All apps of a team share a user's \
            relay address. A team may relay mail before it has any app.
            """,
        subcommands: [Add.self, List.self, Remove.self])

    struct Row: Encodable {
        let clientId: String
        let group: String?
        let primary: Bool
        let createdAt: String

        init(_ app: App) {
            clientId = app.clientID
            group = app.group.primaryClientID
            primary = app.isPrimary
            createdAt = timestamp(app.createdAt)
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add an app.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id: a bundle or services identifier, as in com.example.juice.")
        var clientID: String
        @Option(
            help: ArgumentHelp("The primary app to group it under; otherwise it is a primary app itself.", valueName: "client-id"))
        var group: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let app = try store.apps.add(team: team, clientID: clientID, group: group, thisChange())
                print("Added app \(app.clientID) of team \(team).")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List a team's apps.")

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let apps = try installation.withStore { try $0.apps.apps(team: team) }
            if output.json { return try printJSON(apps.map(Row.init)) }
            Table(
                header: ["CLIENT_ID", "GROUP", "SINCE"],
                rows: apps.map { [$0.clientID, $0.isPrimary ? "(primary)" : $0.group.primaryClientID ?? "-", timestamp($0.createdAt)] }
            ).print()
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an app; with the last of a group, users' consent to it ends.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let dependents = try store.apps.dependents(team: team, clientID: clientID)
                try confirmation.check("app \(clientID)", takes: [(dependents.grants, "grant")])
                try store.apps.remove(team: team, clientID: clientID, thisChange())
                print("Removed app \(clientID) of team \(team).")
            }
        }
    }
}
