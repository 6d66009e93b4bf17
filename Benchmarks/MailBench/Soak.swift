// Hours of all kinds of work on two hosts: values that grow, and work that gets slower.

import BenchReport
import Foundation
import PostfixHarness
import RelayHarness

/// The values of a round.
struct SoakSample: Codable, Sendable {
    /// Since the start.
    var minute = 0.0
    /// By host: MiB resident, MiB of the process alone, open files, threads.
    var resident: [Double] = []
    var anonymous: [Double] = []
    var files: [Double] = []
    var threads: [Double] = []
    /// Milliseconds, of both hosts.
    var mailMedian = 0.0
    var mailTail = 0.0
    var decisionMedian = 0.0
    var decisionTail = 0.0
    var databaseMegabytes = 0.0
    var waitingEvents = 0
    var messages = 0
    var deferred = 0
    var decisions = 0
}

struct Soak {
    let hosts: SoakHosts
    /// Messages and decisions a second, on both hosts together.
    let mail: Double
    let decisions: Double
    let roundSeconds: Int
    /// Rounds from one replacement of keys to the next.
    static let rotation = 10

    func run(hours: Double, each: (SoakSample) throws -> Void) throws {
        let start = ContinuousClock.now
        var round = 0
        // At least one round is necessary for a result.
        repeat {
            var sample = try self.round(round)
            sample.minute = (ContinuousClock.now - start) / .seconds(60)
            try each(sample)
            round += 1
        } while ContinuousClock.now - start < .seconds(hours * 3600)
    }

    private func round(_ round: Int) throws -> SoakSample {
        var works: [@Sendable () throws -> Void] = []
        let latencies = Watched(Round())
        for host in 0..<2 {
            for (isReply, share) in [(false, 0.8), (true, 0.2)] {
                let rate = mail / 2 * share
                let source = hosts.source(
                    host, isReply: isReply, messages: max(1, Int(rate * Double(roundSeconds))),
                    rate: rate)
                works.append {
                    let outcome = try source.run()
                    latencies.with {
                        $0.mail.add(outcome.latencies)
                        $0.deferred += outcome.deferred
                    }
                }
            }
            let (target, rate, seconds) = (hosts.hosts[host].decisions, decisions / 2, roundSeconds)
            works.append {
                let load = try target.run("/v1/decisions", seconds: seconds, rate: rate)
                guard load.result.failures + load.result.refused == 0 else {
                    throw BenchFailure("decisions failed: \(load.line)")
                }
                latencies.with { $0.decisions.add(load.result.latencies) }
            }
        }
        let failures = Watched<[any Error]>([])
        let running = Watched(works.count)
        for work in works {
            Thread.detachNewThread {
                do { try work() } catch { failures.with { $0.append(error) } }
                running.with { $0 -= 1 }
            }
        }
        try hosts.changePeople(round, count: 5)
        if round % Self.rotation == Self.rotation - 1 {
            try hosts.rotateKeys()
            try hosts.hosts[0].fixture.run(["keys", "signing", "rotate", "--early"])
        }
        guard running.wait(seconds: 600, for: { $0 == 0 ? true : nil }) != nil else {
            throw BenchFailure("a round hangs")
        }
        if let failure = failures.with({ $0.first }) { throw failure }
        return try sample(latencies.with { $0 })
    }

    /// The results of a round.
    private struct Round {
        var mail = Latencies()
        var deferred = 0
        var decisions = Latencies()
    }

    private func sample(_ latencies: Round) throws -> SoakSample {
        var sample = SoakSample()
        for host in hosts.hosts {
            let process = try host.fixture.process
            sample.resident.append(Double(process.memory("VmRSS") ?? 0) / 1024)
            sample.anonymous.append(Double(process.memory("RssAnon") ?? 0) / 1024)
            sample.threads.append(Double(process.memory("Threads") ?? 0))
            let files = try FileManager.default.contentsOfDirectory(
                atPath: "/proc/\(process.identifier)/fd"
            ).count
            sample.files.append(Double(files))
        }
        (sample.mailMedian, sample.mailTail) = (
            latencies.mail.percentile(50), latencies.mail.percentile(99)
        )
        (sample.decisionMedian, sample.decisionTail) = (
            latencies.decisions.percentile(50), latencies.decisions.percentile(99)
        )
        (sample.messages, sample.decisions) = (latencies.mail.count, latencies.decisions.count)
        sample.deferred = latencies.deferred
        (sample.databaseMegabytes, sample.waitingEvents) = try hosts.stored()
        return sample
    }
}

extension [SoakSample] {
    /// Medians of the second tenth and of the last one. The first tenth is the warm-up.
    func drift(_ value: (SoakSample) -> Double) -> (first: Double, last: Double) {
        let part = Swift.max(1, count / 10)
        return (
            self[Swift.min(part, count - 1)..<Swift.min(2 * part, count)].map(value).median,
            suffix(part).map(value).median
        )
    }
}
