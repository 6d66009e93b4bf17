// The addresses of sign-in that a person's browser opens.

import Support

/// A step of sign-in or sign-out that shows a page to a person: an error there is a page.
package enum SignInStep: String, Sendable, CaseIterable {
    case authorize = "/auth/authorize"
    case begin = "/auth/begin"
    case goOn = "/auth/continue"
    case endSession = "/auth/end-session"
    case signedOut = "/auth/signed-out"

    /// The step of an address; nil for any other address.
    /// - Parameter path: without a query.
    package init?(path: String) {
        guard let step = Self.allCases.first(where: { $0.rawValue.hasSameOctets(as: path) }) else {
            return nil
        }
        self = step
    }
}
