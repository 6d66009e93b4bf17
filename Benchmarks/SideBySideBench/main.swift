// Work at the same time on one PostgreSQL: deliveries and changes, a transfer of an app and
// sign-ups, an import, a full server.

import Accounts
import Administration
import ArgumentParser
import BenchReport
import Database
import Events
import Foundation
import InternetMessage
import Logging
import MailAuth
import NIOPosix
import PosternPostgres
import PostgresHarness
import SignIn
import Support
import Synchronization

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "SideBySideBench",
        abstract: "Measure tasks that run at the same time on one PostgreSQL.")

    enum Part: String, CaseIterable, ExpressibleByArgument {
        case `import`, deliver, tail, transfer, writers, full
    }

    @Option(help: "Parts to measure, divided by commas; without it, all.") var only:
        CommaSeparated<Part>?
    @Option(help: "Events that are delivered, and users who have them.") var events = 20_000
    @Option(help: "Consents that are moved.") var consents = 200_000
    @Option(help: "Rows that are imported.") var rows = 20_000
    @Option(help: "Seconds in which the three processes write beside nothing else.") var seconds =
        10
    @Option(help: "Consents that are moved beside them.") var moved = 20_000
    @Option(help: "Clients of the full server.") var clients = 48
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false

    func validate() throws {
        try requirePositive([
            "events": events, "consents": consents, "rows": rows, "clients": clients,
            "seconds": seconds, "moved": moved,
        ])
    }
}

// A process of the part `writers`.
if let url = ProcessInfo.processInfo.environment[Writers.variable] {
    do { try await Writers.runChild(url) } catch {
        FileHandle.standardError.write(Data("SideBySideBench: \(error)\n".utf8))
        exit(1)
    }
    exit(0)
}

let options = Options.parseOrExit()
var report = BenchReport()

func isWanted(_ part: Options.Part) -> Bool { options.only?.values.contains(part) ?? true }

/// A DNS that knows the receiver's name.
struct Loopback: DNSResolver {
    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        type == .a ? .records([.address([127, 0, 0, 1])]) : .noData
    }
}

// MARK: Import

@MainActor func importRows(_ world: World, _ count: Int) throws {
    let start = ContinuousClock.now
    // The number that `Importer` reads at a time.
    let batch = 2 * BulkStatements.largest
    for first in stride(from: 0, to: count, by: batch) {
        let rows = (first..<min(first + batch, count)).map { number in
            ImportRow(
                user: "u\(number)", name: "Name",
                inbox: ImportRow.Inbox(
                    address: InboxAddress(
                        AddrSpec(localPart: "u\(number)", domain: "home.example")),
                    isVerified: true,
                    isDefault: false,
                    isReplyOnly: false),
                account: ImportRow.Account(team: "juice", app: "com.juice"))
        }
        for outcome in try world.store.imports.apply(rows, World.change) {
            if case .refused(let refusal) = outcome {
                throw BenchFailure(description: "a row was refused: \(refusal)")
            }
        }
    }
    let rate = Double(count) / seconds(ContinuousClock.now - start)
    report.add(BenchResult("import", rate, "rows/s"))
    report.goal("import, rows a second", rate, 3_000, atMost: false)
    try world.server.psql("SET search_path TO bench; ANALYZE")
}

// MARK: Deliveries

/// Switches forwarding of users in turn, from several threads, until the end; returns the changes a
/// second.
func changes(
    _ world: World, users: Int, threads: Int, until isOver: @escaping @Sendable () -> Bool
) async throws -> Double {
    let count = Mutex(0)
    let start = ContinuousClock.now
    let addresses = try (0..<users).map {
        try world.store.addresses.addresses(team: "juice", user: "u\($0)")[0].address
    }
    try await together(
        (0..<threads).map { thread in
            {
                var round = 0
                while !isOver() {
                    // Each thread has its own users, as people change only their own settings.
                    let mine = stride(from: thread, to: users, by: threads).map { $0 }
                    for user in mine where !isOver() {
                        try world.store.addresses.setForwarding(
                            addresses[user], on: round % 2 == 1, World.change)
                        count.withLock { $0 += 1 }
                    }
                    round += 1
                }
            }
        })
    return Double(count.withLock { $0 }) / seconds(ContinuousClock.now - start)
}

