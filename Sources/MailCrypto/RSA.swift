// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 section 8.2): rsa-sha256 of DKIM.

import COpenSSL
import Synchronization

/// Contexts for signing or for verifying with one key, prepared once and reused. Preparing one
/// takes libcrypto half as long as a verification. No two operations share a context at the same
/// time.
private final class RSAContexts: Sendable {
    private struct Context: @unchecked Sendable { let pointer: OpaquePointer }

    /// Number of contexts kept for reuse, about 600 octets each. If more threads need one at a
    /// time, the additional ones are freed after use.
    private static let capacity = 4

    private let idle = Mutex<[Context]>([])

    deinit {
        for context in idle.withLock({ $0 }) { EVP_PKEY_CTX_free(context.pointer) }
    }

    /// Whether the operation succeeded. The context of a failed operation is not reused.
    func use(
        _ key: KeyHandle, begin: (OpaquePointer) -> Int32, _ operation: (OpaquePointer) -> Bool
    ) -> Bool {
        guard let context = idle.withLock({ $0.popLast() }) ?? Self.make(key, begin) else {
            return false
        }
        let isDone = operation(context.pointer)
        let isKept =
            isDone
            && idle.withLock { idle in
                guard idle.count < Self.capacity else { return false }
                idle.append(context)
                return true
            }
        if !isKept { EVP_PKEY_CTX_free(context.pointer) }
        return isDone
    }

    private static func make(_ key: KeyHandle, _ begin: (OpaquePointer) -> Int32) -> Context? {
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil) else { return nil }
        guard begin(context) == 1, EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            EVP_PKEY_CTX_set_signature_md(context, Algorithms.shared.sha256) == 1
        else {
            EVP_PKEY_CTX_free(context)
            return nil
        }
        return Context(pointer: context)
    }
}

/// An RSA public key. May be shared between threads.
package final class RSAPublicKey: Sendable {
    private let handle: KeyHandle
    private let contexts = RSAContexts()
    /// Length of the modulus in bits.
    package let bitCount: Int

    /// Takes a SubjectPublicKeyInfo with rsaEncryption (RFC 5280), or an RSAPublicKey (PKCS#1, RFC
    /// 8017 appendix A.1.1), in DER.
    /// - Throws: `invalidKey` for anything else, including trailing octets, and for more than 4 KiB
    ///   (a modulus of over 16,384 bits, more than libcrypto uses).
    package convenience init(der: [UInt8]) throws {
        guard der.count <= 4096 else {
            throw CryptoError(.invalidKey, "an RSA key of \(der.count) octets is too long")
        }
        guard let numbers = RSAPublicNumbers(der: der) else {
            throw CryptoError(
                .invalidKey, "neither a SubjectPublicKeyInfo nor a PKCS#1 public key of RSA")
        }
        try self.init(numbers)
    }

    /// Takes the numbers of a key, big-endian without leading zeros.
    /// - Throws: `invalidKey` if libcrypto does not accept them.
    package convenience init(modulus: [UInt8], exponent: [UInt8]) throws {
        try self.init(RSAPublicNumbers(modulus: modulus[...], exponent: exponent[...]))
    }

    private init(_ numbers: RSAPublicNumbers) throws {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no RSA")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1, Self.fill(context, with: numbers, &key) == 1,
            let key
        else {
            throw CryptoError.fromLibrary(.invalidKey, "libcrypto does not accept the RSA key")
        }
        handle = KeyHandle(key)
        bitCount = Int(EVP_PKEY_get_bits(key))
    }

    private static func fill(
        _ context: OpaquePointer, with numbers: RSAPublicNumbers, _ key: inout OpaquePointer?
    ) -> Int32 {
        // OSSL_PARAM uses the machine's byte order for big numbers.
        func native(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            1.littleEndian == 1 ? bytes.reversed() : Array(bytes)
        }
        var modulus = native(numbers.modulus)
        var exponent = native(numbers.exponent)
        return modulus.withUnsafeMutableBufferPointer { modulus in
            exponent.withUnsafeMutableBufferPointer { exponent in
                "n".withCString { n in
                    "e".withCString { e in
                        var parameters = [
                            OSSL_PARAM_construct_BN(n, modulus.baseAddress, modulus.count),
                            OSSL_PARAM_construct_BN(e, exponent.baseAddress, exponent.count),
                            OSSL_PARAM_construct_end(),
                        ]
                        return EVP_PKEY_fromdata(
                            context, &key, COPENSSL_PKEY_PUBLIC_KEY, &parameters)
                    }
                }
            }
        }
    }

    /// Modulus and exponent of a DER key as `init(der:)` accepts it, big-endian without leading
    /// zeros; nil for anything else.
    package static func numbers(der: [UInt8]) -> (modulus: [UInt8], exponent: [UInt8])? {
        guard der.count <= 4096, let numbers = RSAPublicNumbers(der: der) else { return nil }
        return (Array(numbers.modulus), Array(numbers.exponent))
    }

    /// Whether `signature` was made over the message with this SHA-256 digest (32 octets).
    package func verifySHA256(digest: [UInt8], signature: [UInt8]) -> Bool {
        guard digest.count == 32, !signature.isEmpty else { return false }
        let valid = contexts.use(handle, begin: EVP_PKEY_verify_init) { context in
            EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
        }
        if !valid { drainLibraryErrors() }
        return valid
    }

    /// Whether `signature` was made over `message`.
    package func verifySHA256(message: [UInt8], signature: [UInt8]) -> Bool {
        verifySHA256(digest: SHA256.hash(message), signature: signature)
    }
}

