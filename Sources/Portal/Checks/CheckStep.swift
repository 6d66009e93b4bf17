// The next step of a check that a decision required. Pure: decided here, carried out in
// PortalHostedCheck.

import SignIn
import Support

enum CheckStep: Hashable {
    /// The user chooses one of the ways.
    case offer
    /// The user shows the second factor, after the first.
    case secondFactor
    /// The user signed in again, and says that the check is theirs.
    case confirm(PageSession)
    /// Another user signed in than the one whom the check is about.
    case other

    /// - Parameters:
    ///   - session: nil while no one is signed in.
    ///   - userID: whom the check is about; nil if the page has no such user.
    ///   - level: how surely this user must sign in again.
    init(
        _ check: HostedCheck, of pending: PendingAuthorization, session: PageSession?,
        userID: String?, level: SignInLevel
    ) {
        // A sign-in that is older than the check shows nothing about who is there now.
        guard check.challenges.contains(.reauthenticate), let userID, let session,
            pending.accepts(authenticatedAt: session.authenticatedAt)
        else {
            self = .offer
            return
        }
        if !session.userID.hasSameOctets(as: userID) {
            self = .other
        } else if session.level < level {
            self = .secondFactor
        } else {
            self = .confirm(session)
        }
    }
}
