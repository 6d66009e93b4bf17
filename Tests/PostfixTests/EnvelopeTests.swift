// Envelope modifications, and the events of connection and envelope that a filter gets.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct EnvelopeTests {
    private static let message = mail(["From: a@out.test", "To: user@relay.test"])

    @Test func envelope_senderAndRecipientReplaced_isDelivered() throws {
        let fixture = try PostfixFixture(
            "from <bounce@relay.test>\ndelrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n")
        defer { fixture.stop() }
        let message = try fixture.relay(Self.message)
        #expect(message.mailFrom == "<bounce@relay.test>")
        #expect(message.recipients == ["<inbox@home.test>"])
    }

    @Test func nullSender_keptOrSet_isDelivered() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        #expect(try fixture.relay(Self.message, from: "<>").mailFrom == "<>")
        #expect(fixture.seen("mail [<>]").count == 1)
        try fixture.script("from <>\n")
        #expect(try fixture.relay(Self.message).mailFrom == "<>")
        try fixture.script("from <back@relay.test>\n")
        #expect(try fixture.relay(Self.message, from: "<>").mailFrom == "<back@relay.test>")
    }

    @Test func recipient_deletedInAnotherCase_stays() throws {
        let fixture = try PostfixFixture("delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n")
        defer { fixture.stop() }
        let both = try fixture.relay(Self.message, to: ["<User@relay.test>"])
        #expect(Set(both.recipients) == ["<User@relay.test>", "<inbox@home.test>"])
        try fixture.script("delrcpt <User@relay.test>\naddrcpt <inbox@home.test>\n")
        #expect(
            try fixture.relay(Self.message, to: ["<User@relay.test>"]).recipients == [
                "<inbox@home.test>"
            ])
    }

    @Test func recipient_unusualText_isDeleted() throws {
        for path in ["<\"odd name\"@relay.test>", "<a+b=c.d@relay.test>", "<UPPER@RELAY.TEST>"] {
            let fixture = try PostfixFixture("delrcpt \(path)\naddrcpt <inbox@home.test>\n")
            defer { fixture.stop() }
            let message = try fixture.relay(Self.message, to: [path])
            #expect(message.recipients == ["<inbox@home.test>"], "\(path)")
            #expect(fixture.seen("rcpt [\(path)]").count == 1, "\(path)")
        }
    }

    @Test func recipient_addedTwice_arrivesOnce() throws {
        let fixture = try PostfixFixture(
            "delrcpt <a@relay.test>\ndelrcpt <b@relay.test>\naddrcpt <inbox@home.test>\naddrcpt <inbox@home.test>\n"
        )
        defer { fixture.stop() }
        let message = try fixture.relay(Self.message, to: ["<a@relay.test>", "<b@relay.test>"])
        #expect(message.recipients == ["<inbox@home.test>"])
        #expect(fixture.sink.messages.count == 1)
    }

    @Test func recipient_addedWithDSNArguments_keepsThem() throws {
        var behaviour = SinkBehaviour()
        behaviour.keywords = ["DSN"]
        let fixture = try PostfixFixture(
            "delrcpt <user@relay.test>\naddrcpt <inbox@home.test> NOTIFY=NEVER ORCPT=rfc822;alias@relay.test\n",
            sink: behaviour)
        defer { fixture.stop() }
        let message = try fixture.relay(Self.message)
        #expect(
            message.recipientArguments.map(Set.init) == [
                ["NOTIFY=NEVER", "ORCPT=rfc822;alias@relay.test"]
            ])
    }

    /// Postfix names the new recipient only to its own next server. Without DSN on our side, no
    /// client can name another.
    @Test func recipient_added_isTheOnlyOneInORCPT() throws {
        var behaviour = SinkBehaviour()
        behaviour.keywords = ["DSN"]
        let fixture = try PostfixFixture(
            "delrcpt <user@relay.test>\naddrcpt <inbox@home.test>\n", sink: behaviour)
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        #expect(
            !(try client.expect(250, "EHLO client.test")).lines.contains {
                $0.uppercased().hasPrefix("DSN")
            })
        client.quit()
        let message = try fixture.relay(Self.message)
        #expect(message.recipientArguments == [["ORCPT=rfc822;inbox@home.test"]])
    }

    @Test func mailArguments_reachTheFilter() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let result = try SMTPClient.send(
            port: fixture.postfix.port, from: "<a@out.test>", to: ["<user@relay.test>"],
            mailArguments: "SIZE=100 BODY=8BITMIME",
            message: Array(Self.message.utf8))
        #expect(result.data?.code == 250)
        #expect(fixture.seen("mail [<a@out.test>] SIZE=100,BODY=8BITMIME ").count == 1)
    }

    @Test func xclient_otherClient_startsNewSession() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Array(Self.message.utf8),
            xclient: [
                ("NAME", "mail.out.test"), ("ADDR", "198.51.100.7"), ("HELO", "helo.out.test"),
            ])
        #expect(result.data?.code == 250)
        #expect(fixture.seen("connect mail.out.test ipv4(\"198.51.100.7\"").count == 1)
        try fixture.filter.waitForLine(containing: "eom ")
    }

    @Test func client_ipv6_isToldToTheFilter() throws {
        let fixture = try PostfixFixture(settings: ["inet_protocols": "all"])
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Array(Self.message.utf8),
            xclient: [("ADDR", "IPV6:2001:db8::7"), ("NAME", "[UNAVAILABLE]")])
        #expect(result.data?.code == 250)
        #expect(fixture.filter.output.contains("ipv6(\"2001:db8::7\""))
    }
}
