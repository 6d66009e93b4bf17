// postern audit: the changes, with actor and time.

import Accounts
import ArgumentParser

struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "List administrative changes, or report who saw what.",
        discussion: """
            Without a subcommand, it lists the changes.

            The actor is uid:N for commands (with sudo:N for the user who called sudo), key:ID for the HTTP API, client:ID \
            for an app with its own access token. All entries of one postern apply have the same actor, as in uid:N \
            apply:XXXX; one of them is declaration.apply. Subjects and details hold identifiers, and the domain or address \
            of a source; never a user's inbox or name.
            """,
        subcommands: [List.self, Report.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List administrative changes, the newest first.")

        @Option(
            help: ArgumentHelp(
                "Only changes since then: 12h, 7d, 8w, or a date as in 2026-11-01.",
                valueName: "when"))
        var since: String?
        @Option(
            help: ArgumentHelp(
                "Only by this actor; key:* means all that begin with key:.", valueName: "actor"))
        var actor: String?
        @Option(
            help: ArgumentHelp(
                "Only this action, as in team.add; team.* means all that begin with team.",
                valueName: "action"))
        var action: String?
        @Option(
            help: ArgumentHelp(
                "Only of this subject, as in team:juice; key:* means all that begin with key:.",
                valueName: "subject"))
        var subject: String?
        @Option(help: ArgumentHelp("Only of this user and the user's accounts.", valueName: "user"))
        var user: String?
        @Option(help: ArgumentHelp("The maximum number of entries.", valueName: "number"))
        var limit = 100
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            guard (1...1_000_000).contains(limit) else {
                throw CommandError.usage("--limit must be a number from 1 to 1000000")
            }
            let start = try since.map { try ExpiryText.start($0, now: PosternClock.now()) }
            try installation.withInstallation { installation in
                let (store, listings) = (installation.store, installation.listings)
                var left = limit
                var isMore = false
                var isEmpty = true
                let subjects = try user.map { try store.audit.subjects(ofUser: $0) }
                try output.print(["AT", "ACTOR", "ACTION", "SUBJECT", "DETAIL"]) {
                    (before: Int64?) -> (rows: [AuditEntry], next: Int64?) in
                    // One more than the limit, to know whether more exist.
                    let page = try listings.audit.page(
                        since: start ?? 0, actor: actor, action: action, subject: subject,
                        subjects: subjects, before: before,
                        limit: left + 1)
                    let rows = page.rows.prefix(left)
                    left -= rows.count
                    isMore = page.rows.count > rows.count
                    if !rows.isEmpty { isEmpty = false }
                    return (Array(rows), isMore ? nil : page.next)
                } json: {
                    [
                        "number": $0.number, "at": timestamp($0.at), "actor": $0.actor,
                        "action": $0.action, "subject": $0.subject,
                        "detail": $0.detail,
                    ] as Members
                } columns: {
                    [timestamp($0.at), $0.actor, $0.action, $0.subject, $0.detail]
                }
                // Without this check, a mistyped name would look as if nothing had been done.
                if isEmpty, let user { _ = try store.users.user(user) }
                if isEmpty, let action, try !store.audit.hasAction(action) {
                    Failure.warn(
                        "no entry has the action \(action): postern audit list without --action shows their names"
                    )
                }
                if isMore { Limit.remark(limit, "entry", "entries") }
            }
        }
    }

    struct Report: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Report who saw personal data in a year, by month, administrator and reason.",
            discussion: """
                Counts the uses of --reveal, of postern trace --reveal and of postern hold export, and the different users, \
                accounts or holds that they were used for. It names none of them, and no inbox. Months are in UTC. Of months \
                older than the audit (postern retention show) nothing is left.
                """)

        @Option(
            name: .customLong("reveals"),
            help: ArgumentHelp("The year, as in 2026.", valueName: "year"))
        var year: Int
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard AuditRepository.years.contains(year) else {
                throw ValidationError("--reveals: a year as in 2026")
            }
        }

        func run() throws {
            let counts = try installation.withListings { try $0.audit.reveals(year: year) }
            func month(_ count: RevealCount) -> String {
                "\(year)-\(count.month < 10 ? "0" : "")\(count.month)"
            }
            try output.print(
                counts, ["MONTH", "ACTOR", "ACTION", "USES", "SUBJECTS", "REASON"]
            ) {
                [
                    "month": month($0), "actor": $0.actor, "action": $0.action.rawValue,
                    "uses": $0.uses, "subjects": $0.subjects,
                    "reason": Members.orNull($0.reason),
                ] as Members
            } columns: {
                [
                    month($0), $0.actor, $0.action.rawValue, "\($0.uses)", "\($0.subjects)",
                    $0.reason ?? "none given",
                ]
            }
        }
    }
}
