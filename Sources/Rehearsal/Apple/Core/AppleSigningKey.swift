// A key of the sandbox for signing identity tokens and notifications, with a short id like Apple's.

import SignIn
import Support

/// An RSA key for RS256.
package struct AppleSigningKey: Sendable {
    /// `kid`: ten letters and digits.
    package let id: String
    private let key: IdentitySigningKey

    /// Generates a key. Uses the process's random generator, and takes a tenth of a second.
    package static func generate() throws -> AppleSigningKey {
        let key = try IdentitySigningKey.generate(.rs256).key
        let letters = key.keyID.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return AppleSigningKey(id: String(letters.prefix(10)), key: key)
    }

    /// The public part as it is in the key set.
    package var jwk: JSONObject {
        var jwk = key.publicJWK
        jwk["kid"] = .string(id)
        return jwk
    }

    /// A JWS over claims, with `kid` and `alg` in its header and no `typ`, like Apple's.
    /// - Parameter keyID: a `kid` that differs from this key's, for a wrong signature.
    func sign(_ claims: JSONObject, keyID: String? = nil) throws -> String {
        try key.sign(claims, type: nil, keyID: keyID ?? id)
    }
}
