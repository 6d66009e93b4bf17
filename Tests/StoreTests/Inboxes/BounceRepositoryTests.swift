// Permanent failures of inboxes: the suspension of forwarding, and its end.

import Accounts
import InternetMessage
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct BounceRepositoryTests {
    private struct Fixture {
        let test: TestStore
        let account: Int64
        let address: AddrSpec
        let inbox: Inbox

        init(_ engine: Engine, forwarded: Int) throws {
            test = try TestStore(engine)
            try test.user("u1", inbox: "first@home.example")
            let issued = try test.address("u1")
            account = issued.account.number
            address = issued.address
            inbox = try #require(try test.store.inboxes.inboxes(user: "u1").first)
            try forward(forwarded)
        }

        func forward(_ count: Int, day: Int64 = TestStore.today) throws {
            try test.store.counters.add([
                DailyCounter(accountNumber: account, day: day, kind: .forwarded, count: count)
            ])
        }

        /// A failure of a message with this nonce; three of them, half of the forwarded messages,
        /// suspend forwarding.
        func fail(
            _ nonce: UInt8, sentDay: Int64 = TestStore.today, now: Int64 = TestStore.now
        ) throws -> FailureRecord {
            try test.store.bounces.record(
                TestStore.failure(UInt64(nonce), sentDay: sentDay, now: now),
                of: TestStore.number(account),
                rate: SuspensionRate(failures: 3, percent: 50, days: 14), now: now)
        }

        var isSuspended: Bool {
            get throws {
                try test.store.relay.relayAddress(
                    localPart: address.localPart, domain: address.domain)?.inbox?.isSuspended
                    == true
            }
        }

        func confirm(at now: Int64 = TestStore.now) throws -> Inbox {
            try test.store.inboxes.confirm(
                user: "u1", .number(inbox.number), Change(actor: "uid:0", now: now))
        }
    }

    @Test(arguments: Engine.all) func failures_rateReached_suspendInboxUntilConfirmed(
        _ engine: Engine
    ) throws {
        let scene = try Fixture(engine, forwarded: 6)
        let store = scene.test.store
        #expect(try scene.fail(1) == .recorded)
        #expect(try scene.fail(1) == .known, "once for each message")
        #expect(try scene.fail(2) == .recorded)
        #expect(try !scene.isSuspended)
        #expect(try scene.fail(3) == .suspended)
        #expect(try scene.isSuspended)
        #expect(try scene.fail(4) == .recorded, "suspended once")
        #expect(
            try store.counters.count(
                account: scene.account, kind: .bouncedPermanently, day: TestStore.today) == 4)
        #expect(try store.relay.account(number: scene.account, day: 1)?.inbox?.isSuspended == true)

        let shown = try store.inboxes.inbox(user: "u1", .number(scene.inbox.number))
        #expect(shown.suspendedAt == TestStore.now)
        #expect(shown.suspendedFailures == 3)
        let standing = try store.bounces.standing(of: scene.inbox, days: 14, now: TestStore.now)
        #expect([standing.failures, standing.forwarded] == [4, 6])
        let line = try #require(try store.audit.entries(limit: 1).first)
        #expect([line.actor, line.action, line.subject] == ["relay", "inbox.suspend", "user:u1"])
        #expect(
            line.detail
                == "inbox \(scene.inbox.number), 3 permanent failures, 6 messages forwarded, 14 days"
        )

        #expect(try !scene.confirm().isSuspended)
        #expect(try !scene.isSuspended)
        #expect(try store.audit.entries(limit: 1).first?.action == "inbox.confirm")
        #expect(
            try store.bounces.standing(of: scene.inbox, days: 14, now: TestStore.now).failures == 0)
        let lines = try store.audit.entries().count
        _ = try scene.confirm()
        #expect(try store.audit.entries().count == lines, "a repetition changes nothing")
    }

    /// Inboxes with the hours after which forwarding to each was suspended, under these rules.
    private func suspend(
        _ engine: Engine, _ inboxes: [(address: String, hours: Int64)], rules: Int64
    ) throws -> TestStore {
        let test = try TestStore(engine)
        for (index, inbox) in inboxes.enumerated() {
            try test.user("u\(index)", inbox: inbox.address)
            let record = try test.store.bounces.record(
                TestStore.failure(1),
                of: TestStore.number(test.address("u\(index)").account.number),
                rate: TestStore.anyRate,
                rules: rules, now: TestStore.now + inbox.hours * 3600)
            #expect(record == .suspended)
        }
        return test
    }

    private func suspended(_ test: TestStore) throws -> [String] {
        try test.store.inboxes.suspended(limit: 99).users.sorted()
    }

    @Test(arguments: Engine.all)
    func reviewSuspensions_fiveOfOneProviderWithinADayByEarlierRules_comeBack(
        _ engine: Engine
    ) throws {
        let test = try suspend(
            engine,
            [
                ("a@outlook.com", 0), ("b@hotmail.com", 1), ("c@live.com", 5),
                ("d@outlook.com", 23), ("e@msn.com", 24),
                // Another provider, and the same provider much later.
                ("f@home.example", 2), ("g@outlook.com", 90),
            ], rules: 0)
        let later = TestStore.now + 100 * 3600
        let store = test.store
        let returned = try store.inboxes.reviewSuspensions(
            rules: 1, providers: .standard, now: later)
        #expect(returned.map(\.provider) == ["outlook.com"] && returned.map(\.count) == [5])
        #expect(try suspended(test) == ["u5", "u6"])
        let lines = try store.inboxes.returned(since: later)
        #expect(lines.map(\.subject) == ["provider:outlook.com"] && lines[0].actor == "relay")
        #expect(lines[0].detail.hasPrefix("5 inboxes"))
        #expect(try store.inboxes.returned(since: later + 1).isEmpty)
        // Each suspension is reviewed once.
        #expect(
            try store.inboxes.reviewSuspensions(rules: 1, providers: .standard, now: later).isEmpty)
    }

    @Test(arguments: Engine.all) func reviewSuspensions_fewerOrSlowerOrByTheseRules_stay(
        _ engine: Engine
    ) throws {
        for (hours, rules) in [([0, 1, 2, 3], 0), ([0, 1, 2, 3, 25], 0), ([0, 1, 2, 3, 4], 1)]
            as [([Int64], Int64)]
        {
            let test = try suspend(
                engine, hours.enumerated().map { ("p\($0.offset)@home.example", $0.element) },
                rules: rules)
            let later = TestStore.now + 100 * 3600
            #expect(
                try test.store.inboxes.reviewSuspensions(rules: 1, providers: .standard, now: later)
                    .isEmpty)
            #expect(try suspended(test).count == hours.count)
        }
    }

    @Test(arguments: Engine.all) func failures_sentBeforeConfirmation_areNotCounted(
        _ engine: Engine
    ) throws {
        let scene = try Fixture(engine, forwarded: 3)
        for nonce in 1...3 { _ = try scene.fail(UInt8(nonce)) }
        let later = TestStore.now + 2 * 86_400
        _ = try scene.confirm(at: later)
        for nonce in 10...20 {
            #expect(try scene.fail(UInt8(nonce), sentDay: TestStore.today, now: later) == .recorded)
        }
        #expect(try !scene.isSuspended)
        for nonce in 30...32 {
            _ = try scene.fail(UInt8(nonce), sentDay: TestStore.today + 2, now: later)
        }
        #expect(try scene.isSuspended)
    }

    @Test(arguments: Engine.all) func failures_outsideWindow_areNotCounted(_ engine: Engine) throws
    {
        let scene = try Fixture(engine, forwarded: 1_000)
        for (nonce, day) in [(1, 0), (2, 0), (3, 13)] as [(UInt8, Int64)] {
            let now = TestStore.now + day * 86_400
            #expect(try scene.fail(nonce, sentDay: Day.number(now), now: now) == .recorded)
        }
        let later = TestStore.now + 14 * 86_400
        let standing = try scene.test.store.bounces.standing(of: scene.inbox, days: 14, now: later)
        #expect([standing.failures, standing.forwarded] == [1, 0])
        #expect(
            try scene.test.store.counters.deleteExpired(countersBefore: TestStore.today + 1, now: 0)
                > 0)
        #expect(
            try scene.test.store.bounces.standing(of: scene.inbox, days: 30, now: later).failures
                == 1, "old ones are deleted")
    }

    @Test(arguments: Engine.all) func forwarding_otherInboxBecomesDefault_goesOn(
        _ engine: Engine
    ) throws {
        let scene = try Fixture(engine, forwarded: 3)
        for nonce in 1...3 { _ = try scene.fail(UInt8(nonce)) }
        let store = scene.test.store
        let second = try store.inboxes.add(
            user: "u1", TestStore.inbox("second@home.example"), isVerified: true,
            isReplyOnly: false, TestStore.change)
        #expect(try scene.isSuspended)
        let later = Change(actor: "uid:0", now: TestStore.now + 86_400)
        try store.inboxes.makeDefault(user: "u1", .number(second.number), later)
        #expect(try !scene.isSuspended)
        // Late bounces of mail to the first inbox do not count against the second.
        for nonce in 10...20 { #expect(try scene.fail(UInt8(nonce), now: later.now) == .recorded) }
        #expect(try !scene.isSuspended)
        #expect(
            try store.inboxes.inbox(user: "u1", .number(scene.inbox.number)).isSuspended,
            "the first stays as it was")
        try store.inboxes.makeDefault(user: "u1", .number(scene.inbox.number), later)
        #expect(try scene.isSuspended)
    }

    @Test(arguments: Engine.all) func failures_unknownAccount_areNotRecorded(
        _ engine: Engine
    ) throws {
        let scene = try Fixture(engine, forwarded: 0)
        let record = try scene.test.store.bounces.record(
            TestStore.failure(1), of: TestStore.number(scene.account + 99), rate: TestStore.anyRate,
            now: TestStore.now)
        #expect(record == .known)
    }
}
