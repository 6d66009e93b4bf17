// Verifies identity tokens: format, algorithm, key, signature, and only then the claims.

import Support

/// A token that passed every check.
package struct VerifiedToken: Sendable {
    package let claims: IdentityClaims
    /// The issuer's configuration under which it passed.
    package let issuer: IssuerConfiguration
}

/// The checks: pure, in a fixed order, so that the first failure is always the one reported.
package enum TokenChecks {
    /// Algorithm as configured, key by `kid`, signature. The payload is not checked.
    package static func signature(
        _ token: CompactJWS, algorithms: Set<SignatureAlgorithm>, keys: JWKSet
    ) throws(TokenRejection) {
        let (algorithm, keyID) = try keyName(token, algorithms: algorithms)
        switch keys.find(keyID, algorithm) {
        case .key(let key):
            guard key.isValid(token.signature, over: token.signingInput) else {
                throw TokenRejection(.signature, "it is not valid under the issuer's key")
            }
        case .unusable(let reason): throw TokenRejection(.key, "it names \(reason)")
        case .unknown where keyID == nil:
            throw TokenRejection(.key, "the token names no key, and the issuer has none or several")
        case .unknown: throw TokenRejection(.key, "the issuer has no key with this id")
        }
    }

    /// The algorithm and the key id that the token names; nil for none. Throws unless the
    /// algorithm is configured.
    package static func keyName(
        _ token: CompactJWS, algorithms: Set<SignatureAlgorithm>
    ) throws(TokenRejection) -> (SignatureAlgorithm, String?) {
        let named = algorithms.first { $0.rawValue.hasSameOctets(as: token.algorithm) }
        guard let algorithm = named else {
            let taken = algorithms.map(\.rawValue).sorted().joined(separator: ", ")
            throw TokenRejection(
                .algorithm, "it is not one of those configured for the issuer (\(taken))")
        }
        return (algorithm, token.keyID)
    }

    /// Checks the claims, after the signature was found valid: issuer, audience, times, nonce.
    /// - Parameters:
    ///   - audience: the requesting app; if nil, the audience is not checked.
    ///   - nonce: if nil, the nonce is not checked.
    ///   - now: seconds since 1970.
    package static func claims(
        _ claims: IdentityClaims, issuer: IssuerConfiguration, audience: String?,
        nonce: ExpectedNonce?, now: Int64
    ) throws(TokenRejection) {
        guard claims.issuer.hasSameOctets(as: issuer.issuer) else {
            throw TokenRejection(.issuer, "the token is from another issuer")
        }
        if let audience, !claims.audience.hasSameOctets(as: audience) {
            throw TokenRejection(.audience, "the token is for another audience")
        }
        let (lower, upper) = (now &- issuer.leeway, now &+ issuer.leeway)
        guard claims.expiresAt > lower else {
            throw TokenRejection(.expiry, "the token is expired")
        }
        guard claims.issuedAt <= upper else {
            throw TokenRejection(.issuedAt, "the token is issued in the future")
        }
        guard claims.expiresAt >= claims.issuedAt else {
            throw TokenRejection(.expiry, "the token expires before it is issued")
        }
        if let start = claims.notBefore, start > upper {
            throw TokenRejection(.notBefore, "the token is not valid yet")
        }
        try nonce?.check(claims, issuerForm: issuer.nonceForm)
    }

    /// `typ`: absent or `JWT`. Other signed tokens of the same issuer, such as access, logout or
    /// event tokens, are not identity tokens (RFC 8725 section 3.11). Nor is a token that wraps
    /// another (`cty`).
    package static func type(_ token: CompactJWS) throws(TokenRejection) {
        if let type = token.type, type.lowercased() != "jwt" {
            throw TokenRejection(.type, "it says that this is not an identity token")
        }
        if token.header["cty"] != nil {
            throw TokenRejection(.type, "it says that the payload is not claims")
        }
    }

    /// All checks.
    package static func verify(
        _ token: CompactJWS, issuer: IssuerConfiguration, keys: JWKSet, audience: String?,
        nonce: ExpectedNonce?, now: Int64
    ) throws(TokenRejection) -> IdentityClaims {
        try type(token)
        try signature(token, algorithms: issuer.algorithms, keys: keys)
        let claims = try IdentityClaims(payload: token.payload)
        try Self.claims(claims, issuer: issuer, audience: audience, nonce: nonce, now: now)
        return claims
    }
}

/// Verifies tokens of the configured issuers, with keys fetched as needed.
package struct TokenVerifier: Sendable {
    private let issuers: any IssuerDirectory
    private let keys: any VerificationKeySource

    package init(issuers: any IssuerDirectory, keys: any VerificationKeySource) {
        self.issuers = issuers
        self.keys = keys
    }

    /// Verifies an identity token.
    /// - Parameters:
    ///   - audience: the `client_id` of the requesting app.
    ///   - nonce: the nonce that the app expects; if nil, it is not checked.
    ///   - now: seconds since 1970.
    /// - Throws: `TokenVerificationFailure`, and the errors of the issuer directory.
    package func verify(
        _ token: String, audience: String, nonce: ExpectedNonce?, now: Int64
    ) async throws -> VerifiedToken {
        do {
            let jws = try CompactJWS(token)
            let (issuer, keys) = try await trust(jws)
            let claims = try TokenChecks.verify(
                jws, issuer: issuer, keys: keys, audience: audience, nonce: nonce, now: now)
            return VerifiedToken(claims: claims, issuer: issuer)
        } catch let rejection as TokenRejection {
            throw TokenVerificationFailure.rejected(rejection)
        } catch let error as KeysUnavailable {
            throw TokenVerificationFailure.unavailable(error)
        }
    }

    /// The configured issuer that a token claims to be from, and its keys. Fetches no key for a
    /// token that no key could verify: unknown issuer, other algorithm, signature of an impossible
    /// length.
    package func trust(_ token: CompactJWS) async throws -> (IssuerConfiguration, JWKSet) {
        guard
            let claims = try? StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
        else {
            throw TokenRejection(.format, "the payload is not a valid JSON object")
        }
        let iss = try ClaimReader(claims).identifier("iss", .issuer, maximum: 2048)
        guard let issuer = try await issuers.issuer(iss), issuer.issuer.hasSameOctets(as: iss)
        else {
            throw TokenRejection(.issuer, "the issuer is not configured: see postern issuer add")
        }
        let (algorithm, keyID) = try TokenChecks.keyName(token, algorithms: issuer.algorithms)
        guard
            algorithm == .es256
                ? token.signature.count == 64
                : token.signature.count >= JWKSet.rsaBits.lowerBound / 8
        else {
            throw TokenRejection(
                .signature, "its length is not that of a signature of this algorithm")
        }
        return (issuer, try await keys.keys(of: issuer, for: keyID))
    }
}
