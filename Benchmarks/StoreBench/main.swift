// Look-ups of relay addresses in stores of different sizes, on both engines, and how long `postern serve` takes to start on each.
//
// StoreBench [--sizes 10000,1000000,10000000] [--lookups 20000] [--engines sqlite,postgres] [--starts 5] [--keep FOLDER]
// [--check]
// StoreBench --plot FILE
//
// --keep: stores stay in the folder and are used again, since filling ten million takes minutes.
// --plot: nothing is measured; what all benchmarks left of stores of several sizes is drawn.

import BenchReport
import BenchStores
import Foundation

let arguments = BenchArguments()
let lookups = arguments.number("lookups", 20_000)
let sizes = arguments.numbers("sizes", [10_000, 1_000_000, 10_000_000])
let engines = Engine.allCases.filter { arguments.words("engines")?.contains($0.rawValue) ?? true }
var report = BenchReport()

@MainActor func measure(_ engine: Engine) throws {
    // All sizes are next to each other and are measured in turn: what else the machine does falls on all alike.
    let stores = try sizes.map { try SizedStore(engine, $0, kept: arguments.text("keep"), lookups: lookups) }
    defer { for store in stores { store.end() } }
    var times = [[LookUpTime]](repeating: [], count: stores.count)
    for _ in 0..<3 { for (index, store) in stores.enumerated() { times[index].append(try store.lookUp()) } }
    for (index, store) in stores.enumerated() {
        let pairs = Array(zip(times[index], times[0]))
        func ratio(_ value: (LookUpTime) -> Double) -> Double { pairs.map { value($0) / value($1) }.median }
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
            // Of processor time, that of the server's process included: other work on the machine disturbs it least.
            report.goal(
                "\(engine.rawValue): look-up with \(store.count) by one with \(sizes[0])",
                pairs.map { ($0.cpu + $0.server) / ($1.cpu + $1.server) },
                engine == .sqlite ? 2.2 : 1.5, atMost: true)
        }
    }
    for store in stores {
        let took = try (0..<arguments.number("starts", 5)).map { _ in try store.start() }.median
        report.add(BenchResult("start.\(engine.rawValue).\(store.count)", took, "s"))
        report.goal("\(engine.rawValue): seconds to start with \(store.count)", took, 1, atMost: true)
    }
}

var status: Int32 = 0
do {
    if let file = arguments.text("plot") {
        try GrowthPlot.svg(BenchReport.saved()).write(toFile: file, atomically: true, encoding: .utf8)
        exit(0)
    }
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
