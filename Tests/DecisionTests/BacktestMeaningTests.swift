// A backtest takes an outcome from the log only if the condition and all that it reads have the
// same meaning as at that time.

import CEL
import Decisions
import Foundation
import RiskPolicy
import Testing

@Suite(.blocking) struct BacktestMeaningTests {
    /// The parts of a policy beside a condition that authors change.
    private struct Parts {
        var constants = "LIMIT: 5, WORD: \"a\""
        var bad = "198.51.100.0/24\n203.0.113.7\n"
        var amount = "int?"
        var net = "string?"
        var counter = "{key: context.net, window: 1h, events: [sign_in, sign_up]}"
        var condition = "context.n >= LIMIT"

        var loaded: LoadedPolicy {
            get throws {
                let text = """
                    policy: p
                    version: "1"
                    challenges: [{kind: human_check}]
                    defaults: {challenge: human_check}
                    constants: {\(constants)}
                    lists: {bad: bad.txt}
                    live_lists: {nets: range}
                    signals: {event: string, context.n: \(amount), context.net: \(net), context.word: string?, account.age_hours: int?}
                    counters:
                      nets: \(counter)
                    rules:
                    - {id: many, effect: always, events: [sign_in, sign_up], challenge: human_check, reason: MANY, condition: '\(condition)'}
                    """
                let document = PolicyDocument(files: ["policy.yaml": text, "bad.txt": bad]).octets
                return try LoadedPolicy(StoredPolicy(name: "p", version: "1", document: document))
            }
        }

        func with(_ change: (inout Parts) -> Void) -> Parts {
            var parts = self
            change(&parts)
            return parts
        }
    }

    /// Sign-ins with these values, decided by the old policy and then tried on the candidate.
    private func backtest(
        _ old: Parts, _ candidate: Parts, isKept: Bool = true
    ) async throws -> Backtest {
        let past = try old.loaded
        let bench = try await DecisionFixture(policy: past)
        for number in 1...8 as ClosedRange<Int64> {
            let sub = try bench.user("u\(number)")
            let request = DecisionRequest(
                event: .signIn, clientID: DecisionFixture.app, sub: sub,
                context: [
                    ("n", .int(number)),
                    ("net", .string(number < 5 ? "198.51.100.7" : "192.0.2.1")),
                    ("word", .string("a")),
                ])
            _ = try bench.logged(try await bench.ask(request).id)
        }
        let policy = try candidate.loaded.policy
        var backtest = Backtest(policy, now: DecisionFixture.start)
        for decision in try bench.store.decisions.newest(DecisionFilter(), limit: 99) {
            let event = try #require(PolicyEvent(rawValue: decision.record.event))
            let signals = Set(past.policy.signals.map(\.name))
            backtest.add(
                decision,
                past: isKept
                    ? PastPolicy(past.policy, at: event, signals: signals, for: policy) : nil)
        }
        return backtest
    }

    /// The report must not say that every decision would be the same if no user would need a check.
    @Test(arguments: [
        ("context.n >= LIMIT", "constants", "LIMIT: 1000, WORD: \"a\""),
        ("context.n >= 2 && context.word == WORD", "constants", "LIMIT: 5, WORD: \"á\""),
        ("context.net in bad", "bad", "192.0.2.0/24\n"),
        ("context.net in bad", "bad", "198.51.100.0/25\n203.0.113.7\n"),
        ("context.n >= LIMIT", "amount", "{type: \"int?\", max: 3}"),
        ("context.n >= LIMIT", "amount", "uint?"),
        ("context.net == \"192.0.2.1\"", "net", "{type: \"string?\", max_length: 4}"),
        ("velocity.nets >= 3", "counter", "{key: account, window: 1h, events: [sign_in, sign_up]}"),
        (
            "velocity.nets >= 3", "counter",
            "{key: context.net, window: 1m, events: [sign_in, sign_up]}"
        ),
        ("velocity.nets >= 3", "counter", "{key: context.net, window: 1h, events: [sign_up]}"),
        (
            "velocity.nets >= 3", "counter",
            "{key: context.net, window: 1h, events: [sign_in, sign_up], distinct: account}"
        ),
        ("velocity.nets >= 3", "net", "{type: \"string?\", max_length: 4}"),
    ]) func outcome_whatItsNamesMeanHasChanged_isNotTold(
        condition: String, part: String, value: String
    ) async throws {
        let old = Parts().with { $0.condition = condition }
        let new = old.with { parts in
            switch part {
            case "constants": parts.constants = value
            case "bad": parts.bad = value
            case "amount":
                parts.amount = value
                if value == "uint?" { parts.condition = "context.n >= 5u" }
            case "net": parts.net = value
            default: parts.counter = value
            }
        }
        let backtest = try await backtest(old, new)
        #expect(backtest.untold == 8 && backtest.comparison.total.questions == 0)
        #expect(backtest.untoldRules == ["many": 8])
    }

