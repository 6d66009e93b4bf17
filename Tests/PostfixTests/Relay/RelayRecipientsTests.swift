// Many recipients: each gets a separate message, and none is lost.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayRecipientsTests {
    /// A Postfix of a team: no filter, and all mail for the relay goes to the relay.
    private func teamServer(_ fixture: RelayFixture) throws -> PrivatePostfix {
        var options = PrivatePostfix.Options()
        options.hostName = "mail.juice.example"
        options.routes = ["*": fixture.postfix.port]
        options.trustsLoopback = true
        options.settings = [
            "minimal_backoff_time": "1s", "maximal_backoff_time": "1s", "queue_run_delay": "1s",
            "smtp_connection_cache_on_demand": "no",
        ]
        return try PrivatePostfix(options)
    }

    @Test func message_toThreeUsersOfTwoTeams_reachesEach() throws {
        let (fixture, anna) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.addTeam("shop", name: "The Shop", source: "shop.example")
        try fixture.run(["source", "add", "shop", "juice.example"])
        try fixture.addUser("bob", inboxes: ["bob@home.example"])
        try fixture.addUser("carol", inboxes: ["carol@home.example"])
        let addresses = [
            anna, try fixture.address("juice", "bob"), try fixture.address("shop", "carol"),
        ]
        let server = try teamServer(fixture)
        defer { server.stop() }
        let text = RelayFixtures.message(to: addresses.joined(separator: ", "))
            .replacingOccurrences(of: "\n", with: "\r\n")
        #expect(
            try server.send(
                from: "<bounce@juice.example>", to: addresses.map { "<\($0)>" },
                message: Array(text.utf8)
            ).data?.code
                == 250)
        let arrived = try ["anna", "bob", "carol"].map { name in
            try retrying(server) {
                try fixture.sink.wait(for: 1, seconds: 2) {
                    $0.recipients == ["<\(name)@home.example>"]
                }
            }[0]
        }
        #expect(
            Set(arrived.map { $0.address("From") }).count == 3,
            "each has reverse addresses of their own")
        #expect(fixture.sink.messages.count == 3)
    }

    @Test func message_toHundredUsers_arrivesOnceForEach() throws {
        let (fixture, anna) = try RelayFixtures.anna()
        defer { fixture.stop() }
        var addresses = [anna]
        for number in 1..<100 {
            try fixture.addUser("user\(number)", inboxes: ["user\(number)@home.example"])
            addresses.append(try fixture.address("juice", "user\(number)"))
        }
        let server = try teamServer(fixture)
        defer { server.stop() }
        let text = RelayFixtures.message(to: "undisclosed-recipients:;").replacingOccurrences(
            of: "\n", with: "\r\n")
        #expect(
            try server.send(
                from: "<bounce@juice.example>", to: addresses.map { "<\($0)>" },
                message: Array(text.utf8)
            ).data?.code
                == 250)
        try retrying(server, attempts: 1200) { try fixture.sink.wait(for: 100, seconds: 1) }
        try server.waitUntilDone()
        let recipients = fixture.sink.messages.flatMap(\.recipients)
        #expect(recipients.count == 100 && Set(recipients).count == 100)
    }

    /// Runs the sender's queue until the expected result.
    @discardableResult
    private func retrying<T>(
        _ server: PrivatePostfix, attempts: Int = 600, _ attempt: () throws -> T
    ) throws -> T {
        for _ in 1..<attempts {
            if let value = try? attempt() { return value }
            try server.flush()
        }
        return try attempt()
    }
}
