// What receivers report of the relay domains, on both engines.

import Accounts
import Database
import TestSupport
import Testing

@Suite(.blocking) struct AggregateReportStoreTests {
    private static func report(
        _ identifier: String, reporter: String = "big.example", domain: String = "relay.example", passed: Int = 5, failed: Int = 3
    ) -> AggregateReportRepository.Report {
        AggregateReportRepository.Report(
            domain: domain, reporter: reporter, identifier: identifier, beginsAt: 1, endsAt: 2, passed: passed, failed: failed)
    }

    private static let sources = [
        AggregateReportRepository.Source(
            address: "192.0.2.1", passesDKIM: true, passesSPF: false, disposition: "none", messages: 5),
        AggregateReportRepository.Source(
            address: "198.51.100.9", passesDKIM: false, passesSPF: false, disposition: "reject", messages: 3),
    ]

    @Test(arguments: Engine.all) func reportsAreSummedUpAndKnownAgain(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let reports = test.store.aggregateReports
        #expect(try reports.add(Self.report("1"), Self.sources, now: 100))
        #expect(try !reports.add(Self.report("1"), Self.sources, now: 200), "sent twice")
        #expect(try reports.add(Self.report("2"), Self.sources, now: 300))
        // Another author's report of the same name is another one.
        #expect(try reports.add(Self.report("1", reporter: "small.example", passed: 1, failed: 0), [], now: 300))
        let summaries = try reports.summaries(since: 0)
        #expect(summaries.map(\.reporter) == ["big.example", "small.example"])
        #expect(summaries.map(\.reports) == [2, 1] && summaries.map(\.passed) == [10, 1] && summaries.map(\.failed) == [6, 0])
        let failing = try reports.failing(since: 0, limit: 5)
        #expect(failing.map(\.address) == ["198.51.100.9"] && failing[0].messages == 6 && failing[0].disposition == "reject")
        #expect(try reports.summaries(since: 301).isEmpty && reports.failing(since: 301, limit: 5).isEmpty)
        #expect(try reports.deleteExpired(before: 300) == 1)
        #expect(try reports.failing(since: 0, limit: 5).map(\.messages) == [3])
    }

    /// Whoever can sign could send any number, and shut out those of others.
    @Test func tooManyReportsOfOneAuthorAreNotTakenAndOthersAre() throws {
        let test = try TestStore(.sqlite)
        let reports = test.store.aggregateReports
        for number in 0..<50 { #expect(try reports.add(Self.report("\(number)"), [], now: 1_000)) }
        #expect(try !reports.add(Self.report("x"), [], now: 1_001))
        #expect(try reports.add(Self.report("x", reporter: "small.example"), [], now: 1_001))
        #expect(try reports.add(Self.report("x"), [], now: 1_000 + 86_400))
    }

    /// One receiver's word about a host comes behind what several say.
    @Test func aHostThatSeveralReceiversNameComesFirst() throws {
        let test = try TestStore(.sqlite)
        let reports = test.store.aggregateReports
        func source(_ address: String, _ messages: Int) -> AggregateReportRepository.Source {
            .init(address: address, passesDKIM: false, passesSPF: false, disposition: "none", messages: messages)
        }
        _ = try reports.add(Self.report("1", reporter: "liar.example"), [source("203.0.113.1", 1_000_000_000)], now: 1)
        for reporter in ["big.example", "small.example"] {
            _ = try reports.add(Self.report("1", reporter: reporter), [source("198.51.100.9", 2)], now: 1)
        }
        let failing = try reports.failing(since: 0, limit: 5)
        #expect(failing.map(\.address) == ["198.51.100.9", "203.0.113.1"] && failing.map(\.reporters) == [2, 1])
    }
}
