// The reads of a decision about a grant, in one statement: the account found, the counts, and their
// periods.

import Accounts
import Decisions
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct HistoryTests {
    private static let now = TestStore.now
    private static let hour: Int64 = 3_600

    @Test(arguments: Engine.all) func history_newGrant_hasOnlyItsInbox(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let history = try #require(try test.history(.own(sub: test.sub("u1"))))
        let grant = try #require(history.grant)
        #expect(grant.isAuthorized)
        #expect(grant.firstAskedAt == nil)
        #expect(grant.signUpCheck == .none)
        #expect(history.hasEmail == true)
        #expect(history.isForwardingOn == true)
        #expect(!history.isExternal)
        #expect(
            history.inbox
                == .init(signUps24h: 0, isOwnSignUpCounted: false, deletions30d: 0, bounces7d: 0))
        #expect(history.lastPasses == LastPasses())
        #expect(history.failedChecks24h == 0)
    }

    @Test(arguments: Engine.all) func history_otherTeamsAccount_isNotFound(_ engine: Engine) throws
    {
        let test = try TestDecisions(engine)
        _ = try test.inner.store.teams.add(id: "other", name: "Other", TestStore.change)
        _ = try test.inner.store.apps.add(
            team: "other", clientID: "com.other", group: nil, TestStore.change)
        let other = try test.app("com.other")
        let sub = try test.sub("u1")
        #expect(
            try test.inner.store.history.history(
                team: other.teamNumber, group: other.groupNumber, subject: .own(sub: sub),
                now: Self.now) == nil)
        #expect(try test.history(.own(sub: "unknown")) == nil)
        #expect(
            try test.history(.external(issuer: "https://appleid.apple.com", subject: sub)) == nil)
    }

    @Test(arguments: Engine.all) func history_counters_areSummedOverTheirDays(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let account = try test.account("u1")
        func counter(_ kind: CounterKind, daysAgo: Int64, _ count: Int) -> DailyCounter {
            DailyCounter(
                accountNumber: account, day: TestStore.today - daysAgo, kind: kind, count: count)
        }
        try test.inner.store.counters.add([
            counter(.bouncedPermanently, daysAgo: 0, 1),
            counter(.bouncedPermanently, daysAgo: 6, 2),
            counter(.bouncedPermanently, daysAgo: 7, 40),
            counter(.bouncedTemporarily, daysAgo: 0, 50),
            counter(.replied, daysAgo: 29, 3), counter(.replied, daysAgo: 30, 60),
            counter(.forwardingToggled, daysAgo: 1, 5),
            counter(.rejoined, daysAgo: 20, 2),
        ])
        let history = try #require(try test.history(.own(sub: test.sub("u1"))))
        #expect(history.bounces7d == 3)
        #expect(history.userReplies30d == 3)
        #expect(history.forwardingToggles7d == 5)
        #expect(history.rejoins30d == 2)
        #expect(history.inbox?.bounces7d == 3)
    }

    @Test(arguments: Engine.all) func history_bouncesInOtherTeam_countForInboxOnly(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        _ = try test.inner.store.teams.add(id: "other", name: "Other", TestStore.change)
        let other = try test.inner.address("u1", team: "other").account.number
        try test.inner.store.counters.add([
            DailyCounter(
                accountNumber: other, day: TestStore.today, kind: .bouncedPermanently, count: 4)
        ])
        let history = try #require(try test.history(.own(sub: test.sub("u1"))))
        #expect(history.bounces7d == 0)
        #expect(history.inbox?.bounces7d == 4)
    }

    @Test(arguments: Engine.all) func history_unfinishedChallenge_failsAfterAnHour(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let decision = try test.decided("u1", challenges: ["email_code"])
        _ = try test.report(decision, .initiated, "email_code", at: Self.now)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        #expect(try test.history(subject, at: Self.now + Self.hour - 1)?.failedChecks24h == 0)
        #expect(try test.history(subject, at: Self.now + Self.hour)?.failedChecks24h == 1)
        #expect(try test.history(subject, at: Self.now + 24 * Self.hour)?.failedChecks24h == 1)
        #expect(try test.history(subject, at: Self.now + 25 * Self.hour)?.failedChecks24h == 0)
    }

    @Test(arguments: Engine.all) func history_passedChecks_areKnownForNinetyDays(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let decision = try test.decided("u1", challenges: ["email_code", "reauthenticate"])
        _ = try test.report(decision, .initiated, "reauthenticate", at: Self.now)
        _ = try test.report(decision, .passed, "reauthenticate", at: Self.now + 60)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        let soon = try #require(try test.history(subject, at: Self.now + 120))
        #expect(soon.lastPasses == LastPasses(reauthenticate: Self.now + 60))
        #expect(soon.passedChecks90d == 1)
        #expect(soon.failedChecks24h == 0)
        #expect(try test.history(subject, at: Self.now + 91 * 24 * Self.hour)?.passedChecks90d == 0)
    }

    @Test(arguments: Engine.all) func history_repeatedSignUps_countOncePerUserAndDay(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let sub = try test.sub("u1")
        for number in 0..<3 {
            try test.settle(
                .own(sub: sub), isVerified: true, isSignUp: true, at: Self.now + Int64(number))
        }
        // Another spelling of the same mailbox, with another user and team.
        try test.inner.user("u2", inbox: "U1+shop@home.example")
        let other = try test.sub("u2")
        #expect(
            try test.history(.own(sub: other))?.inbox
                == .init(signUps24h: 1, isOwnSignUpCounted: false, deletions30d: 0, bounces7d: 0))
        // Sign-ups without a verified token do not count, so that no one can harm another person
        // with them.
        try test.settle(.own(sub: other), isVerified: false, isSignUp: true)
        #expect(try test.history(.own(sub: sub))?.inbox?.signUps24h == 1)
        try test.settle(.own(sub: other), isVerified: true, isSignUp: true)
        #expect(
            try test.history(.own(sub: sub))?.inbox
                == .init(signUps24h: 2, isOwnSignUpCounted: true, deletions30d: 0, bounces7d: 0))
        #expect(
            try test.history(.own(sub: sub), at: Self.now + 25 * Self.hour)?.inbox?.signUps24h == 0)
        // Removing the user does not reset the count.
        try test.inner.store.users.remove("u2", TestStore.change)
        #expect(try test.history(.own(sub: sub))?.inbox?.signUps24h == 2)
    }

    @Test(arguments: Engine.all) func appRates_afterOneDay_haveBaseline(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let app = try test.app()
        let sub = try test.sub("u1")
        let day = 24 * Self.hour
        for hour in 0..<48 {
            let time = Self.now + Int64(hour) * Self.hour
            try test.settle(.own(sub: sub), isVerified: true, isSignUp: true, at: time)
            guard hour == 2 else { continue }
            #expect(
                try test.inner.store.appRates.rates(app: app.number, now: time)
                    == AppRates(signUps1h: 1, baseline: nil))
        }
        let rates = test.inner.store.appRates
        let later = try rates.rates(app: app.number, now: Self.now + 2 * day)
        #expect(later.signUps1h == 0)
        #expect(abs((later.baseline ?? 0) - 1) < 0.05)
        while try rates.deleteExpired(now: Self.now + 30 * day) == 1000 {}
        #expect(
            try rates.rates(app: app.number, now: Self.now + 2 * day)
                == AppRates(signUps1h: 0, baseline: nil))
    }
}
