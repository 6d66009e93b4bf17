// Mail through the whole relay: the messages that arrive at either end, and those that must not.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayMailTests {
    @Test func reply_delivered_hidesClientAndInbox() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let reverse = try fixture.arrival(for: "anna@home.example").address("From")
        let client = try fixture.postfix.connect()
        try client.xclient([("ADDR", "127.0.0.77"), ("NAME", "annas-laptop.home.example")])
        try client.expect(250, "EHLO annas-laptop.home.example")
        let result = try client.transaction(
            from: "<anna@home.example>", to: ["<\(reverse)>"],
            message: Array(
                RelayFixtures.message(
                    from: "Anna <anna@home.example>", to: reverse,
                    id: "x@annas-laptop.home.example",
                    body: "Hi, anna@home.example\n"
                )
                .replacingOccurrences(of: "\n", with: "\r\n").utf8))
        #expect(result.data?.code == 250, "\(result) \(fixture.postfix.log)")
        let arrived = try fixture.arrival(for: "news@juice.example")
        for secret in [
            "annas-laptop", "127.0.0.77", "home.example", reverse,
            reverse.split(separator: "@")[0].description, "127.0.0.1",
            "client.test",
        ] {
            #expect(!arrived.text.contains(secret), "\(secret) is in\n\(arrived.text)")
        }
        #expect(arrived.fields.contains { $0.hasPrefix("Received: by mx.relay.example (Postfix)") })
        #expect(arrived.value("From") == address)
        #expect(try LeakOracle.findings(of: "anna@home.example", in: arrived) == "")
    }

    @Test func bounce_ofPostfix_arrivesWithoutTheInbox() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = [
            "<anna@home.example>":
                "550 5.1.1 <anna@home.example>: user anna unknown at home.example"
        ]
        fixture.sink.set(behaviour)
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let report = try fixture.arrival(for: "bounce@juice.example")
        #expect(report.mailFrom == "<>")
        #expect(report.text.contains("Final-Recipient: rfc822; \(address)"))
        #expect(report.text.contains("Status: 5.1.1"))
        #expect(try LeakOracle.findings(of: "anna@home.example", in: report) == "")
        #expect(!report.text.contains("home.example"))
    }

    /// Postfix ignores a refusal at RCPT from sendmail(1): the message must not stay in the
    /// maildrop and be tried each minute.
    @Test func localMail_toNoOneAtTheRelayDomain_returnsToItsSender() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        func submit(_ recipients: [String], _ subject: String) throws {
            try fixture.postfix.submit(
                from: "cron@juice.example", to: recipients,
                "From: cron@mx.relay.example\nTo: \(recipients[0])\nSubject: \(subject)\n\nout of disk\n"
            )
        }
        try submit(["nobody2222@relay.example"], "one")
        let first = try fixture.arrival(for: "cron@juice.example")
        #expect(
            first.mailFrom == "<>" && first.text.contains("No such address here")
                && first.text.contains("5.1.1"))
        // Such mail is not proved, and a known address next to an unknown one changes nothing.
        try submit([address], "two")
        let second = try fixture.arrival(for: "cron@juice.example", number: 2)
        #expect(second.mailFrom == "<>" && second.text.contains("5.7.1"))
        try submit([address, "nobody2222@relay.example"], "three")
        #expect(
            try fixture.arrival(for: "cron@juice.example", number: 3).text.contains(
                "No such address here"))
        try fixture.postfix.waitUntilDone()
        let left = try FileManager.default.contentsOfDirectory(
            atPath: fixture.postfix.directory + "/queue/maildrop")
        #expect(left.isEmpty && fixture.sink.messages.count == 3)
        #expect(
            try fixture.process.lines.contains {
                $0.contains("reason=unknown-address") && $0.contains("stage=rcpt")
            })
    }

    @Test func reply_undeliverable_isReportedToTheUserOnly() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let reverse = try fixture.arrival(for: "anna@home.example").address("From")
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = [
            "<news@juice.example>": "550 5.2.2 <news@juice.example>: mailbox full"
        ]
        fixture.sink.set(behaviour)
        try fixture.send(
            from: "anna@home.example", to: [reverse],
            RelayFixtures.message(from: "anna@home.example", to: reverse, id: "r@home.example"))
        let report = try fixture.arrival(for: "anna@home.example", number: 2)
        #expect(report.mailFrom == "<>")
        #expect(report.text.contains("5.2.2"))
        #expect(fixture.sink.messages.count == 2, "nobody else is written to")
    }

    @Test func mail_toAnotherDomain_isUnchanged() throws {
        let (fixture, _) = try RelayFixtures.anna(
            RelayFixtures.options { $0.trustsLoopback = true })
        defer { fixture.stop() }
        let text =
            "Date: Sat, 21 Nov 2026 08:00:00 +0000\n"
            + RelayFixtures.message(from: "someone@elsewhere.example", to: "other@third.example")
        try fixture.send(from: "someone@elsewhere.example", to: ["other@third.example"], text)
        let arrived = try fixture.arrival(for: "other@third.example")
        #expect(arrived.mailFrom == "<someone@elsewhere.example>")
        let kept = text.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(arrived.text.hasSuffix(kept), "\(arrived.text)")
    }

    @Test func mail_toPostmaster_reachesTheOperator() throws {
        let (fixture, _) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.send(
            from: "dmarc@big.example", to: ["postmaster@relay.example"],
            RelayFixtures.message(from: "dmarc@big.example", to: "postmaster@relay.example"))
        #expect(try fixture.arrival(for: "ops@operator.example").mailFrom == "<>")
    }

    @Test func reverseAddress_usedByAnotherUser_isRefused() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.addUser("bob", inboxes: ["bob@home.example"])
        _ = try fixture.address("juice", "bob")
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let reverse = try fixture.arrival(for: "anna@home.example").address("From")
        let result = try fixture.send(
            from: "bob@home.example", to: [reverse],
            RelayFixtures.message(from: "bob@home.example", to: reverse))
        #expect(result.data.map { "\($0)" }?.hasPrefix("550 5.7.26") == true)
        #expect(fixture.sink.messages.count == 1)
    }
}
