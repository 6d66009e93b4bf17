// The provider's own keys: identity tokens and events are signed with ES256 or RS256.

import MailCrypto
import Support

/// A private key (P-256 or RSA) with its id. Prints its id only.
package struct IdentitySigningKey: Sendable {
    /// `kid`: the JWK thumbprint (RFC 7638), so that a key has the same id at every place of
    /// publication.
    package let keyID: String
    /// The public part unchanged in a JWK Set.
    package let publicJWK: JSONObject
    /// The matching key for verifying.
    package let verificationKey: VerificationKey
    package var algorithm: SignatureAlgorithm { verificationKey.algorithm }
    private let key: PrivateKey

    private enum PrivateKey: Sendable {
        case p256(P256PrivateKey)
        case rsa(RSAPrivateKey)
    }

    /// Modulus length of RSA keys made here, in bits (NIST SP 800-57 part 1: until 2030).
    private static let rsaBits = 2048

    /// Reads unencrypted PKCS#8, SEC 1 or PKCS#1 PEM. Throws `KeySetError` for anything but a
    /// P-256 or RSA private key.
    package init(pem: String) throws(KeySetError) {
        if let key = try? P256PrivateKey(pem: pem) {
            self.init(key)
        } else if let key = try? RSAPrivateKey(pem: pem) {
            try self.init(key)
        } else {
            throw KeySetError("not a private key on P-256 or of RSA in PEM")
        }
    }

    /// Makes a new key whose id does not begin with a hyphen: a command would read that as an
    /// option. The PEM is for sealed storage.
    package static func generate(
        _ algorithm: SignatureAlgorithm = .es256
    ) throws(KeySetError) -> (key: IdentitySigningKey, pem: String) {
        do {
            while true {
                let made: (key: IdentitySigningKey, pem: String)
                switch algorithm {
                case .es256:
                    let key = try P256PrivateKey.generate()
                    made = (IdentitySigningKey(key), try key.pem())
                case .rs256:
                    let key = try RSAPrivateKey.generate(bits: rsaBits)
                    made = (try IdentitySigningKey(key), try key.pem())
                }
                if !made.key.keyID.hasPrefix("-") { return made }
            }
        } catch {
            throw KeySetError("a key for \(algorithm.rawValue) cannot be made: \(error)")
        }
    }

    private init(_ key: P256PrivateKey) {
        self.key = .p256(key)
        let members = key.publicKey.jwk
        keyID = Base64URL.encode(SHA256.hash(JSONValue.object(members).octets))
        verificationKey = VerificationKey(keyID: keyID, key.publicKey)
        var jwk: JSONObject = ["kty": "EC", "kid": .string(keyID), "use": "sig", "alg": "ES256"]
        for name in ["crv", "x", "y"] { jwk[name] = members[name] }
        publicJWK = jwk
    }

    private init(_ key: RSAPrivateKey) throws(KeySetError) {
        guard let info = try? key.publicKeyInfo(),
            let (modulus, exponent) = RSAPublicKey.numbers(der: info)
        else {
            throw KeySetError("the RSA key has no public part")
        }
        // The order that RFC 7638 section 3.2 requires.
        let members: JSONObject = [
            "e": .string(Base64URL.encode(exponent)), "kty": "RSA",
            "n": .string(Base64URL.encode(modulus)),
        ]
        let keyID = Base64URL.encode(SHA256.hash(JSONValue.object(members).octets))
        guard let publicKey = VerificationKey(keyID: keyID, modulus: modulus, exponent: exponent)
        else {
            throw KeySetError("libcrypto does not accept the RSA key")
        }
        (self.key, self.keyID, verificationKey) = (.rsa(key), keyID, publicKey)
        var jwk: JSONObject = ["kty": "RSA", "kid": .string(keyID), "use": "sig", "alg": "RS256"]
        for name in ["n", "e"] { jwk[name] = members[name] }
        publicJWK = jwk
    }

    /// A JWS in compact serialization over these claims. Throws `CryptoError` if signing fails.
    /// - Parameters:
    ///   - type: `typ`; nil for none.
    ///   - keyID: `kid`, if the key is published under another id.
    package func sign(
        _ claims: JSONObject, type: String? = "JWT", keyID: String? = nil
    ) throws -> String {
        var header: JSONObject = [
            "alg": .string(algorithm.rawValue), "kid": .string(keyID ?? self.keyID),
        ]
        if let type { header["typ"] = .string(type) }
        let input =
            Base64URL.encode(JSONValue.object(header).octets) + "."
            + Base64URL.encode(JSONValue.object(claims).octets)
        let signature =
            switch key {
            case .p256(let key): try key.signSHA256(message: Array(input.utf8))
            case .rsa(let key): try key.signSHA256(message: Array(input.utf8))
            }
        return input + "." + Base64URL.encode(signature)
    }
}

extension IdentitySigningKey: CustomStringConvertible, CustomReflectable {
    package var description: String { "<signing key \(keyID)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The content of `/auth/keys`.
package enum PublishedKeys {
    /// The JWK Set document of these keys: the active one first, then the next, then replaced ones
    /// whose tokens may still be in use.
    package static func document(_ keys: [JSONObject]) -> [UInt8] {
        JSONValue.object(["keys": .array(keys.map(JSONValue.object))]).octets
    }
}
