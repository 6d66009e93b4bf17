// postern address: relay addresses.

import Accounts
import ArgumentParser
import Database
import InternetMessage

struct AddressCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "address",
        abstract: "Issue, list, show, decode, switch and retire relay addresses.",
        subcommands: [
            Issue.self, List.self, Show.self, Decode.self, On.self, Off.self, Retire.self,
        ])

    struct Issue: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a user's relay address for a team, and issue one if there is none.",
            discussion: """
                A user has one address for all apps of a team, and a different one for every other team; issuing again \
                prints the same address. The user's consent is recorded for the app that is named, or else for the team's \
                first app. For a team without apps, the consent is for mail only.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The user's identifier.")
        var user: String
        @Option(help: ArgumentHelp("The app that the user consents to.", valueName: "client-id"))
        var app: String?
        @Flag(
            inversion: .prefixedNo,
            help:
                "Whether replies carry the user's name. At first they do not. Without this option nothing changes."
        )
        var shareName: Bool?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                let issued = try store.addresses.issue(
                    team: team, user: user, app: app, sharesName: shareName, thisChange())
                if !issued.hasVerifiedInbox {
                    Failure.warn(
                        "user \(user) has no verified inbox: nothing is forwarded until one is confirmed; see postern inbox list \(user)"
                    )
                }
                if output.json { return try printJSON(AddressView.whole(issued.address)) }
                print(issued.address.address.wireForm)
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List relay addresses, including retired ones.")

        @Option(help: "Only addresses with this team.")
        var team: String?
        @Option(help: "Only addresses of this user.")
        var user: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                try output.print(["ADDRESS", "TEAM", "USER", "STATE", "SINCE"]) {
                    try store.addresses.page(
                        team: team, user: user, after: $0, limit: OutputOptions.page)
                } json: {
                    AddressView.whole($0)
                } columns: {
                    [
                        $0.address.wireForm, $0.account.teamID, $0.account.userID ?? "-", $0.state,
                        timestamp($0.createdAt),
                    ]
                }
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a relay address, the consent behind it, and today's counts.")

        @OptionGroup var address: AddressArgument
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                let found = try store.addresses.address(address.resolve(store))
                let account = found.account
                let grants = try store.grants.grants(account: account.number)
                let today = Day.number(PosternClock.now())
                let forwarded = try store.counters.count(
                    account: account.number, kind: .forwarded, day: today)
                let replied = try store.counters.count(
                    account: account.number, kind: .replied, day: today)
                if output.json {
                    let consents = grants.map { grant -> Members in
                        [
                            "client_id": grant.group.primaryClientID, "state": grant.state.rawValue,
                            "first_authorized_at": timestamp(grant.firstAuthorizedAt),
                            "last_authorized_at": timestamp(grant.lastAuthorizedAt),
                            "real_user_status": grant.realUserStatus,
                        ]
                    }
                    return try printJSON(
                        [
                            "address": AddressView.whole(found), "grants": consents,
                            "forwarded_today": forwarded,
                            "replied_today": replied,
                            "shares_name": account.sharesName,
                        ] as Members)
                }
                var lines = [
                    ("address", found.address.wireForm), ("team", account.teamID),
                    ("user", account.userID ?? "-"),
                    ("state", found.state), ("since", timestamp(found.createdAt)),
                    ("account", "\(account.number)"),
                    ("sub", account.sub), ("name", account.sharesName ? "shared" : "not shared"),
                    ("today", "\(forwarded) forwarded, \(replied) replied"),
                ]
                lines += grants.map {
                    let app = $0.group.primaryClientID ?? "(mail alone)"
                    return (
                        "consent",
                        "\(app) \($0.state.rawValue) since \(timestamp($0.firstAuthorizedAt))"
                    )
                }
                Properties(lines: lines).print()
            }
        }
    }

    struct On: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Switch forwarding on.")

        @OptionGroup var address: AddressArgument
        @OptionGroup var installation: InstallationOptions

        func run() throws { try AddressCommand.setForwarding(address, on: true, installation) }
    }

    struct Off: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Switch forwarding off: mail to the address is refused from the next message on.")

        @OptionGroup var address: AddressArgument
        @OptionGroup var installation: InstallationOptions

        func run() throws { try AddressCommand.setForwarding(address, on: false, installation) }
    }

    private static func setForwarding(
        _ address: AddressArgument, on isOn: Bool, _ installation: InstallationOptions
    ) throws {
        try installation.withStore { store in
            let changed = try store.addresses.setForwarding(
                address.resolve(store), on: isOn, thisChange())
            print("Forwarding is \(isOn ? "on" : "off")\(changed ? "" : " already").")
        }
    }

    struct Retire: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retire an address permanently.",
            discussion:
                "Mail to it is then refused. postern address issue then issues a new address.")

        @OptionGroup var address: AddressArgument
        @Flag(help: "Confirm: it cannot be undone.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let found = try address.resolve(store)
                guard yes else {
                    throw CommandError.usage(
                        "mail to \(found.wireForm) will be refused, and it is never issued again: repeat with --yes to retire it, or use "
                            + "postern address off; nothing was changed")
                }
                try store.addresses.retire(found, thisChange())
                print("The address is retired.")
            }
        }
    }
}

/// Names a relay address by itself, or by team and user.
struct AddressArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The relay address; or a team and a user, for the user's address with the team.",
            valueName: "address"))
    var words: [String]

    func validate() throws {
        guard (1...2).contains(words.count) else {
            throw ValidationError("Give one relay address, or a team and a user.")
        }
    }

    func resolve(_ store: Store) throws -> AddrSpec {
        guard words.count == 2 else { return try AddrSpec.typed(words[0]) }
        let addresses = try store.addresses.addresses(team: words[0], user: words[1])
        guard let address = addresses.first(where: \.isCurrent) ?? addresses.last else {
            throw StoreFailure.refused(
                .notFound,
                "user \(words[1]) has no relay address with team \(words[0]): see postern address issue --help"
            )
        }
        return address.address
    }
}
