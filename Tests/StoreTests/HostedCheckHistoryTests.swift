// What policies learn of checks that the page carried out, beside those that teams reported.

import Decisions
import SignIn
import StoreTesting
import TestSupport
import Testing

@testable import Accounts

@Suite(.blocking) struct HostedCheckHistoryTests {
    private static let now = TestStore.now

    private func check(_ id: String, _ challenge: HostedChallenge) -> HostedCheck {
        HostedCheck(decisionID: id, event: "sign_in", challenges: [challenge], effort: 1)
    }

    @Test(arguments: Engine.all) func check_observed_isToldFromAReport(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        let decision = try test.decided("u1", challenges: ["email_code", "reauthenticate"])
        _ = try test.report(decision, .initiated, "reauthenticate", at: Self.now)
        _ = try test.report(decision, .passed, "reauthenticate", at: Self.now + 1)
        let before = try #require(try test.history(subject, at: Self.now + 10))
        #expect(before.passedChecks90d == 1 && before.observedChecks90d == 0)
        #expect(before.lastPasses.observed == nil)
        #expect(
            try test.inner.store.hostedChecks.observe(
                .passed, .emailCode, by: .mailedCode, of: check(decision, .emailCode),
                now: Self.now + 2))
        let after = try #require(try test.history(subject, at: Self.now + 10))
        #expect(after.passedChecks90d == 2 && after.observedChecks90d == 1)
        #expect(after.lastPasses.observed == Self.now + 2)
    }

    @Test(arguments: Engine.all) func proofOfWork_accepted_countsAsNothingElse(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let decision = try test.decided("u1", challenges: ["human_check"])
        #expect(
            try test.inner.store.hostedChecks.observe(
                .passed, .humanCheck, by: .proofOfWork, of: check(decision, .humanCheck),
                now: Self.now + 2))
        let history = try #require(
            try test.history(.own(sub: try test.sub("u1")), at: Self.now + 10))
        #expect(history.passedChecks90d == 0 && history.observedChecks90d == 0)
        #expect(history.lastPasses == LastPasses(proofOfWork: Self.now + 2))
    }

    /// Otherwise a team could make its own word one that was observed.
    @Test(arguments: Engine.all) func pass_reportedOfACheckThatThePageBegan_isReported(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let decision = try test.decided("u1", challenges: ["email_code"])
        #expect(
            try !test.inner.store.hostedChecks.observe(
                .initiated, .emailCode, by: .mailedCode, of: check(decision, .emailCode),
                now: Self.now + 1))
        let logged = try test.report(decision, .passed, "email_code", at: Self.now + 2)
        #expect(logged.checks.map(\.source) == [.reported])
        let history = try test.history(.own(sub: try test.sub("u1")), at: Self.now + 10)
        #expect(history?.observedChecks90d == 0)
    }

    @Test(arguments: Engine.all) func challenge_notOffered_isNotObserved(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let decision = try test.decided("u1", challenges: ["email_code"])
        #expect(
            try !test.inner.store.hostedChecks.observe(
                .passed, .humanCheck, by: .proofOfWork, of: check(decision, .humanCheck),
                now: Self.now + 1))
        #expect(
            try !test.inner.store.hostedChecks.observe(
                .passed, .humanCheck, by: .proofOfWork, of: check("rd_none", .humanCheck),
                now: Self.now + 1))
    }
}
