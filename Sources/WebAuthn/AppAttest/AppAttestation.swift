// The attestation of a key by Apple ("Validating apps that connect to your server", steps 1 to 9).

import MailCrypto

/// A key that Apple vouches for.
package struct AttestedKey: Sendable {
    /// SHA-256 of the point: 32 octets.
    package let id: [UInt8]
    /// The point, uncompressed (X9.63): 65 octets.
    package let point: [UInt8]
}

package enum AppAttestation {
    /// The extension of the certificate that holds the nonce.
    private static let nonceExtension = "1.2.840.113635.100.8.2"
    /// Certificates in `x5c`: Apple sends two.
    private static let certificateCount = 1...8
    /// The members of the attestation object.
    private static let memberCount = 3

    /// Verifies an attestation object.
    /// - Parameters:
    ///   - keyID: as the app states it, 32 octets.
    ///   - roots: Apple's App Attest root; if empty, every attestation is refused.
    ///   - now: the time at which certificates must be valid, in seconds since 1970. They are
    ///     valid for three days.
    package static func verify(
        _ octets: [UInt8], _ expectation: AppAttestExpectation, keyID: [UInt8],
        roots: [Certificate], now: Int64
    ) throws(AppAttestError) -> AttestedKey {
        let (chain, data) = try read(octets)
        let leaf = chain[0]
        guard leaf.isAuthority != true,
            leaf.leads(to: roots, by: Array(chain.dropFirst()), .at(now))
        else {
            throw AppAttestError(
                .certificate, "it leads to no root that is configured, or is not valid at this time"
            )
        }
        let nonce = try nonce(leaf)
        guard
            expectation.attestedHashes.contains(where: {
                constantTimeEqual(nonce, SHA256.hash(data + $0))
            })
        else {
            throw AppAttestError(.nonce, "the certificate was not issued for this challenge")
        }
        // A SubjectPublicKeyInfo on P-256 ends with the point.
        guard leaf.publicKey.kind == .p256,
            let point = try? Array(leaf.publicKey.publicKeyInfo().suffix(65)),
            point.count == 65, point[0] == 4
        else { throw AppAttestError(.certificate, "its key is not on P-256") }
        guard constantTimeEqual(SHA256.hash(point), keyID) else {
            throw AppAttestError(.keyID, "it is not that of the certificate's key")
        }
        try check(AppAttestData(attestation: data), expectation, key: leaf.publicKey, keyID: keyID)
        return AttestedKey(id: keyID, point: point)
    }

    private static func read(
        _ octets: [UInt8]
    ) throws(AppAttestError) -> (chain: [Certificate], data: [UInt8]) {
        let value: CBORValue
        do throws(CBORError) { value = try CBORReader.value(of: octets) } catch {
            throw AppAttestError(.format, "\(error)")
        }
        guard value.pairs?.count == memberCount, value["fmt"]?.text == "apple-appattest",
            let statement = value["attStmt"],
            let data = value["authData"]?.bytes
        else { throw AppAttestError(.format, "not an attestation object of App Attest") }
        guard let items = statement["x5c"]?.array, certificateCount.contains(items.count),
            statement["receipt"]?.bytes != nil
        else {
            throw AppAttestError(.format, "the statement lacks x5c or receipt")
        }
        var chain = [Certificate]()
        for item in items {
            guard let der = item.bytes, let certificate = try? Certificate(der: der) else {
                throw AppAttestError(.certificate, "x5c has an item that is not a certificate")
            }
            chain.append(certificate)
        }
        return (chain, data)
    }

    /// SEQUENCE { [1] EXPLICIT OCTET STRING }.
    private static func nonce(_ certificate: Certificate) throws(AppAttestError) -> [UInt8] {
        if let (octets, _) = certificate.extensionValue(nonceExtension) {
            var outer = DERReader(octets[...])
            if var sequence = outer.read(.sequence), outer.isAtEnd,
                var tagged = sequence.read(.explicit(1)), sequence.isAtEnd,
                let found = tagged.read(.octetString), tagged.isAtEnd
            {
                return Array(found.bytes)
            }
        }
        throw AppAttestError(.nonce, "the certificate holds none")
    }

    /// Steps 6 to 9; also checks that the key in the data is the certificate's.
    private static func check(
        _ data: AppAttestData, _ expectation: AppAttestExpectation, key: AnyPublicKey,
        keyID: [UInt8]
    ) throws(AppAttestError) {
        guard expectation.isApp(data) else { throw AppAttestError(.appID, "it is for another app") }
        guard data.value.signCount == 0 else { throw AppAttestError(.counter, "it is not 0") }
        guard let credential = data.value.credential else {
            throw AppAttestError(.authenticatorData, "no credential in it")
        }
        guard credential.aaguid == expectation.environment.aaguid else {
            throw AppAttestError(.environment, "it is not \(expectation.environment.rawValue)")
        }
        guard credential.id == keyID else {
            throw AppAttestError(.keyID, "it is not the id of the credential")
        }
        guard credential.publicKey.algorithm == .es256, credential.publicKey.key.isSame(as: key)
        else {
            throw AppAttestError(.publicKey, "it is not that of the certificate")
        }
    }
}
