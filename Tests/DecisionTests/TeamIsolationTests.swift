// One team's actions have no effect on another: the same answers and the same signals, for all
// actions of the other team with the same person. The only exception is the counts of the inbox
// that span teams on purpose.

import Accounts
import CEL
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct TeamIsolationTests {
    /// Everything that a policy can read about the person, except `inbox.*`.
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}, {kind: email_code}]
        defaults: {challenge: human_check}
        signals:
          event: string
          context.network: string?
          token.age_s: int?
          account.real_user_status: int?
          account.prior_status: int?
          account.rejoins_30d: int?
          account.age_hours: int?
          account.state: string?
          account.has_email: bool?
          account.forwarding_on: bool?
          account.managed: bool?
          account.hours_since_seen: int?
          account.bounces_7d: int?
          account.user_replies_30d: int?
          account.forwarding_toggles_7d: int?
          checks.failed_24h: int?
          checks.passed_90d: int?
          checks.hours_since_human_check: int?
          checks.hours_since_email_code: int?
        counters:
          by_network: {key: context.network, window: 1h, events: [sign_up, sign_in, upgrade, sensitive_action]}
          by_account: {key: account, window: 1h, events: [sign_up, sign_in, upgrade, sensitive_action]}
          by_inbox: {key: inbox, window: 1h, events: [sign_up, sign_in, upgrade, sensitive_action]}
          networks: {key: inbox, window: 1h, events: [sign_up, sign_in, upgrade, sensitive_action], distinct: context.network}
        rules:
        - {id: often, effect: require, events: [sign_in], challenge: email_code, reason: OFTEN, condition: velocity.by_inbox >= 3 || velocity.by_network >= 3}
        - {id: failed, effect: always, events: [sign_in], challenge: human_check, reason: FAILED, condition: checks.failed_24h >= 1}
        - {id: ever, effect: require, events: [sign_up, sensitive_action], challenge: email_code, reason: EVER, condition: account.age_hours < 1}
        """

    /// The other team's actions with the person.
    private enum Action: CaseIterable { case ask, act, fail, pass, revoke }

    /// All sequences of up to three, and some of four to six: a fixed choice.
    private static var sequences: [[Action]] {
        var all: [[Action]] = [[]]
        var last: [[Action]] = [[]]
        for _ in 1...3 {
            last = last.flatMap { sequence in Action.allCases.map { sequence + [$0] } }
            all += last
        }
        var state: UInt64 = 11
        for number in 0..<150 {
            all.append(
                (0..<(4 + number % 3)).map { _ in
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return Action.allCases[Int((state >> 33) % UInt64(Action.allCases.count))]
                })
        }
        return all
    }

    @Test func decision_otherTeamActs_isUnchanged() async throws {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        var expected: [String]?
        for (number, sequence) in Self.sequences.enumerated() {
            let seen = try await observe(bench, user: "u\(number)", sequence)
            if let expected { #expect(seen == expected, "\(sequence)") } else { expected = seen }
        }
        // Otherwise the comparison would be empty: the rules do require checks, and the counts
        // count.
        let known = try #require(expected)
        #expect(known.count == 6)
        #expect(
            known[1].contains("velocity.by_inbox\":1") && known[5].contains("velocity.by_inbox\":3")
        )
        #expect(known[4].contains("ACCOUNT_HISTORY"))
    }

    /// The facts that the first team sees about a person, with the other team's actions between its
    /// requests.
    private func observe(
        _ bench: DecisionFixture, user: String, _ actions: [Action]
    ) async throws -> [String] {
        let sub = try bench.user(user)
        let otherSub = try bench.user(user, team: "other", app: DecisionFixture.foreignApp)
        func ask(_ event: PolicyEvent, isOther: Bool) async throws -> Response {
            try await bench.ask(
                DecisionRequest(
                    event: event,
                    clientID: isOther ? DecisionFixture.foreignApp : DecisionFixture.app,
                    sub: isOther ? otherSub : sub, context: [("network", .string("net-\(user)"))]),
                team: isOther ? bench.other : bench.juice)
        }
        var seen: [String] = []
        func look(_ event: PolicyEvent) async throws {
            let answer = try await ask(event, isOther: false)
            seen.append(
                "\(answer.event) \(answer.decision) \(answer.challenges) \(answer.reasons) \(answer.status ?? -1)"
            )
            // The mark of the context differs between persons.
            seen.append(
                try bench.logged(answer.id).signals.replacing(
                    #/"context\.network":"[^"]*"/#, with: ""))
        }
        try await look(.signUp)
        var last = ""
        for action in actions {
            switch action {
            case .ask: last = try await ask(.signIn, isOther: true).id
            case .act: last = try await ask(.sensitiveAction, isOther: true).id
            case .fail where !last.isEmpty:
                try? await bench.report(last, .failed, "email_code", team: bench.other)
            case .pass where !last.isEmpty:
                try? await bench.report(last, .passed, "email_code", team: bench.other)
            case .revoke:
                let account = try bench.store.accounts.account(sub: otherSub, team: "other")
                _ = try bench.store.grants.revokeAll(
                    account: account.number, Change(actor: "uid:0", now: bench.clock.now))
            case .fail, .pass: break
            }
        }
        try await look(.sensitiveAction)
        try await look(.signIn)
        return seen
    }
}
