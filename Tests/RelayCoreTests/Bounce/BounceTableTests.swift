// The class and status of every public report, as a person would state them.

import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct BounceTableTests {
    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func bounceReport_publicCase_hasExpectedStatus() throws {
        let entries = Corpus.entries("bounces")
        #expect(!entries.isEmpty)
        let expected = try Self.expected()
        var right = 0
        for entry in entries {
            let message = Message.parse(Corpus.crlf(entry.bytes))
            let report = ReportReader.read(header: message.header, body: Array(message.body))
            let status = report.decisive.map { $0.status.description } ?? "-"
            let line = "\(report.reportClass.rawValue) \(status)"
            let wanted = expected[entry.name]
            print(
                "bounce \(line == wanted ? "ok " : wanted == nil ? "?  " : "BAD") \(entry.name): \(line) [\(report.decisive?.diagnostic.prefix(70) ?? "")]\(wanted == nil || wanted == line ? "" : " wanted \(wanted ?? "")")"
            )
            if line == wanted { right += 1 }
            if let wanted { #expect(line == wanted, "\(entry.name)") }
        }
        #expect(right == expected.count, "\(right) of \(expected.count)")
        print("bounces: \(right) of \(entries.count) as a person would say")
    }

    /// `class status  file`, one a line.
    private static func expected() throws -> [String: String] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(
                "Vectors/bounce-classes.txt")
        var table: [String: String] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        where !line.hasPrefix("#") {
            let columns = line.split(separator: "\t").map(String.init)
            if columns.count == 3 { table[columns[2]] = "\(columns[0]) \(columns[1])" }
        }
        return table
    }
}
