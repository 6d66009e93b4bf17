// Concurrent work in the store: retention and removals beside decisions, counts and sign-ups.

import Accounts
import Database
import Events
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct SideBySideTests {
    private static func number(_ test: TestStore, _ sql: String) throws -> Int64? {
        try test.database.value(SQL(sql, []))
    }

    /// Rows that are too old are deleted, others stay, and no concurrent writer fails.
    @Test(arguments: Engine.all) func retention_duringWrites_deletesOnlyExpired(
        _ engine: Engine
    ) async throws {
        let test = try TestDecisions(engine)
        let store = test.inner.store
        let account = try test.account("u1")
        let (now, cutoff, count) = (TestStore.now, TestStore.now - 100, 150)
        let isOver = Mutex(false)
        let deletes: @Sendable () throws -> Void = {
            repeat {
                while try store.decisions.deleteExpired(before: cutoff, limit: 20) == 20 {}
                while try store.counters.deleteExpired(
                    countersBefore: TestStore.today, now: now, limit: 20) == 20
                {}
            } while !isOver.withLock { $0 }
            _ = try store.decisions.deleteExpired(before: cutoff, limit: count)
            _ = try store.counters.deleteExpired(
                countersBefore: TestStore.today, now: now, limit: 10 * count)
        }
        let writes: @Sendable () throws -> Void = {
            defer { isOver.withLock { $0 = true } }
            for number in 0..<count {
                let (old, new) = (
                    try test.record("rd_old\(number)", at: cutoff - 1),
                    try test.record("rd_new\(number)", at: cutoff)
                )
                try store.decisions.insert([old, new])
                try store.counters.add(
                    [TestStore.today - 1, TestStore.today].map { day in
                        DailyCounter(
                            accountNumber: account,
                            day: day - (day < TestStore.today ? Int64(number) : 0),
                            kind: .forwarded,
                            count: 1)
                    })
                _ = try store.counters.once(
                    account: account, purpose: "bounce", mark: [UInt8(number)],
                    expiresAt: now + Int64(number % 2))
            }
        }
        try await together([deletes, deletes, writes])
        #expect(
            try Self.number(
                test.inner, "SELECT COUNT(*) FROM decisions WHERE evaluated_at >= \(cutoff)")
                == Int64(count))
        #expect(try Self.number(test.inner, "SELECT COUNT(*) FROM decisions") == Int64(count))
        #expect(
            try store.counters.counters(account: account, since: 0).map(\.day) == [TestStore.today])
        #expect(
            try store.counters.count(account: account, kind: .forwarded, day: TestStore.today)
                == count)
        #expect(
            try Self.number(test.inner, "SELECT COUNT(*) FROM once_marks WHERE expires_at > \(now)")
                == Int64(count / 2))
    }

    /// In every order: nothing refers to a deleted row, every deletion writes one event, and no
    /// name is given to two accounts.
    @Test(arguments: Engine.all) func accountDeletion_duringDecisions_leavesNoReferences(
        _ engine: Engine
    ) async throws {
        let test = try TestDecisions(engine)
        let store = test.inner.store
        _ = try store.endpoints.set(
            team: "juice", app: TestDecisions.clientID,
            url: EndpointURL("https://hooks.juice.example/events"), TestStore.change)
        let users = (0..<40).map { "d\($0)" }
        for user in users { try test.inner.user(user) }
        let subjects = try users.map { try test.sub($0) }
        let accounts = try users.map { try test.account($0) }
        let decides: @Sendable () throws -> Void = {
            for (number, sub) in subjects.enumerated() {
                var decisionWrite = try test.decisionWrite(
                    .own(sub: sub), isVerified: true,
                    record: test.record("rd_\(number)_\(UInt32.random(in: 0 ... .max))"))
                (decisionWrite.isSignUp, decisionWrite.makesPending, decisionWrite.realUserStatus) =
                    (true, true, 1)
                _ = try store.decisionWrites.apply(decisionWrite)
                try store.counters.add([
                    DailyCounter(
                        accountNumber: accounts[number], day: TestStore.today, kind: .forwarded,
                        count: 1)
                ])
            }
        }
        let deletes: @Sendable () throws -> Void = {
            for account in accounts.reversed() {
                try store.accounts.delete(account: account, TestStore.change)
            }
        }
        try await together([decides, decides, deletes])
        for table in ["grants", "relay_addresses", "daily_counters", "stored_tokens"] {
            let left =
                "SELECT COUNT(*) FROM \(table) WHERE account_id IN (\(accounts.map(String.init).joined(separator: ", ")))"
            #expect(try Self.number(test.inner, left) == 0, "\(table)")
        }
        #expect(try Self.number(test.inner, "SELECT COUNT(*) FROM accounts") == 0)
        #expect(
            try Self.number(test.inner, "SELECT COUNT(*) FROM decisions WHERE grant_id IS NOT NULL")
                == 0)
        #expect(
            try Self.number(test.inner, "SELECT COUNT(*) FROM decisions") == Int64(2 * users.count))
        let told = try store.outbox.events(limit: 1_000)
        #expect(told.map(\.type) == Array(repeating: .accountDelete, count: users.count))
        #expect(Set(told.map(\.sub)) == Set(subjects))
        #expect(try !store.removals.isPending())
    }
}
