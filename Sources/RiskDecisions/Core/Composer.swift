// Facts and policy to a decision that can be logged, answered and settled. Pure: id and time are handed in.

import PosternStore
import RiskPolicy

/// What a decision is composed of beside the facts.
package struct CompositionRequest: Sendable {
    package var id: String
    package var app: DecisionApp
    package var claimed: PolicyEvent
    /// Whether sub or token name the account: an upgrade of a nameless one cannot be revoked or deleted.
    package var isNamed: Bool
    package var appAccountMark: [UInt8]?
    /// Whether the app's own account was bound before.
    package var isBound: Bool
    /// How long the answer is valid, in seconds.
    package var validity: Int64

    package init(
        id: String, app: DecisionApp, claimed: PolicyEvent, isNamed: Bool, appAccountMark: [UInt8]? = nil, isBound: Bool = false,
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

package enum Composer {
    /// Decides.
    package static func compose(
        _ request: CompositionRequest, _ facts: SignalSource.Facts, policy: LoadedPolicy, signals: SignalSource,
        marks: DecisionMarks
    ) -> DecisionRecord {
        let (input, line) = signals.input(facts, marks: marks)
        let rules = policy.policy
        let result = rules.decide(input)
        var decision = result.decision
        var challenges = rules.challengeKinds(result)
        var reasons = rules.reasons(result)
        var wireReasons = rules.wireReasons(result)
        let upgrade = facts.view.upgradeResult(decision, isNamed: request.isNamed, isBound: request.isBound)
        if upgrade == UpgradeResult.failure {
            if decision == .allow {
                decision = .requireVerification
                // What the policy would ask for in doubt; never nothing.
                challenges = strongest(rules, facts.view.event)
                reasons = []
                wireReasons = []
            }
            reasons.append(UpgradeResult.failureReason)
            wireReasons.append(UpgradeResult.failureReason)
        }
        func ids(_ set: RuleSet) -> [String] { set.map { rules.rules[$0].id } }
        var errors = ids(result.errors)
        if result.challengeErrors != 0 {
            errors += rules.challenges.indices.filter { result.challengeErrors >> UInt8($0) & 1 == 1 }
                .map { rules.challenges[$0].kind }
        }
        let overriding = Int(result.overridingGuarantee)
        let now = facts.time.seconds
        return DecisionRecord(
            id: request.id, teamNumber: request.app.teamNumber, clientID: request.app.clientID,
            grantNumber: facts.history?.grant?.number, appAccountMark: request.appAccountMark,
            claimedEvent: request.claimed.rawValue, event: facts.view.event.rawValue, decision: decision.rawValue,
            challenges: challenges, reasons: reasons, wireReasons: wireReasons, asked: ids(result.asked), skips: ids(result.skips),
            waived: ids(result.waived), missing: ids(result.missing), errors: errors, shadow: ids(result.shadow),
            overriddenBy: rules.guarantees.indices.contains(overriding) ? rules.guarantees[overriding].condition.text : nil,
            signals: line, policyName: policy.name, policyVersion: policy.version, policyHash: policy.hash,
            realUserStatus: facts.view.realUserStatus, credentialState: facts.view.credentialState, upgradeResult: upgrade,
            isDegraded: result.isDegraded, evaluatedAt: now, expiresAt: now + request.validity)
    }

    /// The strongest challenge that can be offered for an event.
    private static func strongest(_ policy: Policy, _ event: PolicyEvent) -> [String] {
        policy.challenges.last { $0.isOffered(for: event) }.map { [$0.kind] } ?? []
    }

    /// What has to be written for a decision; nil where the log is all.
    package static func settlement(
        _ record: DecisionRecord, _ facts: SignalSource.Facts, subject: GrantSubject?, app: DecisionApp, nonce: ConsumedNonce?
    ) -> Settlement? {
        guard facts.view.mustSettle, subject != nil else { return nil }
        let isSignUp = facts.view.event == .signUp
        var settlement = Settlement(
            team: app.teamNumber, group: app.groupNumber, app: app.number, subject: subject,
            expected: facts.isHistoryAvailable ? GrantStamp(facts.history) : nil, nonce: nonce,
            isVerified: facts.token != nil, now: facts.time.seconds, record: record)
        settlement.isReturn = facts.view.isReturn
        settlement.realUserStatus = facts.token?.realUserStatus
        settlement.makesPending = isSignUp && record.decision == PolicyDecision.requireVerification.rawValue
        settlement.isSignUp = isSignUp
        return settlement
    }
}
