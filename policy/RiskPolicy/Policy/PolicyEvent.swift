// The words of a policy: events, effects, modes, the two decisions.

/// What happens at the app's side, as settled by Postern.
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

/// The answer: there is no third.
package enum PolicyDecision: String, Sendable, CaseIterable {
    case allow
    case requireVerification = "require_verification"
}

/// What a matched rule does.
package enum RuleEffect: String, Sendable, CaseIterable {
    /// Asks, whatever the skips say.
    case always
    /// Waives `require` rules whose challenge is no stronger than its `up_to`.
    case skip
    /// Asks unless waived.
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

/// Reason codes that the evaluator itself gives; no rule may use them.
package enum BuiltInReason {
    /// The store was down, and the policy asks for more while it is.
    package static let historyUnavailable = "HISTORY_UNAVAILABLE"
    /// A rule that asks ended in an error.
    package static let policyError = "POLICY_ERROR"
    /// A guarantee overrode the rules.
    package static let policyGuarantee = "POLICY_GUARANTEE"
    /// What a team learns instead of any reason that reads `inbox.*`.
    package static let accountHistory = "ACCOUNT_HISTORY"

    /// But for `accountHistory`.
    package static let all = [historyUnavailable, policyError, policyGuarantee]
}
