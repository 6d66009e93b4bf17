// POST /v1/decisions with a million accounts: at full load, at 70 % of it, and beyond it. It is
// compared with a route of the same server that reads the same body and answers a constant of the
// same size. The verification of a token's signature is measured separately.

import API
import ArgumentParser
import BenchReport
import BenchStores
import Concurrency
import Database
import Decisions
import Foundation
import HTTP
import Hummingbird
import Logging
import NIOCore
import PolicyRules
import RiskPolicy
import SignIn
import Synchronization

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(1)
}

/// The route for comparison: the same access, the same body read, no work.
struct ConstantRoutes: RouteModule {
    final class Holder: Sendable { let text = Mutex("") }
    let holder: Holder

    func addRoutes(to routes: Routes) {
        routes.team(.decisionsWrite).post("/v1/constant") { request, context in
            _ = try await request.collect(context)
            return Response(
                status: .ok,
                headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: .init(byteBuffer: ByteBuffer(string: holder.text.withLock { $0 })))
        }
    }
}

/// Whether a task has ended.
final class Watch: Sendable { let flag = Atomic(false) }

/// The policy that decides at the moment.
final class SwitchedPolicy: PolicySource {
    private let current: Mutex<LoadedPolicy>

    init(_ policy: LoadedPolicy) { current = Mutex(policy) }

    func policy(team: Int64?, app: String?) -> LoadedPolicy? { current.withLock { $0 } }

    func exchange(_ policy: LoadedPolicy) { current.withLock { $0 = policy } }
}

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "DecisionBench",
        abstract:
            "Measure POST /v1/decisions at full load, below it and beyond, beside a route that does no work."
    )

    enum Part: String, CaseIterable, ExpressibleByArgument { case tail, fill }

    @Option(help: "Engine of the store.") var engine = Engine.sqlite
    @Option(help: "Accounts in the store.") var accounts = 1_000_000
    @Option(help: ArgumentHelp("Decisions that the log has before.", valueName: "decisions"))
    var log = 0
    @Option(help: "Seconds of each load.") var seconds = 8
    @Option(help: "tail: only the loads over HTTP; fill: the store is made, and nothing measured.")
    var only: Part?
    @Option(
        help: ArgumentHelp("The store stays in this folder and is used again.", valueName: "folder")
    ) var keep: String?
    @Option(help: ArgumentHelp("Where a plot of the loads is written, as SVG.", valueName: "file"))
    var plot: String?
    @Option(
        help: ArgumentHelp(
            "Where the loads are written, as JSON, for --before of a later run.", valueName: "file")
    )
    var save: String?
    @Option(
        help: ArgumentHelp(
            "File that --save of an earlier run wrote; --plot draws it for comparison.",
            valueName: "file"))
    var before: String?
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false

    func validate() throws {
        try requirePositive(["accounts": accounts, "seconds": seconds])
    }
}

let options = Options.parseOrExit()
let (engine, accounts, logRows, seconds) = (
    options.engine, options.accounts, options.log, options.seconds
)
let clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
var report = BenchReport()

print(Machine.description)
print("\(engine.rawValue): \(accounts) accounts and \(logRows) decisions are being made…")
fflush(nil)
let seeded = try SeededStore.make(
    engine, accounts: accounts, log: logRows, kept: options.keep, now: clock())
if options.only == .fill {
    seeded.end()
    exit(0)
}
let started = clock()

var logger = Logger(label: "bench")
logger.logLevel = .error
let policy = SwitchedPolicy(try LoadedPolicy(.builtIn))
let issuer = try SandboxIssuer.make(issuer: "https://issuer.example")
let verifier = TokenVerifier(issuers: issuer, keys: issuer)
let log = DecisionLogBuffer(seeded.store.decisions, seeded.store.decisionWrites)
let (commits, reads) = (GroupCommit(seeded.database), GroupRead(seeded.database))
let pool = BlockingPool(.requests, threads: 4)
let breaker = StoreBreaker()
/// Requests that were answered without history.
let degraded = Atomic(0)
let service = DecisionService(
    store: seeded.store, policies: policy, verifier: verifier, log: log, commits: commits,
    reads: reads, executor: pool,
    breaker: breaker, now: clock, logger: logger
) { if $0.isDegraded { degraded.add(1, ordering: .relaxed) } }
try service.warmUp()
let idempotency = IdempotencyGuard(
    store: seeded.store, executor: pool, breaker: breaker, now: clock)
