// Receivers' reports about the relay domains, on both engines.

import Accounts
import Database
import MailAuth
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct AggregateReportRepositoryTests {
    private static func report(
        _ identifier: String, _ messages: [AggregateReport.Source: Int] = [:]
    ) -> AggregateReport {
        AggregateReport(
            domain: "relay.example", identifier: identifier, beginsAt: 1, endsAt: 2,
            messages: messages)
    }

    private static func source(
        _ address: String, passes: Bool = false, disposition: String = "none"
    ) throws -> AggregateReport.Source {
        AggregateReport.Source(
            address: try #require(IPAddress(address)), passesDKIM: passes, passesSPF: false,
            disposition: disposition)
    }

    private static func messages() throws -> [AggregateReport.Source: Int] {
        [
            try source("192.0.2.1", passes: true): 5,
            try source("198.51.100.9", disposition: "reject"): 3,
        ]
    }

    @Test(arguments: Engine.all) func aggregateReport_repeated_isCountedOnce(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let reports = test.store.aggregateReports
        #expect(
            try reports.add(Self.report("1", Self.messages()), reporter: "big.example", now: 100))
        #expect(
            try !reports.add(Self.report("1", Self.messages()), reporter: "big.example", now: 200),
            "sent twice")
        #expect(
            try reports.add(Self.report("2", Self.messages()), reporter: "big.example", now: 300))
        // A report of another author with the same name is a separate one.
        #expect(
            try reports.add(
                Self.report("1", [try Self.source("192.0.2.7", passes: true): 1]),
                reporter: "small.example", now: 300))
        let summaries = try reports.summaries(since: 0)
        #expect(summaries.map(\.reporter) == ["big.example", "small.example"])
        #expect(
            summaries.map(\.reports) == [2, 1] && summaries.map(\.passed) == [10, 1]
                && summaries.map(\.failed) == [6, 0])
        let failing = try reports.failing(since: 0, limit: 5)
        #expect(
            failing.map(\.address) == ["198.51.100.9"] && failing[0].messages == 6
                && failing[0].disposition == "reject")
        #expect(
            try reports.summaries(since: 301).isEmpty
                && reports.failing(since: 301, limit: 5).isEmpty)
        #expect(try reports.deleteExpired(before: 300) == 1)
        #expect(try reports.failing(since: 0, limit: 5).map(\.messages) == [3])
    }

    /// Any domain that signs could send any number of reports, and use up the limit of others.
    @Test func aggregateReport_overDailyLimit_refusesThatReporter() throws {
        let test = try TestStore(.sqlite)
        let reports = test.store.aggregateReports
        for number in 0..<50 {
            #expect(try reports.add(Self.report("\(number)"), reporter: "big.example", now: 1_000))
        }
        #expect(try !reports.add(Self.report("x"), reporter: "big.example", now: 1_001))
        #expect(try reports.add(Self.report("x"), reporter: "small.example", now: 1_001))
        #expect(try reports.add(Self.report("x"), reporter: "big.example", now: 1_000 + 86_400))
    }

    /// A host that one receiver reports comes after hosts that several report.
    @Test func failing_hostNamedBySeveralReporters_comesFirst() throws {
        let test = try TestStore(.sqlite)
        let reports = test.store.aggregateReports
        let lie = Self.report("1", [try Self.source("203.0.113.1"): 1_000_000_000])
        _ = try reports.add(lie, reporter: "liar.example", now: 1)
        for reporter in ["big.example", "small.example"] {
            _ = try reports.add(
                Self.report("1", [try Self.source("198.51.100.9"): 2]), reporter: reporter, now: 1)
        }
        let failing = try reports.failing(since: 0, limit: 5)
        #expect(
            failing.map(\.address) == ["198.51.100.9", "203.0.113.1"]
                && failing.map(\.reporters) == [2, 1])
    }
}
