// ECDSA on P-256 with SHA-256 (FIPS 186-5 section 6), which JOSE calls ES256 (RFC 7518 section
// 3.4).

import COpenSSL

/// Coordinates of a point and numbers of a signature have this many octets, big-endian.
private let octetCount = 32

/// The name of the curve in libcrypto.
private let curve = "prime256v1"

/// A public key on P-256. May be shared between threads.
package final class P256PublicKey: Sendable {
    private let handle: KeyHandle
    /// The point: 32 octets each.
    package let x: [UInt8]
    package let y: [UInt8]

    /// SubjectPublicKeyInfo (RFC 5480 section 2) up to the coordinates: the named
    /// curve, the point uncompressed.
    private static let infoPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D,
        0x03, 0x01,
        0x07, 0x03, 0x42, 0x00, 0x04,
    ]

    /// Takes coordinates of 32 octets each; `invalidKey` if they are not a point of the curve.
    package init(x: [UInt8], y: [UInt8]) throws {
        guard x.count == octetCount, y.count == octetCount else {
            throw CryptoError(.invalidKey, "coordinates of a point on P-256 have 32 octets each")
        }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no EC")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1,
            Self.fill(context, point: [4] + x + y, &key) == 1, let key
        else {
            throw CryptoError.fromLibrary(.invalidKey, "not a point of P-256")
        }
        handle = KeyHandle(key)
        (self.x, self.y) = (x, y)
    }

    /// Takes a SubjectPublicKeyInfo, DER; `invalidKey` for another algorithm or
    /// curve, or a compressed point.
    package convenience init(publicKeyInfo: [UInt8]) throws {
        let point = publicKeyInfo.dropFirst(Self.infoPrefix.count)
        guard publicKeyInfo.starts(with: Self.infoPrefix), point.count == 2 * octetCount else {
            throw CryptoError(.invalidKey, "not a SubjectPublicKeyInfo of a key on P-256")
        }
        try self.init(x: Array(point.prefix(octetCount)), y: Array(point.suffix(octetCount)))
    }

    /// SubjectPublicKeyInfo, DER.
    package var publicKeyInfo: [UInt8] { Self.infoPrefix + x + y }

    private static func fill(
        _ context: OpaquePointer, point: [UInt8], _ key: inout OpaquePointer?
    ) -> Int32 {
        var (point, group) = (point, Array(curve.utf8CString))
        return point.withUnsafeMutableBufferPointer { point in
            group.withUnsafeMutableBufferPointer { group in
                "pub".withCString { pub in
                    "group".withCString { name in
                        var parameters = [
                            OSSL_PARAM_construct_utf8_string(name, group.baseAddress, 0),
                            OSSL_PARAM_construct_octet_string(pub, point.baseAddress, point.count),
                            OSSL_PARAM_construct_end(),
                        ]
                        return EVP_PKEY_fromdata(
                            context, &key, COPENSSL_PKEY_PUBLIC_KEY, &parameters)
                    }
                }
            }
        }
    }

    /// Whether `signature`, the two numbers of 32 octets one after the other (RFC 7518 section
    /// 3.4), was made over `message`.
    package func verifySHA256(message: [UInt8], signature: [UInt8]) -> Bool {
        guard signature.count == 2 * octetCount, let encoded = Self.encoded(signature) else {
            return false
        }
        defer { drainLibraryErrors() }
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, handle.pointer, nil) else {
            return false
        }
        defer { EVP_PKEY_CTX_free(context) }
        let digest = SHA256.hash(message)
        return EVP_PKEY_verify_init(context) == 1
            && EVP_PKEY_verify(context, encoded, encoded.count, digest, digest.count) == 1
    }

    /// ECDSA-Sig-Value (RFC 5480 appendix A), DER.
    private static func encoded(_ signature: [UInt8]) -> [UInt8]? {
        guard let value = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(value) }
        let numbers = signature.withUnsafeBufferPointer { octets in
            (
                BN_bin2bn(octets.baseAddress, Int32(octetCount), nil),
                BN_bin2bn(octets.baseAddress.map { $0 + octetCount }, Int32(octetCount), nil)
            )
        }
        guard let r = numbers.0, let s = numbers.1, ECDSA_SIG_set0(value, r, s) == 1 else {
            BN_free(numbers.0)
            BN_free(numbers.1)
            return nil
        }
        var output: UnsafeMutablePointer<UInt8>?
        let length = i2d_ECDSA_SIG(value, &output)
        guard length > 0, let output else { return nil }
        defer { CRYPTO_free(output, #fileID, #line) }
        return Array(UnsafeBufferPointer(start: output, count: Int(length)))
    }
}