@MainActor func deliver(_ world: World, _ count: Int) async throws {
    let receiver = try await Receiver()
    let endpoint = try world.store.endpoints.set(
        team: "juice", app: "com.juice", url: EndpointURL("http://hooks.example:\(receiver.port)/"),
        allowsHTTP: true,
        allowsPrivate: true,
        World.change)
    var logger = Logger(label: "bench")
    logger.logLevel = .error
    let threads = DeliveryThreads()
    let poster = try HTTPEventPoster()
    let clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    let delivery = EventDelivery(
        outbox: world.store.outbox,
        signer: IdentitySigner(world.store.identityKeys, now: clock, logger: logger),
        issuer: "https://relay.example",
        poster: poster, resolver: Loopback(), threads: threads, allowsPrivateStreams: true,
        now: clock, logger: logger)
    // The delivery of another part may still have the lease.
    while delivery.lease == nil {
        await delivery.deliverDue()
        try await Task.sleep(for: .milliseconds(50))
    }
    // Deliveries alone.
    try world.post(count, endpoint: endpoint.number)
    let start = ContinuousClock.now
    await delivery.deliverDue()
    let rate = Double(count) / seconds(ContinuousClock.now - start)
    guard try world.store.outbox.backlog().events == 0 else {
        throw BenchFailure(description: "not everything was delivered")
    }
    report.add(BenchResult("deliver", rate, "events/s"))
    report.goal("deliveries a second", rate, 2_000, atMost: false)
    // Changes alone; their events are delivered later.
    let users = min(1_000, options.rows)
    let end = ContinuousClock.now + .seconds(5)
    let alone = try await changes(world, users: users, threads: 4) { .now > end }
    await delivery.deliverDue()
    // Both together.
    try world.post(count, endpoint: endpoint.number)
    let isOver = Mutex(false)
    let before = world.database.repetitions
    async let beside = changes(world, users: users, threads: 4) { isOver.withLock { $0 } }
    let second = ContinuousClock.now
    // Until the number of deliveries measured alone, including those of changes.
    let arrived = receiver.arrived
    let done = Task { @Sendable in await delivery.deliverDue() }
    while receiver.arrived - arrived < count { try await Task.sleep(for: .milliseconds(10)) }
    let (arrivals, took) = (receiver.arrived - arrived, seconds(ContinuousClock.now - second))
    isOver.withLock { $0 = true }
    let changed = try await beside
    await done.value
    let both = Double(arrivals) / took
    report.add(
        BenchResult("deliver.beside", both, "events/s", ratio: both / rate, against: "deliver"))
    report.add(BenchResult("changes", alone, "changes/s"))
    report.add(
        BenchResult(
            "changes.beside", changed, "changes/s", ratio: changed / alone, against: "changes"))
    report.add(
        BenchResult(
            "changes.repeated",
            1000 * Double(world.database.repetitions - before) / max(1, changed * took),
            "of 1,000 changes"))
    await receiver.stop()
    await poster.stop()
    await threads.stop()
}

