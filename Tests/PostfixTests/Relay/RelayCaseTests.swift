// Runs every .testcase of the folder RelayCases on a whole relay: real Postfix, real
// store, real name server.

import Foundation
import RelayHarness
import TestSupport
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent()
    .appendingPathComponent("RelayCases").path

@Suite(.blocking) struct RelayCaseTests {
    private static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasSuffix(".testcase") }.sorted()

    @Test func cases_areFound() {
        #expect(Self.names.count >= 8)
    }

    @Test(needsPostfix, arguments: names, RelayEngine.all) func relay_everyCase_hasExpectedOutcome(
        _ name: String, _ engine: RelayEngine
    ) throws {
        let failure = try RelayCase.run(name, in: folder) { $0.database = try engine.database() }
        #expect(failure == nil, "\(failure ?? "")")
    }
}
