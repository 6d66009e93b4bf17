// The default policy: its own tests, the public ones, and their complete coverage.

import Foundation
import RiskPolicy
import TestSupport
import Testing

enum DefaultPolicy {
    static func load() throws -> Policy {
        let file = Folders.package.appending(path: "policy/rules/default/policy.yaml")
        var options = PolicyLoadOptions()
        options.zones = .system
        return try PolicyLoader.load(
            try String(contentsOf: file, encoding: .utf8), options: options)
    }

    static func tests(_ policy: Policy) throws -> PolicyTestSuite {
        let file = Folders.package.appending(path: "policy/rules/default/tests.yaml")
        return try PolicyTestSuite.load(
            try String(contentsOf: file, encoding: .utf8), policy: policy)
    }
}

@Suite(.blocking) struct DefaultPolicyTests {
    @Test func defaultPolicy_ownTests_passes() throws {
        let policy = try DefaultPolicy.load()
        let suite = try DefaultPolicy.tests(policy)
        let results = suite.run(policy)
        #expect(results.count >= 40)
        for result in results { #expect(result.passed, "\(result.test.path)\n\(result.diff)") }
        print("policy/rules/default: \(results.count(where: \.passed)) of \(results.count) cases")
    }

    /// Separate from the tests that authors copy, because a new rule of theirs makes these untrue.
    @Test func defaultPolicy_signalsMissing_namesRulesAsMissing() throws {
        let policy = try DefaultPolicy.load()
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "default-missing.yaml")
        let suite = try PolicyTestSuite.load(
            try String(contentsOf: file, encoding: .utf8), policy: policy)
        let results = suite.run(policy)
        #expect(results.count == 7)
        for result in results { #expect(result.passed, "\(result.test.path)\n\(result.diff)") }
    }

    @Test func defaultPolicy_withAuthorsRules_passesOwnTests() throws {
        let file = Folders.package.appending(path: "policy/rules/default/policy.yaml")
        let events =
            "events: [sign_up, sign_in, upgrade, sensitive_action], challenge: email_code, reason: MINE"
        let text = try String(contentsOf: file, encoding: .utf8)
            .replacing(
                "\nsignals:", with: "\nsignals:\n  context.score: int?\n  context.place: string?\n#"
            )
            .replacing(
                "\nrules:",
                with: """

                    rules:
                    - {id: mine, effect: require, \(events), condition: context.score > 90}
                    - {id: tried, effect: require, mode: shadow, \(events), condition: context.place != "here"}
                    - {id: always, effect: always, mode: shadow, \(events), condition: account.age_hours >= 0}
                    #
                    """)
        var options = PolicyLoadOptions()
        options.zones = .system
        let policy = try PolicyLoader.load(text, options: options)
        #expect(policy.rules.count == (try DefaultPolicy.load()).rules.count + 3)
        for result in try DefaultPolicy.tests(policy).run(policy) {
            #expect(result.passed, "\(result.test.path)\n\(result.diff)")
        }
    }

    @Test func defaultPolicy_ownTests_coverEveryRuleAndSignal() throws {
        let policy = try DefaultPolicy.load()
        let suite = try DefaultPolicy.tests(policy)
        #expect(PolicyCoverage(policy: policy, suite: suite).gaps == [])
        for event in PolicyEvent.allCases {
            #expect(suite.tests.contains { $0.input.event == event }, "\(event)")
        }
        for (slot, signal) in policy.signals.enumerated() {
            let values = suite.tests.map { policy.value(slot: slot, of: $0.input) }
            #expect(values.contains { !$0.isMissing }, "\(signal.name) is never given")
            if signal.mayBeMissing {
                #expect(values.contains { $0.isMissing }, "\(signal.name) is never missing")
            }
        }
    }

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func defaultPolicy_publicTests_passes() throws {
        let policy = try DefaultPolicy.load()
        let file = Folders.conformance.appending(path: "policy-default-tests.yaml")
        // These tests are older than some signals, which get the values of an ordinary person.
        let ordinary =
            "given:\n  inbox.domain_class: provider\n  velocity: {network_sign_ups: 1, domain_sign_ups: 1}\n"
        let text = try String(contentsOf: file, encoding: .utf8).replacing(
            "\ngiven:\n", with: "\n" + ordinary)
        let suite = try PolicyTestSuite.load(
            text, file: "policy-default-tests.yaml", policy: policy)
        let results = suite.run(policy)
        #expect(!results.isEmpty)
        for result in results { #expect(result.passed, "\(result.test.path)\n\(result.diff)") }
        print("policy-default-tests: \(results.count(where: \.passed)) of \(results.count) cases")
    }
}
