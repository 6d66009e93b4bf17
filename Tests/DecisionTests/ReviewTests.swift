// Decisions for people to review, and rules that are snoozed for an account, by the service of a
// host.

import Accounts
import Database
import Decisions
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct ReviewTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}, {kind: email_code}]
        defaults: {challenge: human_check}
        signals: {event: string, account.forwarding_toggles_7d: int?, inbox.bounces_7d: int?}
        rules:
        - {id: always, effect: require, events: [sign_in, sign_up], challenge: email_code, reason: ALWAYS, condition: 'event != "upgrade"'}
        - {id: strict, effect: always, events: [upgrade], challenge: email_code, reason: STRICT, condition: 'event == "upgrade"'}
        - {id: quiet, effect: require, events: [sign_in], challenge: human_check, reason: QUIET, mode: shadow, review: true,
           condition: account.forwarding_toggles_7d == 0}
        guarantees:
        - {condition: 'event == "upgrade"', decision: require_verification}
        """

    private func bench() async throws -> (DecisionFixture, sub: String) {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        return (bench, try bench.user("u1"))
    }

    private func snooze(
        _ bench: DecisionFixture, _ decision: String, rule: String? = nil, until: Int64?
    ) throws {
        try bench.log.flush()
        _ = try bench.store.reviews.snooze(
            decision: decision, rule: rule, reason: "known person", until: until,
            Change(actor: "uid:0", now: bench.clock.now))
    }

    @Test func snooze_ofRule_waivesItForOneAccount() async throws {
        let (bench, sub) = try await bench()
        let other = try bench.user("u2")
        let first = try await bench.ask(.signIn, sub: sub)
        #expect(first.decision == "require_verification")
        try snooze(bench, first.id, until: bench.clock.now + 3_600)
        let second = try await bench.ask(.signIn, sub: sub)
        #expect(second.decision == "allow" && second.reasons.isEmpty)
        let record = try bench.logged(second.id)
        #expect(record.snoozed == ["always"] && record.asked.isEmpty)
        #expect(try await bench.ask(.signIn, sub: other).decision == "require_verification")
        // The log is enough to make the decision again.
        let policy = try LoadedPolicy(
            StoredPolicy(
                name: "p", version: "1",
                document: PolicyDocument(files: ["policy.yaml": Self.text]).octets))
        #expect(try Replay(record, policy: policy.policy).isIdentical)
        bench.clock.advance(3_600)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "require_verification")
        try snooze(bench, first.id, until: bench.clock.now + 3_600)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "allow")
        try snooze(bench, first.id, rule: "always", until: nil)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "require_verification")
    }

    /// An ended snooze cannot be ended again, and causes no line in the audit.
    @Test func snooze_over_cannotBeEnded() async throws {
        let (bench, sub) = try await bench()
        let first = try await bench.ask(.signIn, sub: sub)
        for number in 0..<120 {
            let user = try bench.user("other\(number)")
            let decision = try await bench.ask(.signIn, sub: user)
            try snooze(bench, decision.id, until: bench.clock.now + 3_000)
        }
        try snooze(bench, first.id, until: bench.clock.now + 3_600)
        bench.clock.advance(3_600)
        let error = #expect(throws: StoreFailure.self) {
            try snooze(bench, first.id, rule: "always", until: nil)
        }
        #expect(error?.code == .refused(.notFound))
    }

    @Test func snooze_ofGuaranteedRule_keepsGuarantee() async throws {
        let (bench, sub) = try await bench()
        _ = try await bench.ask(.signIn, sub: sub)
        let first = try await bench.ask(.upgrade, sub: sub)
        try snooze(bench, first.id, until: bench.clock.now + 3_600)
        let second = try await bench.ask(.upgrade, sub: sub)
        #expect(second.decision == "require_verification" && second.reasons == ["POLICY_GUARANTEE"])
    }

    @Test func snooze_storeAway_hasNoEffect() async throws {
        let (bench, sub) = try await bench()
        let first = try await bench.ask(.signIn, sub: sub)
        try snooze(bench, first.id, until: bench.clock.now + 3_600)
        try bench.storeIsAway(true)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "require_verification")
        try bench.storeIsAway(false)
    }

    @Test func shadowRule_withReview_isListedForReview() async throws {
        let (bench, sub) = try await bench()
        _ = try await bench.ask(.signUp, sub: sub)
        let answer = try await bench.ask(.signIn, sub: sub)
        #expect(answer.challenges == ["email_code"])
        let record = try bench.logged(answer.id)
        #expect(record.isForReview && record.shadow == ["quiet"])
        let items = try bench.store.reviews.list(
            ReviewFilter(since: 0), limit: 10, now: bench.clock.now)
        #expect(items.map(\.decision.record.id) == [answer.id] && items[0].causes == [.rule])
        let later = try bench.store.reviews.list(
            ReviewFilter(since: 0), limit: 10, now: bench.clock.now + 3_600)
        #expect(later.count == 2 && later.allSatisfy { $0.causes.contains(.incomplete) })
    }
}
