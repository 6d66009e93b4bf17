// Rules for every page of README and docs: links, length, and a statement of its readers.

import Foundation
import PosternConfiguration
import TestSupport
import Testing

@Suite(.blocking) struct PagesTests {
    @Test(arguments: DocumentPages.all) func page_everyLink_leadsToAPageAndAHeading(_ page: URL) {
        for match in DocumentPages.text(page).matches(of: #/\]\(([^)\s]+)\)/#)
        where !match.1.contains("://") {
            let parts = match.1.split(
                separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            let target =
                parts[0].isEmpty
                ? page : page.deletingLastPathComponent().appendingPathComponent(String(parts[0]))
            #expect(
                FileManager.default.fileExists(atPath: target.path),
                "\(page.lastPathComponent): \(match.1)")
            guard parts.count == 2 else { continue }
            #expect(
                DocumentPages.anchors(target).contains(String(parts[1])),
                "\(page.lastPathComponent): \(match.1)")
        }
    }

    /// A page is about one task, and short enough to read at once.
    @Test(arguments: DocumentPages.pages(of: DocumentPages.docs))
    func page_ofDocs_isShortAndSaysForWhomItIs(_ page: URL) throws {
        let lines = DocumentPages.lines(page)
        #expect(lines.count <= 400)
        let first = try #require(lines.dropFirst().first { !$0.isEmpty })
        #expect(first.hasPrefix("For "), "\(page.lastPathComponent): \(first)")
    }

    @Test func readme_lines_areOneScreen() {
        #expect(
            DocumentPages.lines(DocumentPages.root.appendingPathComponent("README.md")).count <= 45)
    }

    // MARK: Limits

    private static let limits = DocumentPages.docs.appendingPathComponent("LIMITS.md")

    /// The possible constants for a number or a time in words.
    private static func number(_ shown: String) -> [Int] {
        let words = shown.split(separator: " ")
        guard let first = words.first, let number = Int(first.replacing(",", with: "")) else {
            return []
        }
        let units = ["seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400]
        guard words.count == 2 else { return words.count == 1 ? [number] : [] }
        guard let unit = units[String(words[1])] else { return [] }
        return words[1] == "days" ? [number * unit, number] : [number * unit]
    }

    /// A fixed limit is defined once, in its constant.
    @Test func limits_fixed_areThoseOfTheirConstants() throws {
        let rows = DocumentPages.rows(DocumentPages.lines(Self.limits)[...]).filter {
            $0.count >= 3
        }
        let fixed = rows.compactMap { row in
            row[2].wholeMatch(of: #/`(\w+)\.(\w+)`/#).map { (row[1], String($0.1), String($0.2)) }
        }
        #expect(fixed.count >= 40)
        for (shown, type, constant) in fixed {
            let number = Self.number(shown)
            // A number of days may be declared as a number.
            #expect(
                number.contains { $0 == SourceDeclarations.all.number(constant, of: type) },
                "\(type).\(constant): \(shown)")
        }
    }

    @Test func limits_thatCanBeSet_areKeys() {
        let rows = DocumentPages.rows(
            DocumentPages.section("## Limits that you can set", of: Self.limits))
        let keys = rows.flatMap { DocumentPages.quoted([$0[0][...]]) }
        #expect(keys.count >= 20)
        for key in keys { #expect(ConfigurationKey(rawValue: key) != nil, "\(key)") }
    }
}
