// http-load for a route, and its measurements.

import Foundation

/// A run, and its cost for the server.
package struct MeasuredLoad: Sendable {
    package let result: LoadResult
    /// Microseconds of processor time that this process spent on each answer. It varies less than
    /// the rate if other processes share the machine.
    package let processorTime: Double
    /// How busy all processors of the machine were, from 0 to 1, with all of their work.
    package let busy: Double

    package var line: String {
        String(format: "%8.0f requests/s  ", result.requestsPerSecond) + result.latencies.line
            + String(
                format: "  %4.0f µs of processor each, processors %.0f %% busy", processorTime,
                100 * busy)
            + (result.refused > 0
                ? String(
                    format: "  refused %.1f %%",
                    100 * Double(result.refused) / Double(result.answered)) : "")
            + (result.failures > 0 ? "  FAILED: \(result.failures)" : "")
    }
}

package struct LoadError: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// The destination of requests.
package struct LoadTarget: Sendable {
    private let host: String
    private let port: String
    private let key: String
    private let body: String
    private let accounts: Int
    private let stride: Int

    /// - Parameters:
    ///   - address: `host:port`.
    ///   - key: of the team.
    ///   - body: `{n}` in it becomes the number of an account, in 16 digits: a
    ///     multiple of `stride`.
    package init(address: String, key: String, body: String, accounts: Int, stride: Int = 1) {
        let parts = address.split(separator: ":").map(String.init)
        (host, port) = (parts.first ?? "", parts.last ?? "")
        (self.key, self.body, self.accounts, self.stride) = (key, body, accounts, stride)
    }

    /// Sends requests for this number of seconds.
    /// - Parameter rate: requests a second, at random moments; if nil, each connection sends the
    ///   next request after each answer.
    package func run(
        _ path: String, seconds: Int, connections: Int = 32, rate: Double? = nil
    ) throws -> MeasuredLoad {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            .deletingLastPathComponent()
            .appendingPathComponent("http-load")
        process.arguments = [
            host, port, path, key, body, "\(accounts)", "\(stride)", "\(connections)", "\(seconds)",
            "\(rate ?? 0)",
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        let (before, processorsBefore) = (Self.processorTime, Processors.now)
        do { try process.run() } catch {
            throw LoadError(
                description:
                    "http-load is needed: swift build -c release --product http-load (\(error))")
        }
        let octets = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let (spent, busy) = (
            Self.processorTime - before, Processors.now.busy(since: processorsBefore)
        )
        guard process.terminationStatus == 0 else {
            throw LoadError(description: "http-load ended with \(process.terminationStatus)")
        }
        let result = try JSONDecoder().decode(LoadResult.self, from: octets)
        return MeasuredLoad(
            result: result, processorTime: spent / Double(max(1, result.answered)) * 1e6, busy: busy
        )
    }

    /// Seconds that this process has run, without its children.
    private static var processorTime: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}
