// AES-SIV (RFC 5297): deterministic authenticated encryption, for ids that must be the same each
// time they are made. S2V is implemented here with libcrypto's CMAC and CTR. OpenSSL 3.0's AES-SIV
// cannot seal an empty plaintext (it leaves a tag of zeros), and ignores empty associated data
// before 3.0.10 (CVE-2023-2975).

import COpenSSL

/// Deterministic authenticated encryption. Equal input gives equal output, and
/// nothing else is revealed.
package enum AESSIV {
    private static let blockLength = 16
    /// RFC 5297 section 2.6: S2V takes at most 127 strings, including the plaintext.
    private static let maximumAssociatedData = 126
    private static let maximumLength = 1 << 30

    /// The synthetic IV of 16 octets followed by the ciphertext.
    /// - Parameters:
    ///   - key: 64 octets (AES-256-SIV); 48 and 32 are allowed too (section 2.2).
    ///   - associatedData: 0 to 126 strings; order and boundaries matter.
    /// - Throws: `invalidKey`, `invalidParameter`.
    package static func seal(
        _ plaintext: [UInt8], key: [UInt8], associatedData: [[UInt8]]
    ) throws -> [UInt8] {
        let (macKey, cipherKey) = try split(key)
        let iv = try s2v(macKey, associatedData, plaintext)
        return iv + (try counterMode(plaintext, key: cipherKey, iv: iv))
    }

    /// The plaintext of the output of `seal`.
    /// - Throws: `authenticationFailed` if anything differs; `invalidKey`,
    ///   `invalidParameter` as for `seal`.
    package static func open(
        _ sealed: [UInt8], key: [UInt8], associatedData: [[UInt8]]
    ) throws -> [UInt8] {
        let (macKey, cipherKey) = try split(key)
        guard sealed.count >= blockLength else {
            throw CryptoError(.authenticationFailed, "sealed data is shorter than its synthetic IV")
        }
        let iv = Array(sealed.prefix(blockLength))
        let plaintext = try counterMode(
            Array(sealed.dropFirst(blockLength)), key: cipherKey, iv: iv)
        guard constantTimeEqual(iv, try s2v(macKey, associatedData, plaintext)) else {
            throw CryptoError(
                .authenticationFailed, "sealed data, key and associated data do not belong together"
            )
        }
        return plaintext
    }

    private static func split(
        _ key: [UInt8]
    ) throws -> (mac: ArraySlice<UInt8>, cipher: ArraySlice<UInt8>) {
        guard [32, 48, 64].contains(key.count) else {
            throw CryptoError(
                .invalidKey, "AES-SIV takes a key of 64, 48 or 32 octets, not \(key.count)")
        }
        return (key[..<(key.count / 2)], key[(key.count / 2)...])
    }

    /// Section 2.4. The plaintext is always the last string, so there is always one.
    private static func s2v(
        _ key: ArraySlice<UInt8>, _ associatedData: [[UInt8]], _ plaintext: [UInt8]
    ) throws -> [UInt8] {
        guard associatedData.count <= maximumAssociatedData else {
            throw CryptoError(
                .invalidParameter,
                "AES-SIV takes at most \(maximumAssociatedData) strings of associated data")
        }
        let mac = AESCMAC(key: key)
        func cmac(_ bytes: [UInt8]) throws -> [UInt8] {
            guard let code = mac?.code(for: bytes) else {
                throw CryptoError.fromLibrary(.libraryFailure, "AES-CMAC failed")
            }
            return code
        }
        var sum = try cmac([UInt8](repeating: 0, count: blockLength))
        for string in associatedData { sum = xor(doubled(sum), try cmac(string)) }
        if plaintext.count >= blockLength {
            let start = plaintext.count - blockLength
            return try cmac(plaintext[..<start] + xor(Array(plaintext[start...]), sum))
        }
        let padded =
            plaintext + [0x80] + [UInt8](repeating: 0, count: blockLength - 1 - plaintext.count)
        return try cmac(xor(doubled(sum), padded))
    }

    /// Multiplication by x in GF(2^128) (section 2.3).
    private static func doubled(_ block: [UInt8]) -> [UInt8] {
        var result = block
        var carry: UInt8 = 0
        for index in block.indices.reversed() {
            result[index] = block[index] << 1 | carry
            carry = block[index] >> 7
        }
        result[result.count - 1] ^= carry == 1 ? 0x87 : 0
        return result
    }

    private static func xor(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] { zip(a, b).map { $0 ^ $1 } }

    /// AES-CTR with bits 31 and 63 of the IV cleared (section 2.5).
    private static func counterMode(
        _ input: [UInt8], key: ArraySlice<UInt8>, iv: [UInt8]
    ) throws -> [UInt8] {
        guard input.count <= maximumLength else {
            throw CryptoError(.invalidParameter, "AES-SIV is used for up to 1 GiB here")
        }
        guard !input.isEmpty else { return [] }
        var counter = iv
        counter[8] &= 0x7F
        counter[12] &= 0x7F
        guard let cipher = EVP_CIPHER_fetch(nil, "AES-\(key.count * 8)-CTR", nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no AES-CTR")
        }
        defer { EVP_CIPHER_free(cipher) }
        guard let context = EVP_CIPHER_CTX_new() else {
            throw CryptoError.fromLibrary(.libraryFailure, "no memory")
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: input.count)
        var written: Int32 = 0
        guard EVP_EncryptInit_ex2(context, cipher, Array(key), counter, nil) == 1,
            EVP_EncryptUpdate(context, &output, &written, input, Int32(input.count)) == 1,
            Int(written) == input.count
        else { throw CryptoError.fromLibrary(.libraryFailure, "AES-CTR failed") }
        return output
    }
}