/// The time from a change to the arrival of its event, at a moderate rate.
@MainActor func deliverTail(_ world: World, _ count: Int, perSecond: Int) async throws {
    let changed = Mutex<[String: ContinuousClock.Instant]>([:])
    let latencies = Mutex(Latencies())
    let receiver = try await Receiver { body in
        let now = ContinuousClock.now
        // A compact JWS; its payload names the account once.
        let parts = body.split(separator: UInt8(ascii: "."))
        guard parts.count == 3, let payload = Base64URL.decode(parts[1]) else { return }
        let text = String(decoding: payload, as: UTF8.self).replacingOccurrences(of: "\\", with: "")
        guard let start = text.range(of: "\"sub\":\"")?.upperBound,
            let end = text[start...].firstIndex(of: "\"")
        else { return }
        let began = changed.withLock { $0.removeValue(forKey: String(text[start..<end])) }
        if let began { latencies.withLock { $0.add(now - began) } }
    }
    _ = try world.store.endpoints.set(
        team: "juice", app: "com.juice", url: EndpointURL("http://hooks.example:\(receiver.port)/"),
        allowsHTTP: true,
        allowsPrivate: true, World.change)
    var logger = Logger(label: "bench")
    logger.logLevel = .error
    let (threads, poster) = (DeliveryThreads(), try HTTPEventPoster())
    let clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    let delivery = EventDelivery(
        outbox: world.store.outbox,
        signer: IdentitySigner(world.store.identityKeys, now: clock, logger: logger),
        issuer: "https://relay.example", poster: poster, resolver: Loopback(), threads: threads,
        allowsPrivateStreams: true,
        now: clock, logger: logger)
    let logouts = LogoutDelivery(
        logouts: world.store.logouts,
        signer: IdentitySigner(world.store.identityKeys, now: clock, logger: logger),
        issuer: "https://relay.example", poster: poster, resolver: Loopback(), threads: threads,
        allowsPrivate: true, now: clock, logger: logger)
    let service = Task.detached {
        try await EventDeliveryService(
            delivery: delivery, logouts: logouts, poster: poster, threads: threads, logger: logger
        ).run()
    }
    let addresses = try (0..<count).map {
        try world.store.addresses.addresses(team: "juice", user: "u\($0)")[0]
    }
    // Wait until the delivery has the lease.
    while delivery.lease == nil { try await Task.sleep(for: .milliseconds(50)) }
    let store = world.store
    try await together([
        {
            let begin = ContinuousClock.now
            for (number, address) in addresses.enumerated() {
                Thread.sleep(
                    forTimeInterval: max(
                        0, seconds(begin + .seconds(Double(number) / Double(perSecond)) - .now)))
                changed.withLock { $0[address.account.sub] = .now }
                try store.addresses.setForwarding(address.address, on: false, World.change)
            }
        }
    ])
    let deadline = ContinuousClock.now + .seconds(60)
    while changed.withLock({ !$0.isEmpty }), .now < deadline {
        try await Task.sleep(for: .milliseconds(50))
    }
    let all = latencies.withLock { $0 }
    guard all.count == count else {
        throw BenchFailure(description: "\(count - all.count) events did not arrive")
    }
    print("from a change to its event, \(perSecond) a second: \(all.line)")
    report.add("events", all)
    report.goal(
        "p99 from a change to the arrival of its event, ms", all.percentile(99), 1_000, atMost: true
    )
    service.cancel()
    _ = try? await service.value
    await receiver.stop()
}

// MARK: Transfer

@MainActor func transfer(_ world: World, perSecond: Int) async throws {
    let isOver = Mutex(false)
    let failed = Mutex(0)
    let signedUp = Mutex(0)
    let slowest = Mutex(Duration.zero)
    let store = world.store
    let threads = 4
    let signsUp: [@Sendable () throws -> Void] = (0..<threads).map { thread in
        {
            let begin = ContinuousClock.now
            var number = 0
            while !isOver.withLock({ $0 }) {
                let due = begin + .seconds(Double(number * threads) / Double(perSecond))
                Thread.sleep(forTimeInterval: max(0, seconds(due - .now)))
                let start = ContinuousClock.now
                let user = "n\(thread)-\(number)"
                do {
                    _ = try store.users.add(
                        id: user, name: nil,
                        inbox: InboxAddress(AddrSpec(localPart: user, domain: "home.example")),
                        isVerified: true, World.change)
                    _ = try store.grants.authorize(
                        AuthorizationRequest(clientID: "com.juice", userID: user), World.change)
                    signedUp.withLock { $0 += 1 }
                } catch let failure as StoreFailure where failure.isTemporary {
                    failed.withLock { $0 += 1 }
                }
                slowest.withLock { $0 = max($0, ContinuousClock.now - start) }
                number += 1
            }
        }
    }
    let grants = try world.database.value("SELECT COUNT(*) FROM grants", Int64.self) ?? 0
    _ = try store.transfers.start(team: "juice", app: "com.juice", to: "milk", World.change)
    let took = Mutex(Duration.zero)
    try await together(
        signsUp + [
            {
                defer { isOver.withLock { $0 = true } }
                let start = ContinuousClock.now
                // As in the command: a quarter of the time is left for others.
                try store.transfers.complete(app: "com.juice", World.change) { _, took in
                    Thread.sleep(forTimeInterval: seconds(took / 4))
                }
                took.withLock { $0 = ContinuousClock.now - start }
            }
        ])
    let time = seconds(took.withLock { $0 })
    report.add(BenchResult("transfer.\(grants)", time, "s"))
    report.add(
        BenchResult("transfer.signups", Double(signedUp.withLock { $0 }) / time, "sign-ups/s"))
    report.add(BenchResult("transfer.signups.failed", Double(failed.withLock { $0 }), "sign-ups"))
    report.add(BenchResult("transfer.signups.slowest", seconds(slowest.withLock { $0 }), "s"))
    report.goal(
        "seconds for \(grants) consents beside \(perSecond) sign-ups a second", time, 60,
        atMost: true)
}

