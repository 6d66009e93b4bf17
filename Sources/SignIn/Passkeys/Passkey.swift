// A user's passkey, and what the page may do with one.

import Accounts

/// A passkey as its user sees it.
package struct Passkey: Sendable, Hashable {
    /// The store's own.
    package let number: Int64
    package let credentialID: [UInt8]
    /// As the user named it.
    package let name: String
    /// Whether a copy is kept elsewhere, so that the loss of a device does not lose it.
    package let isBackedUp: Bool
    /// Seconds since 1970.
    package let createdAt: Int64
    /// Seconds since 1970; nil where no one signed in with it.
    package let lastUsedAt: Int64?
}

/// Bounds of passkeys.
package enum PasskeyLimits {
    /// Passkeys of a user: every device of a household.
    package static let perUser = 20
    /// Characters of a name.
    package static let nameLength = 60
    /// Seconds that a challenge is good: a page that was left open for a while.
    package static let challenge: Int64 = 30 * 60
}

/// How a sign-in by passkey ended.
package enum PasskeySignIn: Sendable {
    /// The token of the new session, for the cookie.
    case session(String)
    /// The user, where one is known, and why: for the operator, never for whoever asks.
    case refused(userID: String?, reason: String)
}
