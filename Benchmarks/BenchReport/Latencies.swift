// Durations: percentiles of many values, without keeping each.

import Histogram

/// Times with three digits, up to an hour.
package struct Latencies: Codable, Sendable {
    /// Microseconds.
    private var histogram = Self.empty

    private static var empty: Histogram<UInt64> {
        Histogram<UInt64>(
            highestTrackableValue: 3_600_000_000, numberOfSignificantValueDigits: .three)
    }

    package init() {}

    package var count: Int { Int(histogram.totalCount) }

    package mutating func add(microseconds: UInt64) {
        histogram.record(min(max(1, microseconds), 3_600_000_000))
    }

    package mutating func add(_ time: Duration) {
        add(microseconds: UInt64(max(0, time / .microseconds(1))))
    }

    package mutating func add(_ others: Latencies) { histogram.add(others.histogram) }

    /// Maximum milliseconds for this percentage of the values; 0 without values.
    package func percentile(_ percent: Double) -> Double {
        count == 0 ? 0 : Double(histogram.valueAtPercentile(percent)) / 1000
    }

    /// Milliseconds of the slowest.
    package var slowest: Double { count == 0 ? 0 : Double(histogram.max) / 1000 }

    package var line: String {
        "p50 \(Self.text(percentile(50)))  p99 \(Self.text(percentile(99)))  p99.9 \(Self.text(percentile(99.9)))"
            + "  slowest \(Self.text(slowest)) ms"
    }

    private static func text(_ value: Double) -> String {
        let digits = value < 10 ? 100.0 : value < 100 ? 10.0 : 1.0
        let rounded = (value * digits).rounded() / digits
        return digits == 1 ? "\(Int(rounded))" : "\(rounded)"
    }
}

/// The results of requests over HTTP.
package struct LoadResult: Codable, Sendable {
    package let requestsPerSecond: Double
    package let answered: Int
    /// Answers with 429.
    package let refused: Int
    /// Other answers than 200 and 429, requests without an answer, and requests that had no free
    /// connection at the end.
    package let failures: Int
    package let latencies: Latencies

    package init(
        requestsPerSecond: Double, answered: Int, refused: Int, failures: Int, latencies: Latencies
    ) {
        self.requestsPerSecond = requestsPerSecond
        self.answered = answered
        self.refused = refused
        self.failures = failures
        self.latencies = latencies
    }
}
