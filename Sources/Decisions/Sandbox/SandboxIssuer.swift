// An issuer of identity tokens for tests: a key in memory, and any claims that are requested.

import InternetMessage
import SignIn
import Support

/// The content of a test token.
package struct SandboxToken: Sendable {
    package var subject: String
    /// The `client_id`.
    package var audience: String
    /// The claim to write; nil for none.
    package var nonceClaim: String?
    /// 0, 1, 2, or any other value to test that it is ignored; nil for none.
    package var realUserStatus: Int64?
    package var nonceSupported: Bool?
    package var email: String?
    /// `amr` (RFC 8176); nil for none.
    package var methods: [String]?
    /// `auth_time`, seconds since 1970; nil for none.
    package var authenticatedAt: Int64?
    /// Seconds.
    package var lifetime: Int64
    /// Seconds since 1970; nil: now.
    package var issuedAt: Int64?

    package init(
        subject: String, audience: String, nonceClaim: String? = nil, realUserStatus: Int64? = nil,
        nonceSupported: Bool? = nil,
        email: String? = nil, methods: [String]? = nil, authenticatedAt: Int64? = nil,
        lifetime: Int64 = 600,
        issuedAt: Int64? = nil
    ) {
        self.subject = subject
        self.audience = audience
        self.nonceClaim = nonceClaim
        self.realUserStatus = realUserStatus
        self.nonceSupported = nonceSupported
        self.email = email
        self.methods = methods
        self.authenticatedAt = authenticatedAt
        self.lifetime = lifetime
        self.issuedAt = issuedAt
    }
}

/// Creates tokens, and provides the issuer and the key that verify them. The key exists
/// in this process only.
package struct SandboxIssuer: Sendable, IssuerDirectory, VerificationKeySource {
    /// `iss`.
    package let issuer: String
    private let key: IdentitySigningKey
    private let keySet: JWKSet

    /// Creates a key. Throws if the library fails.
    package static func make(issuer: String) throws -> SandboxIssuer {
        let (key, _) = try IdentitySigningKey.generate()
        return SandboxIssuer(issuer: issuer, key: key, keySet: JWKSet([key.verificationKey]))
    }

    private init(issuer: String, key: IdentitySigningKey, keySet: JWKSet) {
        self.issuer = issuer
        self.key = key
        self.keySet = keySet
    }

    /// The key set as `/auth/keys` of a provider would publish it (RFC 7517).
    package var publishedKeys: String {
        String(decoding: PublishedKeys.document([key.publicJWK]), as: UTF8.self)
    }

    package func issuer(_ iss: String) async throws -> IssuerConfiguration? {
        guard iss.hasSameOctets(as: issuer) else { return nil }
        return IssuerConfiguration(name: "sandbox", issuer: issuer, source: .inline(""))
    }

    package func keys(
        of issuer: IssuerConfiguration, for keyID: String?
    ) async throws(KeysUnavailable) -> JWKSet { keySet }

    /// A signed token.
    /// - Parameter now: seconds since 1970.
    package func mint(_ token: SandboxToken, now: Int64) throws -> String {
        let issuedAt = token.issuedAt ?? now
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(token.audience), "sub": .string(token.subject),
            "iat": .integer(issuedAt), "exp": .integer(issuedAt &+ token.lifetime),
        ]
        claims["nonce"] = token.nonceClaim.map(JSONValue.string)
        claims["nonce_supported"] = token.nonceSupported.map(JSONValue.bool)
        claims["real_user_status"] = token.realUserStatus.map(JSONValue.integer)
        claims["email"] = token.email.map(JSONValue.string)
        claims["auth_time"] = token.authenticatedAt.map(JSONValue.integer)
        claims["amr"] = token.methods.map { .array($0.map(JSONValue.string)) }
        return try key.sign(claims)
    }
}