let keys = KeyCache(seeded.store.apiKeys)
let constant = ConstantRoutes.Holder()
let (addresses, announced) = AsyncStream.makeStream(of: String.self)
let api = APIService(
    settings: APISettings(host: "127.0.0.1", port: 0, requestsPerSecond: 100_000_000),
    modules: [
        DecisionRoutes(service: service, idempotency: idempotency),
        ConstantRoutes(holder: constant),
    ], keys: keys,
    clock: APIClock(now: clock), logger: logger
) { announced.yield($0) }
let server = Task { try await api.run() }
let batches = Task.detached { await log.writeBatches() }
let flushing = Task.detached {
    while !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(200))
        do { try await pool.run { try log.flush() } } catch is CancellationError {} catch {
            fail("the log: \(error)")
        }
    }
}
guard let address = await addresses.first(where: { _ in true }) else {
    fail("the listener did not start")
}

// The answer of the benchmark, for the constant route.
let team = Requester(id: "bench", number: seeded.team.number)
constant.text.withLock { $0 = "" }
let sample = try await service.decide(
    DecisionRequest(event: .signIn, clientID: Seeding.clientID, sub: seeded.sub(1)), for: team
).body
constant.text.withLock { $0 = sample }

let target = LoadTarget(
    address: address, key: seeded.key,
    body: #"{"event":"sign_in","client_id":"\#(Seeding.clientID)","sub":"{n}"}"#,
    accounts: seeded.asked, stride: seeded.stride)
/// The sample above is the first row of the log.
var decided = 1
@MainActor func run(
    _ path: String, connections: Int = 32, rate: Double? = nil
) throws -> MeasuredLoad {
    let load = try target.run(path, seconds: seconds, connections: connections, rate: rate)
    if load.result.failures > 0 { fail("requests failed: \(load.line)") }
    let without = degraded.load(ordering: .relaxed)
    if without > 0 { fail("\(without) questions were answered without history") }
    if path == "/v1/decisions" { decided += load.result.answered - load.result.refused }
    return load
}

// Three times each in turn, so that other work of the machine affects both.
_ = try run("/v1/decisions")
var shares: [Double] = []
var full = Latencies()
var rates: [Double] = []
/// Values of each round.
var tails: (full: [Latencies], calm: [Latencies]) = ([], [])
for _ in 0..<3 {
    let plain = try run("/v1/constant")
    let asked = try run("/v1/decisions")
    print("constant route        \(plain.line)\nPOST /v1/decisions    \(asked.line)")
    fflush(nil)
    shares.append(asked.result.requestsPerSecond / plain.result.requestsPerSecond)
    rates.append(asked.result.requestsPerSecond)
    full.add(asked.result.latencies)
    tails.full.append(asked.result.latencies)
}
let most = rates.median
print("at full load          \(full.line)")
var calm = Latencies()
for _ in 0..<3 {
    let load = try run("/v1/decisions", connections: 128, rate: 0.7 * most)
    print("at 70 % of that       \(load.line)")
    calm.add(load.result.latencies)
    tails.calm.append(load.result.latencies)
}
// A request needs more processor time if fewer requests share a snapshot and a wake-up. So 70 % of
// the rate needs more than 70 % of the processors.
let half = try run("/v1/decisions", connections: 128, rate: 0.5 * most)
print("at 50 % of that       \(half.line)")
if logRows > 0 {
    // The same while the older half of the log is deleted, as housekeeping does.
    let (store, isOver) = (seeded.store, Watch())
    let deleted = Task.detached {
        var count = 0
        try await PacedSteps.run {
            if isOver.flag.load(ordering: .relaxed) { return 0 }
            let deleted = try await pool.run {
                try store.decisions.deleteExpired(before: clock() - 45 * 86_400)
            }
            count += deleted
            return deleted
        }
        return count
    }
    let load = try run("/v1/decisions", connections: 128, rate: 0.7 * most)
    isOver.flag.store(true, ordering: .relaxed)
    print("while \(try await deleted.value) are deleted \(load.line)")
    report.add(
        "decisions.\(engine.rawValue).\(accounts).\(logRows).deleting", load.result.latencies)
    report.goal(
        "\(engine.rawValue), \(logRows) decisions: p99 at 70 % while old ones are deleted, ms",
        load.result.latencies.percentile(99), 8,
        atMost: true)
}
let flooded = try run("/v1/decisions", connections: 1_024, rate: 1.5 * most)
print("at 150 % of that      \(flooded.line)")
fflush(nil)
let name = "decisions.\(engine.rawValue).\(accounts)" + (logRows > 0 ? ".\(logRows)" : "")
report.add(
    BenchResult("\(name).rate", most, "requests/s", ratio: shares.median, against: "a constant"))
