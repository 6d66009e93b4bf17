// A user's passkey, and the limits for passkeys.

import Accounts

/// A passkey as its user sees it.
package struct Passkey: Sendable, Hashable {
    /// The store's number.
    package let number: Int64
    package let credentialID: [UInt8]
    /// As the user named it.
    package let name: String
    /// Whether a copy is kept elsewhere, so that it survives the loss of a device.
    package let isBackedUp: Bool
    /// The host that it belongs to.
    package let host: String
    /// Seconds since 1970.
    package let createdAt: Int64
    /// Seconds since 1970; nil if no one has signed in with it.
    package let lastUsedAt: Int64?
}

/// Limits of passkeys.
package enum PasskeyLimits {
    /// Passkeys of a user: enough for every device of a household.
    package static let perUser = 20
    /// Characters of a name.
    package static let nameLength = 60
    /// Seconds for which a challenge is valid: a page may have been open for a while.
    package static let challenge: Int64 = 30 * 60
}

/// The result of a sign-in by passkey.
package enum PasskeySignIn: Sendable {
    /// The token of the new session, for the cookie.
    case session(String)
    /// No user has this passkey: the browser may forget it.
    case unknown
    /// The user, if known, and the reason: for the operator, never for the caller.
    case refused(userID: String?, reason: String)
}
