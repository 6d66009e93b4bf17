// Logout tokens (OpenID Connect Back-Channel Logout 1.0 section 2.4).

import MailCrypto
import Support

/// The claims of a logout token. They never include a `nonce`, so that no one can use a logout
/// token as an identity token.
package enum LogoutToken {
    /// `typ` of the header.
    package static let type = "logout+jwt"
    /// The member of `events`.
    package static let event = "http://schemas.openid.net/event/backchannel-logout"
    /// Seconds.
    package static let lifetime: Int64 = 120

    /// - Parameter now: seconds since 1970.
    package static func claims(_ notice: LogoutNotice, issuer: String, now: Int64) -> JSONObject {
        [
            "iss": .string(issuer), "aud": .string(notice.clientID), "iat": .integer(now),
            "exp": .integer(now + lifetime),
            "jti": .string(notice.id), "sub": .string(notice.subject),
            "sid": .string(notice.sessionID),
            "events": .object([event: .object([:])]),
        ]
    }
}

extension IdentitySigner {
    /// The token of a notice, signed as the app's identity tokens are.
    package func token(_ notice: LogoutNotice, issuer: String, now: Int64) async throws -> String {
        try await key(notice.algorithm).sign(
            LogoutToken.claims(notice, issuer: issuer, now: now), type: LogoutToken.type)
    }
}
