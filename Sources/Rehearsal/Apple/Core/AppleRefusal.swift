// Why a request is refused: Apple's error code, and the cause, which Apple does not give.

/// A refusal of an endpoint under /auth (TN3107, RFC 6749 section 5.2).
package struct AppleRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// Apple's codes.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        case invalidRequest = "invalid_request"
        case invalidClient = "invalid_client"
        case invalidGrant = "invalid_grant"
        case unauthorizedClient = "unauthorized_client"
        case unsupportedGrantType = "unsupported_grant_type"
        case invalidScope = "invalid_scope"
    }

    package let code: Code
    /// For the developer: the problem, with the values that show it. Shown on the page and in the
    /// log, never in the response.
    package let cause: String
    /// `error_description`, if Apple's responses have one for this error.
    package let detail: String?

    init(_ code: Code, _ cause: String, detail: String? = nil) {
        self.code = code
        self.cause = cause
        self.detail = detail
    }

    package var description: String { "\(code.rawValue): \(cause)" }
}

/// A span of seconds in readable form: `3 s`, `5 min`, `2 h`, `190 days`.
package func span(_ seconds: Int64) -> String {
    switch seconds.magnitude {
    case ..<120: "\(seconds) s"
    case ..<7_200: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3_600) h"
    default: "\(seconds / 86_400) days"
    }
}
