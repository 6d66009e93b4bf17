// Public test data: the tokens of RFC 7520, RFC 8037 and RFC 7797, and
// Wycheproof's signatures as JWS.

import Foundation
import SignIn
import Support
import TestSupport
import Testing

@Suite(
    .blocking,
    .enabled(
        if: Files.hasConformance,
        "skipped: no public test data; POSTERN_CONFORMANCE names its folder"))
struct ConformanceTests {
    private let folder = Files.conformance.appendingPathComponent("jwt")

    private func object(_ path: String) throws -> [String: Any] {
        let data = try Data(contentsOf: folder.appendingPathComponent(path))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// A token under these keys, with its claims unchecked.
    private func answer(
        _ token: String, keys: [Any]
    ) async throws -> TokenVerificationResponse.Outcome {
        var question = TokenVerificationRequest(token: token, now: 0)
        question.checksClaims = false
        let document = try JSONSerialization.data(withJSONObject: ["keys": keys])
        question.keys = try StrictJSON.parse(Array(document), limit: JWKSet.maximumLength)
        return await TokenQuestions(issuers: nil, keys: nil).answer(question).outcome
    }

    private func check(_ outcome: TokenVerificationResponse.Outcome) -> String {
        switch outcome {
        case .valid: "valid"
        case .rejected(let rejection): rejection.check.rawValue
        case .unavailable: "unavailable"
        }
    }

    /// The expected result of each of the cookbook's files: RS256 is accepted; all else is another
    /// algorithm, another form, or not a JWS.
    static let cookbook = [
        "jws/4_1.rsa_v15_signature": "valid", "jws/4_2.rsa-pss_signature": "alg",
        "jws/4_3.ecdsa_signature": "alg",
        "jws/4_4.hmac-sha2_integrity_protection": "alg",
        "jws/4_5.signature_with_detached_content": "format",
        "jws/4_6.protecting_specific_header_fields": "format",
        "jws/4_7.protecting_content_only": "format",
        "jws/4_8.multiple_signatures": "format", "curve25519/jws": "alg",
        "curve25519/ecdh-es": "format",
        "rfc7797/4.2.hmac-sha2_b64_false": "format", "rfc7797/hmac-sha2_b64_false": "format",
    ]

    @Test(arguments: cookbook.sorted { $0.key < $1.key })
    func cookbook_everyToken_hasExpectedResult(
        _ name: String, _ expected: String
    ) async throws {
        let file = try object("ietf-jose-cookbook/\(name).json")
        let input = try #require(file["input"] as? [String: Any])
        let key = try #require(input["key"])
        let keys = key as? [Any] ?? [key]
        let output = try #require(file["output"] as? [String: Any])
        // In JSON serialization too: the whole object as the token.
        for form in ["compact", "json", "json_flat"] {
            guard let value = output[form] else { continue }
            let token =
                try value as? String
                ?? String(
                    decoding: JSONSerialization.data(withJSONObject: value, options: .sortedKeys),
                    as: UTF8.self)
            let outcome = try await answer(token, keys: keys)
            #expect(
                check(outcome) == (form == "compact" ? expected : "format"),
                "\(name) \(form): \(outcome)")
        }
    }

    @Test func cookbook_files_areAllRun() throws {
        let found = try ["jws", "curve25519", "rfc7797"].flatMap { part in
            try FileManager.default.contentsOfDirectory(
                atPath: folder.appendingPathComponent("ietf-jose-cookbook/\(part)").path
            )
            .filter { $0.hasSuffix(".json") }.map { "\(part)/\($0.dropLast(5))" }
        }
        #expect(Set(found) == Set(Self.cookbook.keys))
    }

    @Test func cookbook_tokenChangedOrOtherKey_isRefused() async throws {
        let file = try object("ietf-jose-cookbook/jws/4_1.rsa_v15_signature.json")
        let publicKey = try object("ietf-jose-cookbook/jwk/3_3.rsa_public_key.json")
        let token = try #require((file["output"] as? [String: Any])?["compact"] as? String)
        #expect(check(try await answer(token, keys: [publicKey])) == "valid")
        // With one more octet the text still decodes, but is not a signature.
        #expect(check(try await answer(token + "A", keys: [publicKey])) == "signature")
        let ecKey = try object("ietf-jose-cookbook/jwk/3_1.ec_public_key.json")
        #expect(check(try await answer(token, keys: [ecKey])) == "kid")
        let secret = try object("ietf-jose-cookbook/jwk/3_5.symmetric_key_mac_computation.json")
        #expect(check(try await answer(token, keys: [secret])) == "kid")
    }

    /// A published private key belongs to everyone: an issuer's set with such a key does not
    /// verify.
    @Test func keySet_privateKeyPublished_isUnusable() async throws {
        for name in ["3_2.ec_private_key", "3_4.rsa_private_key"] {
            let key = try object("ietf-jose-cookbook/jwk/\(name).json")
            let keys = try JWKSet.parse(
                Array(JSONSerialization.data(withJSONObject: ["keys": [key]])))
            #expect(keys.keys.isEmpty)
            #expect(keys.unusable.count == 1)
        }
    }

    @Test(arguments: [
        ("ecdsa_secp256r1_sha256_p1363_test", "publicKeyJwk", 262),
        ("rsa_signature_2048_sha256_test", "keyJwk", 259),
    ])
    func signature_wycheproofCases_givesTheirResults(
        _ name: String, _ keyName: String, _ count: Int
    ) async throws {
        let groups = try #require(
            try object("wycheproof/\(name).json")["testGroups"] as? [[String: Any]])
        var seen = 0
        for group in groups {
            let tests = try #require(group["tests"] as? [[String: Any]])
            var jwk = try group[keyName] as? [String: Any] ?? point(group)
            seen += tests.count
            jwk["kid"] = "k"
            let set = try JWKSet.parse(
                Array(JSONSerialization.data(withJSONObject: ["keys": [jwk]])))
            let key = try #require(set.keys.first, "\(set.unusable)")
            for test in tests {
                let message = try #require((test["msg"] as? String).flatMap { Hex.decode($0.utf8) })
                let signature = try #require(
                    (test["sig"] as? String).flatMap { Hex.decode($0.utf8) })
                let result = try #require(test["result"] as? String)
                // "acceptable": a padding without NULL, which RFC 8017
                // section 8.2.2 has a verifier refuse.
                #expect(
                    key.isValid(signature, over: message) == (result == "valid"),
                    "\(name) \(test["tcId"] ?? ""): \(test["comment"] ?? "")")
            }
        }
        #expect(seen == count)
    }

    /// A JWK of a group that has its key only as an uncompressed point.
    private func point(_ group: [String: Any]) throws -> [String: Any] {
        let octets = try #require(
            ((group["publicKey"] as? [String: Any])?["uncompressed"] as? String).flatMap {
                Hex.decode($0.utf8)
            })
        try #require(octets.count == 65 && octets[0] == 4)
        return [
            "kty": "EC", "crv": "P-256", "x": Base64URL.encode(octets[1..<33]),
            "y": Base64URL.encode(octets[33...]),
        ]
    }
}
