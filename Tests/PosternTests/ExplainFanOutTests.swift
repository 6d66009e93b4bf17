// A message to several users in `postern explain`: the milter's action for each.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct ExplainFanOutTests {
    /// Team juice with users u1 and u2; returns their addresses.
    private static func world() throws -> (runner: CommandRunner, addresses: [String]) {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "app.example")
        let addresses = try ["u1", "u2"].map { user in
            try runner.succeed("user", "add", user, "--inbox", "\(user)@home.example", "--verified")
            return try runner.succeed("address", "issue", "juice", user)
        }
        return (runner, addresses)
    }

    private static func question(_ addresses: [String], ip: String = "192.0.2.1") throws -> String {
        let message =
            "From: Billing <billing@app.example>\r\nTo: undisclosed-recipients:;\r\nSubject: x\r\n\r\nHello.\r\n"
        let question: [String: Any] = [
            "mail_from": "a@app.example", "rcpts": addresses, "ip": ip, "helo": "mx.app.example",
            "dns": ["app.example": ["TXT": ["v=spf1 ip4:192.0.2.1 -all"]]],
            "message_base64": Data(message.utf8).base64EncodedString(),
        ]
        return String(decoding: try JSONSerialization.data(withJSONObject: question), as: UTF8.self)
    }

    private static func answer(
        _ runner: CommandRunner, _ question: String, environment: [String: String] = [:]
    ) throws -> [String: Any] {
        let explained = try runner.run(
            ["explain", "--batch"], input: question + "\n", environment: environment)
        try #require(explained.status == 0, "\(explained.errors)")
        return try #require(
            try JSONSerialization.jsonObject(with: Data(explained.output.utf8)) as? [String: Any])
    }

    private static func codes(_ answer: [String: Any]) -> [Int] {
        (answer["replies"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? Int }
    }

    @Test func explain_severalAccounts_showsACopyForEach() throws {
        let (runner, addresses) = try Self.world()
        let answer = try Self.answer(runner, Self.question(addresses))
        #expect(answer["action"] as? String == "relay" && Self.codes(answer) == [250, 250])
        #expect(answer["rcpts"] as? [String] == ["u1@home.example"])
        let copies = try #require(answer["copies"] as? [[String: Any]])
        #expect(copies.map { $0["rcpts"] as? [String] } == [["u2@home.example"]])
        #expect(copies.map(Self.codes) == [[250]])
        #expect(copies.first?["envelope_from"] as? String != answer["envelope_from"] as? String)
        // A single account has no copies.
        #expect(
            try Self.answer(runner, Self.question([addresses[0], addresses[0]]))["copies"] == nil)
        // The output for people.
        try Data(#"{"app.example": {"TXT": ["v=spf1 ip4:192.0.2.1 -all"]}}"#.utf8).write(
            to: runner.folder.appendingPathComponent("zone.json"))
        let text = try runner.run(
            ["explain", "--mail-from", "a@app.example", "--ip", "192.0.2.1", "--dns", "zone.json"]
                + addresses.flatMap { ["--rcpt", $0] },
            input: "From: Billing <billing@app.example>\n\nx\n")
        #expect(
            text.output.contains("recipient <u1@home.example>")
                && text.output.contains("\nmessage   2 of 2, a copy for another account\n"))
        #expect(text.output.contains("recipient <u2@home.example>"))

        // Without copies, the second recipient must come in a separate transaction.
        let off = try Self.answer(
            runner, Self.question(addresses), environment: ["POSTERN_FAN_OUT": "off"])
        #expect(Self.codes(off) == [250, 452] && off["copies"] == nil)

        // A fault of the message is reported to all, and nothing is copied.
        let forged = try Self.answer(runner, Self.question(addresses, ip: "198.51.100.1"))
        #expect(
            forged["action"] as? String == "refuse" && Self.codes(forged) == [550, 550]
                && forged["copies"] == nil)

        // A recipient that refuses makes the sender repeat the message; the copy contains the
        // reason.
        try runner.succeed("address", "off", addresses[1])
        let refused = try Self.answer(runner, Self.question(addresses))
        #expect(refused["action"] as? String == "defer" && Self.codes(refused) == [451, 451])
        #expect(refused["message_base64"] is NSNull)
        #expect((refused["copies"] as? [[String: Any]])?.map(Self.codes) == [[550]])
    }
}
