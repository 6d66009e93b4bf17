// The keys that sign relayed mail, as administration sees them.

import Database
import MailAuth

/// A signing key of a relay domain, without its private part.
package struct DKIMKey: Sendable, Hashable {
    /// pending → active → retiring → retired; a retiring key may become active again.
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// To be published; signs nothing yet.
        case pending
        /// Signs. One for each domain and algorithm.
        case active
        /// Replaced: no longer signs, and stays published for the mail that it signed.
        case retiring
        /// Ended: the private part is deleted, and the selector is never used again.
        case retired
    }

    /// The store's own number.
    package let number: Int64
    /// The relay domain, lower case.
    package let domain: String
    /// `s=`, lower case.
    package let selector: String
    package let algorithm: DKIMAlgorithm
    /// Length of the modulus for RSA, 256 for Ed25519.
    package let bits: Int
    package let state: State
    package let createdAt: Int64
    /// When it last became active; nil for never. Seconds since 1970, like all times here.
    package let activatedAt: Int64?
    /// When another key replaced it.
    package let deactivatedAt: Int64?
    package let retiredAt: Int64?

    /// Whether its record should be in the DNS.
    package var isPublished: Bool { state != .retired }
}

/// A private key as unencrypted PKCS#8 PEM; never printed.
package struct DKIMPrivateKey: Sendable, CustomStringConvertible, CustomReflectable {
    package let pem: String

    package init(pem: String) { self.pem = pem }

    package var description: String { "<private key>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
