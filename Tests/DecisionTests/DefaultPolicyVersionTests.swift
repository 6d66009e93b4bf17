// The version of the default policy identifies it.

import Decisions
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct DefaultPolicyVersionTests {
    @Test func defaultPolicy_contentChanged_needsNewVersion() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "default-policy-versions.txt")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter {
            !$0.hasPrefix("#")
        }
        let known = lines.map { $0.split(separator: " ").map(String.init) }
        #expect(Set(known.map { $0[0] }).count == known.count, "a version stands twice")
        let policy = StoredPolicy.builtIn
        #expect(
            known.last == [policy.version, "sha256:" + policy.hash.replacing("sha256:", with: "")],
            "the default policy changed: give it a new version, and add that with its hash to default-policy-versions.txt"
        )
    }
}
