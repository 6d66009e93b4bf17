// The results of benchmarks: a table for people, and .build/bench.json for programs.

import Foundation

/// One figure.
package struct BenchResult: Codable, Sendable {
    /// Stable, unique: `forward.rate`, `lookup.sqlite.10000000`.
    package let name: String
    package let value: Double
    /// `messages/s`, `ms`, `MiB`, `µs`, `s`.
    package let unit: String
    /// `value` divided by that of `against`, both from alternating runs; nil without a comparison.
    package let ratio: Double?
    /// Name of the result with which `ratio` compares.
    package let against: String?

    package init(
        _ name: String, _ value: Double, _ unit: String, ratio: Double? = nil,
        against: String? = nil
    ) {
        self.name = name
        self.value = value
        self.unit = unit
        self.ratio = ratio
        self.against = against
    }
}

/// A figure with its bound.
package struct BenchGoal: Codable, Sendable {
    /// In words; unique.
    package let text: String
    /// The median of the rounds.
    package let value: Double
    /// Half of the distance from the lowest round to the highest: the effect of the machine's noise
    /// on the figure. Nil if it was measured only once.
    package let spread: Double?
    package let bound: Double
    /// Whether the bound is an upper one.
    package let isUpper: Bool

    package enum Verdict: String, Sendable {
        case ok = "ok", noise = "within noise", missed = "MISSED"
    }

    package var verdict: Verdict {
        let beyond = isUpper ? value - bound : bound - value
        return beyond <= 0 ? .ok : beyond <= spread ?? 0 ? .noise : .missed
    }

    package var line: String {
        let figures =
            String(format: "%.3g", value) + (spread.map { String(format: " ± %.2g", $0) } ?? "")
        return verdict.rawValue.padding(toLength: 13, withPad: " ", startingAt: 0)
            + "\(text): \(figures) (\(isUpper ? "at most" : "at least") \(String(format: "%.3g", bound)))"
    }
}

/// Gathers results and writes them.
package struct BenchReport {
    package private(set) var results: [BenchResult] = []
    package private(set) var goals: [BenchGoal] = []
    /// Goals that were missed by more than the noise, in words.
    package var missed: [String] { goals.filter { $0.verdict == .missed }.map(\.text) }

    package init() {}

    package mutating func add(_ result: BenchResult) { results.append(result) }

    /// The three figures for durations.
    package mutating func add(_ name: String, _ latencies: Latencies) {
        for (suffix, percent) in [("p50", 50), ("p99", 99), ("p99.9", 99.9)] {
            add(BenchResult("\(name).\(suffix)", latencies.percentile(percent), "ms"))
        }
    }

    /// Compares a value with its goal. A missed goal is reported at the end.
    /// - Parameter atMost: whether the bound is an upper one.
    package mutating func goal(_ text: String, _ value: Double, _ bound: Double, atMost: Bool) {
        goal(text, [value], bound, atMost: atMost)
    }

    /// The same for a figure of several rounds, with the machine's noise as its spread.
    package mutating func goal(_ text: String, _ rounds: [Double], _ bound: Double, atMost: Bool) {
        let spread = rounds.count > 1 ? ((rounds.max() ?? 0) - (rounds.min() ?? 0)) / 2 : nil
        let goal = BenchGoal(
            text: text, value: rounds.median, spread: spread, bound: bound, isUpper: atMost)
        print(goal.line)
        fflush(nil)
        goals.append(goal)
    }

    /// Prints the table.
    package func printTable() {
        let width = max(20, results.map(\.name.count).max() ?? 0)
        print(
            "\n" + "name".padding(toLength: width, withPad: " ", startingAt: 0)
                + "       value  unit          ratio  against")
        for result in results {
            var line =
                result.name.padding(toLength: width, withPad: " ", startingAt: 0)
                + String(format: "%12.3f  ", result.value)
            line += result.unit.padding(toLength: 12, withPad: " ", startingAt: 0)
            if let ratio = result.ratio {
                line += String(format: "%7.3f  ", ratio) + (result.against ?? "")
            }
            print(line)
        }
        print("")
    }

    /// Writes the results to `.build/bench.json` of the current folder and the goals to
    /// `.build/bench-goals.json`. Those of other benchmarks there are kept.
    package func write() throws {
        try Self.merge(results, into: "bench.json", by: \.name)
        try Self.merge(goals, into: "bench-goals.json", by: \.text)
    }

    /// The results of all benchmarks in `.build/bench.json` of the current folder.
    package static func saved() throws -> [BenchResult] {
        try JSONDecoder().decode([BenchResult].self, from: Data(contentsOf: file("bench.json")))
    }

    private static func file(_ name: String) -> URL {
        URL(fileURLWithPath: FileManager.default.currentDirectoryPath).appendingPathComponent(
            ".build/\(name)")
    }

    private static func merge<Entry: Codable>(
        _ new: [Entry], into file: String, by name: (Entry) -> String
    ) throws {
        let url = self.file(file)
        let names = Set(new.map(name))
        let kept = ((try? JSONDecoder().decode([Entry].self, from: Data(contentsOf: url))) ?? [])
            .filter {
                !names.contains(name($0))
            }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try encoder.encode(kept + new).write(to: url, options: .atomic)
    }
}

/// The machine of a measurement, in one line.
package enum Machine {
    package static var description: String {
        func lines(_ path: String) -> [Substring] {
            ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n")
        }
        func value(_ path: String, _ key: String, _ separator: Character) -> String {
            lines(path).first { $0.hasPrefix(key) }?.split(separator: separator, maxSplits: 1).last?
                .trimmingCharacters(in: CharacterSet(charactersIn: " \"\t")) ?? "unknown"
        }
        let memory = Double(value("/proc/meminfo", "MemTotal", ":").filter(\.isNumber)) ?? 0
        let load =
            lines("/proc/loadavg").first.map {
                $0.split(separator: " ").prefix(3).joined(separator: " ")
            } ?? "unknown"
        return
            "\(ProcessInfo.processInfo.activeProcessorCount) × \(value("/proc/cpuinfo", "model name", ":")), "
            + String(format: "%.0f GB, ", memory / 1_048_576)
            + "\(value("/etc/os-release", "PRETTY_NAME", "=")), Linux \(lines("/proc/sys/kernel/osrelease").first ?? "?"), load \(load)"
    }
}

/// The work of all processors of the machine so far (proc(5), /proc/stat).
package struct Processors: Sendable {
    private let all: Double
    private let idle: Double

    package static var now: Processors {
        let text = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8)) ?? ""
        // user, nice, system, idle, iowait, and more
        let times = (text.split(separator: "\n").first ?? "").split(separator: " ").dropFirst()
            .prefix(8).compactMap {
                Double($0)
            }
        return Processors(all: times.reduce(0, +), idle: times.count > 4 ? times[3] + times[4] : 0)
    }

    /// The part of the time since then in which they were not idle, from 0 to 1. Time used by the
    /// host of a virtual machine counts.
    package func busy(since before: Processors) -> Double {
        all > before.all ? 1 - (idle - before.idle) / (all - before.all) : 0
    }
}

extension [Double] {
    /// The middle value; 0 without values.
    package var median: Double {
        guard !isEmpty else { return 0 }
        let sorted = self.sorted()
        return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2
    }
}
