// docs/OVERVIEW.md shows the first message of `make demo`, on both sides.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct OverviewPageTests {
    /// The relay address and the tokens differ each time. Each distinct one gets a name, in order.
    private static func masked(_ lines: [String]) -> [String] {
        var names: [String: String] = [:]
        return lines.map { line in
            line.replacing(#/[a-z2-7]{22,}@relay|[a-z2-7]{10}@relay/#) { match in
                let text = String(match.output)
                let name = names[text] ?? "\(names.count)@relay"
                names[text] = name
                return name
            }
        }
    }

    /// The lines of the demo after a heading, without those that describe the rest of the message.
    private static func shown(_ heading: String, in output: String) -> [String] {
        output.components(separatedBy: "\n").drop {
            $0.trimmingCharacters(in: .whitespaces) != heading
        }.dropFirst()
            .prefix { $0.hasPrefix("  │ ") && !$0.hasPrefix("  │ (") }.map {
                String($0.dropFirst(4))
            }
    }

    @Test func example_isWhatTheDemoPrints() throws {
        let run = try ManagedProcess.run(
            try ManagedProcess.builtProduct("relay-demo"), [], environment: ["NO_COLOR": "1"])
        #expect(run.status == 0)
        let (sent, arrived) = (
            Self.shown("sent by the team", in: run.output),
            Self.shown("arrived in the inbox", in: run.output)
        )
        try #require(sent.count >= 6 && arrived.count >= 7)
        let page = try String(
            contentsOf: Folders.package.appending(path: "docs/OVERVIEW.md"), encoding: .utf8)
        let blocks = page.components(separatedBy: "\n```\n")
        try #require(blocks.count >= 4)
        let written = [blocks[1], blocks[3]].flatMap {
            $0.components(separatedBy: "\n").filter { !$0.isEmpty }
        }
        #expect(Self.masked(written) == Self.masked(sent + arrived))
    }
}
