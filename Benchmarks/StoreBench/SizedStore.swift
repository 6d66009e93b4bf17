// A store of one size on one engine: filled, or taken from an earlier run.

import Accounts
import BenchReport
import BenchStores
import Database
import Foundation
import PosternConfiguration
import PosternPostgres
import PosternSQLite
import PostfixHarness
import PostgresHarness
import Relay

func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

struct BenchFailure: Error, CustomStringConvertible { let description: String }

/// The cost of a look-up, in µs each.
struct LookUpTime {
    var wall: Double
    /// Processor time of the calling thread.
    var cpu: Double
    /// Processor time of PostgreSQL's process for the connection; 0 for SQLite.
    var server: Double
}

final class SizedStore {
    let count: Int
    private let folder: String
    /// The folder that is removed at the end.
    private let temporary: String?
    private let store: Store
    private let server: PostgresServer?
    /// The database for `postern serve`, if the configuration does not contain it.
    private let url: String?
    /// The numbers that are looked up, in order.
    private let chosen: [Int]

    /// - Parameters:
    ///   - kept: folder in which stores stay for the next run; nil for a temporary one.
    ///   - lookups: the number of addresses that are looked up in a pass.
    init(_ engine: Engine, _ count: Int, kept: String?, lookups: Int) throws {
        self.count = count
        let home =
            kept ?? NSTemporaryDirectory() + "postern-storebench-"
            + UUID().uuidString.prefix(8).lowercased()
        temporary = kept == nil ? home : nil
        folder = "\(home)/\(engine.rawValue)-\(count)"
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        if !FileManager.default.fileExists(atPath: folder + "/postern.yaml") {
            let made = try ManagedProcess.run(
                try ManagedProcess.builtProduct("postern"),
                ["init", "--directory", folder, "--relay-domain", Seeding.domain])
            guard made.status == 0 else { throw BenchFailure(description: made.output) }
        }
        let (settings, _) = try Installation.configuration(
            flag: folder + "/postern.yaml", environment: [:])
        let keys = try KeyFile.read(path: settings.keyFilePath)
        let database: any Database
        switch engine {
        case .sqlite:
            (server, url) = (nil, nil)
            database = try settings.database.open()
        case .postgres:
            guard let binaries = PostgresServer.installed else {
                throw BenchFailure(description: "PostgreSQL is not installed")
            }
            // Next to the installation's folder, which no other user may enter. Memory as the
            // manual advises for a dedicated machine, for an eighth of this one's memory.
            let server = try PostgresServer(
                binaries: binaries, data: folder + ".data",
                settings: ["shared_buffers=2GB", "max_wal_size=8GB", "maintenance_work_mem=1GB"])
            let url = try server.url(schema: "bench")
            (self.server, self.url) = (server, url)
            var patient = PostgresDatabase.Settings()
            patient.statementMilliseconds = 3_600_000
            database = try PostgresDatabase(url: url, settings: patient)
        }
        let start = seconds(CLOCK_MONOTONIC)
        let migrated = try Migrator().migrate(database, now: Seeding.now)
        let took = seconds(CLOCK_MONOTONIC) - start
        store = Store(database: database, keys: keys, relayDomains: [Seeding.domain])
        // The same numbers in every run, so that the inboxes of a kept store match them.
        var generator = SplitMix64(state: UInt64(count))
        chosen = (0..<lookups).map { _ in Int.random(in: 1...count, using: &generator) }
        let mark = folder + "/filled"
        if let sealed = (try? String(contentsOfFile: mark, encoding: .utf8)).flatMap({ Int($0) }) {
            if sealed < lookups { try seal(keys, mark) }
            print(
                String(
                    format: "%@, %d addresses: kept; %d migrations in %.1f s", engine.rawValue,
                    count, migrated.applied.count,
                    took))
        } else {
            let start = seconds(CLOCK_MONOTONIC)
            try Seeding.fill(store, engine, count: count)
            try seal(keys, mark)
            print(
                String(
                    format: "%@, %d addresses: filled in %.0f s", engine.rawValue, count,
                    seconds(CLOCK_MONOTONIC) - start))
        }
        fflush(nil)
        // SQLite reads the data of an earlier run from its log until a commit moves it into the
        // file.
        try store.database.write(.durable) { connection throws(StoreFailure) in
            _ = try connection.run("UPDATE settings SET value = value")
        }
    }

