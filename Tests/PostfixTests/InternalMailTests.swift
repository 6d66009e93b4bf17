// Mail made by Postfix itself also passes the filter; Postfix's own Received is reduced.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct InternalMailTests {
    @Test func bounce_ofPostfix_reachesFilterWithNullSender() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["<inbox@home.test>": "550 5.1.1 <inbox@home.test> unknown"]
        let fixture = try PostfixFixture(
            "delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n", sink: behaviour)
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"],
            message: Array(mail(["From: sender@out.test"]).utf8))
        #expect(result.data?.code == 250)
        let bounce = try fixture.sink.wait(for: 1) { $0.mailFrom == "<>" }[0]
        #expect(fixture.seen("mail []").count == 1)
        #expect(fixture.seen("mail []")[0].contains("daemon=internal"))
        #expect(fixture.seen("rcpt [sender@out.test]").count == 1)
        #expect(fixture.seen("mail [<sender@out.test>]")[0].contains("daemon=mx.relay.test"))
        // The address that the relay must keep out of it.
        #expect(bounce.text.contains("inbox@home.test"))
    }

    @Test func bounce_ofPostfix_canBeRebuilt() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedMessages = [
            "<inbox@home.test>": "554 5.7.1 <inbox@home.test> does not want it"
        ]
        let fixture = try PostfixFixture("", sink: behaviour)
        defer { fixture.stop() }
        try Data("rebuilt\r\n".utf8).write(to: URL(fileURLWithPath: fixture.folder + "/body"))
        try fixture.script(
            """
            smtp delrcpt <user@relay.test>
            smtp addrcpt <inbox@home.test>
            internal change Subject 1  rebuilt
            internal change Content-Type 1  text/plain
            internal body \(fixture.folder)/body

            """)
        let result = try fixture.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"],
            message: Array(mail(["From: sender@out.test"]).utf8))
        #expect(result.data?.code == 250)
        let bounce = try fixture.sink.wait(for: 1) { $0.mailFrom == "<>" }[0]
        #expect(
            bounce.fields.contains("Subject: rebuilt")
                && bounce.fields.contains("Content-Type: text/plain"))
        #expect(bounce.body == Array("rebuilt\r\n".utf8))
    }

    @Test func bounce_filterAway_waitsInTheQueue() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["<inbox@home.test>": "450 4.2.0 not now"]
        let fixture = try PostfixFixture(
            "delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n", sink: behaviour)
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"],
            message: Array(mail(["From: sender@out.test"]).utf8))
        let identifier = try #require(result.queueID)
        try fixture.postfix.waitForLog(containing: "\(identifier): to=<inbox@home.test>")
        fixture.filter.signal(SIGKILL)
        try fixture.filter.waitForExit()
        behaviour.refusedRecipients = ["<inbox@home.test>": "550 5.1.1 unknown"]
        fixture.sink.set(behaviour)
        let start = fixture.postfix.logLines.count
        try fixture.postfix.flush()
        try fixture.postfix.waitForLog(containing: "status=bounced", from: start)
        try fixture.postfix.waitForLog(containing: "milter", from: start)
        #expect(!fixture.sink.messages.contains { $0.mailFrom == "<>" })
        // After the restart, the bounce is made again and passes the filter.
        let next = try PostfixFixture.startFilter(fixture.folder)
        defer { next.end() }
        try fixture.postfix.flush()
        try fixture.sink.wait(for: 1) { $0.mailFrom == "<>" }
        #expect(next.lines.contains { $0.hasPrefix("mail []") })
    }

    @Test func received_ofPostfix_hidesTheClient() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<reverse=address@relay.test>"],
            message: Array(mail(["From: a@out.test"]).utf8),
            xclient: [
                ("NAME", "home.user.test"), ("ADDR", "198.51.100.7"), ("HELO", "users-laptop"),
            ])
        #expect(result.data?.code == 250)
        let message = try fixture.sink.wait(for: 1)[0]
        for secret in ["home.user.test", "198.51.100.7", "users-laptop", "reverse=address"] {
            #expect(!message.text.contains(secret), "\(message.text)")
        }
        #expect(
            message.fields.contains {
                $0.hasPrefix("Received: by mx.relay.test (Postfix) with ESMTP id ")
            })
    }
}
