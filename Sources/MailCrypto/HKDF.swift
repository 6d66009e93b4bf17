// HKDF (RFC 5869) with SHA-256.

/// Derives keys from one secret.
package enum HKDFSHA256 {
    /// Extract and expand.
    /// - Parameters:
    ///   - key: the input key material.
    ///   - salt: empty for none, which RFC 5869 section 2.2 treats as 32 zero octets.
    ///   - info: the purpose of the derived key.
    ///   - length: 1 to 8160 octets (section 2.3); `invalidParameter` beyond.
    package static func derive(
        key: [UInt8], salt: [UInt8] = [], info: [UInt8], length: Int
    ) throws -> [UInt8] {
        guard (1...255 * 32).contains(length) else {
            throw CryptoError(
                .invalidParameter, "HKDF-SHA-256 derives 1 to 8160 octets, not \(length)")
        }
        let extracted = HMACSHA256(key: HMACSHA256.authenticationCode(for: key, key: salt))
        var output = [UInt8]()
        var block = [UInt8]()
        var counter: UInt8 = 1
        while output.count < length {
            block = extracted.authenticationCode(for: block + info + [counter])
            output += block
            counter &+= 1
        }
        return Array(output[..<length])
    }
}
