// The vocabulary of a policy: events, effects, modes, the two decisions.

/// The event at the app, as determined by Postern.
package enum PolicyEvent: String, Sendable, CaseIterable {
    case signUp = "sign_up"
    case signIn = "sign_in"
    case upgrade
    case sensitiveAction = "sensitive_action"

    var index: Int {
        switch self {
        case .signUp: 0
        case .signIn: 1
        case .upgrade: 2
        case .sensitiveAction: 3
        }
    }
}

/// The answer: one of two.
package enum PolicyDecision: String, Sendable, CaseIterable {
    case allow
    case requireVerification = "require_verification"
}

/// The effect of a matched rule.
package enum RuleEffect: String, Sendable, CaseIterable {
    /// Requires a check, regardless of skips.
    case always
    /// Waives `require` rules whose challenge is no stronger than its `up_to`.
    case skip
    /// Requires a check unless waived.
    case require
}

/// Whether a rule counts.
package enum RuleMode: String, Sendable, CaseIterable {
    case active
    /// Evaluated and reported, without effect.
    case shadow
    /// Checked at load, not evaluated.
    case disabled
}

/// Reason codes of the evaluator itself; rules must not use them.
package enum BuiltInReason {
    /// The store was unavailable, and the policy requires a check in that case.
    package static let historyUnavailable = "HISTORY_UNAVAILABLE"
    /// A rule that requires a check ended in an error.
    package static let policyError = "POLICY_ERROR"
    /// A guarantee overrode the rules.
    package static let policyGuarantee = "POLICY_GUARANTEE"
    /// The team gets this code instead of the reason of any rule that uses facts of other teams:
    /// one that reads `inbox.*` or a counter by inbox, and every rule of a status policy.
    package static let accountHistory = "ACCOUNT_HISTORY"

    /// Without `accountHistory`.
    package static let all = [historyUnavailable, policyError, policyGuarantee]
}
