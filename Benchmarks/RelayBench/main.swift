// How long the relay takes for a message: the public corpora as replies and reports, and messages
// made to be slow.
//
// The bound is 50 ms for a message or 100 ms for each megabyte, whichever is larger, on a machine
// of one speed: each message is timed next to a fixed piece of work, and measured in its units.

import ArgumentParser
import BenchReport
import Foundation
import HostileMail
import InternetMessage

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "RelayBench",
        abstract:
            "Measure how long the relay takes for a message: public corpora, and messages made to be slow.",
        discussion: "A message may take 50 ms, or 100 ms for each megabyte, whichever is more.")

    @Argument(help: "Measure only what has one of these words in its name.") var words: [String] =
        []
    @Flag(help: "End with status 1 where a message takes longer than it may.") var check = false
    @Flag(
        help:
            "Measure how much memory each of the messages made to be slow takes, and nothing else.")
    var memory = false
}

/// One measured message.
private struct Measurement {
    let name: String
    let octets: Int
    /// The minimum of the runs, converted to the machine for which the bound is made.
    let milliseconds: Double
    let outcome: String

    var megabytes: Double { Double(octets) / 1_000_000 }
    /// Part of the allowed time; over 1 is too slow.
    var ratio: Double { milliseconds / max(50, 100 * megabytes) }

    var line: String {
        let perMegabyte =
            octets >= 100_000
            ? String(format: "%7.1f ms/MB", milliseconds / megabytes)
            : String(repeating: " ", count: 13)
        return String(format: "%6.2f of bound %9.2f ms %8.2f MB ", ratio, milliseconds, megabytes)
            + "\(perMegabyte)  \(name) (\(outcome))"
    }
}

private func measure(_ name: String, octets: Int, runs: Int, _ work: () -> String) -> Measurement {
    var best = Double.infinity
    var outcome = ""
    for _ in 0..<runs {
        let before = MachineSpeed.factor()
        let start = cpuSeconds()
        outcome = work()
        let took = cpuSeconds() - start
        best = min(best, took / max(before, MachineSpeed.factor()))
    }
    return Measurement(name: name, octets: octets, milliseconds: best * 1000, outcome: outcome)
}

private func fatal(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(1)
}

private let options = Options.parseOrExit()
guard let world = RelayBenchFixture() else { fatalError("no world") }
private func isWanted(_ name: String) -> Bool {
    options.words.isEmpty || options.words.contains { name.contains($0) }
}
private var over = 0
/// The slowest message of each kind, as part of the allowed time.
private var slowest: [String: Double] = [:]

@MainActor private func show(
    _ kind: String, _ title: String, _ all: [Measurement], showing count: Int
) {
    guard !all.isEmpty else { return }
    let total = all.reduce(0) { $0 + $1.milliseconds }
    let size = all.reduce(0) { $0 + $1.megabytes }
    print(
        String(
            format: "%@: %d messages, %.2f MB, %.0f ms, %.1f ms/MB", title, all.count, size, total,
            total / max(size, 0.000001)))
    for one in all.sorted(by: { $0.ratio > $1.ratio }).prefix(count) { print("  " + one.line) }
    over += all.filter { $0.ratio > 1 }.count
    slowest[kind] = max(slowest[kind] ?? 0, all.map(\.ratio).max() ?? 0)
}

if options.memory {
    measureMemory(world, isWanted: isWanted)
    exit(0)
}

// The public corpora, each message as a reply of the user and as a report at a return path.
for folder in ["mail", "bounces", "replies", "calendar"] {
    var replies: [Measurement] = []
    var reports: [Measurement] = []
    for (name, bytes) in BenchCorpus.messages(folder) where isWanted(name) {
        let message = Message.parse(bytes)
        let body = Array(message.body)
        let header = BenchCorpus.header(
            message.header, author: RelayBenchFixture.inbox, recipient: world.reverse)
        replies.append(
            measure(name, octets: bytes.count, runs: 3) {
                world.play(
                    from: RelayBenchFixture.inbox, to: world.reverse, header: header, body: body)
            })
        let safe = HeaderSection(message.header.fields.filter(\.controls.isEmpty))
        reports.append(
            measure(name, octets: bytes.count, runs: 3) {
                world.play(from: "", to: world.bounce, header: safe, body: body)
            })
    }
    show("message of the corpora", "\(folder) as replies", replies, showing: 3)
    show("message of the corpora", "\(folder) as reports", reports, showing: 3)
}

// Messages made to be slow, 2 MB each, and bombs of many sizes.
private var hostile: [Measurement] = []
for item in Hostile.all(size: 2_000_000, reverse: world.reverse) + Hostile.bombs
where isWanted("hostile " + item.name) {
    let header = BenchCorpus.header(
        HeaderSection(item.header), author: RelayBenchFixture.inbox, recipient: world.reverse)
    let body = item.body
    let octets = body.count + header.serialized.count
    hostile.append(
        measure("hostile " + item.name, octets: octets, runs: 2) {
            world.play(from: RelayBenchFixture.inbox, to: world.reverse, header: header, body: body)
        })
    let safe = HeaderSection(item.header.filter(\.controls.isEmpty))
    hostile.append(
        measure("hostile report " + item.name, octets: octets, runs: 2) {
            world.play(from: "", to: world.bounce, header: safe, body: body)
        })
}
show("message made to be slow", "made to be slow", hostile, showing: 200)
private var report = BenchReport()
if isWanted("beside bombs"), let seconds = slowestBesideBombs() {
    report.goal(
        "relay: a reply of 4 kB beside bombs of 19 MB, ms", seconds * 1000, 1000, atMost: true)
    if seconds > 1 { over += 1 }
}
for (kind, ratio) in slowest.sorted(by: { $0.key < $1.key }) {
    report.goal("relay: slowest \(kind), part of 50 ms or 100 ms/MB", ratio, 1, atMost: true)
}
guard !report.goals.isEmpty else {
    fatal("nothing was measured: no message has one of these words in its name")
}
// A part of the messages does not show the worst of all.
if options.words.isEmpty { try report.write() }
print(
    over == 0
        ? "every message within 50 ms or 100 ms/MB" : "\(over) messages over 50 ms and 100 ms/MB")
exit(options.check && over > 0 ? 1 : 0)
