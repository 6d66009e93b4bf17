// The tokens of Vectors/*.jsonl: each valid one is accepted, and each other one is refused by the
// check for which it was made.

import Foundation
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct VectorTests {
    static let files = [
        "valid", "format", "type", "algorithm", "key", "signature", "claims", "nonce",
    ]

    @Test(arguments: files) func tokenVectors_everyFile_giveExpectedResults(
        _ name: String
    ) async throws {
        let text = try String(
            contentsOf: Files.vectors.appendingPathComponent("\(name).jsonl"), encoding: .utf8)
        let lines = text.split(separator: "\n")
        try #require(lines.count >= 10, "\(name).jsonl holds \(lines.count) cases")
        let questions = TokenQuestions(issuers: nil, keys: nil)
        for line in lines {
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let expected = try #require(object["expect"] as? [String: Any])
            let id = try #require(object["id"] as? String)
            let token = try #require(object["token"] as? String)
            let question = try TokenVerificationRequest(line: Array(line.utf8), now: 0) {
                Int64($0)
            }
            let answer = await questions.answer(question)
            switch answer.outcome {
            case .valid(let claims):
                #expect(
                    expected["valid"] as? Bool == true, "\(id) was taken: \(object["why"] ?? "")")
                if question.checksClaims { #expect(claims?["sub"]?.string != nil, "\(id)") }
            case .rejected(let rejection):
                #expect(expected["valid"] as? Bool == false, "\(id) was refused: \(rejection)")
                #expect(
                    expected["check"] as? String == rejection.check.rawValue, "\(id): \(rejection)")
                expectNothing(of: token, in: "\(rejection)", id)
                expectNothing(
                    of: token, in: answer.json().text.replacingOccurrences(of: id, with: ""), id)
            case .unavailable(let reason): Issue.record("\(id): \(reason)")
            }
        }
    }

    /// An answer must not contain eight characters in a row of a segment, or of a text in it. It
    /// may contain the names of refused parameters and claims.
    private func expectNothing(of token: String, in text: String, _ id: String) {
        var secrets = token.split(separator: ".").map(String.init)
        for segment in token.split(separator: ".") {
            guard let octets = Base64URL.decode(segment.utf8),
                let object = try? JSONSerialization.jsonObject(with: Data(octets)) as? [String: Any]
            else { continue }
            secrets += object.values.compactMap { $0 as? String }
        }
        for secret in secrets where secret.utf8.count >= 8 {
            let octets = Array(secret.utf8)
            for start in 0...(octets.count - 8) {
                let piece = String(decoding: octets[start..<start + 8], as: UTF8.self)
                #expect(!text.contains(piece), "\(id): the answer repeats the token")
            }
        }
    }

    @Test func tokenVectors_files_areAllRun() throws {
        let found = try FileManager.default.contentsOfDirectory(atPath: Files.vectors.path).filter {
            $0.hasSuffix(".jsonl")
        }
        #expect(Set(found) == Set(Self.files.map { "\($0).jsonl" }))
    }

    @Test func tokenVectors_checks_areAllCovered() throws {
        var checks = Set<String>()
        for name in Self.files {
            let text = try String(
                contentsOf: Files.vectors.appendingPathComponent("\(name).jsonl"), encoding: .utf8)
            for check in TokenRejection.Check.allCases
            where text.contains("\"check\":\"\(check.rawValue)\"") {
                checks.insert(check.rawValue)
            }
        }
        #expect(checks == Set(TokenRejection.Check.allCases.map(\.rawValue)))
    }
}
