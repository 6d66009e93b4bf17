// Project Wycheproof's cases for the primitives that DKIM uses.

import Foundation
import MailCrypto
import TestSupport
import Testing

private struct WycheproofFile: Decodable {
    struct Key: Decodable { let pk: String? }
    struct Test: Decodable {
        let tcId: Int
        let comment: String
        let msg: String
        let sig: String
        let result: String
    }
    struct Group: Decodable {
        let publicKey: Key?
        let publicKeyDer: String
        let publicKeyAsn: String?
        let tests: [Test]
    }
    let numberOfTests: Int
    let testGroups: [Group]

    static func read(_ name: String) throws -> WycheproofFile {
        let url = Conformance.folder.appendingPathComponent("jwt/wycheproof/\(name)")
        return try JSONDecoder().decode(WycheproofFile.self, from: Data(contentsOf: url))
    }
}

@Suite(
    .blocking,
    .enabled(if: Conformance.isPresent, "skipped: no conformance folder (set POSTERN_CONFORMANCE)"))
struct WycheproofTests {
    @Test func rsaSHA256_wycheproofCases_givesTheirResults() throws {
        let file = try WycheproofFile.read("rsa_signature_2048_sha256_test.json")
        var count = 0
        for group in file.testGroups {
            let key = try RSAPublicKey(der: hex(group.publicKeyDer))
            let bare = try RSAPublicKey(der: hex(group.publicKeyAsn ?? ""))
            #expect(key.bitCount == 2048 && bare.bitCount == 2048)
            for test in group.tests {
                // The one "acceptable" case has parameters missing from DigestInfo. RFC 8017 allows
                // a verifier to refuse it.
                let valid = key.verifySHA256(message: hex(test.msg), signature: hex(test.sig))
                #expect(valid == (test.result == "valid"), "\(test.tcId) \(test.comment)")
                #expect(
                    valid
                        == bare.verifySHA256(
                            digest: SHA256.hash(hex(test.msg)), signature: hex(test.sig)))
                count += 1
            }
        }
        #expect(count == file.numberOfTests && count > 0)
        print("wycheproof rsa-sha256: \(count) of \(file.numberOfTests) cases")
    }

    @Test func ed25519_wycheproofCases_givesTheirResults() throws {
        let file = try WycheproofFile.read("ed25519_test.json")
        var count = 0
        for group in file.testGroups {
            let key = try Ed25519PublicKey(rawBytes: hex(group.publicKey?.pk ?? ""))
            for test in group.tests {
                let valid = key.verify(signature: hex(test.sig), message: hex(test.msg))
                #expect(valid == (test.result == "valid"), "\(test.tcId) \(test.comment)")
                count += 1
            }
        }
        #expect(count == file.numberOfTests && count > 0)
        print("wycheproof ed25519: \(count) of \(file.numberOfTests) cases")
    }
}
