// Mail through Postfix and Postern compared with other filters: rates, processor time by stage,
// memory. See docs/PERFORMANCE.md.

import ArgumentParser
import BenchReport
import BenchStores
import Foundation
import PostfixHarness

extension FilterUnderTest: ExpressibleByArgument {}

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "MailBench",
        abstract:
            "Measure mail through Postfix and Postern beside other filters: rates, processor time by stage, memory.",
        discussion: "With --soak or --hours nothing else is measured.")

    /// The parts that --skip leaves out.
    enum Part: String, CaseIterable, ExpressibleByArgument {
        case rate, verp, known, stages, tail, memory
        case fanOut = "fan-out"
    }

    @Option(help: "Filters that are measured, divided by commas; all without it.") var only:
        CommaSeparated<FilterUnderTest>?
    @Option(help: "Parts to leave out, divided by commas.") var skip: CommaSeparated<Part> = []
    @Option(help: "Messages of a round.") var messages = 1000
    @Option(help: "Rounds for rates and fan-out.") var rounds = 5
    @Option(help: "Sessions at the same time.") var sessions = 20
    @Option(help: "Octets of a message.") var size = 4096
    @Option(help: "For the stages: messages of each kind.") var stageMessages = 2000
    @Option(help: "For the tail: messages of each kind.") var tailMessages = 4000
    @Option(help: "For the tail: engine of the store.") var engine = Engine.sqlite
    @Option(help: "For the tail: accounts of others in the store.") var accounts = 0
    @Option(
        help:
            "For memory: sessions whose messages end at the same moment, one number after the other, divided by commas."
    )
    var memorySessions: CommaSeparated<Int> = [50, 200, 500]
    @Option(help: "For memory: octets of a message.") var memorySize = 1_000_000
    @Option(help: "For memory: octets that Postern may take for replies (limits.reply_memory).")
    var replyMemory = 256_000_000
    @Option(
        help: ArgumentHelp(
            "Measure memory over so many messages, and nothing else.", valueName: "messages"))
    var soak: Int?
    @Option(
        help: ArgumentHelp(
            "Run two hosts on one PostgreSQL for so many hours, and nothing else.",
            valueName: "hours"))
    var hours: Double?
    @Option(help: "With --hours: messages a second.") var mail = 20
    @Option(help: "With --hours: decisions a second.") var decisions = 100
    @Option(help: ArgumentHelp("With --hours: seconds of a round.", valueName: "seconds"))
    var round = 60
    @Option(help: ArgumentHelp("With --hours: where a plot is written, as SVG.", valueName: "file"))
    var plot: String?
    @Option(
        help: ArgumentHelp(
            "With --hours: where the figures of all rounds are written, as JSON.", valueName: "file"
        ))
    var samples: String?
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false

    func validate() throws {
        try requirePositive([
            "messages": messages, "rounds": rounds, "sessions": sessions, "size": size,
            "stage-messages": stageMessages,
            "tail-messages": tailMessages, "memory-sessions": memorySessions.values.min() ?? 0,
            "memory-size": memorySize,
            "mail": mail, "decisions": decisions, "round": round,
        ])
    }
}

let options = Options.parseOrExit()
let contestants = FilterUnderTest.allCases.filter { options.only?.values.contains($0) ?? true }
var report = BenchReport()

@MainActor func runEverything() throws {
    if let problem = PrivatePostfix.obstacle { throw BenchFailure(problem) }
    print(Machine.description)
    fflush(nil)
    if let soak = options.soak { return try runSoak(soak) }
    if let hours = options.hours { return try runHours(hours) }
    if ![Options.Part.rate, .verp, .known, .stages].allSatisfy(options.skip.values.contains) {
        try runMail()
    }
    if !options.skip.values.contains(.tail) { try runTail() }
    if !options.skip.values.contains(.memory) { try runMemory() }
    if !options.skip.values.contains(.fanOut) { try runFanOut() }
}

