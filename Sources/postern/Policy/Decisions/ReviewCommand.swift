// postern review: decisions for review by people, with histories, labels, notes and snoozes.

import Accounts
import ArgumentParser
import Decisions
import Foundation

struct ReviewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "review",
        abstract:
            "Review decisions, label them, write notes, and stop a rule from asking an account.",
        discussion: """
            The list has decisions that asked for a check that no one completed within an hour, decisions in which a rule \
            with review: true matched, and decisions to which the user objected. A decision that gets a label is no longer \
            in the list.
            """,
        subcommands: [List.self, Show.self, DecisionCommand.Label.self, Note.self, Snooze.self])

    private static func members(_ item: ReviewItem) -> Members {
        let record = item.decision.record
        return [
            "decision_id": record.id, "evaluated_at": timestamp(record.evaluatedAt),
            "team": item.decision.teamID,
            "event": record.event, "decision": record.decision, "asked": record.asked,
            "reasons": record.reasons,
            "causes": item.causes.map(\.rawValue), "objected_at": item.objectedAt.map(timestamp),
            "label": item.decision.label?.rawValue, "notes": item.notes,
        ]
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List decisions to review, the newest first.")

        @OptionGroup var period: PeriodOptions
        @Option(help: "Only for this cause: incomplete, rule or objection.") var cause: ReviewCause?
        @Flag(help: "Include decisions that have a label.") var all = false
        @Option(help: "The maximum number of rows.") var limit = 50
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if limit < 1 { throw ValidationError("--limit must be 1 or more.") }
        }

        func run() throws {
            let now = PosternClock.now()
            let filter = ReviewFilter(
                since: try period.filter(now: now).since ?? 0, team: period.team, cause: cause,
                includesLabelled: all)
            let (items, isMore) = try installation.withStore { store in
                try Limit.read(limit) { try store.reviews.list(filter, limit: $0, now: now) }
            }
            defer { if isMore { Limit.remark(limit, "decision") } }
            try output.print(
                items,
                ["TIME", "DECISION", "TEAM", "EVENT", "ASKED BY", "CAUSE", "LABEL", "NOTES"],
                json: ReviewCommand.members
            ) { item in
                let record = item.decision.record
                return [
                    timestamp(record.evaluatedAt), record.id, item.decision.teamID, record.event,
                    record.asked.isEmpty ? "-" : record.asked.joined(separator: " "),
                    item.causes.map(\.rawValue).joined(separator: " "),
                    item.decision.label?.rawValue ?? "-", "\(item.notes)",
                ]
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a decision and the history of its account.",
            discussion:
                "It has no personal data: the account is a number. postern decision show has the signals of a decision."
        )

        @Argument(help: "The decision's id, as in rd_….") var id: String
        @Flag(help: "Show the expression behind each sentence.") var source = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (found, policy) = try installation.withStore { store in
                let story = try store.reviews.story(id, now: PosternClock.now())
                let hash = story?.decision.record.policyHash
                return (
                    story,
                    hash.flatMap { try? LoadedPolicy(try store.policies.policy(hash: $0)).policy }
                )
            }
            guard let story = found else {
                throw CommandError.noInput(
                    "no decision has the id \(id.prefix(64)): see postern review list")
            }
            if output.json { return try printJSON(Self.members(story)) }
            print(StoryText(story, policy: policy, showsSource: source).text)
        }

        private static func members(_ story: ReviewStory) -> Members {
            let account = story.account.map { account -> Members in
                [
                    "account": account.number, "authorized": account.isAuthorized,
                    "first_authorized_at": timestamp(account.firstAuthorizedAt),
                    "revoked_at": account.revokedAt.map(timestamp),
                    "real_user_status": account.realUserStatus,
                    "signup_check": account.signUpCheck.rawValue,
                    "questions": account.questions, "asked": account.asked,
                    "passed": account.passed,
                    "legitimate": account.legitimate, "fraudulent": account.fraudulent,
                    "objections": account.objections,
                    "replies_30d": account.replies, "bounces_30d": account.bounces,
                    "rejoins_30d": account.rejoins,
                ]
            }
            let notes = story.notes.map { note -> Members in
                [
                    "decision_id": note.decisionID, "at": timestamp(note.at), "by": note.actor,
                    "note": note.text,
                ]
            }
            let snoozes = story.snoozes.map { snooze -> Members in
                [
                    "policy": snooze.policy, "rule": snooze.rule, "reason": snooze.reason,
                    "since": timestamp(snooze.createdAt),
                    "until": timestamp(snooze.expiresAt),
                ]
            }
            return [
                "decision_id": story.decision.record.id, "team": story.decision.teamID,
                "client_id": story.decision.record.clientID,
                "objected_at": story.objectedAt.map(timestamp),
                "objection": story.objection,
                "account": account,
                "decisions": story.decisions.map(DecisionCommand.members), "notes": notes,
                "snoozes": snoozes,
            ]
        }
    }

    struct Note: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write a note about a decision.",
            discussion: """
                A note is kept for as long as the decision. Do not write names or addresses in it: the user's own data \
                download contains it.
                """)

        @Argument(help: "The decision's id, as in rd_….") var id: String
        @Argument(help: "The note, in one line.") var text: String
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore {
                try $0.reviews.note(decision: id, text: text, thisChange())
            }
            print("Noted.")
        }
    }

    struct Snooze: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop a rule from asking an account until a date.",
            discussion: """
                The account is that of the decision. The guarantees of the policy still apply. --end lets the rule ask again.

                The reason is in the audit, and the user's own data download contains it: do not write names or addresses in it.
                """)

        @Argument(help: "The decision's id, as in rd_….") var id: String
        @Option(help: "The rule that asked. Not needed if only one rule asked.") var rule: String?
        @Option(help: ArgumentHelp("Until when: 30d, 12h, or a date.", valueName: "time"))
        var until: String?
        @Option(help: "The reason, in one line.") var reason = ""
        @Flag(help: "Let the rule ask again.") var end = false
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            guard (until != nil) != end else { throw ValidationError("Give --until or --end.") }
            guard end || !reason.isEmpty else { throw ValidationError("Give a --reason.") }
        }

        func run() throws {
            let change = thisChange()
            let expiresAt = try until.map { try ExpiryText.seconds($0, now: change.now) }
            if let expiresAt, expiresAt == nil {
                throw CommandError.usage(
                    "a rule cannot be snoozed without an end: give a time, or change the policy instead"
                )
            }
            let (snoozed, policy) = try installation.withStore {
                try $0.reviews.snooze(
                    decision: id, rule: rule, reason: reason, until: expiresAt ?? nil, change)
            }
            if let end = expiresAt ?? nil {
                print(
                    "Rule \(snoozed) of \(policy) does not ask this account until \(timestamp(end))."
                )
            } else {
                print("Rule \(snoozed) of \(policy) asks this account again.")
            }
        }
    }
}

extension ReviewCause: ExpressibleByArgument {}
