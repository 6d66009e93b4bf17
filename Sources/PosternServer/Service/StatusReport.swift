// One screen of how an installation is doing, from its database.

import Foundation
import PosternStore

/// What `postern status` shows.
package struct StatusReport: Encodable, Sendable {
    package struct Host: Encodable, Sendable {
        package let host: String
        package let pid: Int64
        package let isRunning: Bool
        /// Seconds since it last said anything.
        package let silentFor: Int64
        package let snapshot: ServiceSnapshot?
    }

    package let configuration: String
    package let relayDomains: [String]
    package let hosts: [Host]
    package let teams: Int
    package let accounts: Int
    /// Sentences, the worst first; each says what to do.
    package let warnings: [String]

    /// Reads the database; asks nobody else.
    package init(_ installation: Installation, now: Int64) throws {
        let store = installation.store
        configuration = installation.resolved.path
        relayDomains = installation.configuration.relayDomains
        hosts = try store.serviceStatus.all().map { entry in
            let silence = max(0, now - entry.updatedAt)
            return Host(
                host: entry.host, pid: entry.pid, isRunning: silence <= StatusService.patience, silentFor: silence,
                snapshot: try? JSONDecoder().decode(ServiceSnapshot.self, from: Data(entry.snapshot.utf8)))
        }
        let teams = try store.teams.all()
        self.teams = teams.count
        accounts = try teams.reduce(0) { try $0 + store.teams.dependents($1.id).accounts }
        warnings = try Self.warnings(installation, hosts, now)
    }

    /// Counts within the last hour, over all running services.
    package func lastHour(_ name: String) -> Int { sum(name, \.lastHour) }
    /// Counts since each running service started.
    package func total(_ name: String) -> Int { sum(name, \.totals) }
    /// The names under a heading with their counts within the last hour, the largest first.
    package func lastHour(under heading: String) -> [(name: String, count: Int)] {
        var counts: [String: Int] = [:]
        for host in hosts where host.isRunning {
            for (name, count) in host.snapshot?.lastHour ?? [:] where name.hasPrefix(heading + " ") && count > 0 {
                counts[String(name.dropFirst(heading.count + 1)), default: 0] += count
            }
        }
        return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
    }

    private func sum(_ name: String, _ path: KeyPath<ServiceSnapshot, [String: Int]>) -> Int {
        hosts.filter(\.isRunning).reduce(0) { $0 + ($1.snapshot?[keyPath: path][name] ?? 0) }
    }

    /// Days for which it is told that a team wrote inboxes of its users.
    package static let probingDays: Int64 = 7

    private static func warnings(_ installation: Installation, _ hosts: [Host], _ now: Int64) throws -> [String] {
        var warnings: [String] = []
        let running = hosts.filter(\.isRunning)
        let incidents = running.reduce(0) { $0 + ($1.snapshot?.totals["leak-incidents"] ?? 0) }
        if incidents > 0 { warnings.append("\(incidents) replies were refused because the last look found an inbox: search the log for leak-incident") }
        if let trouble = Self.writingTrouble(installation, now) {
            warnings.append("\(trouble): mail waits at its senders (451); make room, or mend what keeps the database from being written")
        }
        if let parked = running.compactMap({ $0.snapshot?.parked }).max(), parked > 0 {
            warnings.append(
                "\(parked) messages lie in Postfix's queue for addresses at a relay domain, where nothing is delivered: they passed no filter, or "
                    + "were not rewritten; postqueue -p shows them, postern doctor what is wrong")
        }
        if running.isEmpty { warnings.append("no service is running: mail waits at its senders; start postern serve") }
        for host in hosts where !host.isRunning {
            warnings.append("\(host.host) has said nothing for \(duration(host.silentFor)): see whether postern serve (pid \(host.pid)) still runs")
        }
        for entry in try installation.store.counters.inboxesWritten(since: Day.number(now) - probingDays) {
            warnings.append(
                "team \(entry.team) wrote real inboxes of \(entry.accounts) users in \(entry.messages) messages within \(probingDays) days: "
                    + "it knows them from elsewhere, or tries to find them out; ask it")
        }
        let oldest = running.map { $0.snapshot?.outboxOldest ?? 0 }.max() ?? 0
        if oldest > 3600 { warnings.append("an event has waited \(duration(Int64(oldest))) to be delivered: see postern event list") }
        for host in try installation.store.policies.hosts() where now - host.at <= PolicyHostState.silence {
            if let refusal = host.refusal { warnings.append("\(refusal): postern policy list says why; activate one that loads") }
        }
        let keys = try installation.store.dkimKeys.keys()
        for domain in installation.configuration.relayDomains where !keys.contains(where: { $0.domain == domain && $0.state == .active }) {
            warnings.append("\(domain) has no active signing key, so mail leaves unsigned: run postern dkim generate \(domain)")
        }
        for key in try installation.store.apiKeys.keys() {
            guard let end = key.expiresAt, key.state(now: now) == .active, end - now < 7 * 86_400, key.rotatedTo == nil else { continue }
            warnings.append("API key \(key.id) of \(key.team?.id ?? "the operator") ends in \(duration(end - now)): run postern key rotate \(key.id)")
        }
        if installation.configuration.operatorAddress == nil {
            warnings.append("operator_address is not set, so mail to postmaster and abuse waits at its senders (451): set it in postern.yaml")
        }
        return warnings
    }

    /// Why nothing can be written; nil where it can, or where whoever asks has no right to.
    private static func writingTrouble(_ installation: Installation, _ now: Int64) -> String? {
        do {
            try installation.store.database.checkWritable(now: now)
            return nil
        } catch let error as PermanentStoreError where error.code == .readOnly {
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// `3 d 4 h`, `12 min`, `40 s`.
    package static func duration(_ seconds: Int64) -> String {
        switch seconds {
        case ..<120: "\(max(0, seconds)) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }
}
