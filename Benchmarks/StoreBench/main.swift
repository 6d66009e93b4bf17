// Look-ups of relay addresses in stores of different sizes, on both engines, and the time in which
// `postern serve` starts on each.

import ArgumentParser
import BenchReport
import BenchStores
import Foundation

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "StoreBench",
        abstract:
            "Measure look-ups of relay addresses in stores of different sizes, and how long postern serve takes to start."
    )

    @Option(help: "Addresses in each store, divided by commas.") var sizes: CommaSeparated<Int> = [
        10_000, 1_000_000, 10_000_000,
    ]
    @Option(help: "Addresses that are looked up in a pass.") var lookups = 20_000
    @Option(help: "Engines, divided by commas.") var engines: CommaSeparated<Engine> = [
        .sqlite, .postgres,
    ]
    @Option(help: "Starts of postern serve on each store.") var starts = 5
    @Option(
        help: ArgumentHelp(
            "Stores stay in this folder and are used again, since filling ten million takes minutes.",
            valueName: "folder"))
    var keep: String?
    @Option(
        help: ArgumentHelp(
            "Measure nothing, and draw what all benchmarks left of stores of several sizes, as SVG.",
            valueName: "file"))
    var plot: String?
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false

    func validate() throws {
        try requirePositive([
            "sizes": sizes.values.min() ?? 0, "lookups": lookups, "starts": starts,
        ])
    }
}

let options = Options.parseOrExit()
let sizes = options.sizes.values
var report = BenchReport()

@MainActor func measure(_ engine: Engine) throws {
    // All sizes exist at the same time and are measured in turn, so that other work of the machine
    // affects all alike.
    let stores = try sizes.map {
        try SizedStore(engine, $0, kept: options.keep, lookups: options.lookups)
    }
    defer { for store in stores { store.end() } }
    var times = [[LookUpTime]](repeating: [], count: stores.count)
    for _ in 0..<3 {
        for (index, store) in stores.enumerated() { times[index].append(try store.lookUp()) }
    }
    for (index, store) in stores.enumerated() {
        let pairs = Array(zip(times[index], times[0]))
        func ratio(_ value: (LookUpTime) -> Double) -> Double {
            pairs.map { value($0) / value($1) }.median
        }
        let median = times[index].median
        let name = "lookup.\(engine.rawValue).\(store.count)"
        let first = "lookup.\(engine.rawValue).\(sizes[0])"
        func add(_ suffix: String, _ value: (LookUpTime) -> Double) {
            report.add(
                BenchResult(
                    name + suffix, value(median), "µs", ratio: index == 0 ? nil : ratio(value),
                    against: index == 0 ? nil : first + suffix))
        }
        add("", \.wall)
        add(".cpu") { $0.cpu + $0.server }
        if engine == .postgres { add(".cpu.server", \.server) }
        if index > 0 {
            // Measured in processor time, including that of the server's process: other work on the
            // machine disturbs it least.
            report.goal(
                "\(engine.rawValue): look-up with \(store.count) by one with \(sizes[0])",
                pairs.map { ($0.cpu + $0.server) / ($1.cpu + $1.server) },
                engine == .sqlite ? 2.2 : 1.5, atMost: true)
        }
    }
    for store in stores {
        let took = try (0..<options.starts).map { _ in try store.start() }.median
        report.add(BenchResult("start.\(engine.rawValue).\(store.count)", took, "s"))
        report.goal(
            "\(engine.rawValue): seconds to start with \(store.count)", took, 1, atMost: true)
    }
}

var status: Int32 = 0
do {
    if let file = options.plot {
        try GrowthPlot.svg(BenchReport.saved()).write(
            toFile: file, atomically: true, encoding: .utf8)
        exit(0)
    }
    print(Machine.description)
    fflush(nil)
    for engine in options.engines.values { try measure(engine) }
    report.printTable()
    try report.write()
    if !report.missed.isEmpty, options.check { status = 1 }
} catch {
    FileHandle.standardError.write(Data("StoreBench: \(error)\n".utf8))
    status = 1
}
exit(status)
