// Input of attackers: each gets an answer, the filter survives, and nothing is delivered that it
// did not check.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct ExtremeInputTests {
    /// After such input, Postfix with the filter still accepts an ordinary message.
    private func expectAlive(_ fixture: PostfixFixture) throws {
        try fixture.postfix.waitUntilDone()
        let before = fixture.sink.messages.count
        _ = try fixture.relay(mail(["From: a@out.test", "Subject: still here"]))
        #expect(fixture.sink.messages.count == before + 1)
    }

    @Test(arguments: ["folded", "on one line"]) func headerField_overTheLimit_reachesFilterCut(
        _ form: String
    ) throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        for length in [59_000, 65_000, 90_000, 150_000, 1_000_000] {
            let value =
                form == "folded"
                ? stride(from: 0, to: length, by: 70).map { _ in
                    "\r\n " + String(repeating: "x", count: 67)
                }.joined()
                : " " + String(repeating: "x", count: length - 1)
            let result = try fixture.postfix.send(
                from: "<a@out.test>", to: ["<user@relay.test>"],
                message: Array(mail(["From: a@out.test", "X-Long:\(value)", "X-After: y"]).utf8))
            try fixture.postfix.waitUntilDone([result.queueID].compactMap { $0 })
            // With milters, Postfix itself truncates at 60,000 (in a folded field: after the line
            // that exceeds it), and delivers only the part that the filter saw.
            let seen = try #require(fixture.seen("header [X-Long]").last)
            let delivered = try #require(
                fixture.sink.messages.last?.fields.first { $0.hasPrefix("X-Long:") }
            ).utf8.count
            #expect(seen == "header [X-Long]:(\(delivered - "X-Long:".utf8.count) octets)|")
            #expect(
                length < 60_000 ? delivered >= length : (60_000...62_100).contains(delivered),
                "\(length): \(delivered)")
            #expect(fixture.sink.messages.last?.fields.contains("X-After: y") == true)
        }
        try expectAlive(fixture)
    }

    @Test func nul_inMessage_isRefusedBeforeTheFilter() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        for message in [
            "From: a@out.test\r\nX-A: before\0after\r\n\r\nbody\r\n",
            "From: a@out.test\r\n\r\nbody \0 here\r\n",
        ] {
            let result = try fixture.postfix.send(
                from: "<a@out.test>", to: ["<user@relay.test>"], message: Array(message.utf8))
            #expect(result.data?.code == 550)
        }
        #expect(fixture.seen("header").isEmpty && fixture.sink.messages.isEmpty)
        try expectAlive(fixture)
    }

    /// The purpose of the setting: without it Postfix 3.7 truncates the field, for the filter and
    /// for the next server.
    @Test func nul_withoutTheSetting_cutsTheField() throws {
        let fixture = try PostfixFixture(settings: ["message_reject_characters": ""])
        defer { fixture.stop() }
        let message = try fixture.relay("From: a@out.test\r\nX-A: before\0after\r\n\r\nbody\r\n")
        #expect(message.fields.contains("X-A: before"))
        #expect(fixture.seen("header [X-A]") == ["header [X-A]: before|"])
    }

    @Test func bareCROrLF_aroundADot_smugglesNothing() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        for end in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n"] {
            let client = try fixture.postfix.connect()
            try client.expect(250, "EHLO client.test")
            try client.expect(250, "MAIL FROM:<a@out.test>")
            try client.expect(250, "RCPT TO:<user@relay.test>")
            try client.expect(354, "DATA")
            let smuggled =
                "From: a@out.test\r\n\r\nfirst\(end)MAIL FROM:<evil@out.test>\r\nRCPT TO:<user@relay.test>\r\nDATA\r\nevil\r\n.\r\n"
            try client.send(Array(smuggled.utf8))
            #expect([250, 550].contains(try client.reply().code), "\(end.debugDescription)")
            client.close()
        }
        try fixture.postfix.waitUntilDone()
        #expect(!fixture.sink.messages.contains { $0.mailFrom == "<evil@out.test>" })
        try expectAlive(fixture)
    }

    @Test func pipelining_afterHELO_isRefused() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        defer { client.close() }
        try client.expect(250, "HELO client.test")
        try client.send(
            Array("MAIL FROM:<a@out.test>\r\nRCPT TO:<user@relay.test>\r\nDATA\r\n".utf8))
        #expect(try client.reply().code == 554)
    }

    @Test func recipients_tenThousand_areEachAnswered() throws {
        let fixture = try PostfixFixture(
            "on rcpt <first@relay.test> continue\non rcpt * 452 4.5.3 another account\n")
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<a@out.test>")
        try client.expect(250, "RCPT TO:<first@relay.test>")
        let replies = try client.pipeline((0..<10_000).map { "RCPT TO:<u\($0)@relay.test>" })
        #expect(replies.count == 10_000)
        #expect(replies.allSatisfy { $0.code == 452 })
        #expect(try client.data(Array(mail(["From: a@out.test"]).utf8)).code == 250)
        client.quit()
        #expect(try fixture.sink.wait(for: 1)[0].recipients == ["<first@relay.test>"])
    }

    @Test func headerField_ofTenThousand_keepsOrder() throws {
        let fixture = try PostfixFixture("change X-N 9999  changed\ninsert 1 X-I  i\n")
        defer { fixture.stop() }
        let fields = (1...10_000).map { "X-N: \($0)" }
        let message = try fixture.relay(mail(["From: a@out.test"] + fields))
        #expect(fixture.seen("header [X-N]") == fields.map { "header [X-N]:\($0.dropFirst(4))|" })
        #expect(message.fields.filter { $0.hasPrefix("X-N: ") }[9998] == "X-N: changed")
    }

    @Test func headerField_nonASCIIOctets_reachesTheFilter() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let message: [UInt8] =
            Array("From: a@out.test\r\nSubject: ".utf8) + [0xFF, 0xFE, 0xC3, 0xA4]
            + Array("\r\n\r\nx\r\n".utf8)
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: message)
        #expect(result.data?.code == 250)
        #expect(fixture.seen("header [Subject]") == ["header [Subject]: \\xff\\xfe\\xc3\\xa4|"])
    }

    @Test func message_withoutHeaderOrBody_isAccepted() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        for message in [
            "", "\r\n", "\r\nonly body\r\n", "no colon here\r\n", ": empty name\r\n\r\n",
            "X\r\n\r\n",
        ] {
            let result = try fixture.postfix.send(
                from: "<a@out.test>", to: ["<user@relay.test>"], message: Array(message.utf8))
            #expect(result.data?.code == 250, "\(message.debugDescription)")
        }
        try expectAlive(fixture)
    }
}
