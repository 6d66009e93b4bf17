// Two hosts on one PostgreSQL, and everything that may happen to hosts, clocks, server and receiver: nothing acknowledged is lost.

import Foundation
import Identity
import PostfixHarness
import PosternServer
import PosternStore
import PostgresHarness
import Synchronization
import Testing

@Suite(.enabled(if: PostgresServer.installed != nil && EventHosts.hasCompiler, "PostgreSQL or a C compiler is not installed"))
struct ChaosTests {
    /// `make chaos` sets more.
    private static let seconds = ProcessInfo.processInfo.environment["POSTERN_CHAOS_SECONDS"].flatMap { Double($0) } ?? 20
    private static let users = 12

    @Test(.timeLimit(.minutes(180))) func nothingAcknowledgedIsLostWhateverHappens() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let hosts = try await EventHosts(server, users: Self.users, connectionLimit: Self.manyConnections)
        do {
            try await run(hosts, server)
        } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private static let manyConnections = 100

    private func run(_ hosts: EventHosts, _ server: PostgresServer) async throws {
        let (signing, _) = try IdentitySigningKey.generate()
        let asker = try Asker(hosts, signing)
        let pair = Pair(hosts)
        try pair.start()
        let changes = Changes(hosts)
        let isOver = Watched(false)
        let group = DispatchGroup()
        func begin(_ body: @escaping @Sendable (_ round: Int) -> Void) {
            group.enter()
            Thread.detachNewThread {
                var round = 0
                while !isOver.with({ $0 }) {
                    body(round)
                    round += 1
                }
                group.leave()
            }
        }
        for lane in 0..<2 { begin { round in changes.change(user: (2 * round + lane) % Self.users) } }
        begin { round in asker.ask(nonce: round, ports: pair.ports) }
        begin { round in
            let commands = [["status"], ["event", "list"], ["team", "list"], ["event", "retry"], ["account", "list", "juice"]]
            _ = try? ManagedProcess.run(hosts.program, commands[round % commands.count] + ["--config", hosts.data])
            usleep(200_000)
        }
        var happened: [String] = []
        let result = Result {
            let end = ContinuousClock.now + .seconds(Self.seconds)
            var random = SystemRandomNumberGenerator()
            var number = 0
            while ContinuousClock.now < end {
                let kind = Trouble.allCases[number % Trouble.allCases.count]
                number += 1
                happened.append(try make(kind, pair, hosts, server, &random))
            }
        }
        isOver.with { $0 = true }
        group.wait()
        try result.get()
        hosts.receiver.rule { _, _ in .status(200) }
        try server.psql("ALTER USER relay CONNECTION LIMIT \(Self.manyConnections)")
        try hosts.waitUntilTaken()
        try hosts.checkOrder()
        try changes.check()
        asker.check()
        print("chaos: \(happened.count) troubles (\(happened.joined(separator: ", "))); \(changes.summary); \(asker.summary); "
            + "\(hosts.receiver.taken.count) arrivals")
    }

    private enum Trouble: CaseIterable { case hang, connections, kill, slow, refuse }

    /// Something happens, and is over.
    private func make(
        _ trouble: Trouble, _ pair: Pair, _ hosts: EventHosts, _ server: PostgresServer, _ random: inout SystemRandomNumberGenerator
    ) throws -> String {
        let host = Int.random(in: 0..<2, using: &random)
        func wait(_ range: ClosedRange<Double>) { usleep(UInt32(Double.random(in: range, using: &random) * 1_000_000)) }
        switch trouble {
        case .hang:
            pair.signal(host, SIGSTOP)
            wait(1...9)
            pair.signal(host, SIGCONT)
            return "hung"
        case .kill:
            let ahead = Int.random(in: -20...20, using: &random)
            try pair.kill(host, ahead: ahead)
            return "killed, clock \(ahead)"
        case .connections:
            // Fewer than there are: what ends is not made again.
            try server.psql("ALTER USER relay CONNECTION LIMIT \(Int.random(in: 2...12, using: &random))")
            try server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay' AND random() < 0.5")
            wait(1...3)
            try server.psql("ALTER USER relay CONNECTION LIMIT \(Self.manyConnections)")
            return "connections"
        case .slow:
            hosts.receiver.rule { _, count in count.isMultiple(of: 7) ? .hang : .status(200) }
            wait(1...3)
            hosts.receiver.rule { _, _ in .status(200) }
            return "slow"
        case .refuse:
            hosts.receiver.rule { _, count in count.isMultiple(of: 3) ? .status(422) : count.isMultiple(of: 5) ? .close : .status(200) }
            wait(0.5...1)
            hosts.receiver.rule { _, _ in .status(200) }
            return "refused"
        }
    }
}

/// The two hosts, each of which may be another process by now.
private final class Pair: Sendable {
    private let hosts: EventHosts
    private let running = Watched<[(process: ManagedProcess, port: UInt16)]>([])

    init(_ hosts: EventHosts) { self.hosts = hosts }

    func start() throws {
        for number in 1...2 {
            let process = try serve("mx\(number)", [:])
            running.with { $0.append(process) }
        }
    }

