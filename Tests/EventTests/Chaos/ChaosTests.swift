// All failures of hosts, clocks, store and receiver, under mail, HTTP and commands: nothing
// acknowledged is lost.

import Accounts
import Foundation
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: EventHosts.hasCompiler, "there is no C compiler"))
struct ChaosTests {
    /// `make chaos` sets a longer time.
    private static let seconds =
        ProcessInfo.processInfo.environment["POSTERN_CHAOS_SECONDS"].flatMap { Double($0) } ?? 8
    private static let isShort = seconds < 60
    private static let manyConnections = 100

    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .timeLimit(.minutes(180)))
    func hosts_troubleOnPostgreSQL_loseNothing() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        try await run(server, hosts: 2, [.hang, .connections, .kill, .slow, .jump, .refuse])
    }

    @Test(.timeLimit(.minutes(180))) func hosts_troubleOnSQLite_loseNothing() async throws {
        try await run(nil, hosts: 1, [.hang, .lock, .kill, .slow, .jump, .refuse])
    }

    private func run(
        _ server: PostgresServer?, hosts count: Int, _ troubles: [Trouble]
    ) async throws {
        let hosts = try await EventHosts(
            server, users: Changes.users,
            connectionLimit: server == nil ? nil : Self.manyConnections)
        do {
            try await run(hosts, count, server, troubles)
        } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private func run(
        _ hosts: EventHosts, _ count: Int, _ server: PostgresServer?, _ troubles: [Trouble]
    ) async throws {
        let asker = try Asker(hosts)
        let serving = ServingHosts(
            hosts, count: count, settings: ["limits.messages_per_day": "\(ChaosMail.low)"])
        try serving.start()
        let commands = try ChaosCommands(hosts, backsUp: server == nil, wait: Self.isShort ? 3 : 10)
        let changes = Changes(hosts, pause: Self.isShort ? 0 : 20_000)
        let mail = try ChaosMail(hosts, serving, limit: ChaosMail.low)
        let begun = Date()
        let load = Load()
        for lane in 0..<2 {
            load.begin { round in changes.change(user: (2 * round + lane) % Changes.users) }
        }
        for _ in 0..<3 { load.begin { round in mail.send(round) } }
        load.begin { round in asker.ask(nonce: round, ports: serving.ports) }
        load.begin { round in commands.run(round) }
        load.begin { _ in
            try? hosts.followKeys()
            usleep(100_000)
        }
        var happened: [String: Int] = [:]
        let result = Result {
            let end = ContinuousClock.now + .seconds(Self.seconds)
            var random = SystemRandomNumberGenerator()
            var number = 0
            while ContinuousClock.now < end {
                let trouble = troubles[number % troubles.count]
                number += 1
                try make(trouble, serving, hosts, server, &random)
                happened["\(trouble)", default: 0] += 1
            }
            // On a busy machine the seconds of the short form may end before the first answer.
            try wait("a decision, a forward and a reply", atMost: 2 * standardTimeout) {
                asker.hasDecided && mail.wasTaken(.forward) && mail.wasTaken(.reply)
            }
        }
        load.end()
        try result.get()
        hosts.receiver.rule { _, _ in .status(200) }
        if let server {
            try server.psql("ALTER USER relay CONNECTION LIMIT \(Self.manyConnections)")
        }
        if !Self.isShort {
            // Independent of the earlier rotations, an undisturbed one finishes, and the remaining
            // keys can read everything.
            let rotated = try hosts.run(["keys", "file", "rotate", "--wait", "60"])
            #expect(rotated.status == 0, "\(rotated.output)")
        }
        try hosts.followKeys()
        try hosts.waitUntilTaken()
        try hosts.checkOrder()
        try changes.check()
        asker.check()
        try mail.check(hosts: count, from: begun, to: Date())
        commands.check()
        #expect(!hosts.logged.contains { $0.contains("@home.example") }, "an inbox was logged")
        let troubles = happened.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(
            separator: ", ")
        print(
            "chaos: \(Int(Date().timeIntervalSince(begun))) s; \(troubles); \(changes.summary); \(asker.summary); \(mail.summary); "
                + "\(commands.summary); \(hosts.receiver.taken.count) arrivals")
    }

    private enum Trouble { case hang, connections, lock, kill, slow, jump, refuse }

    /// Causes one trouble, and ends it.
    private func make(
        _ trouble: Trouble, _ serving: ServingHosts, _ hosts: EventHosts, _ server: PostgresServer?,
        _ random: inout SystemRandomNumberGenerator
    ) throws {
        let host = Int.random(in: 0..<serving.count, using: &random)
        func wait(_ range: ClosedRange<Double>) {
            let part = Self.isShort ? 0.2 : 1
            usleep(UInt32(part * Double.random(in: range, using: &random) * 1_000_000))
        }
        switch trouble {
        case .hang:
            serving.signal(host, SIGSTOP)
            wait(1...9)
            serving.signal(host, SIGCONT)
        case .kill: try serving.kill(host, ahead: Int.random(in: -20...20, using: &random))
        case .connections:
            // Fewer than are open now, so ended connections cannot all be opened again.
            try server?.psql(
                "ALTER USER relay CONNECTION LIMIT \(Int.random(in: 2...12, using: &random))")
            try server?.psql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay' AND random() < 0.5"
            )
            wait(1...3)
            try server?.psql("ALTER USER relay CONNECTION LIMIT \(Self.manyConnections)")
        case .lock:
            // A process that writes for long. If another one does, it waits for its turn, and gives
            // up.
            _ = try? hosts.store.database.write(.relaxed) { _ in wait(1...4) }
        case .slow:
            hosts.receiver.rule { _, count in count.isMultiple(of: 7) ? .hang : .status(200) }
            wait(1...3)
            hosts.receiver.rule { _, _ in .status(200) }
        case .jump:
            try serving.setClock(host, ahead: [-3600, 3600].randomElement(using: &random) ?? 3600)
            wait(1...5)
            try serving.setClock(host, ahead: 0)
        case .refuse:
            hosts.receiver.rule { _, count in
                count.isMultiple(of: 3)
                    ? .status(422) : count.isMultiple(of: 5) ? .close : .status(200)
            }
            wait(0.5...1)
            hosts.receiver.rule { _, _ in .status(200) }
        }
    }
}
