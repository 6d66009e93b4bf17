// Mail through Postfix and Postern beside other filters: rates, processor time by stage, memory. See docs/PERFORMANCE.md.
//
// MailBench [--messages 1000] [--rounds 5] [--sessions 20] [--size 4096] [--only noop,fixed,forward,…] [--skip
// rate,verp,known,stages,tail,memory,fan-out]
//           [--memory-sessions 50,200,500] [--memory-size 1000000] [--reply-memory 256000000] [--soak 200000] [--check]
//           [--tail-messages 4000] [--engine sqlite|postgres] [--accounts 0]
// MailBench --hours 3 [--mail 20] [--decisions 100] [--round 60] [--plot FILE] [--samples FILE] [--check]
// With --check, a goal that is missed makes the exit status 1. With --soak or --hours nothing else is measured.

import BenchReport
import BenchStores
import Foundation
import PostfixHarness

let arguments = BenchArguments()
let messages = arguments.number("messages", 1000)
let sessions = arguments.number("sessions", 20)
let size = arguments.number("size", 4096)
let skipped = arguments.words("skip") ?? []
let contestants = FilterUnderTest.allCases.filter { arguments.words("only")?.contains($0.rawValue) ?? true }
var report = BenchReport()

@MainActor func runEverything() throws {
    if let problem = PrivatePostfix.obstacle { throw BenchFailure(problem) }
    print(Machine.description)
    fflush(nil)
    if let soak = arguments.text("soak").flatMap({ Int($0) }) { return try runSoak(soak) }
    if let hours = arguments.text("hours").flatMap({ Double($0) }) { return try runHours(hours) }
    if !["rate", "verp", "known", "stages"].allSatisfy(skipped.contains) { try runMail() }
    if !skipped.contains("tail") { try runTail() }
    if !skipped.contains("memory") { try runMemory() }
    if !skipped.contains("fan-out") { try runFanOut() }
}

@MainActor func runTail() throws {
    let accounts = arguments.number("accounts", 0)
    let engine = arguments.text("engine").flatMap(Engine.init(rawValue:)) ?? .sqlite
    let tail = try Tail(
        engine, messages: arguments.number("tail-messages", 4_000), size: size, sessions: sessions, accounts: accounts)
    defer { tail.end() }
    var ofForward: Double?
    // A filter that does nothing, as many messages a second as Postern: what is Postfix's own, and the machine's.
    for (contestant, verp) in [(FilterUnderTest.forward, false), (.noop, false), (.forward, true), (.reply, false)] {
        let figures = try tail.measure(contestant, verp: verp, most: contestant == .noop ? ofForward : nil)
        if ofForward == nil { ofForward = figures.most }
        let name = "tail.\(contestant.rawValue)\(verp ? ".verp" : "")" + (accounts > 0 ? ".\(engine.rawValue).\(accounts)" : "")
        var mail = Latencies()
        for round in figures.mail { mail.add(round) }
        print(
            String(format: "%@: at 70 %% of %.0f messages/s: ", name, figures.most) + mail.line + "; decisions beside: "
                + figures.decisions.line)
        fflush(nil)
        report.add(name, mail)
        report.add("\(name).decisions", figures.decisions)
        guard contestant != .noop else { continue }
        report.goal("\(name): p99 by p50", figures.mail.map { $0.percentile(99) / $0.percentile(50) }, 5, atMost: true)
    }
}

@MainActor func runFanOut() throws {
    let recipients = 100
    let world = try MailFixture([.forward], size: size, sessions: sessions, fansOut: true)
    defer { world.stop() }
    let (together, apart) = try FanOut.measure(world, recipients: recipients, rounds: arguments.number("rounds", 5))
    report.add(BenchResult("fan-out.apart.\(recipients)", apart, "s"))
    report.add(
        BenchResult(
            "fan-out.together.\(recipients)", together, "s", ratio: together / apart, against: "fan-out.apart.\(recipients)"))
}

