// Public keys made from their numbers. They are written as a SubjectPublicKeyInfo, which libcrypto
// checks when it reads it.

extension AnyPublicKey {
    /// NIST curves (FIPS 186-5) that certificates name.
    package enum Curve: Sendable, Hashable {
        case p256, p384, p521

        /// Octets of a coordinate.
        package var coordinateLength: Int {
            switch self {
            case .p256: 32
            case .p384: 48
            case .p521: 66
            }
        }

        /// AlgorithmIdentifier with the named curve (RFC 5480 section 2.1.1), DER.
        fileprivate var algorithm: [UInt8] {
            let curve: [UInt8] =
                switch self {
                case .p256: [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
                case .p384: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]
                case .p521: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23]
                }
            return DERWriter.sequence(
                [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01] + curve)
        }
    }

    /// A point, each coordinate big-endian in its full length; `invalidKey`
    /// if it is not on the curve.
    package convenience init(_ curve: Curve, x: [UInt8], y: [UInt8]) throws(CryptoError) {
        guard x.count == curve.coordinateLength, y.count == curve.coordinateLength else {
            throw CryptoError(
                .invalidKey, "a coordinate on this curve has \(curve.coordinateLength) octets")
        }
        try self.init(
            publicKeyInfo: DERWriter.sequence(curve.algorithm + DERWriter.bitString([4] + x + y)))
    }

    /// The 32 octets of an Ed25519 key, or the 57 of an Ed448 key (RFC 8410 section 4);
    /// `invalidKey` for another length.
    package convenience init(edwards octets: [UInt8]) throws(CryptoError) {
        guard octets.count == 32 || octets.count == 57 else {
            throw CryptoError(.invalidKey, "an Ed25519 key has 32 octets, an Ed448 key 57")
        }
        let algorithm: [UInt8] = [0x06, 0x03, 0x2B, 0x65, octets.count == 32 ? 0x70 : 0x71]
        try self.init(
            publicKeyInfo: DERWriter.sequence(
                DERWriter.sequence(algorithm) + DERWriter.bitString(octets)))
    }

    /// Modulus and exponent of an RSA key, big-endian.
    /// - Throws: `invalidKey` below 2,048 bits or above 8,192, for an exponent that is even, 1 or
    ///   beyond 32 bits, and for a modulus that anyone can factor (`ROCA`).
    package convenience init(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        let (modulus, exponent) = (
            Array(modulus.drop { $0 == 0 }), Array(exponent.drop { $0 == 0 })
        )
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard (2048...8192).contains(bits), let low = modulus.last, low & 1 == 1 else {
            throw CryptoError(.invalidKey, "an RSA modulus of \(bits) bits")
        }
        guard (1...4).contains(exponent.count), let low = exponent.last, low & 1 == 1,
            exponent != [1]
        else {
            throw CryptoError(.invalidKey, "an RSA exponent that is not used")
        }
        guard !ROCA.marks(modulus: modulus) else {
            throw CryptoError(.invalidKey, "an RSA modulus that anyone can factor")
        }
        // rsaEncryption (RFC 3279 section 2.3.1), with the required NULL.
        let algorithm: [UInt8] = [
            0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
        ]
        let numbers = DERWriter.sequence(DERWriter.integer(modulus) + DERWriter.integer(exponent))
        try self.init(
            publicKeyInfo: DERWriter.sequence(
                DERWriter.sequence(algorithm) + DERWriter.bitString(numbers)))
    }
}

/// The few forms of DER (X.690) that a SubjectPublicKeyInfo uses.
private enum DERWriter {
    static func sequence(_ content: [UInt8]) -> [UInt8] { value(0x30, content) }

    static func bitString(_ octets: [UInt8]) -> [UInt8] { value(0x03, [0] + octets) }

    /// A positive number, big-endian without leading zeros.
    static func integer(_ number: [UInt8]) -> [UInt8] {
        value(0x02, (number.first ?? 0x80 >= 0x80 ? [0] : []) + number)
    }

    private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if content.count < 0x80 {
            length = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }
}
