// Outgoing identities on a real Postfix: two teams, two addresses of loopback.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayOutgoingTests {
    /// Each team's forwards leave by its own name and address; replies and everything else by
    /// Postfix's own.
    @Test func forwards_ofTeamsWithIdentities_leaveByThem() throws {
        let outside = try SMTPSink()
        defer { outside.stop() }
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { options in
                options.zone = """
                    {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
                     "soda.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
                     "home.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}}
                    """
                // As in an installation: no route of the operator's for all mail.
                options.postfix = [
                    "transport_maps": "", "relayhost": "[127.0.0.1]:\(outside.port)",
                ]
            })
        defer { fixture.stop() }
        _ = try fixture.run(["team", "add", "soda", "--name", "Soda"])
        _ = try fixture.run(["source", "add", "soda", "soda.example"])
        let soda = try fixture.address("soda", "anna")
        let yaml = try String(contentsOfFile: fixture.configuration, encoding: .utf8)
        #expect(yaml.contains("# identities: {}"))
        let identities = """
            identities:
                bulk: { helo: bulk.relay.example, address: 127.0.0.2 }
                vip: { helo: vip.relay.example, address: 127.0.0.3 }
            """
        try Data(yaml.replacing("# identities: {}", with: identities).utf8).write(
            to: URL(filePath: fixture.configuration))
        _ = try fixture.run(
            [
                "setup", "postfix", "--config-directory", fixture.postfix.configuration,
                "--apply",
            ] + fixture.settings)
        try fixture.postfix.set(["smtp_tls_security_level": "none"])
        try fixture.end()
        try fixture.serve()
        _ = try fixture.run(["team", "outgoing", "juice", "bulk"])
        #expect(
            try fixture.run(["audit", "list", "--action", "team.outgoing"]).contains("bulk"))
        #expect(throws: (any Error).self) {
            _ = try fixture.run(["team", "outgoing", "juice", "gone"])
        }

        func forward(_ team: String, to address: String, _ number: Int) throws -> SinkMessage {
            let message = RelayFixtures.message(
                from: "news@\(team).example", to: address, id: "\(number)@\(team).example")
            let result = try fixture.send(
                from: "bounce@\(team).example", to: [address], message)
            #expect(result.data?.code == 250, "\(result)")
            return try #require(try outside.wait(for: number).last)
        }
        // Several, as the last character of each return path is chosen by chance otherwise.
        var number = 0
        var reverse = ""
        for _ in 0..<4 {
            number += 1
            let message = try forward("juice", to: address, number)
            #expect(message.client == "127.0.0.2" && message.helo == "bulk.relay.example")
            number += 1
            let other = try forward("soda", to: soda, number)
            #expect(other.client == "127.0.0.1" && other.helo == "mx.relay.example")
            #expect(message.recipients == ["<anna@home.example>"])
            reverse = message.address("From")
        }
        _ = try fixture.run(["team", "outgoing", "soda", "vip"])
        number += 1
        let moved = try forward("soda", to: soda, number)
        #expect(moved.client == "127.0.0.3" && moved.helo == "vip.relay.example")
        // Nothing of it is in the message.
        #expect(!moved.text.contains("vip") && !moved.mailFrom.contains("vip"))
        // A reply leaves by Postfix's own name.
        let reply = try fixture.send(
            from: "anna@home.example", to: [reverse],
            RelayFixtures.message(from: "anna@home.example", to: reverse, id: "r@home.example"))
        #expect(reply.data?.code == 250, "\(reply)")
        let answer = try #require(try outside.wait(for: number + 1).last)
        #expect(answer.client == "127.0.0.1" && answer.helo == "mx.relay.example")
    }
}
