// Concurrent work of several hosts and requests.

import Accounts
import Database
import Decisions
import TestSupport
import Testing

@Suite(.blocking) struct ConcurrencyTests {
    /// A request that outlasts its claim must not give its response to the next request with the
    /// same key, nor release that key.
    @Test(arguments: Engine.all) func idempotencyKey_claimExpired_ignoresLateAnswer(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let keys = test.store.idempotency
        let team = try test.store.teams.team("juice").number
        let (key, body) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        let later = TestStore.now + IdempotencyRepository.flightTime
        func claim(_ now: Int64) throws -> IdempotencyClaim {
            try keys.claim(team: team, endpoint: "/v1/decisions", key: key, body: body, now: now)
        }
        #expect(try claim(TestStore.now) == .new)
        #expect(try claim(later) == .new)
        try keys.finish(
            team: team, endpoint: "/v1/decisions", key: key, begunAt: TestStore.now, answer: "late")
        #expect(try claim(later) == .inFlight)
        try keys.abandon(team: team, endpoint: "/v1/decisions", key: key, begunAt: TestStore.now)
        #expect(try claim(later) == .inFlight)
        try keys.finish(
            team: team, endpoint: "/v1/decisions", key: key, begunAt: later, answer: "own")
        #expect(try claim(later) == .answered("own"))
    }

    /// If two hosts counted the same accounts in different orders, they would block each other
    /// until the database ends one of them.
    @Test(arguments: Engine.all) func counterBuffer_flush_writesAccountsInOrder(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        for number in 1...12 { try test.user("u\(number)") }
        let accounts = try (1...12).map { try test.address("u\($0)").account.number }
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        let buffer = CounterBuffer(store.counters)
        for account in accounts.shuffled() {
            for day in [TestStore.today, TestStore.today - 1] {
                buffer.count(account: account, kind: .forwarded, day: day)
            }
        }
        try buffer.flush()
        // The account is the last argument, the day the first.
        let counted = try recorder.changes("INSERT INTO daily_counters").map {
            [try Self.number($0.last), try Self.number($0.first)]
        }
        var expected: [[Int64]] = []
        for account in accounts.sorted() {
            expected += [[account, TestStore.today - 1], [account, TestStore.today]]
        }
        #expect(counted == expected)
    }

    private static func number(_ argument: SQLValue?) throws -> Int64 {
        guard case .integer(let number) = argument else {
            throw StoreFailure.permanent(.unexpectedData, "an argument is not a number")
        }
        return number
    }
}
