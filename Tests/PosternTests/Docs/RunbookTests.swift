// The commands that a runbook names in a sentence or a table exist, with their options.

import Foundation
import Testing

@testable import postern

@Suite(.blocking) struct RunbookTests {
    private static let pages = [
        "OPERATING-ABUSE.md", "OPERATING-FEEDBACK.md", "PROCESSING.md", "STABILITY.md",
    ].map { DocumentPages.docs.appendingPathComponent($0) }

    /// The commands in backquotes, as words.
    private static func commands(_ page: URL) -> [[String]] {
        DocumentPages.text(page).matches(of: #/`postern ([^`]+)`/#).map { match in
            match.1.split(whereSeparator: \.isWhitespace).map(String.init)
        }
    }

    @Test(arguments: pages) func runbook_everyCommand_existsWithItsOptions(_ page: URL) throws {
        let commands = Self.commands(page)
        try #require(!commands.isEmpty)
        for words in commands {
            let path = (1...words.count).map { Array(words[..<$0]) }.last {
                HelpTests.commands.contains($0)
            }
            guard let path else {
                Issue.record("\(page.lastPathComponent): postern \(words.joined(separator: " "))")
                continue
            }
            // A group alone, or with a word that is none of its commands, does nothing.
            let below = HelpTests.commands.filter {
                $0.count == path.count + 1 && Array($0[..<path.count]) == path
            }
            let isDefault = path == ["audit"] && words.count > 1 && words[1].hasPrefix("--")
            #expect(below.isEmpty || isDefault, "postern \(words.joined(separator: " "))")
            let help = try String(
                contentsOf: HelpTests.folder.appendingPathComponent(
                    "help-\((isDefault ? path + ["list"] : path).joined(separator: "-")).txt"),
                encoding: .utf8)
            for option in words where option.hasPrefix("--") {
                #expect(help.contains(option), "postern \(words.joined(separator: " "))")
            }
        }
    }
}
