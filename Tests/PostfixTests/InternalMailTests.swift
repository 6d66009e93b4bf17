// Mail that Postfix makes itself passes the filter too; Postfix's own Received is reduced.

import Foundation
import PostfixHarness
import Testing

@Suite(needsPostfix) struct InternalMailTests {
    @Test func aBounceIsAnInternalMessageWithTheNullSender() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["<inbox@home.test>": "550 5.1.1 <inbox@home.test> unknown"]
        let rig = try PostfixFixture("delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n", sink: behaviour)
        defer { rig.stop() }
        let result = try rig.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"], message: Array(mail(["From: sender@out.test"]).utf8))
        #expect(result.data?.code == 250)
        let bounce = try rig.sink.wait(for: 1) { $0.mailFrom == "<>" }[0]
        #expect(rig.seen("mail []").count == 1)
        #expect(rig.seen("mail []")[0].contains("daemon=internal"))
        #expect(rig.seen("rcpt [sender@out.test]").count == 1)
        #expect(rig.seen("mail [<sender@out.test>]")[0].contains("daemon=mx.relay.test"))
        // The very address that the relay has to keep out of it.
        #expect(bounce.text.contains("inbox@home.test"))
    }

    @Test func theFilterCanRebuildABounce() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedMessages = ["<inbox@home.test>": "554 5.7.1 <inbox@home.test> does not want it"]
        let rig = try PostfixFixture("", sink: behaviour)
        defer { rig.stop() }
        try Data("rebuilt\r\n".utf8).write(to: URL(fileURLWithPath: rig.folder + "/body"))
        try rig.script(
            """
            smtp delrcpt <user@relay.test>
            smtp addrcpt <inbox@home.test>
            internal change Subject 1  rebuilt
            internal change Content-Type 1  text/plain
            internal body \(rig.folder)/body

            """)
        let result = try rig.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"], message: Array(mail(["From: sender@out.test"]).utf8))
        #expect(result.data?.code == 250)
        let bounce = try rig.sink.wait(for: 1) { $0.mailFrom == "<>" }[0]
        #expect(bounce.fields.contains("Subject: rebuilt") && bounce.fields.contains("Content-Type: text/plain"))
        #expect(bounce.body == Array("rebuilt\r\n".utf8))
    }

    @Test func withTheFilterAwayABounceWaitsInTheQueue() throws {
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["<inbox@home.test>": "450 4.2.0 not now"]
        let rig = try PostfixFixture("delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n", sink: behaviour)
        defer { rig.stop() }
        let result = try rig.postfix.send(
            from: "<sender@out.test>", to: ["<user@relay.test>"], message: Array(mail(["From: sender@out.test"]).utf8))
        let identifier = try #require(result.queueID)
        try rig.postfix.waitForLog(containing: "\(identifier): to=<inbox@home.test>")
        rig.filter.signal(SIGKILL)
        try rig.filter.waitForExit()
        behaviour.refusedRecipients = ["<inbox@home.test>": "550 5.1.1 unknown"]
        rig.sink.set(behaviour)
        let start = rig.postfix.logLines.count
        try rig.postfix.flush()
        try rig.postfix.waitForLog(containing: "status=bounced", from: start)
        try rig.postfix.waitForLog(containing: "milter", from: start)
        #expect(!rig.sink.messages.contains { $0.mailFrom == "<>" })
        // Back again, the bounce is made again and passes the filter.
        let next = try PostfixFixture.startFilter(rig.folder)
        defer { next.end() }
        try rig.postfix.flush()
        try rig.sink.wait(for: 1) { $0.mailFrom == "<>" }
        #expect(next.lines.contains { $0.hasPrefix("mail []") })
    }

    @Test func ownReceivedTellsNothingOfTheClient() throws {
        let rig = try PostfixFixture()
        defer { rig.stop() }
        let result = try rig.postfix.send(
            from: "<a@out.test>", to: ["<reverse=address@relay.test>"], message: Array(mail(["From: a@out.test"]).utf8),
            xclient: [("NAME", "home.user.test"), ("ADDR", "198.51.100.7"), ("HELO", "users-laptop")])
        #expect(result.data?.code == 250)
        let message = try rig.sink.wait(for: 1)[0]
        for secret in ["home.user.test", "198.51.100.7", "users-laptop", "reverse=address"] {
            #expect(!message.text.contains(secret), "\(message.text)")
        }
        #expect(message.fields.contains { $0.hasPrefix("Received: by mx.relay.test (Postfix) with ESMTP id ") })
    }
}
