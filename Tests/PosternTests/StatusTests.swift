// The output of `postern status` about services, the last hour and trouble.

import Accounts
import Database
import Foundation
import HTTP
import InternetMessage
import Logging
import PosternMetrics
import RelayCore
import TestSupport
import Testing

@testable import Doctor
@testable import Monitoring
@testable import PosternConfiguration
@testable import Service

@Suite(.blocking) struct StatusTests {
    private static let now: Int64 = 1_795_000_000

    /// An installation, opened in this process.
    private final class Opened {
        let runner: CommandRunner
        let installation: Installation

        init() throws {
            runner = try CommandRunner.initialised()
            installation = try Installation.open(
                flag: runner.configuration, environment: [:], now: now)
        }

        deinit { try? installation.close() }

        /// The reports of a service that runs since `start`, after each minute up to `end`; `count`
        /// changes the counters in between.
        func serve(
            pid: Int64, from start: Int64, to end: Int64, endsWell: Bool = false,
            queueTrouble: String? = nil, logTrouble: String? = nil,
            certificateTrouble: String? = nil, clockAhead: Double = 0,
            _ count: (ServiceMetrics) -> Void
        ) throws {
            let metrics = ServiceMetrics(version: "")
            var maker = SnapshotMaker(
                metrics: metrics, startedAt: start, milter: "unix:/x", http: nil)
            for at in stride(from: start, through: end, by: 60) {
                let minute = maker.minute(now: at)
                try report(maker.snapshot(now: at), pid, minute, at)
                if at + 60 <= end { count(metrics) }
            }
            // Within the minute that is not complete.
            count(metrics)
            var last = maker.snapshot(now: end + 2)
            last.queueTrouble = queueTrouble
            last.logTrouble = logTrouble
            last.certificateTrouble = certificateTrouble
            last.clockAhead = clockAhead
            try report(last, pid, nil, end + 2)
            guard endsWell else { return }
            try installation.store.serviceStatus.remove(
                host: "mx1", pid: pid, minute: maker.minute(now: end + 4, isLast: true))
        }

        private func report(
            _ snapshot: ServiceSnapshot, _ pid: Int64, _ minute: ServiceStatusRepository.Minute?,
            _ now: Int64
        ) throws {
            let text = String(decoding: try JSONEncoder().encode(snapshot), as: UTF8.self)
            try installation.store.serviceStatus.report(
                host: "mx1", pid: pid, snapshot: text, minute: minute, now: now)
        }

        func report(at now: Int64 = StatusTests.now) throws -> StatusReport {
            try StatusReport(installation, now: now)
        }
    }

    private func relayed(_ report: StatusReport) -> Int {
        report.lastHour["messages forward relayed"] ?? 0
    }
    private func relay(_ metrics: ServiceMetrics) { metrics.messages("forward", "relayed").add() }

