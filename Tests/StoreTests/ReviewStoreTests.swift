// Decisions as reviewers see them, with their labels and notes, on both engines.

import Accounts
import Database
import Decisions
import Events
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct ReviewStoreTests {
    private static func list(
        _ test: TestDecisions, cause: ReviewCause? = nil, all: Bool = false, after: Int64 = 3_600
    ) throws -> [ReviewItem] {
        try test.inner.store.reviews.list(
            ReviewFilter(since: 0, cause: cause, includesLabelled: all), limit: 10,
            now: TestStore.now + after)
    }

    @Test(arguments: Engine.all) func review_uncompletedCheck_isListedUntilLabelled(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        _ = try test.decided("u1", challenges: [], id: "rd_0")
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_1")
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_2")
        _ = try test.report("rd_1", .initiated, "email_code", at: TestStore.now + 1)
        _ = try test.report("rd_1", .passed, "email_code", at: TestStore.now + 5)
        #expect(try Self.list(test, after: 3_599).isEmpty)
        #expect(try Self.list(test).map(\.decision.record.id) == ["rd_2"])
        #expect(
            try Self.list(test, cause: .objection).isEmpty && Self.list(test, cause: .rule).isEmpty)
        // A decision with an objection is listed at once, independent of the outcome of its check.
        let account = try test.account("u1")
        try test.inner.store.persons.object(account: account, decision: "rd_1", TestStore.change)
        let objection = try Self.list(test, cause: .objection, after: 0)
        #expect(
            objection.map(\.decision.record.id) == ["rd_1"] && objection[0].causes == [.objection])
        #expect(objection[0].objectedAt == TestStore.now)
        #expect(
            try test.inner.store.checks.label(
                [("rd_1", .legitimate), ("rd_2", .fraudulent)], TestStore.change) == nil)
        #expect(try Self.list(test).isEmpty)
        #expect(try Self.list(test, all: true).count == 2)
    }

    @Test(arguments: Engine.all) func complaint_appStillUsed_isSentToEndpoint(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let store = test.inner.store
        _ = try store.endpoints.set(
            team: "juice", app: TestDecisions.clientID,
            url: EndpointURL("https://hooks.juice.example/events"), TestStore.change)
        let account = try test.account("u1")
        let day = TestStore.now / 86_400
        for mark in [1, 2] as [UInt8] {
            #expect(
                try store.complaints.record(
                    account: account, mark: [mark], provider: .google, day: day, now: TestStore.now)
            )
        }
        #expect(
            try !store.complaints.record(
                account: account, mark: [2], provider: .google, day: day, now: TestStore.now),
            "once a day")
        let events = try store.outbox.events(limit: 10)
        #expect(
            events.map(\.type) == [.spamComplaint, .spamComplaint]
                && events.allSatisfy { $0.email == nil })
        #expect(Set(events.map(\.eventTime)).count == 2)
        #expect(events[0].sub == (try test.sub("u1")))
        // After the user has left the app, its team gets no event about the user.
        _ = try store.grants.revokeAll(account: account, TestStore.change)
        let told = try store.outbox.events(limit: 10).count
        #expect(
            try store.complaints.record(
                account: account, mark: [2], provider: .google, day: day + 1, now: TestStore.now))
        #expect(
            try !store.complaints.record(
                account: account + 1_000, mark: [2], provider: .google, day: day, now: TestStore.now
            ))
        #expect(try store.outbox.events(limit: 10).count == told)
        let team = try store.teams.team("juice").number
        let days = try store.complaints.days(team: team, since: day)
        #expect(
            days.map { [$0.day, Int64($0.complaints), Int64($0.accounts)] } == [
                [day + 1, 1, 1], [day, 2, 1],
            ])
        #expect(try store.complaints.days(team: team, since: day + 2).isEmpty)
        #expect(try store.complaints.days(team: team + 1, since: 0).isEmpty)
    }

    @Test(arguments: Engine.all) func story_notesAndSnoozes_areKeptAndShown(_ engine: Engine) throws
    {
        let test = try TestDecisions(engine)
        let reviews = test.inner.store.reviews
        var record = try test.record("rd_1", challenges: ["email_code"])
        record.grantNumber = try test.history(.own(sub: try test.sub("u1")))?.grant?.number
        record.asked = ["inbox-velocity", "app-spike"]
        try test.inner.store.decisions.insert([record])
        try reviews.note(decision: "rd_1", text: " called back", TestStore.change)
        let until = TestStore.now + 86_400
        expectRefusal(.invalid) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: nil, reason: "twins", until: until, TestStore.change)
        }
        expectRefusal(.invalid) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: "no-rule", reason: "twins", until: until, TestStore.change)
        }
        expectRefusal(.invalid) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: "app-spike", reason: "jane@home.example", until: until,
                TestStore.change)
        }
        expectRefusal(.invalid) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: "app-spike", reason: "twins", until: TestStore.now,
                TestStore.change)
        }
        expectRefusal(.notFound) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: "app-spike", reason: "", until: nil, TestStore.change)
        }
        _ = try reviews.snooze(
            decision: "rd_1", rule: "app-spike", reason: "twins", until: until, TestStore.change)
        let story = try #require(try reviews.story("rd_1", now: TestStore.now))
        #expect(
            story.notes.map(\.text) == ["called back"]
                && story.decisions.map(\.record.id) == ["rd_1"])
        #expect(story.snoozes.map(\.rule) == ["app-spike"] && story.snoozes[0].reason == "twins")
        #expect(
            story.account?.asked == 1 && story.account?.passed == 0
                && story.account?.isAuthorized == true)
        let history = try test.history(.own(sub: try test.sub("u1")))
        #expect(history?.snoozes == [SnoozedRule(policy: "p", rule: "app-spike")])
        #expect(try test.history(.own(sub: try test.sub("u1")), at: until)?.snoozes == [])
        let audit = try test.inner.store.audit.page(action: "rule.snooze", limit: 10).rows
        #expect(
            audit.count == 1 && audit[0].detail.hasPrefix("p app-spike until ")
                && audit[0].detail.hasSuffix(": twins"))
        // The notes about the account are deleted with it; the decision stays without an account.
        try test.inner.store.users.remove("u1", TestStore.change)
        let left: Int64? = try test.inner.database.value("SELECT COUNT(*) FROM rule_snoozes")
        #expect(left == 0)
        #expect(try reviews.story("rd_1", now: TestStore.now)?.account == nil)
        expectRefusal(.notFound) {
            _ = try reviews.snooze(
                decision: "rd_1", rule: "app-spike", reason: "twins", until: until, TestStore.change
            )
        }
        _ = try test.inner.store.decisions.deleteExpired(before: TestStore.now + 1)
        let notes: Int64? = try test.inner.database.value("SELECT COUNT(*) FROM review_notes")
        #expect(notes == 0)
    }

    /// Ended snoozes must be deleted in steps, because they may be many.
    @Test(arguments: Engine.all) func snooze_ended_isDeletedInSteps(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        _ = try test.decided("u1", challenges: [], id: "rd_0")
        let grant: Int64 = try #require(try test.inner.database.value("SELECT MAX(id) FROM grants"))
        try test.inner.database.write(.durable) { connection in
            for number in 0..<7 {
                _ = try connection.run(
                    """
                    INSERT INTO rule_snoozes (grant_id, policy_name, rule, reason, created_at, expires_at)
                    VALUES (\(grant), 'p', \("rule-\(number)"), '', 1, \(number < 5 ? 10 : 100))
                    """)
            }
        }
        let decisions = test.inner.store.decisions
        let counts = try [11, 11, 11, 10].map { try decisions.deleteExpired(before: $0, limit: 3) }
        #expect(counts == [3, 2, 0, 0])
        #expect(try test.inner.database.value("SELECT COUNT(*) FROM rule_snoozes") as Int64? == 2)
    }

    @Test(arguments: Engine.all) func review_passedCheckOfRemovedAccount_isNotListed(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_1")
        _ = try test.report("rd_1", .initiated, "email_code", at: TestStore.now + 1)
        _ = try test.report("rd_1", .passed, "email_code", at: TestStore.now + 5)
        try test.inner.store.users.remove("u1", TestStore.change)
        #expect(try Self.list(test).isEmpty)
    }

    @Test(arguments: Engine.all) func story_oldDecision_isIncluded(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let grant = try test.history(.own(sub: try test.sub("u1")))?.grant?.number
        try test.inner.store.decisions.insert(
            (0...ReviewRepository.storyDecisions).map {
                try test.record("rd_\($0)", grant: grant, at: TestStore.now + Int64($0))
            }
        )
        let story = try #require(try test.inner.store.reviews.story("rd_0", now: TestStore.now))
        #expect(
            story.decisions.count == ReviewRepository.storyDecisions + 1
                && story.decisions.last?.record.id == "rd_0")
    }

    @Test(arguments: Engine.all) func note_unknownDecisionOrInvalidText_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_1")
        let reviews = test.inner.store.reviews
        #expect(try reviews.story("rd_9", now: TestStore.now) == nil)
        expectRefusal(.notFound) { try reviews.note(decision: "rd_9", text: "a", TestStore.change) }
        for text in [
            "", "  ", "a\nb", "a\u{1B}[2Jb", "a\tb", "a\u{202E}b", "mail jane@home.example",
            String(repeating: "a", count: 1_001),
        ] {
            expectRefusal(.invalid) {
                try reviews.note(decision: "rd_1", text: text, TestStore.change)
            }
        }
    }

    @Test(arguments: Engine.all) func objection_repeated_isSentOnce(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let store = test.inner.store
        _ = try store.endpoints.set(
            team: "juice", app: TestDecisions.clientID,
            url: EndpointURL("https://hooks.juice.example/events"), TestStore.change)
        let account = try test.account("u1")
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_1")
        try store.persons.object(account: account, decision: "rd_1", TestStore.change)
        try store.persons.object(account: account, decision: "rd_1", TestStore.change)
        let events = try store.outbox.events(limit: 10)
        #expect(
            events.map(\.type) == [.checkObjected] && events[0].decisionID == "rd_1"
                && events[0].email == nil)
        #expect(events[0].sub == (try test.sub("u1")))
    }
}
