// postern account: users as teams see them.

import Accounts
import ArgumentParser
import Database

struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Show, list, revoke, delete and link accounts: users as one team sees them.",
        discussion: """
            An account has a sub and one relay address, for all apps of a team. Consent is given to groups of apps, and is \
            revoked for one group or for all; if the user returns, sub and address are the same. Only deletion ends them, \
            permanently.
            """,
        subcommands: [Show.self, List.self, Revoke.self, Delete.self, State.self, Link.self])

    /// An account with its data in the store.
    private struct Found {
        let account: Account
        let view: AccountView
        let grants: [Grant]

        init(_ account: Account, _ store: Store) throws {
            self.account = account
            view = try AccountView(account, for: .administrator, store)
            grants = try store.grants.grants(account: account.number)
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an account and the consent it has.")

        @OptionGroup var name: AccountArgument
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (found, statuses) = try installation.withStore { store in
                let found = try Found(name.resolve(store), store)
                return (found, try store.grants.givenStatuses(account: found.account.number))
            }
            let account = found.account
            try output.print(found.view) {
                [
                    ("account", "\(account.number)"), ("team", account.teamID),
                    ("user", account.userID ?? "-"),
                    ("sub", account.sub), ("state", found.view.credentialState ?? "-"),
                    ("e-mail", account.emailKind.rawValue),
                    ("address", found.view.email ?? "-"),
                    ("name", account.sharesName ? "shared" : "not shared"),
                    ("since", timestamp(account.createdAt)),
                ]
                    + found.grants.map { grant in
                        let app = grant.group.primaryClientID ?? "(mail alone)"
                        var text =
                            "\(app) \(grant.state.rawValue) since \(timestamp(grant.firstAuthorizedAt))"
                        if let status = grant.realUserStatus {
                            text += ", real_user_status \(status)"
                        }
                        if let status = grant.priorStatus { text += ", before that \(status)" }
                        if let given = statuses[grant.number] {
                            text +=
                                ", by policy \(given.policyVersion): \(given.reasons.joined(separator: ", "))"
                        }
                        if let time = grant.revokedAt { text += ", revoked \(timestamp(time))" }
                        return ("consent", text)
                    }
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List accounts.")

        @Option(help: "Only accounts with this team.") var team: String?
        @Option(help: "Only accounts of this user.") var user: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private typealias Row = (account: Account, view: AccountView)

        func run() throws {
            try installation.withStore { store in
                try output.print(["SUB", "TEAM", "USER", "STATE", "ADDRESS", "SINCE"]) {
                    (after: Int64?) -> (rows: [Row], next: Int64?) in
                    let page = try store.accounts.page(
                        team: team, user: user, after: after, limit: OutputOptions.page)
                    let rows: [Row] = try page.rows.map {
                        (account: $0, view: try AccountView($0, for: .administrator, store))
                    }
                    return (rows, page.next)
                } json: {
                    $0.view
                } columns: { account, view in
                    [
                        account.sub, account.teamID, account.userID ?? "-",
                        view.credentialState ?? "-", view.email ?? "-",
                        timestamp(account.createdAt),
                    ]
                }
            }
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke consent to an app's group, or to every app of the team.",
            discussion: """
                All codes and tokens are revoked at once, and the app's endpoint is notified. Once no consent remains, mail \
                to the relay address is refused. If the user returns, sub and address are the same.
                """)

        @OptionGroup var name: AccountArgument
        @Option(
            help: ArgumentHelp("Only the consent to the group of this app.", valueName: "client-id")
        ) var app: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let account = try name.resolve(store)
                guard let app else {
                    let count = try store.grants.revokeAll(account: account.number, thisChange())
                    return print(
                        count == 0
                            ? "No consent to revoke."
                            : "Revoked \(count) consent\(count == 1 ? "" : "s").")
                }
                let apps = try store.apps.apps(team: account.teamID)
                guard let found = apps.first(where: { $0.clientID == app }) else {
                    throw StoreFailure.refused(
                        .notFound,
                        "team \(account.teamID) has no app \(app): see postern app list \(account.teamID)"
                    )
                }
                let isRevoked = try store.grants.revoke(
                    account: account.number, group: found.group, thisChange())
                print(isRevoked ? "Revoked." : "No consent to revoke.")
            }
        }
    }

    struct Delete: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an account permanently.",
            discussion: """
                Addresses, shared data, codes and tokens are deleted at once. sub and address are never issued again, and \
                every app that had consent is notified. For 30 days, a keyed hash of the inbox records that an account was \
                deleted.
                """)

        @OptionGroup var name: AccountArgument
        @Flag(help: "Confirm. Without it nothing is changed.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let account = try name.resolve(store)
                guard yes else {
                    throw CommandError.usage(
                        "sub and address of this account with team \(account.teamID) are deleted permanently: repeat with --yes to delete the account; "
                            + "nothing was changed")
                }
                try store.accounts.delete(account: account.number, thisChange())
                print("Deleted.")
                takeAway(from: store)
            }
        }
    }

    struct State: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the credential state that a team's backend gets for a sub.",
            discussion: "One of authorized, revoked, transferred, not_found.")

        @Argument(help: "The team's identifier.") var team: String
        @Argument(help: "The sub.") var sub: String
        @Option(help: ArgumentHelp("Only for the group of this app.", valueName: "client-id"))
        var app: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let state = try installation.withStore {
                try $0.grants.credentialState(team: team, sub: sub, clientID: app)
            }
            if output.json {
                return try printJSON(
                    ["team": team, "sub": sub, "credential_state": state.rawValue] as Members)
            }
            print(state.rawValue)
        }
    }

    struct Link: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Link an account of an external issuer to a user, so that the user's inboxes count for the account."
        )

        @Argument(help: "The account's sub.") var sub: String
        @Argument(help: "The user's identifier.") var user: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let account = try store.accounts.account(sub: sub)
                try store.accounts.link(account: account.number, user: user, thisChange())
                print("Linked.")
            }
        }
    }
}

/// Names an account by its sub, or by team and user.
struct AccountArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The account's sub; or a team and a user.", valueName: "account"))
    var words: [String]

    func validate() throws {
        guard (1...2).contains(words.count) else {
            throw ValidationError("Give one sub, or a team and a user.")
        }
    }

    func resolve(_ store: Store) throws -> Account {
        guard words.count == 2 else { return try store.accounts.account(sub: words[0]) }
        guard let account = try store.accounts.accounts(team: words[0], user: words[1]).first else {
            throw StoreFailure.refused(
                .notFound,
                "user \(words[1]) has no account with team \(words[0]): see postern account list")
        }
        return account
    }
}