@MainActor func runTail() throws {
    let (engine, accounts) = (options.engine, options.accounts)
    let tail = try Tail(
        engine, messages: options.tailMessages, size: options.size, sessions: options.sessions,
        accounts: accounts)
    defer { tail.end() }
    var ofForward: Double?
    // A filter that does nothing, with as many messages a second as Postern: the share of Postfix,
    // and of the machine.
    for (contestant, verp) in [
        (FilterUnderTest.forward, false), (.noop, false), (.forward, true), (.reply, false),
    ] {
        let figures = try tail.measure(
            contestant, verp: verp, most: contestant == .noop ? ofForward : nil)
        if ofForward == nil { ofForward = figures.most }
        let name =
            "tail.\(contestant.rawValue)\(verp ? ".verp" : "")"
            + (accounts > 0 ? ".\(engine.rawValue).\(accounts)" : "")
        var mail = Latencies()
        for round in figures.mail { mail.add(round) }
        print(
            String(format: "%@: at 70 %% of %.0f messages/s: ", name, figures.most) + mail.line
                + "; decisions beside: "
                + figures.decisions.line)
        fflush(nil)
        report.add(name, mail)
        report.add("\(name).decisions", figures.decisions)
        guard contestant != .noop else { continue }
        report.goal(
            "\(name): p99 by p50", figures.mail.map { $0.percentile(99) / $0.percentile(50) }, 5,
            atMost: true)
    }
}

@MainActor func runFanOut() throws {
    let recipients = 100
    let world = try MailFixture(
        [.forward], size: options.size, sessions: options.sessions, fansOut: true)
    defer { world.stop() }
    let (together, apart) = try FanOut.measure(
        world, recipients: recipients, rounds: options.rounds)
    report.add(BenchResult("fan-out.apart.\(recipients)", apart, "s"))
    report.add(
        BenchResult(
            "fan-out.together.\(recipients)", together, "s", ratio: together / apart,
            against: "fan-out.apart.\(recipients)"))
}

@MainActor func runMail() throws {
    let world = try MailFixture(contestants, size: options.size, sessions: options.sessions)
    defer { world.stop() }
    for contestant in contestants { print("  \(contestant.rawValue): \(contestant.explanation)") }
    let throughput = Throughput(
        world: world, messages: options.messages, rounds: options.rounds, sessions: options.sessions
    )
    print(
        "\(options.rounds) rounds of \(options.messages) messages of \(world.teamMessage.count) octets over "
            + "\(options.sessions) sessions\n")
    let raw = try Stages.rsa()
    for senders in EnvelopeSenders.allCases where !options.skip.values.contains(senders.part) {
        let runs = try throughput.run(
            senders == .one
                ? contestants : contestants.filter { [.noop, .fixed, .forward].contains($0) },
            senders: senders)
        let (suffix, kind) = (senders.suffix, senders.rawValue)
        Throughput.add(runs, suffix: suffix, to: &report)
        @MainActor func goal(_ other: FilterUnderTest, _ bound: Double) {
            guard let ratios = Throughput.ratios(runs, .forward, other) else { return }
            report.goal(
                "\(kind): rate of forwarding by that of \(other.rawValue)", ratios.rate, bound,
                atMost: false)
            print(String(format: "      by processor time of everything: %.3g", ratios.cpu.median))
        }
        goal(.fixed, 0.85)
        goal(.noop, 0.55)
        goal(.opendkim, 2)
        if let own = runs[.forward], let idle = runs[.noop] {
            let beyond =
                (own.map(\.filter).median - idle.map(\.filter).median - raw.sign - raw.verify)
                * 1000
            report.add(BenchResult("forward\(suffix).cpu.beyond", beyond, "ms/message"))
            report.goal(
                "\(kind): ms of Postern's processor time a message beyond no-op and RSA", beyond,
                0.6, atMost: true)
        }
    }
    if !options.skip.values.contains(.stages) {
        try Stages.measure(world, messages: options.stageMessages, into: &report)
    }
}

/// MiB that forwarding may use: the 64 MB of the requirement.
let forwardingLimit = 64.0

