// Mail through a real Postfix, filter by filter in turn: rates, processor time, and their ratios.

import BenchReport
import Foundation
import PostfixHarness

/// The cost of one run of one filter.
struct Run {
    /// Messages that Postfix accepted per second of wall time.
    let rate: Double
    /// Seconds of processor time a message: of the filter, and of everything (filter,
    /// Postfix, source and sink).
    let filter: Double
    let all: Double
}

/// The envelope senders of a run.
enum EnvelopeSenders: String, CaseIterable {
    /// One that fits a return path.
    case one = "one sender"
    /// A different one for each message, too long for a return path.
    case verp = "a sender for each message"
    /// A few, too long for a return path, so that each is stored once.
    case known = "known long senders"

    /// The suffix of the names of results; `--skip` uses it to leave them out.
    var suffix: String { self == .one ? "" : self == .verp ? ".verp" : ".known" }
    var part: Options.Part { self == .one ? .rate : self == .verp ? .verp : .known }

    /// The number of known senders of an account.
    private static let few = 10

    /// The nth sender; nil if smtp-source provides it.
    func sender(_ domain: String) -> (@Sendable (Int) -> String)? {
        switch self {
        case .one: nil
        case .verp: { "bounce+\($0)-\(UInt32.random(in: 0 ... .max))@\(domain)" }
        case .known: { "bounce+of-the-list-of-customers-\($0 % Self.few)@\(domain)" }
        }
    }
}

struct Throughput {
    let world: MailFixture
    let messages: Int
    let rounds: Int
    let sessions: Int

    /// Runs the filters in turn, `rounds` times.
    func run(
        _ contestants: [FilterUnderTest], senders: EnvelopeSenders
    ) throws -> [FilterUnderTest: [Run]] {
        var runs: [FilterUnderTest: [Run]] = [:]
        // One small round before, which does not count: processes start, caches fill.
        for contestant in contestants {
            _ = try run(contestant, messages: min(messages, 100), senders: senders)
        }
        for round in 0..<rounds {
            // In alternating order, so that no filter always follows the same one.
            for contestant in round % 2 == 0 ? contestants : contestants.reversed() {
                runs[contestant, default: []].append(
                    try run(contestant, messages: messages, senders: senders))
            }
        }
        return runs
    }

    private func run(
        _ contestant: FilterUnderTest, messages: Int, senders: EnvelopeSenders
    ) throws -> Run {
        let filters = try world.processes(contestant).map(\.identifier)
        let before = (
            filter: filters.map(Clock.process).reduce(0, +), all: Clock.descendants(),
            wall: Clock.wall(),
            own: Clock.process(getpid())
        )
        let sender = senders.sender("\(contestant == .reply ? "home" : "app").example")
        if let sender {
            try Source(
                port: world.port(contestant), sessions: sessions, messages: messages,
                recipients: [world.recipient(contestant)],
                sender: sender, message: world.message(contestant)
            ).run()
        } else {
            let file = world.fixture.folder + "/message-\(contestant.rawValue)"
            if !FileManager.default.fileExists(atPath: file) {
                try Data(world.message(contestant).filter { $0 != 0x0D }).write(
                    to: URL(fileURLWithPath: file))
            }
            let result = try ManagedProcess(
                "/usr/sbin/smtp-source",
                [
                    "-s", "\(sessions)", "-m", "\(messages)", "-M", "mail.app.example", "-f",
                    world.sender(contestant), "-t",
                    world.recipient(contestant), "-F", file, "127.0.0.1:\(world.port(contestant))",
                ])
            let status = try result.waitForExit(seconds: 3600)
            guard status == 0 else {
                throw BenchFailure(
                    "smtp-source: \(result.output.suffix(2000))\n\(world.fixture.postfix.logTail)")
            }
        }
        let wall = Clock.wall() - before.wall
        try world.waitUntilDelivered()
        let filter = filters.map(Clock.process).reduce(0, +) - before.filter
        // Our own source is part of everything. Our reading of logs is too small to separate.
        let all =
            Clock.descendants() - before.all
            + (sender == nil ? 0 : Clock.process(getpid()) - before.own)
        return Run(
            rate: Double(messages) / wall, filter: filter / Double(messages),
            all: all / Double(messages))
    }

    /// Adds a filter's results, with its ratio to another: the median of the ratios of adjacent
    /// rounds.
    static func add(_ runs: [FilterUnderTest: [Run]], suffix: String, to report: inout BenchReport)
    {
        for contestant in FilterUnderTest.allCases {
            guard let own = runs[contestant] else { continue }
            let name = contestant.rawValue + suffix
            func ratio(_ value: (Run) -> Double) -> Double? {
                guard contestant != .noop, let other = runs[.noop] else { return nil }
                return zip(own, other).map { value($0) / value($1) }.median
            }
            report.add(
                BenchResult(
                    "\(name).rate", own.map(\.rate).median, "messages/s", ratio: ratio(\.rate),
                    against: ratio(\.rate) == nil ? nil : "noop\(suffix).rate"))
            report.add(
                BenchResult(
                    "\(name).cpu.all", own.map(\.all).median * 1000, "ms/message",
                    ratio: ratio { 1 / $0.all },
                    against: ratio(\.all) == nil ? nil : "noop\(suffix).cpu.all (inverse)"))
            if contestant != .bare {
                report.add(
                    BenchResult("\(name).cpu.filter", own.map(\.filter).median * 1000, "ms/message")
                )
            }
        }
    }

    /// One filter's rate divided by another's in each round, and the same for the processor time of
    /// everything.
    static func ratios(
        _ runs: [FilterUnderTest: [Run]], _ one: FilterUnderTest, _ other: FilterUnderTest
    ) -> (rate: [Double], cpu: [Double])? {
        guard let a = runs[one], let b = runs[other] else { return nil }
        return (zip(a, b).map { $0.rate / $1.rate }, zip(a, b).map { $1.all / $0.all })
    }
}
