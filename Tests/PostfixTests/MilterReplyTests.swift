// The reply that an SMTP client gets for each answer of a filter, at each stage.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct MilterReplyTests {
    private static let message = Array(mail(["From: a@out.test", "Subject: x"]).utf8)

    /// One dialogue for a script: the replies by stage.
    private func dialogue(
        _ script: String
    ) throws -> (mail: String, rcpt: String, data: String, sunk: Int) {
        let fixture = try PostfixFixture(script)
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message)
        try fixture.postfix.waitUntilDone([result.queueID].compactMap { $0 })
        return (
            result.mail.description, result.recipients.map(\.description).joined(separator: "|"),
            result.data?.description ?? "-", fixture.sink.messages.count
        )
    }

    @Test(arguments: ["mail", "rcpt *", "data", "header", "eoh", "body", "eom"])
    func refusal_atEachStage_reachesTheClient(_ stage: String) throws {
        for reply in ["550 5.7.77 no thanks", "451 4.7.77 later"] {
            let replies = try dialogue("on \(stage) \(reply)\n")
            let heard =
                stage == "mail" ? replies.mail : stage == "rcpt *" ? replies.rcpt : replies.data
            #expect(heard == reply)
            #expect(replies.sunk == 0)
        }
    }

    @Test(arguments: ["connect", "helo"]) func refusal_atConnectOrHELO_answersFirstCommands(
        _ stage: String
    ) throws {
        let fixture = try PostfixFixture("on \(stage) 550 5.7.77 no thanks\n")
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        defer { client.close() }
        // Postfix answers a refusal at connect in its greeting, and every command except QUIT with
        // the filter's reply.
        #expect(client.greeting.code == (stage == "connect" ? 554 : 220))
        _ = try client.command("EHLO client.test")
        #expect(try client.command("MAIL FROM:<a@out.test>").description == "550 5.7.77 no thanks")
    }

    @Test func reply_ofSeveralLines_arrivesWhole() throws {
        let replies = try dialogue("on rcpt * 550 5.7.77 first\\nsecond\\nthird\n")
        #expect(replies.rcpt == "550-5.7.77 first\n550-5.7.77 second\n550 5.7.77 third")
    }

    @Test func reply_ofALongLine_arrivesWhole() throws {
        let text = String(repeating: "0123456789", count: 60)
        let replies = try dialogue("on rcpt * 550 5.7.77 \(text)\n")
        #expect(replies.rcpt == "550 5.7.77 \(text)")
    }

    @Test func discard_atEachStage_dropsTheMessage() throws {
        for stage in ["mail", "data", "eoh", "eom"] {
            let replies = try dialogue("on \(stage) discard\n")
            #expect(replies.data.hasPrefix("250 "))
            #expect(replies.sunk == 0)
        }
    }

    @Test func accept_atMAIL_endsTheFilter() throws {
        let fixture = try PostfixFixture("on mail accept\n")
        defer { fixture.stop() }
        _ = try fixture.relay(String(decoding: Self.message, as: UTF8.self))
        #expect(fixture.seen("mail").count == 1)
        #expect(fixture.seen("rcpt").isEmpty && fixture.seen("eom").isEmpty)
    }

    @Test func refusal_ofOneRecipient_keepsTheOthers() throws {
        let fixture = try PostfixFixture(
            "on rcpt <bad@relay.test> 550 5.1.1 unknown\non rcpt <later@relay.test> 452 4.5.3 another account\n"
        )
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>",
            to: ["<bad@relay.test>", "<good@relay.test>", "<later@relay.test>"],
            message: Self.message)
        #expect(
            result.recipients.map(\.description) == [
                "550 5.1.1 unknown", "250 2.1.5 Ok", "452 4.5.3 another account",
            ])
        let message = try fixture.sink.wait(for: 1)[0]
        #expect(message.recipients == ["<good@relay.test>"])
    }

    @Test func error_thrownByFilter_isTemporaryFailure() throws {
        let fixture = try PostfixFixture("add X-A  a\nfrom <>\nthrow\n")
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message)
        #expect(
            result.data?.description == "451 4.3.0 Temporary internal error; please try again later"
        )
        #expect(fixture.filter.output.contains("deferred: ThrownByScript"))
        #expect(fixture.sink.messages.isEmpty)
    }

    @Test func skip_duringBody_endsTheBodyOnly() throws {
        let fixture = try PostfixFixture("on body skip\n")
        defer { fixture.stop() }
        let body = String(repeating: "0123456789abcdef0123456789abcdef\r\n", count: 10_000)
        let message = try fixture.relay(mail(["From: a@out.test"], body: body))
        #expect(String(decoding: message.body, as: UTF8.self) == body)
        #expect(fixture.seen("eom").first?.contains("body=65535 ") == true)
    }

    @Test func events_declinedInNegotiation_areNotSent() throws {
        let fixture = try PostfixFixture(
            "needs unanswered connect helo mail data header eoh body without helo unknown header\non header 550 5.0.0 x\non data 550 5.0.0 x\n"
        )
        defer { fixture.stop() }
        _ = try fixture.relay(String(decoding: Self.message, as: UTF8.self))
        #expect(fixture.seen("header").isEmpty && fixture.seen("helo").isEmpty)
        #expect(
            fixture.seen("data").count == 1
                && fixture.seen("eom").first?.contains("body=6 ") == true)
    }

    @Test func session_severalMessages_isShared() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        for _ in 0..<3 {
            let result = try client.transaction(
                from: "<>", to: ["<user@relay.test>"], message: Self.message)
            #expect(result.data?.code == 250)
        }
        try client.expect(250, "MAIL FROM:<a@out.test>")
        try client.expect(250, "RSET")
        client.quit()
        try fixture.filter.waitForLine(containing: "closed")
        #expect(fixture.seen("connect").count == 1)
        #expect(fixture.seen("eom").count == 3)
        #expect(fixture.seen("abort").count == 1)
        #expect(fixture.seen("mail [<>]").count == 3)
    }
}
