// The signature algorithms of DKIM that prove something, each with its differences from the others.

import MailCrypto

/// An algorithm, with SHA-256. The raw value is the `k=` of its key records and a word of commands,
/// and is stored in databases.
package enum DKIMAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RFC 6376 section 3.3.1.
    case rsa
    /// RFC 8463.
    case ed25519

    /// `a=`.
    package var name: String {
        switch self {
        case .rsa: "rsa-sha256"
        case .ed25519: "ed25519-sha256"
        }
    }

    /// Lengths of new keys in bits. RSA: some verifiers refuse 1024, and none need support more
    /// than 4096 (RFC 8301 section 3.2).
    package var newKeyBits: ClosedRange<Int> {
        switch self {
        case .rsa: 2048...4096
        case .ed25519: 256...256
        }
    }

    /// The beginning of the selectors that Postern chooses.
    package var selectorStart: String {
        switch self {
        case .rsa: "rsa"
        case .ed25519: "ed"
        }
    }
}

/// A key that signs.
package enum DKIMSigningKey: Sendable {
    case rsa(RSAPrivateKey)
    case ed25519(Ed25519PrivateKey)

    /// Generates a key of that length, which is one of `newKeyBits`. Throws `CryptoError`.
    package static func generate(_ algorithm: DKIMAlgorithm, bits: Int) throws -> DKIMSigningKey {
        switch algorithm {
        case .rsa: .rsa(try RSAPrivateKey.generate(bits: bits))
        case .ed25519: .ed25519(try Ed25519PrivateKey.generate())
        }
    }

    /// - Parameter pem: PKCS#8. Throws `CryptoError`.
    package init(_ algorithm: DKIMAlgorithm, pem: String) throws {
        switch algorithm {
        case .rsa: self = .rsa(try RSAPrivateKey(pem: pem))
        case .ed25519: self = .ed25519(try Ed25519PrivateKey(pem: pem))
        }
    }

    package var algorithm: DKIMAlgorithm {
        switch self {
        case .rsa: .rsa
        case .ed25519: .ed25519
        }
    }

    /// Unencrypted PKCS#8.
    package func pem() throws -> String {
        switch self {
        case .rsa(let key): try key.pem()
        case .ed25519(let key): try key.pem()
        }
    }

    /// `p=` of the key record, before base64.
    func publicKeyData() throws -> [UInt8] {
        switch self {
        case .rsa(let key): try key.publicKeyInfo()
        case .ed25519(let key): try key.rawPublicKey()
        }
    }

    func sign(digest: [UInt8]) throws -> [UInt8] {
        switch self {
        case .rsa(let key): try key.signSHA256(digest: digest)
        case .ed25519(let key): try key.sign(digest)
        }
    }
}

/// A key that verifies.
package enum DKIMPublicKey: Sendable {
    case rsa(RSAPublicKey)
    case ed25519(Ed25519PublicKey)

    /// - Parameter data: `p=`, decoded: SubjectPublicKeyInfo or RSAPublicKey for RSA, 32
    ///   raw octets for Ed25519.
    /// - Returns: nil if it is not a valid key of that type.
    init?(_ algorithm: DKIMAlgorithm, data: [UInt8]) {
        switch algorithm {
        case .rsa:
            guard let key = try? RSAPublicKey(der: data) else { return nil }
            self = .rsa(key)
        case .ed25519:
            guard let key = try? Ed25519PublicKey(rawBytes: data) else { return nil }
            self = .ed25519(key)
        }
    }

    package var algorithm: DKIMAlgorithm {
        switch self {
        case .rsa: .rsa
        case .ed25519: .ed25519
        }
    }

    /// Whether the key is long enough for its signatures to prove something.
    package func isStrong(_ limits: DKIMLimits) -> Bool {
        switch self {
        case .rsa(let key): limits.rsaBits.contains(key.bitCount)
        case .ed25519: true
        }
    }

    package var bits: Int {
        switch self {
        case .rsa(let key): key.bitCount
        case .ed25519: 256
        }
    }

    /// As in `rsa, 2048 bits`.
    package var text: String {
        switch self {
        case .rsa(let key): "rsa, \(key.bitCount) bits"
        case .ed25519: "ed25519"
        }
    }

    func verify(digest: [UInt8], signature: [UInt8]) -> Bool {
        switch self {
        case .rsa(let key): key.verifySHA256(digest: digest, signature: signature)
        case .ed25519(let key): key.verify(signature: signature, message: digest)
        }
    }
}
