// Input of attackers to the whole relay: each gets an answer, and ordinary mail still passes
// afterwards.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayExtremeInputTests {
    private func expectAlive(_ fixture: RelayFixture, _ address: String) throws {
        let before = fixture.sink.messages.count
        let result = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(result.data?.code == 250)
        _ = try fixture.sink.wait(for: before + 1)
    }

    @Test func header_beyondTheLimits_isRefused() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let ordinary = RelayFixtures.message(to: address)
        let hostile = [
            "X-Long: \(String(repeating: "a", count: 1_000_000))\n",
            String(repeating: "X-Many: a\n", count: 10_000),
            "X-Folded:\(String(repeating: "\n " + String(repeating: "b", count: 70), count: 14_000))\n",
        ]
        for header in hostile {
            let result = try fixture.send(
                from: "bounce@juice.example", to: [address], header + ordinary)
            #expect(result.data.map { "\($0)" }?.hasPrefix("550 5.6.0") == true, "\(result)")
        }
        try expectAlive(fixture, address)
        #expect(fixture.sink.messages.count == 1)
    }

    @Test func recipients_tenThousandUnknown_areAnswered() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.addUser("bob", inboxes: ["bob@home.example"])
        let other = try fixture.address("juice", "bob")
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<bounce@juice.example>")
        try client.expect(250, "RCPT TO:<\(address)>")
        var counts: [String: Int] = [:]
        var left = 10_000
        var connection = client
        while left > 0 {
            let malformed = left % 2 == 0
            let lines = (0..<min(100, left)).map {
                "RCPT TO:<\(malformed ? "nobody\($0)" : "nobody\($0).x")@relay.example>"
            }
            do {
                for reply in try connection.pipeline(lines) {
                    counts["\(reply.code) \(reply.enhancedStatus ?? "")", default: 0] += 1
                }
            } catch {
                // Postfix may close the connection after so many errors. The next connection still
                // gets an answer.
                connection = try fixture.postfix.connect()
                try connection.expect(250, "EHLO client.test")
                try connection.expect(250, "MAIL FROM:<bounce@juice.example>")
            }
            left -= lines.count
        }
        #expect(
            counts.keys.allSatisfy {
                $0.hasPrefix("550 5.1.1") || $0.hasPrefix("421") || $0.hasPrefix("452")
            }, "\(counts)")
        #expect(counts["550 5.1.1", default: 0] > 900, "\(counts)")

        let second = try fixture.postfix.connect()
        try second.expect(250, "EHLO client.test")
        try second.expect(250, "MAIL FROM:<bounce@juice.example>")
        try second.expect(250, "RCPT TO:<\(address)>")
        let replies = try second.pipeline((0..<500).map { _ in "RCPT TO:<\(other)>" })
        #expect(replies.allSatisfy { $0.code == 452 }, "\(Set(replies.map(\.code)))")
        try expectAlive(fixture, address)
    }

    @Test func nulAndBareLineEnd_inMessage_smuggleNothing() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let head = "From: news@juice.example\r\nTo: \(address)\r\n"
        for message in [head + "Subject: a\0b\r\n\r\nx\r\n", head + "\r\nbody \0 nul\r\n"] {
            let result = try fixture.postfix.send(
                from: "<bounce@juice.example>", to: ["<\(address)>"], message: Array(message.utf8))
            #expect(result.data.map { $0.code / 100 == 5 } == true, "\(result)")
        }
        // Postfix replaces a bare CR by a space before the filter sees it, so no second reading is
        // left.
        let bareCR = head + "Subject: a\rFrom: evil@juice.example\r\n\r\nx\r\n"
        #expect(
            try fixture.postfix.send(
                from: "<bounce@juice.example>", to: ["<\(address)>"], message: Array(bareCR.utf8)
            ).data?.code
                == 250)
        #expect(
            try fixture.arrival(for: "anna@home.example").value("Subject")
                == "a From: evil@juice.example")
        // A bare LF in the body is a line end to Postfix 3.7, or refused if
        // smtpd_forbid_bare_newline requires that.
        let smuggled = head + "\r\nbody\n.\nMAIL FROM:<evil@juice.example>\r\n"
        _ = try? fixture.postfix.send(
            from: "<bounce@juice.example>", to: ["<\(address)>"], message: Array(smuggled.utf8))
        try expectAlive(fixture, address)
        #expect(!fixture.sink.messages.contains { $0.mailFrom.contains("evil") })
    }

    @Test func message_of25Megabytes_keepsMemoryBounded() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let line = String(repeating: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", count: 2) + "\n"
        let attachment = String(repeating: line, count: 25_000_000 / (line.utf8.count + 1))
        func message(_ from: String, _ to: String) -> String {
            """
            From: \(from)
            To: \(to)
            MIME-Version: 1.0
            Content-Type: multipart/mixed; boundary=b

            --b
            Content-Type: text/plain

            \(from) writes to \(to)
            --b
            Content-Type: application/octet-stream
            Content-Transfer-Encoding: base64

            \(attachment)--b--

            """
        }
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], message("news@juice.example", address)
            ).data?.code
                == 250)
        let forwarded = try fixture.arrival(for: "anna@home.example")
        #expect(forwarded.data.count > 25_000_000)
        let reverse = forwarded.address("From")
        let result = try fixture.send(
            from: "anna@home.example", to: [reverse], message("anna@home.example", reverse))
        #expect(result.data?.code == 250, "\(result)")
        let replied = try fixture.arrival(for: "news@juice.example")
        #expect(replied.data.count > 25_000_000)
        #expect(replied.text.contains("\(address) writes to news@juice.example"))
        let peak = try #require(try fixture.process.memory("VmHWM"))
        print("25 MB both ways: postern's memory peaked at \(peak / 1024) MiB")
        #expect(peak < 150 * 1024, "\(peak / 1024) MiB")
    }
}