/// An RSA private key, parsed once. May be shared between threads.
package final class RSAPrivateKey: Sendable {
    private let handle: KeyHandle
    private let contexts = RSAContexts()
    /// Length of the modulus in bits.
    package let bitCount: Int

    private init(_ handle: KeyHandle) throws {
        guard handle.kind == EVP_PKEY_RSA else {
            throw CryptoError(.invalidKey, "the private key is not an RSA key")
        }
        self.handle = handle
        bitCount = Int(EVP_PKEY_get_bits(handle.pointer))
    }

    /// Reads PKCS#8 or PKCS#1 PEM without pass phrase.
    package convenience init(pem: String) throws { try self.init(KeyHandle.privateKey(pem: pem)) }

    /// Makes a new key of 1024 to 4096 bits with exponent 65537. Draws from the
    /// process's random generator.
    package static func generate(bits: Int = 2048) throws -> RSAPrivateKey {
        guard (1024...4096).contains(bits) else {
            throw CryptoError(
                .invalidParameter, "RSA keys are made with 1024 to 4096 bits, not \(bits)")
        }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no RSA")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits)) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw CryptoError.fromLibrary(.libraryFailure, "the RSA key cannot be generated") }
        return try RSAPrivateKey(KeyHandle(key))
    }

    /// Unencrypted PKCS#8 PEM.
    package func pem() throws -> String { try handle.privatePEM() }

    /// SubjectPublicKeyInfo, DER.
    package func publicKeyInfo() throws -> [UInt8] { try handle.publicKeyInfo() }

    /// Signs `message` as RS256 of JOSE (RFC 7518 section 3.3). The signature
    /// is as long as the modulus.
    package func signSHA256(message: [UInt8]) throws -> [UInt8] {
        try signSHA256(digest: SHA256.hash(message))
    }

    /// Signs a message by its SHA-256 digest (32 octets). The signature is as long as the modulus.
    package func signSHA256(digest: [UInt8]) throws -> [UInt8] {
        guard digest.count == 32 else {
            throw CryptoError(
                .invalidParameter, "a SHA-256 digest has 32 octets, not \(digest.count)")
        }
        var length = (bitCount + 7) / 8
        var signature = [UInt8](repeating: 0, count: length)
        let signed = contexts.use(handle, begin: EVP_PKEY_sign_init) { context in
            EVP_PKEY_sign(context, &signature, &length, digest, digest.count) == 1
        }
        guard signed else { throw CryptoError.fromLibrary(.libraryFailure, "RSA cannot sign") }
        return length == signature.count
            ? signature : Array(signature[..<min(length, signature.count)])
    }
}
