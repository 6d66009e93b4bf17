// The store is unavailable: answers continue, none is an error, none is a block, and sensitive
// actions need more checks.

import Database
import Decisions
import Foundation
import RiskPolicy
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct DegradedTests {
    /// The store becomes unavailable or available with every thirtieth request: more than run at
    /// one time.
    private final class Turns: Sendable {
        private let asked = Mutex(0)

        func next(_ bench: DecisionFixture) {
            asked.withLock { asked in
                asked += 1
                guard asked % 30 == 0 else { return }
                bench.database.isAway.toggle()
                bench.holder.value += 2
            }
        }
    }

    @Test func decision_storeAway_isStillAnswered() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        try bench.storeIsAway(true)
        let signIn = try await bench.ask(.signIn, sub: sub)
        #expect(signIn.degraded)
        #expect(signIn.decision == "allow")
        #expect(signIn.credentialState == nil, "nobody knows")
        let sensitive = try await bench.ask(.sensitiveAction, sub: sub)
        #expect(sensitive.decision == "require_verification")
        #expect(sensitive.challenges == ["reauthenticate"])
        #expect(sensitive.reasons.contains("HISTORY_UNAVAILABLE"))
        let unknown = try await bench.signUp("new", status: 1)
        #expect(unknown.decision == "require_verification")
        #expect(unknown.reasons == ["REAL_USER_UNKNOWN"])
        #expect(try await bench.signUp("real", status: 2).decision == "allow")
        await expectUnavailable {
            try await bench.report(sensitive.id, .initiated, "reauthenticate")
        }
        await expectUnavailable {
            _ = try await bench.service.report(
                .label(.fraudulent), of: sensitive.id, for: bench.juice)
        }
        // The last answer can still be read.
        #expect(try await bench.service.decision(sensitive.id, for: bench.juice) == sensitive.body)
        await #expect(throws: DecisionError.notFound) {
            _ = try await bench.service.decision(sensitive.id, for: bench.other)
        }
    }

    @Test func nonce_reusedWhileStoreAway_isRefused() async throws {
        let bench = try await DecisionFixture()
        try bench.storeIsAway(true)
        let token = try bench.token("mallory", status: 1, nonce: "n1")
        let first = try await bench.ask(.signUp, token: token, nonce: "n1")
        #expect(try await bench.ask(.signUp, token: token, nonce: "n1") == first)
        await expectConflict {
            _ = try await bench.ask(.sensitiveAction, token: token, nonce: "n1")
        }
        await expectConflict {
            _ = try await bench.ask(
                .signUp, token: bench.token("other", status: 2, nonce: "n1"), nonce: "n1")
        }
        let later = try await bench.signUp("mallory", status: 2)
        #expect(later.status == 1, "the first status is remembered")
        #expect(later.decision == "require_verification")
    }

    @Test func nonce_usedBeforeStoreWentAway_isRefused() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1")
        let answer = try await bench.ask(.signUp, token: token, nonce: "n1")
        try bench.storeIsAway(true)
        #expect(try await bench.ask(.signUp, token: token, nonce: "n1") == answer)
        await expectConflict {
            _ = try await bench.ask(
                .signUp, token: bench.token("x", status: 2, nonce: "n1"), nonce: "n1")
        }
    }

    @Test func decisionLog_storeBack_isWritten() async throws {
        let bench = try await DecisionFixture()
        try bench.storeIsAway(true)
        let token = try bench.token("mallory", status: 1, nonce: "n1")
        let first = try await bench.ask(.signUp, token: token, nonce: "n1")
        _ = try await bench.ask(.sensitiveAction, sub: "mallory")
        #expect(throws: StoreFailure.temporary(.unreachable, "away")) { try bench.log.flush() }
        try bench.storeIsAway(false)
        #expect(try bench.logged(first.id).isDegraded)
        #expect(try bench.store.decisions.newest(DecisionFilter(), limit: 9).count == 2)
        let after = try await bench.ask(.signIn, sub: "mallory")
        #expect(!after.degraded)
        #expect(after.reasons == ["SIGNUP_UNVERIFIED"], "asked at sign-up, and pending ever since")
        #expect(after.status == 1)
        #expect(
            try await bench.ask(.signUp, token: token, nonce: "n1") == first,
            "and the nonce is consumed")
        try await bench.report(first.id, .initiated, "email_code")
        try await bench.report(first.id, .passed, "email_code")
        #expect(try await bench.ask(.signIn, sub: "mallory").decision == "allow")
    }

    @Test func decision_storeGoesAndComesUnderLoad_isLogged() async throws {
        let bench = try await DecisionFixture()
        let subs = try (0..<20).map { try bench.user("u\($0)") }
        for sub in subs { _ = try await bench.ask(.signIn, sub: sub) }
        bench.clock.advance(90 * 86_400)
        let turns = Turns()
        let answers = try await withThrowingTaskGroup(of: [Response].self) { group in
            for sub in subs {
                group.addTask {
                    var answers: [Response] = []
                    for number in 0..<60 {
                        let event: PolicyEvent = number % 2 == 0 ? .sensitiveAction : .signIn
                        turns.next(bench)
                        answers.append(try await bench.ask(event, sub: sub))
                        guard number % 10 == 0 else { continue }
                        turns.next(bench)
                        answers.append(try await bench.signUp("\(sub)\(number)", status: 1))
                        await Task.yield()
                    }
                    return answers
                }
            }
            return try await group.reduce(into: [Response]()) { $0 += $1 }
        }
        let degraded = answers.count(where: \.degraded)
        #expect(degraded > 0 && degraded < answers.count)
        bench.database.isAway = true
        bench.holder.value += 2
        #expect(try await bench.ask(.signIn, sub: subs[0]).degraded, "the store is away now")
        #expect(answers.count == 20 * 66)
        for answer in answers {
            #expect(["allow", "require_verification"].contains(answer.decision))
            if answer.event == "sensitive_action" {
                #expect(answer.decision == "require_verification")
            }
            if answer.event == "sign_up" { #expect(answer.decision == "require_verification") }
        }
        // When the store is available again, everything is in the log, once.
        try bench.storeIsAway(false)
        #expect(bench.log.count == 0)
        #expect(bench.log.dropped == 0)
        let ids = Set(answers.map(\.id))
        let logged = try bench.store.decisions.newest(DecisionFilter(), limit: 10_000)
        #expect(ids.count == answers.count)
        #expect(ids.isSubset(of: Set(logged.map(\.record.id))))
    }

    @Test func storeBreaker_storeFailed_pausesThenTriesAgain() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        bench.database.isAway = true
        bench.holder.value += 2
        #expect(try await bench.ask(.signIn, sub: sub).degraded)
        bench.database.isAway = false
        #expect(try await bench.ask(.signIn, sub: sub).degraded, "left alone for a second")
        bench.holder.value += StoreBreaker.pause
        #expect(try await !bench.ask(.signIn, sub: sub).degraded)
    }

    @Test func decisionMemory_manyNonces_staysBounded() {
        let memory = DecisionMemory(capacity: 3)
        func nonce(_ number: UInt8) -> ConsumedNonce {
            ConsumedNonce(
                mark: [number], subject: [], claimedEvent: "", event: "", decisionID: "",
                answer: "", expiresAt: 0)
        }
        for number in 0..<100 { #expect(memory.consume(nonce(UInt8(number))) == nil) }
        #expect(memory.nonce([96]) == nil)
        #expect(memory.nonce([97]) != nil)
        #expect(memory.consume(nonce(99)) != nil)
        #expect(memory.firstStatus([1], given: nil) == nil)
        #expect(memory.firstStatus([1], given: 1) == 1)
        #expect(memory.firstStatus([1], given: 2) == 1)
    }

    @Test func decision_issuerKeysMissing_isUnavailable() async throws {
        let bench = try await DecisionFixture(keys: DecisionFixture.NoKeys())
        do {
            _ = try await bench.signUp("real", status: 2)
            Issue.record("answered")
        } catch DecisionError.unavailable(_, let seconds) {
            #expect(seconds == 11)
        }
        #expect(try bench.store.decisions.newest(DecisionFilter(), limit: 9).isEmpty)
    }
}
