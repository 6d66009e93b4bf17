// Messages to a user when no app can get a response.

/// A message to the user in place of an answer to an app.
package enum SignInMessage: Sendable, Hashable {
    case signedOut
    case startAgain
    case notSignedIn(AuthorizationPageReason)
    case notSignedOut(EndSessionRequest.Refusal)

    package static let all: [SignInMessage] =
        [.signedOut, .startAgain] + AuthorizationPageReason.allCases.map(SignInMessage.notSignedIn)
        + EndSessionRequest.Refusal.allCases.map(SignInMessage.notSignedOut)

    /// As in addresses of the page.
    package var name: String {
        switch self {
        case .signedOut: "signed-out"
        case .startAgain: "start-again"
        case .notSignedIn(let reason): "sign-in-\(reason)"
        case .notSignedOut(let reason): "sign-out-\(reason)"
        }
    }

    /// Whether something went wrong.
    package var isError: Bool { self != .signedOut }

    /// In English, as the catalogues of languages have it.
    package var title: String {
        switch self {
        case .signedOut: "You are signed out"
        case .startAgain: "Start again"
        case .notSignedIn: "The app cannot sign you in"
        case .notSignedOut: "The app cannot sign you out"
        }
    }

    /// Sentences in English, as the catalogues of languages have them.
    package var sentences: [String] {
        switch self {
        case .signedOut: ["You can close this window."]
        case .startAgain:
            [
                "This sign-in was begun in another browser, or is over. Go back to the app and try again."
            ]
        case .notSignedIn(let reason): [reason.rawValue, "Tell the makers of the app."]
        case .notSignedOut(let reason): [reason.rawValue, "Tell the makers of the app."]
        }
    }
}
