// The output of `postern explain` for a forward with a rewritten body.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct ExplainBodyTests {
    @Test func explain_bodyWithLink_showsRewrittenBody() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "app.example")
        try runner.succeed("user", "add", "u1", "--inbox", "u1@home.example", "--verified")
        let address = try runner.succeed("address", "issue", "juice", "u1")
        try Data(#"{"app.example": {"TXT": ["v=spf1 ip4:192.0.2.1 -all"]}}"#.utf8).write(
            to: runner.folder.appendingPathComponent("zone.json"))
        func explain(_ body: String, _ more: String...) throws -> CommandResult {
            let message =
                "From: Billing <billing@app.example>\r\nContent-Type: text/html\r\n\r\n\(body)\r\n"
            return try runner.run(
                [
                    "explain", "--mail-from", "a@app.example", "--ip", "192.0.2.1", "--dns",
                    "zone.json", "--rcpt", address,
                ] + more,
                input: message)
        }
        let link =
            #"<p>Before</p><a href="mailto:eva@app.example?subject=x">write</a><p>Behind</p>"#
        let rewritten = try explain(link, "--json")
        #expect(rewritten.status == 0, "\(rewritten.errors)")
        let answer = try #require(
            try JSONSerialization.jsonObject(with: Data(rewritten.output.utf8)) as? [String: Any])
        let octets = try #require(
            (answer["message_base64"] as? String).flatMap { Data(base64Encoded: $0) })
        let message = String(decoding: octets, as: UTF8.self)
        let body = try #require(message.components(separatedBy: "\r\n\r\n").dropFirst().first)
        let expected =
            /<p>Before<\/p><a href="mailto:eva%3Dapp\.example\.[a-z2-7]+@relay\.example\?subject=x">write<\/a><p>Behind<\/p>\r\n/
        #expect(body.wholeMatch(of: expected) != nil, "\(body)")
        #expect(try explain(link).output.contains("body-rewritten"))
        // Nothing to rewrite, and no output about it.
        #expect(try !explain("<p>Before</p>").output.contains("body-rewritten"))
    }
}
