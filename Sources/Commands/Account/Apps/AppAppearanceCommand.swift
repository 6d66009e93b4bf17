// postern app appearance: the name and the icon under which people see an app.

import Accounts
import ArgumentParser
import CommandSupport

extension AppCommand {
    struct Appearance: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an app a name and an icon for people, or take them away.",
            discussion: "Users see them on /me and when they sign in. Without a name they see the client_id.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @OptionGroup var options: AppAppearanceOptions
        @Flag(help: "Take the name away.")
        var withoutName = false
        @Flag(help: "Take the icon away.")
        var withoutIcon = false
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            if options.isEmpty, !withoutName, !withoutIcon {
                throw ValidationError("Give a name or an icon: --name, --icon, --without-name or --without-icon")
            }
            if options.name != nil, withoutName { throw ValidationError("--name and --without-name contradict each other") }
            if options.icon != nil, withoutIcon { throw ValidationError("--icon and --without-icon contradict each other") }
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

/// What people are shown of an app.
struct AppAppearanceOptions: ParsableArguments {
    @Option(help: "What people read in place of the client_id, as in \"Juice for Android\".")
    var name: String?
    @Option(help: ArgumentHelp("A square PNG, 64 to 1024 pixels, at most 200,000 octets.", valueName: "file"))
    var icon: String?

    var isEmpty: Bool { name == nil && icon == nil }

    func readIcon() throws -> AppIcon? {
        try icon.map { try AppIcon(png: Array(InputFile.octets($0, maximum: AppIcon.maximumSize))) }
    }
}
