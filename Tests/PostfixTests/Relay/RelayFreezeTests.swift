// A frozen user and a frozen team on a real Postfix: each direction is refused or deferred as said,
// and goes on afterwards.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayFreezeTests {
    @Test func freeze_userThenTeam_stopsBothDirectionsUntilItEnds() throws {
        let (fixture, address) = try RelayFixtures.anna(RelayFixtures.options { _ in })
        defer { fixture.stop() }
        func forward(_ id: String) throws -> String {
            let result = try fixture.send(
                from: "bounce@juice.example", to: [address],
                RelayFixtures.message(to: address, id: "\(id)@juice.example"))
            #expect(result.recipients.map(\.code) == [250], "nothing is told before the proof")
            return result.data.map { "\($0)" } ?? ""
        }
        #expect(try forward("1").hasPrefix("250"))
        let reverse = try fixture.arrival(for: "anna@home.example").address("From")
        func reply(_ id: String) throws -> String {
            try fixture.send(
                from: "anna@home.example", to: [reverse],
                RelayFixtures.message(
                    from: "anna@home.example", to: reverse, id: "\(id)@home.example")
            ).data.map { "\($0)" } ?? ""
        }
        let begun = try fixture.run(["user", "freeze", "anna", "--reason", "abuse 7"])
        #expect(begun.contains("Frozen until it is ended."))
        #expect(try forward("2").hasPrefix("550 5.2.1 The operator of this relay has frozen"))
        #expect(try reply("3").hasPrefix("550 5.7.1 The operator of this relay has frozen"))
        #expect(try fixture.run(["user", "show", "anna"]).contains("frozen\tsince"))
        _ = try fixture.run(["user", "unfreeze", "anna"])

        _ = try fixture.run(["team", "freeze", "juice", "--reason", "phishing", "--until", "30d"])
        #expect(try forward("4").hasPrefix("451 4.7.1 The operator of this relay has frozen"))
        #expect(try reply("5").hasPrefix("550 5.7.1 The operator of this relay has frozen"))
        #expect(try fixture.run(["team", "show", "juice"]).contains(", until "))
        _ = try fixture.run(["team", "unfreeze", "juice"])

        #expect(try forward("4").hasPrefix("250"))
        #expect(try reply("6").hasPrefix("250"))
        _ = try fixture.arrival(for: "anna@home.example", number: 2)
        #expect(fixture.sink.messages.count >= 2)
        let log = try fixture.process.output
        #expect(log.contains("user-frozen") && log.contains("team-frozen"))
        #expect(!log.contains("anna@home"))
    }
}