/// A private key on P-256, parsed once. May be shared between threads.
package final class P256PrivateKey: Sendable {
    private let handle: KeyHandle
    package let publicKey: P256PublicKey

    private init(_ handle: KeyHandle) throws {
        var name = [CChar](repeating: 0, count: 32)
        var length = 0
        guard handle.kind == EVP_PKEY_EC,
            EVP_PKEY_get_group_name(handle.pointer, &name, name.count, &length) == 1,
            name.prefix(length).elementsEqual(curve.utf8CString.dropLast())
        else {
            drainLibraryErrors()
            throw CryptoError(.invalidKey, "the private key is not on P-256")
        }
        self.handle = handle
        publicKey = try P256PublicKey(
            x: Self.coordinate("qx", handle), y: Self.coordinate("qy", handle))
    }

    private static func coordinate(_ name: String, _ handle: KeyHandle) throws -> [UInt8] {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(handle.pointer, name, &number) == 1, let number else {
            throw CryptoError.fromLibrary(.invalidKey, "the private key has no public point")
        }
        defer { BN_free(number) }
        return try octets(number)
    }

    private static func octets(_ number: OpaquePointer?) throws -> [UInt8] {
        var octets = [UInt8](repeating: 0, count: octetCount)
        guard BN_bn2binpad(number, &octets, Int32(octetCount)) == Int32(octetCount) else {
            throw CryptoError.fromLibrary(
                .libraryFailure, "a number of P-256 has more than 32 octets")
        }
        return octets
    }

    /// Reads PKCS#8 or SEC 1 PEM without pass phrase.
    package convenience init(pem: String) throws { try self.init(KeyHandle.privateKey(pem: pem)) }

    /// Makes a new key. Draws from the process's random generator.
    package static func generate() throws -> P256PrivateKey {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no EC")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, curve) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw CryptoError.fromLibrary(.libraryFailure, "the key on P-256 cannot be made") }
        return try P256PrivateKey(KeyHandle(key))
    }

    /// Unencrypted PKCS#8 PEM.
    package func pem() throws -> String { try handle.privatePEM() }

    /// Signs `message` by its SHA-256 digest: the two numbers of 32 octets one after the
    /// other (RFC 7518 section 3.4).
    package func signSHA256(message: [UInt8]) throws -> [UInt8] {
        let digest = SHA256.hash(message)
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, handle.pointer, nil) else {
            throw CryptoError.fromLibrary(.libraryFailure, "no memory")
        }
        defer { EVP_PKEY_CTX_free(context) }
        // Two integers of 33 octets at most, each with its tag and length, in a sequence.
        var length = 72
        var encoded = [UInt8](repeating: 0, count: length)
        guard EVP_PKEY_sign_init(context) == 1,
            EVP_PKEY_sign(context, &encoded, &length, digest, digest.count) == 1
        else {
            throw CryptoError.fromLibrary(.libraryFailure, "ECDSA cannot sign")
        }
        let value = encoded.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_ECDSA_SIG(nil, &start, length)
        }
        guard let value else { throw CryptoError.fromLibrary(.libraryFailure, "ECDSA cannot sign") }
        defer { ECDSA_SIG_free(value) }
        return try Self.octets(ECDSA_SIG_get0_r(value)) + Self.octets(ECDSA_SIG_get0_s(value))
    }
}
