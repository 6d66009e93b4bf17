// postern app appearance: the name and the icon that users see of an app.

import Accounts
import ArgumentParser

extension AppCommand {
    struct Appearance: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set or remove the name and the icon that users see of an app.",
            discussion:
                "Users see them on /me and when they sign in. Without a name they see the client_id."
        )

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @OptionGroup var options: AppAppearanceOptions
        @Flag(help: "Remove the name.")
        var withoutName = false
        @Flag(help: "Remove the icon.")
        var withoutIcon = false
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            if options.isEmpty, !withoutName, !withoutIcon {
                throw ValidationError(
                    "Give a name or an icon: --name, --icon, --without-name or --without-icon")
            }
            if options.name != nil, withoutName {
                throw ValidationError("--name and --without-name contradict each other")
            }
            if options.icon != nil, withoutIcon {
                throw ValidationError("--icon and --without-icon contradict each other")
            }
        }

        func run() throws {
            let icon = try options.readIcon()
            try installation.withStore { store in
                try store.apps.setAppearance(
                    team: team, clientID: clientID, name: withoutName ? "" : options.name,
                    icon: withoutIcon ? .some(nil) : icon.map { .some($0) }, thisChange())
                print("Changed how app \(clientID) of team \(team) is shown.")
            }
        }
    }
}

/// The name and the icon of an app.
struct AppAppearanceOptions: ParsableArguments {
    @Option(help: "The name that users see instead of the client_id, as in \"Juice for Android\".")
    var name: String?
    @Option(
        help: ArgumentHelp(
            "A square PNG, 64 to 1024 pixels, at most 200,000 octets.", valueName: "file"),
        transform: filePath)
    var icon: String?

    var isEmpty: Bool { name == nil && icon == nil }

    func readIcon() throws -> AppIcon? {
        try icon.map { try AppIcon(png: Array(InputFile.octets($0, maximum: AppIcon.maximumSize))) }
    }
}
