// The statements of docs/POLICY-REFERENCE.md under "How a decision is made", case by case, on small
// policies.

import CEL
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct SemanticsTests {
    private func make(
        _ rules: String, extra: String = "", signals: String = "", generated: Int = 2_000
    ) throws -> Policy {
        var options = PolicyLoadOptions()
        options.generatedInputs = generated
        options.listFile = {
            $0 == "lists/risky.txt" ? .text("# prefixes\r\n10.0\n\n 192.168 # home\n") : .absent
        }
        return try PolicyLoader.load(
            """
            policy: small
            version: "1"
            constants: {MANY: 10}
            challenges:
            - {kind: human_check}
            - {kind: email_code, unavailable_when: '!account.has_email'}
            - {kind: reauthenticate, events: [sign_in, upgrade, sensitive_action]}
            defaults: {challenge: email_code, degraded: {upgrade: reauthenticate}}
            signals: {event: string, account.age_hours: int?, account.has_email: bool?, account.state: string?,
              inbox.signups_24h: int?, account.real_user_status: int?, checks.failed_24h: int?\(signals)}
            \(extra)
            rules:
            \(rules)
            """, options: options)
    }

    private func ask(
        _ policy: Policy, _ event: PolicyEvent = .signIn, _ values: [String: CELValue] = [:]
    ) throws -> PolicyVerdict {
        policy.answer(policy.decide(try input(policy, event, values)))
    }

    private func input(
        _ policy: Policy, _ event: PolicyEvent, _ values: [String: CELValue] = [:]
    ) throws -> PolicyInput {
        var input = policy.makeInput(
            event: event, now: try #require(CELTimestamp(seconds: 1_790_000_000)))
        for (name, value) in values { try policy.set(name, to: value, in: &input) }
        return input
    }

    private static let young =
        "- {id: young, effect: require, events: [sign_up, sign_in, upgrade], challenge: email_code, reason: YOUNG, condition: account.age_hours < 72}"

    @Test func rule_severalMatch_strongestChallengeCounts() throws {
        let policy = try make(
            Self.young
                + "\n- {id: failed, effect: require, events: [sign_in], challenge: human_check, reason: FAILED, condition: checks.failed_24h > 0}"
        )
        let answer = try ask(
            policy, .signIn, ["account.age_hours": .int(1), "checks.failed_24h": .int(1)])
        #expect(answer.challenges == ["email_code", "reauthenticate"])
        #expect(answer.reasons == ["YOUNG", "FAILED"])
        #expect(
            try ask(policy, .signIn, ["checks.failed_24h": .int(1)]).challenges == [
                "human_check", "email_code", "reauthenticate",
            ])
    }

    @Test func skipRule_matches_waivesUpToItsStrength() throws {
        let policy = try make(
            Self.young + """

                - {id: hard, effect: require, events: [sign_in], challenge: reauthenticate, reason: HARD, condition: checks.failed_24h > 0}
                - {id: known, effect: skip, events: [sign_in], up_to: email_code, reason: KNOWN, condition: account.real_user_status == 2}
                - {id: locked, effect: always, events: [sign_in], challenge: human_check, reason: LOCKED, condition: account.state == "locked"}
                """)
        let base: [String: CELValue] = [
            "account.age_hours": .int(1), "account.real_user_status": .int(2),
        ]
        var answer = try ask(policy, .signIn, base)
        #expect(
            answer.decision == .allow && answer.reasons == ["KNOWN"] && answer.waived == ["YOUNG"])
        answer = try ask(policy, .signIn, base.merging(["checks.failed_24h": .int(1)]) { $1 })
        #expect(
            answer.challenges == ["reauthenticate"] && answer.reasons == ["HARD"]
                && answer.waived == ["YOUNG"])
        answer = try ask(policy, .signIn, base.merging(["account.state": .string("locked")]) { $1 })
        #expect(answer.decision == .requireVerification && answer.reasons == ["LOCKED"])
    }

    @Test func rule_error_asksAndNeverWaives() throws {
        let policy = try make(
            """
            - {id: broken, effect: require, events: [sign_in], challenge: human_check, reason: BROKEN, condition: 10 / account.age_hours > 1}
            - {id: never, effect: always, events: [upgrade], challenge: human_check, reason: NEVER, condition: account.age_hours + 9223372036854775807 > 0}
            - {id: known, effect: skip, events: [sign_in], up_to: reauthenticate, reason: KNOWN, condition: 10 % account.real_user_status == 0}
            """)
        var answer = try ask(
            policy, .signIn, ["account.age_hours": .int(0), "account.real_user_status": .int(0)])
        #expect(
            answer.challenges == ["email_code", "reauthenticate"]
                && answer.reasons == ["POLICY_ERROR"])
        #expect(answer.errors == ["broken", "known"])
        answer = try ask(
            policy, .signIn, ["account.age_hours": .int(0), "account.real_user_status": .int(2)])
        #expect(
            answer.decision == .allow && answer.waived == ["POLICY_ERROR"]
                && answer.errors == ["broken"])
        answer = try ask(policy, .upgrade, ["account.age_hours": .int(1)])
        #expect(answer.decision == .requireVerification && answer.errors == ["never"])
    }

    @Test func condition_missingSignal_isMissingUnlessAbsorbed() throws {
        let policy = try make(
            """
            - {id: sum, effect: always, events: [sign_in], challenge: human_check, reason: SUM, condition: account.age_hours + 1 > 0}
            - {id: or, effect: always, events: [sign_in], challenge: human_check, reason: OR, condition: account.age_hours > 5 || checks.failed_24h > 0}
            - {id: and, effect: always, events: [sign_in], challenge: human_check, reason: AND, condition: account.age_hours > 5 && checks.failed_24h > 5}
            - {id: has, effect: always, events: [sign_in], challenge: human_check, reason: HAS, condition: '!has(account.age_hours)'}
            - {id: match, effect: always, when_missing: match, events: [sign_in], challenge: human_check, reason: MATCH, condition: account.age_hours > 5}
            - {id: in, effect: always, events: [sign_in], challenge: human_check, reason: IN, condition: 'account.age_hours in [1, 2]'}
            - {id: macro, effect: always, events: [sign_in], challenge: human_check, reason: MACRO, condition: '[1, 2].exists(x, x == account.age_hours || x == checks.failed_24h)'}
            """)
        let answer = try ask(policy, .signIn, ["checks.failed_24h": .int(1)])
        #expect(answer.reasons == ["OR", "HAS", "MATCH", "MACRO"])
        #expect(answer.missing == ["sum", "match", "in"])
    }

    @Test func condition_errorAndMissing_isError() throws {
        let policy = try make(
            "- {id: both, effect: always, events: [sign_in], challenge: human_check, reason: BOTH, condition: account.age_hours > 1 && 1 / checks.failed_24h > 0}"
        )
        #expect(try ask(policy, .signIn, ["checks.failed_24h": .int(0)]).errors == ["both"])
    }

    @Test func shadowRule_matches_isReportedWithoutEffect() throws {
        let policy = try make(
            Self.young + """

                - {id: trial, effect: always, mode: shadow, events: [sign_in], challenge: reauthenticate, reason: TRIAL, condition: account.age_hours < 100}
                - {id: off, effect: always, mode: disabled, events: [sign_in], challenge: reauthenticate, reason: OFF, condition: account.age_hours < 100}
                - {id: maybe, effect: skip, mode: shadow, events: [sign_in], up_to: reauthenticate, reason: MAYBE, condition: account.age_hours < 100}
                """)
        let answer = try ask(policy, .signIn, ["account.age_hours": .int(1)])
        #expect(
            answer.reasons == ["YOUNG"] && answer.challenges == ["email_code", "reauthenticate"])
        #expect(answer.shadow == ["trial", "maybe"] && answer.waived == [])
    }

    @Test func challenge_unavailable_isReplaced() throws {
        let policy = try make(Self.young)
        let young: [String: CELValue] = [
            "account.age_hours": .int(1), "account.has_email": .bool(false),
        ]
        #expect(try ask(policy, .signUp, young).challenges == ["human_check"])
        #expect(try ask(policy, .signIn, young).challenges == ["reauthenticate"])
        #expect(
            try ask(policy, .signUp, ["account.age_hours": .int(1)]).challenges == ["email_code"])
    }

    @Test func decision_historyUnavailable_asks() throws {
        let policy = try make(Self.young)
        var input = try input(
            policy, .upgrade, ["account.age_hours": .int(1), "account.real_user_status": .int(2)])
        input.isHistoryUnavailable = true
        let answer = policy.answer(policy.decide(input))
        #expect(
            answer.degraded && answer.reasons == ["HISTORY_UNAVAILABLE"]
                && answer.challenges == ["reauthenticate"])
        #expect(answer.missing == ["young"])
        #expect(
            policy.value(
                slot: try #require(policy.slot(named: "account.real_user_status")), of: input
            ).text == "2")
        #expect(
            policy.value(slot: try #require(policy.slot(named: "account.age_hours")), of: input)
                .isMissing)
    }

    @Test func guarantee_contradictsRules_overridesAtRunTime() throws {
        let guarantee =
            "guarantees: [{condition: account.real_user_status == 2, decision: allow}, {condition: account.real_user_status == 1, decision: require_verification}]"
        #expect(throws: PolicyRefusal.self) { try make(Self.young, extra: guarantee) }
        // Loaded without the check, as if no generated input had found it.
        let policy = try make(Self.young, extra: guarantee, generated: 0)
        var answer = try ask(
            policy, .signIn, ["account.age_hours": .int(1), "account.real_user_status": .int(2)])
        #expect(
            answer.decision == .allow && answer.challenges == []
                && answer.reasons == ["POLICY_GUARANTEE"])
        #expect(answer.overriddenBy == "account.real_user_status == 2")
        answer = try ask(
            policy, .signIn, ["account.age_hours": .int(100), "account.real_user_status": .int(1)])
        #expect(
            answer.decision == .requireVerification
                && answer.challenges == ["email_code", "reauthenticate"])
        #expect(
            try ask(
                policy, .signIn,
                ["account.age_hours": .int(100), "account.real_user_status": .int(2)]
            ).overriddenBy == nil)
    }

    @Test func reason_readsOtherTeams_isCoarseOnTheWire() throws {
        let policy = try make(
            Self.young
                + "\n- {id: burst, effect: require, events: [sign_up], challenge: email_code, reason: BURST, condition: inbox.signups_24h >= MANY}"
        )
        let result = policy.decide(
            try input(
                policy, .signUp, ["account.age_hours": .int(1), "inbox.signups_24h": .int(10)]))
        #expect(policy.reasons(result) == ["YOUNG", "BURST"])
        #expect(policy.wireReasons(result) == ["YOUNG", "ACCOUNT_HISTORY"])
    }

    @Test func condition_listContextOrNow_isEvaluated() throws {
        let policy = try make(
            """
            - {id: risky, effect: always, events: [sign_in], challenge: human_check, reason: RISKY, condition: context.ip in risky}
            - {id: dear, effect: always, events: [sign_in], challenge: human_check, reason: DEAR, condition: context.amount > 100.0}
            - {id: night, effect: always, events: [sign_in], challenge: human_check, reason: NIGHT, condition: now.getHours("+02:00") < 6}
            """, extra: "lists: {risky: lists/risky.txt}",
            signals:
                ", context.ip: {type: 'string?', max_length: 10}, context.amount: {type: 'double?', min: 0, max: 1000}"
        )
        let answer = try ask(
            policy, .signIn, ["context.ip": .string("192.168"), "context.amount": .int(101)])
        #expect(answer.reasons == ["RISKY", "DEAR"])
        #expect(throws: PolicyInputError.self) {
            try ask(policy, .signIn, ["context.amount": .int(1001)])
        }
        #expect(throws: PolicyInputError.self) {
            try ask(policy, .signIn, ["context.ip": .string("192.168.100.1")])
        }
        #expect(throws: PolicyInputError.self) { try ask(policy, .signIn, ["context.ip": .int(1)]) }
        #expect(throws: PolicyInputError.self) {
            try ask(policy, .signIn, ["event": .string("sign_up")])
        }
        var night = policy.makeInput(
            event: .signIn, now: try #require(CELTimestamp(text: "2026-01-01T23:30:00Z")))
        #expect(policy.answer(policy.decide(night)).reasons == ["NIGHT"])
        night.now = try #require(CELTimestamp(text: "2026-01-01T20:30:00Z"))
        #expect(policy.answer(policy.decide(night)).reasons == [])
    }

    @Test func trace_ofEvent_namesEveryRule() throws {
        let policy = try make(
            Self.young
                + "\n- {id: known, effect: skip, events: [sign_in], up_to: email_code, reason: KNOWN, condition: account.real_user_status == 2}"
        )
        let trace = policy.trace(
            try input(
                policy, .signIn,
                ["account.age_hours": .int(1), "account.real_user_status": .int(2)]))
        #expect(
            trace.rules.map { "\(policy.rules[$0.rule].id) \($0.outcome.rawValue)" } == [
                "young waived", "known matched",
            ])
        #expect(policy.trace(try input(policy, .signUp)).rules.map(\.outcome) == [.missing])
    }

    /// An input made just before another policy became active must be
    /// decided by names, not by slots.
    @Test func input_ofAnotherPolicy_isReadByName() throws {
        let old = try make(Self.young, signals: ", context.ip: 'string?', context.amount: 'int?'")
        let rule =
            "- {id: ip, effect: always, events: [sign_in], challenge: human_check, reason: IP, condition: context.ip == \"x\"}\n"
        let new = try make(
            rule + Self.young,
            signals: ", app.signups_1h: int?, context.amount: 'double?', context.ip: 'string?'")
        let input = try input(
            old, .signIn,
            ["context.ip": .string("x"), "account.age_hours": .int(1), "context.amount": .int(7)])
        #expect(new.answer(new.decide(input)).reasons == ["IP", "YOUNG"])
        #expect(
            new.value(slot: try #require(new.slot(named: "context.amount")), of: input).text
                == "7.0")
        #expect(old.answer(old.decide(input)).reasons == ["YOUNG"])
    }
}
