// HMAC (RFC 2104) with SHA-256 and SHA-1, AES-CMAC (RFC 4493), and comparison in constant time.

import COpenSSL

/// HMAC with SHA-256 under one key. May be shared between threads.
///
/// Uses the digest itself and not libcrypto's MAC. That needs five times as long for a short
/// message, because it looks up its digest by name for every code.
package final class HMACSHA256: @unchecked Sendable {
    private static let blockLength = 64

    // SHA-256 after the first block of RFC 2104 section 2, key XOR ipad and key XOR opad.
    // Never changed, only copied.
    private let inner: OpaquePointer
    private let outer: OpaquePointer

    /// The key may have any length; RFC 2104 section 3 recommends 32 octets or more.
    package init(key: [UInt8]) {
        let key = key.count > Self.blockLength ? SHA256.hash(key) : key
        inner = Self.started(key, 0x36)
        outer = Self.started(key, 0x5C)
    }

    deinit {
        EVP_MD_CTX_free(inner)
        EVP_MD_CTX_free(outer)
    }

    private static func started(_ key: [UInt8], _ pad: UInt8) -> OpaquePointer {
        let context = SHA256.newContext()
        var block = [UInt8](repeating: pad, count: blockLength)
        for (index, octet) in key.enumerated() { block[index] ^= octet }
        mustSucceed(EVP_DigestUpdate(context, block, block.count))
        OPENSSL_cleanse(&block, block.count)
        return context
    }

    /// The full code, 32 octets.
    package func authenticationCode(for message: [UInt8]) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else {
            preconditionFailure("libcrypto is out of memory")
        }
        defer { EVP_MD_CTX_free(context) }
        return [UInt8](unsafeUninitializedCapacity: SHA256.length) { code, count in
            mustSucceed(EVP_MD_CTX_copy_ex(context, inner))
            mustSucceed(EVP_DigestUpdate(context, message, message.count))
            mustSucceed(EVP_DigestFinal_ex(context, code.baseAddress, nil))
            mustSucceed(EVP_MD_CTX_copy_ex(context, outer))
            mustSucceed(EVP_DigestUpdate(context, code.baseAddress, SHA256.length))
            mustSucceed(EVP_DigestFinal_ex(context, code.baseAddress, nil))
            count = SHA256.length
        }
    }

    /// The code under a key that is used only once.
    package static func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
        HMACSHA256(key: key).authenticationCode(for: message)
    }
}

/// HMAC with SHA-1, only for one-time passwords: authenticator apps know no other digest
/// for certain (RFC 6238).
package enum HMACSHA1 {
    private static let length = 20

    /// The full code, 20 octets.
    package static func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: length) { code, count in
            var written: UInt32 = 0
            let result = HMAC(
                EVP_sha1(), key, Int32(key.count), message, message.count, code.baseAddress,
                &written)
            precondition(result != nil && written == length, "libcrypto has no HMAC-SHA-1")
            count = length
        }
    }
}

/// AES-CMAC under one key. For one thread at a time.
final class AESCMAC {
    private let context: OpaquePointer

    /// Nil if `key` is not 16, 24 or 32 octets long.
    init?(key: ArraySlice<UInt8>) {
        guard let context = EVP_MAC_CTX_new(Algorithms.shared.cmac) else { return nil }
        self.context = context
        var cipher = Array("AES-\(key.count * 8)-CBC".utf8CString)
        // An empty key still needs an address, or OpenSSL treats it as missing.
        let storage = key.isEmpty ? [0] : Array(key)
        let started = "cipher".withCString { name in
            cipher.withUnsafeMutableBufferPointer { cipher in
                let parameters = [
                    OSSL_PARAM_construct_utf8_string(name, cipher.baseAddress, 0),
                    OSSL_PARAM_construct_end(),
                ]
                return EVP_MAC_init(context, storage, key.count, parameters)
            }
        }
        guard started == 1 else {
            drainLibraryErrors()
            return nil
        }
    }

    deinit { EVP_MAC_CTX_free(context) }

    /// The code, 16 octets; nil if libcrypto fails.
    func code(for message: [UInt8]) -> [UInt8]? {
        var written = 0
        var code = [UInt8](repeating: 0, count: 16)
        // A copy, because not every 3.0 can restart a CMAC context that has produced a code.
        guard let copy = EVP_MAC_CTX_dup(context) else { return nil }
        defer { EVP_MAC_CTX_free(copy) }
        guard EVP_MAC_update(copy, message, message.count) == 1,
            EVP_MAC_final(copy, &code, &written, code.count) == 1,
            written == code.count
        else {
            drainLibraryErrors()
            return nil
        }
        return code
    }
}

/// Whether both contain the same octets. The time does not depend on the position of a difference.
/// Lengths are not secret.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
}

/// Whether both contain the same octets. The time does not depend on the position of a difference.
/// Lengths are not secret.
package func constantTimeEqual(_ a: ArraySlice<UInt8>, _ b: ArraySlice<UInt8>) -> Bool {
    a.count == b.count
        && a.withUnsafeBytes { a in
            b.withUnsafeBytes { b in CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0 }
        }
}
