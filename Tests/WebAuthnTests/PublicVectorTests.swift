// Ceremonies from other sources: the vectors of the specification, and samples of public libraries.

import Foundation
import Support
import TestSupport
import Testing

@testable import WebAuthn

/// A ceremony with its expected answer.
struct PublicCeremony: CustomTestStringConvertible {
    let name: String
    var line: [String: Any]
    /// Nil if the collection does not know.
    let isValid: Bool?

    var testDescription: String { name }

    /// The answer to its line.
    func answer() throws -> JSONObject {
        PasskeyQuestion.answer(Array(try JSONSerialization.data(withJSONObject: line)))
    }
}

/// The folder `webauthn` of the public test data.
enum PublicCeremonies {
    private static func file(_ path: String) throws -> [String: Any] {
        let data = try Data(contentsOf: Folders.conformance.appending(path: "webauthn/\(path)"))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// The 15 pairs of WebAuthn Level 3, section "Test Vectors".
    static func standard() throws -> [PublicCeremony] {
        let file = try file("w3c-level3/test-vectors.json")
        let vectors = try #require(file["vectors"] as? [[String: Any]])
        let authority = try #require(
            (file["attestationCA"] as? [String: Any])?["attestation_ca_cert"] as? String)
        return try vectors.flatMap { vector -> [PublicCeremony] in
            let title = try #require(vector["title"] as? String)
            let expected = try #require(vector["expected"] as? [String: Any])
            let registration = try #require(vector["registration"] as? [String: Any])
            let authentication = try #require(vector["authentication"] as? [String: Any])
            let common: [String: Any] = [
                "rp_id": try #require(file["rpId"]), "origins": [try #require(file["origin"])],
                "user_verification": "preferred",
            ]
            var create: [String: Any] = [
                "id": title, "ceremony": "create", "challenge": registration["challenge"] ?? "",
                "client_data_json": registration["clientDataJSON"] ?? "",
                "attestation_object": registration["attestationObject"] ?? "",
            ]
            if let certificates = expected["x5cCertificates"] as? Int, certificates > 0,
                expected["fmt"] as? String != "tpm"
            {
                create["attestation_roots"] = [authority]
            }
            let get: [String: Any] = [
                "id": title, "ceremony": "get", "challenge": authentication["challenge"] ?? "",
                "client_data_json": authentication["clientDataJSON"] ?? "",
                "authenticator_data": authentication["authenticatorData"] ?? "",
                "signature": authentication["signature"] ?? "",
                "credential_public_key": expected["credentialPublicKeyCOSE"] ?? "", "sign_count": 0,
            ]
            return [create, get].map { line in
                PublicCeremony(
                    name: "\(line["ceremony"] ?? ""): \(title)",
                    line: line.merging(common) { first, _ in first },
                    isValid: expected["result"] as? String == "accept")
            }
        }
    }

    /// Samples out of the tests of three libraries.
    static func libraries() throws -> [PublicCeremony] {
        try ["SimpleWebAuthn", "py_webauthn", "webauthn"].flatMap { library -> [PublicCeremony] in
            let file = try file("\(library)/samples.json")
            return try ["registrations", "assertions"].flatMap { kind -> [PublicCeremony] in
                try #require(file[kind] as? [[String: Any]]).compactMap {
                    sample -> PublicCeremony? in
                    // Without client data, or without a key, the ceremony is not complete.
                    guard let challenge = sample["challenge"] as? String,
                        let origin = sample["origin"] as? String,
                        let rpID = sample["rpId"] as? String,
                        let clientData = sample["clientDataJSON"] as? String
                    else { return nil }
                    var line: [String: Any] = [
                        "id": sample["id"] ?? "", "rp_id": rpID, "origins": [origin],
                        "challenge": challenge,
                        "client_data_json": clientData, "user_verification": "discouraged",
                    ]
                    if kind == "registrations" {
                        line["ceremony"] = "create"
                        line["attestation_object"] = sample["attestationObject"]
                    } else {
                        guard let key = sample["credentialPublicKey"] as? String else { return nil }
                        line["ceremony"] = "get"
                        line["credential_public_key"] = key
                        line["authenticator_data"] = sample["authenticatorData"]
                        line["signature"] = sample["signature"]
                    }
                    let expected = (sample["expected"] as? [String: Any])?["result"] as? String
                    let name =
                        "\(library) \(kind) \(sample["id"] ?? "") \(sample["fmt"] ?? "") \(sample["coseAlg"] ?? "")"
                    let result: Bool? =
                        expected == "accept" ? true : expected == "reject" ? false : nil
                    return PublicCeremony(name: name, line: line, isValid: result)
                }
            }
        }
    }
}

@Suite(.blocking, .enabled(if: Folders.hasConformance, Folders.skipped)) struct PublicVectorTests {
    /// Every vector of the specification is accepted; those with a
    /// certificate lead to its authority.
    @Test func ceremony_everySpecificationVector_isAccepted() throws {
        let vectors = try PublicCeremonies.standard()
        #expect(vectors.count == 30)
        for vector in vectors {
            let answer = try vector.answer()
            #expect(
                answer["valid"] == .bool(true), "\(vector.name): \(answer["error"]?.string ?? "")")
            if vector.line["attestation_roots"] != nil {
                #expect(answer["attestation"] == .string("rooted"), "\(vector.name)")
            }
        }
    }

    /// Always refused: RSA with SHA-1, and ML-DSA, which libcrypto has from 3.5 on. Statements of a
    /// TPM are not verified.
    @Test func ceremony_samplesOfLibraries_isJudgedAlike() throws {
        let samples = try PublicCeremonies.libraries().filter { $0.isValid != nil }
        #expect(samples.count > 70)
        for sample in samples {
            let answer = try sample.answer()
            let error = answer["error"]?.string ?? ""
            if ["-65535", "-48", "-49", "-50"].contains(where: {
                error.contains("the algorithm \($0) is not accepted")
            }) {
                continue
            }
            if sample.name.contains(" tpm "), sample.isValid == false { continue }
            #expect(answer["valid"] == .bool(sample.isValid == true), "\(sample.name): \(error)")
        }
    }
}
