// Runs every .testcase of the folder RelayCases on a whole relay: real Postfix, real store, real name server.

import Foundation
import PostfixHarness
import RelayHarness
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("RelayCases").path

@Suite struct RelayCaseTests {
    private static let names: [String] = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasSuffix(".testcase") }.sorted()

    @Test func thereAreCases() {
        #expect(Self.names.count >= 8)
    }

    @Test(needsPostfix, arguments: names, RelayEngine.all) func testcase(_ name: String, _ engine: RelayEngine) throws {
        let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
        let outline = try TestCase(name: name, text: text, folder: folder)
        var options = RelayFixtures.options { $0.postfix = outline.settings }
        options.database = try engine.database()
        if let zone = outline.sections["dns"] { options.zone = zone.joined(separator: "\n") }
        for line in outline.sections["settings"] ?? [] {
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            options.settings[parts[0]] = parts.count > 1 ? parts[1] : ""
        }
        let fixture = try RelayFixture(options)
        defer { fixture.stop() }
        fixture.sink.set(outline.behaviour)
        var variables: [String: String] = [:]
        for line in outline.sections["postern"] ?? [] { try perform(Self.filled(line, variables), on: fixture, into: &variables) }
        let testCase = try TestCase(name: name, text: Self.filled(text, variables), folder: folder)
        let failures = try testCase.run(postfix: fixture.postfix, sink: fixture.sink)
        #expect(
            failures.isEmpty,
            "\(testCase.description)\n\(failures.joined(separator: "\n"))\n\(fixture.postfix.logTail)\n\((try? fixture.process.output) ?? "")"
        )
    }

    private static func filled(_ text: String, _ variables: [String: String]) -> String {
        variables.reduce(text) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
    }

    /// A command of postern, or `NAME = command` to keep its output, or `NAME = reverse RELAY-ADDRESS AUTHOR`: as what the
    /// author appears to the user.
    private func perform(_ line: String, on fixture: RelayFixture, into variables: inout [String: String]) throws {
        let words = line.split(separator: " ").map(String.init)
        guard words.count > 2, words[1] == "=" else {
            try fixture.run(words)
            return
        }
        if words[2] == "reverse", words.count == 5 {
            variables[words[0]] = try fixture.reverseAddress(of: words[4], for: words[3])
        } else {
            variables[words[0]] = try fixture.run(Array(words[2...])).trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}
