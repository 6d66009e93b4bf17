// SHA-256 (FIPS 180-4), whole or in pieces.

import COpenSSL

/// A running SHA-256. For one thread at a time.
package final class SHA256 {
    /// Octets of a digest.
    static let length = 32

    private let context: OpaquePointer

    package init() { context = Self.newContext() }

    /// A context without any input yet; the caller frees it.
    static func newContext() -> OpaquePointer {
        guard let context = EVP_MD_CTX_new() else {
            preconditionFailure("libcrypto is out of memory")
        }
        mustSucceed(EVP_DigestInit_ex2(context, Algorithms.shared.sha256, nil))
        return context
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Takes the next octets.
    package func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        mustSucceed(EVP_DigestUpdate(context, base, bytes.count))
    }

    /// Takes the next octets.
    package func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// Takes the next octets.
    package func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { update($0) } }

    /// Takes the next octets; copies them first if they are not contiguous.
    package func update(_ bytes: some Sequence<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ update(UnsafeRawBufferPointer($0)) }) == nil {
            update(Array(bytes))
        }
    }

    /// The digest, 32 octets. Resets the object to the state of a new one.
    package func finalize() -> [UInt8] {
        let digest = [UInt8](unsafeUninitializedCapacity: Self.length) { buffer, count in
            mustSucceed(EVP_DigestFinal_ex(context, buffer.baseAddress, nil))
            count = Self.length
        }
        mustSucceed(EVP_DigestInit_ex2(context, Algorithms.shared.sha256, nil))
        return digest
    }

    /// The digest of `bytes`, 32 octets.
    package static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: length) { digest, count in
            // Without octets libcrypto needs no address.
            mustSucceed(
                EVP_Digest(
                    bytes.baseAddress, bytes.count, digest.baseAddress, nil,
                    Algorithms.shared.sha256, nil))
            count = length
        }
    }

    /// The digest of `bytes`, 32 octets.
    package static func hash(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { hash($0) } }

    /// The digest of `bytes`, 32 octets.
    package static func hash(_ bytes: some Sequence<UInt8>) -> [UInt8] { hash(Array(bytes)) }
}
