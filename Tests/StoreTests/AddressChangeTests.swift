// A user's changes of an address: its replacement, and switches of forwarding at a time or after a
// number of messages.

import Accounts
import Database
import Events
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct AddressChangeTests {
    private static func world(_ engine: Engine) throws -> (TestStore, RelayAddress) {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        _ = try test.store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://hooks.juice.example/events"),
            TestStore.change)
        try test.user("anna")
        return (test, try test.address("anna", app: "com.juice"))
    }

    private static func told(_ test: TestStore) throws -> [String] {
        try test.store.outbox.events(limit: 100).map { "\($0.type.rawValue) \($0.email ?? "")" }
            .sorted()
    }

    @Test(arguments: Engine.all) func replace_currentAddress_retiresItAndTellsTeam(
        _ engine: Engine
    ) throws {
        let (test, old) = try Self.world(engine)
        let new = try test.store.addresses.replace(account: old.account.number, TestStore.change)
        #expect(new != old.address)
        #expect(try test.store.addresses.current(account: old.account.number)?.address == new)
        #expect(try test.store.addresses.address(old.address).retiredAt == TestStore.now)
        #expect(try Self.told(test) == ["email-enabled \(new.wireForm)"])
        // Forwarding that is off stays off, and no endpoint gets an event that it is on.
        try test.store.addresses.setForwarding(new, on: false, TestStore.change)
        let third = try test.store.addresses.replace(account: old.account.number, TestStore.change)
        #expect(try test.store.addresses.address(third).isForwardingOn == false)
        #expect(
            try Self.told(test) == [
                "email-disabled \(new.wireForm)", "email-enabled \(new.wireForm)",
            ])
    }

    @Test(arguments: Engine.all) func replace_dailyLimitReached_isRefused(_ engine: Engine) throws {
        let (test, old) = try Self.world(engine)
        for _ in 0..<5 {
            _ = try test.store.addresses.replace(account: old.account.number, TestStore.change)
        }
        expectRefusal(.limit) {
            _ = try test.store.addresses.replace(account: old.account.number, TestStore.change)
        }
        let tomorrow = Change(actor: "user:anna", now: TestStore.now + 86_401)
        _ = try test.store.addresses.replace(account: old.account.number, tomorrow)
        expectRefusal(.unmet) { _ = try test.store.addresses.replace(account: 999, tomorrow) }
    }

    @Test(arguments: Engine.all) func switchForwarding_timeDue_switchesOnce(_ engine: Engine) throws
    {
        let (test, address) = try Self.world(engine)
        let (addresses, account) = (test.store.addresses, address.account.number)
        func isOn() throws -> Bool { try addresses.address(address.address).isForwardingOn }
        try addresses.switchForwarding(account: account, at: TestStore.now + 10, TestStore.change)
        try addresses.switchDue(now: TestStore.now + 9)
        #expect(try isOn())
        try addresses.switchDue(now: TestStore.now + 10)
        try addresses.switchDue(now: TestStore.now + 20)
        #expect(try !isOn() && Self.told(test) == ["email-disabled \(address.address.wireForm)"])
        // Off until a day; a manual switch before that day has priority.
        try addresses.switchForwarding(account: account, at: TestStore.now + 30, TestStore.change)
        try addresses.setForwarding(address.address, on: true, TestStore.change)
        try addresses.switchDue(now: TestStore.now + 40)
        #expect(try isOn())
        try addresses.switchForwarding(account: account, at: TestStore.now + 50, TestStore.change)
        try addresses.switchForwarding(account: account, at: nil, TestStore.change)
        try addresses.switchDue(now: TestStore.now + 60)
        #expect(try isOn())
        // An address of a removed team does not block others.
        try addresses.switchForwarding(account: account, at: TestStore.now + 70, TestStore.change)
        try test.store.teams.remove("juice", TestStore.change)
        try addresses.switchDue(now: TestStore.now + 70)
        let waiting: [Int64] = try test.database.values(
            "SELECT switches_at FROM relay_addresses WHERE switches_at IS NOT NULL")
        #expect(waiting.isEmpty)
    }
    @Test(arguments: Engine.all) func switchForwarding_messageLimitReached_turnsOff(
        _ engine: Engine
    ) throws {
        let (test, address) = try Self.world(engine)
        let (addresses, account) = (test.store.addresses, address.account.number)
        func isOn() throws -> Bool { try addresses.address(address.address).isForwardingOn }
        let buffer = CounterBuffer(test.store.counters)
        func forward(
            _ count: Int, _ kind: CounterKind = .forwarded, day: Int64 = TestStore.today
        ) throws {
            for _ in 0..<count { buffer.count(account: account, kind: kind, day: day) }
            try buffer.flush()
            try addresses.endCounted(accounts: buffer.takeForwarded(), now: TestStore.now)
        }
        // Earlier messages do not count, nor do the user's own.
        try forward(5)
        try addresses.switchForwarding(account: account, at: nil, after: 3, TestStore.change)
        try forward(2)
        try forward(9, .replied)
        func left() throws -> Int? {
            try test.store.persons.accounts(user: "anna", since: 0, now: TestStore.now).first?
                .messagesLeft
        }
        #expect(try isOn() && left() == 1)
        try forward(1, day: TestStore.today + 1)
        #expect(try !isOn() && left() == nil)
        #expect(try Self.told(test) == ["email-disabled \(address.address.wireForm)"])
        // Switched on manually: it stays on.
        try addresses.setForwarding(address.address, on: true, TestStore.change)
        try forward(5)
        #expect(try isOn())
        // Cancelled before it took effect. If its host was killed, the hourly check finds it.
        try addresses.switchForwarding(account: account, at: nil, after: 1, TestStore.change)
        try addresses.switchForwarding(account: account, at: nil, TestStore.change)
        try forward(2)
        #expect(try isOn())
        try addresses.switchForwarding(account: account, at: nil, after: 1, TestStore.change)
        buffer.count(account: account, kind: .forwarded, day: TestStore.today)
        try buffer.flush()
        try addresses.endCounted(accounts: [account + 1], now: TestStore.now)
        #expect(try isOn())
        try addresses.endCounted(accounts: nil, now: TestStore.now)
        #expect(try !isOn())
    }
    /// What a user sees of an account's counts.
    private struct Seen: Equatable {
        let left: Int?
        let recent, total: DailyUsage
        let used: Int64?
    }

    /// What a user sees, and the limit, are the same before and after old days are summed up.
    @Test(arguments: Engine.all) func counts_summedUp_giveTheSameAnswers(_ engine: Engine) throws {
        let (test, address) = try Self.world(engine)
        let (addresses, account) = (test.store.addresses, address.account.number)
        let counters = test.store.counters
        func count(_ kind: CounterKind, _ count: Int, daysAgo: Int64) throws {
            try counters.add([
                DailyCounter(
                    accountNumber: account, day: TestStore.today - daysAgo, kind: kind, count: count
                )
            ])
        }
        func seen() throws -> Seen {
            let accounts = try test.store.persons.accounts(
                user: "anna", since: TestStore.today - 30, now: TestStore.now)
            let found = try #require(accounts.first)
            return Seen(
                left: found.messagesLeft, recent: found.recent, total: found.total,
                used: found.lastUsedDay)
        }
        func sumUp(before day: Int64) throws -> Int {
            try counters.deleteExpired(countersBefore: day, now: 0, limit: 3)
        }
        for day: Int64 in [34, 35, 36, 37, 100, 400] {
            try count(.forwarded, 2, daysAgo: day)
            try count(.replied, 1, daysAgo: day)
        }
        try addresses.switchForwarding(account: account, at: nil, after: 4, TestStore.change)
        try count(.forwarded, 3, daysAgo: 35)
        let before = try seen()
        #expect(before.left == 1 && before.used == TestStore.today - 34)
        #expect(before.total == DailyUsage(forwarded: 15, replied: 6))
        // In several steps, and at one day and the next.
        for daysAgo: Int64 in [36, 35, 34, 33] {
            var steps = 0
            while try sumUp(before: TestStore.today - daysAgo) > 0 { steps += 1 }
            #expect(steps > 0)
            #expect(try seen() == before, "\(daysAgo) days")
        }
        #expect(try counters.counters(account: account, since: 0).isEmpty)
        // A late count of a day that was summed up goes there too.
        try count(.forwarded, 1, daysAgo: 36)
        try addresses.endCounted(accounts: [account], now: TestStore.now)
        #expect(try addresses.address(address.address).isForwardingOn == false)
        #expect(try sumUp(before: TestStore.today) == 1)
        let after = try seen()
        #expect(after.total.forwarded == 16 && after.used == before.used)
        // The download has the sum, and it goes with the account.
        let sums: [Int64] = try test.database.values(
            "SELECT count FROM counter_totals WHERE account_id = \(account) ORDER BY kind")
        #expect(sums == [16, 6])
    }
}
