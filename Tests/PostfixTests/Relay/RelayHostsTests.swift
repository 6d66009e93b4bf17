// Several relay hosts on one PostgreSQL: two Postfix and Postern pairs on ports of one machine.

import Foundation
import PostfixHarness
import PostgresHarness
import RelayHarness
import TestSupport
import Testing

@Suite(
    .blocking, needsPostfix,
    .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct RelayHostsTests {
    /// `make soak-failures` sets higher values.
    private static func parameter(_ name: String, _ standard: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
    }

    @Test func hosts_twoOnOneDatabase_actAsOneRelay() throws {
        let server = try #require(PostgresServer.shared)
        let schema = "h\(UUID().uuidString.prefix(8).lowercased())"
        let hosts = try Hosts(
            server.url(schema: schema),
            settings: ["limits.messages_per_day": "6", "http.public_url": "https://relay.example"])
        defer { hosts.stop() }
        let (first, second, address) = (hosts.first, hosts.second, hosts.address)
        func send(_ fixture: RelayFixture, _ id: String) throws -> SMTPTransactionResult {
            try fixture.send(
                from: "bounce@juice.example", to: [address],
                RelayFixtures.message(to: address, id: "\(id)@juice.example"))
        }
        // An address made on one host is valid on the other: here a reverse address.
        #expect(try send(first, "1").data?.code == 250)
        let arrival = try first.arrival(for: "anna@home.example")
        let reply = try second.send(
            from: "anna@home.example", to: [arrival.address("From")],
            "From: anna@home.example\nTo: \(arrival.address("From"))\nSubject: Re\nMessage-ID: <r@home.example>\n\nThanks\n"
        )
        #expect(reply.data?.code == 250, "\(reply)")
        #expect(try second.arrival(for: "news@juice.example").address("From") == address)
        // A limit counts once for all hosts.
        for number in 2...6 {
            #expect(
                try send(number.isMultiple(of: 2) ? second : first, "\(number)").data?.code == 250)
        }
        for fixture in hosts.all {
            #expect(try send(fixture, "7").data.map { "\($0)" }?.hasPrefix("452 4.7.1") == true)
        }

        // The replacement of keys requires that every host has them first.
        let early = try ManagedProcess.run(
            first.program,
            ["keys", "file", "rotate", "--wait", "1", "--config", first.configuration])
        #expect(early.status == 75 && early.output.contains("mx2.relay.example"), "\(early)")
        #expect(try hosts.rotateKeys().contains("Removed the old seal key a"))
        try second.copyKeys(from: first)
        for fixture in hosts.all {
            #expect(try send(fixture, "8").data.map { "\($0)" }?.hasPrefix("452 4.7.1") == true)
        }

        // A change by another host applies at once, as no account data is kept in memory.
        try first.run(["address", "off", address])
        #expect(try send(second, "9").data.map { "\($0)" }?.hasPrefix("550 5.2.1") == true)
        // Signing keys and policies apply within seconds; both hosts log that they saw the change.
        let starts = try hosts.all.map { try $0.process.lines.count }
        try first.run(["keys", "dkim", "generate", "--algorithm", "ed25519", "--selector", "ed1"])
        try first.run(["keys", "dkim", "activate", "ed1", "--force"])
        for (fixture, start) in zip(hosts.all, starts) {
            try fixture.process.waitForLine(containing: "signing keys changed", from: start)
        }

        // A policy that one of them activates is soon used by the other.
        let folder = first.folder + "/mine"
        try first.run(["policy", "show", "--export", folder])
        for (name, old, new) in [
            ("policy.yaml", "account.age_hours < 72 &&", "account.age_hours < 48 &&"),
            ("tests.yaml", "account.age_hours: 71", "account.age_hours: 47"),
        ] {
            let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
            try #require(text.contains(old))
            try text.replacingOccurrences(of: old, with: new).write(
                toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        }
        let lines = try hosts.all.map { try $0.process.lines.count }
        try first.run(["policy", "activate", folder])
        for (fixture, start) in zip(hosts.all, lines) {
            try fixture.process.waitForLine(containing: "policy in force", from: start)
        }
        struct Overview: Decodable {
            struct Policy: Decodable {
                let hash: String
                let isDefault: Bool
            }
            struct Host: Decodable { let serving: String? }
            let policies: [Policy]
            let hosts: [Host]
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        try wait("both decide by it", atMost: 2 * standardTimeout) {
            let overview = try decoder.decode(
                Overview.self, from: Data(second.run(["policy", "list", "--json"]).utf8))
            let active = try #require(overview.policies.first { $0.isDefault }).hash
            return overview.hosts.count == 2 && overview.hosts.allSatisfy { $0.serving == active }
        }

        // One of them delivers events, and the other takes over soon after it has ended.
        func lease(_ column: String) throws -> String {
            try server.psql("SELECT \(column) FROM \(schema).leases WHERE name = 'events'")
                .trimmingCharacters(
                    in: .whitespacesAndNewlines)
        }
        try wait("somebody delivers", atMost: 2 * standardTimeout) { try !lease("holder").isEmpty }
        try first.end(SIGKILL)
        // A host that has ended renews nothing.
        let beat = try lease("beat")
        try wait("the other one delivers", atMost: 2 * standardTimeout) {
            try lease("beat") != beat
        }
        try first.serve()
        let after = try lease("holder")
        #expect(try second.end() == 0)
        try wait("the first one delivers again", atMost: 2 * standardTimeout) {
            try !["", after].contains(lease("holder"))
        }
    }

    @Test(
        "A host killed, PostgreSQL restarted, a host lost with its Postfix, under load: nothing lost, doubled or unrewritten, senders saw 4xx alone"
    )
    func hosts_failuresUnderLoad_loseNoMail() throws {
        let count = Self.parameter("POSTERN_SOAK_MESSAGES", 160)
        let rounds = Self.parameter("POSTERN_SOAK_ROUNDS", 1)
        let lanes = Self.parameter("POSTERN_SOAK_LANES", 8)
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let hosts = try Hosts(
            server.url(schema: "relay"), settings: ["limits.messages_per_day": "1000000"])
        defer { hosts.stop() }
        let traffic = Traffic(hosts)
        for round in 1...max(1, rounds) {
            try load(hosts, traffic, server, round: round, count: count, lanes: lanes)
            for fixture in hosts.all {
                try fixture.postfix.waitUntilDone(seconds: 10 * standardTimeout)
            }
            traffic.check(expected: round * count)
            print("round \(round): \(traffic.summary)")
        }
        for fixture in hosts.all {
            #expect(
                !fixture.sink.messages.isEmpty,
                "no mail went over it: \(traffic.refusals(of: fixture))\n\(fixture.postfix.logTail)"
            )
            #expect(try fixture.postfix.queue().isEmpty)
        }
    }

    /// Sends messages over both hosts. During that time one `postern serve` is killed, then
    /// PostgreSQL stops and returns, and then a host is lost completely and returns.
    private func load(
        _ hosts: Hosts, _ traffic: Traffic, _ server: PostgresServer, round: Int, count: Int,
        lanes: Int
    ) throws {
        let group = DispatchGroup()
        let before = traffic.taken.with { $0 }
        let all = before + count
        for lane in 0..<lanes {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                for number in stride(from: lane, to: count, by: lanes) {
                    traffic.send("m\(number).\(round)@juice.example", first: number)
                }
            }
        }
        func reach(_ part: Int) {
            _ = traffic.taken.wait(seconds: 2 * standardTimeout) {
                $0 >= before + count * part / 10 ? true : nil
            }
        }
        func meanwhile(_ trouble: () throws -> Void, _ end: () throws -> Void) throws {
            traffic.isWell.with { $0 = false }
            let before = traffic.deferred.with { $0 }
            try trouble()
            // Until senders notice it, or have no mail left.
            try wait("senders notice", atMost: 2 * standardTimeout) {
                traffic.deferred.with { $0 } >= before + max(1, lanes / 2)
                    || traffic.taken.with { $0 } >= all
            }
            try end()
            traffic.isWell.with { $0 = true }
        }
        let (victim, other) = (hosts.all[round % 2], hosts.all[(round + 1) % 2])
        reach(1)
        try meanwhile {
            let status = try victim.end(SIGKILL)
            #expect(status == 128 + SIGKILL)
        } _: {
            try victim.serve()
        }
        reach(3)
        try meanwhile {
            server.stop(immediately: round.isMultiple(of: 2))
        } _: {
            try server.start()
        }
        reach(5)
        traffic.lost.with { _ = $0.insert(other.folder) }
        try meanwhile {
            try other.kill()
        } _: {
            try other.revive()
        }
        #expect(group.wait(timeout: .now() + 10 * standardTimeout) == .success)
        #expect(traffic.deferred.with { $0 } > 0)
    }

    @Test(
        "Keys are replaced while mail flows over both hosts: all of it arrives, and a copy of the database shows neither inbox, name nor key"
    )
    func hosts_keyRotationUnderLoad_loseNoMail() throws {
        let rotations = Self.parameter("POSTERN_SOAK_ROUNDS", 1)
        let lanes = Self.parameter("POSTERN_SOAK_LANES", 4)
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let hosts = try Hosts(
            server.url(schema: "relay"), settings: ["limits.messages_per_day": "1000000"])
        defer { hosts.stop() }
        let (first, second) = (hosts.first, hosts.second)
        try first.run([
            "user", "add", "jane", "--inbox", "secretive.person@private-home.example", "--verified",
            "--name", "Jane Quietly Doe",
        ])
        _ = try first.address("juice", "jane")
        let traffic = Traffic(hosts, sender: Self.longSender)
        var secrets = try Self.secrets(first.keyFile)
        let isOver = Watched(false)
        let group = DispatchGroup()
        for lane in 0..<lanes {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                var number = lane
                while !isOver.with({ $0 }) {
                    traffic.send("k\(number)@juice.example", first: number)
                    number += lanes
                }
            }
        }
        func flow() throws {
            let before = traffic.taken.with { $0 }
            try wait("mail flows", atMost: 2 * standardTimeout) {
                traffic.taken.with { $0 } >= before + 2 * lanes
            }
        }
        let result = Result {
            for _ in 0..<max(1, rotations) {
                try flow()
                let output = try hosts.rotateKeys()
                #expect(
                    output.contains("Removed the old seal key")
                        && output.contains("Removed the old index key"), "\(output)")
                secrets.formUnion(try Self.secrets(first.keyFile))
            }
            try flow()
        }
        isOver.with { $0 = true }
        #expect(group.wait(timeout: .now() + 10 * standardTimeout) == .success)
        try result.get()
        for fixture in hosts.all {
            try fixture.postfix.waitUntilDone(seconds: 10 * standardTimeout)
        }
        traffic.check(expected: traffic.taken.with { $0 })
        print("\(max(1, rotations)) rotations: \(traffic.summary)")

        // Everything can be opened with only the new keys.
        struct Key: Decodable {
            let purpose, id, state: String
        }
        let keys = try JSONDecoder().decode(
            [Key].self, from: Data(try second.run(["keys", "file", "show", "--json"]).utf8))
        for purpose in ["seal", "index"] {
            let own = keys.filter { $0.purpose == purpose }
            #expect(
                own.count == 1 && own.first?.state == "active" && own.first?.id != "a", "\(keys)")
        }
        for fixture in hosts.all {
            #expect(
                try fixture.run(["inbox", "list", "jane", "--reveal"]).contains(
                    "secretive.person@private-home.example"))
        }
        #expect(try first.run(["user", "show", "jane", "--reveal"]).contains("Jane Quietly Doe"))
        let stored = try server.psql("SELECT COUNT(*) FROM relay.stored_tokens").trimmingCharacters(
            in: .whitespacesAndNewlines)
        #expect(try #require(Int(stored)) > 0, "return paths with long senders are stored")

        // The files of the database with its log, as a thief would have them.
        try server.psql("CHECKPOINT")
        func files(_ flag: String, _ pattern: String) throws -> String {
            let found = try ManagedProcess.run(
                "/usr/bin/grep", ["-ral\(flag)", "-e", pattern, server.folder.path],
                environment: ["LC_ALL": "C"])
            return found.output
        }
        // Clear text is found, also in the write-ahead log, so the search works.
        #expect(try files("F", "The Juice Company").contains("/pg_wal/"))
        for secret in [
            "secretive.person", "private-home.example", "anna@home.example", "Jane Quietly",
            "Quietly Doe", Self.longSender,
        ] {
            #expect(try files("F", secret) == "", "\(secret) stands in the database")
        }
        #expect(secrets.count >= 5)
        for secret in secrets {
            #expect(try files("iF", secret) == "", "a key stands in the database")
            let octets = stride(from: 0, to: secret.count, by: 2).map {
                "\\x" + String(Array(secret)[$0..<$0 + 2])
            }
            #expect(try files("P", octets.joined()) == "", "a key stands in the database")
        }
    }

    /// Too long for a return path, so it is stored, sealed.
    private static let longSender = "bounce+0123456789012345678901234567890123456789@juice.example"

    /// The secrets in a key file, in hexadecimal.
    private static func secrets(_ path: String) throws -> Set<String> {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(
            whereSeparator: \.isNewline)
        return Set(
            lines.filter { !$0.hasPrefix("#") }.compactMap {
                $0.split(separator: " ").last.map(String.init)
            }.filter {
                $0.count == 64
            })
    }
}
