// postern event: what waits for endpoints, and what does not any more.

import Events
import ArgumentParser
import CommandSupport
import Support

struct EventCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "event", abstract: "List, retry, park and try the events that go to endpoints.",
        subcommands: [List.self, Retry.self, Park.self, Test.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List events, the newest first.",
            discussion: "Delivered ones are listed for seven days, parked ones for thirty.")

        @Argument(help: "The team's identifier; all teams without it.") var team: String?
        @Option(help: "Only pending, delivered or parked ones.") var state: OutboxEvent.State?
        @Option(help: "The maximum number of rows.") var limit = 100
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
        }

        func run() throws {
            let rows = try installation.withStore {
                try $0.outbox.events(team: team, state: state, limit: limit)
            }
            try output.print(
                rows, ["JTI", "TYPE", "FOR", "SUB", "STATE", "ATTEMPTS", "TIME", "LAST ERROR"], json: EventView.init
            ) {
                [
                    $0.jti, $0.type.rawValue, $0.audience, $0.sub, $0.state.rawValue, "\($0.attempts)",
                    Timestamp(milliseconds: $0.eventTime).text, $0.lastError ?? "-",
                ]
            }
        }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try parked events again, for three more days; pending ones at once.",
            discussion: "An event that arrives after later ones of its account is recognized by its event_time.")

        @OptionGroup var selection: EventSelection
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let count = try installation.withStore { store in
                try store.outbox.retry(jti: selection.jti, team: selection.team, thisChange())
            }
            print("\(count) event\(count == 1 ? "" : "s") will be tried now.")
        }
    }

    struct Park: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Park pending events: they are no longer tried.")

        @OptionGroup var selection: EventSelection
        @Flag(help: "Do it.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                guard yes else {
                    throw CommandError.usage("the receiver does not get parked events: repeat with --yes; nothing was changed")
                }
                let count = try store.outbox.park(jti: selection.jti, team: selection.team, thisChange())
                print("Parked \(count) event\(count == 1 ? "" : "s").")
            }
        }
    }

    struct Test: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put an event of type test into the queue, and print its jti.",
            discussion: "It is delivered like any other event. postern endpoint test sends one at once.")

        @Argument(help: "The team's identifier.") var team: String
        @Option(help: ArgumentHelp("Any app of the group; the team's first group without it.", valueName: "client-id"))
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
