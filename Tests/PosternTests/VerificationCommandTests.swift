// postern inbox add, verify and confirm --code, with a mail server.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct VerificationCommandTests {
    private func installed() throws -> (CommandRunner, SMTPSink, [String]) {
        let runner = try CommandRunner.initialised()
        try runner.succeed("user", "add", "jane", "--inbox", "jane.doe@home.example", "--verified")
        let sink = try SMTPSink()
        return (
            runner, sink,
            [
                "--set", "mail.submission=127.0.0.1:\(sink.port)", "--set",
                "http.public_url=https://relay.example/",
            ]
        )
    }

    private func code(_ message: SinkMessage) throws -> String {
        String(try #require(message.text.firstMatch(of: /[0-9]{3} [0-9]{3}/)).output)
    }

    @Test func inbox_added_isConfirmedByItsCode() throws {
        let (runner, sink, settings) = try installed()
        defer { sink.stop() }
        let added = try runner.run(["inbox", "add", "jane", "new@home.example"] + settings)
        #expect(
            added.status == 0 && added.output.contains("enters the code on their page"), "\(added)")
        let message = try #require(try sink.wait(for: 1).first)
        #expect(
            message.recipients == ["<new@home.example>"]
                && message.text.contains("https://relay.example/me/confirm/"))
        #expect(
            message.text.contains("\r\nDKIM-Signature:")
                || message.text.hasPrefix("DKIM-Signature:"))
        #expect(!added.output.contains(try code(message)) && !added.output.contains("new@"))

        try runner.fail(
            "inbox", "confirm", "jane", "2", "--code", "12345", status: 65, saying: "six digits")
        let wrong = try code(message) == "000000" ? "000001" : "000000"
        try runner.fail(
            "inbox", "confirm", "jane", "2", "--code", wrong, status: 65, saying: "tries left: 4")
        try runner.succeed("inbox", "confirm", "jane", "2", "--code", try code(message))
        try runner.fail("inbox", "verify", "jane", "2", status: 73, saying: "already verified")
    }

    @Test func inbox_mailServerAway_isTemporaryFailure() throws {
        let (runner, sink, settings) = try installed()
        sink.stop()
        let result = try runner.run(["inbox", "add", "jane", "new@home.example"] + settings)
        #expect(
            result.status == 75 && result.errors.contains("try postern inbox verify jane 2"),
            "\(result)")
        #expect(!result.errors.contains("new@"))
    }

    @Test func inbox_mailServerRefuses_isPermanentFailure() throws {
        let (runner, sink, settings) = try installed()
        defer { sink.stop() }
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["*": "550 5.1.1 <new@home.example> is unknown here"]
        sink.set(behaviour)
        let result = try runner.run(["inbox", "add", "jane", "new@home.example"] + settings)
        #expect(result.status == 69 && result.errors.contains("550 5.1.1"), "\(result)")
        #expect(!result.errors.contains("new@"))
    }

    @Test func verificationMessage_repeated_isLimited() throws {
        let (runner, sink, settings) = try installed()
        defer { sink.stop() }
        let limited = settings + ["--set", "verification.per_inbox=2"]
        #expect(try runner.run(["inbox", "add", "jane", "new@home.example"] + limited).status == 0)
        #expect(try runner.run(["inbox", "verify", "jane", "2"] + limited).status == 0)
        let third = try runner.run(["inbox", "verify", "jane", "2"] + limited)
        #expect(
            third.status == 73 && third.errors.contains("2 messages to this inbox within an hour"),
            "\(third)")
        #expect(try sink.wait(for: 2).count == 2)
    }

    @Test func template_withoutCode_isRefused() throws {
        let (runner, sink, settings) = try installed()
        defer { sink.stop() }
        let folder = NSTemporaryDirectory() + "postern-texts-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "Subject: x\n\nno code\n".write(
            toFile: folder + "/verification.txt", atomically: true, encoding: .utf8)
        let result = try runner.run(
            ["inbox", "add", "jane", "new@home.example", "--set", "mail.templates=\(folder)"]
                + settings)
        #expect(result.status == 78 && result.errors.contains("lacks {{code}}"), "\(result)")
        #expect(try (runner.json("inbox", "list", "jane") as? [Any])?.count == 1)
    }
}
