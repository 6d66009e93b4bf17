// Three processes write to one PostgreSQL, as three hosts do: how long do their writers stand still
// for each other, alone and beside an import and a transfer.

import Accounts
import BenchReport
import Database
import Foundation
import InternetMessage
import MailCrypto
import PosternPostgres
import Support
import Synchronization

/// A kind of change that a host makes.
enum WriterKind: String, CaseIterable, Codable, Sendable {
    /// A place in the daily limit of one account, as a message that is relayed.
    case mail
    /// A user returns to an app.
    case signIn = "sign-in"
    /// A new user with a first consent.
    case signUp = "sign-up"
    /// A mark that is durable before the answer, within half a second, as the nonce of a decision.
    case decision
}

/// One change: milliseconds since 1970 of its end, microseconds that it took, and whether it
/// failed.
struct WriterSample: Codable, Sendable {
    let kind: WriterKind
    let at: Int64
    let took: Int64
    let failed: Bool
}

/// What a process sends its parent.
struct WriterOutput: Codable, Sendable {
    let samples: [WriterSample]
    /// Counts by `WriterWait`.
    let waits: [String: Int]
}

enum Writers {
    /// The variable with the URL of the database, for a child.
    static let variable = "POSTERN_WRITERS_URL"
    static let processes = 3
    /// A writer of one row must not stand still for longer (microseconds).
    private static let stall: Int64 = 250_000

    // MARK: A child

    /// Writes until standard input ends, then prints what it measured.
    static func runChild(_ url: String) async throws {
        var settings = PostgresDatabase.Settings()
        settings.connections = 10
        let database = try PostgresDatabase(url: url, settings: settings)
        guard let keys = KeyRing(random: (0..<96).map { UInt8($0) }) else {
            throw BenchFailure(description: "no keys")
        }
        let store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        let first = Store(database: database.first, keys: keys, relayDomains: ["relay.example"])
        let accounts = try database.values("SELECT id FROM accounts ORDER BY id", Int64.self)
        let isOver = Mutex(false)
        let samples = Mutex<[WriterSample]>([])
        let process = getpid()
        Thread.detachNewThread {
            while readLine() != nil {}
            isOver.withLock { $0 = true }
        }
        func lane(
            _ kind: WriterKind, perSecond: Double,
            _ body: @escaping @Sendable (_ round: Int) throws -> Void
        ) -> @Sendable () throws -> Void {
            {
                let begin = ContinuousClock.now
                var round = 0
                while !isOver.withLock({ $0 }) {
                    let due = begin + .seconds(Double(round) / perSecond)
                    Thread.sleep(forTimeInterval: max(0, seconds(due - .now)))
                    let start = ContinuousClock.now
                    var failed = false
                    do { try body(round) } catch let failure as StoreFailure {
                        guard failure.isTemporary else { throw failure }
                        failed = true
                    }
                    let took = Int64((ContinuousClock.now - start) / .microseconds(1))
                    let at = Int64(Date().timeIntervalSince1970 * 1000)
                    samples.withLock {
                        $0.append(WriterSample(kind: kind, at: at, took: took, failed: failed))
                    }
                    round += 1
                }
            }
        }
        let day = Day.number(World.now)
        try await together([
            lane(.mail, perSecond: 60) { _ in
                _ = try store.counters.reserve(
                    account: accounts.randomElement() ?? 1, kind: .forwarded, day: day,
                    limit: 1_000_000)
            },
            lane(.signIn, perSecond: 15) { _ in
                _ = try store.grants.authorize(
                    AuthorizationRequest(
                        clientID: "com.milk", userID: "b\(Int.random(in: 1...accounts.count))"),
                    World.change)
            },
            lane(.signUp, perSecond: 10) { round in
                let user = "w\(process)-\(round)"
                _ = try store.users.add(
                    id: user, name: nil,
                    inbox: InboxAddress(AddrSpec(localPart: user, domain: "home.example")),
                    isVerified: true, World.change)
                _ = try store.grants.authorize(
                    AuthorizationRequest(clientID: "com.juice", userID: user), World.change)
            },
            lane(.decision, perSecond: 30) { _ in
                let account = accounts.randomElement() ?? 1
                let mark = (0..<32).map { _ in UInt8.random(in: 0...255) }
                try first.database.write(.durable, timeout: .milliseconds(500)) {
                    connection throws(StoreFailure) in
                    _ = try connection.run(
                        """
                        INSERT INTO once_marks (account_id, purpose, mark, expires_at)
                        VALUES (\(account), 'bench', \(mark), \(World.now + 3_600))
                        """)
                }
            },
        ])
        let waits = Dictionary(
            uniqueKeysWithValues: (database.writerWaits?.all ?? [:]).map { ($0.rawValue, $1) })
        let output = WriterOutput(samples: samples.withLock { $0 }, waits: waits)
        FileHandle.standardOutput.write(try JSONEncoder().encode(output))
        try database.close()
    }

