// Policies that decide how likely a user is to be real: the differences from policies that require
// checks.
//
// The same program decides a status. Its two "challenges" are the statuses below `likely_real`,
// weakest first. A rule with one of them requires it regardless of the others. A rule with
// `likely_real` waives the default, which comes last.

import CEL

/// The result of a policy.
package enum PolicyKind: String, Sendable, CaseIterable {
    /// The name of every policy of kind `status`: there is one for the whole installation.
    package static let statusName = "status"

    /// Whether a person must pass a check.
    case verification
    /// The `real_user_status` of a user.
    case status
}

/// How likely it is that a user is a real person.
package enum PolicyStatus: String, Sendable, CaseIterable {
    /// No facts for or against it.
    case unsupported
    /// At least one fact against it.
    case unknown
    case likelyReal = "likely_real"

    /// Reason code if no rule matched.
    static let defaultReason = "DEFAULT"

    /// The value in identity tokens.
    package var code: Int {
        switch self {
        case .unsupported: 0
        case .unknown: 1
        case .likelyReal: 2
        }
    }
}

extension Policy {
    /// The events for which the policy is evaluated.
    var askedEvents: [PolicyEvent] {
        kind == .status ? [PolicyLoader.statusEvent] : PolicyEvent.allCases
    }

    /// The decision of a guarantee, in the word of the policy's kind.
    package func word(_ guarantee: PolicyGuarantee) -> String {
        guard kind == .status else { return guarantee.decision.rawValue }
        return (guarantee.decision == .allow ? PolicyStatus.likelyReal : .unknown).rawValue
    }

    /// Whether a rule is the default of a status policy, which is not written as a rule.
    func isDefault(_ rule: Int) -> Bool { isDefault(rules[rule]) }

    /// The same for a rule of this policy.
    package func isDefault(_ rule: PolicyRule) -> Bool {
        kind == .status && rule.effect == .require
    }

    /// The status that a rule of a status policy gives.
    package func status(of rule: PolicyRule) -> PolicyStatus {
        rule.effect == .skip
            ? .likelyReal : PolicyStatus(rawValue: challenges[rule.challenge].kind) ?? .unknown
    }

    /// The result of a status policy: the most cautious status of all that matched.
    package func status(_ result: PolicyResult) -> PolicyStatus {
        result.decision == .allow
            ? .likelyReal : challengeKinds(result).first.flatMap(PolicyStatus.init) ?? .unknown
    }
}
