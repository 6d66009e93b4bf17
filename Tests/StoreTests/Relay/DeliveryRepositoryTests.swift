// What became of forwards, by team, hour and provider, on both engines.

import Accounts
import Database
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct DeliveryRepositoryTests {
    private static let hour = TestStore.now / 3_600

    /// A user of a team, and the number of the account.
    private static func account(
        _ test: TestStore, _ user: String, team: String = "juice"
    ) throws -> Int64 {
        if (try? test.store.users.user(user)) == nil { try test.user(user) }
        let address = try test.address(user, team: team).address
        let found = try test.store.relay.relayAddress(
            localPart: address.localPart, domain: address.domain)
        return try #require(found).number.stored
    }

    @Test(arguments: Engine.all) func counts_ofAccounts_areThoseOfTheirTeams(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        _ = try test.store.teams.add(id: "shop", name: "Shop", TestStore.change)
        let (anna, ben) = (try Self.account(test, "anna"), try Self.account(test, "ben"))
        let other = try Self.account(test, "anna", team: "shop")
        let counters = CounterBuffer(test.store.counters)
        for (account, times) in [(anna, 2), (ben, 3), (other, 4), (1_000_000, 5)] {
            for _ in 0..<times {
                counters.deliveries.count(
                    .forwarded, at: .google, account: account, now: TestStore.now)
            }
        }
        counters.deliveries.count(.reputation, at: .yahoo, account: anna, now: TestStore.now)
        counters.deliveries.count(
            .forwarded, at: .google, account: anna, now: TestStore.now - 7_200)
        try counters.flush()
        try counters.flush()
        let deliveries = test.store.deliveries
        let all = try deliveries.figures(since: Self.hour)
        #expect(
            all.map { "\($0.team) \($0.provider) \($0.count(.forwarded)) \($0.count(.reputation))" }
                == ["juice google 5 0", "juice yahoo 0 1", "shop google 4 0"])
        #expect(
            try deliveries.figures(since: 0, team: "juice", provider: .google)
                .map { $0.count(.forwarded) } == [6])
        #expect(try deliveries.figures(since: 0, team: "none").isEmpty)
        let totals = try deliveries.totals(since: Self.hour)
        #expect(
            totals.map { "\($0.provider) \($0.outcome) \($0.count)" } == [
                "google forwarded 9", "yahoo reputation 1",
            ])
    }

    @Test(arguments: Engine.all) func complaint_ofAUser_isCountedAtTheProvider(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let anna = try Self.account(test, "anna")
        for mark in [1, 2] as [UInt8] {
            _ = try test.store.complaints.record(
                account: anna, mark: [mark], provider: .orange, day: TestStore.today,
                now: TestStore.now)
        }
        _ = try test.store.complaints.record(
            account: anna, mark: [3], provider: nil, day: TestStore.today, now: TestStore.now)
        let found = try test.store.deliveries.figures(since: Self.hour - 24)
        // Two messages of one day are one complaint of one user.
        #expect(found.map { "\($0.provider) \($0.complaints)" } == ["orange 1"])
        #expect(
            try test.database.value("SELECT COUNT(*) FROM delivery_marks", Int64.self) == 1)
        // A team must not end a limit by deleting the accounts that complained.
        try test.store.accounts.delete(account: anna, isTeams: true, TestStore.change)
        _ = try test.store.removals.run(now: TestStore.now)
        let after = try test.store.deliveries.figures(since: Self.hour - 24)
        #expect(after.map { "\($0.provider) \($0.complaints)" } == ["orange 1"])
        let marks: SQL =
            "SELECT (SELECT COUNT(*) FROM delivery_marks) + (SELECT COUNT(*) FROM delivery_marks_left)"
        #expect(try test.database.value(marks, Int64.self) == 1)
        try test.store.users.remove("anna", TestStore.change)
        _ = try test.store.removals.run(now: TestStore.now)
        #expect(try test.database.value(marks, Int64.self) == 0, "deleted with the user")
    }

    @Test(arguments: Engine.all) func counts_storeAway_areKept(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let anna = try Self.account(test, "anna")
        let counters = CounterBuffer(test.store.counters)
        counters.deliveries.count(.full, at: .apple, account: anna, now: TestStore.now)
        try test.database.write(.relaxed) {
            try $0.runScript("ALTER TABLE delivery_results RENAME TO away")
        }
        #expect(throws: StoreFailure.self) { try counters.flush() }
        try test.database.write(.relaxed) {
            try $0.runScript("ALTER TABLE away RENAME TO delivery_results")
        }
        try counters.flush()
        #expect(
            try test.store.deliveries.figures(since: 0).map { $0.count(.full) } == [1])
    }

    @Test(arguments: Engine.all) func warmUp_manyAtOnce_neverExceedsTheCeiling(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        let (deliveries, day) = (test.store.deliveries, TestStore.today)
        let passed = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try deliveries.reserveWarmUp(
                        host: "mx1", team: "juice", day: Int64(day), ceiling: 7)
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(passed == 7)
        #expect(
            try deliveries.reserveWarmUp(
                host: "mx2", team: "juice", day: Int64(day), ceiling: 7), "another host")
        #expect(
            try deliveries.warmUpCounts(day: Int64(day)).map {
                "\($0.host) \($0.team) \($0.messages) \($0.deferred)"
            } == ["mx1 juice 7 13", "mx2 juice 1 0"])
        // A message that was not accepted after all gives its place back.
        try deliveries.releaseWarmUp(host: "mx1", team: "juice", day: Int64(day))
        #expect(
            try deliveries.wouldReserveWarmUp(
                host: "mx1", team: "juice", day: Int64(day), ceiling: 7))
        #expect(
            try deliveries.reserveWarmUp(
                host: "mx1", team: "juice", day: Int64(day), ceiling: 7))
        #expect(
            try !deliveries.wouldReserveWarmUp(
                host: "mx1", team: "juice", day: Int64(day), ceiling: 7))
        _ = try deliveries.deleteExpired(before: TestStore.now + 2 * 86_400)
        #expect(try deliveries.warmUpCounts(day: Int64(day)).isEmpty)
    }

    /// Otherwise one team could use up each day's ceiling.
    @Test(arguments: Engine.all) func warmUp_severalTeams_noneHasMoreThanItsShare(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (deliveries, day) = (test.store.deliveries, Int64(TestStore.today))
        func passed(_ team: String, _ count: Int, day: Int64) throws -> Int {
            var passed = 0
            for _ in 0..<count
            where try deliveries.reserveWarmUp(host: "mx1", team: team, day: day, ceiling: 8) {
                passed += 1
            }
            return passed
        }
        #expect(try passed("juice", 9, day: day) == 8, "the only team has all")
        #expect(try passed("shop", 2, day: day) == 0)
        // On the next day it is known that the other team sends.
        #expect(try passed("juice", 9, day: day + 1) == 4)
        #expect(try passed("shop", 3, day: day + 1) == 3)
        #expect(try passed("bank", 9, day: day + 1) == 1, "the ceiling")
        #expect(try passed("shop", 1, day: day + 1) == 0)
    }

    @Test(arguments: Engine.all) func log_readInParts_isRememberedWithItsCounts(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let anna = try Self.account(test, "anna")
        let deliveries = test.store.deliveries
        #expect(try deliveries.octetsRead(log: [1]) == 0)
        #expect(try deliveries.lastRead() == nil)
        let count = DeliveryCount(
            account: anna, hour: Self.hour, provider: .google, outcome: .delivered, count: 1)
        #expect(try deliveries.add([count], log: [1], octets: 0..<100, now: TestStore.now))
        #expect(
            try deliveries.add(
                [count, count], log: [1], octets: 100..<250, now: TestStore.now + 5))
        // Another reader that did not see these.
        #expect(
            try !deliveries.add([count], log: [1], octets: 0..<300, now: TestStore.now + 6))
        #expect(
            try !deliveries.add([count], log: [1], octets: 100..<200, now: TestStore.now + 6))
        #expect(try deliveries.octetsRead(log: [1]) == 250)
        #expect(try deliveries.lastRead() == TestStore.now + 5)
        #expect(try deliveries.figures(since: 0).map { $0.count(.delivered) } == [3])
        while try deliveries.deleteExpired(before: TestStore.now - 3_600, limit: 1) > 0 {}
        #expect(try deliveries.figures(since: 0).count == 1)
        while try deliveries.deleteExpired(before: TestStore.now + 90_000, limit: 1) > 0 {}
        #expect(try deliveries.figures(since: 0).isEmpty)
        #expect(try deliveries.octetsRead(log: [1]) == 0)
    }
}
