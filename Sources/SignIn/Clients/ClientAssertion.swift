// `private_key_jwt`: a JWT that a client signs for one request (RFC 7523 section 3, OpenID Connect
// Core section 9). Pure.

import Support

/// A client assertion whose signature and claims were checked. The store checks
/// whether its `jti` was used.
package struct ClientAssertion: Sendable, Hashable {
    /// `client_assertion_type`.
    package static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// Longest time until `exp`, in seconds: as long as a `jti` is remembered.
    package static let maximumLifetime: Int64 = 3_600

    /// 1 to 255 octets.
    package let jti: String
    /// Until when the assertion is valid, with the leeway: seconds since 1970.
    package let expiresAt: Int64

    /// The client that an assertion claims to be from. Nothing is checked yet.
    package static func clientID(_ assertion: String) -> String? {
        guard let token = try? CompactJWS(assertion),
            let claims = try? StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
        else { return nil }
        return claims["sub"]?.string
    }

    /// Checks an assertion. Its signature is ES256 or RS256 by one of the team's keys, found by
    /// `kid`. `iss` and `sub` are the client, and `aud` is one of the provider's. `exp` is in the
    /// future, at most an hour away. `jti` is present.
    /// - Parameters:
    ///   - audiences: the provider's `iss`, and the requested endpoint.
    ///   - now: seconds since 1970.
    package init(
        _ assertion: String, clientID: String, audiences: [String], keys: JWKSet, now: Int64,
        leeway: Int64 = IssuerConfiguration.defaultLeeway
    ) throws(TokenRejection) {
        let token = try CompactJWS(assertion)
        if let type = token.type, !["jwt", "client-authentication+jwt"].contains(type.lowercased())
        {
            throw TokenRejection(.type, "it says that this is not a client assertion")
        }
        try TokenChecks.signature(token, algorithms: [.es256, .rs256], keys: keys)
        let claims: JSONObject
        do {
            claims = try StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
        } catch {
            throw TokenRejection(.format, "the payload is not valid JSON: \(error)")
        }
        let reader = ClaimReader(claims)
        guard try reader.identifier("iss", .issuer).hasSameOctets(as: clientID) else {
            throw TokenRejection(.issuer, "it is not the client_id")
        }
        guard try reader.identifier("sub", .subject).hasSameOctets(as: clientID) else {
            throw TokenRejection(.subject, "it is not the client_id")
        }
        guard
            try reader.audiences().contains(where: { given in
                audiences.contains(where: given.hasSameOctets(as:))
            })
        else {
            throw TokenRejection(.audience, "it is neither the issuer nor this endpoint")
        }
        let end = try reader.requiredTime("exp", .expiry)
        guard end > now &- leeway else { throw TokenRejection(.expiry, "the assertion is expired") }
        guard end <= now &+ Self.maximumLifetime &+ leeway else {
            throw TokenRejection(.expiry, "it is more than \(Self.maximumLifetime) seconds away")
        }
        if let start = try reader.time("iat", .issuedAt), start > now &+ leeway {
            throw TokenRejection(.issuedAt, "the assertion is issued in the future")
        }
        if let start = try reader.time("nbf", .notBefore), start > now &+ leeway {
            throw TokenRejection(.notBefore, "the assertion is not valid yet")
        }
        jti = try reader.identifier("jti", .claims)
        expiresAt = end &+ leeway
    }
}
