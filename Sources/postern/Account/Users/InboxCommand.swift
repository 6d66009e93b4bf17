// postern inbox: the real addresses of users.

import Accounts
import ArgumentParser
import Mail
import Relay

struct InboxCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inbox", abstract: "Add, list, show, verify and remove a user's inboxes.",
        discussion: """
            Name an inbox by its address or by its number for this user (1, 2, 3), as the list shows it. The number of a \
            removed inbox is not used again. An address on the command line is visible in the list of processes; use - to \
            read it from standard input instead.
            """,
        subcommands: [
            Add.self, List.self, Show.self, Verify.self, Confirm.self, Default.self, Remove.self,
        ])

    static func summary(_ inbox: Inbox) -> String {
        ([inbox.isVerified ? "verified" : "unverified"] + (inbox.isDefault ? ["default"] : [])
            + (inbox.isReplyOnly ? ["reply-only"] : []) + (inbox.isSuspended ? ["suspended"] : []))
            .joined(separator: ", ")
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add an inbox, and send a message to it to verify it.",
            discussion: """
                The message has a code and, with http.public_url, a link: each of them confirms the inbox; a reply does not. \
                Nothing is forwarded to an inbox until it is verified, and replies are accepted only from verified inboxes. A \
                reply-only inbox is an alias that the user writes from: nothing is ever forwarded to it. Inboxes at a relay \
                domain are refused. An inbox is verified for one user only.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The user's real address; - reads it from standard input.")
        var address: String
        @Flag(help: "The inbox is known to belong to the user.")
        var verified = false
        @Flag(help: "The user writes from it, and nothing is forwarded to it.")
        var replyOnly = false
        @Flag(help: "Do not send a message now; postern inbox verify sends it later.")
        var noMessage = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withInstallation { installation in
                // Errors in the texts or the keys are reported before anything is added.
                let mailer = verified || noMessage ? nil : try MailerFactory.mailer(installation)
                let inbox = try installation.store.inboxes.add(
                    user: user, inboxArgument(address), isVerified: verified,
                    isReplyOnly: replyOnly, thisChange())
                print("Added inbox \(inbox.number) of user \(user).")
                try mailer.map { try Self.write($0, user, inbox.number) }
            }
        }

        /// Sends the message to an inbox that was just added. An error says what to do.
        private static func write(_ mailer: InboxMailer, _ user: String, _ number: Int64) throws {
            do {
                try mailer.sendConfirmation(user: user, .number(number), thisChange())
                InboxCommand.tellNext(user, number, hasPage: mailer.settings.publicURL != nil)
            } catch let error as MailerError {
                throw CommandError(
                    status: Failure.status(error),
                    message:
                        "inbox \(number) was added, but no message could be sent to it: \(error); try postern inbox verify \(user) \(number)"
                )
            }
        }
    }

    /// Prints what to do after a message was sent.
    private static func tellNext(_ user: String, _ number: Int64, hasPage: Bool) {
        print(
            hasPage
                ? "A message with a code and a link was sent to it. The user opens the link, or enters the code on their page."
                : "A message with a code was sent to it. Enter the code that the user gives you: postern inbox confirm \(user) \(number) --code CODE"
        )
    }

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send the message to an unverified inbox again.",
            discussion:
                "The new message invalidates the previous one. verification.per_inbox and related keys limit how many are sent."
        )

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The inbox: its address or its number.")
        var inbox: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withInstallation { installation in
                let mailer = try MailerFactory.mailer(installation)
                let inbox = try mailer.sendConfirmation(user: user, inboxName(inbox), thisChange())
                InboxCommand.tellNext(user, inbox.number, hasPage: mailer.settings.publicURL != nil)
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List a user's inboxes.")

        @Argument(help: "The user's identifier.")
        var user: String
        @OptionGroup var reveal: RevealOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (inboxes, shown) = try installation.withStore {
                (
                    try $0.inboxes.inboxes(user: user),
                    try reveal.disclosure(of: "user:\(user)", in: $0)
                )
            }
            try output.print(inboxes, ["INBOX", "ADDRESS", "STATE", "SINCE"]) {
                InboxView($0, address: shown.shown($0.address))
            } columns: {
                ["\($0.number)", shown.shown($0.address), summary($0), timestamp($0.createdAt)]
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an inbox, and how it accepts its mail.",
            discussion: """
                If an inbox refuses too much mail permanently (suspension.failures, suspension.percent, suspension.days), \
                forwarding to it is suspended, and the mail waits at its senders. postern inbox confirm ends the suspension.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The inbox: its address or its number.")
        var inbox: String
        @OptionGroup var reveal: RevealOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try installation.withInstallation { installation in
                let found = try installation.store.inboxes.inbox(user: user, inboxName(inbox))
                let shown = try reveal.disclosure(of: "user:\(user)", in: installation.store)
                let days = installation.configuration.suspension?.days ?? Self.windowDays
                let standing = try installation.store.bounces.standing(
                    of: found, days: days, now: PosternClock.now())
                let failures = found.isSuspended ? found.suspendedFailures : nil
                if output.json {
                    return try printJSON(
                        ExtendedView(
                            InboxView(found, address: shown.shown(found.address)),
                            [
                                "verified_at": found.verifiedAt.map(timestamp),
                                "is_suspended": found.isSuspended,
                                "suspended_failures": failures, "failures": standing.failures,
                                "forwarded": standing.forwarded,
                                "window_days": days,
                            ]))
                }
                var lines = [
                    ("inbox", "\(found.number)"), ("user", user),
                    ("address", shown.shown(found.address)),
                    ("state", summary(found)), ("added", timestamp(found.createdAt)),
                    ("verified", found.verifiedAt.map(timestamp) ?? "never"),
                    (
                        "failures",
                        "\(standing.failures) permanently, of \(standing.forwarded) messages forwarded in \(days) days"
                    ),
                ]
                if let since = found.suspendedAt.map(timestamp), let failures {
                    lines += [
                        (
                            "suspended",
                            "since \(since), after \(failures) permanent failure\(failures == 1 ? "" : "s"); its mail waits at the senders"
                        ),
                        (
                            "to end it",
                            "when the user has shown that it accepts mail: postern inbox confirm \(user) \(found.number)"
                        ),
                    ]
                }
                Properties(lines: lines).print()
            }
        }

        /// The days that are counted if suspension is switched off.
        private static let windowDays = 14
    }

    struct Confirm: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Mark an inbox as verified: real, and the user's own.",
            discussion: """
                With --code, the code of the message that was sent to the inbox is checked. Without --code, nothing is \
                checked, and the audit says so: use it if you know that the inbox belongs to the user. If forwarding to the \
                inbox was suspended, it resumes.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The inbox: its address or its number.")
        var inbox: String
        @Option(help: "The code of the message, six digits.")
        var code: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withInstallation { installation in
                let store = installation.store
                let inbox =
                    if let code {
                        try store.verifications.confirm(
                            user: user, inboxName(inbox), code: code,
                            limits: installation.configuration.verification.limits,
                            thisChange())
                    } else {
                        try store.inboxes.confirm(user: user, inboxName(inbox), thisChange())
                    }
                print("Inbox \(inbox.number) of user \(user) is verified.")
            }
        }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send the user's mail to this verified inbox.")

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The inbox: its address or its number.")
        var inbox: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                try store.inboxes.makeDefault(user: user, inboxName(inbox), thisChange())
                print("Mail for user \(user) goes to that inbox now.")
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an inbox.",
            discussion: """
                Mail that went to it then goes to the user's oldest verified inbox. Without one it waits at its senders, and \
                comes back to them after days: removing the last one needs --yes.
                """)

        @Argument(help: "The user's identifier.")
        var user: String
        @Argument(help: "The inbox: its address or its number.")
        var inbox: String
        @Flag(help: "Confirm that without this inbox the user's mail is not delivered.") var yes =
            false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let name = try inboxName(inbox)
                let removed = try store.inboxes.inbox(user: user, name)
                func isLed(_ inbox: Inbox) -> Bool { inbox.isVerified && !inbox.isReplyOnly }
                let others = try store.inboxes.inboxes(user: user).filter {
                    $0.number != removed.number
                }
                if isLed(removed), !others.contains(where: isLed), !yes {
                    throw CommandError.usage(
                        "without this inbox, mail to the relay addresses of user \(user) is not delivered: add and verify another first, or "
                            + "repeat with --yes; nothing was changed")
                }
                try store.inboxes.remove(user: user, name, thisChange())
                print("Removed the inbox of user \(user).")
                if !others.contains(where: isLed) {
                    Failure.warn(
                        "user \(user) has no verified inbox\(isLed(removed) ? " now" : ""): mail to the user's relay addresses is not delivered"
                    )
                }
            }
        }
    }
}
