// What a request of an app comes to for whoever is at the browser. Pure: decided here, applied in PortalSheet.

import SignIn

/// The next step of a sign-in.
enum SheetStep: Hashable {
    /// The app is told at once.
    case refuse(AuthorizationError)
    /// The user signs in, first or again.
    case door
    /// The app gets what it has already, and no one is asked.
    case answer(PageSession)
    /// The user is asked.
    /// - isKnown: whether they consented before, to all that is asked for now.
    case ask(PageSession, isKnown: Bool)

    /// - Parameters:
    ///   - session: nil while no one is signed in.
    ///   - isOther: whether the app asked for another user than that of the session.
    ///   - consent: of that user; nil where there is none.
    init(_ pending: PendingAuthorization, session: PageSession?, isOther: Bool, consent: StandingConsent?) {
        let asked = pending.request
        let isSilent = asked.prompts.contains(.none)
        guard let session, !isOther, pending.accepts(authenticatedAt: session.authenticatedAt) else {
            // Whoever signed in for this very request, and is another, is led to no door again: it would never end.
            let isOver = isOther && session.map { pending.isFollowed(by: $0.createdAt) } ?? false
            self =
                isSilent || isOver
                ? .refuse(AuthorizationError(.loginRequired, isOver ? "another user is signed in" : "the user is not signed in"))
                : .door
            return
        }
        let isKnown =
            consent.map { consent in
                consent.isLive && (consent.sharesName || !asked.scopes.contains("name"))
                    && (consent.sharesEmail || !asked.scopes.contains("email"))
            } ?? false
        if isSilent {
            self = isKnown ? .answer(session) : .refuse(AuthorizationError(.consentRequired, "the user has not consented yet"))
        } else {
            self = .ask(session, isKnown: isKnown && !asked.prompts.contains(.consent))
        }
    }
}
