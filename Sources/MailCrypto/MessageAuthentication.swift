// HMAC-SHA-256 (RFC 2104), AES-CMAC (RFC 4493), and comparison in constant time.

import COpenSSL

/// HMAC with SHA-256.
package enum HMACSHA256 {
    /// The full code, 32 octets. The key may have any length; RFC 2104 section 3 wants 32 octets or more.
    package static func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
        // "SHA256" cannot be refused and the key is given, so this fails only without memory.
        guard
            let mac = computeMAC(
                Algorithms.shared.hmac, parameter: "digest", value: "SHA256", key: key, message: message, length: 32)
        else { preconditionFailure("libcrypto is out of memory") }
        return mac
    }
}

/// AES-CMAC, 16 octets; nil where `key` is not 16, 24 or 32 octets long.
func aesCMAC(_ message: [UInt8], key: ArraySlice<UInt8>) -> [UInt8]? {
    computeMAC(
        Algorithms.shared.cmac, parameter: "cipher", value: "AES-\(key.count * 8)-CBC", key: Array(key), message: message,
        length: 16)
}

private func computeMAC(
    _ algorithm: OpaquePointer, parameter: String, value: String, key: [UInt8], message: [UInt8], length: Int
) -> [UInt8]? {
    guard let context = EVP_MAC_CTX_new(algorithm) else { return nil }
    defer { EVP_MAC_CTX_free(context) }
    var value = Array(value.utf8CString)
    // A key of no octets still needs an address, or OpenSSL takes it for a missing one.
    let storage = key.isEmpty ? [0] : key
    let started = parameter.withCString { name in
        value.withUnsafeMutableBufferPointer { value in
            let parameters = [OSSL_PARAM_construct_utf8_string(name, value.baseAddress, 0), OSSL_PARAM_construct_end()]
            return EVP_MAC_init(context, storage, key.count, parameters)
        }
    }
    guard started == 1, EVP_MAC_update(context, message, message.count) == 1 else {
        drainLibraryErrors()
        return nil
    }
    var written = 0
    var mac = [UInt8](repeating: 0, count: length)
    guard EVP_MAC_final(context, &mac, &written, length) == 1, written == length else {
        drainLibraryErrors()
        return nil
    }
    return mac
}

/// Whether both hold the same octets; takes the same time wherever they differ. Lengths are not secret.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
}
