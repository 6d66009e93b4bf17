// Policies that decide statuses: the default one by its own tests, and how rules are combined.

import CEL
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct StatusPolicyTests {
    private func file(_ name: String) throws -> String {
        try String(
            contentsOf: Folders.package.appending(path: "policy/rules/status/\(name)"),
            encoding: .utf8)
    }

    @Test func defaultStatusPolicy_ownTests_passesAndIsCovered() throws {
        let policy = try PolicyLoader.load(try file("policy.yaml"))
        let suite = try PolicyTestSuite.load(try file("tests.yaml"), policy: policy)
        let report = PolicyTestReport(policy: policy, suite: suite, withCoverage: true)
        #expect(report.results.count >= 60)
        for result in report.results {
            #expect(result.passed, "\(result.test.path)\n\(result.diff)")
        }
        #expect(report.coverage?.gaps == [])
        print("policy/rules/status: \(report.results.count) cases")
    }

    private func status(
        _ rules: String, otherwise: String, _ signals: [String: CELValue]
    ) throws -> PolicyStatus {
        let policy = try PolicyLoader.load(
            """
            policy: status
            version: "1"
            decides: status
            defaults: {status: \(otherwise)}
            signals: {user.age_hours: int?, user.teams: int?, user.replies_30d: int?}
            rules: [\(rules)]
            """)
        let time = try #require(CELTimestamp(seconds: 0))
        var input = policy.makeInput(event: .signUp, now: time)
        for (name, value) in signals { try policy.set(name, to: value, in: &input) }
        return policy.status(policy.decide(input))
    }

    @Test func statusPolicy_severalRulesMatch_mostCautiousCounts() throws {
        let rules = """
            {id: old, status: likely_real, condition: user.age_hours >= 10}, {id: few, status: unknown, condition: user.teams >= 9},
            {id: none, status: unsupported, condition: user.replies_30d >= 5}
            """
        for otherwise in ["likely_real", "unknown", "unsupported"] {
            let fallback = try #require(PolicyStatus(rawValue: otherwise))
            #expect(try status(rules, otherwise: otherwise, [:]) == fallback)
            #expect(
                try status(rules, otherwise: otherwise, ["user.age_hours": .int(10)]) == .likelyReal
            )
            #expect(
                try status(
                    rules, otherwise: otherwise,
                    ["user.age_hours": .int(10), "user.teams": .int(9)]) == .unknown)
            #expect(
                try status(
                    rules, otherwise: otherwise,
                    ["user.age_hours": .int(10), "user.replies_30d": .int(5)]) != .likelyReal)
        }
    }

    @Test func statusPolicy_reservedRuleIDOrReason_isRefused() {
        for rule in ["id: default", "id: policy-error", "id: other, reason: DEFAULT"] {
            #expect(throws: PolicyRefusal.self) {
                try status(
                    "{\(rule), status: unknown, condition: user.age_hours > 1}",
                    otherwise: "unknown", [:])
            }
        }
    }

    @Test func statusPolicy_ruleError_isNotTrusted() throws {
        let rules = "{id: old, status: likely_real, condition: 10 / user.age_hours > 0}"
        #expect(
            try status(rules, otherwise: "unsupported", ["user.age_hours": .int(0)]) == .unsupported
        )
        #expect(
            try status(rules, otherwise: "unsupported", ["user.age_hours": .int(1)]) == .likelyReal)
        let against = "{id: odd, status: unknown, condition: 10 / user.age_hours > 0}"
        #expect(
            try status(against, otherwise: "likely_real", ["user.age_hours": .int(0)]) == .unknown)
    }
}
