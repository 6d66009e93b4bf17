// The algorithms, fetched once, as in OpenSSL 3 an implicit fetch for every use is slow.

import COpenSSL

/// Handles that live as long as the process and are only read; libcrypto allows
/// their use on any thread.
struct Algorithms: @unchecked Sendable {
    let sha256: OpaquePointer
    let cmac: OpaquePointer
    let aes256GCM: OpaquePointer

    private init?() {
        guard let sha256 = EVP_MD_fetch(nil, "SHA256", nil),
            let cmac = EVP_MAC_fetch(nil, "CMAC", nil),
            let aes256GCM = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)
        else { return nil }
        self.sha256 = sha256
        self.cmac = cmac
        self.aes256GCM = aes256GCM
    }

    private static let fetched = Algorithms()

    /// Stops the process if libcrypto lacks SHA-256, CMAC or AES-GCM. Every build of OpenSSL 3 has
    /// them, and no input can cause it.
    static var shared: Algorithms {
        guard let fetched else {
            preconditionFailure("libcrypto without SHA-256, CMAC or AES-256-GCM")
        }
        return fetched
    }
}

/// For calls that fail only when there is no memory left. Swift's own allocations also stop the
/// process in that case.
@inline(__always)
func mustSucceed(_ result: Int32) {
    precondition(result == 1, "libcrypto is out of memory")
}
