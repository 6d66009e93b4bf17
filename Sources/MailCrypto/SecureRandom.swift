// Randomness, the only impure part of this module. Only the outer layers call it and pass the
// octets in.

import COpenSSL

/// The process's cryptographic random generator.
package enum SecureRandom {
    /// `count` octets suitable for keys (1 to 65536; `invalidParameter` beyond).
    package static func bytes(count: Int) throws -> [UInt8] {
        guard (1...65536).contains(count) else {
            throw CryptoError(
                .invalidParameter, "1 to 65536 random octets can be requested, not \(count)")
        }
        var bytes = [UInt8](repeating: 0, count: count)
        guard RAND_bytes(&bytes, Int32(count)) == 1 else {
            throw CryptoError.fromLibrary(.libraryFailure, "no randomness")
        }
        return bytes
    }
}
