// The provider's own keys: identity tokens and events are signed with ES256.

import JSON
import MailCrypto
import Support

/// A private key on P-256 with its id. Prints its id only.
package struct IdentitySigningKey: Sendable {
    /// `kid`: the JWK thumbprint (RFC 7638), so that a key has one id wherever it is published.
    package let keyID: String
    /// The public part unchanged in a JWK Set.
    package let publicJWK: JSONObject
    /// The same key for verifying.
    package let verificationKey: VerificationKey
    private let key: P256PrivateKey

    /// Reads unencrypted PKCS#8 or SEC 1 PEM. Throws `KeySetError` for anything but a private key on P-256.
    package init(pem: String) throws(KeySetError) {
        guard let key = try? P256PrivateKey(pem: pem) else { throw KeySetError("not a private key on P-256 in PEM") }
        self.init(key)
    }

    /// Makes a new key, whose id does not begin with a hyphen: a command would take that for an option. The PEM is for sealed
    /// storage.
    package static func generate() throws(KeySetError) -> (key: IdentitySigningKey, pem: String) {
        do {
            while true {
                let key = try P256PrivateKey.generate()
                let signer = IdentitySigningKey(key)
                if !signer.keyID.hasPrefix("-") { return (signer, try key.pem()) }
            }
        } catch {
            throw KeySetError("a key on P-256 cannot be made: \(error)")
        }
    }

    private init(_ key: P256PrivateKey) {
        self.key = key
        let members = key.publicKey.jwk
        keyID = Base64URL.encode(SHA256.hash(JSONValue.object(members).octets))
        verificationKey = VerificationKey(keyID: keyID, key.publicKey)
        var jwk: JSONObject = ["kty": "EC", "kid": .string(keyID), "use": "sig", "alg": "ES256"]
        for name in ["crv", "x", "y"] { jwk[name] = members[name] }
        publicJWK = jwk
    }

    /// A JWS in compact serialization over these claims. Throws `CryptoError` where it cannot sign.
    /// - Parameter type: `typ`; nil for none.
    package func sign(_ claims: JSONObject, type: String? = "JWT") throws -> String {
        var header: JSONObject = ["alg": "ES256", "kid": .string(keyID)]
        if let type { header["typ"] = .string(type) }
        let input = Base64URL.encode(JSONValue.object(header).octets) + "." + Base64URL.encode(JSONValue.object(claims).octets)
        let signature = try key.signSHA256(message: Array(input.utf8))
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
