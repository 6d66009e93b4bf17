// Unusable values of declared signals: no value leads to fewer checks than the worst usable one.

import CEL
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct SignalFaultTests {
    private static let now = CELTimestamp(seconds: 1_790_000_000)

    private func policy(
        _ rules: String, extra: String = "", challenges: String = ""
    ) throws -> Policy {
        var options = PolicyLoadOptions()
        options.generatedInputs = 0
        return try PolicyLoader.load(
            """
            policy: small
            version: "1"
            challenges:
            - {kind: human_check\(challenges)}
            - {kind: email_code}
            - {kind: reauthenticate, unavailable_when: context.x == 3}
            defaults: {challenge: email_code}
            signals: {event: string, account.age_hours: int?, context.x: {type: "int?", min: 0, max: 4}, context.y: int?}
            \(extra)
            rules:
            \(rules)
            """, options: options)
    }

    private func input(
        _ policy: Policy, x: CELValue?, age: Int64? = nil, fault: SignalFault? = nil
    ) throws -> PolicyInput {
        var input = policy.makeInput(event: .signIn, now: try #require(Self.now))
        if let x { try policy.set("context.x", to: x, in: &input) }
        if let age { try policy.set("account.age_hours", to: .int(age), in: &input) }
        if let fault {
            policy.mark(slot: try #require(policy.slot(named: "context.x")), fault, in: &input)
        }
        return input
    }

    /// The strength of the weakest sufficient check: -1 for none.
    private func strength(_ policy: Policy, _ input: PolicyInput) -> Int {
        let result = policy.decide(input)
        guard result.decision == .requireVerification else { return -1 }
        return Int(result.challenges.trailingZeroBitCount)
    }

    @Test func unusableValue_ruleThatAsks_countsAsAnErrorAndAsksForItsOwnChallenge() throws {
        let policy = try policy(
            """
            - {id: much, effect: require, events: [sign_in], challenge: reauthenticate, reason: MUCH, condition: context.x > 3}
            - {id: none, effect: always, events: [sign_in], challenge: human_check, reason: NONE, condition: account.age_hours < 0 && context.x > 9}
            """)
        let answer = policy.answer(
            policy.decide(try input(policy, x: nil, age: 5, fault: .outOfBounds)))
        #expect(answer.decision == .requireVerification)
        #expect(answer.challenges == ["reauthenticate"])
        #expect(answer.reasons == ["POLICY_ERROR"])
        #expect(
            answer.errors == ["much", "none", "reauthenticate"],
            "even where the rest of the condition decides")
    }

    @Test func unusableValue_ruleThatSkips_doesNotSkip() throws {
        let policy = try policy(
            """
            - {id: young, effect: require, events: [sign_in], challenge: human_check, reason: YOUNG, condition: account.age_hours < 72}
            - {id: good, effect: skip, events: [sign_in], up_to: email_code, reason: GOOD, condition: context.x == 0 || account.age_hours >= 0}
            """)
        #expect(strength(policy, try input(policy, x: .int(0), age: 1)) == -1)
        #expect(strength(policy, try input(policy, x: nil, age: 1, fault: .wrongType)) == 0)
    }

    @Test func unusableValue_ruleThatDoesNotReadIt_decidesAsBefore() throws {
        let policy = try policy(
            """
            - {id: old, effect: require, events: [sign_in], challenge: human_check, reason: OLD, condition: account.age_hours > 72}
            - {id: other, effect: always, events: [upgrade], challenge: email_code, reason: OTHER, condition: context.x > 3}
            - {id: away, effect: always, events: [sign_in, upgrade], challenge: email_code, reason: AWAY,
               condition: 'event == "upgrade" && context.x > 3'}
            """)
        let answer = policy.answer(
            policy.decide(try input(policy, x: nil, age: 1, fault: .wrongType)))
        #expect(answer.decision == .allow)
        #expect(answer.errors.isEmpty)
    }

    @Test func unusableValue_setAgain_isForgotten() throws {
        let policy = try policy(
            "- {id: much, effect: require, events: [sign_in], challenge: human_check, reason: MUCH, condition: context.x > 3}"
        )
        var input = try input(policy, x: nil, fault: .wrongType)
        let before = input
        try policy.set("context.x", to: .int(1), in: &input)
        #expect(strength(policy, input) == -1)
        #expect(strength(policy, before) == 1, "the copy is another value")
    }

    @Test func unusableValue_counterByIt_countsAsUnusableToo() throws {
        let policy = try policy(
            "- {id: fast, effect: require, events: [sign_in], challenge: human_check, reason: FAST, condition: velocity.n > 3}",
            extra: "counters: {n: {key: context.x, window: 1h, events: [sign_in]}}")
        #expect(policy.answer(policy.decide(try input(policy, x: nil))).decision == .allow)
        let answer = policy.answer(policy.decide(try input(policy, x: nil, fault: .outOfBounds)))
        #expect(answer.decision == .requireVerification)
        #expect(answer.errors == ["fast", "reauthenticate"])
    }

    @Test func unusableValue_reason_isGivenWithoutTheValue() throws {
        let policy = try policy(
            "- {id: much, effect: require, events: [sign_in], challenge: human_check, reason: MUCH, condition: context.x > 3}"
        )
        let input = try input(policy, x: nil, fault: .outOfBounds)
        #expect(
            policy.errorTexts(policy.decide(input), input)
                == ["much", "reauthenticate"].map {
                    "\($0): 'context.x' is out of the bounds that the policy declares"
                })
        #expect(policy.outcome(of: 0, input) == .error)
        #expect(policy.trace(input).rules.map(\.outcome) == [.error])
    }

    /// Conditions of every shape, over rules of every effect, guarantees and challenges
    /// that depend on the value.
    private static func condition(_ random: inout SeededGenerator, depth: Int = 0) -> String {
        let number = Int.random(in: 0...4, using: &random)
        switch Int.random(in: 0..<(depth < 2 ? 10 : 6), using: &random) {
        case 0, 1:
            return
                "context.x \(["==", "!=", "<", ">="].randomElement(using: &random) ?? "==") \(number)"
        case 2: return "has(context.x)"
        case 3: return "account.age_hours < \(number)"
        case 4: return "context.x + account.age_hours > \(number)"
        case 5: return "10 / (context.x - \(number)) > 2"
        case 6: return "!(\(condition(&random, depth: depth + 1)))"
        case 7:
            return
                "(\(condition(&random, depth: depth + 1))) ? account.age_hours > 1 : context.x > \(number)"
        case 8:
            return
                "(\(condition(&random, depth: depth + 1))) && (\(condition(&random, depth: depth + 1)))"
        default:
            return
                "(\(condition(&random, depth: depth + 1))) || (\(condition(&random, depth: depth + 1)))"
        }
    }

    @Test func unusableValue_anyPolicy_neverLeadsToFewerChecksThanTheWorstThatCanBeUsed() throws {
        var random = SeededGenerator(seed: 47)
        var compared = 0
        var asked = 0
        let kinds = ["human_check", "email_code", "reauthenticate"]
        for _ in 0..<3_000 {
            let rules = (0..<Int.random(in: 1...4, using: &random)).map { number in
                let effect =
                    ["always", "require", "require", "skip"].randomElement(using: &random)
                    ?? "require"
                let challenge = kinds.randomElement(using: &random) ?? kinds[0]
                let missing =
                    Int.random(in: 0..<4, using: &random) == 0 ? ", when_missing: match" : ""
                return
                    "- {id: r\(number), effect: \(effect), events: [sign_in], \(effect == "skip" ? "up_to" : "challenge"): "
                    + "\(challenge), reason: R\(number), condition: '\(Self.condition(&random))'\(missing)}"
            }
            let guarantees = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                let decision =
                    ["allow", "require_verification"].randomElement(using: &random) ?? "allow"
                return "- {condition: '\(Self.condition(&random))', decision: \(decision)}"
            }
            let extra =
                guarantees.isEmpty ? "" : "guarantees:\n" + guarantees.joined(separator: "\n")
            let challenges =
                Bool.random(using: &random)
                ? ", unavailable_when: '\(Self.condition(&random))'" : ""
            // Some are refused: a skip that cannot waive anything, or a condition that is always
            // false.
            guard
                let policy = try? policy(
                    rules.joined(separator: "\n"), extra: extra, challenges: challenges)
            else { continue }
            for age in [nil, 0, 1, 2, 3] as [Int64?] {
                let usable = [nil, 0, 1, 2, 3, 4] as [Int64?]
                let worst =
                    try usable.map {
                        strength(policy, try input(policy, x: $0.map(CELValue.int), age: age))
                    }.max() ?? -1
                let faulty = strength(
                    policy, try input(policy, x: nil, age: age, fault: .wrongType))
                #expect(faulty >= worst, "\(rules) \(guarantees) \(challenges) age \(age ?? -1)")
                compared += 1
                if faulty > -1 { asked += 1 }
            }
        }
        #expect(compared > 3_000)
        #expect(asked < compared, "not everyone is asked")
    }
}
