// Ed25519 (RFC 8032), pure: no prehash. DKIM signs the 32-octet digest as the message
// (RFC 8463 section 3).

import COpenSSL

/// An Ed25519 public key. May be shared between threads.
package final class Ed25519PublicKey: Sendable {
    private let handle: KeyHandle

    /// Takes the 32 raw octets of RFC 8032 section 5.1.5; `invalidKey` for another length.
    package init(rawBytes: [UInt8]) throws {
        guard rawBytes.count == 32 else {
            throw CryptoError(
                .invalidKey, "an Ed25519 public key has 32 octets, not \(rawBytes.count)")
        }
        guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, rawBytes, rawBytes.count)
        else {
            throw CryptoError.fromLibrary(.invalidKey, "not an Ed25519 public key")
        }
        handle = KeyHandle(key)
    }

    /// Whether `signature` (64 octets) was made over `message`.
    package func verify(signature: [UInt8], message: [UInt8]) -> Bool {
        guard signature.count == 64, let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let valid =
            EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, handle.pointer, nil) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        if !valid { drainLibraryErrors() }
        return valid
    }
}

/// An Ed25519 private key, parsed once. May be shared between threads.
package final class Ed25519PrivateKey: Sendable {
    private let handle: KeyHandle

    private init(_ handle: KeyHandle) throws {
        guard handle.kind == EVP_PKEY_ED25519 else {
            throw CryptoError(.invalidKey, "the private key is not an Ed25519 key")
        }
        self.handle = handle
    }

    /// Reads PKCS#8 PEM without pass phrase (RFC 8410).
    package convenience init(pem: String) throws { try self.init(KeyHandle.privateKey(pem: pem)) }

    /// Takes the 32-octet seed of RFC 8032 section 5.1.5.
    package convenience init(rawBytes: [UInt8]) throws {
        guard rawBytes.count == 32,
            let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, rawBytes, 32)
        else {
            throw CryptoError.fromLibrary(
                .invalidKey, "an Ed25519 private key has 32 octets, not \(rawBytes.count)")
        }
        try self.init(KeyHandle(key))
    }

    /// Makes a new key. Draws from the process's random generator.
    package static func generate() throws -> Ed25519PrivateKey {
        try Ed25519PrivateKey(rawBytes: SecureRandom.bytes(count: 32))
    }

    /// Unencrypted PKCS#8 PEM.
    package func pem() throws -> String { try handle.privatePEM() }

    /// The public key as 32 raw octets.
    package func rawPublicKey() throws -> [UInt8] {
        var length = 32
        var bytes = [UInt8](repeating: 0, count: length)
        guard EVP_PKEY_get_raw_public_key(handle.pointer, &bytes, &length) == 1, length == 32 else {
            throw CryptoError.fromLibrary(.libraryFailure, "the public key cannot be written")
        }
        return bytes
    }

    /// Signs `message`; 64 octets.
    package func sign(_ message: [UInt8]) throws -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else {
            throw CryptoError.fromLibrary(.libraryFailure, "no memory")
        }
        defer { EVP_MD_CTX_free(context) }
        var length = 64
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSignInit_ex(context, nil, nil, nil, nil, handle.pointer, nil) == 1,
            EVP_DigestSign(context, &signature, &length, message, message.count) == 1, length == 64
        else { throw CryptoError.fromLibrary(.libraryFailure, "Ed25519 cannot sign") }
        return signature
    }
}
