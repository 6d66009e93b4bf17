// The relay beside programs that a mail server often has: each with the settings of docs/INTEGRATION.md, as a real program.

import Foundation
import PostfixHarness
import RelayHarness
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("IntegrationCases").path

/// The cases of a program are those whose name begins with its name.
private func cases(_ program: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasPrefix(program) && $0.hasSuffix(".testcase") }.sorted()
}

private func needs(_ program: String, _ package: String) -> any SuiteTrait & TestTrait {
    .enabled(
        if: FileManager.default.isExecutableFile(atPath: program), "skipped: \(package) is not installed (make test-tools)")
}

@Suite(needsPostfix) struct IntegrationTests {
    @Test func thereAreCases() {
        for program in ["opendkim", "rspamd"] { #expect(!cases(program).isEmpty, "\(program)") }
    }

    @Suite(needs(OpenDKIM.program, "opendkim")) struct BesideOpenDKIM {
        @Test(arguments: cases("opendkim")) func testcase(_ name: String) throws {
            let failure = try RelayCase.run(name, in: folder, neighbours: [OpenDKIM()]) { $0.trustsLoopback = true }
            #expect(failure == nil, "\(failure ?? "")")
        }
    }

    @Suite(needs(Rspamd.program, "rspamd")) struct BesideRspamd {
        @Test(arguments: cases("rspamd")) func testcase(_ name: String) throws {
            let failure = try RelayCase.run(name, in: folder, neighbours: [Rspamd()]) {
                $0.trustsLoopback = true
                $0.fansOut = true
            }
            #expect(failure == nil, "\(failure ?? "")")
        }
    }
}
