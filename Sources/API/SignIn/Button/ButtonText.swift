// The texts of the buttons, in the languages of the pages.

import Languages

/// The action of a button.
package enum ButtonKind: String, Sendable, CaseIterable {
    case signIn = "sign-in"
    case goOn = "continue"
    case signUp = "sign-up"

    /// - Parameter service: the operator's name for the service.
    func text(_ language: Catalogue, service: String) -> String {
        let values = ["service": service]
        return switch self {
        case .signIn: language.text("Sign in with {service}", values)
        case .goOn: language.text("Continue with {service}", values)
        case .signUp: language.text("Sign up with {service}", values)
        }
    }
}
