// docs/POLICY.md and the two pages after it, run from top to bottom: the output must be that of the
// page.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct PolicyPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..")
        .standardizedFileURL

    /// A command, and the output that the page shows below it.
    private struct Example {
        let command: String
        var output = ""
    }

    /// The fenced blocks of a kind, in their order.
    private static func blocks(_ page: String, _ kind: String) -> [String] {
        page.components(separatedBy: "\n```\(kind)\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```\n").first
        }
    }

    private static func examples(_ page: String) -> [Example] {
        var examples: [Example] = []
        for line in blocks(page, "console").joined(separator: "\n").components(separatedBy: "\n") {
            if line.hasPrefix("$ ") {
                examples.append(Example(command: String(line.dropFirst(2))))
            } else if !examples.isEmpty {
                examples[examples.count - 1].output += line + "\n"
            }
        }
        return examples
    }

    /// Hashes and times differ for each reader; the replacement keeps their width, on which tables
    /// depend.
    private static func masked(_ text: String) -> String {
        text.replacing(#/\b[0-9a-f]{12}\b/#, with: "hhhhhhhhhhhh")
            .replacing(#/\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/#, with: "yyyy-mm-ddThh:mm:ssZ")
            .replacing("\r\n", with: "\n")
            .replacing(#/ +$/#.anchorsMatchLineEndings(), with: "").trimmingCharacters(
                in: .newlines)
    }

    @Test func policyDocument_everyExample_printsWhatIsShown() throws {
        let page = try ["POLICY", "POLICY-REFERENCE", "POLICY-ACTIVATE"].map {
            try String(
                contentsOf: Self.root.appendingPathComponent("docs/\($0).md"), encoding: .utf8)
        }.joined(separator: "\n")
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.example.juice")
        // The small policy's files, under the names before them.
        let folder = runner.folder.appendingPathComponent("pol")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let yaml = Self.blocks(page, "yaml")
        let files = [
            ("policy.yaml", yaml[0]), ("tests.yaml", yaml[1]),
            ("bad-prefixes.txt", Self.blocks(page, "text")[0]),
        ]
        for (name, text) in files {
            try Data((text + "\n").utf8).write(to: folder.appendingPathComponent(name))
        }
        try FileManager.default.createSymbolicLink(
            at: runner.folder.appendingPathComponent("policy"),
            withDestinationURL: Self.root.appendingPathComponent("policy"))

        let examples = Self.examples(page)
        #expect(examples.count >= 25)
        let path = CommandRunner.executable.deletingLastPathComponent().path + ":/usr/bin:/bin"
        for example in examples {
            // A terminal, like the reader's.
            let run = try ManagedProcess(
                "/usr/bin/env",
                ["script", "-qec", "stty cols 200; " + example.command, "/dev/null"],
                environment: [
                    "PATH": path, "POSTERN_CONFIG": runner.configuration, "NO_COLOR": "1",
                    "TERM": "dumb", "SHELL": "/bin/bash",
                ],
                directory: runner.folder.path)
            run.closeInput()
            _ = try run.waitForExit()
            #expect(Self.masked(run.output) == Self.masked(example.output), "\(example.command)")
        }
    }
}
