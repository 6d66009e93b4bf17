// A device of ours that attests an app: its own authority, certificates,
// attestations and assertions.

import MailCrypto
import Support
import WebAuthn

/// A device with a key that an authority of ours attests; each part may be changed before it is
/// signed.
package struct TestDevice {
    /// Makes certificates.
    package struct Authority {
        fileprivate let key: P256PrivateKey
        /// Its own certificate, DER.
        package let certificate: [UInt8]

        /// For a key that a device made for one ceremony.
        func certificate(of device: P256PublicKey, nonce: [UInt8]) throws -> [UInt8] {
            try DER.certificate(
                of: device, by: key, name: "Device",
                extensions: [DER.noAuthority, DER.nonce(nonce)])
        }

        package init() throws {
            key = try P256PrivateKey.generate()
            certificate = try DER.certificate(
                of: key.publicKey, by: key, name: "Authority", extensions: [DER.authority])
        }
    }

    package let key: P256PrivateKey
    private let authority: Authority
    package var appID = "0352187391.com.juice.app"
    package var aaguid = Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)

    package init(_ authority: Authority) throws {
        key = try P256PrivateKey.generate()
        self.authority = authority
    }

    /// The key, uncompressed (X9.63).
    package var point: [UInt8] { [4] + key.publicKey.x + key.publicKey.y }
    /// SHA-256 of the key's point.
    package var keyID: [UInt8] { SHA256.hash(point) }

    private func head(_ flags: UInt8, counter: UInt32) -> [UInt8] {
        SHA256.hash(Array(appID.utf8)) + [flags]
            + (0..<4).map { UInt8(truncatingIfNeeded: counter >> UInt32(24 - 8 * $0)) }
    }

    /// The attestation object over SHA-256 of the client data.
    package func attestation(_ clientData: [UInt8]) throws -> [UInt8] {
        let cose = CBORValue.members([
            1: 2, 3: -7, -1: 1, -2: .bytes(key.publicKey.x), -3: .bytes(key.publicKey.y),
        ])
        let data = head(0x40, counter: 0) + aaguid + [0, 32] + keyID + CBORWriter.octets(cose)
        let nonce = SHA256.hash(data + SHA256.hash(clientData))
        let leaf = try DER.certificate(
            of: key.publicKey, by: authority.key, name: "Device",
            extensions: [DER.noAuthority, DER.nonce(nonce)])
        return CBORWriter.octets(
            .members([
                "fmt": "apple-appattest",
                "attStmt": .members(["x5c": .array([.bytes(leaf)]), "receipt": .bytes([1])]),
                "authData": .bytes(data),
            ]))
    }

    /// An assertion over SHA-256 of the client data.
    package func assertion(_ clientData: [UInt8], counter: UInt32) throws -> [UInt8] {
        let data = head(0x40, counter: counter)
        let signature = try key.signatureDER(SHA256.hash(data + SHA256.hash(clientData)))
        return CBORWriter.octets(
            .members(["signature": .bytes(signature), "authenticatorData": .bytes(data)]))
    }
}

extension P256PrivateKey {
    /// An ECDSA signature over SHA-256 of the message, as devices write it: DER
    /// (RFC 3279 section 2.2.3).
    func signatureDER(_ message: [UInt8]) throws -> [UInt8] {
        let numbers = try signSHA256(message: message)
        return DER.value(0x30, DER.integer(numbers[..<32]) + DER.integer(numbers[32...]))
    }
}

/// The parts of DER (X.690) and X.509 (RFC 5280) that a test needs.
private enum DER {
    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length: [UInt8] =
            switch content.count {
            case ..<0x80: [UInt8(content.count)]
            case ..<0x100: [0x81, UInt8(content.count)]
            default: [0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)]
            }
        return [tag] + length + content
    }

    static func integer(_ octets: ArraySlice<UInt8>) -> [UInt8] {
        let number = Array(octets.drop { $0 == 0 })
        return value(0x02, (number.first ?? 0x80) >= 0x80 ? [0] + number : number)
    }

    private static func sequence(_ parts: [UInt8]...) -> [UInt8] {
        value(0x30, parts.flatMap { $0 })
    }
    private static func octets(_ content: [UInt8]) -> [UInt8] { value(0x04, content) }

    private static let basicConstraints: [UInt8] = [0x06, 0x03, 0x55, 0x1D, 0x13]
    static let authority = sequence(
        basicConstraints, [0x01, 0x01, 0xFF], octets(sequence([0x01, 0x01, 0xFF])))
    static let noAuthority = sequence(basicConstraints, octets(sequence()))

    /// Apple's extension 1.2.840.113635.100.8.2.
    static func nonce(_ nonce: [UInt8]) -> [UInt8] {
        sequence(
            [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x08, 0x02],
            octets(sequence(value(0xA1, octets(nonce)))))
    }

    /// A certificate of version 3, from 2025 to 2049, issued by "Authority".
    static func certificate(
        of key: P256PublicKey, by issuer: P256PrivateKey, name: String, extensions: [[UInt8]]
    ) throws -> [UInt8] {
        func named(_ name: String) -> [UInt8] {
            sequence(
                value(
                    0x31, sequence([0x06, 0x03, 0x55, 0x04, 0x03], value(0x0C, Array(name.utf8)))))
        }
        let algorithm = sequence([0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])
        let dates = sequence(
            value(0x17, Array("250101000000Z".utf8)), value(0x17, Array("491231235959Z".utf8)))
        let content = sequence(
            value(0xA0, [0x02, 0x01, 0x02]), [0x02, 0x01, 0x01], algorithm, named("Authority"),
            dates, named(name),
            key.publicKeyInfo, value(0xA3, value(0x30, extensions.flatMap { $0 })))
        return sequence(content, algorithm, value(0x03, [0] + (try issuer.signatureDER(content))))
    }
}
