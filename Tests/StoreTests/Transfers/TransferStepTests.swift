// An app with many consents moves to another team while users sign up: in small steps without
// conflicts.

import Accounts
import Database
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct TransferStepTests {
    private static let change = TestStore.change

    /// How many consents move beside sign-ups; a higher number than in `make test` is for
    /// measurements.
    private static let count =
        ProcessInfo.processInfo.environment["POSTERN_TRANSFER"].flatMap { Int($0) } ?? 700

    /// The app com.juice of team juice, with consents of this number of users, who all have a relay
    /// address; and team milk.
    private static func world(_ engine: Engine, grants: Int) throws -> TestStore {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        _ = try test.store.teams.add(id: "milk", name: "Milk", change)
        let team = try test.store.teams.team("juice").number
        let group = try #require(try test.store.apps.apps(team: "juice").first).group.number
        let numbers =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(grants)) "
        try test.database.write(.durable) { connection in
            for statement in [
                "INSERT INTO users (handle, created_at) \(numbers) SELECT 'b' || CAST(i AS TEXT), 1 FROM n",
                "INSERT INTO accounts (team_id, user_id, sub, created_at) SELECT \(team), id, 's.' || handle, 1 FROM users ORDER BY id",
                """
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
                SELECT id, \(group), 'authorized', 1, 1 FROM accounts ORDER BY id
                """,
                """
                INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at, forwarding_on)
                SELECT id, 1, 'old' || CAST(id AS TEXT), 'relay.example', 1, id % 2 FROM accounts
                """,
            ] { try connection.run(statement, []) }
        }
        return test
    }

    private static func number(_ test: TestStore, _ sql: String) throws -> Int64? {
        try test.database.value(SQL(sql, []))
    }

    /// Everything has moved: the users, their addresses, and whether mail is wanted.
    private static func expectMoved(_ test: TestStore, grants: Int) throws {
        let juice = try test.store.teams.team("juice").number
        let milk = try test.store.teams.team("milk").number
        #expect(
            try number(
                test,
                "SELECT COUNT(*) FROM grants g JOIN accounts a ON a.id = g.account_id WHERE a.team_id = \(juice)"
            )
                == 0)
        let moved = """
            FROM account_transfers t JOIN accounts o ON o.id = t.old_account JOIN accounts n ON n.id = t.new_account
            JOIN relay_addresses r ON r.account_id = n.id AND r.is_current = 1
            JOIN relay_addresses s ON s.account_id = o.id AND s.forwarding_on = r.forwarding_on
            JOIN grants g ON g.account_id = n.id AND g.transferred_at IS NOT NULL
            JOIN transfer_subs u ON u.account_id = o.id AND u.target_team = n.team_id
            WHERE o.sub LIKE 's.b%' AND n.team_id = \(milk) AND n.user_id = o.user_id AND n.has_live_grant = 1 AND o.has_live_grant = 0
            """
        #expect(try number(test, "SELECT COUNT(*) \(moved)") == Int64(grants))
        #expect(try number(test, "SELECT COUNT(DISTINCT n.sub) \(moved)") == Int64(grants))
        #expect(
            try number(
                test,
                "SELECT COUNT(*) FROM audit WHERE action = 'address.issue' AND detail LIKE 'team:milk user:b%'"
            )
                == Int64(grants))
    }

    /// A transaction that counts all consents would conflict with every sign-up, and never end on
    /// PostgreSQL.
    @Test(arguments: Engine.all) func transfer_duringSignUps_movesAllGrants(
        _ engine: Engine
    ) async throws {
        let test = try Self.world(engine, grants: Self.count)
        _ = try test.store.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        let isOver = Mutex(false)
        let signedUp = Mutex(0)
        let store = test.store
        let signsUp: @Sendable () throws -> Void = {
            let thread = UInt32.random(in: 0 ... .max)
            let begin = ContinuousClock.now
            var number = 0
            while !isOver.withLock({ $0 }) || number == 0 {
                number += 1
                let user = "new-\(thread)-\(number)"
                _ = try store.users.add(
                    id: user, name: nil, inbox: TestStore.inbox("\(user)@home.example"),
                    isVerified: true, Self.change)
                _ = try store.grants.authorize(
                    AuthorizationRequest(clientID: "com.juice", userID: user), Self.change)
                signedUp.withLock { $0 += 1 }
                // For measurements: 120 a second, by two threads, independent of the machine's
                // speed.
                if Self.count > 700 {
                    Thread.sleep(
                        forTimeInterval: max(
                            0, (begin + .seconds(Double(number) / 60) - .now) / .seconds(1)))
                }
            }
        }
        let moves: @Sendable () throws -> Void = {
            defer { isOver.withLock { $0 = true } }
            let start = ContinuousClock.now
            try store.transfers.complete(app: "com.juice", Self.change)
            if Self.count > 700 {
                print("\(engine): \(Self.count) moved in \(ContinuousClock.now - start)")
            }
        }
        try await together([signsUp, signsUp, moves])
        if Self.count > 700 {
            print("\(engine): \(signedUp.withLock { $0 }) signed up during the transfer")
        }
        try Self.expectMoved(test, grants: Self.count)
        let transfer = try #require(try store.transfers.transfers().first)
        #expect(
            transfer.state == .finished && transfer.moved >= min(Self.count, BoundedCount.bound)
                && transfer.waiting == 0)
        // A user who signed up during the transfer has one account, with the new team.
        let milk = try store.teams.team("milk").number
        let own = try Self.number(
            test,
            "SELECT COUNT(*) FROM accounts a JOIN users u ON u.id = a.user_id WHERE u.handle LIKE 'new-%' AND a.team_id = \(milk)"
        )
        #expect(own == Int64(signedUp.withLock { $0 }))
    }

    @Test(arguments: Engine.all) func transfer_interrupted_goesOn(_ engine: Engine) throws {
        let test = try Self.world(engine, grants: 100)
        let transfers = test.store.transfers
        _ = try transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        #expect(try transfers.step(app: "com.juice", limit: 30, Self.change).isFinished == false)
        // A user whose grant still waits signs in, and the grant moves with it.
        _ = try test.store.grants.authorize(
            AuthorizationRequest(clientID: "com.juice", userID: "b77"), Self.change)
        let half = try #require(try transfers.transfers().first)
        #expect(half.state == .moving && half.moved == 31 && half.waiting == 69)
        let again = Store(
            database: test.database, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).transfers
        var steps = 0
        while try !again.step(app: "com.juice", limit: 30, Self.change).isFinished { steps += 1 }
        #expect(steps == 2)
        #expect(try #require(try transfers.transfers().first).moved == 100)
        #expect(try Self.number(test, "SELECT COUNT(*) FROM grants") == 100)
    }

    /// One statement that reads all grants to find skipped ones would take longer than a statement
    /// may.
    @Test(arguments: Engine.all) func transfer_skippedGrants_areFoundInRanges(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine, grants: 50)
        let transfers = test.store.transfers
        _ = try transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        #expect(try !transfers.step(app: "com.juice", limit: 10, Self.change).isFinished)
        let last = try #require(try Self.number(test, "SELECT MAX(id) FROM grants"))
        try test.database.write(.durable) {
            try $0.run("UPDATE app_transfers SET moved_through = \(last)")
        }
        var steps = 0
        while try !transfers.step(app: "com.juice", limit: 10, range: 7, Self.change).isFinished {
            steps += 1
        }
        #expect(steps == 5)
        #expect(try #require(try transfers.transfers().first).moved == 50)
    }

    /// A step reads and changes only the grants that it moves; its cost does not grow with the
    /// group.
    @Test(arguments: Engine.all) func transfer_step_countsNothing(_ engine: Engine) throws {
        let test = try Self.world(engine, grants: 70)
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        while try !store.transfers.step(app: "com.juice", limit: 32, Self.change).isFinished {}
        #expect(recorder.changes("grants").isEmpty == false)
        #expect(recorder.changes("COUNT(").isEmpty)
    }
}
