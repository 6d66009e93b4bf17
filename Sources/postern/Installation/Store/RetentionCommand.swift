// postern retention: how long data is kept.

import Accounts
import ArgumentParser
import Support

struct RetentionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retention", abstract: "Show and set how long each kind of data is kept.",
        subcommands: [Show.self, Set.self, Record.self])

    private static func members(_ retention: Retention) -> Members {
        [
            "data": retention.dataClass.name, "days": retention.days,
            "standard_days": retention.dataClass.standardDays,
            "reason": retention.dataClass.reason,
        ]
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show how long each kind of data is kept, and why.",
            discussion:
                "Data with a fixed expiry is not listed: return paths, codes and links, marks of automatic mail. HOLDS counts the holds that keep some rows of the kind longer: postern hold list."
        )

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (rows, holds) = try installation.withStore {
                (try $0.retention.all(), try $0.holds.all())
            }
            func held(_ retention: Retention) -> Int {
                holds.count { $0.data.contains(retention.dataClass) }
            }
            try output.print(
                rows, ["DATA", "DAYS", "STANDARD", "HOLDS", "REASON"],
                json: { members($0).merging(["holds": held($0)]) }
            ) {
                [
                    $0.dataClass.name, "\($0.days)", "\($0.dataClass.standardDays)", "\(held($0))",
                    $0.dataClass.reason,
                ]
            }
        }
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set how long a kind of data is kept.",
            discussion:
                "A running service deletes older data within the hour. --yes is required for a shorter time than before."
        )

        @Argument(help: "The kind of data, as in postern retention show.")
        var data: String
        @Argument(help: "Days.")
        var days: Int
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let present = try store.retention.all().first { $0.dataClass.name == data }
                if let present, present.dataClass.range.contains(days), days < present.days,
                    !confirmation.yes
                {
                    throw CommandError.usage(
                        "\(data) older than \(Count.text(days, "day")) would be deleted within the hour: repeat with --yes to do so; nothing was changed"
                    )
                }
                let retention = try store.retention.set(data, days: days, thisChange())
                print("Kept for \(Count.text(retention.days, "day")): \(retention.dataClass.name).")
            }
        }
    }

    struct Record: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the record of processing: data, purpose, retention and recipients.",
            discussion: """
                It lists what Postern does with data about users, with the times of this installation. Add what you do with \
                it yourself: logs of Postfix, backups, exports. Teams are responsible for what they get.
                """)

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let retentions = try installation.withStore { try $0.retention.all() }
            try output.print(ProcessingActivity.all, ProcessingActivity.header) {
                let columns = $0.columns(retentions)
                return [
                    "data": columns[0], "purpose": columns[1], "kept": columns[2],
                    "recipients": $0.recipients.map(\.rawValue),
                    "sections_of_download": $0.sections,
                ] as Members
            } columns: {
                $0.columns(retentions)
            }
        }
    }
}
