// policy/invalid/*: policies that must be refused, each with exactly the expected message.

import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct InvalidPolicyTests {
    @Test func invalidPolicy_everyExample_isRefusedWithMessage() throws {
        let root = Folders.package.appending(path: "policy/invalid")
        let names = try FileManager.default.contentsOfDirectory(atPath: root.path).sorted()
        #expect(names.count >= 25)
        for name in names {
            let folder = root.appending(path: name)
            let expected = try String(
                contentsOf: folder.appending(path: "expected-error.txt"), encoding: .utf8)
            let actual = try refusal(folder)
            #expect(actual.map { $0 + "\n" } == expected, "\(name): \(actual ?? "was taken")")
        }
        print("policy/invalid: \(names.count) policies")
    }

    /// The refusal of `postern policy check` for a folder; nil if it is accepted.
    private func refusal(_ folder: URL) throws -> String? {
        func text(_ name: String) -> String? {
            try? String(contentsOf: folder.appending(path: name), encoding: .utf8)
        }
        do throws(PolicyRefusal) {
            let policy = try PolicyLoader.load(text("policy.yaml") ?? "")
            guard let tests = text("tests.yaml") else { return nil }
            let suite = try PolicyTestSuite.load(tests, policy: policy)
            let report = PolicyTestReport(policy: policy, suite: suite, withCoverage: false)
            if report.results.isEmpty { return "tests.yaml: no tests" }
            return report.failures > 0 ? report.text : nil
        } catch {
            return error.description
        }
    }
}
