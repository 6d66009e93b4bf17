// The report of a running service about itself, for `postern status`.

import Accounts
import Foundation
import PosternMetrics

/// Counts since the start, and those of the current minute.
package struct ServiceSnapshot: Codable, Sendable {
    package struct Latency: Codable, Sendable {
        /// In seconds: the upper bound of the histogram bucket that contains the value.
        package let median: Double
        package let high: Double
        package let count: Int
    }

    /// Seconds without a report after which a service counts as ended.
    package static let timeout: Int64 = 10

    package let version: String
    /// Seconds since 1970.
    package let startedAt: Int64
    package let milter: String
    /// Nil if there is no HTTP API.
    package let http: String?
    /// Counts since the start, by name, for example `messages forward relayed`.
    package let totals: [String: Int]
    /// Counts since the last minute that was written to the store.
    package let sinceMinute: [String: Int]
    /// Within the last hour, by stage.
    package let latency: [String: Latency]
    package let outboxOldest: Double
    package let outboxEvents: Double
    /// The service's keys by name, for example `seal b`, each with its state and fingerprint.
    package var keys: [String: String] = [:]
    /// Messages in Postfix's queue for addresses at a relay domain; nil if not known.
    package var parked: Int?
    /// The reason why the number is not known; nil if it is known, or the queue was not examined
    /// yet.
    package var queueTrouble: String?
    /// The reason why the log that `delivery.log` names cannot be read; nil if it can, or none is
    /// named.
    package var logTrouble: String?
    /// The reason why HTTP clients cannot connect, or should not trust the certificate; nil if they
    /// can.
    package var certificateTrouble: String?
    /// The reason why listings are read at the primary, although `database_replica` names a
    /// standby; nil if they are not.
    package var replicaTrouble: String?
    /// Seconds by which the host's clock is ahead of the store's.
    package var clockAhead: Double = 0
}

/// Makes snapshots from metrics, and keeps those of the last hour.
package struct SnapshotMaker: Sendable {
    private struct Sample {
        let at: Int64
        let stages: [String: [Int]]
    }

    private let metrics: ServiceMetrics
    private let startedAt: Int64
    private let milter: String
    private let http: String?
    /// One per minute, the oldest first.
    private var samples: [Sample] = []
    /// The total of the completed minutes, and when the last one ended.
    private var written: (counts: [String: Int], at: Int64)

    /// - Parameter startedAt: seconds since 1970.
    package init(metrics: ServiceMetrics, startedAt: Int64, milter: String, http: String?) {
        self.metrics = metrics
        self.startedAt = startedAt
        self.milter = milter
        self.http = http
        written = ([:], startedAt)
    }

    /// Seconds in a minute that is written to the store.
    private static let minute: Int64 = 60

    /// The counts since the last minute, when it is 60 seconds old; nil if nothing was counted.
    /// - Parameter isLast: whether the service ends, so that less than a minute counts too.
    package mutating func minute(
        now: Int64, isLast: Bool = false
    ) -> ServiceStatusRepository.Minute? {
        guard isLast || now - written.at >= Self.minute else { return nil }
        let all = counts()
        let new = Self.difference(all, written.counts)
        written = (all, now)
        guard !new.isEmpty, let text = try? JSONEncoder().encode(new) else { return nil }
        return ServiceStatusRepository.Minute(
            at: now, counts: String(decoding: text, as: UTF8.self))
    }

    private static func difference(
        _ counts: [String: Int], _ before: [String: Int]
    ) -> [String: Int] {
        counts.merging(before) { $0 - $1 }.filter { $0.value > 0 }
    }

    /// The state of the service at this time (seconds since 1970).
    package mutating func snapshot(now: Int64) -> ServiceSnapshot {
        let sample = Sample(at: now, stages: stages())
        let counts = counts()
        if now - (samples.last?.at ?? .min / 2) >= 60 {
            samples.append(sample)
            samples.removeAll { now - $0.at > 3600 }
        }
        // If the service is younger than an hour, all samples belong to the last hour.
        let base = now - startedAt > 3600 ? samples.first : nil
        let bounds = Histogram.seconds
        return ServiceSnapshot(
            version: PosternVersion.text, startedAt: startedAt, milter: milter, http: http,
            totals: counts,
            sinceMinute: Self.difference(counts, written.counts),
            latency: sample.stages.reduce(into: [:]) { result, stage in
                let before = base?.stages[stage.key] ?? stage.value.map { _ in 0 }
                result[stage.key] = Self.latency(
                    zip(stage.value, before).map { $0 - $1 }, bounds: bounds)
            },
            outboxOldest: metrics.outboxAge.value, outboxEvents: metrics.outboxSize.value,
            parked: Int(exactly: metrics.parkedMessages.value).flatMap { $0 < 0 ? nil : $0 })
    }

    private static func latency(_ counts: [Int], bounds: [Double]) -> ServiceSnapshot.Latency? {
        guard let total = counts.last, total > 0 else { return nil }
        func bound(_ share: Double) -> Double {
            let index = counts.firstIndex { Double($0) >= share * Double(total) } ?? bounds.count
            return index < bounds.count ? bounds[index] : bounds[bounds.count - 1] * 2
        }
        return ServiceSnapshot.Latency(median: bound(0.5), high: bound(0.95), count: total)
    }

    private func counts() -> [String: Int] {
        var counts: [String: Int] = [:]
        func add(_ name: String, _ family: Family<Counter>) {
            for (values, counter) in family.all {
                counts[([name] + values).joined(separator: " ")] = counter.count
            }
        }
        add("messages", metrics.messages)
        add("refusals", metrics.refusals)
        add("decisions", metrics.decisions)
        add("rules", metrics.decisionRules)
        add("events", metrics.events)
        for (values, counter) in metrics.dnsQueries.all {
            counts["dns \(values.last ?? "")", default: 0] += counter.count
        }
        for (values, counter) in metrics.httpRequests.all {
            counts["http \(values.last?.prefix(1) ?? "")xx", default: 0] += counter.count
        }
        counts["leak-incidents"] = metrics.leakIncidents.count
        return counts
    }

    private func stages() -> [String: [Int]] {
        Dictionary(
            metrics.milterSeconds.all.map { ($0.values.first ?? "", $0.metric.cumulative) },
            uniquingKeysWith: { first, _ in first })
    }
}