    @Test func removals_overdue_areReported() throws {
        let opened = try Opened()
        let store = opened.installation.store
        let change = Change(actor: "uid:0", now: Self.now - StatusReport.removalTime)
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run("UPDATE teams SET removed_at = ?1", [.integer(change.now)])
        }
        func isTold(_ now: Int64) throws -> Bool {
            try opened.report(at: now).warnings.contains { $0.text.contains("rows of 1 removed") }
        }
        #expect(try !isTold(Self.now - 1))
        #expect(try isTold(Self.now))
        #expect(try opened.report().removals.count == 1)
        var facts = LocalFacts()
        facts.removals = try StatusReport.removals(store, Self.now)
        #expect(
            LocalChecks.judge(facts).contains {
                $0.name.kind == .removals && $0.verdict == .warning
            })
        #expect(try store.removals.run(now: Self.now).isEmpty)
        #expect(try !isTold(Self.now))
    }

    @Test func notes_suspensionsThatEnded_needNoCareForAWeek() throws {
        let opened = try Opened()
        let store = opened.installation.store
        let change = Change(actor: "uid:0", now: Self.now)
        for number in 1...5 {
            let inbox = InboxAddress(AddrSpec(localPart: "p\(number)", domain: "home.example"))
            _ = try store.users.add(
                id: "u\(number)", name: "U", inbox: inbox, isVerified: true, change)
        }
        // As an earlier program left them.
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                "UPDATE inboxes SET suspended_at = ?1, suspended_failures = 5", [.integer(Self.now)]
            )
        }
        func suspensions() throws -> [String] {
            try opened.report().warnings.map(\.text).filter { $0.contains("suspended") }
        }
        #expect(try suspensions().count == 1 && opened.report().notes.isEmpty)
        let returned = try store.inboxes.reviewSuspensions(
            rules: 1, providers: opened.installation.configuration.providers, now: Self.now)
        #expect(returned.map(\.count) == [5])
        #expect(try suspensions().isEmpty)
        let notes = try opened.report(at: Self.now + 6 * 86_400).notes
        #expect(notes.count == 1 && notes[0].hasPrefix("provider:home.example: 5 inboxes"))
        #expect(try opened.report(at: Self.now + 8 * 86_400).notes.isEmpty)
    }

    /// A failure must not be logged every second.
    @Test func failedRemovals_sameFailure_areReportedOnce() throws {
        var failed = FailedRemovals()
        let start = ContinuousClock.now
        func failure(_ reason: String, _ number: Int64 = 1) -> RemovalRepository.Failure {
            RemovalRepository.Failure(
                item: .team(number), error: .permanent(.unexpectedData, reason))
        }
        #expect(failed.passing(at: start).isEmpty)
        let answer1 = failed.isNew(failure("a"), at: start)
        #expect(answer1)
        #expect(failed.passing(at: start + .seconds(59)) == [.team(1)])
        #expect(failed.passing(at: start + .seconds(60)).isEmpty)
        let answer2 = failed.isNew(failure("a"), at: start + .seconds(60))
        #expect(!answer2)
        #expect(failed.passing(at: start + .seconds(61)) == [.team(1)])
        let answer3 = failed.isNew(failure("b"), at: start + .seconds(120))
        #expect(answer3)
        let answer4 = failed.isNew(failure("a", 2), at: start + .seconds(120))
        #expect(answer4)
    }

    /// A failure that continues is logged every hour, and items that another process deleted are
    /// forgotten.
    @Test func failedRemovals_stillFailing_areReportedHourly() throws {
        var failed = FailedRemovals()
        let start = ContinuousClock.now
        let failure = RemovalRepository.Failure(
            item: .team(1), error: StoreFailure.permanent(.unexpectedData, "a"))
        let first = failed.isNew(failure, at: start)
        let second = failed.isNew(failure, at: start + .seconds(3599))
        let third = failed.isNew(failure, at: start + .seconds(3600))
        #expect(first && !second && third)
        failed.forget(besides: [.team(1), .team(2)])
        #expect(!failed.isEmpty)
        failed.forget(besides: [.team(2)])
        #expect(failed.isEmpty && failed.passing(at: start + .seconds(3601)).isEmpty)
        let trouble = [0, 3599, 3600].map { failed.isNew("b", at: start + .seconds($0)) }
        #expect(trouble == [true, false, true])
    }

    /// A killed service whose clock was an hour fast must not count as running for that hour.
    @Test func service_reportFromTheFuture_isNotRunning() throws {
        let opened = try Opened()
        try opened.serve(pid: 10, from: Self.now + 3300, to: Self.now + 3480) { _ in }
        let report = try opened.report()
        #expect(report.hosts.map(\.isRunning) == [false])
        #expect(report.warnings.contains { $0.text.contains("no service is running") })
        // A service with a fast clock that reports by how much is running.
        try opened.serve(pid: 11, from: Self.now + 3480, to: Self.now + 3598, clockAhead: 3600) {
            _ in
        }
        #expect(try opened.report().hosts.filter(\.isRunning).map(\.pid) == [11])
        // The check that prevents a copy of the store uses this too.
        #expect(try opened.installation.store.runningServices(now: Self.now) == ["mx1, pid 11"])
    }

    /// The removal succeeded, so the command must not fail because the store cannot be locked for
    /// the rows.
    @Test func teamRemove_rowsLocked_succeeds() throws {
        let opened = try Opened()
        let change = Change(actor: "uid:0", now: Self.now)
        for team in ["juice", "milk"] {
            _ = try opened.installation.store.teams.add(id: team, name: team, change)
        }
        try opened.installation.store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run("UPDATE teams SET removed_at = \(Self.now) WHERE handle = 'milk'")
        }
        let lock = opened.runner.folder.appendingPathComponent("data/postern.db-lock-removal")
        try? FileManager.default.removeItem(at: lock)
        try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
        #expect(
            try opened.runner.succeed("team", "remove", "juice", "--yes").contains(
                "Removed team juice."))
        try FileManager.default.removeItem(at: lock)
    }

    /// A killed service must not be reported if its successor runs.
    @Test func service_killedWithSuccessor_isNotReported() throws {
        let opened = try Opened()
        try opened.serve(pid: 10, from: Self.now - 300, to: Self.now - 120) { _ in }
        let alone = try opened.report()
        #expect(alone.hosts.map(\.pid) == [10])
        #expect(
            alone.warnings.contains { $0.text.contains("mx1 has not reported for") }
                && alone.warnings.contains { $0.text.contains("no service is running") })
        try opened.serve(pid: 11, from: Self.now - 60, to: Self.now - 2) { _ in }
        let after = try opened.report()
        #expect(after.hosts.map(\.pid) == [11])
        #expect(!after.warnings.contains { $0.text.contains("has not reported") })
        // Of two services that ran at the same time, the silent one is reported.
        try opened.serve(pid: 12, from: Self.now - 240, to: Self.now - 2) { _ in }
        try opened.serve(pid: 13, from: Self.now - 240, to: Self.now - 30) { _ in }
        #expect(try opened.report().warnings.contains { $0.text.contains("pid 13") })
    }

    /// If the metric is -1, status and doctor must say so.
    @Test func queue_unreadable_isReportedWithReason() throws {
        let opened = try Opened()
        try opened.serve(pid: 10, from: Self.now - 60, to: Self.now - 2) { _ in }
        #expect(try !opened.report().warnings.contains { $0.text.contains("queue") })
        try opened.serve(
            pid: 10, from: Self.now - 60, to: Self.now - 2,
            queueTrouble: "postqueue failed: Permission denied"
        ) {
            _ in
        }
        let told = try opened.report().warnings.map(\.text).filter {
            $0.contains("mx1 cannot check Postfix's queue")
        }
        #expect(
            told.count == 1 && told[0].contains("postqueue failed: Permission denied")
                && told[0].contains("group postdrop"),
            "\(told)")
        var facts = PostfixFacts()
        facts.queueTrouble = "postqueue failed: Permission denied"
        let check = try #require(PostfixChecks.judge(facts).first)
        #expect(
            check.verdict == .warning && check.sentence.contains("Permission denied")
                && check.remedy?.text.contains("postdrop") == true)
    }

    @Test func postfixLog_unreadable_isReportedWithReason() throws {
        let opened = try Opened()
        let trouble = "/var/log/mail.log: Permission denied"
        try opened.serve(
            pid: 10, from: Self.now - 60, to: Self.now - 2, logTrouble: trouble
        ) { _ in }
        let told = try opened.report().warnings.map(\.text).filter { $0.contains(trouble) }
        #expect(
            told.count == 1 && told[0].contains("mx1 ") && told[0].contains("group adm"), "\(told)")
        var facts = LocalFacts()
        #expect(!LocalChecks.judge(facts).contains { $0.name.kind == .postfixLog })
        facts.postfixLog = ("/var/log/mail.log", nil)
        #expect(
            LocalChecks.judge(facts).first { $0.name.kind == .postfixLog }?.verdict == .ok)
        facts.postfixLog = ("/var/log/mail.log", trouble)
        let check = try #require(
            LocalChecks.judge(facts).first { $0.name.kind == .postfixLog })
        #expect(check.verdict == .warning && check.sentence.contains(trouble))
    }

    @Test func reports_ofProviders_areShownAndBadOnesNeedCare() throws {
        let opened = try Opened()
        let day = Self.now / 86_400
        func add(_ source: ReportSource, _ subject: String, _ figures: [String: String]) throws {
            _ = try opened.installation.store.deliveries.add(
                figures.map {
                    ProviderFigure(
                        source: source, reporter: "Reporter", subject: subject, day: day - 1,
                        name: $0.key, value: $0.value)
                })
        }
        try add(.tls, "relay.example", ["sessions": "1000", "failures": "1"])
        try add(.postmaster, "relay.example", ["spam_rate": "0.0029"])
        try add(.networkData, "192.0.2.1", ["filter result": "GREEN", "trap hits": "0"])
        func told() throws -> [String] {
            try opened.report().warnings.map(\.text).filter { $0.contains("Reporter") }
        }
        #expect(try told().isEmpty)
        let reports = try opened.report().reports
        #expect(reports.map(\.source) == ["snds", "postmaster", "tls"])
        #expect(
            reports.last?.line.hasSuffix(": failures 1, sessions 1000") == true, "\(reports)")
        try add(.tls, "relay.example", ["sessions": "90", "failures": "10"])
        try add(.postmaster, "relay.example", ["spam_rate": "0.003"])
        try add(.networkData, "192.0.2.1", ["filter result": "RED", "trap hits": "0"])
        try add(.networkData, "192.0.2.2", ["filter result": "GREEN", "trap hits": "2"])
        #expect(try told().count == 4)
        // Anyone may send a report.
        let most = String(Int64.max)
        try add(.tls, "relay.example", ["sessions": most, "failures": most])
        #expect(try told().contains { $0.contains("that \(most) of \(most) sessions") })
    }

    /// Google's figures of a feedback loop stand beside the team that its tag stands for.
    @Test func reports_ofAFeedbackLoop_nameTheTeam() throws {
        let opened = try Opened()
        let store = opened.installation.store
        _ = try store.teams.add(
            id: "juice", name: "Juice", Change(actor: "uid:0", now: Self.now))
        let keys = try #require(TokenKeys(opened.installation.keys.token))
        let tag = FeedbackFields(keys: keys).tag(of: .team("juice", provider: "gmail.com"))
        _ = try store.deliveries.add(
            ["spam_rate", "spam_rate.\(tag)", "spam_rate.aaaaaaaaaaaa"].map {
                ProviderFigure(
                    source: .postmaster, reporter: "Google", subject: "relay.example",
                    day: Self.now / 86_400 - 1, name: $0, value: "0.001")
            })
        let report = try #require(try opened.report().reports.first)
        #expect(report.teams == ["spam_rate.\(tag)": "juice"])
        #expect(report.line.contains("spam_rate.\(tag) (team juice) 0.001"))
        #expect(report.line.components(separatedBy: "(team").count == 2)
    }

    /// Holds that end soon, or that no service ended.
    @Test func holds_nearTheirEnd_needCare() throws {
        let opened = try Opened()
        let store = opened.installation.store
        let day: Int64 = 86_400
        _ = try store.teams.add(
            id: "juice", name: "Juice", Change(actor: "uid:0", now: Self.now))
        func check(_ now: Int64) throws -> Check? {
            var facts = LocalFacts()
            facts.now = now
            facts.holds = try store.holds.all()
            return LocalChecks.judge(facts).first { $0.name.kind == .holds }
        }
        #expect(try check(Self.now) == nil)
        for end in [30, 20] {
            _ = try store.holds.add(
                .team("juice"),
                HoldTerms(
                    data: [.audit], reason: "dispute 7", endsAt: Self.now + Int64(end) * day,
                    isConfidential: true), Change(actor: "uid:0", now: Self.now))
        }
        let early = try #require(try check(Self.now))
        #expect(early.verdict == .ok && early.sentence.hasPrefix("2 holds are in force, and"))
        let soon = try #require(try check(Self.now + 14 * day))
        #expect(soon.verdict == .warning && soon.sentence.contains("hold 2 ends within a week"))
        #expect(!soon.sentence.contains("juice") && !soon.sentence.contains("dispute"))
        let late = try #require(try check(Self.now + 20 * day + LocalChecks.holdLeeway + 1))
        #expect(late.verdict == .warning && late.sentence.contains("hold 2 should have ended"))
    }

    @Test func warmUp_mailWaits_isANoteUntilMidnight() throws {
        let opened = try Opened()
        let day = Self.now / 86_400
        let deliveries = opened.installation.store.deliveries
        for _ in 0..<3 {
            _ = try deliveries.reserveWarmUp(host: "mx1", team: "juice", day: day, ceiling: 1)
        }
        _ = try deliveries.reserveWarmUp(host: "mx1", team: "shop", day: day, ceiling: 2)
        let notes = try opened.report().notes
        #expect(notes.count == 1)
        let left = StatusReport.duration((day + 1) * 86_400 - Self.now)
        #expect(
            notes.first?.contains("mx1 is new (delivery.warm_up)") == true
                && notes.first?.contains("2 messages of today left") == true
                && notes.first?.contains("deferred (juice 2 times)") == true
                && notes.first?.hasSuffix("in \(left)") == true, "\(notes)")
    }

    @Test func certificate_thatCannotBeUsed_needsCare() throws {
        let opened = try Opened()
        let trouble = "/etc/x.pem: the certificate has expired"
        try opened.serve(
            pid: 10, from: Self.now - 60, to: Self.now - 2, certificateTrouble: trouble
        ) { _ in }
        #expect(
            try opened.report().warnings.map(\.text).filter {
                $0.contains("mx1: \(trouble): renew")
            }.count == 1)
    }

    /// The tool's own message is the reason.
    @Test func queueWatch_unreadableQueue_storesReason() async throws {
        let metrics = ServiceMetrics(version: "")
        let trouble = ValueHolder<String?>(nil)
        let service = QueueWatchService(
            directory: "/nonexistent/postfix", relayDomains: ["relay.example"],
            pool: BlockingPool(.requests), metrics: metrics,
            trouble: trouble,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let running = Task { try await service.run() }
        while trouble.current == nil { await Task.yield() }
        running.cancel()
        try await running.value
        #expect(
            trouble.current?.contains("postqueue") == true && metrics.parkedMessages.value == -1)
    }

    @Test(arguments: [false, true]) func lastHour_acrossARestart_isContinued(
        _ endsWell: Bool
    ) throws {
        let opened = try Opened()
        // Five in complete minutes, and one in the incomplete minute.
        try opened.serve(
            pid: 10, from: Self.now - 900, to: Self.now - 600, endsWell: endsWell, relay)
        #expect(try relayed(opened.report()) == 6)
        try opened.serve(pid: 11, from: Self.now - 120, to: Self.now - 2, relay)
        #expect(try relayed(opened.report()) == 8)
        #expect(try opened.report().lastHour(under: "messages").map(\.count) == [8])
        // After the hour they no longer count.
        #expect(try relayed(opened.report(at: Self.now + 2_900)) == 5)
        #expect(try relayed(opened.report(at: Self.now + 3_600)) == 0)
    }

    @Test func lookUps_failingForAMinute_areReported() throws {
        func warnings(_ count: (ServiceMetrics) -> Void, ago: Int64 = 2) throws -> [String] {
            let opened = try Opened()
            var isFirst = true
            try opened.serve(pid: 10, from: Self.now - 120 - ago, to: Self.now - ago) { metrics in
                if isFirst { count(metrics) }
                isFirst = false
            }
            return try opened.report().warnings.map(\.text).filter {
                $0.contains("the DNS did not answer") || $0.contains("the database did not answer")
            }
        }
        let deaf: (ServiceMetrics) -> Void = { $0.dnsQueries("txt", "failure").add(12) }
        let told = try warnings(deaf)
        #expect(told.count == 1 && told[0].contains("12 queries"), "\(told)")
        #expect(try warnings(deaf, ago: 1_200) == [])
        // Some names never answer.
        #expect(
            try warnings {
                $0.dnsQueries("txt", "failure").add(12)
                $0.dnsQueries("txt", "answer").add(100)
            } == [])
        #expect(try warnings { $0.dnsQueries("txt", "failure").add(2) } == [])
        #expect(try warnings { $0.refusals("store-trouble").add() }.count == 1)
    }

    @Test func inboxes_suspended_areReported() throws {
        let opened = try Opened()
        for user in ["u1", "u2"] {
            try opened.runner.succeed(
                "user", "add", user, "--inbox", "\(user)@home.example", "--verified")
        }
        #expect(try !opened.report().warnings.contains { $0.text.contains("suspended") })
        try opened.installation.store.database.write(.durable) { connection throws(StoreFailure) in
            _ = try connection.run(
                "UPDATE inboxes SET suspended_at = 5 WHERE user_id = (SELECT id FROM users WHERE handle = 'u2')",
                [])
        }
        let warnings = try opened.report().warnings.map(\.text).filter { $0.contains("suspended") }
        #expect(
            warnings.count == 1 && warnings[0].contains("1 inbox is suspended")
                && warnings[0].contains("(user u2)"),
            "\(warnings)")
        #expect(try opened.runner.run(["status"]).output.contains("1 inbox is suspended"))
    }
}
