// Decisions as they are logged, and the changes of a decision to a grant.

import Database
import SignIn

/// One decision in the log. Contains no token and no address; the grant's number replaces the
/// `sub`.
package struct DecisionRecord: Sendable, Hashable {
    /// `rd_` and 26 random characters.
    package var id: String
    package var teamNumber: Int64
    package var clientID: String
    /// The grant that the request named; nil if there is none, or if it was deleted.
    package var grantNumber: Int64?
    /// Keyed hash of the app's own account, for an upgrade that begins without a `sub`.
    package var appAccountMark: [UInt8]?
    /// The event as the backend named it.
    package var claimedEvent: String
    /// The event as Postern determined it.
    package var event: String
    /// `allow` or `require_verification`.
    package var decision: String
    /// Kinds offered, weakest first.
    package var challenges: [String]
    /// Reason codes for the operator.
    package var reasons: [String]
    /// Reason codes as sent to the team.
    package var wireReasons: [String]
    /// Ids of rules that required a check.
    package var asked: [String]
    /// Ids of skip rules that matched.
    package var skips: [String]
    /// Ids of require rules that matched and were waived.
    package var waived: [String]
    /// Ids of rules whose result is missing.
    package var missing: [String]
    /// Ids of rules that ended in an error, and of kinds whose `unavailable_when` ended in one.
    package var errors: [String]
    /// The first of these errors with the reason, one line each: `rule: division by zero`. They
    /// contain no value of a signal.
    package var errorTexts: [String]
    /// Ids of shadow rules that would have counted.
    package var shadow: [String]
    /// Ids of rules that would have required a check, but were snoozed for the account.
    package var snoozed: [String]
    /// Whether a rule with `review: true` matched.
    package var isForReview: Bool
    /// The text of the guarantee that overrode the rules.
    package var overriddenBy: String?
    /// The resolved signals as a JSON object by dotted name; `context.*` as keyed hashes.
    package var signals: String
    package var policyName: String
    package var policyVersion: String
    /// `sha256:` and 64 digits.
    package var policyHash: String
    /// 0, 1, 2; nil if the person never had one.
    package var realUserStatus: Int?
    /// `authorized`, `revoked`, `not_found`, `transferred`; `unknown` if the store was unavailable,
    /// or if the request named no account.
    package var credentialState: String
    /// For upgrades: `success`, `two_factor_required` or `failure`.
    package var upgradeResult: String?
    package var isDegraded: Bool
    /// Seconds since 1970.
    package var evaluatedAt: Int64
    /// Seconds since 1970; the answer is no longer valid from then on.
    package var expiresAt: Int64

    /// Whether the decision required a check.
    package var isAsked: Bool { decision != "allow" }

    package init(
        id: String, teamNumber: Int64, clientID: String, grantNumber: Int64? = nil,
        appAccountMark: [UInt8]? = nil,
        claimedEvent: String, event: String, decision: String, challenges: [String] = [],
        reasons: [String] = [],
        wireReasons: [String] = [], asked: [String] = [], skips: [String] = [],
        waived: [String] = [], missing: [String] = [],
        errors: [String] = [], errorTexts: [String] = [], shadow: [String] = [],
        snoozed: [String] = [],
        isForReview: Bool = false,
        overriddenBy: String? = nil, signals: String = "{}", policyName: String,
        policyVersion: String, policyHash: String, realUserStatus: Int? = nil,
        credentialState: String,
        upgradeResult: String? = nil, isDegraded: Bool = false, evaluatedAt: Int64, expiresAt: Int64
    ) {
        self.id = id
        self.teamNumber = teamNumber
        self.clientID = clientID
        self.grantNumber = grantNumber
        self.appAccountMark = appAccountMark
        self.claimedEvent = claimedEvent
        self.event = event
        self.decision = decision
        self.challenges = challenges
        self.reasons = reasons
        self.wireReasons = wireReasons
        self.asked = asked
        self.skips = skips
        self.waived = waived
        self.missing = missing
        self.errors = errors
        self.errorTexts = errorTexts
        self.shadow = shadow
        self.snoozed = snoozed
        self.isForReview = isForReview
        self.overriddenBy = overriddenBy
        self.signals = signals
        self.policyName = policyName
        self.policyVersion = policyVersion
        self.policyHash = policyHash
        self.realUserStatus = realUserStatus
        self.credentialState = credentialState
        self.upgradeResult = upgradeResult
        self.isDegraded = isDegraded
        self.evaluatedAt = evaluatedAt
        self.expiresAt = expiresAt
    }
}

