// Too many requests at once: some are refused at once, none waits without end, and none is half
// answered.

import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct AdmissionTests {
    @Test func decision_atOnceLimitReached_isBusyAndNotLogged() async throws {
        let fixture = try await DecisionFixture(atOnce: 0)
        let sub = try fixture.user("u1")
        await #expect(throws: DecisionError.busy) { _ = try await fixture.ask(.signIn, sub: sub) }
        await #expect(throws: DecisionError.busy) { _ = try await fixture.signUp("new", status: 1) }
        try fixture.log.flush()
        #expect(try fixture.store.decisions.count(DecisionFilter()) == 0)
        #expect(DecisionError.busy.description.contains("try again in 1 s"))
    }

    /// The store is unavailable: requests are answered from memory, without waiting.
    @Test func decision_limitReachedWithoutStore_isAnswered() async throws {
        let fixture = try await DecisionFixture(atOnce: 0)
        _ = try fixture.user("u1")
        try fixture.storeIsAway(true)
        fixture.breaker.failed()
        #expect(try await fixture.signUp("new", status: 1).degraded)
    }

    @Test func decision_limitReachedThenFree_isAnsweredAgain() async throws {
        let fixture = try await DecisionFixture(atOnce: 2)
        let sub = try fixture.user("u1")
        let answered = await withTaskGroup(of: Bool.self) { tasks in
            for _ in 0..<200 {
                tasks.addTask {
                    do {
                        _ = try await fixture.ask(.signIn, sub: sub)
                        return true
                    } catch {
                        #expect(error as? DecisionError == .busy)
                        return false
                    }
                }
            }
            return await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered >= 2)
        #expect(try await fixture.ask(.signIn, sub: sub).decision == "allow")
        try fixture.log.flush()
        #expect(try fixture.store.decisions.count(DecisionFilter()) == answered + 1)
    }
}
