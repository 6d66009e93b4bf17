// Identity tokens that Postern issues, in the form of Sign in with Apple.

import InternetMessage
import MailCrypto
import Support

/// The address that a team receives.
package enum TokenEmail: Sendable, Hashable {
    /// The account's relay address: `is_private_email` is true.
    case relay(AddrSpec)
    /// The user's real address, if the account shares it.
    case shared(InboxAddress)

    package var address: AddrSpec {
        switch self {
        case .relay(let address): address
        case .shared(let inbox): inbox.revealed
        }
    }

    package var isPrivate: Bool { if case .relay = self { true } else { false } }
}

/// The content of a token.
package struct IdentityTokenContent: Sendable {
    /// `iss`: the installation's own.
    package var issuer: String
    /// `sub`: team-scoped.
    package var subject: String
    /// `aud`: the `client_id`.
    package var audience: String
    /// Seconds since 1970.
    package var issuedAt: Int64
    /// Seconds.
    package var lifetime: Int64
    /// As the client sent it.
    package var nonce: String?
    /// Set if the scope includes it.
    package var email: TokenEmail?
    package var realUserStatus: RealUserStatus?
    package var authenticatedAt: Int64?
    /// `amr` and `acr`.
    package var method = AuthenticationMethod()
    /// Set for 60 days after a transfer.
    package var transferSubject: String?
    package var orgID: String?
    /// `sid`: the session of the page, by the name that it has for this app.
    package var sessionID: String?
    /// The code or access token sent with it, for `c_hash` and `at_hash` (OpenID Connect Core
    /// sections 3.3.2.11, 3.1.3.6).
    package var code: String?
    package var accessToken: String?

    package init(
        issuer: String, subject: String, audience: String, issuedAt: Int64, lifetime: Int64
    ) {
        self.issuer = issuer
        self.subject = subject
        self.audience = audience
        self.issuedAt = issuedAt
        self.lifetime = lifetime
    }

    /// The claims in a fixed order.
    package var claims: JSONObject {
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(audience), "exp": .integer(issuedAt &+ lifetime),
            "iat": .integer(issuedAt),
            "sub": .string(subject),
        ]
        claims["nonce"] = nonce.map(JSONValue.string)
        claims["nonce_supported"] = .bool(true)
        claims["c_hash"] = code.map { .string(Self.leftHalfHash($0)) }
        claims["at_hash"] = accessToken.map { .string(Self.leftHalfHash($0)) }
        if let email {
            claims["email"] = .string(email.address.wireForm)
            claims["email_verified"] = .bool(true)
            claims["is_private_email"] = .bool(email.isPrivate)
        }
        claims["real_user_status"] = realUserStatus.map { .integer(Int64($0.rawValue)) }
        claims["auth_time"] = authenticatedAt.map(JSONValue.integer)
        if !method.references.isEmpty {
            claims["amr"] = .array(method.references.map(JSONValue.string))
        }
        claims["acr"] = method.contextClass.map(JSONValue.string)
        claims["transfer_sub"] = transferSubject.map(JSONValue.string)
        claims["org_id"] = orgID.map(JSONValue.string)
        claims["sid"] = sessionID.map(JSONValue.string)
        return claims
    }

    /// The left half of the SHA-256, in base64url.
    package static func leftHalfHash(_ text: String) -> String {
        Base64URL.encode(SHA256.hash(text.utf8).prefix(16))
    }
}

extension IdentityTokenContent: CustomStringConvertible, CustomReflectable {
    package var description: String { "<identity token>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
