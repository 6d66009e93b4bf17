// postern team sign-in and postern app sign-in: how surely users must have signed in.

import Accounts
import ArgumentParser
import SignIn
import Support

struct SignInLevelArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "any, two_factor or passkey; nothing shows the present level.", valueName: "level"))
    var level: String?

    /// Nil if none was given.
    func value() throws -> SignInLevel? {
        try level.map { text in
            guard
                let level = SignInLevel.allCases.first(where: {
                    $0.rawValue.hasSameOctets(as: text)
                })
            else {
                throw CommandError.usage(
                    "\(text.withoutControls(limit: 64)) is not a level of sign-in: use any, two_factor or passkey"
                )
            }
            return level
        }
    }

    static let discussion = """
        any: every way of sign-in. two_factor: a passkey, or a code by mail and one of an authenticator app. passkey: \
        only a passkey. The strictest of sign_in.require, the team, the app and the user holds. Who has no second factor yet \
        is led to make one at the next sign-in.
        """
}

extension TeamCommand {
    struct SignInLevelCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "sign-in",
            abstract: "Show and set how surely users must have signed in for a team's apps.",
            discussion: SignInLevelArgument.discussion)

        @Argument(help: "The team's identifier.")
        var team: String
        @OptionGroup var argument: SignInLevelArgument
        @OptionGroup var output: OutputOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let wanted = try argument.value()
            try installation.withStore { store in
                let old = try store.signInLevels.level(team: team)
                if let wanted, wanted != old {
                    try store.signInLevels.set(wanted, team: team, thisChange())
                }
                let level = wanted ?? old
                try output.print(["team": team, "sign_in": level.rawValue]) {
                    [("team", team), ("sign-in", level.rawValue)]
                }
            }
        }
    }
}

extension AppCommand {
    struct SignInLevelCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "sign-in",
            abstract: "Show and set how surely users must have signed in for an app.",
            discussion: SignInLevelArgument.discussion)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @OptionGroup var argument: SignInLevelArgument
        @OptionGroup var output: OutputOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let wanted = try argument.value()
            try installation.withStore { store in
                let old = try store.signInLevels.level(team: team, clientID: clientID)
                if let wanted, wanted != old {
                    try store.signInLevels.set(wanted, team: team, clientID: clientID, thisChange())
                }
                let level = wanted ?? old
                let teams = try store.signInLevels.level(team: team)
                try output.print(
                    [
                        "team": team, "client_id": clientID, "sign_in": level.rawValue,
                        "sign_in_of_team": teams.rawValue,
                    ]
                ) {
                    [
                        ("app", clientID), ("sign-in", level.rawValue),
                        ("sign-in of the team", teams.rawValue),
                    ]
                }
            }
        }
    }
}
