// Signing keys from the command line: generated, published, rotated, and used for relayed mail.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct DKIMKeysCommandTests {
    private func rows(_ runner: CommandRunner, _ arguments: String...) throws -> [[String: Any]] {
        let result = try runner.run(arguments + ["--json"])
        try #require(result.status == 0, "\(result.errors)")
        return try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
    }

    private func states(
        _ runner: CommandRunner, domain: String = "relay.example"
    ) throws -> [String: String] {
        let keys = try rows(runner, "keys", "dkim", "list").filter {
            $0["domain"] as? String == domain
        }
        return Dictionary(
            uniqueKeysWithValues: keys.compactMap { key in
                (key["selector"] as? String).map { ($0, key["state"] as? String ?? "") }
            })
    }

    /// The DNS with every key that should be in it, and further records.
    private func publish(_ runner: CommandRunner, _ more: [String: Any] = [:]) throws {
        var zone = more
        for record in try rows(runner, "keys", "dkim", "publish") {
            zone[try #require(record["name"] as? String)] = [
                "TXT": [try #require(record["text"] as? String)]
            ]
        }
        try JSONSerialization.data(withJSONObject: zone).write(
            to: runner.folder.appendingPathComponent("zone.json"))
    }

    @Test func init_everyRelayDomain_getsActiveKey() throws {
        let runner = try CommandRunner()
        let output = try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--relay-domain",
            "b.example")
        #expect(output.contains("._domainkey.relay.example. IN TXT ("))
        #expect(output.contains("._domainkey.b.example. IN TXT ("))
        let keys = try rows(runner, "keys", "dkim", "list")
        #expect(keys.map { $0["state"] as? String } == ["active", "active"])
        #expect(
            keys.allSatisfy { $0["bits"] as? Int == 2048 && $0["algorithm"] as? String == "rsa" })
    }

    @Test func dkimPublish_longKey_isSplitAt255Octets() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("keys", "dkim", "generate", "--selector", "long", "--bits", "4096")
        let record = try #require(try rows(runner, "keys", "dkim", "publish", "long").first)
        let strings = try #require(record["strings"] as? [String])
        #expect(strings.count > 2)
        #expect(strings.allSatisfy { $0.utf8.count <= 255 })
        #expect(strings.joined() == record["text"] as? String)
        #expect(record["name"] as? String == "long._domainkey.relay.example")
        let zone = try runner.succeed("keys", "dkim", "publish", "long")
        for string in strings { #expect(zone.contains("\"\(string)\"")) }
    }

    @Test func dkimRotation_generateToRetire_keepsOneActiveKey() throws {
        let runner = try CommandRunner.initialised()
        let first = try #require(try states(runner).keys.first)
        try publish(runner)
        try runner.succeed("keys", "dkim", "generate", "--selector", "next")
        #expect(try states(runner) == [first: "active", "next": "pending"])
        try runner.fail(
            "keys", "dkim", "activate", "next", "--dns", "zone.json", status: 75,
            saying: "no key in the DNS")
        #expect(try states(runner) == [first: "active", "next": "pending"])
        try publish(runner)
        #expect(
            try runner.succeed("keys", "dkim", "activate", "NEXT", "--dns", "zone.json").contains(
                "leave its record until"))
        #expect(try states(runner) == [first: "retiring", "next": "active"])
        try runner.fail(
            "keys", "dkim", "retire", "next", status: 65, saying: "activate another first")
        try runner.fail(
            "keys", "dkim", "retire", first, "--domain", "relay.example", status: 65,
            saying: "may still be in transit")
        #expect(
            try runner.succeed(
                "keys", "dkim", "retire", first, "--domain", "relay.example", "--force"
            ).contains("not before"))
        #expect(try states(runner) == [first: "retired", "next": "active"])
        #expect(
            try rows(runner, "keys", "dkim", "publish").allSatisfy {
                $0["domain"] as? String == "old.example" || $0["selector"] as? String == "next"
            })
        try runner.fail(
            "keys", "dkim", "activate", first, "--domain", "relay.example", status: 65,
            saying: "retired")
        try runner.fail(
            "keys", "dkim", "generate", "--selector", "next", status: 73, saying: "never used twice"
        )
    }

    @Test func dkimActivate_wrongRecord_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("keys", "dkim", "generate", "--selector", "next")
        let other = try #require(
            try rows(runner, "keys", "dkim", "publish").first {
                $0["selector"] as? String != "next"
            }?["text"] as? String)
        let own = try #require(
            try rows(runner, "keys", "dkim", "publish", "next").first?["text"] as? String)
        for (records, complaint) in [
            (["TXT": [other]], "another key"), (["TXT": ["v=DKIM1; p="]], "revoked"),
            (["error": "SERVFAIL"], "no answer"),
            (["TXT": [own.replacingOccurrences(of: "p=", with: "t=y; p=")]], "t=y"),
            (["TXT": [own, other]], "2 keys"),
        ] as [([String: Any], String)] {
            try JSONSerialization.data(withJSONObject: ["next._domainkey.relay.example": records])
                .write(to: runner.folder.appendingPathComponent("zone.json"))
            try runner.fail(
                "keys", "dkim", "activate", "next", "--dns", "zone.json", status: 75,
                saying: complaint)
        }
        try runner.succeed("keys", "dkim", "activate", "next", "--force")
        #expect(try states(runner)["next"] == "active")
    }

    @Test func dkimCommands_invalidArguments_areRefused() throws {
        let runner = try CommandRunner.initialised()
        let first = try #require(try states(runner).keys.first)
        try runner.fail(
            "keys", "dkim", "generate", "--bits", "1024", status: 65, saying: "2048 to 4096")
        try runner.fail(
            "keys", "dkim", "generate", "--domain", "elsewhere.example", status: 65,
            saying: "is not a relay domain")
        try runner.fail(
            "keys", "dkim", "generate", "--selector", "a_b", status: 65,
            saying: "a selector must be")
        try runner.fail("keys", "dkim", "generate", "--algorithm", "dsa", status: 64, saying: "dsa")
        try runner.fail("keys", "dkim", "activate", "nothing", status: 66, saying: "no key nothing")
        try runner.fail("keys", "dkim", "retire", first, status: 65, saying: "--domain")
    }

    @Test func forward_twoActiveKeys_hasTwoValidSignatures() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("keys", "dkim", "generate", "--algorithm", "ed25519", "--selector", "ed")
        try runner.succeed("keys", "dkim", "activate", "ed", "--force")
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "app.example")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        let address = try runner.succeed("address", "issue", "juice", "jane")
        try publish(runner, ["app.example": ["TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]]])
        let message =
            "From: Billing <billing@app.example>\nTo: \(address)\nSubject: x\nDate: Mon, 2 Nov 2026 10:00:00 +0000\n\nHello.\n"
        func forward() throws -> [String: Any] {
            let explained = try runner.run(
                [
                    "explain", "--rcpt", address, "--mail-from", "a@app.example", "--ip",
                    "192.0.2.1", "--helo", "mx.app.example",
                    "--dns",
                    "zone.json", "--json",
                ], input: message)
            try #require(explained.status == 0, "\(explained.errors)")
            let answer = try #require(
                try JSONSerialization.jsonObject(with: Data(explained.output.utf8))
                    as? [String: Any])
            #expect(answer["action"] as? String == "relay", "\(answer["reasons"] ?? "")")
            let sent = try #require(
                (answer["message_base64"] as? String).flatMap { Data(base64Encoded: $0) })
            let verified = try runner.succeed(
                "verify", "message", "--dns", "zone.json",
                input: String(decoding: sent, as: UTF8.self))
            return try #require(
                try JSONSerialization.jsonObject(with: Data(verified.utf8)) as? [String: Any])
        }
        let answer = try forward()
        let signatures = try #require(answer["dkim"] as? [[String: Any]])
        #expect(signatures.map { $0["result"] as? String } == ["pass", "pass"])
        #expect(
            Set(signatures.compactMap { $0["a"] as? String }) == ["rsa-sha256", "ed25519-sha256"])
        #expect(signatures.allSatisfy { $0["d"] as? String == "relay.example" })
        #expect(
            (answer["proof"] as? [String: Any])?["aligned_dkim"] as? [String] == ["relay.example"])
        try runner.succeed("keys", "dkim", "retire", "ed", "--force")
        #expect((try forward()["dkim"] as? [Any])?.count == 1)
    }
}
