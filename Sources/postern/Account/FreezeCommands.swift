// postern user freeze, postern team freeze, and their ends.

import Accounts
import ArgumentParser
import Foundation

/// The options of a freeze.
struct FreezeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Why, in one line without an email address: the audit shows it.", valueName: "text"))
    var reason: String
    @Option(
        help: ArgumentHelp(
            "When the freeze ends by itself: 30d, 8w, a date as in 2027-01-31, or never.",
            valueName: "time"))
    var until = "never"

    func begin(_ target: FreezeTarget, _ installation: InstallationOptions) throws {
        let end = try ExpiryText.seconds(until, now: PosternClock.now())
        try installation.withStore {
            try $0.freezes.begin(target, reason: reason, endsAt: end, thisChange())
        }
        print("Frozen \(end.map { "until \(timestamp($0))" } ?? "until it is ended").")
    }
}

extension Freeze {
    /// As commands show it.
    var summary: String {
        "since \(timestamp(beganAt))\(endsAt.map { ", until \(timestamp($0))" } ?? "")"
    }

    var members: Members {
        ["since": timestamp(beganAt), "ends_at": endsAt.map(timestamp)]
    }
}

extension UserCommand {
    struct FreezeUser: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "freeze", abstract: "Stop a user without deleting anything.",
            discussion: """
                The user cannot sign in to apps or use the page, and a page says so. Mail to the user's addresses and the \
                user's replies are refused. The teams get an event as for forwarding that is off. Sessions, consents and \
                addresses stay, and work again when the freeze ends. A user who is frozen already gets the new end.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @OptionGroup var options: FreezeOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws { try options.begin(.user(user), installation) }
    }

    struct UnfreezeUser: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "unfreeze", abstract: "End the freeze of a user.")

        @Argument(help: "The user's identifier.")
        var user: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { try $0.freezes.end(.user(user), thisChange()) }
            print("User \(user) is no longer frozen.")
        }
    }
}

extension TeamCommand {
    struct FreezeTeam: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "freeze", abstract: "Stop a team without deleting anything.",
            discussion: """
                Mail of the team gets 451, so its servers keep it for some days; replies to the team are refused. No one can \
                sign in to its apps, and requests for new consents or addresses are refused. Decisions, events and everything \
                that its keys read go on. A team that is frozen already gets the new end.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var options: FreezeOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws { try options.begin(.team(team), installation) }
    }

    struct UnfreezeTeam: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "unfreeze", abstract: "End the freeze of a team.")

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { try $0.freezes.end(.team(team), thisChange()) }
            print("Team \(team) is no longer frozen.")
        }
    }
}
