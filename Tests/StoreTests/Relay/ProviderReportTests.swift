// Providers' reports: each vector gives its figures or its fault, and counts once.

import Accounts
import Administration
import Foundation
import Support
import Testing

@Suite(.blocking) struct ProviderReportTests {
    private static let folder =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Vectors/reports")

    private static func names(_ folder: URL) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".expected") }.map { String($0.dropLast(9)) }.sorted()
    }

    private static func expected(_ name: String, in folder: URL) throws -> String {
        try String(contentsOf: folder.appending(path: name + ".expected"), encoding: .utf8)
    }

    private static func read(_ name: String, in folder: URL) throws -> [ProviderFigure] {
        try ProviderReport.read(
            Array(Data(contentsOf: folder.appending(path: name))), domains: ["company-y.example"],
            today: today)
    }

    /// After all days of the vectors.
    private static let today: Int64 = 21_000

    /// It would stay the latest one.
    @Test(arguments: names(folder)) func report_ofALaterDay_isRefused(_ name: String) throws {
        let octets = try Array(Data(contentsOf: Self.folder.appending(path: name)))
        let last = try #require(Self.read(name, in: Self.folder).map(\.day).max())
        let fault = try #require(throws: ReportFault.self) {
            try ProviderReport.read(octets, domains: ["company-y.example"], today: last - 2)
        }
        #expect("\(fault)" == "about \(UTCTime.date(last)), which is not a day until today")
        _ = try ProviderReport.read(octets, domains: ["company-y.example"], today: last - 1)
    }

    @Test func vectors_areThere() {
        #expect(Self.names(Self.folder).count >= 4)
        #expect(Self.names(Self.folder.appending(path: "invalid")).count >= 16)
    }

    @Test(arguments: names(folder)) func report_vector_givesItsFigures(_ name: String) throws {
        let lines = try Self.read(name, in: Self.folder).map { figure in
            let day = UTCTime.text(figure.day * 86_400).prefix(10)
            return
                "\(figure.source.rawValue)|\(figure.reporter)|\(figure.subject)|\(day)|\(figure.name)|\(figure.value)\n"
        }
        #expect(try lines.joined() == Self.expected(name, in: Self.folder))
    }

    @Test(arguments: names(folder.appending(path: "invalid")))
    func report_invalid_isRefusedWithItsPlace(_ name: String) throws {
        let folder = Self.folder.appending(path: "invalid")
        let fault = try #require(throws: ReportFault.self) { try Self.read(name, in: folder) }
        #expect(try "\(fault)\n" == Self.expected(name, in: folder))
    }

    /// Any file that is cut or damaged gives figures or a fault, and nothing else.
    @Test(arguments: names(folder)) func report_cutAnywhere_isReadOrRefused(_ name: String) throws {
        let octets = try Array(Data(contentsOf: Self.folder.appending(path: name)))
        for end in stride(from: 0, to: octets.count, by: 7) {
            for text in [Array(octets[..<end]), octets[..<end] + [0xFF] + octets[end...]] {
                do throws(ReportFault) {
                    _ = try ProviderReport.read(
                        text, domains: ["company-y.example"], today: Self.today)
                } catch {
                    #expect(!error.message.isEmpty)
                }
            }
        }
    }

    /// An address may have two lines for a day, one for each period.
    @Test(arguments: Engine.all) func networkData_twoPeriodsOfADay_areAdded(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let lines = ["1:00 AM", "1:00 PM"].map { time in
            "192.0.2.1,11/28/2026 \(time),11/28/2026 11:00 PM,10,10,10,GREEN,< 0.1%,,,2,,\r\n"
        }
        let figures = try ProviderReport.read(
            Array(lines.joined().utf8), domains: [], today: Self.today)
        for _ in 0..<2 { _ = try test.store.deliveries.add(figures) }
        let found = try test.store.deliveries.summaries(since: 0)
        #expect(found.count == 1)
        #expect(found.first?.count("messages") == 20 && found.first?.count("trap hits") == 4)
        #expect(found.first?.figures["filter result"] == "GREEN")
    }

    @Test(arguments: Engine.all) func report_readTwice_countsOnce(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let deliveries = test.store.deliveries
        let figures = try Self.read("tls-rfc8460.json", in: Self.folder)
        #expect(try deliveries.add(figures) == figures.count)
        #expect(try deliveries.add(figures) == 0)
        // Another report of the same day is added to it, and an older day is not shown.
        let other = figures.map {
            ProviderFigure(
                source: $0.source, reporter: $0.reporter, subject: $0.subject, day: $0.day,
                name: $0.name, report: "2", value: "1")
        }
        let older = figures.map {
            ProviderFigure(
                source: $0.source, reporter: $0.reporter, subject: $0.subject, day: $0.day - 1,
                name: $0.name, report: "3", value: "1")
        }
        #expect(try deliveries.add(other + older) == 2 * figures.count)
        let found = try deliveries.summaries(since: 0)
        #expect(found.count == 1)
        #expect(found.first?.count("sessions") == 5_327)
        #expect(found.first?.count("failures certificate-expired") == 101)
        #expect(try deliveries.summaries(since: figures[0].day + 1).isEmpty)
        _ = try deliveries.deleteExpired(before: TestStore.now)
        #expect(try deliveries.summaries(since: 0).isEmpty, "as old as other figures")
    }
}
