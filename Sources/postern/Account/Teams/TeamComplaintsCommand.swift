// postern team complaints: how often users reported a team's mail to their provider as unwanted.

import Accounts
import ArgumentParser

extension TeamCommand {
    struct Complaints: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show on which days users complained about a team's mail.",
            discussion: """
                Providers report a user's complaint (RFC 5965) to the return path of the message, or to the address that you \
                registered with them: that address must be one of local_recipients. Each complaint is counted, and the \
                team's endpoints get the event spam-complaint. Counters are kept for as long as `postern retention show` \
                says.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Option(help: ArgumentHelp("How many days back, today included.", valueName: "number"))
        var days = 30
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (1...3_650).contains(days) else {
                throw ValidationError("--days: from 1 to 3650")
            }
        }

        func run() throws {
            let found = try installation.withStore { store in
                try store.complaints.days(
                    team: try store.teams.team(team).number,
                    since: Day.number(PosternClock.now()) - Int64(days) + 1)
            }
            try output.print(found, ["DAY", "COMPLAINTS", "ACCOUNTS"]) { day in
                ["day": date(day), "complaints": day.complaints, "accounts": day.accounts]
                    as Members
            } columns: {
                [date($0), "\($0.complaints)", "\($0.accounts)"]
            }
        }

        private func date(_ day: ComplaintDay) -> String {
            String(timestamp(day.day * 86_400).prefix(10))
        }
    }
}
