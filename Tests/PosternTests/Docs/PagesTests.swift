// What holds for every page of README and docs: links, length, and for whom it is.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct PagesTests {
    @Test(arguments: DocumentPages.all) func page_everyLink_leadsToAPageAndAHeading(_ page: URL) {
        for match in DocumentPages.text(page).matches(of: #/\]\(([^)\s]+)\)/#) where !match.1.contains("://") {
            let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            let target = parts[0].isEmpty ? page : page.deletingLastPathComponent().appendingPathComponent(String(parts[0]))
            #expect(FileManager.default.fileExists(atPath: target.path), "\(page.lastPathComponent): \(match.1)")
            guard parts.count == 2 else { continue }
            #expect(DocumentPages.anchors(target).contains(String(parts[1])), "\(page.lastPathComponent): \(match.1)")
        }
    }

    @Test func readme_lines_areOneScreen() {
        #expect(DocumentPages.lines(DocumentPages.root.appendingPathComponent("README.md")).count <= 45)
    }
}
