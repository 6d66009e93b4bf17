// An EVP_PKEY that frees itself, and the text form of private keys (PKCS#8 PEM, RFC 7468).

import COpenSSL

/// One key of libcrypto. Never changed after it is made. EVP operations on it use their own
/// contexts, so threads may share it.
final class KeyHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes ownership.
    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    var kind: Int32 { EVP_PKEY_get_base_id(pointer) }

    /// Reads one private key. A PEM file that needs a pass phrase is refused, without a prompt.
    static func privateKey(pem: String) throws -> KeyHandle {
        let bytes = Array(pem.utf8)
        guard (1...65536).contains(bytes.count) else {
            throw CryptoError(.invalidKey, "an empty PEM file, or one over 64 KiB, is not a key")
        }
        // The BIO reads from the array while it exists, so the pointer must
        // stay valid until the key is read.
        let pointer = try bytes.withUnsafeBytes { buffer -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else {
                throw CryptoError.fromLibrary(.libraryFailure, "no memory")
            }
            defer { BIO_free(bio) }
            return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let key = pointer else {
            throw CryptoError.fromLibrary(
                .invalidKey, "no private key could be read from the PEM text")
        }
        // Reading tries several decoders. Those that did not match leave errors, even if one
        // matched.
        drainLibraryErrors()
        return KeyHandle(key)
    }

    /// The private key as unencrypted PKCS#8 PEM.
    func privatePEM() throws -> String {
        guard let bio = BIO_new(BIO_s_secmem()) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no memory")
        }
        defer { BIO_free(bio) }
        guard PEM_write_bio_PrivateKey(bio, pointer, nil, nil, 0, nil, nil) == 1 else {
            throw CryptoError.fromLibrary(.libraryFailure, "the private key cannot be written")
        }
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        guard BIO_read(bio, &bytes, Int32(bytes.count)) == Int32(bytes.count) else {
            throw CryptoError.fromLibrary(.libraryFailure, "the private key cannot be written")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// SubjectPublicKeyInfo (RFC 5280 section 4.1), DER.
    func publicKeyInfo() throws -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let length = i2d_PUBKEY(pointer, &output)
        guard length > 0, let output else {
            throw CryptoError.fromLibrary(.libraryFailure, "the public key cannot be written")
        }
        defer { CRYPTO_free(output, #fileID, #line) }
        return Array(UnsafeBufferPointer(start: output, count: Int(length)))
    }
}
