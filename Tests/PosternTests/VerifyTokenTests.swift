// Issuers, tokens and signing keys from the command line.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct VerifyTokenTests {
    /// The vectors of the tokens' own tests.
    private static let vectors = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appendingPathComponent("SignInTests/Vectors")

    /// A response of a batch. Claims are not decoded, because they may contain numbers that
    /// Foundation cannot read (1e400).
    private struct Response: Decodable {
        let id: String
        let valid: Bool
        let error: String?
        let hasClaims: Bool

        private enum CodingKeys: CodingKey { case id, valid, error, claims }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(String.self, forKey: .id)
            valid = try container.decode(Bool.self, forKey: .valid)
            error = try container.decodeIfPresent(String.self, forKey: .error)
            hasClaims = container.contains(.claims)
        }
    }

    private func object(_ line: some StringProtocol) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    /// The request with a valid token.
    private func valid(_ name: String = "valid/es256") throws -> [String: Any] {
        let text = try String(
            contentsOf: Self.vectors.appendingPathComponent("valid.jsonl"), encoding: .utf8)
        return try #require(
            try text.split(separator: "\n").map { try object($0) }.first {
                $0["id"] as? String == name
            })
    }

    @Test func verify_batchOfVectors_answersInOrder() throws {
        let runner = try CommandRunner()
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.vectors.path).filter {
            $0.hasSuffix(".jsonl")
        }
        .sorted()
        try #require(files.count >= 8)
        let input = try files.map {
            try String(contentsOf: Self.vectors.appendingPathComponent($0), encoding: .utf8)
        }.joined()
        let result = try runner.run(["verify", "token", "--batch"], input: input)
        #expect(result.status == 0)
        #expect(result.errors == "")
        let questions = input.split(separator: "\n")
        let answers = result.output.split(separator: "\n")
        try #require(questions.count == answers.count)
        for (question, answer) in zip(questions, answers) {
            let question = try object(question)
            let answer = try JSONDecoder().decode(Response.self, from: Data(answer.utf8))
            let expected = try #require(question["expect"] as? [String: Any])
            #expect(answer.id == question["id"] as? String)
            #expect(answer.valid == expected["valid"] as? Bool, "\(question["id"] ?? "")")
            if let check = expected["check"] as? String {
                #expect(answer.error?.hasPrefix("\(check): ") == true, "\(question["id"] ?? "")")
                #expect(!answer.hasClaims)
            } else {
                #expect(answer.error == nil)
            }
        }
    }

    @Test func verify_unreadableLine_answersWithError() throws {
        let runner = try CommandRunner()
        let input = """
            nonsense
            {"id": 7}
            {"id": {"a": [1]}, "token": 5}
            {"id": "x", "token": "a.b.c", "now": "yesterday"}
            {"id": "y", "token": "a.b.c", "now": "2026-11-21T06:49:30Z", "claims": "maybe"}
            {"id": "z", "token": "a\\u0000.b.c", "jwks": {"keys": []}}

            {"id": 18446744073709551615, "token": "\\ud800", "jwks": null, "now": 1790000000.5}
            """
        let answers = try runner.run(["verify", "token", "--batch"], input: input).output.split(
            separator: "\n"
        ).map {
            try object($0)
        }
        #expect(answers.count == 7)
        #expect(answers.allSatisfy { $0["valid"] as? Bool == false && $0["error"] is String })
        #expect(
            answers.map { ($0["error"] as? String)?.prefix(while: { $0 != ":" }) } == [
                "question", "question", "question", "question", "question", "format", "format",
            ])
        #expect(answers[1]["id"] as? Int == 7)
        #expect(answers[6]["id"] as? UInt64 == 18_446_744_073_709_551_615)
    }

    @Test func verify_oneToken_checksItsClaims() throws {
        let runner = try CommandRunner()
        let question = try valid()
        let token = try #require(question["token"] as? String)
        let jwks = runner.folder.appendingPathComponent("jwks.json")
        try JSONSerialization.data(withJSONObject: question["jwks"] as Any).write(to: jwks)
        let arguments = [
            "verify", "token", "--jwks", jwks.path, "--iss", "https://issuer.example", "--aud",
            "com.example.juice",
        ]
        let good = try runner.run(
            arguments + ["--nonce", "n-0S6_WzA2Mj", "--now", "1790000000"], input: token + "\n")
        #expect(good.status == 0, "\(good.errors)")
        #expect(try object(good.output)["valid"] as? Bool == true)
        let file = runner.folder.appendingPathComponent("token.txt")
        try Data(token.utf8).write(to: file)
        let bad = try runner.run(
            arguments + [file.path, "--nonce", "other", "--now", "1790000000"])
        #expect(bad.status == 65)
        #expect(bad.output.hasPrefix("{\"valid\":false,\"error\":\"nonce: "))
        #expect(!bad.output.contains(token.suffix(20)))
        let expired = try runner.run(
            arguments + ["--nonce", "n-0S6_WzA2Mj", "--now", "2027-01-01T00:00:00Z"], input: token)
        #expect(expired.status == 65)
        #expect(expired.output.contains("exp: "))
        let skipped = try runner.run(
            ["verify", "token", "--jwks", jwks.path, "--claims", "skip"], input: token)
        #expect(skipped.status == 0)
        try runner.fail(
            "verify", "token", "--jwks", jwks.path, "--iss", "x", status: 64, saying: "--aud")
        try runner.fail(
            "verify", "token", "--jwks", "absent.json", "--iss", "x", "--aud", "y", file.path,
            status: 66, saying: "absent.json")
        try runner.fail("verify", "token", "--batch", "--aud", "y", status: 64, saying: "--batch")
    }

    @Test func issuer_addedAndRemoved_verifiesItsTokens() throws {
        let runner = try CommandRunner.initialised()
        let question = try valid()
        let jwks = runner.folder.appendingPathComponent("jwks.json")
        try JSONSerialization.data(withJSONObject: question["jwks"] as Any).write(to: jwks)
        try runner.succeed(
            "issuer", "add", "own", "--iss", "https://issuer.example", "--jwks-file", jwks.path)
        let keys = try #require(try runner.json("issuer", "test", "own") as? [[String: Any]])
        #expect(keys.map { $0["kid"] as? String } == ["ec-1", "rsa-1"])
        #expect(keys.allSatisfy { $0["usable"] as? Bool == true })
        let shown = try #require(try runner.json("issuer", "show", "own") as? [String: Any])
        #expect(shown["iss"] as? String == "https://issuer.example")
        #expect(shown["algorithms"] as? [String] == ["ES256", "RS256"])
        #expect(shown["leeway"] as? Int == 60)
        // A token of that issuer, without keys beside it.
        let token = try #require(question["token"] as? String)
        let arguments = [
            "verify", "token", "--aud", "com.example.juice", "--nonce", "n-0S6_WzA2Mj", "--now",
            "1790000000",
        ]
        let verified = try runner.run(arguments, input: token)
        #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
        // An edited file is used at the next read.
        try Data("{\"keys\":[]}".utf8).write(to: jwks)
        let unavailable = try runner.run(arguments, input: token)
        #expect(unavailable.status == 75)
        #expect(unavailable.output.contains("unavailable: "))
        try runner.fail("issuer", "remove", "own", status: 64, saying: "--yes")
        try runner.succeed("issuer", "remove", "own", "--yes")
        let unknown = try runner.run(arguments, input: token)
        #expect(unknown.status == 65)
        #expect(unknown.output.contains("iss: "))
        try runner.fail("issuer", "show", "own", status: 66, saying: "no issuer own")
    }

    @Test func issuer_invalidOrUnreachable_isRefused() throws {
        let runner = try CommandRunner.initialised()
        let weak = "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"AAAA\"}]}"
        let file = runner.folder.appendingPathComponent("weak.json")
        try Data(weak.utf8).write(to: file)
        try runner.fail(
            "issuer", "add", "a", "--iss", "https://a", "--jwks-file", file.path, status: 65,
            saying: "no usable key")
        try runner.fail(
            "issuer", "add", "a", "--iss", "https://a", status: 64, saying: "--jwks-uri")
        try runner.fail(
            "issuer", "add", "a", "--iss", "https://a", "--jwks-uri", "http://a.example/k",
            status: 65, saying: "https:")
        try runner.fail(
            "issuer", "add", "a", "--iss", "a b", "--jwks-uri", "https://a.example/k", status: 65,
            saying: "--iss")
        try runner.fail(
            "issuer", "add", "a", "--iss", "https://a", "--jwks-uri", "https://a.example/k",
            "--leeway", "301", status: 64,
            saying: "300")
        try runner.succeed(
            "issuer", "add", "a", "--iss", "https://a", "--jwks-uri", "http://127.0.0.1:1/k")
        try runner.fail("issuer", "test", "a", status: 75, saying: "issuer a: ")
        try runner.fail(
            "issuer", "add", "a", "--iss", "https://b", "--jwks-uri", "https://a.example/k",
            status: 73, saying: "already")
    }

    @Test func signingKeys_rotatedAndRetired_changeState() throws {
        let runner = try CommandRunner.initialised()
        try runner.fail("keys", "signing", "rotate", status: 65, saying: "keys signing generate")
        try runner.succeed("keys", "signing", "generate")
        #expect(try runner.succeed("keys", "signing", "generate").contains("already"))
        func states() throws -> [String] {
            try #require(try runner.json("keys", "signing", "list") as? [[String: Any]]).compactMap
            { $0["state"] as? String }
        }
        #expect(try states() == ["next", "active"])
        try runner.fail("keys", "signing", "rotate", status: 65, saying: "--early")
        try runner.succeed("keys", "signing", "rotate", "--early")
        #expect(try states() == ["next", "active", "retiring"])
        let published = try object(try runner.succeed("keys", "signing", "jwks"))
        let keys = try #require(published["keys"] as? [[String: Any]])
        #expect(keys.count == 3)
        #expect(
            keys.allSatisfy {
                $0["d"] == nil && $0["alg"] as? String == "ES256" && $0["use"] as? String == "sig"
            })
        let old = try #require(keys.last?["kid"] as? String)
        try runner.fail("keys", "signing", "retire", old, status: 64, saying: "--yes")
        try runner.succeed("keys", "signing", "retire", old, "--yes")
        #expect(try states() == ["next", "active", "retired"])
        let active = try #require(keys.first?["kid"] as? String)
        try runner.fail(
            "keys", "signing", "retire", active, "--yes", status: 65, saying: "rotate first")
    }
}
