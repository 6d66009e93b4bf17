// The client secret: a JWT that a team signs with ES256, checked like Apple's; a
// refusal names the cause.

import SignIn
import Support

package enum AppleClientSecret {
    /// Longest time from now to `exp`, in seconds: six months.
    package static let maximumLifetime: Int64 = 15_777_000
    /// Seconds that `iat` may be ahead, because clocks differ.
    static let leeway: Int64 = 300

    /// Checks a client secret. Throws `invalid_client`.
    /// - Parameters:
    ///   - team: the client's team.
    ///   - issuer: the required `aud`.
    ///   - now: seconds since 1970.
    static func check(
        _ secret: String, clientID: String, team: AppleTeam, issuer: String, now: Int64
    ) throws(AppleRefusal) {
        let token: CompactJWS
        do { token = try CompactJWS(secret) } catch {
            throw refused("is not a JWT: \(error.reason)")
        }
        guard token.algorithm == "ES256" else {
            throw refused(
                "has alg \(token.algorithm.withoutControls(limit: 40)) in its header: it must be ES256"
            )
        }
        guard let kid = token.keyID else { throw refused("has no kid in its header") }
        guard let key = team.keys.first(where: { $0.id.hasSameOctets(as: kid) }) else {
            throw refused(
                "has kid \(kid.withoutControls(limit: 80)), which is not a key of team \(team.id)")
        }
        let claims: JSONObject
        do {
            claims = try StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
        } catch {
            throw refused("has a payload that is not a JSON object: \(error)")
        }
        for name in ["iss", "iat", "exp", "aud", "sub"] where claims[name] == nil {
            throw refused("has no claim \(name)")
        }
        guard token.signature.count == 64 else {
            throw refused(
                token.signature.first == 0x30
                    ? "has a signature in ASN.1 DER (\(token.signature.count) octets): ES256 wants r and s, 32 octets each"
                    : "has a signature of \(token.signature.count) octets: ES256 has 64")
        }
        guard key.verificationKey.isValid(token.signature, over: token.signingInput) else {
            throw refused("has a signature that is not valid under key \(kid) of team \(team.id)")
        }
        try require(claims, "iss", team.id, "the team")
        try require(claims, "sub", clientID, "the client_id")
        try require(claims, "aud", issuer, "the issuer")
        guard let issuedAt = claims["iat"]?.number?.floor, let expiry = claims["exp"]?.number?.floor
        else {
            throw refused("has an iat or exp that is not a number of seconds")
        }
        // Both must be within ±2^53, so that differences do not overflow.
        guard issuedAt.magnitude <= 1 << 53, expiry.magnitude <= 1 << 53 else {
            throw refused("has an iat or exp far from any date")
        }
        guard expiry > now else { throw refused("expired \(span(now - expiry)) ago") }
        guard expiry - now <= maximumLifetime else {
            throw refused(
                "expires in \(span(expiry - now)): at most six months (\(maximumLifetime) s) are allowed"
            )
        }
        guard issuedAt <= now + leeway else {
            throw refused("is issued \(span(issuedAt - now)) in the future")
        }
    }

    private static func require(
        _ claims: JSONObject, _ name: String, _ wanted: String, _ what: String
    ) throws(AppleRefusal) {
        // `aud` may be a list of one (RFC 7519 section 4.1.3).
        let value = claims[name]?.array.flatMap { $0.count == 1 ? $0.first : nil } ?? claims[name]
        guard let text = value?.string, text.hasSameOctets(as: wanted) else {
            let found =
                value?.string.map { "\"\($0.withoutControls(limit: 80))\"" } ?? value?.kind
                ?? "nothing"
            throw refused("has \(name) \(found): it must be \(what), \(wanted)")
        }
    }

    private static func refused(_ cause: String) -> AppleRefusal {
        AppleRefusal(.invalidClient, "client_secret \(cause)")
    }

    /// Header and claims of a secret for the page, without its signature; nil if it is not a JWT.
    package static func shown(_ secret: String) -> String? {
        guard let token = try? CompactJWS(secret),
            let payload = String(validating: token.payload, as: UTF8.self)
        else {
            return nil
        }
        return JSONValue.object(token.header).text + " " + payload
    }
}
