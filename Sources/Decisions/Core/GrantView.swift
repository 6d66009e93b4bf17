// The facts that Postern determines before the policy decides: the event, the state of the grant,
// and the data to write. Pure.

import RiskPolicy

/// The facts of a verified token that decisions use.
package struct TokenFacts: Sendable, Hashable {
    /// Seconds since 1970.
    package var issuedAt: Int64
    /// 0, 1, 2; nil if the token has none or another value.
    package var realUserStatus: Int?
    /// Whether it contains an address.
    package var hasEmail: Bool
    /// Whether an issuer other than this installation made it.
    package var isExternal: Bool
    /// How the user signed in for this token (`amr`, RFC 8176); nil if the token does not say.
    package var methods: [String]?
    /// When the user signed in for this token (`auth_time`), seconds since 1970; nil if the token
    /// does not say. A refreshed token is younger than its sign-in.
    package var authenticatedAt: Int64?

    package init(
        issuedAt: Int64, realUserStatus: Int? = nil, hasEmail: Bool = false,
        isExternal: Bool = false, methods: [String]? = nil,
        authenticatedAt: Int64? = nil
    ) {
        self.authenticatedAt = authenticatedAt
        self.issuedAt = issuedAt
        self.realUserStatus = realUserStatus
        self.hasEmail = hasEmail
        self.isExternal = isExternal
        self.methods = methods
    }
}

/// A grant as seen by one request.
package struct GrantView: Sendable, Hashable {
    /// As determined by Postern.
    package var event: PolicyEvent
    /// `new`, `pending`, `active`, `consent_revoked`; nil if no grant is known.
    package var state: String?
    /// `authorized`, `revoked`, `transferred`, `not_found`, or `unknownCredential`.
    package var credentialState: String
    /// The first status that a verified token gave; if there was none, this token's.
    package var realUserStatus: Int?
    package var priorStatus: Int?
    /// Rejoins of the last 30 days, including this one.
    package var rejoins30d: Int64?
    /// Whether the user returns after a revocation with this token.
    package var isReturn: Bool
    /// Whether the result must be stored durably before the answer is sent, because
    /// later decisions depend on it.
    package var mustSettle: Bool

    /// Logged where the store was unavailable; the team does not see it.
    package static let unknownCredential = "unknown"

    /// Seconds after its authorization in which a grant without earlier requests counts as a
    /// sign-up. If a team begins to send requests about old accounts, they do not count as sign-ups
    /// again.
    package static let signUpWindow: Int64 = 86_400

    /// Determines the event and the state from the history.
    /// - Parameters:
    ///   - claimed: the event as the backend named it.
    ///   - history: nil for an unknown account.
    ///   - token: nil if the request had none, or if the token is no longer valid.
    ///   - isGone: whether the app was transferred away from the requesting team.
    package init(
        claimed: PolicyEvent, history: GrantHistory?, token: TokenFacts?, isGone: Bool = false,
        now: Int64
    ) {
        guard !isGone else {
            // The app moved to another team, so the old team has no sign-ups and no consents for
            // it.
            event = claimed == .signUp ? .signIn : claimed
            state = "consent_revoked"
            credentialState =
                history.map { $0.isTransferred || $0.grant != nil } == true
                ? "transferred" : "not_found"
            realUserStatus = token?.realUserStatus
            isReturn = false
            // The nonce is still consumed.
            mustSettle = token != nil
            return
        }
        let grant = history?.grant
        isReturn = false
        if let grant, !grant.isAuthorized, let token, token.isExternal,
            token.issuedAt > grant.revokedAt ?? Int64.max
        {
            isReturn = true
        }
        let isKnown = grant != nil
        let isNew: Bool
        if let grant {
            isNew =
                isReturn
                || (grant.firstAskedAt == nil && now - grant.lastAuthorizedAt <= Self.signUpWindow)
        } else {
            isNew = token != nil
        }
        if isReturn || (isNew && grant?.isAuthorized ?? true) {
            event = .signUp
        } else if !isKnown, claimed == .signIn {
            // The account is new, so this is not a sign-in. Events that need more checks are
            // unchanged.
            event = .signUp
        } else {
            event = claimed == .signUp && isKnown ? .signIn : claimed
        }
        let isLive = isReturn || grant?.isAuthorized == true || (grant == nil && token != nil)
        credentialState = isLive ? "authorized" : isKnown ? "revoked" : "not_found"
        if isKnown || token != nil {
            state =
                !isLive
                ? "consent_revoked"
                : grant?.signUpCheck == .pending ? "pending" : isNew ? "new" : "active"
        }
        realUserStatus =
            isReturn ? token?.realUserStatus : grant?.realUserStatus ?? token?.realUserStatus
        priorStatus = isReturn ? grant?.realUserStatus ?? grant?.priorStatus : grant?.priorStatus
        if let history {
            rejoins30d = history.rejoins30d + (isReturn ? 1 : 0)
        } else {
            rejoins30d = token != nil ? 0 : nil
        }
        mustSettle = token != nil || (isKnown && grant?.firstAskedAt == nil)
    }

    /// Determines the event and the state while the store is unavailable, from the token and this
    /// process's memory of it.
    package init(claimed: PolicyEvent, token: TokenFacts?, rememberedStatus: Int?) {
        event = claimed
        credentialState = Self.unknownCredential
        realUserStatus = rememberedStatus ?? token?.realUserStatus
        isReturn = false
        mustSettle = true
    }

    /// The result of an upgrade, given the decision.
    /// - Parameter isBound: whether the app's own account was bound before.
    package func upgradeResult(_ decision: PolicyDecision, isNamed: Bool, isBound: Bool) -> String?
    {
        guard event == .upgrade else { return nil }
        if isBound { return UpgradeResult.failure }
        // The sub or the token names an account that is revoked, deleted or transferred.
        if isNamed, credentialState != "authorized", credentialState != Self.unknownCredential {
            return UpgradeResult.failure
        }
        return decision == .allow ? UpgradeResult.success : UpgradeResult.twoFactorRequired
    }
}

/// Results of an upgrade.
package enum UpgradeResult {
    package static let success = "success"
    package static let twoFactorRequired = "two_factor_required"
    package static let failure = "failure"
    /// The reason code of a failure.
    package static let failureReason = "UPGRADE_NOT_POSSIBLE"
}
