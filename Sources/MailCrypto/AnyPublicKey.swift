// A public key of any kind that certificates or authenticators use, and their signatures.

import COpenSSL

/// A public key that only verifies. May be shared between threads. Mail and tokens have separate
/// key types with separate forms.
package final class AnyPublicKey: Sendable {
    /// The kind of a key. A key with a curve or scheme that no authenticator uses has no kind.
    package enum Kind: Sendable, Hashable {
        case p256, p384, p521
        /// Bits of the modulus.
        case rsa(bits: Int)
        case ed25519, ed448
    }

    /// How a signature is made. ECDSA signatures are DER (RFC 3279 section 2.2.3).
    package enum Scheme: Sendable, Hashable {
        case ecdsaSHA256, ecdsaSHA384, ecdsaSHA512
        /// RSASSA-PKCS1-v1_5 (RFC 8017 section 8.2).
        case rsaSHA256, rsaSHA384, rsaSHA512
        /// RSASSA-PSS (RFC 8017 section 8.1), with MGF1 and a salt as long as the digest.
        case pssSHA256, pssSHA384, pssSHA512
        /// Ed25519 or Ed448, pure (RFC 8032).
        case edDSA

        fileprivate var digest: String? {
            switch self {
            case .ecdsaSHA256, .rsaSHA256, .pssSHA256: "SHA256"
            case .ecdsaSHA384, .rsaSHA384, .pssSHA384: "SHA384"
            case .ecdsaSHA512, .rsaSHA512, .pssSHA512: "SHA512"
            case .edDSA: nil
            }
        }

        fileprivate func suits(_ kind: Kind) -> Bool {
            switch self {
            case .ecdsaSHA256, .ecdsaSHA384, .ecdsaSHA512: [.p256, .p384, .p521].contains(kind)
            case .rsaSHA256, .rsaSHA384, .rsaSHA512, .pssSHA256, .pssSHA384, .pssSHA512:
                if case .rsa = kind { true } else { false }
            case .edDSA: [.ed25519, .ed448].contains(kind)
            }
        }

        fileprivate var isPSS: Bool { [.pssSHA256, .pssSHA384, .pssSHA512].contains(self) }
    }

    package let kind: Kind
    private let handle: KeyHandle

    /// The longest SubjectPublicKeyInfo that is read: an RSA key of 16,384 bits.
    private static let longest = 4096

    /// Takes a SubjectPublicKeyInfo (RFC 5280 section 4.1), DER.
    /// - Throws: `invalidKey` for another kind of key, a point that is not on its
    ///   curve, or trailing octets.
    package convenience init(publicKeyInfo: [UInt8]) throws(CryptoError) {
        guard publicKeyInfo.count <= Self.longest else {
            throw CryptoError(.invalidKey, "the public key is too long")
        }
        let (pointer, isWhole) = publicKeyInfo.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            let pointer = d2i_PUBKEY(nil, &start, buffer.count)
            return (pointer, start == buffer.baseAddress.map { $0 + buffer.count })
        }
        guard let pointer else {
            throw CryptoError.fromLibrary(.invalidKey, "not a SubjectPublicKeyInfo of a known kind")
        }
        let handle = KeyHandle(pointer)
        guard isWhole else { throw CryptoError(.invalidKey, "octets follow the public key") }
        try self.init(handle)
    }

    init(_ handle: KeyHandle) throws(CryptoError) {
        guard let kind = Self.kind(of: handle) else {
            drainLibraryErrors()
            throw CryptoError(.invalidKey, "a public key of a kind that is not used here")
        }
        (self.kind, self.handle) = (kind, handle)
    }

    private static func kind(of handle: KeyHandle) -> Kind? {
        switch handle.kind {
        case EVP_PKEY_RSA: return .rsa(bits: Int(EVP_PKEY_get_bits(handle.pointer)))
        case EVP_PKEY_ED25519: return .ed25519
        case EVP_PKEY_ED448: return .ed448
        case EVP_PKEY_EC:
            var name = [CChar](repeating: 0, count: 32)
            var length = 0
            guard EVP_PKEY_get_group_name(handle.pointer, &name, name.count, &length) == 1 else {
                return nil
            }
            switch String(
                decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            {
            case "prime256v1": return .p256
            case "secp384r1": return .p384
            case "secp521r1": return .p521
            default: return nil
            }
        default: return nil
        }
    }

    /// Whether `signature` was made over `message` by this scheme. Also false if the scheme does
    /// not fit the key.
    package func verify(_ scheme: Scheme, signature: [UInt8], message: [UInt8]) -> Bool {
        guard scheme.suits(kind), !signature.isEmpty, let context = EVP_MD_CTX_new() else {
            return false
        }
        defer {
            EVP_MD_CTX_free(context)
            drainLibraryErrors()
        }
        var parameters: OpaquePointer?
        guard
            EVP_DigestVerifyInit_ex(
                context, &parameters, scheme.digest, nil, nil, handle.pointer, nil) == 1
        else {
            return false
        }
        if scheme.isPSS {
            guard EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return false }
        }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// Whether both keys have the same numbers.
    package func isSame(as other: AnyPublicKey) -> Bool {
        defer { drainLibraryErrors() }
        return EVP_PKEY_eq(handle.pointer, other.handle.pointer) == 1
    }

    /// SubjectPublicKeyInfo, DER.
    package func publicKeyInfo() throws -> [UInt8] { try handle.publicKeyInfo() }
}
