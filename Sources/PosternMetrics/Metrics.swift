// Counters, gauges and histograms, and their text for Prometheus. Cheap enough for the mail path:
// one or two atomic additions for each observation.

import Synchronization

/// A number that only increases.
package final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    package func add(_ count: Int = 1) { value.wrappingAdd(count, ordering: .relaxed) }
    package var count: Int { value.load(ordering: .relaxed) }
}

/// A number that rises and falls.
package final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)
    package func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    package var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// Durations, counted by upper bounds.
package final class Histogram: Sendable {
    /// Upper bounds in seconds, ascending: from a lookup in memory to the timeout of a mail server.
    package static let seconds: [Double] = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    package let bounds: [Double]
    private let buckets: [Counter]
    private let microseconds = Counter()

    init(bounds: [Double]) {
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    package func observe(_ seconds: Double) {
        buckets[bounds.firstIndex { seconds <= $0 } ?? bounds.count].add()
        microseconds.add(Int(max(0, min(seconds, 1e9)) * 1e6))
    }

    /// Measures the duration of the work.
    package func timed<Result, Failure: Error>(
        _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = ContinuousClock.now
        defer {
            let (seconds, attoseconds) = (ContinuousClock.now - start).components
            observe(Double(seconds) + Double(attoseconds) / 1e18)
        }
        return try work()
    }

    /// Observations up to each bound; the last entry counts all.
    package var cumulative: [Int] {
        var total = 0
        return buckets.map {
            total += $0.count
            return total
        }
    }
    package var sum: Double { Double(microseconds.count) / 1e6 }
}

/// One metric with its label values. The values are fixed words of our code; beyond `limit`
/// combinations, others count as `other`.
package final class Family<Metric: Sendable>: Sendable {
    /// Maximum number of combinations of label values. It is far more than our code has, and keeps
    /// a mistake in the code from filling the memory.
    package static var limit: Int { 500 }

    package let name: String
    package let help: String
    package let labels: [String]
    private let make: @Sendable () -> Metric
    private let metrics = Mutex<[[String]: Metric]>([:])

    init(name: String, help: String, labels: [String], make: @escaping @Sendable () -> Metric) {
        self.name = name
        self.help = help
        self.labels = labels
        self.make = make
        if labels.isEmpty { _ = self() }
    }

    /// The metric with these label values, in the order of `labels`.
    package func callAsFunction(_ values: String...) -> Metric {
        let key = values.count == labels.count ? values : labels.map { _ in "other" }
        return metrics.withLock { metrics in
            if let metric = metrics[key] { return metric }
            let place = metrics.count < Self.limit ? key : labels.map { _ in "other" }
            if let metric = metrics[place] { return metric }
            let metric = make()
            metrics[place] = metric
            return metric
        }
    }

    /// All metrics of the family, in a fixed order.
    package var all: [(values: [String], metric: Metric)] {
        metrics.withLock { $0.map { ($0.key, $0.value) } }.sorted {
            $0.0.lexicographicallyPrecedes($1.0)
        }
    }
}

/// All metrics of a process.
package final class MetricsRegistry: Sendable {
    private enum Entry: Sendable {
        case counter(Family<Counter>)
        case gauge(Family<Gauge>)
        case histogram(Family<Histogram>)
        case readings(
            name: String, help: String, labels: [String],
            read: @Sendable () -> [(values: [String], count: Int)])
    }
    private let entries = Mutex<[Entry]>([])

    package init() {}

    /// - Parameter name: must end in `_total`.
    package func counter(_ name: String, _ help: String, labels: [String] = []) -> Family<Counter> {
        let family = Family(name: name, help: help, labels: labels) { Counter() }
        entries.withLock { $0.append(.counter(family)) }
        return family
    }

    package func gauge(_ name: String, _ help: String, labels: [String] = []) -> Family<Gauge> {
        let family = Family(name: name, help: help, labels: labels) { Gauge() }
        entries.withLock { $0.append(.gauge(family)) }
        return family
    }

    /// - Parameter name: must end in its unit, `_seconds`.
    package func histogram(
        _ name: String, _ help: String, labels: [String] = [], bounds: [Double] = Histogram.seconds
    ) -> Family<Histogram> {
        let family = Family(name: name, help: help, labels: labels) { Histogram(bounds: bounds) }
        entries.withLock { $0.append(.histogram(family)) }
        return family
    }

    /// A gauge with one label, read on request, for each value that exists at that time; these are
    /// few. May block.
    package func readings(
        _ name: String, _ help: String, label: String,
        _ read: @escaping @Sendable () -> [(value: String, count: Int)]
    ) {
        readings(name, help, labels: [label]) { read().map { ([$0.value], $0.count) } }
    }

    /// The same with several labels.
    package func readings(
        _ name: String, _ help: String, labels: [String],
        _ read: @escaping @Sendable () -> [(values: [String], count: Int)]
    ) {
        entries.withLock {
            $0.append(.readings(name: name, help: help, labels: labels, read: read))
        }
    }

    /// Prometheus text (version 0.0.4).
    package func text() -> String {
        var text = ""
        func head(_ name: String, _ help: String, _ kind: String) {
            text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) \(kind)\n"
        }
        for entry in entries.withLock({ $0 }) {
            switch entry {
            case .counter(let family):
                head(family.name, family.help, "counter")
                for (values, counter) in family.all {
                    text += "\(family.name)\(Self.labels(family.labels, values)) \(counter.count)\n"
                }
            case .gauge(let family):
                head(family.name, family.help, "gauge")
                for (values, gauge) in family.all {
                    text +=
                        "\(family.name)\(Self.labels(family.labels, values)) \(Self.number(gauge.value))\n"
                }
            case .histogram(let family):
                head(family.name, family.help, "histogram")
                for (values, histogram) in family.all {
                    let counts = histogram.cumulative
                    for (bound, count) in zip(histogram.bounds.map(Self.number) + ["+Inf"], counts)
                    {
                        text +=
                            "\(family.name)_bucket\(Self.labels(family.labels + ["le"], values + [bound])) \(count)\n"
                    }
                    let labels = Self.labels(family.labels, values)
                    text +=
                        "\(family.name)_sum\(labels) \(Self.number(histogram.sum))\n\(family.name)_count\(labels) \(counts.last ?? 0)\n"
                }
            case .readings(let name, let help, let labels, let read):
                head(name, help, "gauge")
                for (values, count) in read() {
                    text += "\(name)\(Self.labels(labels, values)) \(count)\n"
                }
            }
        }
        return text
    }

    private static func labels(_ names: [String], _ values: [String]) -> String {
        guard !names.isEmpty else { return "" }
        return "{" + zip(names, values).map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",")
            + "}"
    }

    private static func number(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
    }

    private static func escaped(_ text: String) -> String {
        let octets = text.utf8.flatMap { octet -> [UInt8] in
            switch octet {
            case UInt8(ascii: "\\"): Array("\\\\".utf8)
            case UInt8(ascii: "\""): Array("\\\"".utf8)
            case UInt8(ascii: "\n"): Array("\\n".utf8)
            default: [octet]
            }
        }
        return String(decoding: octets, as: UTF8.self)
    }
}
