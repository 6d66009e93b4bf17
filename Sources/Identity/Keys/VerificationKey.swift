// One public key that tokens are checked with. The arithmetic is jwt-kit's; which key and algorithm it uses is decided here.

import Foundation
import JWTKit
import MailCrypto

/// The signature algorithms that tokens may have (RFC 7518 section 3.1).
package enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
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
    /// Length of the modulus, or 256.
    package let bits: Int
    /// What makes two keys the same: modulus and exponent, or the two coordinates.
    let identity: [[UInt8]]
    private let verifier: any JWTAlgorithm

    /// Whether the signature was made over these octets with this key.
    package func isValid(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        // RFC 8017 section 8.2.2 step 1 and RFC 7518 section 3.4: any other length is invalid, whatever the library thinks.
        guard signature.count == (algorithm == .es256 ? 64 : (bits + 7) / 8) else { return false }
        return (try? verifier.verify(signature, signs: message)) == true
    }

    /// A P-256 key from its coordinates of 32 octets each. Nil where they are no point of the curve.
    static func es256(keyID: String, x: [UInt8], y: [UInt8]) async -> VerificationKey? {
        guard x.count == 32, y.count == 32,
            let key = try? ES256PublicKey(parameters: (Base64URL.encode(x), Base64URL.encode(y))),
            let verifier = await JWTAlgorithms.verifier({ await $0.add(ecdsa: key) }), verifier.name == "ES256"
        else { return nil }
        return VerificationKey(keyID: keyID, algorithm: .es256, bits: 256, identity: [x, y], verifier: verifier)
    }

    /// An RSA key from modulus and exponent without leading zeros. Nil where the library does not take it.
    static func rs256(keyID: String, modulus: [UInt8], exponent: [UInt8]) async -> VerificationKey? {
        guard let first = modulus.first, first != 0,
            let key = try? Insecure.RSA.PublicKey(modulus: Base64URL.encode(modulus), exponent: Base64URL.encode(exponent)),
            let verifier = await JWTAlgorithms.verifier({ await $0.add(rsa: key, digestAlgorithm: .sha256) }),
            verifier.name == "RS256"
        else { return nil }
        return VerificationKey(
            keyID: keyID, algorithm: .rs256, bits: modulus.count * 8 - first.leadingZeroBitCount, identity: [modulus, exponent],
            verifier: verifier)
    }
}

extension VerificationKey {
    /// A P-256 key from a SubjectPublicKeyInfo in PEM, as a team registers it for its client secrets. Throws where it is
    /// anything else.
    package init(keyID: String, pem: String) async throws(KeySetError) {
        guard (1...256).contains(keyID.utf8.count) else { throw KeySetError("a key id has 1 to 256 octets") }
        guard let pem = Self.rewrapped(pem), let parameters = try? ES256PublicKey(pem: pem).parameters,
            let point = ECPoint(parameters), let key = await Self.es256(keyID: keyID, x: point.x, y: point.y)
        else { throw KeySetError("not a public key on P-256 in PEM (BEGIN PUBLIC KEY)") }
        self = key
    }
}

extension VerificationKey {
    /// The PEM text with lines of 64 characters: the library takes no others, and people paste keys in one line.
    private static func rewrapped(_ pem: String) -> String? {
        let (begin, end) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----")
        let text = pem.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count <= 4096, text.hasPrefix(begin), text.hasSuffix(end), text.utf8.count > begin.utf8.count + end.utf8.count
        else { return nil }
        let body = Array(text.dropFirst(begin.count).dropLast(end.count).filter { !$0.isWhitespace })
        let lines = stride(from: 0, to: body.count, by: 64).map { String(body[$0..<min($0 + 64, body.count)]) }
        return ([begin] + lines + [end]).joined(separator: "\n") + "\n"
    }

    /// The JWK thumbprint (RFC 7638) in base64url: a name for the key that depends on nothing but the key.
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

/// A point of P-256.
struct ECPoint: Sendable, Hashable {
    /// 32 octets each.
    let x: [UInt8]
    let y: [UInt8]

    /// From jwt-kit's parameters, which are base64 with padding.
    init?(_ parameters: ECDSAParameters) {
        guard let x = Data(base64Encoded: parameters.x), let y = Data(base64Encoded: parameters.y), x.count == 32, y.count == 32
        else { return nil }
        self.x = Array(x)
        self.y = Array(y)
    }

    /// The members of a JWK that the thumbprint is over, in the order that RFC 7638 section 3.2 wants.
    var jwk: JSONObject {
        ["crv": "P-256", "kty": "EC", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y))]
    }
}

enum JWTAlgorithms {
    /// The algorithm of a collection that holds one key. jwt-kit hands them out only through collections; with a single key in
    /// it there is nothing for it to choose.
    static func verifier(_ add: @Sendable (JWTKeyCollection) async -> Void) async -> (any JWTAlgorithm)? {
        let collection = JWTKeyCollection()
        await add(collection)
        return try? await collection.getKey()
    }
}
