// postern verify message for programs: one message or many.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct VerifyMessageTests {
    private static let zone = """
        {"app.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
         "mx.app.example": {"TXT": ["v=spf1 a -all"], "A": ["192.0.2.7"]},
         "_dmarc.app.example": {"TXT": ["v=DMARC1; p=reject"]}, "slow.example": {"error": "TIMEOUT"},
         "bad.example": {"TXT": ["v=spf1 x"]}}
        """

    private func runner(_ initialised: Bool = false) throws -> CommandRunner {
        let runner = initialised ? try CommandRunner.initialised() : try CommandRunner()
        try Data(Self.zone.utf8).write(to: runner.folder.appendingPathComponent("zone.json"))
        return runner
    }

    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    private func verify(
        _ runner: CommandRunner, ip: String = "192.0.2.7", mailFrom: String = "a@app.example",
        _ message: String
    ) throws -> [String: Any] {
        try object(
            runner.succeed(
                "verify", "message", "--ip", ip, "--helo", "mx.app.example", "--mail-from",
                mailFrom, "--dns", "zone.json",
                input: message))
    }

    @Test func verify_withoutASubcommand_isOfAMessage() throws {
        let runner = try runner()
        let arguments = ["--ip", "192.0.2.7", "--mail-from", "a@app.example", "--dns", "zone.json"]
        let message = "From: a@app.example\n\nHello\n"
        let short = try runner.run(["verify"] + arguments, input: message)
        #expect(short.status == 0 && short.output.contains("\"proof\""))
        #expect(
            try runner.run(["verify", "message"] + arguments, input: message).output == short.output
        )
    }

    @Test func verify_emptyMessage_checksSPFOnly() throws {
        let runner = try runner()
        let answer = try verify(runner, "")
        #expect(Set(answer.keys) == ["spf"])
        let spf = try #require(answer["spf"] as? [String: Any])
        #expect(spf["result"] as? String == "pass")
        #expect(spf["domain"] as? String == "app.example")
        #expect((spf["reason"] as? String)?.isEmpty == false)
        for (sender, result, domain) in [
            ("", "pass", "mx.app.example"), ("<>", "pass", "mx.app.example"),
            ("a@nobody.example", "none", "nobody.example"),
            ("a@slow.example", "temperror", "slow.example"),
            ("a@bad.example", "permerror", "bad.example"),
        ] {
            let spf = try #require(
                try verify(runner, mailFrom: sender, "")["spf"] as? [String: Any])
            #expect(spf["result"] as? String == result, "\(sender)")
            #expect(spf["domain"] as? String == domain, "\(sender)")
        }
        let outside = try #require(
            try verify(runner, ip: "203.0.113.1", "")["spf"] as? [String: Any])
        #expect(outside["result"] as? String == "fail")
    }

    @Test func verify_alignedSPF_provesTheAuthor() throws {
        let runner = try runner()
        let answer = try verify(runner, "From: Billing <billing@app.example>\nSubject: x\n\nhi\n")
        #expect(
            (answer["from"] as? [String: Any])?["addresses"] as? [String] == ["billing@app.example"]
        )
        let dmarc = try #require(answer["dmarc"] as? [String: String])
        #expect(dmarc == ["result": "pass", "domain": "app.example", "policy": "reject"])
        #expect((answer["dkim"] as? [Any])?.isEmpty == true)
        let proof = try #require(answer["proof"] as? [String: Any])
        #expect(proof["proved"] as? Bool == true)
        #expect(proof["aligned_spf"] as? String == "app.example")
        #expect(proof["author_domain"] as? String == "app.example")
        #expect(proof["sources"] == nil)
    }

    @Test func verify_dnsTimeoutOrForgery_areToldApart() throws {
        let runner = try runner()
        let slow = try #require(
            try verify(runner, mailFrom: "a@slow.example", "From: a@slow.example\n\nhi\n")["proof"]
                as? [String: Any])
        #expect(slow["proved"] as? Bool == false)
        #expect(slow["temporary"] as? Bool == true)
        let forged = try verify(runner, "From: a@app.example\nFrom: b@evil.example\n\nhi\n")
        #expect(
            (forged["from"] as? [String: Any])?["error"] as? String == "more than one From field")
        let proof = try #require(forged["proof"] as? [String: Any])
        #expect(proof["proved"] as? Bool == false)
        #expect(proof["temporary"] as? Bool == false)
        #expect(proof["aligned_spf"] is NSNull)
    }

    @Test func verify_withInstallation_namesProvedSources() throws {
        let runner = try runner(true)
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "app.example")
        let answer = try verify(runner, "From: billing@app.example\n\nhi\n")
        let sources = try #require(
            (answer["proof"] as? [String: Any])?["sources"] as? [[String: Any]])
        #expect(sources.count == 1)
        #expect(sources.first?["source"] as? String == "app.example")
        #expect(sources.first?["proved"] as? Bool == true)
        let forged = try verify(runner, ip: "203.0.113.1", "From: billing@app.example\n\nhi\n")
        let refused = try #require(
            (forged["proof"] as? [String: Any])?["sources"] as? [[String: Any]])
        #expect(refused.first?["proved"] as? Bool == false)
        try runner.fail(
            "verify", "message", "--config", "nowhere.yaml", status: 78,
            saying: "no configuration file")
    }

    @Test func verify_batch_answersEveryLineInOrder() throws {
        let runner = try runner()
        let message = Data("From: billing@app.example\r\n\r\nhi\r\n".utf8).base64EncodedString()
        let lines = [
            #"{"id": 1, "mail_from": "a@app.example", "ip": "192.0.2.1", "helo": "x", "message_base64": "\#(message)"}"#,
            #"{"id": "two", "mail_from": "a@own.example", "ip": "192.0.2.1", "dns": {"own.example": {"TXT": ["v=spf1 -all"]}}}"#,
            "not json", #"{"id": 4, "message_base64": "*", "mail_from": 7}"#, "",
            #"{"id": 5, "now": "2026-11-21T06:49:30Z"}"#,
        ]
        let result = try runner.run(
            ["verify", "message", "--batch", "--dns", "zone.json"],
            input: lines.joined(separator: "\n"))
        #expect(result.status == 0)
        let answers = try result.output.split(separator: "\n").map { try object(String($0)) }
        try #require(answers.count == 5)
        #expect(answers[0]["id"] as? Int == 1)
        #expect((answers[0]["proof"] as? [String: Any])?["proved"] as? Bool == true)
        #expect(answers[1]["id"] as? String == "two")
        #expect((answers[1]["spf"] as? [String: Any])?["result"] as? String == "fail")
        #expect(answers[2]["error"] != nil)
        #expect(answers[3]["id"] as? Int == 4)
        #expect(answers[3]["error"] != nil)
        #expect((answers[4]["spf"] as? [String: Any])?["result"] as? String == "none")
    }

    // MARK: Public cases

    private static let conformance: URL = {
        if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] {
            return URL(fileURLWithPath: path)
        }
        return URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("shared/conformance")
    }()

    @Test(
        .enabled(
            if: FileManager.default.fileExists(atPath: conformance.path),
            "skipped: no conformance folder (set POSTERN_CONFORMANCE)"))
    func verify_publicDKIMCases_givesTheirVerdicts() throws {
        let folder = Self.conformance.appendingPathComponent("dkim")
        let list = try JSONSerialization.jsonObject(
            with: Data(contentsOf: folder.appendingPathComponent("cases.json")))
        let cases = try #require(list as? [[String: Any]]).filter { $0["usable"] as? Bool == true }
        try #require(!cases.isEmpty)
        var lines: [String] = []
        for (index, test) in cases.enumerated() {
            let zone = try #require(test["dns"] as? [String: Any]).mapValues { value -> Any in
                if let text = value as? String { return ["TXT": [text]] }
                return (value as? [String]).map { ["TXT": $0] } ?? value
            }
            let message = try Data(
                contentsOf: folder.appendingPathComponent(
                    try #require(test["message_file"] as? String)))
            let question: [String: Any] = [
                "id": index, "dns": zone, "now": test["now"] as? Int ?? 1_795_000_000,
                "message_base64": message.base64EncodedString(),
            ]
            lines.append(
                String(
                    decoding: try JSONSerialization.data(withJSONObject: question), as: UTF8.self))
        }
        let result = try CommandRunner().run(
            ["verify", "message", "--batch"], input: lines.joined(separator: "\n"))
        let answers = try result.output.split(separator: "\n").map { try object(String($0)) }
        try #require(answers.count == cases.count)
        var right = 0
        for (test, answer) in zip(cases, answers) {
            let results = ((answer["dkim"] as? [[String: Any]]) ?? []).compactMap {
                $0["result"] as? String
            }
            let verdict =
                results.isEmpty
                ? "none"
                : results.contains("pass")
                    ? "pass" : results.contains("temperror") ? "temperror" : "notpass"
            #expect(verdict == test["verdict"] as? String, "\(test["name"] ?? "")")
            if verdict == test["verdict"] as? String { right += 1 }
        }
        print("verify --batch, dkim: \(right) of \(cases.count) cases")
    }
}