for (kind, latencies) in [
    ("full", full), ("70", calm), ("50", half.result.latencies), ("150", flooded.result.latencies),
] {
    report.add("\(name).\(kind)", latencies)
}
let label =
    "\(engine.rawValue), \(accounts) accounts" + (logRows > 0 ? ", \(logRows) decisions" : "")
report.goal("\(label): share of the constant route's rate", shares, 0.5, atMost: false)
report.goal(
    "\(label): p99 at full load by p50", tails.full.map { $0.percentile(99) / $0.percentile(50) },
    10, atMost: true)
report.goal(
    "\(label): p99 at full load, ms", tails.full.map { $0.percentile(99) }, 25, atMost: true)
report.goal(
    "\(label): p99.9 at full load, ms", tails.full.map { $0.percentile(99.9) }, 100, atMost: true)
report.goal(
    "\(label): p99 at 70 % of it, ms", tails.calm.map { $0.percentile(99) }, 8, atMost: true)
let curves = [
    LatencyPlot.Curve("full load (\(engine.rawValue))", full),
    LatencyPlot.Curve("70 % of it (\(engine.rawValue))", calm),
]
if let file = options.save {
    try JSONEncoder().encode(curves).write(to: URL(fileURLWithPath: file))
}
if let file = options.plot {
    let before = try options.before.map {
        try JSONDecoder().decode(
            [LatencyPlot.Curve].self, from: Data(contentsOf: URL(fileURLWithPath: $0))
        )
        .map { LatencyPlot.Curve($0.name, isBefore: true, $0.latencies) }
    }
    try LatencyPlot.svg("Decisions over HTTP", curves + (before ?? [])).write(
        toFile: file, atomically: true, encoding: .utf8)
}

/// Checks that the log has every answer, and writes the report.
@MainActor func end() throws -> Never {
    try log.flush()
    let logged = try seeded.store.decisions.count(DecisionFilter(since: started))
    print("the log               \(logged) rows of \(decided) answers, dropped \(log.dropped)")
    let isWhole = logged >= decided && log.dropped == 0
    flushing.cancel()
    batches.cancel()
    server.cancel()
    commits.close()
    reads.close()
    seeded.end()
    if !isWhole { fail("answers are missing in the log") }
    report.printTable()
    try report.write()
    exit(options.check && !report.missed.isEmpty ? 1 : 0)
}
if options.only == .tail { try end() }

// The same with a counter that has a key for each account, and without it, in turn.
guard let text = DefaultPolicy.files["policy.yaml"] else { fail("there is no default policy") }
let counter = "counters:\n  sign_ins: {key: account, window: 1d, events: [sign_in]}\n"
let counted = text.replacing("counters:\n", with: counter)
guard counted != text else { fail("the default policy has no counters to add one to") }
let counting = try LoadedPolicy(
    StoredPolicy(
        name: "counting", version: "1",
        document: PolicyDocument(files: ["policy.yaml": counted]).octets))