    private func seal(_ keys: KeyRing, _ mark: String) throws {
        try Seeding.seal(store, keys: keys, users: Array(Set(chosen)))
        try String(chosen.count).write(toFile: mark, atomically: true, encoding: .utf8)
    }

    /// Looks up like the relay's directory, one after another: the median of nine parts.
    func lookUp() throws -> LookUpTime {
        let directory = StoreDirectory(store: store, counters: nil) { Seeding.now }
        func pass(_ numbers: some Sequence<Int>) throws {
            for number in numbers {
                guard
                    let account = try directory.account(
                        relayAddress: Seeding.localPart(number), domain: Seeding.domain),
                    account.inbox != nil
                else { throw BenchFailure(description: "address \(number) is not found") }
            }
        }
        try pass(chosen)
        // One thread always gets the connection that it returned last.
        let backend =
            server == nil
            ? nil
            : try store.database.read { connection throws(StoreFailure) in
                try connection.value("SELECT pg_backend_pid()", Int64.self)
            }
        func clocks() -> LookUpTime {
            LookUpTime(
                wall: seconds(CLOCK_MONOTONIC), cpu: seconds(CLOCK_THREAD_CPUTIME_ID),
                server: backend.map(Self.processorTime) ?? 0)
        }
        let parts = (0..<9).map { part in
            chosen.indices.filter { $0 % 9 == part }.map { chosen[$0] }
        }
        var times: [LookUpTime] = []
        for part in parts where !part.isEmpty {
            let start = clocks()
            try pass(part)
            let end = clocks()
            let number = Double(part.count) / 1e6
            times.append(
                LookUpTime(
                    wall: (end.wall - start.wall) / number, cpu: (end.cpu - start.cpu) / number,
                    server: (end.server - start.server) / number))
        }
        return times.median
    }

    /// Seconds of processor time that a process has used.
    private static func processorTime(_ process: Int64) -> Double {
        let text =
            (try? String(contentsOfFile: "/proc/\(process)/schedstat", encoding: .utf8)) ?? ""
        return text.split(separator: " ").first.flatMap { Double($0) }.map { $0 / 1e9 } ?? 0
    }

    /// Seconds from the start of `postern serve` until it accepts mail.
    func start() throws -> Double {
        // Short, as the path of a socket has at most 107 octets.
        let socket = NSTemporaryDirectory() + "storebench-\(getpid()).sock"
        var settings = [
            "milter.socket=unix:\(socket)", "http.listen=127.0.0.1:0",
            "operator_address=ops@operator.example",
            "dns.servers=127.0.0.1:9",
        ]
        if let url { settings.append("database=\(url)") }
        let begin = seconds(CLOCK_MONOTONIC)
        let process = try ManagedProcess(
            try ManagedProcess.builtProduct("postern"),
            ["serve", "--config", folder + "/postern.yaml"] + settings.flatMap { ["--set", $0] })
        defer { process.end() }
        try process.waitForLine(containing: "serving")
        let took = seconds(CLOCK_MONOTONIC) - begin
        process.signal(SIGTERM)
        try process.waitForExit()
        return took
    }

    func end() {
        try? store.database.close()
        if temporary == nil { server?.stop() }
        server?.remove()
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}

extension [LookUpTime] {
    var median: LookUpTime {
        LookUpTime(wall: map(\.wall).median, cpu: map(\.cpu).median, server: map(\.server).median)
    }
}

/// The same numbers from the same start (Steele, Lea, Flood 2014).
private struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
