// account.hours_since_seen: the events that count as a visit, and their times.

import Accounts
import Decisions
import Foundation
import RiskPolicy
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct HoursSinceSeenTests {
    private func hours(_ bench: DecisionFixture, _ answer: Response) throws -> Int? {
        let signals = try bench.logged(answer.id).signals
        return try #require(
            signals.firstMatch(of: #/"account\.hours_since_seen":(\d+)/#).map { Int($0.output.1) })
    }

    /// Signs in to the app with Postern, like its page.
    private func authorize(_ bench: DecisionFixture, _ user: String) throws {
        _ = try bench.store.grants.authorize(
            AuthorizationRequest(clientID: DecisionFixture.app, userID: user),
            Change(actor: "user:\(user)", now: bench.clock.now)
        )
    }

    @Test func hoursSinceSeen_signInAfterLongAbsence_countsAbsence() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        #expect(try await bench.ask(.signUp, sub: sub).decision == "allow")
        bench.clock.advance(5_000 * 3_600)
        try authorize(bench, "u1")
        let first = try await bench.ask(.signIn, sub: sub)
        #expect(first.reasons == ["DORMANT_ACCOUNT"])
        #expect(try hours(bench, first) == 5_000)
        // A check that is not passed is not a visit: the next request requires a check again.
        bench.clock.advance(60)
        #expect(try await bench.ask(.signIn, sub: sub).reasons == ["DORMANT_ACCOUNT"])
        try await bench.report(first.id, .initiated, "email_code")
        try await bench.report(first.id, .passed, "email_code")
        // A sensitive action on the day of the return counts as one after a long absence, even if
        // the sign-in needed and passed a check.
        bench.clock.advance(60)
        #expect(try await bench.ask(.sensitiveAction, sub: sub).reasons.contains("DORMANT_ACCOUNT"))
        bench.clock.advance(86_400)
        let next = try await bench.ask(.signIn, sub: sub)
        #expect(next.decision == "allow")
        #expect(try hours(bench, next) == 24)
    }

    /// A backend that names the user by `sub`, within its own session, has no fresh token.
    @Test func sensitiveAction_withoutAToken_isAskedOncePerVisit() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signUp, sub: sub)
        bench.clock.advance(100 * 3_600)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "allow")
        try bench.log.flush()
        bench.clock.advance(5 * 3_600)
        let within = try await bench.ask(.sensitiveAction, sub: sub)
        #expect(within.decision == "allow")
        #expect(try bench.logged(within.id).signals.contains("\"account.visit_hours\":5,"))
        try bench.log.flush()
        // An allow does not extend a visit.
        bench.clock.advance(20 * 3_600)
        let later = try await bench.ask(.sensitiveAction, sub: sub)
        #expect(later.reasons == ["STALE_TOKEN"] && later.challenges == ["reauthenticate"])
        try await bench.report(later.id, .initiated, "reauthenticate")
        try await bench.report(later.id, .passed, "reauthenticate")
        bench.clock.advance(3 * 3_600)
        #expect(try await bench.ask(.sensitiveAction, sub: sub).decision == "allow")
    }

    @Test func hoursSinceSeen_returnAfterRevocation_startsAgain() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signUp, sub: sub)
        let account = try bench.store.accounts.account(sub: sub, team: "juice").number
        _ = try bench.store.grants.revokeAll(
            account: account, Change(actor: "user:u1", now: bench.clock.now))
        bench.clock.advance(5_000 * 3_600)
        try authorize(bench, "u1")
        bench.clock.advance(2 * 86_400)
        #expect(try hours(bench, try await bench.ask(.signIn, sub: sub)) == 48)
    }

    @Test func hoursSinceSeen_manyQuestionsInADay_areOneVisit() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signUp, sub: sub)
        bench.clock.advance(100 * 3_600)
        for _ in 0..<3 {
            let answer = try await bench.ask(.signIn, sub: sub)
            let seen = try hours(bench, answer)
            #expect(seen == 100 || seen == 101)
            try bench.log.flush()
            bench.clock.advance(1_800)
        }
        bench.clock.advance(86_400)
        #expect(try hours(bench, try await bench.ask(.signIn, sub: sub)) == 24)
    }

    /// A user who comes every twelve hours is never absent, although no two visits are a day apart.
    @Test func hoursSinceSeen_usedEveryTwelveHours_staysLow() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signUp, sub: sub)
        for round in 0..<500 {
            bench.clock.advance(43_200)
            if round % 2 == 0 { try authorize(bench, "u1") }
            let answer = try await bench.ask(.signIn, sub: sub)
            let seen = try #require(try hours(bench, answer))
            #expect(answer.decision == "allow" && seen < 48, "round \(round): \(seen)")
        }
    }

    @Test func hoursSinceSeen_signInWithoutQuestion_isReset() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signUp, sub: sub)
        for _ in 0..<250 {
            bench.clock.advance(86_400)
            try authorize(bench, "u1")
        }
        #expect(try await bench.ask(.signIn, sub: sub).decision == "allow")
    }
}
