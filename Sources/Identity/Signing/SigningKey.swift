// The provider's own keys: identity tokens and events are signed with ES256.

import Foundation
import JWTKit
import MailCrypto

/// A private key on P-256 with its id. Prints its id only.
package struct IdentitySigningKey: Sendable {
    /// `kid`: the JWK thumbprint (RFC 7638), so that a key has one id wherever it is published.
    package let keyID: String
    /// The public part as it stands in a JWK Set.
    package let publicJWK: JSONObject
    private let signer: any JWTAlgorithm
    private let point: ECPoint

    /// Reads unencrypted PKCS#8 or SEC 1 PEM. Throws `KeySetError` for anything but a private key on P-256.
    package init(pem: String) async throws(KeySetError) {
        guard let key = try? ES256PrivateKey(pem: pem) else { throw KeySetError("not a private key on P-256 in PEM") }
        try await self.init(key)
    }

    /// Makes a new key. The PEM is for sealed storage.
    package static func generate() async throws(KeySetError) -> (key: IdentitySigningKey, pem: String) {
        let key = ES256PrivateKey()
        return (try await IdentitySigningKey(key), key.pemRepresentation)
    }

    private init(_ key: ES256PrivateKey) async throws(KeySetError) {
        guard let parameters = key.parameters, let point = ECPoint(parameters),
            let signer = await JWTAlgorithms.verifier({ await $0.add(ecdsa: key) })
        else { throw KeySetError("the key on P-256 cannot be used") }
        self.point = point
        self.signer = signer
        keyID = Base64URL.encode(SHA256.hash(JSONValue.object(point.jwk).octets))
        var jwk: JSONObject = ["kty": "EC", "kid": .string(keyID), "use": "sig", "alg": "ES256"]
        for name in ["crv", "x", "y"] { jwk[name] = point.jwk[name] }
        publicJWK = jwk
    }

    /// The same key for verifying.
    package func verificationKey() async throws(KeySetError) -> VerificationKey {
        guard let key = await VerificationKey.es256(keyID: keyID, x: point.x, y: point.y) else {
            throw KeySetError("the key on P-256 cannot be used")
        }
        return key
    }

    /// A JWS in compact serialization over these claims. Throws what the library throws where it cannot sign.
    /// - Parameter type: `typ`; nil for none.
    package func sign(_ claims: JSONObject, type: String? = "JWT") throws -> String {
        var header: JSONObject = ["alg": "ES256", "kid": .string(keyID)]
        if let type { header["typ"] = .string(type) }
        let input = Base64URL.encode(JSONValue.object(header).octets) + "." + Base64URL.encode(JSONValue.object(claims).octets)
        let signature = try signer.sign(Array(input.utf8))
        return input + "." + Base64URL.encode(signature)
    }
}

extension IdentitySigningKey: CustomStringConvertible, CustomReflectable {
    package var description: String { "<signing key \(keyID)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What is published at `/auth/keys`.
package enum PublishedKeys {
    /// The JWK Set document of these keys: the active one first, then the next, then those of which tokens may still be
    /// under way.
    package static func document(_ keys: [JSONObject]) -> [UInt8] {
        JSONValue.object(["keys": .array(keys.map(JSONValue.object))]).octets
    }
}
