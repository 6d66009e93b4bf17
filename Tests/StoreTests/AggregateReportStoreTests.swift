// What receivers report of the relay domains, on both engines.

import Accounts
import Database
import Testing

@Suite struct AggregateReportStoreTests {
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

    /// Whoever can sign could send any number.
    @Test func tooManyReportsOfADayAreNotTaken() throws {
        let test = try TestStore(.sqlite)
        let reports = test.store.aggregateReports
        try test.database.write(.relaxed) { connection in
            for number in 0..<5_000 {
                try connection.run(
                    """
                    INSERT INTO aggregate_reports (domain, reporter, identifier, begins_at, ends_at, received_at, passed, failed)
                    VALUES (\("d"), \("r"), \("\(number)"), 1, 2, 1000, 0, 0)
                    """)
            }
        }
        #expect(try !reports.add(Self.report("x"), [], now: 1_001))
        #expect(try reports.add(Self.report("x"), [], now: 1_000 + 86_400))
    }
}
