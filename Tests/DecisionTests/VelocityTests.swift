// The counts of policies, as a backend sees them: the counted values, their end, and their secrecy
// from others.

import Accounts
import CEL
import Database
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct VelocityTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        signals: {event: string, context.network: string?}
        counters:
          sign_ups: {key: context.network, window: 1h, events: [sign_up]}
          accounts: {key: context.network, window: 1d, events: [sign_up, sign_in], distinct: account}
          inbox_accounts: {key: inbox, window: 1h, events: [sign_in], distinct: context.network}
        rules:
        - {id: many, effect: require, events: [sign_up], challenge: human_check, reason: MANY, condition: velocity.sign_ups >= 3}
        - {id: accounts, effect: require, events: [sign_in], challenge: human_check, reason: ACCOUNTS, condition: velocity.accounts >= 4}
        """

    private func fixture() async throws -> DecisionFixture {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        return try await DecisionFixture(policy: LoadedPolicy(stored))
    }

    /// Sends a request with a fresh token.
    @discardableResult
    private func ask(
        _ bench: DecisionFixture, _ subject: String, network: String = "n",
        event: PolicyEvent = .signUp, nonce: String? = nil,
        isOther: Bool = false
    ) async throws -> Response {
        let nonce = nonce ?? UUID().uuidString
        let app = isOther ? DecisionFixture.foreignApp : DecisionFixture.app
        return try await bench.ask(
            DecisionRequest(
                event: event, clientID: app,
                identityToken: bench.token(subject, status: 1, nonce: nonce, app: app),
                nonce: nonce, context: [("network", .string(network))]),
            team: isOther ? bench.other : bench.juice)
    }

    @Test func counter_thirdSignUpInWindow_isAsked() async throws {
        let bench = try await fixture()
        #expect(try await ask(bench, "a").decision == "allow")
        #expect(try await ask(bench, "b").decision == "allow")
        #expect(try await ask(bench, "other", network: "m").decision == "allow")
        let third = try await ask(bench, "c")
        #expect(third.decision == "require_verification")
        #expect(third.reasons == ["MANY"])
        // Written, or not written yet, it counts the same.
        try bench.log.flush()
        #expect(try await ask(bench, "d").decision == "require_verification")
        #expect(try bench.logged(third.id).signals.contains(#""velocity.sign_ups":3"#))
        // The distinct value is the account: an account that comes again is not one more.
        #expect(try await ask(bench, "a", event: .signIn).decision == "require_verification")
        bench.clock.advance(3_600 + 3_600 / 32)
        #expect(try await ask(bench, "e").decision == "allow")
        #expect(try await ask(bench, "a", event: .signIn).decision == "require_verification")
        bench.clock.advance(86_400 + 86_400 / 32)
        #expect(try await ask(bench, "a", event: .signIn).decision == "allow")
    }

    @Test func counter_questionsOfOtherTeam_areNotCounted() async throws {
        let bench = try await fixture()
        for subject in ["a", "b", "c"] { try await ask(bench, subject, isOther: true) }
        try bench.log.flush()
        #expect(try await ask(bench, "a").decision == "allow")
        #expect(try await ask(bench, "d", isOther: true).decision == "require_verification")
    }

    @Test func counter_sameNonceAgain_countsOnce() async throws {
        let bench = try await fixture()
        for _ in 0..<5 { #expect(try await ask(bench, "a", nonce: "once").decision == "allow") }
        #expect(try await ask(bench, "b", nonce: "two").decision == "allow")
        #expect(try await ask(bench, "c", nonce: "three").decision == "require_verification")
    }

    @Test func counter_concurrentQuestions_countsEach() async throws {
        let bench = try await fixture()
        let asked = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<40 {
                group.addTask {
                    if number % 8 == 0 { try bench.log.flush() }
                    return try await self.ask(bench, "s\(number)").decision == "allow"
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(asked == 2)
    }

    /// The same sub on the same inbox of this installation, from three networks.
    @Test func counter_byInbox_countsWithoutItsAddress() async throws {
        let bench = try await fixture()
        let sub = try bench.user("u")
        var signals = ""
        for network in ["n1", "n2", "n1", "n3"] {
            let answer = try await bench.ask(
                DecisionRequest(
                    event: .signIn, clientID: DecisionFixture.app, sub: sub,
                    context: [("network", .string(network))]))
            signals = try bench.logged(answer.id).signals
        }
        #expect(signals.contains(#""velocity.inbox_accounts":3"#))
        let rows = try bench.database.read { connection throws(StoreFailure) in
            try connection.rows("SELECT * FROM velocity")
        }
        // The first request is a sign-up, as Postern determines it: three networks of the account,
        // three of the inbox, and the inbox itself.
        #expect(rows.count == 7)
        #expect(!"\(rows)".contains("n1"))
    }

    @Test func counter_storeAway_goesOnAfterwards() async throws {
        let bench = try await fixture()
        for subject in ["a", "b"] { try await ask(bench, subject) }
        try bench.log.flush()
        try bench.storeIsAway(true)
        let away = try await ask(bench, "c")
        #expect(away.degraded)
        #expect(throws: (any Error).self) { try bench.log.flush() }
        try bench.storeIsAway(false)
        let back = try await ask(bench, "d")
        #expect(try bench.logged(back.id).signals.contains(#""velocity.sign_ups":4"#))
    }

    /// A process that is killed loses only its unwritten counts; another host sees the written
    /// ones.
    @Test func counter_anotherHost_seesWhatIsWritten() async throws {
        let bench = try await fixture()
        try await ask(bench, "a")
        try bench.log.flush()
        try await ask(bench, "b")
        let other = DecisionLogBuffer(bench.store.decisions, bench.store.decisionWrites)
        let question = VelocityQuestion(
            counters: try LoadedPolicy(
                StoredPolicy(
                    name: "p", version: "1",
                    document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
            ).policy.counters, team: bench.juice.number, account: "x", device: nil,
            context: ["network": CELValue.string("n").text],
            marks: bench.store.decisionMarks, now: bench.clock.now)
        let tallies = question.tallies(.signIn, inbox: nil)
        func seen() throws -> [Int64]? {
            other.velocity.count(
                tallies, .sensitiveAction, stored: try bench.store.velocity.stored(tallies),
                turn: other.velocity.turn)
        }
        #expect(try seen() == [1, 1])
        try bench.log.flush()
        #expect(try seen() == [2, 2])
    }

    /// The counter sees ten inboxes at one owner's domain; two inboxes at a provider have nothing
    /// in common.
    @Test func counter_byInboxDomain_leavesOutProviders() async throws {
        let text = """
            policy: p
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string}
            counters: {domain: {key: inbox_domain, window: 1h, events: [sign_up, sign_in], distinct: account}}
            rules:
            - {id: many, effect: require, events: [sign_up, sign_in], challenge: human_check, reason: MANY, condition: velocity.domain >= 3}
            """
        let stored = StoredPolicy(
            name: "p", version: "1", document: PolicyDocument(files: ["policy.yaml": text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        func ask(_ user: String, at domain: String) async throws -> Response {
            let sub = try bench.user(user, inbox: "\(user)@\(domain)")
            return try await bench.ask(
                DecisionRequest(event: .signIn, clientID: DecisionFixture.app, sub: sub))
        }
        for (number, domain) in ["farm.example", "Farm.example", "farm.example"].enumerated() {
            let answer = try await ask("f\(number)", at: domain)
            #expect(answer.decision == (number == 2 ? "require_verification" : "allow"))
            #expect(
                try bench.logged(answer.id).signals.contains("\"velocity.domain\":\(number + 1)"))
        }
        for number in 0..<3 {
            let answer = try await ask("g\(number)", at: "gmail.com")
            #expect(answer.decision == "allow")
            #expect(!(try bench.logged(answer.id).signals.contains("velocity.domain")))
        }
    }
}
