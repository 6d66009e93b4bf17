// postern event: the events for endpoints: pending, delivered, and given up (`parked`).

import ArgumentParser
import Events
import Support

struct EventCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "event",
        abstract: "List, retry, park and test the events that go to endpoints.",
        subcommands: [List.self, Retry.self, Park.self, Test.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List events, the newest first.",
            discussion: "Delivered events are listed for seven days, parked events for thirty.")

        @Argument(help: "The team's identifier. By default all teams.") var team: String?
        @Option(help: "Only events in this state: pending, delivered or parked.") var state:
            OutboxEvent.State?
        @Option(help: "The maximum number of rows.") var limit = 100
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
        }

        func run() throws {
            let (rows, isMore) = try installation.withStore { store in
                try Limit.read(limit) {
                    try store.outbox.events(team: team, state: state, limit: $0)
                }
            }
            defer { if isMore { Limit.remark(limit, "event") } }
            try output.print(
                rows, ["JTI", "TYPE", "FOR", "SUB", "STATE", "ATTEMPTS", "TIME", "LAST ERROR"],
                json: EventView.init
            ) {
                [
                    $0.jti, $0.type.rawValue, $0.audience, $0.sub, $0.state.rawValue,
                    "\($0.attempts)",
                    Timestamp(milliseconds: $0.eventTime).text, $0.lastError ?? "-",
                ]
            }
        }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retry parked events for three more days, or pending events at once.",
            discussion:
                "The receiver recognizes an event that arrives after later events of its account by its event_time."
        )

        @OptionGroup var selection: EventSelection
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let count = try installation.withStore { store in
                try store.outbox.retry(jti: selection.jti, team: selection.team, thisChange())
            }
            print(
                count == 0
                    ? "No event waits or is parked."
                    : "\(Count.text(Int(count), "event")) will be tried now.")
        }
    }

    struct Park: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Park pending events, which are then no longer tried.")

        @OptionGroup var selection: EventSelection
        @Flag(help: "Confirm. Without it nothing is changed.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                guard yes else {
                    throw CommandError.usage(
                        "the receiver gets parked events only after postern event retry: repeat with --yes; nothing was changed"
                    )
                }
                let count = try store.outbox.park(
                    jti: selection.jti, team: selection.team, thisChange())
                guard count > 0 else {
                    return print(
                        "Nothing to park: \(selection.jti == nil ? "no event is" : "it is not") pending."
                    )
                }
                print("Parked \(Count.text(Int(count), "event")).")
            }
        }
    }

    struct Test: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put an event of type test into the queue, and print its jti.",
            discussion:
                "It is delivered like any other event. postern endpoint test sends one at once.")

        @Argument(help: "The team's identifier.") var team: String
        @Option(
            help: ArgumentHelp(
                "Any app of the group. By default the team's first group.", valueName: "client-id"))
        var app: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let jti = try installation.withStore { store in
                try store.outbox.test(store.endpoints.endpoint(team: team, app: app), thisChange())
            }
            print(jti)
        }
    }
}

/// One event, or all of a team's.
struct EventSelection: ParsableArguments {
    @Argument(help: "The event's jti.") var jti: String?
    @Option(help: "All events of this team.") var team: String?

    func validate() throws {
        guard (jti == nil) != (team == nil) else { throw ValidationError("Give a jti, or --team.") }
    }
}

extension OutboxEvent.State: ExpressibleByArgument {}
