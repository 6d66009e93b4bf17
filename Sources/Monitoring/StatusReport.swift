// The state of an installation on one screen, from its database.

import Accounts
import Database
import Decisions
import Foundation
import PosternConfiguration
import Support

/// The content of `postern status`.
package struct StatusReport: Encodable, Sendable {
    package struct Host: Encodable, Sendable {
        package let host: String
        package let pid: Int64
        package let isRunning: Bool
        /// Seconds since its last report.
        package let silentFor: Int64
        package let snapshot: ServiceSnapshot?

        /// Whether it runs on the same machine and began after the last report of the other
        /// service. Then the other one was killed, and this is its restart.
        fileprivate func isSuccessor(of other: Host, now: Int64) -> Bool {
            guard isRunning, host == other.host, pid != other.pid, let snapshot else {
                return false
            }
            return snapshot.startedAt >= now - other.silentFor
        }
    }

    package let configuration: String
    package let relayDomains: [String]
    package let hosts: [Host]
    package let teams: Int
    package let accounts: Int
    /// Counts within the last hour for all services, including those that have ended.
    package let lastHour: [String: Int]
    /// Problems that need the operator, the worst first.
    package var warnings: [Trouble]
    /// Sentences about events of the last days that need no action.
    package let notes: [String]
    /// The latest reports of providers about hosts and domains, of the last two weeks.
    package let reports: [ProviderReports]
    /// Removed items whose rows are still being deleted step by step.
    package let removals: RemovalRepository.Backlog
    /// Holds in force (`postern hold list`).
    package let holds: Int
    /// When the first of them ends, in seconds since 1970; nil if there are none.
    package let nextHoldEnd: Int64?

    /// Reads only the database.
    package init(_ installation: Installation, now: Int64) throws(StoreFailure) {
        let store = installation.store
        configuration = installation.resolved.path
        relayDomains = installation.configuration.relayDomains
        let entries = try ServiceReport.all(store, now: now).map {
            Host(
                host: $0.entry.host, pid: $0.entry.pid, isRunning: $0.isRunning,
                silentFor: $0.silentFor, snapshot: $0.snapshot)
        }
        let minutes = try store.serviceStatus.minutes(after: now - Self.hour).compactMap { minute in
            (try? JSONDecoder().decode([String: Int].self, from: Data(minute.counts.utf8))).map {
                Minute(at: minute.at, counts: $0)
            }
        }
        // Counts that are not yet written as minutes, including those of a killed service.
        let recent = entries.filter { $0.silentFor < Self.hour }.map {
            Minute(at: now - $0.silentFor, counts: $0.snapshot?.sinceMinute ?? [:])
        }
        lastHour = (minutes + recent).reduce(into: [:]) { $0.merge($1.counts) { $0 + $1 } }
        hosts = entries.filter { entry in !entries.contains { $0.isSuccessor(of: entry, now: now) }
        }
        let teams = try store.teams.all()
        self.teams = teams.count
        accounts = try teams.map { team throws(StoreFailure) in
            try store.teams.accountCount(team.id)
        }.reduce(0, +)
        removals = try store.removals.backlog()
        notes =
            try store.inboxes.returned(since: now - Self.noteWindow).map {
                "\($0.subject): \($0.detail); forwarding to them resumed \(Self.duration(now - $0.at)) ago"
            } + Self.warmUp(store, now)
        let summaries = try store.deliveries.summaries(since: Day.number(now) - Self.reportDays)
        let tags = summaries.isEmpty ? [:] : try FeedbackTags.teams(of: installation)
        reports = summaries.map { ProviderReports($0, tags: tags) }
        warnings =
            try Self.warnings(installation, hosts, minutes + recent, now)
            + summaries.compactMap(ProviderReports.trouble)
        let inForce = try store.holds.all()
        (holds, nextHoldEnd) = (inForce.count, inForce.first?.endsAt)
    }

    /// Days for which a provider's figures are shown.
    private static let reportDays: Int64 = 14

    /// Seconds of the last hour.
    package static let hour: Int64 = 3600

    /// The counts of one minute, or of the time since the last one.
    private struct Minute {
        /// Its end, in seconds since 1970.
        let at: Int64
        let counts: [String: Int]
    }

    /// Counts since each running service started.
    package func total(_ name: String) -> Int {
        hosts.filter(\.isRunning).reduce(0) { $0 + ($1.snapshot?.totals[name] ?? 0) }
    }
    /// The names under a heading with their counts within the last hour, the largest first.
    package func lastHour(under heading: String) -> [(name: String, count: Int)] {
        lastHour.filter { $0.key.hasPrefix(heading + " ") && $0.value > 0 }.sorted {
            ($1.value, $0.key) < ($0.value, $1.key)
        }
        .map { (String($0.key.dropFirst(heading.count + 1)), $0.value) }
    }

    /// Seconds for which a note is shown.
    private static let noteWindow: Int64 = 7 * 86_400
    /// Seconds for which trouble is still reported after its end.
    private static let troubleWindow: Int64 = 900
    /// DNS queries without an answer in one minute. If there are fewer, other people's name servers
    /// are the cause.
    private static let manyFailures = 5
    /// The maximum number of users with a suspended inbox in the text.
    private static let namedUsers = 5

    /// Minutes in which mail waited for the DNS or the store.
    private static func trouble(_ minutes: [Minute], _ now: Int64) -> [Trouble] {
        let recent = minutes.filter { now - $0.at < troubleWindow }
        func told(
            _ bad: [Minute], _ sentence: (Int, String) -> String, _ remedy: Remedy,
            _ count: (Minute) -> Int
        ) -> [Trouble] {
            guard let last = bad.map(\.at).max() else { return [] }
            let when = now - last < 60 ? "just now" : "\(duration(now - last)) ago"
            return [Trouble(sentence(bad.reduce(0) { $0 + count($1) }, when), remedy)]
        }
        func asked(_ minute: Minute) -> Int {
            ["answer", "none", "failure"].reduce(0) { $0 + (minute.counts["dns \($1)"] ?? 0) }
        }
        func unanswered(_ minute: Minute) -> Int { minute.counts["dns failure"] ?? 0 }
        func stored(_ minute: Minute) -> Int { minute.counts["refusals store-trouble"] ?? 0 }
        let deaf = recent.filter {
            unanswered($0) >= manyFailures && 2 * unanswered($0) >= asked($0)
        }
        return told(
            deaf,
            {
                "the DNS did not answer \(Count.text($0, "query", "queries")), the last \($1), and mail waited"
            },
            "check the server that dns.servers names", unanswered)
            + told(
                recent.filter { stored($0) > 0 },
                {
                    "mail was deferred \(Count.text($0, "time")), the last \($1), because the database did not answer"
                },
                "search the log for store-trouble", stored)
    }

    private static func suspended(_ store: Store) throws(StoreFailure) -> [Trouble] {
        let (count, users) = try store.inboxes.suspended(limit: namedUsers)
        guard count > 0 else { return [] }
        let names = users.joined(separator: ", ") + (count > users.count ? " and others" : "")
        return [
            Trouble(
                "\(Count.text(count, "inbox is", "inboxes are")) suspended, because too much was refused there, and its mail waits at the senders "
                    + "(user \(names))",
                users.count == 1 ? "see \(.listInboxes, users[0])" : "see \(.listInboxes)")
        ]
    }

    /// Teams whose mail to a provider is slowed or held.
    package static func limitedTeams(
        _ store: Store, _ now: Int64
    ) throws(StoreFailure) -> [Trouble] {
        try store.deliveries.limits(now: now).compactMap { limit in
            guard let (text, isHeld) = limit.sentence(now: now) else { return nil }
            return Trouble(
                text,
                isHeld
                    ? "ask the team to stop; it ends by itself when the figures recover (\(.showDelivery, limit.team)), or run \(.allowDelivery, limit.team, limit.provider.description)"
                    : "ask the team to send less; it ends by itself when the figures recover: \(.showDelivery, limit.team)"
            )
        }
    }

    /// New hosts whose mail waits today, and of which teams.
    private static func warmUp(_ store: Store, _ now: Int64) throws(StoreFailure) -> [String] {
        let today = Day.number(now)
        let counts = try store.deliveries.warmUpCounts(day: today)
        return Set(counts.map(\.host)).sorted().compactMap { host in
            let own = counts.filter { $0.host.hasSameOctets(as: host) }
            let waiting = own.filter { $0.deferred > 0 }
            guard !waiting.isEmpty else { return nil }
            let teams = waiting.prefix(10).map {
                "\($0.team.isEmpty ? "others" : $0.team) \(Count.text($0.deferred, "time"))"
            }
            return
                "\(host) is new (delivery.warm_up): \(Count.text(own.reduce(0) { $0 + $1.messages }, "message")) of today left, "
                + "and further ones were deferred (\(teams.joined(separator: ", "))); they wait at the senders (451), "
                + "until the ceiling rises in " + duration((today + 1) * 86_400 - now)
        }
    }

    /// The remedy if Postfix's queue cannot be read.
    package static let queueRemedy: Remedy =
        "start Postfix if it is down; otherwise add the user of postern serve to the group postdrop, and name Postfix's folder in postfix_directory"

    /// The remedy if the standby for listings cannot answer.
    package static let replicaRemedy: Remedy =
        "look at the standby (pg_stat_replication at the primary), or correct the URL in database_replica"

    /// The remedy if Postfix's log cannot be read.
    package static let logRemedy: Remedy =
        "name Postfix's log in delivery.log, let the user of postern serve read it (on Debian: add the user to the group adm), and restart postern serve"

    /// Seconds after which removed rows should be deleted: a large team takes minutes.
    package static let removalTime: Int64 = 3600

    /// The remedy if they remain.
    package static let removalRemedy: Remedy =
        "start postern serve, or search its log for \"could not be purged\""

    /// Removed items that still have rows.
    package static func removals(_ store: Store, _ now: Int64) throws(StoreFailure) -> [String] {
        let backlog = try store.removals.backlog()
        guard let oldest = backlog.oldest, now - oldest >= removalTime else { return [] }
        return [
            "rows of \(backlog.count) removed \(backlog.count == 1 ? "team, app, account or endpoint" : "teams, apps, accounts or endpoints") are "
                + "still there, the first removed \(duration(now - oldest)) ago"
        ]
    }

    /// Streams without delivery because their receivers are private.
    package static func receivers(_ store: Store) throws(StoreFailure) -> [Trouble] {
        try store.events.forbiddenStreams().map {
            Trouble(
                "nothing is sent to stream \($0.stream) of \($0.audience): its receiver is private, or reached over http, \(PrivateReceivers.reason)",
                "set events.private_receivers to yes if the team may reach hosts in your network, or run \(.removeStream, $0.stream)"
            )
        }
    }

    /// Events that Postern gave up.
    package static func parkedEvents(_ store: Store) throws(StoreFailure) -> [Trouble] {
        try ParkedEvents.all(store.database).map { parked in
            Trouble(
                "\(Count.text(parked.events, "event")) for team \(parked.team) \(parked.events == 1 ? "is" : "are") parked: no more attempts are made",
                "repair the endpoint (\(.testEndpoint, parked.team)), then run \(.retryEvents, parked.team)"
            )
        }
    }

    private static func warnings(
        _ installation: Installation, _ hosts: [Host], _ minutes: [Minute], _ now: Int64
    ) throws(StoreFailure) -> [Trouble] {
        var warnings: [Trouble] = []
        func warn(_ sentence: String, _ remedy: Remedy) {
            warnings.append(Trouble(sentence, remedy))
        }
        let running = hosts.filter(\.isRunning)
        let incidents = running.reduce(0) { $0 + ($1.snapshot?.totals["leak-incidents"] ?? 0) }
        if incidents > 0 {
            warn(
                "\(Count.text(incidents, "reply was", "replies were")) refused because the leak check found an inbox",
                "search the log for leak-incident")
        }
        if let trouble = Self.writingTrouble(installation, now) {
            warn(
                "\(trouble): mail waits at its senders (451)",
                "free space, or fix what prevents writes to the database")
        }
        if let parked = running.compactMap({ $0.snapshot?.parked }).max(), parked > 0 {
            warn(
                "\(Count.text(parked, "message")) in Postfix's queue \(parked == 1 ? "is" : "are") for addresses at a relay domain, where nothing is "
                    + "delivered: no milter saw \(parked == 1 ? "it" : "them"), or it was not rewritten",
                "\(.diagnose) finds the cause; once it is gone, run \(.sendQueue)")
        }
        for host in running {
            guard let trouble = host.snapshot?.queueTrouble else { continue }
            warn(
                "\(host.host) cannot check Postfix's queue for mail that was not rewritten: \(trouble)",
                queueRemedy)
        }
        for host in running {
            guard let trouble = host.snapshot?.logTrouble else { continue }
            warn(
                "\(host.host) cannot read in Postfix's log what became of forwards: \(trouble)",
                logRemedy)
        }
        for host in running {
            guard let trouble = host.snapshot?.replicaTrouble else { continue }
            warn(
                "\(host.host) reads listings at the primary, as the standby of database_replica cannot answer: \(trouble)",
                replicaRemedy)
        }
        for host in running {
            guard let trouble = host.snapshot?.certificateTrouble else { continue }
            warn(
                "\(host.host): \(trouble)",
                "renew the files of http.tls_certificate; postern serve reads them again automatically"
            )
        }
        // If the disk is full, the services cannot report, but they run.
        let canReport = Self.writingTrouble(installation, now) == nil
        if running.isEmpty, canReport {
            warn("no service is running: mail waits at its senders", "start postern serve")
        }
        for host in hosts where !host.isRunning && canReport {
            warn(
                "\(host.host) has not reported for \(duration(host.silentFor))",
                "check whether postern serve (pid \(host.pid)) still runs")
        }
        if let complaint = ClockSkew.complaint(
            running.compactMap { host in host.snapshot.map { (host.host, $0.clockAhead) } })
        {
            warn(complaint, ClockSkew.remedy)
        }
        warnings += trouble(minutes, now) + (try suspended(installation.store))
        warnings += try removals(installation.store, now).map { Trouble($0, removalRemedy) }
        warnings += try limitedTeams(installation.store, now)
        warnings += try receivers(installation.store) + parkedEvents(installation.store)
        let oldest = running.map { $0.snapshot?.outboxOldest ?? 0 }.max() ?? 0
        if oldest > 3600 {
            warn(
                "an event has waited \(duration(Int64(oldest))) to be delivered",
                "see \(.listEvents)")
        }
        for host in try installation.store.policies.hosts()
        where now - host.at <= PolicyHostState.silence {
            if let refusal = host.refusal {
                warn(refusal, "\(.listPolicies) gives the reason; activate a policy that loads")
            }
        }
        warnings += try ContextAdvice(installation.store, now: now).troubles()
        for named in try installation.store.policies.arrangement().policies {
            guard
                let policy =
                    (try? LoadedPolicy(installation.store.policies.policy(hash: named.hash)))?
                    .policy
            else { continue }
            for fault in try PolicyLists.faults(of: policy, in: installation.store.liveLists) {
                warn(
                    "policy \(named.name): \(fault.sentence); its rules that read it match nothing",
                    fault.remedy)
            }
        }
        let lost = try Installation.lostDomains(
            installation.configuration, installation.store.addresses)
        if let lost { warn(lost, "correct relay_domains; do not change Postfix's domains for it") }
        let keys = try installation.store.dkimKeys.keys()
        // A misspelt domain needs no key, so this waits until the domains are right.
        for domain in installation.configuration.relayDomains
        where lost == nil && !keys.contains(where: { $0.domain == domain && $0.state == .active }) {
            let waiting = keys.first {
                $0.domain == domain && $0.state == .pending && $0.algorithm == .rsa
            }
            warn(
                "\(domain) has no active signing key, so mail leaves unsigned",
                waiting.map {
                    "run \(.activateKey, $0.selector, domain), once its record is in the DNS"
                }
                    ?? "run \(.generateKey, domain)")
        }
        for key in try installation.store.apiKeys.keys() {
            guard let end = key.expiresAt, key.state(now: now) == .active, end - now < 7 * 86_400,
                key.rotatedTo == nil
            else {
                continue
            }
            warn(
                "API key \(key.id) of \(key.team?.id ?? "the operator") ends in \(duration(end - now))",
                "run \(.rotateAPIKey, key.id)")
        }
        if installation.configuration.operatorAddress == nil {
            warn(
                "operator_address is not set, so mail to postmaster and abuse waits at its senders (451)",
                "set it in postern.yaml")
        }
        return warnings
    }

    /// The reason why the database cannot be written to; nil if it can, or if the caller has no
    /// right to write.
    private static func writingTrouble(_ installation: Installation, _ now: Int64) -> String? {
        do {
            try installation.store.database.checkWritable(now: now)
            return nil
        } catch {
            return error.code == .permanent(.readOnly) ? nil : "\(error)"
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
