// One budget for a whole decision: the steps that it counts, and the decision when it is used up.

import CEL
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking, .timeLimit(.minutes(2))) struct BudgetTests {
    private var now: CELTimestamp {
        get throws { try #require(CELTimestamp(seconds: 1_790_000_000)) }
    }

    private func policy(_ rules: String, guarantees: String = "", list: Int = 0) throws -> Policy {
        var options = PolicyLoadOptions()
        let lines = (0..<list).map { "entry-\($0)" }.joined(separator: "\n")
        options.listFile = { _ in .text(lines) }
        return try PolicyLoader.load(
            """
            policy: p
            version: "1"
            challenges: [{kind: human_check}, {kind: email_code}, {kind: reauthenticate}]
            defaults: {challenge: human_check}
            \(list > 0 ? "lists: {bad: bad.txt}" : "")
            signals: {event: string, account.real_user_status: int?, account.managed: bool?, context.l: list(int)?, context.a: string?,
              context.b: string?}
            rules:
            \(rules)
            \(guarantees)
            """, options: options)
    }

    /// `contains` on these takes 4,000 steps, which the policy's text does not show.
    private func dear(_ policy: Policy, status: Int64? = nil) throws -> PolicyInput {
        var input = policy.makeInput(event: .signUp, now: try now)
        try policy.set("context.a", to: .string(String(repeating: "x", count: 1_024)), in: &input)
        try policy.set(
            "context.b", to: .string(String(repeating: "x", count: 511) + "y"), in: &input)
        if let status { try policy.set("account.real_user_status", to: .int(status), in: &input) }
        return input
    }

    /// `size` of a large list must not sort it for each element.
    @Test func decision_sizeOfLargeList_isMadeInTime() throws {
        let policy = try policy(
            "- {id: r, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: 'context.l.exists(x, size(bad) < x)'}",
            list: 100_000)
        var input = policy.makeInput(event: .signUp, now: try now)
        try policy.set("context.l", to: .list((0..<64).map { .int($0) }), in: &input)
        for _ in 0..<200 { #expect(policy.decide(input).decision == .allow) }
        try policy.set("context.l", to: .list([.int(100_001)]), in: &input)
        #expect(policy.decide(input).decision == .requireVerification)
    }

    /// All conditions share one budget.
    @Test func decision_manyConditions_hasOneBudget() throws {
        let rules = (0..<100).map {
            "- {id: r\($0), effect: \($0 == 99 ? "skip, up_to" : "require, challenge"): email_code, events: [sign_up], reason: R, "
                + "condition: 'context.a.contains(context.b)'}\n"
        }
        let policy = try policy(rules.joined())
        let result = policy.decide(try dear(policy))
        #expect((1...98).contains(result.errors.count), "\(result.errors.count)")
        #expect(result.errors.contains(98) && !result.errors.contains(0))
        #expect(result.decision == .requireVerification)
        #expect(policy.reasons(result) == ["POLICY_ERROR"])
        #expect(!result.skips.contains(99), "a skip does not match")
        // After it is used up, it is used up for `in` a named list too; comparisons of numbers cost
        // nothing.
        let (list, number) = try (
            self.policy(
                rules.dropLast().joined()
                    + "- {id: i, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: context.a in bad}",
                list: 1),
            self.policy(
                rules.dropLast().joined()
                    + "- {id: n, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: account.real_user_status > 3}"
            )
        )
        #expect(list.decide(try dear(list)).errors.contains(99))
        #expect(!number.decide(try dear(number, status: 2)).errors.contains(99))
    }

    /// A cheap skip must not waive a rule that the budget turned into an error.
    @Test func guarantee_budgetUsedUp_stillHolds() throws {
        let fillers = (0..<40).map {
            "- {id: f\($0), effect: require, events: [sign_up], challenge: human_check, reason: F, "
                + "condition: 'context.a.contains(context.b) && account.managed'}\n"
        }
        let policy = try policy(
            fillers.joined() + """
                - {id: long, effect: require, events: [sign_up], challenge: reauthenticate, reason: LONG, condition: size(context.a) > 5}
                - {id: real, effect: skip, events: [sign_up], up_to: email_code, reason: REAL, condition: account.real_user_status == 2}
                """,
            guarantees:
                "guarantees: [{condition: 'size(context.a) > 5', decision: require_verification}]")
        let result = policy.decide(try dear(policy, status: 2))
        #expect(result.errors.contains(40))
        #expect(result.decision == .requireVerification)
        #expect(policy.reasons(result) == ["POLICY_GUARANTEE"])
    }

    @Test func policy_conditionsOverBudgetTogether_isRefused() throws {
        func rules(_ count: Int) -> String {
            (0..<count).map {
                "- {id: r\($0), effect: require, events: [sign_in], challenge: email_code, reason: R, "
                    + "condition: 'context.l.exists(x, context.l.exists(y, x + y == 7))'}\n"
            }.joined()
        }
        _ = try policy(rules(2))
        let refusal = #expect(throws: PolicyRefusal.self) { _ = try policy(rules(20)) }
        #expect(
            refusal?.description.contains(
                "together they can take more than 100000 steps for 'sign_in'") == true)
    }

    /// Work that must cost steps: keys that are hashed, maps that are copied, zones that are looked
    /// up.
    @Test(arguments: [
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, s in {s: 1})))",
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, t.getHours('Europe/Berlin') < 24)))",
    ])
    func expression_costlySizes_exceedsBudget(expression: String) throws {
        let tried = ExpressionCase(
            expression: expression,
            bindings: [
                "s": .string(String(repeating: "x", count: 4_096)), "t": .timestamp(try now),
            ])
        guard
            case .failure(.error(let error)) = tried.evaluate(zones: TimeZoneOffsets { _, _ in 0 })
        else {
            Issue.record("the budget did not end it")
            return
        }
        #expect(error.code == .budget)
    }

    @Test func policy_cheapConditions_decidesAtOnce() throws {
        func policy(_ condition: String) throws -> Policy {
            try self.policy(
                "- {id: r, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: '\(condition)'}"
            )
        }
        #expect(try policy("account.real_user_status > 1 && account.managed").decidesAtOnce)
        #expect(try !policy("context.l.exists(x, x > 2)").decidesAtOnce)
        #expect(try DefaultPolicy.load().decidesAtOnce)
        // 999 nodes in each condition.
        let some = Array(repeating: "account.managed", count: 50).joined(separator: " || ")
        let many = Array(repeating: "(\(some))", count: 10).joined(separator: " && ")
        let rules = (0..<3).map {
            "- {id: r\($0), effect: always, events: [sign_up], challenge: human_check, reason: R, condition: '\(many)'}\n"
        }
        #expect(try self.policy(rules.dropLast().joined()).decidesAtOnce)
        #expect(try !self.policy(rules.joined()).decidesAtOnce)
    }
}
