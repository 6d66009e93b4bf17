// The `client_secret` of /auth/token and /auth/revoke: a JWT that the team signs with its own key.

/// Verifies client secrets.
package enum ClientSecret {
    /// Longest time from `iat` to `exp`, in seconds: six months, as at Apple.
    package static let maximumLifetime: Int64 = 15_777_000

    /// Checks a client secret. Its signature is ES256 by one of the team's keys, found by `kid`.
    /// `iss` is the team, `sub` the client and `aud` the provider. `iat` is not in the future.
    /// `exp` is in the future, at most `maximumLifetime` after `iat`.
    /// - Parameters:
    ///   - issuer: the provider's `iss`.
    ///   - now: seconds since 1970.
    package static func verify(
        _ secret: String, team: String, clientID: String, issuer: String, keys: JWKSet, now: Int64,
        leeway: Int64 = IssuerConfiguration.defaultLeeway
    ) throws(TokenRejection) {
        let token = try CompactJWS(secret)
        try TokenChecks.type(token)
        try TokenChecks.signature(token, algorithms: [.es256], keys: keys)
        // A client secret needs exactly the claims that every identity token must have.
        let claims = try IdentityClaims(payload: token.payload)
        guard claims.issuer.hasSameOctets(as: team) else {
            throw TokenRejection(.issuer, "it is not the id of the client's team")
        }
        guard claims.subject.hasSameOctets(as: clientID) else {
            throw TokenRejection(.subject, "it is not the client_id")
        }
        guard claims.audience.hasSameOctets(as: issuer) else {
            throw TokenRejection(.audience, "it is not \(issuer)")
        }
        guard claims.expiresAt > now &- leeway else {
            throw TokenRejection(.expiry, "the client secret is expired")
        }
        guard claims.issuedAt <= now &+ leeway else {
            throw TokenRejection(.issuedAt, "the client secret is issued in the future")
        }
        guard claims.expiresAt >= claims.issuedAt,
            claims.expiresAt - claims.issuedAt <= maximumLifetime
        else {
            throw TokenRejection(.expiry, "it is not within \(maximumLifetime) seconds after iat")
        }
        if let start = claims.notBefore, start > now &+ leeway {
            throw TokenRejection(.notBefore, "the client secret is not valid yet")
        }
    }
}
