// Decisions for people to review, with facts about the account: no address, no name, nothing of
// another team.

/// Why a decision is listed.
package enum ReviewCause: String, Sendable, Hashable, CaseIterable {
    /// It required a check that no one completed within `CheckRecord.timeout`.
    case incomplete
    /// A rule with `review: true` matched.
    case rule
    /// The user objected.
    case objection
}

/// A decision for review.
package struct ReviewItem: Sendable, Hashable {
    package let decision: LoggedDecision
    /// In the order of `ReviewCause`; not empty.
    package let causes: [ReviewCause]
    /// When the user objected, seconds since 1970.
    package let objectedAt: Int64?
    package let notes: Int
}

/// Selects the decisions to list.
package struct ReviewFilter: Sendable {
    /// Evaluated at or after, seconds since 1970.
    package var since: Int64
    /// A team's identifier.
    package var team: String?
    /// Nil: any.
    package var cause: ReviewCause?
    /// Whether to include labelled decisions, which were already reviewed.
    package var includesLabelled = false

    package init(
        since: Int64, team: String? = nil, cause: ReviewCause? = nil, includesLabelled: Bool = false
    ) {
        (self.since, self.team, self.cause, self.includesLabelled) = (
            since, team, cause, includesLabelled
        )
    }
}

/// A person's note about a decision.
package struct ReviewNote: Sendable, Hashable {
    package let decisionID: String
    /// The same name as in the audit.
    package let actor: String
    package let text: String
    /// Seconds since 1970.
    package let at: Int64
}

/// A rule that does not require a check of an account until a time.
package struct RuleSnooze: Sendable, Hashable {
    package let policy: String
    package let rule: String
    package let reason: String
    /// Seconds since 1970, as `expiresAt`.
    package let createdAt: Int64
    package let expiresAt: Int64
}

/// An account at a group of apps, as far as reviewers may see it.
package struct ReviewStory: Sendable {
    /// The decision that was requested.
    package let decision: LoggedDecision
    package let objectedAt: Int64?
    /// The user's text; nil if there is none. It contains no address.
    package let objection: String?
    /// Nil if the decision has no account of this installation, or the account was deleted.
    package let account: ReviewAccount?
    /// The account's decisions, the newest first, this one included; only this one
    /// where there is no account.
    package let decisions: [LoggedDecision]
    package let notes: [ReviewNote]
    /// The snoozes in force.
    package let snoozes: [RuleSnooze]
}

/// The facts and counts of an account at the beginning of a story. Times are seconds since 1970.
package struct ReviewAccount: Sendable, Hashable {
    /// The store's number, as in `postern account show`.
    package let number: Int64
    package let isAuthorized: Bool
    package let firstAuthorizedAt: Int64
    package let revokedAt: Int64?
    package let realUserStatus: Int?
    package let signUpCheck: SignUpCheck
    /// Requests about it in the log.
    package let questions: Int
    package let asked: Int
    package let passed: Int
    package let legitimate: Int
    package let fraudulent: Int
    package let objections: Int
    /// Of the last 30 days.
    package let replies: Int
    package let bounces: Int
    package let rejoins: Int
}
