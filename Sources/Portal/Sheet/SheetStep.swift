// The next step that an app's request requires of the user. Pure: decided here, carried out in
// PortalSheet.

import SignIn

/// The next step of a sign-in.
enum SheetStep: Hashable {
    /// The app gets an error at once.
    case refuse(AuthorizationError)
    /// The user signs in, for the first time or again.
    case door
    /// The user shows a second factor, or makes one.
    case secondFactor
    /// The app gets what it already has, without asking the user.
    case answer(PageSession)
    /// The page asks the user for consent.
    /// - isKnown: whether they already consented to everything in this request.
    case ask(PageSession, isKnown: Bool)

    /// - Parameters:
    ///   - session: nil while no one is signed in.
    ///   - isOther: whether the app requested another user than the session's.
    ///   - consent: that of the user; nil if there is none.
    ///   - level: how surely the user must have signed in.
    ///   - hasPasskeys: whether the page can take passkeys.
    ///   - isTeamFrozen: whether the operator froze the app's team.
    init(
        _ pending: PendingAuthorization, session: PageSession?, isOther: Bool,
        consent: StandingConsent?, level: SignInLevel,
        hasPasskeys: Bool, isTeamFrozen: Bool = false
    ) {
        guard !isTeamFrozen else {
            self = .refuse(
                AuthorizationError(.accessDenied, "the operator has frozen the team of this app"))
            return
        }
        let asked = pending.request
        let isSilent = asked.prompts.contains(.none)
        guard let session, !isOther, pending.accepts(authenticatedAt: session.authenticatedAt)
        else {
            // A different user who signed in for this very request is not sent to sign in again:
            // that would never end.
            let isOver = isOther && session.map { pending.isFollowed(by: $0.createdAt) } ?? false
            self =
                isSilent || isOver
                ? .refuse(
                    AuthorizationError(
                        .loginRequired,
                        isOver ? "another user is signed in" : "the user is not signed in"))
                : .door
            return
        }
        guard session.level >= level else {
            guard level < .passkey || hasPasskeys else {
                self = .refuse(
                    AuthorizationError(
                        .unmetAuthenticationRequirements, "there are no passkeys here"))
                return
            }
            self =
                isSilent
                ? .refuse(AuthorizationError(.loginRequired, "the user must show a second factor"))
                : .secondFactor
            return
        }
        let isKnown =
            consent.map { consent in
                consent.isLive && (consent.sharesName || !UserScope.haveName(asked.scopes))
                    && (consent.sharesEmail || !asked.scopes.contains(UserScope.email))
            } ?? false
        if isSilent {
            self =
                isKnown
                ? .answer(session)
                : .refuse(AuthorizationError(.consentRequired, "the user has not consented yet"))
        } else {
            self = .ask(session, isKnown: isKnown && !asked.prompts.contains(.consent))
        }
    }
}
