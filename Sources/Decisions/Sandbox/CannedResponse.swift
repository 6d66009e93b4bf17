// Test subjects of the sandbox: their names select the answer that a developer of a backend wants.

import RiskPolicy

/// A fixed answer.
package enum CannedResponse: Sendable, Hashable {
    case allow
    /// Requires one of these challenges, weakest first, for this reason.
    case ask([String], reason: String)
    /// The answer while the store is unavailable.
    case degraded
    /// 503.
    case unavailable

    /// By `sub`, with a description for developers.
    package static let subjects: [(name: String, answer: CannedResponse, purpose: String)] = [
        ("test-allow", .allow, "allow, for every event"),
        ("test-human-check", .ask(["human_check"], reason: "TEST"), "asked for human_check"),
        ("test-email-code", .ask(["email_code"], reason: "TEST"), "asked for email_code"),
        (
            "test-reauthenticate", .ask(["reauthenticate"], reason: "TEST"),
            "asked for reauthenticate"
        ),
        (
            "test-any", .ask(["human_check", "email_code", "reauthenticate"], reason: "TEST"),
            "asked for any of three challenges"
        ),
        (
            "test-account-history", .ask(["email_code"], reason: BuiltInReason.accountHistory),
            "asked for a check that depends on other teams"
        ),
        (
            "test-unknown-challenge", .ask(["palm_reading"], reason: "TEST"),
            "asked for a challenge that no backend knows yet"
        ),
        ("test-degraded", .degraded, "asked for reauthenticate, as while history is unavailable"),
        ("test-unavailable", .unavailable, "no answer: 503 with Retry-After"),
    ]

    /// The answer for a test subject; nil for all others, for whom the policy decides.
    package static func answer(_ name: String) -> CannedResponse? {
        subjects.first { $0.name == name }?.answer
    }

    /// The decision with this answer instead of the policy's answer.
    func applied(to record: DecisionRecord) -> DecisionRecord {
        var record = record
        record.asked = []
        record.skips = []
        record.waived = []
        record.overriddenBy = nil
        record.credentialState = "authorized"
        let reasons: [String]
        switch self {
        case .allow:
            record.decision = PolicyDecision.allow.rawValue
            record.challenges = []
            reasons = ["TEST"]
        case .ask(let challenges, let reason):
            record.decision = PolicyDecision.requireVerification.rawValue
            record.challenges = challenges
            reasons = [reason]
        case .degraded:
            record.decision = PolicyDecision.requireVerification.rawValue
            record.challenges = ["reauthenticate"]
            record.isDegraded = true
            reasons = [BuiltInReason.historyUnavailable]
        case .unavailable: return record
        }
        record.reasons = reasons
        record.wireReasons = reasons
        if record.event == PolicyEvent.upgrade.rawValue {
            record.upgradeResult =
                record.decision == PolicyDecision.allow.rawValue
                ? UpgradeResult.success : UpgradeResult.twoFactorRequired
        }
        return record
    }
}
