// Every shell block of README and docs runs unchanged, on a copy of this machine.

import Foundation
import PostfixHarness
import TestSupport
import Testing

private let mayCopyTheMachine =
    (try? ManagedProcess.run("/usr/bin/unshare", ["--mount", "--net", "--pid", "--fork", "true"]))?
    .status == 0

@Suite(
    .blocking,
    .enabled(if: mayCopyTheMachine, "a copy of this machine is made, which is not allowed here"))
struct DocsTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    /// A fenced block and its place.
    struct Block: CustomTestStringConvertible, Sendable {
        let page: String
        let line: Int
        let text: String

        var testDescription: String { "\(page):\(line)" }
    }

    /// The blocks of all pages that a reader types.
    private static let blocks = DocumentPages.all.flatMap {
        blocks(of: DocumentPages.text($0), $0.deletingPathExtension().lastPathComponent)
    }

    private static func blocks(of text: String, _ page: String) -> [Block] {
        var (blocks, open): ([Block], (language: Substring, line: Int, lines: [Substring])?) = (
            [], nil
        )
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            guard line.hasPrefix("```") else {
                open?.lines.append(line)
                continue
            }
            if let block = open, block.language == "sh" {
                blocks.append(
                    Block(
                        page: page, line: block.line,
                        text: block.lines.joined(separator: "\n") + "\n"))
            }
            open = open == nil ? (line.dropFirst(3), number + 1, []) : nil
        }
        return blocks
    }

    @Test func documents_shellBlocks_areFound() {
        #expect(Self.blocks.count >= 30)
        #expect(
            Set(Self.blocks.map(\.page)).isSuperset(of: [
                "README", "START", "CONTRIBUTING", "OPERATING-INSTALL", "OPERATING-KEYS", "SIGN_IN",
                "DECISIONS", "EVENTS",
            ])
        )
    }

    @Test(arguments: blocks) func documents_shellBlock_runs(_ block: Block) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-docs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("block")
        try Data(block.text.utf8).write(to: file)
        let run = try ManagedProcess.run(
            "/usr/bin/unshare",
            [
                "--mount", "--net", "--pid", "--fork", "--kill-child", "bash",
                Self.here.appendingPathComponent("machine.sh").path,
                DocumentPages.root.path, CommandRunner.executable.path, block.page, file.path,
            ])
        #expect(
            run.status == 0 && run.output.contains("machine.sh: the block ran"),
            "\(block.testDescription)\n\(run.output.suffix(3000))")
    }
}
