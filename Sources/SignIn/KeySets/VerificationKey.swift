// One public key that verifies tokens, for one algorithm.

import Database
import Foundation
import MailCrypto
import Support

/// The accepted signature algorithms of tokens (RFC 7518 section 3.1).
package enum SignatureAlgorithm: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA on P-256 with SHA-256.
    case es256 = "ES256"
}

/// A public key with its id and its one algorithm.
package struct VerificationKey: Sendable {
    /// `kid`.
    package let keyID: String
    package let algorithm: SignatureAlgorithm
    /// Length of the modulus in bits, or 256.
    package let bits: Int
    /// The values that identify a key: modulus and exponent, or the two coordinates.
    let identity: [[UInt8]]
    private let key: PublicKey

    private enum PublicKey: Sendable {
        case p256(P256PublicKey)
        case rsa(RSAPublicKey)
    }

    /// Whether the signature over these octets was made with this key.
    package func isValid(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        // RFC 8017 section 8.2.2 step 1 and RFC 7518 section 3.4: any other length is invalid, even
        // if the library accepts it.
        guard signature.count == (algorithm == .es256 ? 64 : (bits + 7) / 8) else { return false }
        return switch key {
        case .p256(let key): key.verifySHA256(message: message, signature: signature)
        case .rsa(let key): key.verifySHA256(message: message, signature: signature)
        }
    }

    init(keyID: String, _ key: P256PublicKey) {
        self.keyID = keyID
        algorithm = .es256
        bits = 256
        identity = [key.x, key.y]
        self.key = .p256(key)
    }

    /// An RSA key from modulus and exponent without leading zeros. Nil if the
    /// library does not accept it.
    init?(keyID: String, modulus: [UInt8], exponent: [UInt8]) {
        guard let first = modulus.first, first != 0,
            let key = try? RSAPublicKey(modulus: modulus, exponent: exponent)
        else {
            return nil
        }
        self.keyID = keyID
        algorithm = .rs256
        bits = modulus.count * 8 - first.leadingZeroBitCount
        identity = [modulus, exponent]
        self.key = .rsa(key)
    }
}

extension VerificationKey {
    /// A P-256 key, or an RSA key with 2048 to 8192 bits, from a SubjectPublicKeyInfo in PEM, as a
    /// team registers it. Throws for anything else.
    package init(keyID: String, pem: String) throws(KeySetError) {
        guard (1...256).contains(keyID.utf8.count) else {
            throw KeySetError("a key id must have 1 to 256 octets")
        }
        guard let info = Self.octets(pem) else {
            throw KeySetError("not a public key in PEM (BEGIN PUBLIC KEY)")
        }
        if let key = try? P256PublicKey(publicKeyInfo: info) {
            self.init(keyID: keyID, key)
            return
        }
        guard let (modulus, exponent) = RSAPublicKey.numbers(der: info) else {
            throw KeySetError("not a public key on P-256 or of RSA in PEM (BEGIN PUBLIC KEY)")
        }
        // Checked like a key of a key set.
        let jwk: JSONObject = [
            "kty": "RSA", "kid": .string(keyID), "n": .string(Base64URL.encode(modulus)),
            "e": .string(Base64URL.encode(exponent)),
        ]
        self = try JWKSet.key(jwk)
    }

    /// The content of the PEM text, with lines of any length: people paste keys in one line.
    private static func octets(_ pem: String) -> [UInt8]? {
        let (begin, end) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----")
        let text = pem.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count <= 4096, text.hasPrefix(begin), text.hasSuffix(end),
            text.utf8.count > begin.utf8.count + end.utf8.count
        else { return nil }
        return Data(
            base64Encoded: String(
                text.dropFirst(begin.count).dropLast(end.count).filter { !$0.isWhitespace })
        ).map(
            Array.init)
    }

    /// The JWK thumbprint (RFC 7638) in base64url: a name that depends only on the key.
    package var thumbprint: String {
        let values = identity.map { JSONValue.string(Base64URL.encode($0)) }
        let jwk: JSONObject =
            switch algorithm {
            case .es256: ["crv": "P-256", "kty": "EC", "x": values[0], "y": values[1]]
            case .rs256: ["e": values[1], "kty": "RSA", "n": values[0]]
            }
        return Base64URL.encode(SHA256.hash(JSONValue.object(jwk).octets))
    }
}

extension P256PublicKey {
    /// The members of a JWK that the thumbprint covers, in the order that RFC
    /// 7638 section 3.2 requires.
    var jwk: JSONObject {
        [
            "crv": "P-256", "kty": "EC", "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)),
        ]
    }
}
