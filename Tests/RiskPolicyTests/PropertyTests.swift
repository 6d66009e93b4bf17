// Properties over many generated inputs and texts, from fixed seeds: guarantees hold, decisions
// agree with their conditions evaluated alone and with the combining rules written out plainly,
// nothing crashes or hangs.

import CEL
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct PropertyTests {
    private var now: CELTimestamp {
        get throws { try #require(CELTimestamp(seconds: 1_790_000_000)) }
    }

    @Test func guarantees_generatedInputs_hold() throws {
        let policy = try DefaultPolicy.load()
        var generator = InputGenerator(policy: policy, seed: 2026, now: try now)
        let status = try #require(policy.slot(named: "account.real_user_status"))
        let signups = try #require(policy.slot(named: "inbox.signups_24h"))
        let count = 100_000
        var guarded = 0
        for number in 0..<count {
            let input = generator.next(event: PolicyEvent.allCases[number % 4])
            let result = policy.decide(input)
            try #require(result.overridingGuarantee < 0)
            try #require((result.decision == .allow) == (result.challenges == 0))
            guard input.event == .signUp,
                case .int(let value) = policy.value(slot: status, of: input)
            else { continue }
            if value == 1 {
                guarded += 1
                try #require(result.decision == .requireVerification)
            }
            if value == 2, case .int(let known) = policy.value(slot: signups, of: input), known < 10
            {
                guarded += 1
                try #require(result.decision == .allow)
            }
        }
        #expect(guarded > count / 100)
        print("guarantees: \(count) inputs, \(guarded) of them guarded")
    }

    @Test func decisions_generated_agreeWithThePlainRules() throws {
        let policy = try DefaultPolicy.load()
        var generator = InputGenerator(policy: policy, seed: 7, now: try now)
        for number in 0..<8_000 {
            let input = generator.next(event: PolicyEvent.allCases[number % 4])
            let result = policy.decide(input)
            let plain = PlainDecision(policy, input)
            try #require(result.decision == plain.decision, "\(policy.answer(result))")
            try #require(
                Set(policy.answer(result).challenges) == plain.challenges,
                "\(policy.answer(result))")
            try #require(Set(result.asked) == plain.asked)
            try #require(Set(result.waived) == plain.waived)
            try #require(Set(result.missing) == plain.missing)
        }
    }

    /// Expressions of every form, made at random, in their own policy: simplified for a decision
    /// and as written they must agree. `POSTERN_GENERATE=SEED:COUNT` makes other policies, and
    /// more; each is 800 pairs.
    @Test func conditions_generated_agreeWithThemselvesAlone() throws {
        let (seed, count) = Generated.settings(seed: 99, count: 150, variable: "POSTERN_GENERATE")
        var random = SeededGenerator(seed: seed)
        var taken = 0
        for round in 0..<count {
            let conditions = (0..<20).map { _ in ConditionMaker.truth(&random, depth: 4) }
            // Some are together over budget.
            guard
                let policy = try? PolicyLoader.load(
                    ConditionMaker.policy(conditions), options: ConditionMaker.options)
            else {
                continue
            }
            taken += 1
            var generator = InputGenerator(policy: policy, seed: UInt64(round), now: try now)
            for number in 0..<40 {
                let input = generator.next(event: PolicyEvent.allCases[number % 4])
                let result = policy.decide(input)
                for (position, rule) in policy.rules.enumerated() {
                    let outcome = policy.outcome(of: position, input)
                    try #require(
                        result.asked.contains(position)
                            == (outcome == .matched || outcome == .error), "\(rule.condition.text)")
                    try #require(
                        result.missing.contains(position) == (outcome == .missing),
                        "\(rule.condition.text)")
                    try #require(
                        result.errors.contains(position) == (outcome == .error),
                        "\(rule.condition.text)")
                }
            }
        }
        print("conditions: \(taken * 800) pairs")
        #expect(taken > count * 4 / 5)
    }

    @Test func expressions_mutated_neverCrash() throws {
        let data =
            Folders.hasConformance
            ? try? Data(contentsOf: Folders.conformance.appending(path: "cel_cases.json")) : nil
        let cases =
            try data.map { try JSONSerialization.jsonObject(with: $0) as? [[String: Any]] } ?? []
        var seeds = (cases ?? []).compactMap { $0["expr"] as? String }
        seeds += try DefaultPolicy.load().rules.map(\.condition.text)
        seeds += [
            "[1, 2, 3].map(x, x * 2).filter(y, y > 2).exists_one(z, z == 4)",
            "{'a': 1u, 2: [b'x', null]}.size() in [2, 3.0]",
            "timestamp('2026-01-01T00:00:00Z') + duration('1h30m') > timestamp(0) ? 'yes' : r'no\\'",
            "'héllo'.contains('l') && size(b'\\xff\\000') == 2 || type(1.5e3) == double",
            "int('5') + int(2.9) - -3 % 0x10",
            "string(123) + 'x' + \"\"\"a\nb\"\"\"",
            "has({'k': {'v': 1}}.k) && {'k': {'v': 1}}.k.v == a[0]",
        ]
        var random = SeededGenerator(seed: 5)
        var values = 0
        for _ in 0..<20_000 {
            let text = Mutation.of(
                seeds[Int.random(in: 0..<seeds.count, using: &random)], with: seeds, &random)
            let tried = ExpressionCase(
                expression: text, bindings: ["x": .int(1), "a": .list([.int(0)])])
            if case .success(let value) = tried.evaluate(zones: .none) {
                _ = value.text
                _ = value.typedJSON
                values += 1
            }
        }
        #expect(values > 100)
    }

    @Test func policies_mutated_neverCrashLoader() throws {
        let file = Folders.package.appending(path: "policy/rules/default/policy.yaml")
        var seeds = [try String(contentsOf: file, encoding: .utf8)]
        let invalid = Folders.package.appending(path: "policy/invalid")
        for name in try FileManager.default.contentsOfDirectory(atPath: invalid.path).sorted() {
            let text = try String(
                contentsOf: invalid.appending(path: name).appending(path: "policy.yaml"),
                encoding: .utf8)
            if text.utf8.count < 8_000 { seeds.append(text) }
        }
        var options = PolicyLoadOptions()
        options.generatedInputs = 20
        var random = SeededGenerator(seed: 6)
        var taken = 0
        let start = try now
        for _ in 0..<1_500 {
            let seed =
                Bool.random(using: &random) ? 0 : Int.random(in: 0..<seeds.count, using: &random)
            let text = Mutation.of(seeds[seed], with: seeds, &random)
            do throws(PolicyRefusal) {
                let policy = try PolicyLoader.load(text, options: options)
                taken += 1
                var generator = InputGenerator(policy: policy, seed: 1, now: start)
                for event in PolicyEvent.allCases {
                    _ = policy.answer(policy.decide(generator.next(event: event)))
                }
            } catch {
                #expect(!error.diagnostics.isEmpty)
            }
        }
        #expect(taken > 10)
    }

    /// Doubly nested structure that is shared in memory, and comprehensions over
    /// comprehensions, end in an error.
    @Test func expressions_growingExponentially_exceedBudget() {
        var expression = "[1, 2]"
        for _ in 0..<40 { expression += ".map(x, [x, x])" }
        func result(_ text: String) -> Result<CELValue, ExpressionCaseFailure> {
            ExpressionCase(expression: text, bindings: [:]).evaluate(zones: .none)
        }
        if case .failure(.error(let error)) = result(expression + " == " + expression) {
            #expect(error.code == .budget)
        } else {
            Issue.record("the budget did not end it")
        }
        if case .success(.int(2)) = result("size(\(expression))") {
        } else {
            Issue.record("no size")
        }
        if case .success(let value) = result(expression) {
            #expect(value.typedJSON == nil)
        } else {
            Issue.record("no value")
        }
        var nested = "true"
        for _ in 0..<8 { nested = "[1,2,3,4,5,6,7,8,9,10].all(x, \(nested))" }
        guard case .failure(.error(let error)) = result(nested) else {
            Issue.record("the budget did not end it")
            return
        }
        #expect(error.code == .budget)
    }
}