@MainActor func runMemory() throws {
    let (counts, replyMemory) = (options.memorySessions.values, options.replyMemory)
    for contestant in [FilterUnderTest.forward, .reply] where contestants.contains(contestant) {
        // In its own process: memory left by the other kind would otherwise count as present
        // before.
        let world = try MailFixture(
            [contestant], size: options.memorySize, sessions: counts.max() ?? 1,
            settings: ["limits.reply_memory": "\(replyMemory)"])
        defer { world.stop() }
        // Until the memory of the start is released.
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
                report.goal(
                    "MiB with 200 sessions of 1 MB forwarding", memory.peak, forwardingLimit,
                    atMost: true)
            case .reply:
                report.add(BenchResult(name + ".deferred", Double(memory.deferred), "messages"))
                // Both rounds together. Each message that did not fit still has a connection.
                report.goal(
                    "MiB beyond those of the idle process with \(count) sessions of 1 MB replying",
                    memory.peak - (idle ?? 0),
                    Double(replyMemory) / 1_048_576 + 0.2 * Double(memory.deferred) / 2,
                    atMost: true)
            default: break
            }
        }
    }
}

@MainActor func runSoak(_ messages: Int) throws {
    let world = try MailFixture([.forward, .reply], size: options.size, sessions: options.sessions)
    defer { world.stop() }
    let samples = try Memory.soak(world, messages: messages, sessions: options.sessions)
    for (suffix, values) in [
        ("", samples.map(\.resident)), (".anonymous", samples.map(\.anonymous)),
    ] {
        let (first, last) = (values[1], values[19])
        report.add(BenchResult("memory.soak.first\(suffix)", first, "MiB"))
        report.add(
            BenchResult(
                "memory.soak.last\(suffix)", last, "MiB", ratio: last / first,
                against: "memory.soak.first\(suffix)"))
        if suffix.isEmpty {
            report.goal(
                "memory after all messages by that after a tenth", last / first, 1.1, atMost: true)
        }
    }
}

@MainActor func runHours(_ hours: Double) throws {
    let hosts = try SoakHosts()
    defer { hosts.stop() }
    let soak = Soak(
        hosts: hosts, mail: Double(options.mail), decisions: Double(options.decisions),
        roundSeconds: options.round)
    var samples: [SoakSample] = []
    try soak.run(hours: hours) { sample in
        samples.append(sample)
        print(
            String(
                format:
                    "%6.1f min: %@ MiB, %@ files, mail %.1f and %.1f ms, decisions %.2f and %.1f ms, %.0f MB, %d events wait, %d deferred",
                sample.minute,
                sample.resident.map { String(format: "%.1f", $0) }.joined(separator: " and "),
                sample.files.map { "\(Int($0))" }.joined(separator: " and "), sample.mailMedian,
                sample.mailTail,
                sample.decisionMedian, sample.decisionTail, sample.databaseMegabytes,
                sample.waitingEvents, sample.deferred))
        fflush(nil)
        if let file = options.samples {
            try JSONEncoder().encode(samples).write(to: URL(fileURLWithPath: file))
        }
        if let file = options.plot {
            try plot(samples).write(toFile: file, atomically: true, encoding: .utf8)
        }
    }
    let (messages, deferred) = (
        samples.map(\.messages).reduce(0, +), samples.map(\.deferred).reduce(0, +)
    )
    print(
        "\(messages) messages, \(deferred) of them deferred, \(samples.map(\.decisions).reduce(0, +)) decisions"
    )
    report.goal(
        "soak, messages of a thousand that are deferred",
        1000 * Double(deferred) / Double(max(1, messages)), 1, atMost: true)
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
            TimePlot.Panel("resident memory, MiB", hosts(\.resident)),
            TimePlot.Panel("open files", hosts(\.files)),
            TimePlot.Panel(
                "mail, from end of data to answer, ms",
                [line("median", \.mailMedian), line("p99", \.mailTail)]),
            TimePlot.Panel(
                "decisions, ms", [line("median", \.decisionMedian), line("p99", \.decisionTail)]),
            TimePlot.Panel("database, MB", [line("size", \.databaseMegabytes)]),
        ])
}

var status: Int32 = 0
do {
    try runEverything()
    report.printTable()
    try report.write()
    if !report.missed.isEmpty, options.check { status = 1 }
} catch {
    FileHandle.standardError.write(Data("MailBench: \(error)\n".utf8))
    status = 1
}
exit(status)
