// Look-ups of relay addresses in stores of different sizes, on both engines, and how long `postern serve` takes to start on each.
//
// StoreBench [--sizes 10000,1000000,10000000] [--lookups 20000] [--engines sqlite,postgres] [--starts 5] [--check]

import BenchReport
import Foundation
import InternetMessage
import PosternPostgres
import PosternServer
import PosternSQLite
import PosternStore
import PostfixHarness
import PostgresHarness
import RelayCore

let arguments = BenchArguments()
let lookups = arguments.number("lookups", 20_000)
let sizes = arguments.numbers("sizes", [10_000, 1_000_000, 10_000_000])
let engines = Engine.allCases.filter { arguments.words("engines")?.contains($0.rawValue) ?? true }
var report = BenchReport()

func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

struct BenchFailure: Error, CustomStringConvertible { let description: String }

/// A store of one size on one engine.
final class Sized {
    let folder: String
    let engine: Engine
    let count: Int
    let configuration: String
    let store: Store
    private let server: PostgresServer?

    init(_ engine: Engine, _ count: Int) throws {
        (self.engine, self.count) = (engine, count)
        folder = NSTemporaryDirectory() + "postern-storebench-" + UUID().uuidString.prefix(8).lowercased()
        configuration = folder + "/postern.yaml"
        let made = try ManagedProcess.run(
            try ManagedProcess.builtProduct("postern"), ["init", "--directory", folder, "--relay-domain", Seeding.domain])
        guard made.status == 0 else { throw BenchFailure(description: made.output) }
        let (settings, _) = try Installation.configuration(flag: configuration, environment: [:])
        let keys = try KeyFile.read(path: settings.keyFilePath)
        let database: any Database
        switch engine {
        case .sqlite:
            server = nil
            database = try settings.database.open()
        case .postgres:
            guard let binaries = PostgresServer.installed else { throw BenchFailure(description: "PostgreSQL is not installed") }
            let server = try PostgresServer(binaries: binaries)
            self.server = server
            var patient = PostgresDatabase.Settings()
            patient.statementMilliseconds = 3_600_000
            database = try PostgresDatabase(url: try server.url(schema: "bench"), settings: patient)
            _ = try Migrator().migrate(database, now: 1_790_000_000)
        }
        store = Store(database: database, keys: keys, relayDomains: [Seeding.domain])
        let start = seconds(CLOCK_MONOTONIC)
        try Seeding.fill(store, engine, count: count, now: 1_790_000_000)
        var generator = SystemRandomNumberGenerator()
        chosen = (0..<lookups).map { _ in Int.random(in: 1...count, using: &generator) }
        try Seeding.seal(store, keys: keys, users: Array(Set(chosen)))
        print(String(format: "%@, %d addresses: filled in %.0f s", engine.rawValue, count, seconds(CLOCK_MONOTONIC) - start))
        fflush(nil)
    }

    /// The addresses that are looked up, in the order in which they are.
    private let chosen: [Int]

    /// µs a look-up: as the relay's directory makes it, one after another; the median of nine parts.
    /// - Returns: of wall time, and of this thread's processor time.
    func lookUp() throws -> (wall: Double, cpu: Double) {
        let directory = StoreDirectory(store: store, counters: nil) { 1_790_000_000 }
        func pass(_ numbers: some Sequence<Int>) throws {
            for number in numbers {
                guard let account = try directory.account(relayAddress: Seeding.localPart(number), domain: Seeding.domain), account.inbox != nil
                else { throw BenchFailure(description: "address \(number) is not found") }
            }
        }
        try pass(chosen)
        let parts = (0..<9).map { part in chosen.indices.filter { $0 % 9 == part }.map { chosen[$0] } }
        var times: [(wall: Double, cpu: Double)] = []
        for part in parts where !part.isEmpty {
            let start = (seconds(CLOCK_MONOTONIC), seconds(CLOCK_THREAD_CPUTIME_ID))
            try pass(part)
            let number = Double(part.count) / 1e6
            times.append(((seconds(CLOCK_MONOTONIC) - start.0) / number, (seconds(CLOCK_THREAD_CPUTIME_ID) - start.1) / number))
        }
        return (times.map(\.wall).median, times.map(\.cpu).median)
    }

    /// Seconds from the start of `postern serve` until it takes mail.
    func start() throws -> Double {
        let begin = seconds(CLOCK_MONOTONIC)
        let process = try ManagedProcess(
            try ManagedProcess.builtProduct("postern"),
            [
                "serve", "--config", configuration, "--set", "milter.socket=unix:\(folder)/milter.sock", "--set", "http.listen=127.0.0.1:0",
                "--set", "operator_address=ops@operator.example", "--set", "dns.servers=127.0.0.1:9",
            ])
        defer { process.end() }
        try process.waitForLine(containing: "serving")
        let took = seconds(CLOCK_MONOTONIC) - begin
        process.signal(SIGTERM)
        try process.waitForExit()
        return took
    }

    func remove() {
        try? store.database.close()
        server?.stop(immediately: true)
        try? FileManager.default.removeItem(atPath: folder)
    }
}

@MainActor func measure(_ engine: Engine) throws {
    // All sizes stand beside each other and are measured in turn: what else the machine does falls on all alike.
    let stores = try sizes.map { try Sized(engine, $0) }
    defer { for store in stores { store.remove() } }
    var times = [[(wall: Double, cpu: Double)]](repeating: [], count: stores.count)
    for _ in 0..<3 { for (index, store) in stores.enumerated() { times[index].append(try store.lookUp()) } }
    for (index, store) in stores.enumerated() {
        let wall = times[index].map(\.wall).median
        // PostgreSQL's own processor time is not this thread's.
        let ratio = engine == .sqlite
            ? zip(times[index], times[0]).map { $0.cpu / $1.cpu }.median : zip(times[index], times[0]).map { $0.wall / $1.wall }.median
        let name = "lookup.\(engine.rawValue).\(store.count)"
        report.add(BenchResult(name, wall, "µs", ratio: index == 0 ? nil : ratio, against: index == 0 ? nil : "lookup.\(engine.rawValue).\(sizes[0])"))
        report.add(BenchResult(name + ".cpu", times[index].map(\.cpu).median, "µs"))
        if index > 0 { report.goal("\(engine.rawValue): look-up with \(store.count) by one with \(sizes[0])", ratio, 1.5, atMost: true) }
    }
    guard engine == .sqlite else { return }
    for store in stores {
        let took = try (0..<arguments.number("starts", 5)).map { _ in try store.start() }.median
        report.add(BenchResult("start.\(engine.rawValue).\(store.count)", took, "s"))
        report.goal("\(engine.rawValue): seconds to start with \(store.count)", took, 1, atMost: true)
    }
}

var status: Int32 = 0
do {
    print(Machine.description)
    fflush(nil)
    for engine in engines { try measure(engine) }
    report.printTable()
    try report.write()
    if !report.missed.isEmpty, arguments.flag("check") { status = 1 }
} catch {
    FileHandle.standardError.write(Data("StoreBench: \(error)\n".utf8))
    status = 1
}
exit(status)
