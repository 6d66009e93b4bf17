// Hosts of one installation: `serve` processes on one PostgreSQL, without Postfix, and a receiver of their events.

import DNSClient
import DNSTesting
import Foundation
import InternetMessage
import PostfixHarness
import PosternServer
import PosternStore
import PostgresHarness
import Testing

/// Team juice with an endpoint, and users who have an address each. Ends its processes with its last reference.
final class EventHosts: Sendable {
    let program: String
    let receiver: TestReceiver
    let store: Store
    let data: String
    /// Relay addresses, one for each user.
    let addresses: [AddrSpec]
    private let folder: URL
    private let dns: TestDNSServer
    private let installation: Installation
    private let started = Watched<[ManagedProcess]>([])
    private var processes: [ManagedProcess] { started.with { $0 } }

    static let hasCompiler = FileManager.default.isExecutableFile(atPath: "/usr/bin/cc")

    /// What a process is started with whose clock is wrong by so many seconds; what measures time only goes on as it does.
    func clock(ahead seconds: Int) throws -> [String: String] {
        let library = folder.appendingPathComponent("wrong_clock.so").path
        if !FileManager.default.fileExists(atPath: library) {
            let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Tools/wrong_clock.c").path
            let made = try ManagedProcess.run("/usr/bin/cc", ["-O1", "-shared", "-fPIC", "-o", library, source])
            try #require(made.status == 0, "\(made.output)")
        }
        let file = folder.appendingPathComponent("clock-\(UUID().uuidString)")
        try Data("\(seconds)".utf8).write(to: file)
        return ["LD_PRELOAD": library, "WRONG_CLOCK": file.path]
    }

    /// - Parameter connectionLimit: connections that the server takes from all of them together; it can be changed for user `relay`.
    init(_ server: PostgresServer, users: Int, connectionLimit: Int? = nil) async throws {
        program = try ManagedProcess.builtProduct("postern")
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("ph-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        receiver = try await TestReceiver()
        dns = try TestDNSServer(zone: ZoneFile(json: Data(#"{"hooks.example": {"A": ["127.0.0.1"]}}"#.utf8)))
        data = folder.appendingPathComponent("data").path
        let schema = "e\(UUID().uuidString.prefix(8).lowercased())"
        var database = try server.url(schema: schema)
        if let connectionLimit {
            try server.psql("CREATE USER relay CONNECTION LIMIT \(connectionLimit); ALTER SCHEMA \(schema) OWNER TO relay")
            database = try server.url(schema: schema, user: "relay")
        }
        let made = try ManagedProcess.run(
            program, ["init", "--directory", data, "--relay-domain", "relay.example", "--database", database])
        try #require(made.status == 0, "\(made.output)")
        installation = try Installation.open(flag: data, environment: [:], now: 1)
        store = installation.store
        let change = Change(actor: "uid:0", now: 1)
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        _ = try store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://hooks.example:\(receiver.port)/"), allowsPrivate: true, change)
        let store = store
        addresses = try (0..<users).map { number in
            _ = try store.users.add(
                id: "u\(number)", name: nil, inbox: InboxAddress(AddrSpec(localPart: "u\(number)", domain: "home.example")),
                isVerified: true, change)
            return try store.addresses.issue(team: "juice", user: "u\(number)", change).address.address
        }
    }

    /// Starts a host; returns when it serves.
    func serve(_ name: String, settings: [String: String] = [:], environment: [String: String] = [:]) throws -> ManagedProcess {
        let all = [
            "hostname": "\(name).relay.example", "milter.socket": "unix:\(folder.path)/\(name).sock", "dns.servers": "\(dns.address)",
            "http.listen": "127.0.0.1:0", "http.public_url": "https://relay.example", "operator_address": "ops@operator.example",
            "events.trusted_certificates": TestReceiver.certificate("authority.pem"),
        ].merging(settings) { $1 }
        let arguments = ["serve", "--config", data] + all.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
        let process = try ManagedProcess(program, arguments, environment: environment)
        started.with { $0.append(process) }
        try process.waitForLine(containing: "serving")
        return process
    }

    /// Switches forwarding of every user, `rounds` times each: as many events for each of them.
    func toggleAll(rounds: Int, from start: Int = 0) throws {
        for round in start..<start + rounds {
            for user in addresses.indices { try toggle(user, on: round % 2 == 1) }
        }
    }

    func toggle(_ user: Int, on isOn: Bool) throws {
        let change = Change(actor: "uid:0", now: Int64(Date().timeIntervalSince1970))
        try store.addresses.setForwarding(addresses[user], on: isOn, change)
    }

    private func address(_ user: Int) throws -> RelayAddress {
        try #require(try store.addresses.addresses(team: "juice", user: "u\(user)").first)
    }

    func isForwarding(_ user: Int) throws -> Bool { try address(user).isForwardingOn }
    func account(_ user: Int) throws -> Int64 { try address(user).account.number }

    /// Waits until every event was taken.
    func waitUntilTaken(sourceLocation: SourceLocation = #_sourceLocation) throws {
        var (best, end) = (0, Date(timeIntervalSinceNow: 2 * patience))
        while true {
            let all = try store.outbox.events(limit: 1_000_000)
            guard !all.isEmpty else { throw HarnessError("no event was written") }
            let taken = Set(receiver.taken.map(\.jti))
            if all.allSatisfy({ taken.contains($0.jti) && $0.state == .delivered }) { return }
            if taken.count > best { (best, end) = (taken.count, Date(timeIntervalSinceNow: 2 * patience)) }
            guard Date() < end else {
                let logs = processes.map { $0.lines.suffix(5).joined(separator: "\n") }.joined(separator: "\n--\n")
                throw HarnessError("\(taken.count) of \(all.count) events were taken\n\(logs)")
            }
            usleep(50_000)
        }
    }

    /// What arrived of each account, repetitions left out, is what was written, in that order.
    func checkOrder(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let written = try store.outbox.events(limit: 1_000_000).reversed()
        var seen: Set<String> = []
        let firsts = receiver.taken.filter { seen.insert($0.jti).inserted }
        for sub in Set(written.map(\.sub)) {
            let times = firsts.filter { $0.sub == sub }.map(\.eventTime)
            #expect(
                firsts.filter { $0.sub == sub }.map(\.jti) == written.filter { $0.sub == sub }.map(\.jti), "out of order",
                sourceLocation: sourceLocation)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 }, "times do not rise", sourceLocation: sourceLocation)
        }
    }

    func stop() async {
        for process in processes {
            process.signal(SIGCONT)
            process.signal(SIGTERM)
            _ = try? process.waitForExit()
        }
        await receiver.stop()
        dns.stop()
        try? installation.close()
        try? FileManager.default.removeItem(at: folder)
    }
}
