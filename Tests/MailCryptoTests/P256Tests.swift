// ECDSA on P-256: keys in their forms, and signatures in the form of JOSE.

import MailCrypto
import TestSupport
import Testing

@Suite(.blocking) struct P256Tests {
    /// RFC 7515 appendix A.3: key and signature.
    private static let x = hex("7fcdce2770f6c45d4183cbee6fdb4b7b580733357be9ef13bacf6e3c7bd15445")
    private static let y = hex("c7f144cd1bbd9b7e872cdfedb9eeb9f4b3695d6ea90b24ad8a4623288588e5ad")
    private static let message = Array(
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
            .utf8)
    private static let signature = hex(
        "0ed1215379636c483c2f7f155807d402a3b228033af97c7e17819ac3169ea665"
            + "c50a07d38c3c70e5d8f12daf084a5480a66590c5f293509a8f3f7f8a83a354d5")

    @Test func p256Key_rfc7515Example_verifies() throws {
        let key = try P256PublicKey(x: Self.x, y: Self.y)
        #expect(key.verifySHA256(message: Self.message, signature: Self.signature))
        #expect(!key.verifySHA256(message: Self.message + [0], signature: Self.signature))
    }

    @Test func p256Key_signed_verifiesWithPointAlone() throws {
        let key = try P256PrivateKey.generate()
        let other = try P256PublicKey(x: key.publicKey.x, y: key.publicKey.y)
        for count in 0..<64 {
            let message = [UInt8](repeating: 7, count: count)
            let signature = try key.signSHA256(message: message)
            #expect(signature.count == 64)
            #expect(other.verifySHA256(message: message, signature: signature))
            var damaged = signature
            damaged[count] ^= 1
            #expect(!other.verifySHA256(message: message, signature: damaged))
            #expect(!other.verifySHA256(message: message + [0], signature: signature))
        }
    }

    @Test func p256Key_writtenAsPEM_isReadAgain() throws {
        let key = try P256PrivateKey.generate()
        let again = try P256PrivateKey(pem: key.pem())
        #expect(again.publicKey.publicKeyInfo == key.publicKey.publicKeyInfo)
        #expect(
            key.publicKey.verifySHA256(message: [1], signature: try again.signSHA256(message: [1])))
    }

    @Test func p256Key_notAPointOfTheCurve_isRefused() throws {
        let key = try P256PrivateKey.generate().publicKey
        #expect(throws: CryptoError.self) { try P256PublicKey(x: key.x, y: key.x) }
        #expect(throws: CryptoError.self) {
            try P256PublicKey(
                x: [UInt8](repeating: 0, count: 32), y: [UInt8](repeating: 0, count: 32))
        }
        #expect(throws: CryptoError.self) {
            try P256PublicKey(x: Array(key.x.dropLast()), y: key.y)
        }
        #expect(try P256PublicKey(publicKeyInfo: key.publicKeyInfo).x == key.x)
        #expect(throws: CryptoError.self) {
            try P256PublicKey(publicKeyInfo: key.publicKeyInfo + [0])
        }
        #expect(throws: CryptoError.self) {
            try P256PublicKey(publicKeyInfo: Array(key.publicKeyInfo.dropLast()))
        }
    }

    @Test func p256Key_ofOtherKind_isRefused() throws {
        #expect(throws: CryptoError.self) {
            try P256PrivateKey(pem: Ed25519PrivateKey.generate().pem())
        }
        #expect(throws: CryptoError.self) {
            try P256PrivateKey(pem: RSAPrivateKey.generate(bits: 1024).pem())
        }
        let info = try RSAPrivateKey.generate(bits: 1024).publicKeyInfo()
        #expect(throws: CryptoError.self) { try P256PublicKey(publicKeyInfo: info) }
    }

    /// Zero, and numbers as large as the order, are not valid in a signature (FIPS 186-5 section
    /// 6.4.2).
    @Test func p256Signature_numbersOutOfRange_isRefused() throws {
        let key = try P256PrivateKey.generate()
        let order = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        let zero = [UInt8](repeating: 0, count: 32)
        let good = try key.signSHA256(message: [1])
        for (r, s) in [
            (zero, zero), (order, order), (Array(good.prefix(32)), zero),
            (zero, Array(good.suffix(32))),
            (Array(good.prefix(32)), order),
        ] {
            #expect(!key.publicKey.verifySHA256(message: [1], signature: r + s))
        }
        #expect(!key.publicKey.verifySHA256(message: [1], signature: Array(good.dropLast())))
        #expect(!key.publicKey.verifySHA256(message: [1], signature: []))
    }
}
