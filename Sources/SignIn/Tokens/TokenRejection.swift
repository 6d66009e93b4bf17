// Why a token is rejected: the failed check, and never the token's content.

/// A token is refused permanently: the same token will be refused again.
package struct TokenRejection: Error, Sendable, Hashable, CustomStringConvertible {
    /// The failed check, in the order of the checks. The raw values appear in responses.
    package enum Check: String, Sendable, Hashable, CaseIterable {
        /// Not three segments of canonical base64url with a JSON object in the first and, if claims
        /// are read, in the second; or a header parameter that is not allowed.
        case format
        /// `typ` names another kind of token (RFC 8725 section 3.11).
        case type = "typ"
        /// `alg` is not configured for the issuer.
        case algorithm = "alg"
        /// No usable key of the issuer has the token's `kid`.
        case key = "kid"
        case signature
        case issuer = "iss"
        case audience = "aud"
        case subject = "sub"
        /// Expired, or without `exp`.
        case expiry = "exp"
        /// Issued in the future, too long ago if age is limited, or without `iat`.
        case issuedAt = "iat"
        /// `nbf` is in the future.
        case notBefore = "nbf"
        case nonce
        /// Another claim is missing or of the wrong type.
        case claims
    }

    package let check: Check
    /// One sentence for the sender of the token. Repeats none of its content.
    package let reason: String

    package init(_ check: Check, _ reason: String) {
        self.check = check
        self.reason = reason
    }

    package var description: String { "\(check.rawValue): \(reason)" }
}

/// The keys of an issuer are unavailable now: the token can be verified only later. HTTP 503.
package struct KeysUnavailable: Error, Sendable, Hashable, CustomStringConvertible {
    /// The issuer's name in this installation.
    package let issuer: String
    /// The failure in one line, for the operator.
    package let reason: String
    /// Seconds to wait before a new attempt.
    package let retryAfter: Int64

    package init(issuer: String, reason: String, retryAfter: Int64) {
        self.issuer = issuer
        self.reason = reason
        self.retryAfter = retryAfter
    }

    package var description: String { "the keys of issuer \(issuer) are unavailable: \(reason)" }
}

/// How a verification fails: permanently, or for now.
package enum TokenVerificationFailure: Error, Sendable, Hashable, CustomStringConvertible {
    case rejected(TokenRejection)
    case unavailable(KeysUnavailable)

    package var description: String {
        switch self {
        case .rejected(let rejection): rejection.description
        case .unavailable(let error): error.description
        }
    }
}
