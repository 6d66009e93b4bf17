// Several relay hosts on one PostgreSQL: two Postfix and Postern pairs on ports of one machine.

import Foundation
import PostfixHarness
import PostgresHarness
import RelayHarness
import Testing

/// Two hosts of one installation, with team juice and user anna.
private struct Hosts {
    let first: RelayRig
    let second: RelayRig
    let address: String
    var all: [RelayRig] { [first, second] }

    init(_ url: String, settings: [String: String] = [:]) throws {
        var options = World.options { options in
            options.database = url
            options.settings = settings.merging(["hostname": "mx1.relay.example"]) { $1 }
        }
        (first, address) = try World.anna(options)
        options.joins = first
        options.settings["hostname"] = "mx2.relay.example"
        second = try RelayRig(options)
    }

    func stop() { all.forEach { $0.stop() } }

    /// What arrived anywhere.
    var arrived: [SinkMessage] { all.flatMap(\.sink.messages) }
}

/// Waits for a condition; the bound is for one that never comes about.
private func wait(_ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool) throws {
    let end = Date(timeIntervalSinceNow: 2 * patience)
    while try !condition() {
        guard Date() < end else { throw HarnessError("\(what): it did not come about") }
        usleep(50_000)
    }
}

@Suite(needsPostfix, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct RelayHostsTests {
    /// `make soak` sets more.
    private static func parameter(_ name: String, _ standard: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
    }

    @Test func twoHostsAreOneRelay() throws {
        let server = try #require(PostgresServer.shared)
        let schema = "h\(UUID().uuidString.prefix(8).lowercased())"
        let hosts = try Hosts(
            server.url(schema: schema), settings: ["limits.messages_per_day": "6", "http.public_url": "https://relay.example"])
        defer { hosts.stop() }
        let (first, second, address) = (hosts.first, hosts.second, hosts.address)
        func send(_ rig: RelayRig, _ id: String) throws -> SMTPTransactionResult {
            try rig.send(from: "bounce@juice.example", to: [address], World.message(to: address, id: "\(id)@juice.example"))
        }
        // What was made on one host is good on the other: here an address to answer to.
        #expect(try send(first, "1").data?.code == 250)
        let arrival = try first.arrival(for: "anna@home.example")
        let reply = try second.send(
            from: "anna@home.example", to: [arrival.address("From")],
            "From: anna@home.example\nTo: \(arrival.address("From"))\nSubject: Re\nMessage-ID: <r@home.example>\n\nThanks\n")
        #expect(reply.data?.code == 250, "\(reply)")
        #expect(try second.arrival(for: "news@juice.example").address("From") == address)
        // A limit counts once, whichever way mail takes.
        for number in 2...6 { #expect(try send(number.isMultiple(of: 2) ? second : first, "\(number)").data?.code == 250) }
        for rig in hosts.all { #expect(try send(rig, "7").data.map { "\($0)" }?.hasPrefix("452 4.7.1") == true) }

        // Keys are replaced: every host has to have them first.
        let early = try ManagedProcess.run(first.program, ["key-file", "rotate", "--wait", "1", "--config", first.configuration])
        #expect(early.status == 75 && early.output.contains("mx2.relay.example"), "\(early)")
        // From here on an operator copies the key file over whenever it changes.
        let rotated = Watched<String?>(nil)
        Thread.detachNewThread {
            let output = Result { try first.run(["key-file", "rotate", "--wait", "100"]) }
            rotated.with { $0 = (try? output.get()) ?? "\(output)" }
        }
        try wait("the rotation ends") {
            try second.copyKeys(from: first)
            return rotated.with { $0 != nil }
        }
        #expect(rotated.with { $0?.contains("Removed the old seal key a") == true }, "\(rotated.with { $0 ?? "" })")
        try second.copyKeys(from: first)
        for rig in hosts.all { #expect(try send(rig, "8").data.map { "\($0)" }?.hasPrefix("452 4.7.1") == true) }

        // Another host's change is seen at once: nothing of an account is kept in memory.
        try first.run(["address", "off", address])
        #expect(try send(second, "9").data.map { "\($0)" }?.hasPrefix("550 5.2.1") == true)
        // Signing keys and policies within seconds: both hosts say that they saw it.
        let starts = try hosts.all.map { try $0.process.lines.count }
        try first.run(["dkim", "generate", "--algorithm", "ed25519", "--selector", "ed1"])
        try first.run(["dkim", "activate", "ed1", "--force"])
        for (rig, start) in zip(hosts.all, starts) { try rig.process.waitForLine(containing: "signing keys changed", from: start) }

        // Events are delivered by one of them, and by the other as soon as it is gone.
        let holders = """
            SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
            AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('\(schema) postern events', 0)
            """
        func holder() throws -> String { try server.psql(holders).trimmingCharacters(in: .whitespacesAndNewlines) }
        try wait("somebody delivers") { try Int(holder()) != nil }
        let before = try holder()
        try first.end(SIGKILL)
        try wait("the other one delivers") { try Int(holder()) != nil && holder() != before }
        try first.serve()
        let after = try holder()
        #expect(try second.end() == 0)
        try wait("the first one delivers again") { try Int(holder()) != nil && holder() != after }
    }

    @Test("One host killed, then PostgreSQL restarted, under load: nothing lost, doubled or unrewritten, and senders saw 4xx alone")
    func failuresUnderLoad() throws {
        let count = Self.parameter("POSTERN_SOAK_MESSAGES", 160)
        let rounds = Self.parameter("POSTERN_SOAK_ROUNDS", 1)
        let lanes = Self.parameter("POSTERN_SOAK_LANES", 8)
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let hosts = try Hosts(server.url(schema: "relay"), settings: ["limits.messages_per_day": "1000000"])
        defer { hosts.stop() }
        var expected = 0
        for round in 1...max(1, rounds) {
            try load(hosts, server, round: round, count: count, lanes: lanes)
            expected += count
            for rig in hosts.all { try rig.postfix.waitUntilDone() }
            let arrived = hosts.arrived
            let ids = Set(arrived.compactMap { $0.value("Message-ID") })
            #expect(arrived.count == expected && ids.count == expected, "\(arrived.count) arrived, \(ids.count) different, of \(expected)")
            for message in arrived {
                #expect(message.recipients == ["<anna@home.example>"])
                #expect(message.address("From").hasSuffix("@relay.example"))
                #expect(message.value("DKIM-Signature")?.contains("d=relay.example") == true)
            }
            print("round \(round): \(arrived.count) of \(expected) messages arrived, each once and rewritten")
        }
        for rig in hosts.all { #expect(!rig.sink.messages.isEmpty) }
    }

    /// Sends messages over both hosts, as a sender that keeps its mail until it is taken, while one host is killed and then
    /// PostgreSQL goes away and comes back.
    private func load(_ hosts: Hosts, _ server: PostgresServer, round: Int, count: Int, lanes: Int) throws {
        let taken = Watched(0)
        let deferred = Watched(0)
        let isWell = Watched(true)
        let group = DispatchGroup()
        for lane in 0..<lanes {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                for number in stride(from: lane, to: count, by: lanes) {
                    let text = World.message(to: hosts.address, id: "m\(number).\(round)@juice.example")
                    var isTaken = false
                    // Balanced over both: the next attempt goes to the other host, as with two MX records.
                    for attempt in 0..<6000 where !isTaken {
                        let rig = hosts.all[(number + attempt) % 2]
                        let result = try? rig.send(from: "bounce@juice.example", to: [hosts.address], text)
                        isTaken = result?.data?.code == 250
                        guard !isTaken else { break }
                        deferred.with { $0 += 1 }
                        let worst = [result?.mail.code, result?.recipients.first?.code, result?.data?.code].compactMap { $0 }.max() ?? 0
                        if worst / 100 == 5 { Issue.record("a 5xx: \(String(describing: result))") }
                        _ = isWell.wait(seconds: 0.1) { $0 ? true : nil }
                    }
                    if !isTaken { Issue.record("message \(number) was never taken") }
                    taken.with { $0 += 1 }
                }
            }
        }
        func reach(_ part: Int) { _ = taken.wait(seconds: 2 * patience) { $0 >= count * part / 10 ? true : nil } }
        func meanwhile(_ trouble: () throws -> Void, _ end: () throws -> Void) throws {
            isWell.with { $0 = false }
            let before = deferred.with { $0 }
            try trouble()
            _ = deferred.wait(seconds: 2 * patience) { $0 >= before + lanes ? true : nil }
            try end()
            isWell.with { $0 = true }
        }
        reach(2)
        let victim = hosts.all[round % 2]
        try meanwhile {
            let status = try victim.end(SIGKILL)
            #expect(status == 128 + SIGKILL)
        } _: {
            try victim.serve()
        }
        reach(5)
        try meanwhile { server.stop(immediately: round.isMultiple(of: 2)) } _: { try server.start() }
        #expect(group.wait(timeout: .now() + 10 * patience) == .success)
        #expect(deferred.with { $0 } > 0)
    }
}
