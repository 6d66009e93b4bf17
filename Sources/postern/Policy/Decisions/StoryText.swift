// The history that `postern review show` prints, for people.

import Decisions
import RiskPolicy
import Support

struct StoryText {
    private let story: ReviewStory
    /// The policy at the time of the decision; nil if it is not kept.
    private let policy: Policy?
    private let showsSource: Bool

    init(_ story: ReviewStory, policy: Policy? = nil, showsSource: Bool = false) {
        (self.story, self.policy, self.showsSource) = (story, policy, showsSource)
    }

    var text: String {
        let record = story.decision.record
        var lines = [
            "Decision \(record.id) of team \(story.decision.teamID), app \(record.clientID)"
        ]
        if let at = story.objectedAt {
            lines.append(
                "The user objected to it at \(timestamp(at))\(story.objection == nil ? "." : ":")")
            lines += (story.objection ?? "").split(separator: "\n").map { "  \($0)" }
        }
        lines += rules
        if let account = story.account {
            lines += ["", Self.account(account)] + Self.counts(account)
        } else {
            lines += ["", "The account is not known, or is no longer known."]
        }
        lines += ["", "Decisions, the newest first:"] + story.decisions.map(Self.line)
        if let account = story.account, account.questions > story.decisions.count {
            lines.append("  and \(Count.text(account.questions - story.decisions.count)) more")
        }
        if !story.snoozes.isEmpty {
            lines += ["", "Rules that do not ask it:"]
            lines += story.snoozes.map {
                "  \($0.rule) of \($0.policy) until \(timestamp($0.expiresAt)): \($0.reason)"
            }
        }
        if !story.notes.isEmpty {
            lines +=
                ["", "Notes:"]
                + story.notes.map {
                    "  \(timestamp($0.at))  \($0.actor)  \($0.decisionID): \($0.text)"
                }
        }
        return lines.joined(separator: "\n")
    }

    /// The rules that required verification, or that put the decision on the review list.
    private var rules: [String] {
        guard let policy else { return [] }
        let record = story.decision.record
        let ids = record.asked + record.shadow + record.waived
        let rules = policy.rules.filter {
            ids.contains($0.id) && (record.asked.contains($0.id) || $0.isForReview)
        }
        return rules.isEmpty
            ? [] : ["", "Rules:"] + RuleWords(policy).lines(rules, showsSource: showsSource)
    }

    private static func account(_ account: ReviewAccount) -> String {
        let status =
            account.realUserStatus.map {
                ["unsupported", "unknown", "likely real"][min(2, max(0, $0))]
            } ?? "none given"
        let end =
            account.revokedAt.map { account.isAuthorized ? "" : ", left \(timestamp($0))" } ?? ""
        let pending = account.signUpCheck == .pending ? ", the check at sign-up is outstanding" : ""
        return
            "Account \(account.number): signed up \(timestamp(account.firstAuthorizedAt))\(end); status: \(status)\(pending)"
    }

    private static func counts(_ account: ReviewAccount) -> [String] {
        [
            "  questions \(account.questions), asked \(account.asked), completed \(account.passed), objections \(account.objections)",
            "  labelled legitimate \(account.legitimate), fraudulent \(account.fraudulent)",
            "  30 days: answers to mail \(account.replies), bounces \(account.bounces), returns \(account.rejoins)",
        ]
    }

    private static func line(_ logged: LoggedDecision) -> String {
        let record = logged.record
        var words = [timestamp(record.evaluatedAt), record.id, record.event, record.decision]
        if !record.asked.isEmpty { words.append("by " + record.asked.joined(separator: " ")) }
        if !record.snoozed.isEmpty {
            words.append("snoozed " + record.snoozed.joined(separator: " "))
        }
        if !logged.outcomeWords.isEmpty { words.append(logged.outcomeWords.joined(separator: " ")) }
        if let label = logged.label { words.append("labelled \(label.rawValue)") }
        return "  " + words.joined(separator: "  ")
    }
}
