// DER of RSA public keys, parsed here, as libcrypto's decoder takes five times as long as the
// verification after it.

/// Modulus and exponent, big-endian, without leading zeros.
struct RSAPublicNumbers {
    let modulus: ArraySlice<UInt8>
    let exponent: ArraySlice<UInt8>

    /// OBJECT IDENTIFIER 1.2.840.113549.1.1.1, rsaEncryption.
    private static let rsaEncryption: [UInt8] = [
        0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
    ]
    /// FIPS 186-5 section A.1.1: e < 2^256. A larger exponent would only cost time.
    private static let maximumExponentLength = 32

    init(modulus: ArraySlice<UInt8>, exponent: ArraySlice<UInt8>) {
        (self.modulus, self.exponent) = (modulus, exponent)
    }

    /// A SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7, RFC 3279 section 2.3.1) or a bare
    /// RSAPublicKey (RFC 8017 appendix A.1.1); nil for anything else, trailing octets, and numbers
    /// that are not an RSA key.
    init?(der: [UInt8]) {
        var outer = DERReader(der[...])
        guard var sequence = outer.read(.sequence), outer.isAtEnd else { return nil }
        if var algorithm = sequence.peek(.sequence) {
            _ = sequence.read(.sequence)
            guard let identifier = algorithm.read(.objectIdentifier),
                identifier.bytes.elementsEqual(Self.rsaEncryption)
            else {
                return nil
            }
            if !algorithm.isAtEnd {
                guard let null = algorithm.read(.null), null.isAtEnd, algorithm.isAtEnd else {
                    return nil
                }
            }
            guard let bits = sequence.read(.bitString), sequence.isAtEnd, bits.bytes.first == 0
            else { return nil }
            var inner = DERReader(bits.bytes.dropFirst())
            guard let key = inner.read(.sequence), inner.isAtEnd else { return nil }
            sequence = key
        }
        guard let modulus = sequence.readPositiveInteger(),
            let exponent = sequence.readPositiveInteger(), sequence.isAtEnd,
            let lowModulus = modulus.last, let lowExponent = exponent.last, lowModulus & 1 == 1,
            lowExponent & 1 == 1,
            exponent.count <= Self.maximumExponentLength, !exponent.elementsEqual([1])
        else { return nil }
        self.modulus = modulus
        self.exponent = exponent
    }
}