for start in stride(from: 1, through: seeded.asked, by: 10_000) {
    var rows: [VelocityRepository.Key: VelocityRow] = [:]
    for account in start..<min(start + 10_000, seeded.asked + 1) {
        let question = VelocityQuestion(
            counters: counting.policy.counters, team: seeded.team.number,
            account: seeded.sub(account), device: nil,
            context: [:], marks: seeded.store.decisionMarks, now: clock())
        for tally in question.tallies(.signIn, inbox: nil) {
            rows[VelocityRepository.Key(mark: tally.mark, part: tally.part)] = VelocityRow(
                count: 1, slice: tally.slice, endsAt: tally.endsAt)
        }
    }
    try seeded.store.velocity.add(rows)
}
print("\(accounts) keys of a counter were made")
shares = []
for _ in 0..<3 {
    policy.exchange(counting)
    let with = try run("/v1/decisions")
    policy.exchange(try LoadedPolicy(.builtIn))
    let without = try run("/v1/decisions")
    shares.append(with.result.requestsPerSecond / without.result.requestsPerSecond)
    print("with a counter        \(with.line)\nwithout               \(without.line)")
}
report.goal("decisions with a counter, of the rate without", shares, 0.9, atMost: false)
if log.velocity.dropped > 0 { fail("questions were not counted") }

// Only the read, and the complete request without HTTP.
func perSecond(_ count: Int, _ work: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    for _ in 0..<count { try await work() }
    let (whole, part) = (ContinuousClock.now - start).components
    return Double(count) / (Double(whole) + Double(part) / 1e18)
}
let app = try seeded.store.apps.decisionApp(clientID: Seeding.clientID)
let group = app?.groupNumber ?? 0
let readRate = try await perSecond(20_000) {
    let sub = seeded.sub(Int.random(in: 1...seeded.asked))
    _ = try seeded.store.history.history(
        team: seeded.team.number, group: group, subject: .named(sub), now: clock())
}
print(String(format: "history, one thread   %8.0f reads/s, one statement each", readRate))
let alone = try await perSecond(10_000) {
    let sub = seeded.sub(Int.random(in: 1...seeded.asked))
    _ = try await service.decide(
        DecisionRequest(event: .signIn, clientID: Seeding.clientID, sub: sub), for: team)
}
print(String(format: "without HTTP          %8.0f decisions/s, one after the other", alone))
let token = try issuer.mint(
    SandboxToken(
        subject: "s", audience: Seeding.clientID, nonceClaim: "n", realUserStatus: 2,
        lifetime: 100_000),
    now: clock())
let verified = try await perSecond(5_000) {
    _ = try await verifier.verify(
        token, audience: Seeding.clientID, nonce: ExpectedNonce("n"), now: clock())
}
print(String(format: "ES256 verification    %8.0f tokens/s, one after the other", verified))
let signUps = try await withThrowingTaskGroup(of: Void.self) { tasks in
    let start = ContinuousClock.now
    let count = 2_000
    for lane in 0..<32 {
        tasks.addTask {
            for number in 0..<(count / 32) {
                let nonce = "n\(lane)-\(number)"
                let token = try issuer.mint(
                    SandboxToken(
                        subject: nonce, audience: Seeding.clientID, nonceClaim: nonce,
                        realUserStatus: 1),
                    now: clock())
                _ = try await service.decide(
                    DecisionRequest(
                        event: .signUp, clientID: Seeding.clientID, identityToken: token,
                        nonce: nonce), for: team
                )
            }
        }
    }
    try await tasks.waitForAll()
    let (whole, part) = (ContinuousClock.now - start).components
    return Double(count / 32 * 32) / (Double(whole) + Double(part) / 1e18)
}
print(
    String(
        format:
            "sign-ups with token   %8.0f decisions/s, 32 at a time, each durable before its answer",
        signUps))

try end()
