// An assertion: a device signs with an attested key ("Validating apps that connect to your
// server", assertions).

import MailCrypto

package enum AppAssertion {
    /// Verifies an assertion; returns its counter, which must be stored.
    /// - Parameters:
    ///   - point: the attested key, uncompressed (X9.63), 65 octets.
    ///   - counter: the stored one; the new one must be greater. 0 after the attestation.
    package static func verify(
        _ octets: [UInt8], _ expectation: AppAttestExpectation, point: [UInt8], counter: UInt32
    ) throws(AppAttestError) -> UInt32 {
        guard point.count == 65, point[0] == 4,
            let key = try? AnyPublicKey(.p256, x: Array(point[1..<33]), y: Array(point[33...]))
        else { throw AppAttestError(.publicKey, "it is not an uncompressed point of P-256") }
        let value: CBORValue
        do throws(CBORError) { value = try CBORReader.value(of: octets) } catch {
            throw AppAttestError(.format, "\(error)")
        }
        guard value.pairs?.count == 2, let signature = value["signature"]?.bytes,
            let octets = value["authenticatorData"]?.bytes
        else {
            throw AppAttestError(.format, "its members are not signature and authenticatorData")
        }
        let data = try AppAttestData(assertion: octets)
        // The nonce is already a hash, and ECDSA hashes it again.
        let nonce = SHA256.hash(octets + SHA256.hash(expectation.clientData))
        guard key.verify(.ecdsaSHA256, signature: signature, message: nonce) else {
            throw AppAttestError(.signature, "it was not made with the attested key")
        }
        guard expectation.isApp(data) else { throw AppAttestError(.appID, "it is for another app") }
        guard data.value.signCount > counter else {
            throw AppAttestError(.counter, "it did not rise")
        }
        return data.value.signCount
    }
}