    @Test(arguments: [
        "context.n >= LIMIT", "context.n  >=\n LIMIT && context.word == WORD", "context.net in bad",
        "velocity.nets >= 3",
        "has(context.n) && context.n > 6", "context.net in lists.nets || context.n == LIMIT",
    ]) func outcome_nothingThatItReadsHasChanged_isThatOfTheLog(condition: String) async throws {
        let old = Parts().with { $0.condition = condition }
        let new = old.with {
            // Parts that the condition does not read may change, and its spaces.
            $0.condition = condition.split { $0.isWhitespace }.joined(separator: " ")
            $0.constants = "OTHER: 1, " + $0.constants
        }
        let backtest = try await backtest(old, new)
        #expect(
            backtest.untold == 0 && backtest.comparison.total.questions == 8
                && !backtest.comparison.total.differs)
        #expect(backtest.comparison.total.askedBefore == backtest.comparison.total.askedAfter)
    }

    /// A change of parts that the condition does not read leaves its outcome known.
    @Test func outcome_otherPartsChanged_isStillTold() async throws {
        let old = Parts()
        let new = old.with {
            $0.bad = "192.0.2.0/24\n"
            $0.counter = "{key: account, window: 1m, events: [sign_up]}"
            $0.net = "{type: \"string?\", max_length: 4}"
        }
        let backtest = try await backtest(old, new)
        #expect(
            backtest.untold == 0 && backtest.comparison.total.askedBefore == 4
                && !backtest.comparison.total.differs)
    }

    /// A value outside the bounds of that time may be within those of the candidate.
    @Test func outcome_boundsWereWidened_isNotTold() async throws {
        let narrow = Parts().with { $0.amount = "{type: \"int?\", max: 3}" }
        let backtest = try await backtest(narrow, Parts())
        #expect(backtest.untold == 8 && backtest.untoldSignals == ["context.n": 8])
        // The same bounds: the values beyond them are errors again.
        let same = try await self.backtest(narrow, narrow)
        #expect(
            same.untold == 0 && same.comparison.total.askedBefore == 5
                && !same.comparison.total.differs)
    }

    @Test func outcome_policyOfThatTimeIsNoLongerKept_isNotTold() async throws {
        for condition in ["context.n >= LIMIT", "velocity.nets >= 3"] {
            let parts = Parts().with { $0.condition = condition }
            #expect(try await backtest(parts, parts, isKept: false).untold == 8)
        }
    }

    /// If the decision is the same for every outcome, it is known.
    @Test func outcome_decisionIsTheSameEitherWay_isTold() async throws {
        let old = Parts()
        let new = old.with {
            $0.constants = "LIMIT: 1000, WORD: \"a\""
            $0.condition = "context.n >= LIMIT || context.n < LIMIT"
        }
        let unread = old.with {
            $0.constants = "LIMIT: 1000, WORD: \"a\""
            $0.condition = "context.n >= LIMIT && account.age_hours > 100000"
        }
        #expect(try await backtest(old, new).untold == 8, "its outcome depends on the values")
        let told = try await backtest(old, unread)
        #expect(told.untold == 0 && told.comparison.total.noLongerAsked == 4)
    }
}
