// Why a ceremony failed.

/// A failed ceremony: the step of WebAuthn Level 3 section 7.1 or 7.2 that failed, and the reason.
/// Repeats nothing that came from the browser.
package struct WebAuthnError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The step that failed.
    package enum Step: String, Sendable {
        case clientData = "client data"
        case type
        case challenge
        case origin
        case crossOrigin = "cross-origin"
        case authenticatorData = "authenticator data"
        case relyingParty = "rp_id"
        case userPresence = "user presence"
        case userVerification = "user verification"
        case backup
        case publicKey = "public key"
        case attestation
        case trust
        case signature
        case signCount = "sign count"
    }

    package let step: Step
    /// One sentence for a person.
    package let reason: String

    package init(_ step: Step, _ reason: String) {
        self.step = step
        self.reason = reason
    }

    package var description: String { "\(step.rawValue): \(reason)" }
}