@MainActor func runMail() throws {
    let world = try MailFixture(contestants, size: size, sessions: sessions)
    defer { world.stop() }
    for contestant in contestants { print("  \(contestant.rawValue): \(contestant.explanation)") }
    let throughput = Throughput(world: world, messages: messages, rounds: arguments.number("rounds", 5), sessions: sessions)
    print("\(throughput.rounds) rounds of \(messages) messages of \(world.teamMessage.count) octets over \(sessions) sessions\n")
    let raw = try Stages.rsa()
    for senders in EnvelopeSenders.allCases where !skipped.contains(senders.word) {
        let runs = try throughput.run(
            senders == .one ? contestants : contestants.filter { [.noop, .fixed, .forward].contains($0) }, senders: senders)
        let (suffix, kind) = (senders.suffix, senders.rawValue)
        Throughput.add(runs, suffix: suffix, to: &report)
        @MainActor func goal(_ other: FilterUnderTest, _ bound: Double) {
            guard let ratios = Throughput.ratios(runs, .forward, other) else { return }
            report.goal("\(kind): rate of forwarding by that of \(other.rawValue)", ratios.rate, bound, atMost: false)
            print(String(format: "      by processor time of everything: %.3g", ratios.cpu.median))
        }
        goal(.fixed, 0.85)
        goal(.noop, 0.55)
        goal(.opendkim, 2)
        if let own = runs[.forward], let idle = runs[.noop] {
            let beyond = (own.map(\.filter).median - idle.map(\.filter).median - raw.sign - raw.verify) * 1000
            report.add(BenchResult("forward\(suffix).cpu.beyond", beyond, "ms/message"))
            report.goal("\(kind): ms of Postern's processor time a message beyond no-op and RSA", beyond, 0.6, atMost: true)
        }
    }
    if !skipped.contains("stages") {
        try Stages.measure(world, messages: arguments.number("stage-messages", 2000), into: &report)
    }
}

/// MiB that forwarding may take: the issue's 64 MB.
let forwardingLimit = 64.0

@MainActor func runMemory() throws {
    let counts = arguments.numbers("memory-sessions", [50, 200, 500])
    let replyMemory = arguments.number("reply-memory", 256_000_000)
    for contestant in [FilterUnderTest.forward, .reply] where contestants.contains(contestant) {
        // Its own process: what the other kind leaves behind would count as there before.
        let world = try MailFixture(
            [contestant], size: arguments.number("memory-size", 1_000_000), sessions: counts.max() ?? 1,
            settings: ["limits.reply_memory": "\(replyMemory)"])
        defer { world.stop() }
        // Until it has let go of what only starting needs.
        sleep(5)
        var idle: Double?
        for count in counts {
            let memory = try Memory.measure(world, contestant, sessions: count)
            idle = idle ?? memory.idle
            let name = "memory.\(contestant.rawValue).\(count)"
            report.add(BenchResult(name, memory.peak, "MiB"))
            report.add(BenchResult(name + ".idle", memory.idle, "MiB"))
            report.add(BenchResult(name + ".anonymous", memory.anonymous, "MiB"))
            report.add(BenchResult(name + ".files", memory.files, "MiB"))
            report.add(BenchResult(name + ".threads", Double(memory.threads), "threads"))
            switch contestant {
            case .forward where count == 200:
                report.goal("MiB with 200 sessions of 1 MB forwarding", memory.peak, forwardingLimit, atMost: true)
            case .reply:
                report.add(BenchResult(name + ".deferred", Double(memory.deferred), "messages"))
                // Both rounds together; each that did not fit has a connection all the same.
                report.goal(
                    "MiB beyond those of the idle process with \(count) sessions of 1 MB replying", memory.peak - (idle ?? 0),
                    Double(replyMemory) / 1_048_576 + 0.2 * Double(memory.deferred) / 2, atMost: true)
            default: break
            }
        }
    }
}

