// The nonce, which ties a token to the one sign-in that requested it.

import MailCrypto
import Support

/// The relation between the app's nonce and the claim.
package enum NonceForm: String, Sendable, Hashable, CaseIterable {
    /// The claim is the nonce itself.
    case raw
    /// The claim is the SHA-256 of the nonce in lower-case hexadecimal, as
    /// Apple's sample code sends it.
    case sha256Hex = "sha256_hex"

    /// The claim of a token with this nonce.
    package func claim(for nonce: String) -> String {
        switch self {
        case .raw: nonce
        case .sha256Hex: Hex.encode(SHA256.hash(nonce.utf8))
        }
    }
}

/// The nonce that the caller expects. The caller must consume it, keyed on issuer, audience and
/// the token's own claim.
package struct ExpectedNonce: Sendable, Hashable {
    /// Longest accepted nonce, in octets.
    package static let maximumLength = 512

    /// As the app made it, before any hash; nil if the app sent none.
    package let value: String?
    /// Nil for the form of the issuer.
    package let form: NonceForm?
    /// Whether a missing nonce on both sides is refused.
    package let isRequired: Bool

    package init(_ value: String?, form: NonceForm? = nil, isRequired: Bool = true) {
        self.value = value
        self.form = form
        self.isRequired = isRequired
    }

    /// Compares with the claim, in constant time. Throws `nonce` if only one side has a nonce, if
    /// both differ, and if neither has one that is required. With `nonce_supported: false`, the
    /// nonce may be missing on either side; two different ones are still refused.
    package func check(_ claims: IdentityClaims, issuerForm: NonceForm) throws(TokenRejection) {
        if let value, !(1...Self.maximumLength).contains(value.utf8.count) {
            throw TokenRejection(
                .nonce, "the expected nonce is not of 1 to \(Self.maximumLength) octets")
        }
        switch (value, claims.nonce) {
        case (let expected?, let claim?):
            let form = form ?? issuerForm
            guard constantTimeEqual(Array(form.claim(for: expected).utf8), Array(claim.utf8)) else {
                throw TokenRejection(
                    .nonce, "it is not the expected one in the form \(form.rawValue)")
            }
        case (.some, nil) where claims.nonceSupported == false: break
        case (nil, .some) where claims.nonceSupported == false: break
        case (.some, nil): throw TokenRejection(.nonce, "one is expected, but the token has none")
        case (nil, .some):
            throw TokenRejection(.nonce, "the token has one, but none was sent with it")
        case (nil, nil):
            guard !isRequired || claims.nonceSupported == false else {
                throw TokenRejection(.nonce, "one is required, but the token has none")
            }
        }
    }
}

extension ExpectedNonce: CustomStringConvertible, CustomReflectable {
    package var description: String { "<nonce>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
