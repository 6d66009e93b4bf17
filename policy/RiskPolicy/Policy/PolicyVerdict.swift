// A decision in names and codes: for the operator, and for the team (docs/POLICY-REFERENCE.md).

/// A whole decision, with the names of the policy.
package struct PolicyVerdict: Sendable, Equatable {
    /// As determined by Postern.
    package let event: PolicyEvent
    /// One of the two.
    package let decision: PolicyDecision
    /// Weakest first.
    package let challenges: [String]
    /// Codes, each once.
    package let reasons: [String]
    /// Reason codes of the waived rules.
    package let waived: [String]
    /// Ids of rules whose condition is missing.
    package let missing: [String]
    /// Ids of rules that ended in an error, and kinds of challenges whose `unavailable_when` did.
    package let errors: [String]
    /// Ids of shadow rules that would have counted.
    package let shadow: [String]
    /// Whether history was unavailable.
    package let degraded: Bool
    /// The text of the guarantee that overrode the rules.
    package let overriddenBy: String?
    /// For a policy that decides a status.
    package let status: PolicyStatus?

    /// The decision, in the word of the policy's kind.
    package var word: String { status?.rawValue ?? decision.rawValue }
}

extension Policy {
    /// Converts a result to names, for the operator's log and commands.
    package func answer(_ result: PolicyResult) -> PolicyVerdict {
        var waived: [String] = []
        for rule in result.waived {
            let code = result.errors.contains(rule) ? BuiltInReason.policyError : rules[rule].reason
            if !waived.contains(code) { waived.append(code) }
        }
        let challengeErrors = challenges.indices.filter {
            result.challengeErrors >> UInt8($0) & 1 == 1
        }
        let overriding = Int(result.overridingGuarantee)
        return PolicyVerdict(
            event: result.event, decision: result.decision, challenges: challengeKinds(result),
            reasons: reasons(result),
            waived: waived, missing: result.missing.map { rules[$0].id },
            errors: result.errors.map { rules[$0].id }
                + challengeErrors.map { challenges[$0].kind },
            shadow: result.shadow.map { rules[$0].id }, degraded: result.isDegraded,
            overriddenBy: guarantees.indices.contains(overriding)
                ? guarantees[overriding].condition.text : nil,
            status: kind == .status ? status(result) : nil)
    }

    /// The challenges offered, weakest first; empty exactly when allowed.
    package func challengeKinds(_ result: PolicyResult) -> [String] {
        challenges.indices.filter { result.challenges >> UInt8($0) & 1 == 1 }.map {
            challenges[$0].kind
        }
    }

    /// Reason codes in full.
    package func reasons(_ result: PolicyResult) -> [String] {
        let codes = result.reasons.map { reasonCodes[$0] }
        // Beside other codes, the default has no meaning.
        return kind == .status && codes.count > 1
            ? codes.filter { $0 != PolicyStatus.defaultReason } : codes
    }

    /// Reason codes as a team may see them: one common code for all codes of rules that read facts
    /// that span teams.
    package func wireReasons(_ result: PolicyResult) -> [String] {
        var codes: [String] = []
        func add(_ code: String) {
            if !codes.contains(code) { codes.append(code) }
        }
        for code in reasons(result) where BuiltInReason.all.contains(code) { add(code) }
        guard result.overridingGuarantee < 0 else { return codes }
        let telling = result.decision == .requireVerification ? result.asked : result.skips
        for rule in telling where !result.errors.contains(rule) {
            add(rules[rule].spansTeams ? BuiltInReason.accountHistory : rules[rule].reason)
        }
        return codes
    }
}
