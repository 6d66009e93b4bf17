// An inbox with a server that refuses it: Postfix's own bounces suspend forwarding, and a
// confirmation ends the suspension.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelaySuspensionTests {
    @Test func inbox_repeatedBounces_isSuspendedUntilConfirmed() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { $0.settings["suspension.failures"] = "2" })
        defer { fixture.stop() }
        #expect(try !fixture.run(["inbox", "list", "anna"]).contains("suspended"))
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = ["<anna@home.example>": "550 5.1.1 no such user"]
        fixture.sink.set(behaviour)
        for number in 1...2 {
            #expect(
                try fixture.send(
                    from: "bounce@juice.example", to: [address],
                    RelayFixtures.message(to: address, id: "\(number)@juice.example")
                ).data?.code == 250)
            // When the report has arrived here, the failure is recorded.
            _ = try fixture.arrival(for: "bounce@juice.example", number: number)
        }
        let refused = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(refused.recipients.map(\.code) == [250], "nothing is told before the proof")
        #expect(refused.data.map { "\($0)" }?.hasPrefix("451 4.2.1") == true, "\(refused)")

        let shown = try fixture.run(["inbox", "show", "anna", "1"])
        #expect(shown.contains("verified, default, suspended"), "\(shown)")
        #expect(shown.contains("failures\t2 permanently, of 2 messages forwarded"), "\(shown)")
        #expect(shown.contains("postern inbox confirm anna 1"), "\(shown)")
        #expect(!shown.contains("anna@home"), "\(shown)")
        #expect(try fixture.run(["inbox", "list", "anna"]).contains("suspended"))
        #expect(try fixture.process.output.contains("inbox-now-suspended"))

        fixture.sink.set(SinkBehaviour())
        _ = try fixture.run(["inbox", "confirm", "anna", "1"])
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address],
                RelayFixtures.message(to: address, id: "9@juice.example")
            )
            .data?.code == 250)
        #expect(
            try fixture.arrival(for: "anna@home.example").address("From").hasSuffix(
                "@relay.example"))
        #expect(try !fixture.run(["inbox", "show", "anna", "1"]).contains("suspended"))
    }
}
