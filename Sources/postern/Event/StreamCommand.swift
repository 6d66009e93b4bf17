// postern stream: streams of the Shared Signals Framework, which their receivers create over HTTP.

import Accounts
import ArgumentParser
import Events
import SharedSignals

struct StreamCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream", abstract: "List, stop and remove streams of security events.",
        discussion: """
            Receivers create streams at /ssf/stream with a team's key, or with an access token of their app with scope \
            ssf.manage. docs/SHARED_SIGNALS.md describes them.
            """,
        subcommands: [List.self, Status.self, Remove.self])

    private static func members(_ stream: EventStream) -> Members {
        [
            "stream_id": stream.id, "team": stream.teamID, "audience": stream.audience,
            "method": stream.isPolled ? "poll" : "push", "url": stream.url,
            "status": stream.status.rawValue,
            "reason": stream.reason, "pending": stream.pending, "parked": stream.parked,
            "events_delivered": stream.delivered, "created_at": timestamp(stream.createdAt),
        ]
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the streams of one team or of all teams.")

        @Argument(help: "The team's identifier. By default all teams.") var team: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { store in
                try team.map {
                    try store.streams.streams(StreamRepository.Owner(team: $0, group: nil))
                } ?? store.streams.all()
            }
            try output.print(
                rows, ["STREAM", "FOR", "METHOD", "STATUS", "PENDING", "PARKED", "URL"],
                json: members
            ) {
                [
                    $0.id, $0.audience, $0.isPolled ? "poll" : "push", $0.status.rawValue,
                    "\($0.pending)", "\($0.parked)",
                    $0.url,
                ]
            }
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Enable, pause or disable a stream; its receiver is notified.",
            discussion: """
                A paused stream keeps its events for three days, like any other stream. A disabled stream keeps none, and \
                its pending events are deleted. The receiver gets a stream-updated event.
                """)

        @Argument(help: "The stream's identifier.") var stream: String
        @Argument(help: "enabled, paused or disabled.") var status: StreamStatus
        @Option(help: "The reason, for the receiver.") var reason: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let request = StatusRequest(streamID: stream, status: status, reason: reason)
            let changed = try installation.withStore { try $0.streams.set(request, thisChange()) }
            print("The stream for \(changed.audience) is \(changed.status.rawValue).")
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Remove a stream with its pending events: its receiver is no longer notified of changes."
        )

        @Argument(help: "The stream's identifier.") var stream: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let found = try store.streams.stream(stream)
                try confirmation.check(
                    "the stream for \(found.audience)",
                    takes: [(found.pending, "pending event"), (found.parked, "parked event")])
                try store.streams.remove(stream, thisChange())
                print("Removed.")
                takeAway(from: store)
            }
        }
    }
}

extension StreamStatus: ExpressibleByArgument {}
