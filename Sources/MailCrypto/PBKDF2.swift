// PBKDF2 (RFC 8018) with HMAC-SHA-256.

import COpenSSL

/// Derives a key slowly.
package enum PBKDF2 {
    /// - Parameters:
    ///   - iterations: 1 to 2,147,483,647; `invalidParameter` beyond.
    ///   - length: octets, from 1; `invalidParameter` below.
    package static func key(
        password: [UInt8], salt: [UInt8], iterations: Int, length: Int
    ) throws -> [UInt8] {
        guard let iterations = Int32(exactly: iterations), iterations > 0, length > 0,
            let octets = Int32(exactly: length)
        else {
            throw CryptoError(.invalidParameter, "PBKDF2 needs iterations and a length from 1")
        }
        var key = [UInt8](repeating: 0, count: length)
        let result = password.withUnsafeBytes { password in
            PKCS5_PBKDF2_HMAC(
                password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count),
                salt, Int32(salt.count), iterations, EVP_sha256(), octets, &key)
        }
        guard result == 1 else {
            drainLibraryErrors()
            throw CryptoError(.libraryFailure, "libcrypto derives no key")
        }
        return key
    }
}
