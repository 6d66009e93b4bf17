// Large teams and accounts: after their removal invisible to everyone at once, and deleted in small
// steps.

import Accounts
import Events
import InternetMessage
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct RemovalRepositoryTests {
    static let later = Change(actor: "uid:0", now: TestStore.now + 60)

    /// The stored rows of accounts and teams, table by table.
    private static func rows(_ test: TestStore, _ tables: [String]) throws -> [String: Int64] {
        try tables.reduce(into: [:]) { counts, table in
            counts[table] = try test.database.value(
                "SELECT COUNT(*) FROM \(raw: table)", Int64.self)
        }
    }

    private static let tables = [
        "accounts", "relay_addresses", "grants", "apps", "app_groups", "stored_tokens",
        "once_marks", "daily_counters",
        "decisions", "rejections",
        "outbound_sources", "api_keys",
    ]

    /// A team with this number of users, each with a relay address, a consent to an app with an
    /// endpoint, and marks.
    private static func team(
        _ engine: Engine, users: Int, marks: Int = 3
    ) throws -> (TestStore, [RelayAddress]) {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        _ = try test.store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://hooks.juice.example/events"),
            TestStore.change)
        let source = try test.store.sources.checked(
            "juice.example", envelopeDomain: nil, now: TestStore.now)
        try test.store.sources.add(team: "juice", source, TestStore.change)
        let addresses = try (0..<users).map { number in
            try test.user("u\(number)")
            return try test.address("u\(number)", app: "com.juice")
        }
        try test.store.counters.mark(
            purpose: "fan-out",
            addresses.flatMap { address in
                (0..<marks).map {
                    (
                        address.account.number, [UInt8($0 & 255), UInt8($0 >> 8)],
                        TestStore.now + 86_400
                    )
                }
            })
        return (test, addresses)
    }

    /// No query finds anything of the account.
    private static func expectGone(_ test: TestStore, _ address: RelayAddress, user: String) throws
    {
        let store = test.store
        #expect(
            try store.relay.account(number: address.account.number, day: TestStore.today) == nil)
        #expect(
            try store.relay.relayAddress(
                localPart: address.address.localPart, domain: address.address.domain,
                now: TestStore.now)
                == nil)
        expectRefusal(.notFound) { _ = try store.accounts.account(sub: address.account.sub) }
        expectRefusal(.notFound) { _ = try store.accounts.account(address.account.number) }
        expectRefusal(.notFound) { _ = try store.addresses.address(address.address) }
        #expect(try store.persons.accounts(user: user, since: 0, now: TestStore.now).isEmpty)
        #expect(
            try store.accountList.accounts(team: nil, limit: 1_000).allSatisfy {
                $0.number != address.account.number
            })
        #expect(try store.accounts.accounts().allSatisfy { $0.number != address.account.number })
        for records in try store.persons.records(user: user, now: TestStore.now)
        where [
            "accounts", "relay_addresses", "consents", "counts_by_day",
            "marks_of_what_happened_once",
        ].contains(records.name) {
            #expect(records.rows.isEmpty, "\(records.name)")
        }
    }

    /// One transaction for everything would take 40 seconds, in which other writers wait.
    @Test(arguments: Engine.all) func teamRemoval_manyAccounts_endsAtOnceDeletesInSteps(
        _ engine: Engine
    ) throws {
        let users = 120
        let (test, addresses) = try Self.team(engine, users: users)
        try test.store.teams.remove("juice", Self.later)
        var steps = 0
        repeat {
            // Halfway as at the end, at every point of an interruption.
            try Self.expectGone(test, addresses[users - 1], user: "u\(users - 1)")
            try Self.expectGone(test, addresses[0], user: "u0")
            #expect(try test.store.teams.all().isEmpty)
            expectRefusal(.notFound) { _ = try test.store.teams.team("juice") }
            #expect(try !test.store.apps.isClient("com.juice"))
            steps += 1
        } while try test.store.removals.step(now: Self.later.now)
        #expect(steps > users / 50)
        #expect(try !test.store.removals.isPending())
        #expect(
            try Self.rows(test, Self.tables)
                == Dictionary(uniqueKeysWithValues: Self.tables.map { ($0, 0) }))
        // The end of each account has one event, and no name is issued again.
        let told = try test.store.outbox.events(limit: 1_000)
        #expect(told.map(\.type) == Array(repeating: .accountDelete, count: users))
        #expect(Set(told.map(\.sub)) == Set(addresses.map(\.account.sub)))
        #expect(
            try test.database.value("SELECT COUNT(*) FROM retired_names", Int64.self)
                == Int64(2 * users))
    }

    @Test(arguments: Engine.all) func teamRemoval_pending_freesItsNames(_ engine: Engine) throws {
        let (test, addresses) = try Self.team(engine, users: 60)
        try test.store.teams.remove("juice", Self.later)
        #expect(try test.store.removals.isPending())
        _ = try test.store.teams.add(id: "juice", name: "Another", Self.later)
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, Self.later)
        let new = try test.address("u59", app: "com.juice")
        while try test.store.removals.step(now: Self.later.now) {}
        #expect(new.account.number != addresses[59].account.number)
        #expect(try test.store.accounts.accounts().map(\.number) == [new.account.number])
        #expect(
            try test.store.persons.accounts(user: "u59", since: 0, now: TestStore.now).map(\.number)
                == [new.account.number])
    }

    /// An account with a year of marks must not take one long transaction.
    @Test(arguments: Engine.all) func accountRemoval_manyRows_endsAtOnceDeletesInSteps(
        _ engine: Engine
    ) throws {
        let marks = 2 * RemovalRepository.rows
        let (test, addresses) = try Self.team(engine, users: 2, marks: marks)
        try test.store.accounts.delete(account: addresses[0].account.number, Self.later)
        #expect(try test.store.outbox.events().map(\.type) == [.accountDelete])
        #expect(try test.store.removals.isPending())
        #expect(try test.store.teams.all().map(\.id) == ["juice"])
        // The user may return before the last row is deleted.
        let back = try test.address("u0", app: "com.juice")
        #expect(back.account.number != addresses[0].account.number)
        try test.store.accounts.delete(account: back.account.number, Self.later)
        repeat {
            try Self.expectGone(test, addresses[0], user: "u0")
        } while try test.store.removals.step(now: Self.later.now)
        #expect(
            try Self.rows(test, ["accounts", "once_marks", "teams"]) == [
                "accounts": 1, "once_marks": Int64(marks), "teams": 1,
            ])
        #expect(try test.store.outbox.events().map(\.type) == [.accountDelete, .accountDelete])
        // The other account, which is as large, is removed with its user.
        try test.store.users.remove("u1", Self.later)
        #expect(
            try test.store.relay.account(number: addresses[1].account.number, day: TestStore.today)
                == nil)
        expectRefusal(.notFound) { _ = try test.store.users.user("u1") }
        while try test.store.removals.step(now: Self.later.now) {}
        #expect(
            try Self.rows(test, ["accounts", "once_marks", "teams"]) == [
                "accounts": 0, "once_marks": 0, "teams": 1,
            ])
    }

    /// The rest of a removed account must not move to the new team and become active there.
    @Test(arguments: Engine.all) func accountRemoval_appTransferred_isNotMoved(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.team(engine, users: 2, marks: 2 * RemovalRepository.rows)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", TestStore.change)
        try test.store.accounts.delete(account: addresses[0].account.number, Self.later)
        #expect(try test.store.removals.isPending())
        while try !test.store.transfers.step(app: "com.juice", Self.later).isFinished {}
        let moved = try test.store.accountList.accounts(team: nil, limit: 1_000).filter {
            $0.teamID == "milk"
        }
        #expect(moved.map(\.userID) == ["u1"])
        while try test.store.removals.step(now: Self.later.now) {}
        // The old account of u1, and the new one.
        #expect(try Self.rows(test, ["accounts", "grants"]) == ["accounts": 2, "grants": 1])
    }

    /// Accounts of the other team that have not moved must not keep a consent to an app "removed
    /// 12".
    @Test(arguments: Engine.all) func teamRemoval_appMovingToIt_endsItsConsents(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.team(engine, users: 60)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", TestStore.change)
        #expect(
            try !test.store.transfers.step(app: "com.juice", limit: 3, TestStore.change).isFinished)
        try test.store.teams.remove("milk", Self.later)
        repeat {
            #expect(
                try test.store.persons.accounts(user: "u59", since: 0, now: TestStore.now).flatMap(
                    \.consents
                ).isEmpty)
            #expect(
                try test.store.accountList.accounts(team: nil, limit: 1_000).allSatisfy(
                    \.grants.isEmpty))
        } while try test.store.removals.step(now: Self.later.now, rows: 20)
        #expect(try test.store.teams.all().map(\.id) == ["juice"])
        #expect(
            try Self.rows(test, ["grants", "apps", "app_groups"]) == [
                "grants": 0, "apps": 0, "app_groups": 0,
            ])
    }

    @Test(arguments: Engine.all) func removal_eachStep_keepsRowLimit(_ engine: Engine) throws {
        let (test, _) = try Self.team(engine, users: 80, marks: 40)
        try test.database.write(.durable) { connection in
            for number in 0..<60 {
                try connection.run(
                    """
                    INSERT INTO devices (app_id, mark, name, environment, public_key, public_sealed, counter, assertions, attested_at,
                        seen_at)
                    SELECT id, \([UInt8(number)]), 'a', 'production', 'k', \([1 as UInt8]), 0, 0, 1, 1 FROM apps
                    """)
            }
        }
        try test.store.teams.remove("juice", Self.later)
        let rows = 200
        let tables = ["once_marks", "accounts", "devices"]
        var before = try Self.rows(test, tables)
        #expect(before["devices"] == 60, "each of which takes others along")
        while try test.store.removals.step(now: Self.later.now, rows: rows) {
            let now = try Self.rows(test, tables)
            #expect(before["devices"]! - now["devices"]! <= Int64(rows / 10))
            #expect(before["once_marks"]! - now["once_marks"]! <= Int64(rows))
            #expect(before["accounts"]! - now["accounts"]! <= Int64(rows / 20))
            before = now
        }
        #expect(before == ["once_marks": 0, "accounts": 0, "devices": 0])
    }
}
