// The only error type of this module. The code here reads OpenSSL's own error queue and always
// empties it.

import COpenSSL

/// A cryptographic operation that failed. Contains no key material and none of the processed data.
package struct CryptoError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. More may be added, so switch with a default.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// A key that cannot be read, is of another kind than requested, or has the wrong length.
        package static let invalidKey = Code(rawValue: "invalid key")
        /// A parameter outside its range: a nonce of the wrong length, a
        /// requested length beyond the limit.
        package static let invalidParameter = Code(rawValue: "invalid parameter")
        /// Sealed data that was altered, truncated, or sealed with another
        /// key or other associated data.
        package static let authenticationFailed = Code(rawValue: "authentication failed")
        /// libcrypto refused an operation that should succeed: no memory, no entropy,
        /// or an unavailable algorithm.
        package static let libraryFailure = Code(rawValue: "libcrypto failure")
    }

    package let code: Code
    /// One sentence for people. Code never needs it to distinguish failures.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(code.rawValue): \(message)" }

    /// An error with OpenSSL's last error at the end of its message. Empties the queue for this
    /// thread.
    static func fromLibrary(_ code: Code, _ message: String) -> CryptoError {
        guard let reason = drainLibraryErrors() else { return CryptoError(code, message) }
        return CryptoError(code, "\(message) (\(reason))")
    }
}

/// Empties the error queue of this thread and returns the reason of the newest entry.
@discardableResult
func drainLibraryErrors() -> String? {
    let newest = ERR_peek_last_error()
    guard newest != 0 else { return nil }
    ERR_clear_error()
    return ERR_reason_error_string(newest).map { String(cString: $0) } ?? "error \(newest)"
}
