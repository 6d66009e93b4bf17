// postern account: users as teams see them.

import ArgumentParser
import PosternStore

struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Show, list, revoke, delete and link accounts: users as one team sees them.",
        discussion: """
            An account has a sub and one relay address, for all apps of a team. Consent is given to groups of apps, and is \
            revoked for one group or for all; on return, sub and address are the same. Only deletion ends them, permanently.
            """,
        subcommands: [Show.self, List.self, Revoke.self, Delete.self, State.self, Link.self])

    struct Consent: Encodable {
        let clientId: String?
        let state: String
        let realUserStatus: Int?
        let priorStatus: Int?
        let firstAuthorizedAt: String
        let lastAuthorizedAt: String
        let revokedAt: String?

        init(_ grant: Grant) {
            clientId = grant.group.primaryClientID
            state = grant.state.rawValue
            realUserStatus = grant.realUserStatus
            priorStatus = grant.priorStatus
            firstAuthorizedAt = timestamp(grant.firstAuthorizedAt)
            lastAuthorizedAt = timestamp(grant.lastAuthorizedAt)
            revokedAt = grant.revokedAt.map(timestamp)
        }
    }

    struct Row: Encodable {
        let account: Int64
        let team: String
        let user: String?
        let sub: String
        let credentialState: String
        let emailKind: String
        /// The relay address; nil where the account has none.
        let email: String?
        let sharesName: Bool
        let createdAt: String
        let consents: [Consent]

        init(_ account: Account, _ store: Store) throws {
            self.account = account.number
            team = account.teamID
            user = account.userID
            sub = account.sub
            credentialState = try store.grants.credentialState(team: account.teamID, sub: account.sub).rawValue
            emailKind = account.emailKind.rawValue
            email = try store.addresses.current(account: account.number)?.address.wireForm
            sharesName = account.sharesName
            createdAt = timestamp(account.createdAt)
            consents = try store.grants.grants(account: account.number).map(Consent.init)
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show an account and the consent it has.")

        @OptionGroup var name: AccountArgument
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let row = try installation.withStore { try Row(name.resolve($0), $0) }
            if output.json { return try printJSON(row) }
            var lines = [
                ("account", "\(row.account)"), ("team", row.team), ("user", row.user ?? "-"), ("sub", row.sub),
                ("state", row.credentialState),
                ("e-mail", row.emailKind), ("address", row.email ?? "-"), ("name", row.sharesName ? "shared" : "not shared"),
                ("since", row.createdAt),
            ]
            lines += row.consents.map { consent in
                var text = "\(consent.clientId ?? "(mail alone)") \(consent.state) since \(consent.firstAuthorizedAt)"
                if let status = consent.realUserStatus { text += ", real_user_status \(status)" }
                if let status = consent.priorStatus { text += ", before that \(status)" }
                if let time = consent.revokedAt { text += ", revoked \(time)" }
                return ("consent", text)
            }
            Properties(lines: lines).print()
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List accounts.")

        @Option(help: "Only accounts with this team.") var team: String?
        @Option(help: "Only those that belong to this user.") var user: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { store in
                try store.accounts.accounts(team: team, user: user).map { try Row($0, store) }
            }
            try output.print(rows, ["SUB", "TEAM", "USER", "STATE", "ADDRESS", "SINCE"]) {
                [$0.sub, $0.team, $0.user ?? "-", $0.credentialState, $0.email ?? "-", $0.createdAt]
            }
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke consent to an app's group, or to every app of the team.",
            discussion: """
                Every code and token ends at once, and the app's endpoint is notified. Once no consent remains, mail to the relay \
                address is refused. On return, sub and address are the same.
                """)

        @OptionGroup var name: AccountArgument
        @Option(help: ArgumentHelp("Only the consent to the group of this app.", valueName: "client-id")) var app: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let account = try name.resolve(store)
                guard let app else {
                    let count = try store.grants.revokeAll(account: account.number, thisChange())
                    return print(count == 0 ? "No consent to revoke." : "Revoked \(count) consent\(count == 1 ? "" : "s").")
                }
                let apps = try store.apps.apps(team: account.teamID)
                guard let found = apps.first(where: { $0.clientID == app }) else {
                    throw StoreRefusal(
                        .notFound, "team \(account.teamID) has no app \(app): see postern app list \(account.teamID)")
                }
                let isRevoked = try store.grants.revoke(account: account.number, group: found.group, thisChange())
                print(isRevoked ? "Revoked." : "No consent to revoke.")
            }
        }
    }

    struct Delete: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an account permanently.",
            discussion: """
                Addresses, what was shared, codes and tokens are gone at once; sub and address are never issued again; every \
                app that had consent is notified. For 30 days a keyed hash of the inbox remembers that an account was deleted.
                """)

        @OptionGroup var name: AccountArgument
        @Flag(help: "Do it.") var yes = false
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
                try takeAway(from: store)
                print("Deleted.")
            }
        }
    }

    struct State: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the credential state that a team's backend gets for a sub.",
            discussion: "One of authorized, revoked, transferred, not_found.")

        @Argument(help: "The team's identifier.") var team: String
        @Argument(help: "The sub.") var sub: String
        @Option(help: ArgumentHelp("For the group of this app.", valueName: "client-id")) var app: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Response: Encodable {
            let team: String
            let sub: String
            let credentialState: String
        }

        func run() throws {
            let state = try installation.withStore { try $0.grants.credentialState(team: team, sub: sub, clientID: app) }
            if output.json { return try printJSON(Response(team: team, sub: sub, credentialState: state.rawValue)) }
            print(state.rawValue)
        }
    }

    struct Link: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Link an account of an external issuer with a user, so that the user's inboxes count for it.")

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
        guard (1...2).contains(words.count) else { throw ValidationError("Give one sub, or a team and a user.") }
    }

    func resolve(_ store: Store) throws -> Account {
        guard words.count == 2 else { return try store.accounts.account(sub: words[0]) }
        guard let account = try store.accounts.accounts(team: words[0], user: words[1]).first else {
            throw StoreRefusal(.notFound, "user \(words[1]) has no account with team \(words[0]): see postern account list")
        }
        return account
    }
}
