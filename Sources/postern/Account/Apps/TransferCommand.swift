// postern transfer: an app moves from one team to another.

import Accounts
import ArgumentParser
import Database
import Events
import Support

struct TransferCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfer", abstract: "Move an app, with its group, to another team.",
        discussion: """
            After start, the old team gets a transfer_sub for each user at /auth/usermigrationinfo. After finish, the new \
            team exchanges these for its own sub and address. For 60 days, the old addresses also accept the new team's \
            mail. Age, status and checks of each consent move with it, and no user is asked again.
            """,
        subcommands: [Start.self, Status.self, Finish.self, Cancel.self])

    private static func members(_ transfer: AppTransfer) -> Members {
        [
            "app": transfer.group.primaryClientID, "from": transfer.fromTeam, "to": transfer.toTeam,
            "state": transfer.state.rawValue, "started_at": timestamp(transfer.startedAt),
            "moved_at": transfer.movedAt.map(timestamp), "ends_at": transfer.endsAt.map(timestamp),
            "waiting": transfer.waiting,
            "moved": transfer.moved, "transfer_subs": transfer.subjects,
        ]
    }

    struct Start: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Announce a transfer.")

        @Argument(help: "The team that has the app.") var from: String
        @Argument(help: "Any app of the group.") var clientID: String
        @Argument(help: "The team that gets it.") var to: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let transfer = try installation.withStore {
                try $0.transfers.start(team: from, app: clientID, to: to, thisChange())
            }
            let count = BoundedCount.text(transfer.waiting)
            print(
                "Started: \(count) consent\(transfer.waiting == 1 ? "" : "s") to \(transfer.group.title) will move from \(from) to \(to)."
            )
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show transfers, the newest first.",
            discussion:
                "WAITING, MOVED and TRANSFER SUBS are counted up to 100000; in JSON, 100001 means more."
        )

        @Argument(help: "Any app of the group. By default all transfers.") var clientID: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { try $0.transfers.transfers(app: clientID) }
            try output.print(
                rows,
                [
                    "APP", "FROM", "TO", "STATE", "STARTED", "ENDS", "WAITING", "MOVED",
                    "TRANSFER SUBS",
                ], json: members
            ) {
                [
                    $0.group.primaryClientID ?? "-", $0.fromTeam, $0.toTeam, $0.state.rawValue,
                    timestamp($0.startedAt),
                    $0.endsAt.map(timestamp) ?? "-", BoundedCount.text($0.waiting),
                    BoundedCount.text($0.moved),
                    BoundedCount.text($0.subjects),
                ]
            }
        }
    }

    struct Finish: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Transfer the app, or continue after an interruption.",
            discussion: """
                The apps belong to the new team as soon as the command begins. Their client secrets, access tokens and \
                redirect URIs end: the old team must not get the data that users share with the new one. The new team then \
                registers its own keys (postern app key), redirect URIs (postern app redirect), sources (postern source) and \
                endpoint (postern endpoint).
                """)

        @Argument(help: "Any app of the group.") var clientID: String
        @Flag(help: "Keep the redirect URIs, if their sites belong to the new team as well.")
        var keepRedirectURIs = false
        @Flag(help: "Confirm. Without it nothing is changed.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                guard
                    let found = try store.transfers.transfers(app: clientID).first(where: {
                        $0.state != .finished
                    })
                else {
                    throw StoreFailure.refused(
                        .notFound,
                        "no transfer of app \(clientID) is in progress: see postern transfer status"
                    )
                }
                guard yes else {
                    throw CommandError.usage(
                        "\(found.group.title) with \(BoundedCount.text(found.waiting)) consents goes to team \(found.toTeam) "
                            + "permanently, and its redirect URIs \(keepRedirectURIs ? "stay" : "end"): repeat with --yes; nothing was "
                            + "changed")
                }
                let endpoint = try store.endpoints.endpoints(team: found.fromTeam).first {
                    $0.groupNumber == found.group.number && $0.dialect != .sharedSignals
                }
                let total = try store.transfers.waiting(found.number)
                var bar: ProgressBar? = ProgressBar(total: total)
                defer { bar?.clear() }
                var moved = 0
                // In steps, so that mail never waits for the whole transfer. After each step there
                // is a pause for other writers.
                try store.transfers.complete(
                    app: clientID, keepingRedirects: keepRedirectURIs, thisChange()
                ) { count, took in
                    moved = min(moved + count, total)
                    bar?.update(done: moved, count: moved, of: "consents")
                    leaveTurn(after: took)
                }
                bar?.clear()
                bar = nil
                let transfer =
                    try store.transfers.transfers(app: clientID).first { $0.number == found.number }
                    ?? found
                print(
                    "\(transfer.group.title) belongs to team \(transfer.toTeam) now: \(BoundedCount.text(transfer.moved)) accounts "
                        + "moved. Old addresses accept its mail until \(transfer.endsAt.map(timestamp) ?? "-"). Users see it on their page."
                )
                if let endpoint {
                    Failure.warn(
                        "its event endpoint \(endpoint.url) belongs to team \(found.fromTeam): only events from before the "
                            + "transfer still go there. Until you run postern endpoint set \(transfer.toTeam) URL --app \(clientID), "
                            + "team \(transfer.toTeam) is not notified of changes")
                }
            }
        }
    }

    struct Cancel: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel a transfer that was started and not finished.")

        @Argument(help: "Any app of the group.") var clientID: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { try $0.transfers.cancel(app: clientID, thisChange()) }
            print("Cancelled.")
        }
    }
}
