// Builds a decision that can be logged, answered and stored from facts and a policy. Pure: id
// and time are parameters.

import Accounts
import RiskPolicy

/// The values of a decision that the facts do not contain.
package struct CompositionRequest: Sendable {
    package var id: String
    package var app: DecisionApp
    package var claimed: PolicyEvent
    /// Whether `sub` or token names the account. Only then can an upgrade find the
    /// account revoked or deleted.
    package var isNamed: Bool
    package var appAccountMark: [UInt8]?
    /// Whether the app's own account was bound before.
    package var isBound: Bool
    /// How long the answer is valid, in seconds.
    package var validity: Int64

    package init(
        id: String, app: DecisionApp, claimed: PolicyEvent, isNamed: Bool,
        appAccountMark: [UInt8]? = nil, isBound: Bool = false,
        validity: Int64
    ) {
        self.id = id
        self.app = app
        self.claimed = claimed
        self.isNamed = isNamed
        self.appAccountMark = appAccountMark
        self.isBound = isBound
        self.validity = validity
    }
}

package enum DecisionBuilder {
    /// Decides.
    package static func compose(
        _ request: CompositionRequest, _ facts: SignalSource.Facts, policy: LoadedPolicy,
        signals: SignalSource,
        marks: DecisionMarks
    ) -> DecisionRecord {
        let (input, line) = signals.input(facts, marks: marks)
        let rules = policy.policy
        let result = rules.decide(input)
        var outcome = Outcome(policy: rules, result: result)
        let upgrade = facts.view.upgradeResult(
            outcome.decision, isNamed: request.isNamed,
            isBound: request.isBound || request.app.isGone)
        if upgrade == UpgradeResult.failure { outcome.fail(rules, facts.view.event) }
        func ids(_ set: RuleSet) -> [String] { set.map { rules.rules[$0].id } }
        var errors = ids(result.errors)
        if result.challengeErrors != 0 {
            errors += rules.challenges.indices.filter {
                result.challengeErrors >> UInt8($0) & 1 == 1
            }
            .map { rules.challenges[$0].kind }
        }
        let overriding = Int(result.overridingGuarantee)
        let now = facts.time.seconds
        return DecisionRecord(
            id: request.id, teamNumber: request.app.teamNumber, clientID: request.app.clientID,
            grantNumber: facts.history?.grant?.number, appAccountMark: request.appAccountMark,
            claimedEvent: request.claimed.rawValue, event: facts.view.event.rawValue,
            decision: outcome.decision.rawValue,
            challenges: outcome.challenges, reasons: outcome.reasons,
            wireReasons: outcome.wireReasons, asked: ids(result.asked),
            skips: ids(result.skips),
            waived: ids(result.waived), missing: ids(result.missing), errors: errors,
            errorTexts: rules.errorTexts(result, input),
            shadow: ids(result.shadow),
            snoozed: ids(result.snoozed), isForReview: rules.isForReview(result),
            overriddenBy: rules.guarantees.indices.contains(overriding)
                ? rules.guarantees[overriding].condition.text : nil,
            signals: line, policyName: policy.name, policyVersion: policy.version,
            policyHash: policy.hash,
            realUserStatus: facts.view.realUserStatus,
            credentialState: request.isNamed
                ? facts.view.credentialState : GrantView.unknownCredential, upgradeResult: upgrade,
            isDegraded: result.isDegraded, evaluatedAt: now, expiresAt: now + request.validity)
    }

    /// A decision as names of kinds and reasons, and the changes that a failed upgrade makes to it.
    struct Outcome {
        var decision: PolicyDecision
        var challenges: [String]
        var reasons: [String]
        var wireReasons: [String]

        init(policy: Policy, result: PolicyResult) {
            decision = result.decision
            challenges = policy.challengeKinds(result)
            reasons = policy.reasons(result)
            wireReasons = policy.wireReasons(result)
        }

        /// A failed upgrade is never allowed: instead of allow, it requires the strongest check
        /// offered for the event.
        mutating func fail(_ policy: Policy, _ event: PolicyEvent) {
            if decision == .allow {
                decision = .requireVerification
                challenges =
                    policy.challenges.last { $0.isOffered(for: event) }.map { [$0.kind] } ?? []
                reasons = []
                wireReasons = []
            }
            reasons.append(UpgradeResult.failureReason)
            wireReasons.append(UpgradeResult.failureReason)
        }
    }

    /// The changes that a decision must write; nil if only the log is written.
    package static func decisionWrite(
        _ record: DecisionRecord, _ facts: SignalSource.Facts, subject: GrantSubject?,
        app: DecisionApp, nonce: ConsumedNonce?
    ) -> DecisionWrite? {
        guard facts.view.mustSettle, subject != nil else { return nil }
        let isSignUp = facts.view.event == .signUp
        // If the app moved to another team, the nonce is consumed, but no grant is changed or
        // created.
        let subject = app.isGone ? nil : subject
        var decisionWrite = DecisionWrite(
            team: app.teamNumber, group: app.groupNumber, app: app.number, subject: subject,
            expected: facts.isHistoryAvailable && subject != nil ? GrantStamp(facts.history) : nil,
            nonce: nonce,
            isVerified: facts.token != nil, now: facts.time.seconds, record: record)
        decisionWrite.isReturn = facts.view.isReturn
        decisionWrite.realUserStatus = facts.token?.realUserStatus
        decisionWrite.makesPending =
            isSignUp && record.decision == PolicyDecision.requireVerification.rawValue
        decisionWrite.isSignUp = isSignUp
        return decisionWrite
    }
}