    private func serve(_ name: String, _ environment: [String: String]) throws -> (ManagedProcess, UInt16) {
        let process = try hosts.serve(name, environment: environment)
        let line = try process.waitForLine(containing: "listening for HTTP")
        let port = line.split(separator: " ").first { $0.hasPrefix("address=") }?.split(separator: ":").last.flatMap { UInt16($0) }
        return (process, try #require(port))
    }

    var ports: [UInt16] { running.with { $0.map(\.port) } }

    func signal(_ host: Int, _ number: Int32) { running.with { $0[host].process.signal(number) } }

    func kill(_ host: Int, ahead: Int) throws {
        let process = running.with { $0[host].process }
        process.signal(SIGKILL)
        _ = try process.waitForExit()
        let other = try serve("mx\(host + 1)", hosts.clock(ahead: ahead))
        running.with { $0[host] = other }
    }
}

/// Switches forwarding, and remembers what was acknowledged.
private final class Changes: Sendable {
    private let hosts: EventHosts
    /// What each user's forwarding became, one after the other; a user is changed by one thread.
    private let known = Watched<[Int: [Bool]]>([:])
    private let failed = Watched(0)

    init(_ hosts: EventHosts) { self.hosts = hosts }

    func change(user: Int) {
        let was = known.with { $0[user]?.last } ?? true
        do {
            try hosts.toggle(user, on: !was)
            note(user, !was)
        } catch {
            // Nobody was told. What became of it shows later.
            failed.with { $0 += 1 }
            for _ in 0..<200 {
                if let isOn = try? hosts.isForwarding(user) {
                    if isOn != was { note(user, isOn) }
                    return
                }
                usleep(50_000)
            }
            Issue.record("the store did not come back: \(error)")
        }
    }

    private func note(_ user: Int, _ isOn: Bool) { known.with { $0[user, default: []].append(isOn) } }

    func check() throws {
        let events = Dictionary(grouping: try hosts.store.outbox.events(limit: 1_000_000).reversed(), by: \.accountNumber)
        for (user, states) in known.with({ $0 }) {
            let written = events[try hosts.account(user)]?.map(\.type) ?? []
            #expect(written == states.map { $0 ? .emailEnabled : .emailDisabled }, "user \(user)")
            #expect(try hosts.isForwarding(user) == states.last)
        }
    }

    var summary: String { "\(known.with { $0.values.reduce(0) { $0 + $1.count } }) changes, \(failed.with { $0 }) attempts failed" }
}

/// Asks both hosts at once about the same nonce.
private final class Asker: Sendable {
    private let hosts: EventHosts
    private let key: String
    private let signing: IdentitySigningKey
    private struct Counts {
        var ids: [Int: Set<String>] = [:]
        var answers: [Int: Int] = [:]
    }
    private let counts = Watched(Counts())

    init(_ hosts: EventHosts, _ signing: IdentitySigningKey) throws {
        self.hosts = hosts
        self.signing = signing
        let keys = hosts.data + "/issuer.json"
        try Data(PublishedKeys.document([signing.publicJWK])).write(to: URL(fileURLWithPath: keys))
        func run(_ arguments: String...) throws -> String {
            let result = try ManagedProcess.run(hosts.program, arguments + ["--config", hosts.data])
            try #require(result.status == 0, "\(result.output)")
            return result.output
        }
        _ = try run("issuer", "add", "other", "--iss", "https://issuer.example", "--jwks-inline", keys)
        let issued = try run("key", "issue", "juice", "--scope", "decisions:write")
        key = try #require(issued.split(separator: "\n").first { $0.hasPrefix("pk_") }.map(String.init))
    }

    func ask(nonce: Int, ports: [UInt16]) {
        let now = Int64(Date().timeIntervalSince1970)
        guard let token = try? signing.sign([
            "iss": "https://issuer.example", "aud": "com.juice", "sub": .string("s\(nonce)"), "iat": .integer(now - 30),
            "exp": .integer(now + 3_600), "nonce": .string("n\(nonce)"),
        ]) else { return }
        let body = #"{"event":"sign_up","client_id":"com.juice","identity_token":"\#(token)","nonce":"n\#(nonce)"}"#
        let group = DispatchGroup()
        for port in ports {
            group.enter()
            Thread.detachNewThread { [self] in
                let answer = try? HTTPClient.post(port: port, path: "/v1/decisions", bearer: key, body: body, timeout: 5)
                let parts = answer?.body.components(separatedBy: "\"decision_id\":\"") ?? []
                let id = parts.count == 2 ? parts[1].components(separatedBy: "\"").first : nil
                // What was said without the store is no decision about a nonce, and says so.
                let isDegraded = answer?.body.contains("\"degraded\":true") == true
                counts.with { counts in
                    counts.answers[answer?.status ?? 0, default: 0] += 1
                    if answer?.status == 200, !isDegraded, let id { counts.ids[nonce, default: []].insert(id) }
                }
                group.leave()
            }
        }
        group.wait()
        usleep(50_000)
    }

    func check() {
        let ids = counts.with { $0.ids }
        #expect(!ids.isEmpty)
        for (nonce, ids) in ids { #expect(ids.count == 1, "nonce \(nonce) has \(ids.count) decisions") }
    }

    var summary: String {
        let counts = counts.with { $0 }
        return "\(counts.ids.count) nonces decided, answers " + counts.answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
    }
}
