// The forged From fields of MailAuthTests, through the whole relay: refused even with a proved
// envelope.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct ExplainForgedFromTests {
    /// Name and lines of each file.
    private static let files: [(name: String, lines: [Substring])] = {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = tests.appendingPathComponent("MailAuthTests/Vectors/forged-from")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().compactMap { name in
            guard
                let text = try? String(
                    contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
            else { return nil }
            return (name, text.split(separator: "\n").filter { !$0.hasPrefix("# ") })
        }
    }()

    /// Undoes `\r \n \t \0 \\ \xHH`.
    private static func unescaped(_ line: Substring) -> [UInt8] {
        var output: [UInt8] = []
        var octets = Array(line.utf8)[...]
        let plain: [UInt8: UInt8] = [
            UInt8(ascii: "r"): 13, UInt8(ascii: "n"): 10, UInt8(ascii: "t"): 9,
            UInt8(ascii: "0"): 0,
        ]
        while let octet = octets.popFirst() {
            guard octet == UInt8(ascii: "\\"), let kind = octets.popFirst() else {
                output.append(octet)
                continue
            }
            if kind == UInt8(ascii: "x") {
                output.append(
                    UInt8(String(decoding: octets.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                octets = octets.dropFirst(2)
            } else {
                output.append(plain[kind] ?? kind)
            }
        }
        return output
    }

    private func question(_ id: String, _ address: String, _ header: [UInt8]) throws -> String {
        let rest = Array(
            "To: \(address)\r\nSubject: x\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\n\r\nHello.\r\n"
                .utf8)
        let question: [String: Any] = [
            "id": id, "mail_from": "billing@good.example", "rcpts": [address], "ip": "192.0.2.1",
            "helo": "mx.good.example",
            "dns": [
                "good.example": ["TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]],
                "evil.example": ["TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]],
            ],
            "message_base64": Data(header + rest).base64EncodedString(),
        ]
        return String(decoding: try JSONSerialization.data(withJSONObject: question), as: UTF8.self)
    }

    @Test func explain_forgedFrom_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        for domain in ["good.example", "evil.example"] {
            try runner.succeed("source", "add", "juice", domain)
        }
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        let address = try runner.succeed("address", "issue", "juice", "jane")
        try #require(Self.files.count >= 57)
        // One correct message, to show that the others are refused only for their From field.
        var lines = [
            try question("control", address, Array("From: Billing <billing@good.example>\r\n".utf8))
        ]
        for file in Self.files {
            let fields: [UInt8] = file.lines.flatMap { line -> [UInt8] in
                Self.unescaped(line.replacing("{to}", with: "x@relay.example")[...]) + [13, 10]
            }
            lines.append(try question(file.name, address, fields))
        }
        let result = try runner.run(["explain", "--batch"], input: lines.joined(separator: "\n"))
        let answers = try result.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        try #require(answers.count == lines.count)
        #expect(answers[0]["action"] as? String == "relay", "\(answers[0])")
        for answer in answers.dropFirst() {
            let name = answer["id"] as? String ?? ""
            #expect(answer["action"] as? String == "refuse", "\(name)")
            let reply = try #require((answer["replies"] as? [[String: Any]])?.first)
            #expect(reply["code"] as? Int == 550, "\(name)")
            let reasons = try #require(answer["reasons"] as? [String])
            // A header section with NUL or bare CR is refused before it is parsed.
            let isMalformed = reasons.contains {
                $0.hasPrefix("malformed-header") || $0.hasPrefix("header-limit")
            }
            let enhanced = reply["enhanced"] as? String ?? ""
            #expect(
                enhanced == "5.7.26" || (isMalformed && enhanced == "5.6.0"),
                "\(name): \(enhanced) \(reasons)")
            #expect(reasons.first?.isEmpty == false, "\(name)")
            #expect(answer["message_base64"] is NSNull, "\(name)")
        }
        print("forged From: \(answers.count - 1) of \(Self.files.count) files refused")
    }
}
