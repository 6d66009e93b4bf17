// postern user: the people whose inboxes are hidden.

import Accounts
import ArgumentParser
import Database
import Foundation
import InternetMessage
import Mail
import PosternConfiguration
import Relay
import SignIn

struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Add, list, find, show, freeze, recover and remove users.",
        discussion: """
            Inbox addresses and names are sealed in the database. On your terminal they show as l…@example.com unless \
            you ask with --reveal; they never show in logs, in the audit or in error messages.
            """,
        subcommands: [
            Add.self, List.self, Find.self, Show.self, FreezeUser.self, UnfreezeUser.self,
            Recover.self, Remove.self,
        ])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a user with a first inbox.",
            discussion:
                "Nothing is forwarded to an inbox until it is verified: --verified says that you know it belongs to the user."
        )

        @Argument(
            help:
                "The user's identifier, of your choice; stored in clear text, so do not use an email address."
        )
        var user: String
        @Option(
            help: ArgumentHelp(
                "The user's real address; - reads it from standard input.", valueName: "address"))
        var inbox: String
        @Flag(help: "The inbox is known to belong to the user.")
        var verified = false
        @Option(help: "The user's name.")
        var name: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                _ = try store.users.add(
                    id: user, name: name, inbox: inboxArgument(inbox), isVerified: verified,
                    thisChange())
                let number = try store.inboxes.inboxes(user: user).first?.number ?? 0
                print(
                    "Added user \(user)."
                        + (verified ? "" : " Next: postern inbox verify \(user) \(number)"))
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List users.")

        @OptionGroup var reveal: RevealOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                let shown = try reveal.disclosure(of: "users", in: store)
                try output.print(["USER", "NAME", "SINCE"]) {
                    (after: String?) -> (rows: [User], next: String?) in
                    let users = try store.users.all(after: after ?? "", limit: OutputOptions.page)
                    return (users, users.count < OutputOptions.page ? nil : users.last?.id)
                } json: {
                    UserView($0, name: shown.shown(name: $0.name))
                } columns: {
                    [$0.id, shown.shown(name: $0.name) ?? "-", timestamp($0.createdAt)]
                }
            }
        }
    }

    struct Find: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Find the user to whom an inbox, an address at a relay domain or a sub belongs.",
            discussion: """
                Prints user, account and the matching item. An inbox that is not verified may be with several users. Then: \
                postern user show USER, postern decision list --user USER, postern trace ADDRESS.
                """)

        @Argument(
            help:
                "An inbox's address, an address at a relay domain, a sub or an identifier; - reads it from standard input."
        )
        var text: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let user: String
            let sub: String?
            let foundBy: String
        }

        func run() throws {
            let text =
                text == "-" ? try lineOfInput("give an address or a sub on standard input") : text
            let rows = try installation.withInstallation { try find(text, $0) }
            guard !rows.isEmpty else {
                // The argument may be an inbox, so the message does not repeat it.
                throw CommandError(
                    status: EX_NOINPUT, message: "no user has this address, sub or identifier")
            }
            try output.print(rows, ["USER", "SUB", "FOUND BY"]) {
                [$0.user, $0.sub ?? "-", $0.foundBy]
            }
        }

        private func find(_ text: String, _ installation: Installation) throws -> [Row] {
            let store = installation.store
            func row(_ account: Account, _ what: String) -> Row {
                Row(
                    user: account.userID ?? "-", sub: account.sub,
                    foundBy: "\(what) of team \(account.teamID)")
            }
            func known<Value>(_ body: () throws(StoreFailure) -> Value) throws -> Value? {
                do throws(StoreFailure) { return try body() } catch
                    where error.code == .refused(.notFound)
                { return nil }
            }
            guard text.utf8.contains(UInt8(ascii: "@")) else {
                if let account = try known({ () throws(StoreFailure) in
                    try store.accounts.account(sub: text)
                }) {
                    return [row(account, "sub")]
                }
                let user = try known { () throws(StoreFailure) in try store.users.user(text) }
                return user.map { [Row(user: $0.id, sub: nil, foundBy: "identifier")] } ?? []
            }
            let address = try AddrSpec.typed(text)
            if let found = try known({ () throws(StoreFailure) in
                try store.addresses.address(address)
            }) {
                return [
                    row(
                        found.account,
                        found.retiredAt != nil ? "retired relay address" : "relay address")
                ]
            }
            if let number = DecodedAddress.account(of: address, installation) {
                return [row(try store.accounts.account(number), "reverse address or return path")]
            }
            func rows(_ owners: [InboxOwner], _ more: String = "") -> [Row] {
                owners.map {
                    Row(
                        user: $0.userID, sub: nil,
                        foundBy:
                            "inbox \($0.number), \($0.isVerified ? "verified" : "not verified")\(more)"
                    )
                }
            }
            let exact = rows(try store.inboxes.owners(of: InboxAddress(address)))
            return exact.isEmpty
                ? rows(
                    try store.inboxes.owners(of: InboxAddress(address), anySpelling: true),
                    ", in another spelling") : exact
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a user with inboxes and relay addresses.")

        @Argument(help: "The user's identifier.")
        var user: String
        @OptionGroup var reveal: RevealOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withStore { store in
                let found = try store.users.user(user)
                let inboxes = try store.inboxes.inboxes(user: user)
                let addresses = try store.addresses.addresses(user: user)
                let freeze = try store.freezes.freeze(of: .user(user))
                let shown = try reveal.disclosure(of: "user:\(user)", in: store)
                if output.json {
                    return try printJSON(
                        UserView(
                            found, name: shown.shown(name: found.name), freeze: freeze,
                            inboxes: inboxes.map {
                                InboxView($0, address: shown.shown($0.address))
                            },
                            addresses: addresses.map(AddressView.whole)))
                }
                var lines = [
                    ("user", found.id), ("name", shown.shown(name: found.name) ?? "-"),
                    ("since", timestamp(found.createdAt)),
                ]
                if let freeze { lines.append(("frozen", freeze.summary)) }
                lines += inboxes.map {
                    ("inbox", "\($0.number) \(shown.shown($0.address)) \(InboxCommand.summary($0))")
                }
                lines += addresses.map {
                    ("address", "\($0.address.wireForm) team \($0.account.teamID) \($0.state)")
                }
                Properties(lines: lines).print()
            }
        }
    }

    struct Recover: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let a user in again who lost the second factor.",
            discussion: """
                Removes the user's authenticator app and all passkeys, and ends all sessions. The user signs in by a code to an \
                inbox then, and makes a new second factor where one is required. Make sure first that it is the user who asks: \
                a thief of the inbox would ask the same. A message tells the user's inbox.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @Option(help: "Why, for the audit; it is stored in clear text.")
        var reason: String
        @Flag(help: "Confirm.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            guard AuditReason.isAllowed(reason) else {
                throw CommandError.usage("--reason: \(AuditReason.rule); nothing was changed")
            }
            try installation.withInstallation { installation in
                let store = installation.store
                _ = try store.users.user(user)
                guard yes else {
                    throw CommandError.usage(
                        "this removes every second factor of user \(user) and ends all sessions: repeat with --yes to do so; "
                            + "nothing was changed")
                }
                try store.authenticators.recover(user: user, reason: reason, thisChange())
                print("User \(user) signs in by a code to an inbox now.")
                let inbox = try store.inboxes.inboxes(user: user).first {
                    $0.isDefault && $0.isVerified
                }?.address
                guard let inbox else {
                    return Failure.note("The user has no confirmed inbox, so no message was sent.")
                }
                let mailer = try MailerFactory.mailer(installation)
                let language = try mailer.language(of: user)
                do {
                    try mailer.tell(.recovery, to: inbox, in: language, now: PosternClock.now())
                } catch let error as MailerError {
                    Failure.warn("no message could be sent: \(error); tell the user yourself")
                }
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a user, and the user's inboxes, name, accounts and relay addresses.",
            discussion: "Mail to the user's relay addresses is then refused as unknown.")

        @Argument(help: "The user's identifier.")
        var user: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let dependents = try store.users.dependents(user)
                try confirmation.check(
                    "user \(user)",
                    takes: [
                        (dependents.inboxes, "inbox"), (dependents.accounts, "account"),
                        (dependents.addresses, "relay address"),
                    ], isFinal: true)
                try store.users.remove(user, thisChange())
                print("Removed user \(user).")
                takeAway(from: store)
            }
        }
    }
}
