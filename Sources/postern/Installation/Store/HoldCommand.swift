// postern hold: data that is kept beyond its retention.

import Accounts
import ArgumentParser
import Database
import Foundation
import InternetMessage
import Support

struct HoldCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold", abstract: "Keep data beyond its retention, for a dispute or an order.",
        discussion: """
            A hold names a user, a team or a relay address, kinds of data as in postern retention show, a reason and an end. \
            While it is in force, no retention deletes these rows. If the user or the team is deleted meanwhile, everything \
            else of them is deleted, and these rows follow when the hold ends. A hold collects nothing: what was deleted \
            before, or is never stored, it cannot keep. The audit has a line for each change.
            """,
        subcommands: [Add.self, List.self, Change.self, End.self, Export.self])

    private static func members(_ hold: Hold) -> Members {
        [
            "number": hold.number, "scope": hold.scope.rawValue, "subject": hold.subject,
            "data": hold.data.map(\.name), "reason": hold.reason,
            "is_confidential": hold.isConfidential, "since": timestamp(hold.createdAt),
            "ends_at": timestamp(hold.endsAt), "deleted_accounts": hold.deletedAccounts,
        ]
    }

    private static func end(_ text: String) throws -> Int64 {
        guard let end = try ExpiryText.seconds(text, now: PosternClock.now()) else {
            throw CommandError.usage(
                "--until: a hold needs an end, at most \(HoldTerms.maximumDays) days from now")
        }
        return end
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Begin a hold.",
            discussion: """
                The user's download, and the pages and the mail about the deletion of the account, mention the hold, with its \
                end and its kinds of data but without the reason. With --confidential they do not: for orders that forbid to \
                tell the user.
                """)

        @Argument(help: "What the hold is about: user, team or address.")
        var scope: HoldScope
        @Argument(help: "The user's or team's identifier, or the relay address.")
        var name: String
        @Option(
            help: ArgumentHelp(
                "When the hold ends: 90d, 8w, or a date as in 2027-01-31; at most \(HoldTerms.maximumDays) days from now.",
                valueName: "time"))
        var until: String
        @Option(
            help: ArgumentHelp(
                "Why, in one line without an email address: the audit shows it.", valueName: "text")
        )
        var reason: String
        @Option(
            help: ArgumentHelp(
                "Keep only this kind of data, as postern retention show names it; may be repeated. By default every kind.",
                valueName: "data"))
        var data: [String] = []
        @Flag(help: "Tell the user nothing of the hold.")
        var confidential = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let kinds = try data.map { name in
                guard let kind = DataClass.all.first(where: { $0.name.hasSameOctets(as: name) })
                else {
                    throw CommandError.usage(
                        "--data: \(shown(name)) is not a kind of data: see postern retention show")
                }
                return kind
            }
            let target: HoldTarget =
                switch scope {
                case .user: .user(name)
                case .team: .team(name)
                case .address: .address(try AddrSpec.typed(name))
                }
            let terms = HoldTerms(
                data: kinds, reason: reason, endsAt: try HoldCommand.end(until),
                isConfidential: confidential)
            let hold = try installation.withStore {
                try $0.holds.add(target, terms, thisChange())
            }
            if output.json { return try printJSON(members(hold)) }
            print(
                "Hold \(hold.number) keeps \(hold.data.map(\.name).joined(separator: ", ")) of \(hold.subject) until \(timestamp(hold.endsAt))."
            )
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the holds in force, the next to end first.",
            discussion: "Holds that ended are in the audit: postern audit list --action 'hold.*'.")

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let holds = try installation.withStore { try $0.holds.all() }
            try output.print(
                holds, ["HOLD", "OF", "DATA", "ENDS", "DELETED ACCOUNTS", "REASON"],
                json: members
            ) {
                [
                    "\($0.number)", $0.subject, $0.data.map(\.name).joined(separator: " "),
                    timestamp($0.endsAt), "\($0.deletedAccounts)", $0.reason,
                ]
            }
        }
    }

    struct Change: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a hold another end or another reason.",
            discussion: "An earlier end requires --yes: what the hold alone keeps is deleted then.")

        @Argument(help: "The hold's number, as in postern hold list.")
        var number: Int64
        @OptionGroup var confirmation: ConfirmationOptions
        @Option(
            help: ArgumentHelp(
                "When the hold ends: 90d, 8w, or a date as in 2027-01-31.", valueName: "time"))
        var until: String?
        @Option(
            help: ArgumentHelp("Why, in one line without an email address.", valueName: "text"))
        var reason: String?
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            if until == nil, reason == nil {
                throw ValidationError("give --until, --reason or both")
            }
        }

        func run() throws {
            let end = try until.map(HoldCommand.end)
            let hold = try installation.withStore { store in
                let old = try store.holds.hold(number)
                guard confirmation.yes || end ?? old.endsAt >= old.endsAt else {
                    throw CommandError.usage(
                        "hold \(number) ends at \(timestamp(old.endsAt)), later than that: repeat with --yes to end it earlier; nothing was changed"
                    )
                }
                return try store.holds.change(
                    number, endsAt: end, reason: reason, thisChange())
            }
            print("Hold \(hold.number) ends at \(timestamp(hold.endsAt)): \(hold.reason)")
        }
    }

    struct End: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a hold now.",
            discussion:
                "A running service deletes within the hour what the hold alone kept; so --yes is required."
        )

        @Argument(help: "The hold's number, as in postern hold list.")
        var number: Int64
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let hold = try store.holds.hold(number)
                guard confirmation.yes else {
                    throw CommandError.usage(
                        "what hold \(number) alone keeps of \(hold.subject) would be deleted within the hour: repeat with --yes to do so; nothing was changed"
                    )
                }
                try store.holds.end(number, thisChange())
                print("Ended hold \(number) of \(hold.subject).")
                takeAway(from: store)
            }
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the rows that a hold keeps, as JSON lines.",
            discussion: """
                Each line is a row: its table, its kind of data, and its columns; times are seconds since 1970, days are whole \
                days since then. It holds no inbox, no name and no message. The audit records the export, and \
                postern audit report lists it.
                """)

        /// Rows that one transaction reads.
        private static let step = 500

        @Argument(help: "The hold's number, as in postern hold list.")
        var number: Int64
        @OptionGroup var reason: RevealReason
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let hold = try store.holds.hold(number)
                try store.audit.note(
                    thisChange(), .hold, "hold:\(number)", reason: reason.reason)
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                for table in HeldTable.all where hold.data.contains(table.data) {
                    var last: HoldRepository.Record?
                    repeat {
                        let rows = try store.holds.records(
                            number, in: table, after: last, limit: Self.step)
                        for row in rows {
                            let line = HeldLine(table: table, record: row)
                            print(String(decoding: try encoder.encode(line), as: UTF8.self))
                        }
                        last = rows.count < Self.step ? nil : rows.last
                    } while last != nil
                }
                try finishOutput()
            }
        }
    }
}

extension HoldScope: ExpressibleByArgument {}

/// A held row as one JSON object.
private struct HeldLine: Encodable {
    let table: HeldTable
    let record: HoldRepository.Record

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Name.self)
        try object.encode(table.name, forKey: Name("table"))
        try object.encode(table.data.name, forKey: Name("data"))
        var row = object.nestedContainer(keyedBy: Name.self, forKey: Name("row"))
        for (name, value) in record.columns {
            switch value {
            case .integer(let number): try row.encode(number, forKey: Name(name))
            case .text(let text): try row.encode(text, forKey: Name(name))
            // No column of a listing has octets.
            case .blob, .null: break
            }
        }
    }
}
