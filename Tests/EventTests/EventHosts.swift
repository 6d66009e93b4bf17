// Hosts of one installation: `serve` processes on one store, without Postfix, and a
// receiver of their events.

import Accounts
import DNSClient
import DNSTesting
import Events
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixHarness
import PostgresHarness
import Testing

/// Team juice with an endpoint, and users with an address each. Ends its processes with its last
/// reference.
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

    /// The environment of a process whose clock is wrong by this number of seconds; its monotonic
    /// clock stays right.
    func clock(ahead seconds: Int) throws -> [String: String] {
        try settableClock(ahead: seconds).environment
    }

    /// A clock that can be set later.
    func settableClock(ahead seconds: Int) throws -> HostClock {
        let library = folder.appendingPathComponent("wrong_clock.so").path
        if !FileManager.default.fileExists(atPath: library) {
            let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Tools/wrong_clock.c")
                .path
            let made = try ManagedProcess.run(
                "/usr/bin/cc", ["-O1", "-shared", "-fPIC", "-o", library, source])
            try #require(made.status == 0, "\(made.output)")
        }
        let clock = HostClock(
            file: folder.appendingPathComponent("clock-\(UUID().uuidString)"), library: library)
        try clock.set(ahead: seconds)
        return clock
    }

    /// - Parameters:
    ///   - server: nil for SQLite.
    ///   - connectionLimit: connections that the server accepts from all of them together; it can
    ///     be changed for user `relay`.
    ///   - standby: a second server, which continues if the first one is gone.
    ///   - place: an existing folder for the installation; nil for a new one.
    init(
        _ server: PostgresServer?, users: Int, connectionLimit: Int? = nil,
        standby: PostgresServer? = nil, place: String? = nil
    ) async throws {
        program = try ManagedProcess.builtProduct("postern")
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "ph-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        receiver = try await TestReceiver()
        dns = try TestDNSServer(zone: ZoneFile(json: Data(Self.zone.utf8)))
        data =
            (place.map { URL(fileURLWithPath: $0) } ?? folder).appendingPathComponent("data").path
        let schema = "e\(UUID().uuidString.prefix(8).lowercased())"
        var database = try server?.url(schema: schema)
        if let server, let connectionLimit {
            try server.psql(
                "CREATE USER relay CONNECTION LIMIT \(connectionLimit); ALTER SCHEMA \(schema) OWNER TO relay"
            )
            database = try server.url(schema: schema, user: "relay")
        }
        if let server, let standby {
            database = database?.replacingOccurrences(
                of: "@\(server.host)/", with: "@\(server.host),\(standby.host)/")
        }
        // A copy would not be on the disk yet, and a test that removes the disk would lose it.
        if database != nil || place != nil {
            let made = try ManagedProcess.run(
                program,
                ["init", "--directory", data, "--relay-domain", "relay.example"]
                    + (database.map { ["--database", $0] } ?? []))
            try #require(made.status == 0, "\(made.output)")
        } else {
            try InstallationCopy.make(data, relayDomains: ["relay.example"])
        }
        installation = try Installation.open(flag: data, environment: [:], now: 1)
        store = installation.store
        let change = Change(actor: "uid:0", now: 1)
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        try store.sources.add(
            team: "juice", store.sources.checked("juice.example", envelopeDomain: nil, now: 0),
            change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        _ = try store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://hooks.example:\(receiver.port)/"),
            allowsPrivate: true, change)
        let store = store
        addresses = try (0..<users).map { number in
            _ = try store.users.add(
                id: "u\(number)", name: nil,
                inbox: InboxAddress(AddrSpec(localPart: "u\(number)", domain: "home.example")),
                isVerified: true, change)
            return try store.addresses.issue(team: "juice", user: "u\(number)", change).address
                .address
        }
    }

    private static let zone = """
        {"hooks.example": {"A": ["127.0.0.1"]}, "juice.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
         "home.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}}
        """

    /// Runs a command of `postern`.
    func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
        try ManagedProcess.run(program, arguments + ["--config", data])
    }

    /// A new API key, by the arguments of `postern api-key issue`.
    func key(_ arguments: String...) throws -> String {
        let issued = try run(["api-key", "issue"] + arguments)
        return try #require(
            issued.output.split(separator: "\n").first { $0.hasPrefix("pk_") }.map(String.init),
            "\(issued.output)")
    }

    /// A folder that is deleted with everything else.
    func newFolder(_ name: String) throws -> String {
        let path = folder.appendingPathComponent(name).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// Applies replaced keys to `store` in this process, as hosts do.
    func followKeys() throws {
        let ring = try KeyFile.read(path: installation.configuration.keyFilePath)
        if ring != installation.keys { installation.store.keys.exchange(ring) }
    }

    /// The log lines of the hosts.
    var logged: [String] { processes.flatMap(\.lines) }

    /// The socket of a host's milter.
    func socket(_ name: String) -> String { "\(folder.path)/\(name).sock" }

    /// Starts a host; returns when it serves.
    func serve(
        _ name: String, settings: [String: String] = [:], environment: [String: String] = [:]
    ) throws -> ManagedProcess {
        let all = [
            "hostname": "\(name).relay.example", "milter.socket": "unix:\(socket(name))",
            "dns.servers": "\(dns.address)",
            "http.listen": "127.0.0.1:0", "http.public_url": "https://relay.example",
            "operator_address": "ops@operator.example",
            "events.trusted_certificates": TestReceiver.certificate("authority.pem"),
        ].merging(settings) { $1 }
        let arguments =
            ["serve", "--config", data]
            + all.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
        let process = try ManagedProcess(program, arguments, environment: environment)
        started.with { $0.append(process) }
        try process.waitForLine(containing: "serving")
        return process
    }

    /// Switches forwarding of every user `rounds` times, which makes the same number of events for
    /// each.
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

    /// Waits until the receiver has accepted every event.
    func waitUntilTaken(sourceLocation: SourceLocation = #_sourceLocation) throws {
        var (best, end) = (0, Date(timeIntervalSinceNow: 2 * standardTimeout))
        while true {
            let all = try store.outbox.events(limit: 1_000_000)
            guard !all.isEmpty else { throw HarnessError("no event was written") }
            let taken = Set(receiver.taken.map(\.jti))
            if all.allSatisfy({ taken.contains($0.jti) && $0.state == .delivered }) { return }
            if taken.count > best {
                (best, end) = (taken.count, Date(timeIntervalSinceNow: 2 * standardTimeout))
            }
            guard Date() < end else {
                let logs = processes.map { $0.lines.suffix(5).joined(separator: "\n") }.joined(
                    separator: "\n--\n")
                throw HarnessError("\(taken.count) of \(all.count) events were taken\n\(logs)")
            }
            usleep(50_000)
        }
    }

    /// The events that arrived for each account, without repetitions, are the written ones in their
    /// order.
    func checkOrder(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let written = try store.outbox.events(limit: 1_000_000).reversed()
        var seen: Set<String> = []
        let firsts = receiver.taken.filter { seen.insert($0.jti).inserted }
        for sub in Set(written.map(\.sub)) {
            let times = firsts.filter { $0.sub == sub }.map(\.eventTime)
            #expect(
                firsts.filter { $0.sub == sub }.map(\.jti)
                    == written.filter { $0.sub == sub }.map(\.jti), "out of order",
                sourceLocation: sourceLocation)
            #expect(
                zip(times, times.dropFirst()).allSatisfy { $0 < $1 }, "times do not rise",
                sourceLocation: sourceLocation)
        }
    }

    /// Closes `store`, so that a failing file system does not end this process.
    func closeStore() throws { try installation.close() }

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

/// The wrong clock of a process, which may be set while the process runs.
struct HostClock: Sendable {
    let file: URL
    let library: String

    /// The environment of the process.
    var environment: [String: String] { ["LD_PRELOAD": library, "WRONG_CLOCK": file.path] }

    func set(ahead seconds: Int) throws {
        try Data("\(seconds)".utf8).write(to: file, options: .atomic)
    }
}