@MainActor func runSoak(_ messages: Int) throws {
    let world = try MailFixture([.forward, .reply], size: size, sessions: sessions)
    defer { world.stop() }
    let samples = try Memory.soak(world, messages: messages, sessions: sessions)
    for (suffix, values) in [("", samples.map(\.resident)), (".anonymous", samples.map(\.anonymous))] {
        let (first, last) = (values[1], values[19])
        report.add(BenchResult("memory.soak.first\(suffix)", first, "MiB"))
        report.add(
            BenchResult("memory.soak.last\(suffix)", last, "MiB", ratio: last / first, against: "memory.soak.first\(suffix)"))
        if suffix.isEmpty { report.goal("memory after all messages by that after a tenth", last / first, 1.1, atMost: true) }
    }
}

@MainActor func runHours(_ hours: Double) throws {
    let hosts = try SoakHosts()
    defer { hosts.stop() }
    let soak = Soak(
        hosts: hosts, mail: Double(arguments.number("mail", 20)), decisions: Double(arguments.number("decisions", 100)),
        roundSeconds: arguments.number("round", 60))
    var samples: [SoakSample] = []
    try soak.run(hours: hours) { sample in
        samples.append(sample)
        print(
            String(
                format:
                    "%6.1f min: %@ MiB, %@ files, mail %.1f and %.1f ms, decisions %.2f and %.1f ms, %.0f MB, %d events wait, %d deferred",
                sample.minute, sample.resident.map { String(format: "%.1f", $0) }.joined(separator: " and "),
                sample.files.map { "\(Int($0))" }.joined(separator: " and "), sample.mailMedian, sample.mailTail,
                sample.decisionMedian, sample.decisionTail, sample.databaseMegabytes, sample.waitingEvents, sample.deferred))
        fflush(nil)
        if let file = arguments.text("samples") { try JSONEncoder().encode(samples).write(to: URL(fileURLWithPath: file)) }
        if let file = arguments.text("plot") { try plot(samples).write(toFile: file, atomically: true, encoding: .utf8) }
    }
    let (messages, deferred) = (samples.map(\.messages).reduce(0, +), samples.map(\.deferred).reduce(0, +))
    print("\(messages) messages, \(deferred) of them deferred, \(samples.map(\.decisions).reduce(0, +)) decisions")
    report.goal(
        "soak, messages of a thousand that are deferred", 1000 * Double(deferred) / Double(max(1, messages)), 1, atMost: true)
    func goal(_ text: String, _ bound: Double, _ value: (SoakSample) -> Double) {
        let (first, last) = samples.drift(value)
        report.goal("\(text): last tenth by second", last / max(first, 1e-9), bound, atMost: true)
    }
    for host in 0..<2 {
        goal("soak, host \(host + 1), MiB", 1.1) { $0.resident[host] }
        goal("soak, host \(host + 1), open files", 1.1) { $0.files[host] }
        goal("soak, host \(host + 1), threads", 1.1) { $0.threads[host] }
    }
    goal("soak, mail, median", 1.5, \.mailMedian)
    goal("soak, decisions, median", 1.5, \.decisionMedian)
}

func plot(_ samples: [SoakSample]) -> String {
    func line(_ name: String, _ value: (SoakSample) -> Double) -> TimePlot.Line {
        TimePlot.Line(name, samples.map { ($0.minute, value($0)) })
    }
    func hosts(_ value: @escaping (SoakSample) -> [Double]) -> [TimePlot.Line] {
        (0..<2).map { host in line("host \(host + 1)") { value($0)[host] } }
    }
    return TimePlot.svg(
        "Two hosts on one PostgreSQL",
        [
            TimePlot.Panel("resident memory, MiB", hosts(\.resident)), TimePlot.Panel("open files", hosts(\.files)),
            TimePlot.Panel("mail, from end of data to answer, ms", [line("median", \.mailMedian), line("p99", \.mailTail)]),
            TimePlot.Panel("decisions, ms", [line("median", \.decisionMedian), line("p99", \.decisionTail)]),
            TimePlot.Panel("database, MB", [line("size", \.databaseMegabytes)]),
        ])
}

var status: Int32 = 0
do {
    try runEverything()
    report.printTable()
    try report.write()
    if !report.missed.isEmpty, arguments.flag("check") { status = 1 }
} catch {
    FileHandle.standardError.write(Data("MailBench: \(error)\n".utf8))
    status = 1
}
exit(status)
