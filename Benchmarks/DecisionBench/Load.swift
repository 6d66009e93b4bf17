// wrk(1) against a route, and what it measured.

import Foundation

/// What wrk says of a run.
struct LoadResult {
    let requestsPerSecond: Double
    let median: String
    let p99: String
    let failures: Int

    var line: String {
        let rate = String(format: "%8.0f", requestsPerSecond)
        return "\(rate) requests/s   p50 \(median)   p99 \(p99)" + (failures > 0 ? "   FAILED: \(failures)" : "")
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
        do { try process.run() } catch { throw LoadError(description: "wrk is needed: apt-get install wrk (\(error))") }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        func value(_ name: String) -> String? {
            text.split(separator: "\n").first { $0.contains(name) }?.split(separator: " ").last.map(String.init)
        }
        guard let rate = value("Requests/sec:").flatMap(Double.init) else { throw LoadError(description: "wrk said:\n\(text)") }
        let failures = value("Non-2xx").flatMap { Int($0) } ?? 0
        return LoadResult(requestsPerSecond: rate, median: value("50%") ?? "?", p99: value("99%") ?? "?", failures: failures)
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
