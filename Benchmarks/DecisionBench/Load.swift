// wrk(1) against a route, and what it measured.

import Foundation

/// What wrk says of a run.
struct LoadResult {
    let requestsPerSecond: Double
    /// Requests that wrk saw answered.
    let answered: Int
    let median: String
    let p99: String
    /// Answers other than 2xx, and connections that broke or timed out.
    let failures: Int
    /// Microseconds of processor time that this process spent on each answer: steadier than the rate where others share the
    /// machine.
    let processorTime: Double

    var line: String {
        let rate = String(format: "%8.0f", requestsPerSecond)
        let time = String(format: "%4.0f", processorTime)
        return "\(rate) requests/s   p50 \(median)   p99 \(p99)  \(time) µs of processor each"
            + (failures > 0 ? "   FAILED: \(failures)" : "")
    }
}

struct LoadError: Error, CustomStringConvertible {
    let description: String
}

enum Load {
    /// Runs wrk with a script; threads and connections few, since it shares the machine with what it measures.
    static func run(_ url: String, script: String, folder: URL, seconds: Int, connections: Int = 32) throws -> LoadResult {
        let file = folder.appendingPathComponent("\(UUID().uuidString).lua")
        try Data(script.utf8).write(to: file)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/wrk")
        process.arguments = [
            "-t1", "-c\(connections)", "-d\(seconds)s", "--latency", "-s", file.path, url,
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        let before = Self.processorTime
        do { try process.run() } catch { throw LoadError(description: "wrk is needed: apt-get install wrk (\(error))") }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let spent = Self.processorTime - before
        func value(_ name: String) -> String? {
            text.split(separator: "\n").first { $0.contains(name) }?.split(separator: " ").last.map(String.init)
        }
        guard let rate = value("Requests/sec:").flatMap(Double.init) else { throw LoadError(description: "wrk said:\n\(text)") }
        // "  Socket errors: connect 0, read 0, write 0, timeout 0", where there were any.
        let broken =
            text.split(separator: "\n").first { $0.contains("Socket errors:") }?
            .split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }.reduce(0, +) ?? 0
        let failures = (value("Non-2xx").flatMap { Int($0) } ?? 0) + broken
        let answered = text.split(separator: "\n").first { $0.contains(" requests in ") }?
            .split(separator: " ").first.flatMap { Int($0) }
        guard let answered else { throw LoadError(description: "wrk said:\n\(text)") }
        return LoadResult(
            requestsPerSecond: rate, answered: answered, median: value("50%") ?? "?", p99: value("99%") ?? "?",
            failures: failures,
            processorTime: spent / Double(max(1, answered)) * 1e6)
    }

    /// Seconds that this process has run, its children not counted.
    private static var processorTime: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// Posts a body that differs from request to request: `%d` in it becomes an account's number.
    static func script(key: String, body: String, accounts: Int) -> String {
        """
        math.randomseed(1)
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        wrk.headers["Authorization"] = "Bearer \(key)"
        local body = '\(body)'
        request = function()
            return wrk.format(nil, nil, nil, string.format(body, math.random(1, \(accounts))))
        end
        """
    }
}