// MARK: A full server

/// Clients of one process that has some of its connections and gets no more.
@MainActor func full(_ clients: Int) async throws {
    guard let binaries = PostgresServer.installed else {
        throw BenchFailure(description: "PostgreSQL is not installed")
    }
    let server = try PostgresServer(binaries: binaries)
    try server.psql(
        "CREATE USER relay CONNECTION LIMIT 4; CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT); GRANT ALL ON t TO relay"
    )
    try server.psql("INSERT INTO t SELECT i, 0 FROM generate_series(1, \(clients)) AS s (i)")
    var settings = PostgresDatabase.Settings()
    settings.connections = 10
    let database = try PostgresDatabase(
        url: "postgresql://relay@\(server.host)/postgres", settings: settings)
    let asked = Mutex(0)
    let failed = Mutex(0)
    let decided = Mutex(0)
    let degraded = Mutex(0)
    let end = ContinuousClock.now + .seconds(10)
    try await together(
        (0..<clients).map { client in
            {
                let isDecision = client % 6 == 0
                while .now < end {
                    let start = ContinuousClock.now
                    let target: any Database = isDecision ? database.first : database
                    do {
                        try WriteQueue.$isOnSharedThread.withValue(!isDecision) {
                            try target.write(
                                .relaxed, timeout: isDecision ? .milliseconds(500) : nil
                            ) {
                                connection throws(StoreFailure) in
                                _ = try connection.run(
                                    "UPDATE t SET n = n + 1 WHERE id = ?1",
                                    [.integer(Int64(client + 1))])
                            }
                        }
                        if isDecision, .now - start > .milliseconds(500) {
                            degraded.withLock { $0 += 1 }
                        }
                    } catch let failure as StoreFailure where failure.isTemporary {
                        isDecision ? degraded.withLock { $0 += 1 } : failed.withLock { $0 += 1 }
                    }
                    isDecision ? decided.withLock { $0 += 1 } : asked.withLock { $0 += 1 }
                }
            }
        })
    let share = 100 * Double(failed.withLock { $0 }) / Double(max(1, asked.withLock { $0 }))
    let late = 100 * Double(degraded.withLock { $0 }) / Double(max(1, decided.withLock { $0 }))
    report.add(BenchResult("full.requests", Double(asked.withLock { $0 }), "requests"))
    report.add(BenchResult("full.failed", share, "%"))
    report.add(BenchResult("full.decisions", Double(decided.withLock { $0 }), "decisions"))
    report.add(BenchResult("full.degraded", late, "%"))
    report.goal("full server: requests that fail, %", share, 0, atMost: true)
    report.goal("full server: decisions that are degraded, %", late, 1, atMost: true)
    try database.close()
}

var status: Int32 = 0
do {
    print(Machine.description)
    fflush(nil)
    if isWanted(.import) || isWanted(.deliver) || isWanted(.tail) {
        let world = try World(users: options.events)
        try importRows(world, options.rows)
        if isWanted(.tail) {
            try await deliverTail(world, min(options.rows, 4_000), perSecond: 200)
        }
        if isWanted(.deliver) { try await deliver(world, options.events) }
        world.end()
    }
    if isWanted(.transfer) {
        let world = try World(users: options.consents)
        try await transfer(world, perSecond: 120)
        world.end()
    }
    if isWanted(.writers) {
        // With PostgreSQL's own number of predicate locks, and with the one that doctor wants.
        for locks in [64, 256] {
            try await Writers.measure(
                predicateLocks: locks, consents: options.moved, rows: options.rows,
                pause: Double(options.seconds))
        }
    }
    if isWanted(.full) { try await full(options.clients) }
    report.printTable()
    try report.write()
    if !report.missed.isEmpty, options.check { status = 1 }
} catch {
    FileHandle.standardError.write(Data("SideBySideBench: \(error)\n".utf8))
    status = 1
}
exit(status)
