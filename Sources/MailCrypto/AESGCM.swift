// AES-256-GCM (NIST SP 800-38D), for sealed storage with each nonce used only once.

import COpenSSL

/// Authenticated encryption with a 32-octet key and a 12-octet nonce. A nonce must never
/// occur twice with one key.
package enum AESGCM {
    private static let tagLength = 16
    /// EVP uses `Int32` lengths. Data sealed here is always far below that limit.
    private static let maximumLength = 1 << 30

    /// Ciphertext followed by the 16-octet tag.
    /// - Throws: `invalidKey`, `invalidParameter` for other lengths, or for more than 1 GiB.
    package static func seal(
        _ plaintext: [UInt8], key: [UInt8], nonce: [UInt8], associatedData: [UInt8]
    ) throws -> [UInt8] {
        let context = try begin(
            key: key, nonce: nonce, lengths: plaintext.count, associatedData.count, encrypt: 1)
        defer { EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: plaintext.count + tagLength)
        var written: Int32 = 0
        let sealed = output.withUnsafeMutableBufferPointer { output in
            let end = output.baseAddress.map { $0 + plaintext.count }
            return update(context, into: nil, associatedData)
                && update(context, into: output.baseAddress, plaintext)
                && EVP_CipherFinal_ex(context, end, &written) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), end) == 1
        }
        guard sealed else {
            throw CryptoError.fromLibrary(.libraryFailure, "AES-256-GCM cannot seal")
        }
        return output
    }

    /// The plaintext of the output of `seal`.
    /// - Throws: `authenticationFailed` if anything differs; `invalidKey` and `invalidParameter` as
    ///   for `seal`.
    package static func open(
        _ sealed: [UInt8], key: [UInt8], nonce: [UInt8], associatedData: [UInt8]
    ) throws -> [UInt8] {
        guard sealed.count >= tagLength else {
            throw CryptoError(.authenticationFailed, "sealed data is shorter than its tag")
        }
        let context = try begin(
            key: key, nonce: nonce, lengths: sealed.count, associatedData.count, encrypt: 0)
        defer { EVP_CIPHER_CTX_free(context) }
        let ciphertext = Array(sealed.dropLast(tagLength))
        var tag = Array(sealed.suffix(tagLength))
        var output = [UInt8](repeating: 0, count: ciphertext.count + tagLength)
        var written: Int32 = 0
        let opened = output.withUnsafeMutableBufferPointer { output in
            update(context, into: nil, associatedData)
                && update(context, into: output.baseAddress, ciphertext)
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), &tag) == 1
                && EVP_CipherFinal_ex(
                    context, output.baseAddress.map { $0 + ciphertext.count }, &written) == 1
        }
        guard opened else {
            drainLibraryErrors()
            throw CryptoError(
                .authenticationFailed,
                "sealed data, key, nonce and associated data do not belong together")
        }
        output.removeLast(tagLength)
        return output
    }

    private static func begin(
        key: [UInt8], nonce: [UInt8], lengths: Int..., encrypt: Int32
    ) throws -> OpaquePointer {
        guard key.count == 32 else {
            throw CryptoError(.invalidKey, "AES-256-GCM takes a key of 32 octets, not \(key.count)")
        }
        guard nonce.count == 12 else {
            throw CryptoError(
                .invalidParameter, "AES-256-GCM takes a nonce of 12 octets, not \(nonce.count)")
        }
        guard lengths.allSatisfy({ $0 <= maximumLength }) else {
            throw CryptoError(.invalidParameter, "AES-256-GCM is used for up to 1 GiB here")
        }
        guard let context = EVP_CIPHER_CTX_new() else {
            throw CryptoError.fromLibrary(.libraryFailure, "no memory")
        }
        guard
            EVP_CipherInit_ex2(context, Algorithms.shared.aes256GCM, key, nonce, encrypt, nil) == 1
        else {
            EVP_CIPHER_CTX_free(context)
            throw CryptoError.fromLibrary(.libraryFailure, "AES-256-GCM cannot start")
        }
        return context
    }

    private static func update(
        _ context: OpaquePointer, into output: UnsafeMutablePointer<UInt8>?, _ input: [UInt8]
    ) -> Bool {
        guard !input.isEmpty else { return true }
        var written: Int32 = 0
        return EVP_CipherUpdate(context, output, &written, input, Int32(input.count)) == 1
            && Int(written) == input.count
    }
}