/// The outcome of a challenge, as a team reports it.
package enum CheckOutcome: String, Sendable, Hashable, CaseIterable {
    case initiated = "challenge_initiated"
    case passed
    case failed
}

/// A team's label for a person. The team can set and change it at any time.
package enum DecisionLabel: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case legitimate, fraudulent
}

/// Who says how a check ended.
package enum CheckSource: String, Sendable, Hashable, CaseIterable {
    /// The team.
    case reported
    /// Postern itself, whose page carried it out.
    case observed
}

/// A challenge of a decision that was begun.
package struct CheckRecord: Sendable, Hashable {
    package let challenge: String
    /// How the page carried it out; nil if the team reported it.
    package let method: CheckMethod?
    /// Seconds since 1970.
    package let initiatedAt: Int64
    package let passedAt: Int64?
    /// After a pass, earlier failures do not count.
    package let failedAt: Int64?

    package init(
        challenge: String, method: CheckMethod? = nil, initiatedAt: Int64, passedAt: Int64?,
        failedAt: Int64?
    ) {
        self.challenge = challenge
        self.method = method
        self.initiatedAt = initiatedAt
        self.passedAt = passedAt
        self.failedAt = failedAt
    }

    package var source: CheckSource { method == nil ? .reported : .observed }

    /// Maximum duration of a challenge: if it is not passed by then, it counts as failed.
    package static let timeout: Int64 = 3_600

    /// When the challenge counts as failed: as reported, or after `timeout`; nil while it is open
    /// or after a pass.
    package func failure(now: Int64) -> Int64? {
        if passedAt != nil { return nil }
        if let failedAt { return failedAt }
        return now - initiatedAt >= Self.timeout ? initiatedAt + Self.timeout : nil
    }
}

/// A decision with its outcomes.
package struct LoggedDecision: Sendable, Hashable {
    /// The position in the log; 0 if it is not written yet.
    package let number: Int64
    package let record: DecisionRecord
    /// The team's identifier.
    package let teamID: String
    package let label: DecisionLabel?
    package let labelledAt: Int64?
    /// By challenge.
    package let checks: [CheckRecord]

    package init(
        number: Int64, record: DecisionRecord, teamID: String, label: DecisionLabel?,
        labelledAt: Int64?, checks: [CheckRecord]
    ) {
        self.number = number
        self.record = record
        self.teamID = teamID
        self.label = label
        self.labelledAt = labelledAt
        self.checks = checks
    }
}

/// Selects decisions of the log.
package struct DecisionFilter: Sendable {
    /// Evaluated at or after, seconds since 1970.
    package var since: Int64?
    /// Evaluated before.
    package var until: Int64?
    /// A team's identifier.
    package var team: String?
    /// Only decisions where this rule matched, was waived, missing, in error or in shadow.
    package var rule: String?
    /// Only decisions with this reason code for the operator.
    package var reason: String?
    /// Only decisions about one user, by its identifier.
    package var user: String?
    /// Only decisions about one account, by its number.
    package var account: Int64?

    package init(
        since: Int64? = nil, until: Int64? = nil, team: String? = nil, rule: String? = nil,
        reason: String? = nil,
        user: String? = nil, account: Int64? = nil
    ) {
        self.user = user
        self.account = account
        self.since = since
        self.until = until
        self.team = team
        self.rule = rule
        self.reason = reason
    }

    func admits(_ record: DecisionRecord) -> Bool {
        if let rule {
            let lists = [
                record.asked, record.skips, record.waived, record.missing, record.errors,
                record.shadow, record.snoozed,
            ]
            guard lists.contains(where: { $0.contains(rule) }) else { return false }
        }
        return reason.map(record.reasons.contains) ?? true
    }
}
