// Many events: they are changed in steps, and reads examine only some of them.

import Accounts
import Database
import Events
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct OutboxStepTests {
    private static let change = TestStore.change

    /// Pending events, one for each of these accounts, in this order, for the first endpoint.
    static func post(_ test: TestStore, accounts: some Sequence<Int>) throws {
        let list = accounts.map { $0 }
        let endpoint = try #require(try test.store.endpoints.endpoints().first).number
        let before =
            try test.database.value("SELECT COALESCE(MAX(id), 0) FROM outbox", Int64.self) ?? 0
        try test.database.write(.durable) { connection in
            for (place, account) in list.enumerated() {
                try connection.run(
                    """
                    INSERT INTO outbox (jti, endpoint_id, account_id, type, sub, event_time, created_at, state, park_at, next_attempt_at)
                    VALUES (?1, ?2, ?3, 'test', 'test', 1, ?4, 'pending', ?5, 0)
                    """,
                    [
                        .text("j\(before)-\(place)"), .integer(endpoint), .integer(Int64(account)),
                        .integer(TestStore.now),
                        .integer(TestStore.now + 3 * 86_400),
                    ])
            }
        }
    }

    /// A change of all events of a team in one transaction would make other writers wait for as
    /// long.
    @Test(arguments: Engine.all) func outbox_manyParkedOrRetried_goesInSteps(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let count = 2 * OutboxRepository.step + 10
        try Self.post(test, accounts: 1...count)
        let recorder = RecordingDatabase(test.database)
        let outbox = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).outbox
        #expect(try outbox.park(team: "juice", Self.change) == count)
        #expect(try outbox.events(state: .parked, limit: count + 1).count == count)
        #expect(try outbox.retry(team: "juice", Self.change) == count)
        #expect(try outbox.events(state: .pending, limit: count + 1).count == count)
        // Each step has its own audit line; no step searches for its events again.
        let lines = try test.store.audit.entries(limit: 6).map(\.detail)
        #expect(
            lines == [
                "10 events", "1000 events", "1000 events", "10 events", "1000 events",
                "1000 events",
            ])
        #expect(
            recorder.changes("SELECT o.id FROM outbox").isEmpty
                && recorder.changes("SELECT id FROM outbox").isEmpty)
        let changes = recorder.changes("UPDATE outbox")
        #expect(changes.count > 3 && changes.allSatisfy { $0.count < 200 })
        #expect(try outbox.parkExpired(now: Self.change.now + 4 * 86_400) == count)
        #expect(try outbox.events(state: .pending).isEmpty)
    }

    /// The events are selected once. Otherwise events that arrive during the change would be
    /// changed too, without end.
    @Test(arguments: Engine.all) func outbox_eventAddedWhileParking_isNotParked(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let count = OutboxRepository.step + 10
        try Self.post(test, accounts: 1...count)
        let recorder = RecordingDatabase(test.database) { () throws(StoreFailure) in
            do { try Self.post(test, accounts: [count + 1]) } catch {
                throw .refused(.invalid, "\(error)")
            }
        }
        let outbox = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).outbox
        #expect(try outbox.park(team: "juice", Self.change) == count)
        #expect(try test.store.outbox.events(state: .pending).count == 2)
    }

    /// If a later step fails, the events of the earlier steps are still due, and must be delivered.
    @Test(arguments: Engine.all) func outbox_retryFailsHalfway_raisesSignal(_ engine: Engine) throws
    {
        let test = try LifecycleTests.world(engine)
        try Self.post(test, accounts: 1...(OutboxRepository.step + 10))
        _ = try test.store.outbox.park(team: "juice", Self.change)
        let recorder = RecordingDatabase(test.database) { () throws(StoreFailure) in
            throw StoreFailure.temporary(.busy, "a test")
        }
        let outbox = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).outbox
        let raised = Mutex(0)
        outbox.signal.onRaise { raised.withLock { $0 += 1 } }
        #expect(throws: StoreFailure.temporary(.busy)) {
            try outbox.retry(team: "juice", Self.change)
        }
        #expect(
            try test.store.outbox.events(state: .pending, limit: 2_000).count
                == OutboxRepository.step)
        #expect(raised.withLock { $0 } == 1)
    }

    /// An account with a thousand events must not delay other accounts.
    @Test(arguments: Engine.all) func outbox_accountWithManyEvents_blocksNoOther(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        try Self.post(test, accounts: Array(repeating: 5, count: 50) + [7, 3, 9, 7])
        let endpoint = try #require(try test.store.outbox.waitingEndpoints().first).number
        let lease = try test.deliveryLease()
        func due(limit: Int, window: Int, isProbe: Bool = false) throws -> [Int64] {
            try #require(
                try test.store.outbox.due(
                    endpoint: endpoint, now: TestStore.now, isProbe: isProbe, limit: limit,
                    window: window, under: lease)
            ).map(\.accountNumber)
        }
        #expect(try due(limit: 10, window: 100) == [5, 7, 3, 9])
        // The first events that are examined all belong to one account.
        #expect(try due(limit: 10, window: 8) == [5, 7, 3, 9])
        #expect(try due(limit: 2, window: 8).count == 2)
        #expect(try Set(due(limit: 10, window: 8, isProbe: true)) == [3, 5, 7, 9])
        // Fewer events than accounts are examined: each account still gets its turn.
        var seen: Set<Int64> = []
        for _ in 0..<200 where seen.count < 4 { seen.formUnion(try due(limit: 10, window: 2)) }
        #expect(seen == [3, 5, 7, 9])
    }

    /// An event that is not due is not selected either by the search of other accounts.
    @Test(arguments: Engine.all) func outbox_eventNotDue_isNotTaken(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        try Self.post(test, accounts: [7] + Array(repeating: 5, count: 50))
        let endpoint = try #require(try test.store.outbox.waitingEndpoints().first).number
        let lease = try test.deliveryLease()
        let event = try #require(try test.store.outbox.events(account: 7).first)
        let failure = DeliveryFailure(
            reason: "500", isEndpoints: false, endpointFailures: 0, retryEventAt: TestStore.now + 5,
            retryEndpointAt: 0)
        #expect(
            try test.store.outbox.recordResults(
                [DeliveryResult(event, failure: failure)], under: lease, now: TestStore.now))
        func due(_ now: Int64) throws -> [Int64]? {
            try test.store.outbox.due(
                endpoint: endpoint, now: now, isProbe: false, limit: 10, window: 8, under: lease)?
                .map(
                    \.accountNumber)
        }
        #expect(try due(TestStore.now + 4) == [5])
        #expect(try due(TestStore.now + 5) == [5, 7])
    }

    /// Counting all waiting events each second would cost too much.
    @Test(arguments: Engine.all) func outbox_backlog_countsUpToLimit(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        #expect(
            try test.store.outbox.backlog()
                == OutboxRepository.Backlog(events: 0, oldest: nil, isWhole: true))
        try Self.post(test, accounts: 1...30)
        #expect(
            try test.store.outbox.backlog()
                == OutboxRepository.Backlog(events: 30, oldest: TestStore.now, isWhole: true))
        #expect(
            try test.store.outbox.backlog(limit: 20)
                == OutboxRepository.Backlog(events: 20, oldest: TestStore.now, isWhole: false))
    }

    /// Events that wait for receivers that poll are not read for the backlog.
    @Test(arguments: Engine.all) func outbox_polledEvents_areNotInBacklog(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let endpoint = try #require(try test.store.endpoints.endpoints().first).number
        let stream = try StreamTests.polledStream(test)
        try Self.post(test, accounts: 1...40)
        try test.database.write(.durable) { connection in
            try connection.run(
                "UPDATE outbox SET endpoint_id = \(stream.number) WHERE account_id > 10")
        }
        let recorder = RecordingDatabase(test.database)
        let outbox = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).outbox
        #expect(
            try outbox.backlog()
                == OutboxRepository.Backlog(events: 10, oldest: TestStore.now, isWhole: true))
        #expect(
            try outbox.backlog(limit: 10)
                == OutboxRepository.Backlog(events: 10, oldest: TestStore.now, isWhole: false))
        let counted = recorder.statements.filter { $0.key.contains("MIN(created_at)") }
        #expect(counted.count == 1 && counted.values.allSatisfy { $0.first == .integer(endpoint) })
    }

    /// One statement for all waiting events would block other writers for ten seconds with a
    /// million events.
    @Test(arguments: Engine.all) func outbox_endpointWorksAgain_wakesEventsInSteps(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let count = OutboxRepository.step + 10
        try Self.post(test, accounts: 1...count)
        let endpoint = try #require(try test.store.endpoints.endpoints().first).number
        let (tried, later) = (TestStore.now, TestStore.now + 3_600)
        try test.database.write(.durable) { connection in
            try connection.run(
                "UPDATE outbox SET next_attempt_at = \(later), last_attempt_at = \(tried)")
            // This event fails with every attempt, and is not tried again with each other event.
            try connection.run(
                "UPDATE outbox SET last_attempt_at = \(tried + 60) WHERE account_id = 7")
        }
        let former = try test.deliveryLease()
        try test.store.leases.release(former)
        let lease = try test.deliveryLease()
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        func waiting() throws -> Int64? {
            try test.database.value(
                "SELECT COUNT(*) FROM outbox WHERE next_attempt_at = \(later)", Int64.self)
        }
        #expect(try !store.outbox.wake(endpoint: endpoint, under: former, now: tried + 60))
        #expect(try waiting() == Int64(count))
        #expect(try store.outbox.wake(endpoint: endpoint, under: lease, now: tried + 60))
        #expect(try waiting() == 10)
        #expect(try !store.outbox.wake(endpoint: endpoint, under: lease, now: tried + 60))
        #expect(try waiting() == 1)
        #expect(try !store.outbox.wake(endpoint: endpoint, under: lease, now: tried + 60))
        // A new URL makes all events due at once.
        _ = try store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://new.example/"), Self.change)
        #expect(try waiting() == 0)
        let changes = recorder.changes("UPDATE outbox")
        #expect(changes.count > 3 && changes.allSatisfy { $0.count < 200 })
    }

    /// A page of a team with few events must not be searched for among the events of all teams.
    @Test(arguments: Engine.all) func outbox_pageOfTeamEvents_isInOrder(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let stream = try StreamTests.polledStream(test)
        try Self.post(test, accounts: 1...40)
        try test.database.write(.durable) { connection in
            try connection.run(
                "UPDATE outbox SET endpoint_id = \(stream.number) WHERE account_id % 3 = 0")
            try connection.run(
                "UPDATE outbox SET state = 'parked', ended_at = \(TestStore.now) WHERE account_id % 5 = 0"
            )
        }
        func accounts(
            _ state: OutboxEvent.State? = nil, before: Int64? = nil, limit: Int
        ) throws -> [Int64] {
            try test.store.outbox.events(team: "juice", state: state, before: before, limit: limit)
                .map(\.accountNumber)
        }
        #expect(try accounts(limit: 100) == (1...40).reversed())
        let page = try test.store.outbox.events(team: "juice", limit: 12)
        #expect(page.map(\.accountNumber) == (29...40).reversed())
        #expect(try accounts(before: page.last?.number, limit: 3) == [28, 27, 26])
        #expect(try accounts(.parked, limit: 3) == [40, 35, 30])
        #expect(try accounts(.delivered, limit: 3).isEmpty)
        #expect(
            try test.store.outbox.events(state: .parked, limit: 2).map(\.accountNumber) == [40, 35])
        _ = try test.store.teams.add(id: "milk", name: "Milk", Self.change)
        #expect(try test.store.outbox.events(team: "milk").isEmpty)
        expectRefusal(.notFound) { _ = try test.store.outbox.events(team: "beer") }
    }

    /// The two locks must have different names.
    @Test(arguments: Engine.all) func deliveryLease_housekeepingLocksHeld_isFree(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let housekeeping = try #require(try test.database.lock("housekeeping"))
        let removal = try #require(try test.database.lock("removal"))
        #expect(try test.database.lock("housekeeping") == nil)
        let lease = try test.deliveryLease()
        #expect(try test.store.leases.renew(lease))
        housekeeping.release()
        removal.release()
        #expect(try test.store.leases.renew(lease))
        // The delivery does not block housekeeping either.
        #expect(try test.database.lock("housekeeping") != nil)
    }
}
