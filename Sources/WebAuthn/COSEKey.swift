// Public keys of credentials in COSE form (RFC 9052 section 7, RFC 9053 section 7).

import MailCrypto

/// A credential's public key with its signature algorithm.
package struct COSEKey: Sendable {
    /// An algorithm of the IANA registry that a credential may have; any other
    /// is refused by its number.
    package enum Algorithm: Int64, Sendable, CaseIterable {
        case es256 = -7, es384 = -35, es512 = -36
        /// The same three with names that include the curve (RFC 9864).
        case esp256 = -9, esp384 = -51, esp512 = -52
        /// Ed25519 or Ed448, depending on the curve.
        case edDSA = -8
        case ed25519 = -19, ed448 = -53
        case rs256 = -257, rs384 = -258, rs512 = -259
        case ps256 = -37, ps384 = -38, ps512 = -39

        /// The signature scheme.
        package var scheme: AnyPublicKey.Scheme {
            switch self {
            case .es256, .esp256: .ecdsaSHA256
            case .es384, .esp384: .ecdsaSHA384
            case .es512, .esp512: .ecdsaSHA512
            case .edDSA, .ed25519, .ed448: .edDSA
            case .rs256: .rsaSHA256
            case .rs384: .rsaSHA384
            case .rs512: .rsaSHA512
            case .ps256: .pssSHA256
            case .ps384: .pssSHA384
            case .ps512: .pssSHA512
            }
        }

        /// The type of its keys, by its number in COSE, and the number of members of such a key.
        fileprivate var type: (number: Int64, memberCount: Int) {
            switch self {
            case .es256, .es384, .es512, .esp256, .esp384, .esp512: (2, 5)
            case .edDSA, .ed25519, .ed448: (1, 4)
            case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: (3, 4)
            }
        }

        /// The curve that WebAuthn uses with it (section 5.8.5), by its number in COSE.
        fileprivate var curve: (number: Int64, curve: AnyPublicKey.Curve)? {
            switch self {
            case .es256, .esp256: (1, .p256)
            case .es384, .esp384: (2, .p384)
            case .es512, .esp512: (3, .p521)
            default: nil
            }
        }

        /// The Edwards curves used with it, by their numbers in COSE.
        fileprivate var edwards: [Int64] {
            switch self {
            case .edDSA: [6, 7]
            case .ed25519: [6]
            case .ed448: [7]
            default: []
            }
        }
    }

    package let algorithm: Algorithm
    package let key: AnyPublicKey

    /// Reads a key: exactly the members that its type requires (WebAuthn section 6.5.1).
    package init(_ value: CBORValue) throws(WebAuthnError) {
        guard let pairs = value.pairs else { throw WebAuthnError(.publicKey, "it is not a map") }
        guard let number = value[3]?.integer else {
            throw WebAuthnError(.publicKey, "it names no algorithm")
        }
        guard let algorithm = Algorithm(rawValue: number) else {
            throw WebAuthnError(.publicKey, "the algorithm \(number) is not accepted")
        }
        self.algorithm = algorithm
        guard value[1]?.integer == algorithm.type.number else {
            throw WebAuthnError(.publicKey, "its type does not suit its algorithm")
        }
        guard pairs.count == algorithm.type.memberCount else {
            throw WebAuthnError(.publicKey, "it has members that it must not have, or too few")
        }
        do throws(CryptoError) {
            key = try Self.key(value, algorithm)
        } catch {
            throw WebAuthnError(.publicKey, error.message)
        }
    }

    /// Reads a key from its octets.
    package init(octets: [UInt8]) throws(WebAuthnError) {
        let value: CBORValue
        do throws(CBORError) { value = try CBORReader.value(of: octets) } catch {
            throw WebAuthnError(.publicKey, "\(error)")
        }
        try self.init(value)
    }

    private static func key(
        _ value: CBORValue, _ algorithm: Algorithm
    ) throws(CryptoError) -> AnyPublicKey {
        if let (number, curve) = algorithm.curve {
            guard value[-1]?.integer == number, let x = value[-2]?.bytes, let y = value[-3]?.bytes
            else {
                throw CryptoError(
                    .invalidKey, "not both coordinates of a point on the curve of its algorithm")
            }
            return try AnyPublicKey(curve, x: x, y: y)
        }
        if !algorithm.edwards.isEmpty {
            guard let octets = value[-2]?.bytes, let curve = value[-1]?.integer,
                algorithm.edwards.contains(curve),
                curve == (octets.count == 32 ? 6 : 7)
            else {
                throw CryptoError(.invalidKey, "neither an Ed25519 nor an Ed448 key")
            }
            return try AnyPublicKey(edwards: octets)
        }
        guard let modulus = value[-1]?.bytes, let exponent = value[-2]?.bytes else {
            throw CryptoError(.invalidKey, "no modulus or no exponent")
        }
        return try AnyPublicKey(modulus: modulus, exponent: exponent)
    }

    /// Whether the signature over `message` was made with this key.
    package func verify(signature: [UInt8], message: [UInt8]) -> Bool {
        key.verify(algorithm.scheme, signature: signature, message: message)
    }
}