    // MARK: The parent

    /// - Parameters:
    ///   - predicateLocks: `max_pred_locks_per_transaction` of the server.
    ///   - pause: seconds of the phase without import and transfer.
    @MainActor static func measure(
        predicateLocks: Int, consents: Int, rows: Int, pause: Double
    ) async throws {
        let world = try World(
            users: consents, settings: ["max_pred_locks_per_transaction=\(predicateLocks)"])
        defer { world.end() }
        let children = try (0..<processes).map { _ in try child(world.url) }
        // Each pipe must be read while its process writes.
        let readers = children.map { child in read(child.output.fileHandleForReading) }
        func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
        var phases: [(name: String, range: ClosedRange<Int64>)] = []
        func phase(_ name: String, _ body: () async throws -> Void) async throws {
            let begin = now()
            try await body()
            phases.append((name, begin...now()))
            print("  \(name): \(now() - begin) ms")
            fflush(nil)
        }
        try await Task.sleep(for: .seconds(2))
        try await phase("alone") { try await Task.sleep(for: .seconds(pause)) }
        try await phase("import") { try importRows(world, rows) }
        _ = try world.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", World.change)
        try await phase("transfer") {
            let store = world.store
            try await together([
                {
                    // As in the command: a quarter of the time is left for others.
                    try store.transfers.complete(app: "com.juice", World.change) { _, took in
                        Thread.sleep(forTimeInterval: seconds(took / 4))
                    }
                }
            ])
        }
        for child in children { try child.input.fileHandleForWriting.close() }
        var all: [WriterOutput] = []
        for reader in readers { all.append(try await reader.value) }
        for child in children { child.process.waitUntilExit() }
        print("\nthree processes, max_pred_locks_per_transaction = \(predicateLocks)")
        for (name, range) in phases {
            for kind in WriterKind.allCases {
                let found = all.flatMap(\.samples).filter {
                    $0.kind == kind && range.contains($0.at)
                }
                var latencies = Latencies()
                for sample in found { latencies.add(microseconds: UInt64(max(0, sample.took))) }
                let stalls = found.count { $0.took > stall }
                let failures = found.count(where: \.failed)
                print(
                    "  \(name) \(kind.rawValue): \(latencies.line); \(stalls) above 250 ms, \(failures) failed"
                )
                let place = "writers.\(predicateLocks).\(name).\(kind.rawValue)"
                report.add(place, latencies)
                report.add(BenchResult(place + ".stalls", Double(stalls), "changes"))
            }
        }
        let waits = all.reduce(into: [:]) { $0.merge($1.waits, uniquingKeysWith: +) }
        let own = world.database.writerWaits?.all ?? [:]
        for wait in WriterWait.allCases {
            let count = waits[wait.rawValue, default: 0]
            print("  \(wait.rawValue): \(count) in the hosts, \(own[wait, default: 0]) in commands")
            report.add(
                BenchResult(
                    "writers.\(predicateLocks).\(wait.rawValue)", Double(count), "changes"))
        }
        let deadlocks = try world.database.serverWaits()?.deadlocks ?? 0
        print("  deadlocks, as PostgreSQL counts them: \(deadlocks)")
        let worst = all.flatMap(\.samples).filter { $0.kind == .mail }.map(\.took).max() ?? 0
        report.goal(
            "longest stall of a message beside an import and a transfer, ms",
            Double(worst) / 1000, 250, atMost: true)
    }

    /// On a thread of its own: a task that blocks would leave too few for the others.
    private static func read(_ pipe: FileHandle) -> Task<WriterOutput, any Error> {
        Task {
            try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread {
                    continuation.resume(
                        with: Result {
                            try JSONDecoder().decode(
                                WriterOutput.self, from: pipe.readDataToEndOfFile())
                        })
                }
            }
        }
    }

    private struct Child: Sendable {
        let process: Process
        let input: Pipe
        let output: Pipe
    }

    private static func child(_ url: String) throws -> Child {
        let child = Child(process: Process(), input: Pipe(), output: Pipe())
        child.process.executableURL = URL(fileURLWithPath: "/proc/self/exe")
            .resolvingSymlinksInPath()
        child.process.environment = ProcessInfo.processInfo.environment.merging([variable: url]) {
            $1
        }
        child.process.standardInput = child.input
        child.process.standardOutput = child.output
        try child.process.run()
        return child
    }
}
