// Runs every .testcase of the folder Cases on its own Postfix.

import Foundation
import PostfixHarness
import TestSupport
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Cases").path

@Suite(.blocking) struct TestCaseTests {
    private static let cases: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".testcase") }.sorted()
    }()

    @Test func cases_areFound() {
        #expect(!Self.cases.isEmpty)
    }

    @Test(needsPostfix, arguments: cases) func testCase_everyFile_passes(_ name: String) throws {
        let testCase = try TestCase(file: "\(folder)/\(name)")
        let script = (testCase.sections["filter"] ?? []).map { $0 + "\n" }.joined()
        let fixture = try PostfixFixture(
            script, sink: testCase.behaviour, settings: testCase.settings)
        defer { fixture.stop() }
        let failures = try testCase.run(postfix: fixture.postfix, sink: fixture.sink)
        #expect(
            failures.isEmpty,
            "\(testCase.description)\n\(failures.joined(separator: "\n"))\n\(fixture.postfix.logTail)"
        )
    }

    @Test func testCase_malformed_namesItsLine() {
        for (text, line) in [
            ("hello", 1), ("[smtp]\nX: y", 2), ("[postfix]\nname", 2),
            ("[smtp]\nC*3: NOOP\nC: QUIT", 3),
            ("[delivered]\nfrom: <>\nSubject: x", 3),
            ("[smtp]\nC: \\q", 2), ("[sink]\nrefuse", 2),
        ] {
            #expect {
                try TestCase(name: "t", text: text)
            } throws: { "\($0)".hasPrefix("t.testcase:\(line):") }
        }
    }

    @Test(needsPostfix) func testCase_unexpectedOutcome_isReported() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let dialogue =
            "[smtp]\nS: 220\nC: EHLO x\nS: 250\nC: MAIL FROM:<a@out.test>\nS: 250\nC: RCPT TO:<u@relay.test>\nS: 250\nC: DATA\nS: 354\nC: From: a\nC: .\nS: 250\n"
        let other = try TestCase(
            name: "t",
            text: dialogue
                + "[delivered]\nfrom: <a@out.test>\nto: <u@relay.test>\n\n...\nFrom: b\n...\n")
        #expect(try other.run(postfix: fixture.postfix, sink: fixture.sink).count == 1)
        let refused = try TestCase(name: "t", text: dialogue.replacing("S: 354", with: "S: 554"))
        #expect(
            try refused.run(postfix: fixture.postfix, sink: fixture.sink).first?.hasPrefix(
                "after \"DATA\": expected 554, got 354")
                == true)
    }
}
