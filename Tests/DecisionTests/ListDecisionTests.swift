// Decisions by a policy that reads live lists, by the service of a host.

import Accounts
import CEL
import Decisions
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct ListDecisionTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        live_lists: {bad: range, own: {kind: personal, of: team}}
        signals: {event: string, context.ip: string?, context.phone: string?}
        rules:
        - {id: bad, effect: always, events: [sign_up, sign_in], challenge: human_check, reason: NETWORK, condition: context.ip in lists.bad}
        - {id: own, effect: always, events: [sign_up, sign_in], challenge: human_check, reason: PHONE, condition: context.phone in lists.own}
        """

    private func fixture() async throws -> DecisionFixture {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        let change = Change(actor: "uid:0", now: bench.clock.now)
        try bench.store.liveLists.create(team: nil, name: "bad", kind: .range, change)
        for team in ["juice", "other"] {
            try bench.store.liveLists.create(team: team, name: "own", kind: .personal, change)
        }
        try bench.store.liveLists.add(
            team: nil, name: "bad", [LiveListEntry("198.51.100.0/24")], change)
        try bench.store.liveLists.add(
            team: "juice", name: "own", [LiveListEntry("+49 30 1")], change)
        return bench
    }

    private func ask(
        _ bench: DecisionFixture, _ context: [(name: String, value: CELValue)],
        isOther: Bool = false
    ) async throws -> String {
        let app = isOther ? DecisionFixture.foreignApp : DecisionFixture.app
        return try await bench.ask(
            DecisionRequest(event: .signIn, clientID: app, sub: "a", context: context),
            team: isOther ? bench.other : bench.juice
        ).decision
    }

    @Test func liveList_refreshed_isInForceEvenWithoutStore() async throws {
        let bench = try await fixture()
        let (ip, phone) = (
            ("ip", CELValue.string("198.51.100.7")), ("phone", CELValue.string(" +49 30 1"))
        )
        #expect(try await ask(bench, [ip]) == "allow")
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await ask(bench, [ip]) == "require_verification")
        #expect(try await ask(bench, [("ip", .string("198.51.101.7"))]) == "allow")
        #expect(try await ask(bench, [ip], isOther: true) == "require_verification")
        #expect(try await ask(bench, [phone]) == "require_verification")
        // Another team does not see the entries that one team wrote into its own list.
        #expect(try await ask(bench, [phone], isOther: true) == "allow")
        try bench.storeIsAway(true)
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await ask(bench, [phone]) == "require_verification")
        try bench.storeIsAway(false)
        try bench.store.liveLists.removeList(
            team: nil, name: "bad", Change(actor: "uid:0", now: bench.clock.now))
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await ask(bench, [ip]) == "allow")
    }

    /// The log does not contain the entries of that time, and the lists have other entries now.
    @Test func replay_ruleReadsList_takesItAsLogged() async throws {
        let bench = try await fixture()
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await ask(bench, [("ip", .string("198.51.100.7"))]) == "require_verification")
        try bench.log.flush()
        let logged = try #require(
            try bench.store.decisions.newest(DecisionFilter(), limit: 1).first)
        let policy = try LoadedPolicy(
            StoredPolicy(
                name: "p", version: "1",
                document: PolicyDocument(files: ["policy.yaml": Self.text]).octets))
        let replay = try Replay(logged.record, policy: policy.policy)
        #expect(replay.isIdentical, "\(replay.differences)")
        #expect(replay.takenAsLogged == ["bad", "own"])
        #expect(!replay.isWhole)
    }
}
