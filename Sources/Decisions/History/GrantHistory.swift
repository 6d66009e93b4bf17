// A grant with all facts about it that a request needs.

import Accounts
import Database

/// The name by which a grant is looked up.
package enum GrantSubject: Sendable, Hashable {
    /// The `sub` that Postern gave the account.
    case own(sub: String)
    /// The subject of an external issuer's verified token.
    case external(issuer: String, subject: String)
    /// A name that a backend sent without a token: either of the two.
    case named(String)
}

/// Whether the check that sign-up required is still outstanding.
package enum SignUpCheck: String, SQLCodable, Sendable, Hashable {
    case none, pending, passed
}

/// The time of the last pass, by the kinds that have a signal. Seconds since 1970; nil: never.
package struct LastPasses: Sendable, Hashable {
    package var humanCheck: Int64?
    package var emailCode: Int64?
    package var reauthenticate: Int64?
    /// Of any kind, carried out by the page, and not by a proof of work.
    package var observed: Int64?
    /// A `human_check` that a proof of work passed. It counts as nothing else.
    package var proofOfWork: Int64?

    package init(
        humanCheck: Int64? = nil, emailCode: Int64? = nil, reauthenticate: Int64? = nil,
        observed: Int64? = nil, proofOfWork: Int64? = nil
    ) {
        self.humanCheck = humanCheck
        self.emailCode = emailCode
        self.reauthenticate = reauthenticate
        self.observed = observed
        self.proofOfWork = proofOfWork
    }
}

/// A rule that must not require a check of an account for now.
package struct SnoozedRule: Sendable, Hashable {
    /// The policy's name.
    package let policy: String
    /// The rule's id.
    package let rule: String

    package init(policy: String, rule: String) {
        self.policy = policy
        self.rule = rule
    }
}

/// The result of one read about a grant, its account and its inbox. Times are seconds since 1970.
package struct GrantHistory: Sendable, Hashable {
    /// The grant itself; nil if the account never consented to this group of apps.
    package struct GrantFacts: Sendable, Hashable {
        package var number: Int64
        package var isAuthorized: Bool
        package var firstAuthorizedAt: Int64
        package var lastAuthorizedAt: Int64
        package var revokedAt: Int64?
        package var realUserStatus: Int?
        package var priorStatus: Int?
        package var signUpCheck: SignUpCheck
        /// Nil: no request named it since its last authorization.
        package var firstAskedAt: Int64?
        /// Last sign-in to the app, or last request that did not require a check.
        package var lastSeenAt: Int64?
        /// Start of the visit in which it was last seen; nil if unknown.
        package var visitAt: Int64?
        /// When it was last seen before that visit; nil if unknown.
        package var earlierSeenAt: Int64?
        package var transferredAt: Int64?

        /// When it was last seen before this visit. A visit lasts a day, with any number of
        /// requests.
        package func seenBefore(_ now: Int64) -> Int64 {
            let last = lastSeenAt ?? lastAuthorizedAt
            return visit(now) == nil ? last : earlierSeenAt ?? last
        }

        /// When this visit began; nil if the last one is over.
        package func visit(_ now: Int64) -> Int64? {
            let began = visitAt ?? lastSeenAt ?? lastAuthorizedAt
            return now - began >= Grant.day ? nil : began
        }
    }

    /// Counts that span teams; nil if the account has no inbox at this installation.
    package struct InboxFacts: Sendable, Hashable {
        /// Sign-ups of the last 24 hours, including this account's own if it was counted.
        package var signUps24h: Int64
        /// Whether this account's own sign-up is among them.
        package var isOwnSignUpCounted: Bool
        /// Nil if deletions are unknown.
        package var deletions30d: Int64?
        package var bounces7d: Int64

        package init(
            signUps24h: Int64, isOwnSignUpCounted: Bool, deletions30d: Int64?, bounces7d: Int64
        ) {
            self.signUps24h = signUps24h
            self.isOwnSignUpCounted = isOwnSignUpCounted
            self.deletions30d = deletions30d
            self.bounces7d = bounces7d
        }
    }

    package var accountNumber: Int64
    package var userNumber: Int64?
    /// Whether it belongs to an external issuer and is not linked to a user.
    package var isExternal: Bool
    package var grant: GrantFacts?
    /// Whether the grant moved with its app to another team.
    package var isTransferred = false
    /// Whether mail can reach the person; nil if unknown.
    package var hasEmail: Bool?
    package var isForwardingOn: Bool?
    package var isManaged: Bool?
    package var bounces7d: Int64
    package var userReplies30d: Int64
    package var forwardingToggles7d: Int64
    package var rejoins30d: Int64
    /// Number of events from identity providers about the account, and the last
    /// event within the same time.
    package var riskEvents30d: Int64 = 0
    package var lastRiskEvent: String?
    package var inbox: InboxFacts?
    /// A keyed hash of the inbox, used for counting.
    package var inboxMark: [UInt8]?
    /// Class of the inbox's domain; nil if it was not requested, or if there is no inbox.
    package var domainClass: DomainClass?
    package var failedChecks24h: Int64
    /// Those that a proof of work passed are not among them.
    package var passedChecks90d: Int64
    /// Of those, the ones that the page carried out.
    package var observedChecks90d: Int64
    package var lastPasses: LastPasses
    /// Rules that must not require a check for the grant now.
    package var snoozes: [SnoozedRule] = []
}
