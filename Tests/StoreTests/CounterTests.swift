// Counters, limits and single-use marks: exact under concurrency.

import Accounts
import Database
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct CounterTests {
    @Test(arguments: Engine.all) func forwardedByDomain_severalInboxes_sumsByDayAndDomain(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        for user in ["u1", "u2"] {
            try test.user(user)
            let account = try test.address(user).account.number
            try test.store.counters.add([
                DailyCounter(accountNumber: account, day: 7, kind: .forwarded, count: 3),
                DailyCounter(accountNumber: account, day: 7, kind: .replied, count: 5),
                DailyCounter(accountNumber: account, day: 8, kind: .forwarded, count: 2),
            ])
        }
        #expect(try test.store.relay.forwardedByDomain(day: 7) == ["home.example": 6])
        #expect(try test.store.relay.forwardedByDomain(day: 8) == ["home.example": 4])
        #expect(try test.store.relay.forwardedByDomain(day: 9).isEmpty)
    }

    @Test(arguments: Engine.all) func reserve_concurrently_neverPassesLimit(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        // A second handle acts as another process.
        let other = try engine.open(test.folder.url)
        defer { try? other.close() }
        let stores = [
            test.store.counters,
            Store(database: other, keys: TestStore.keys(), relayDomains: ["relay.example"])
                .counters,
        ]
        let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                let counters = stores[number % 2]
                group.addTask {
                    try counters.reserve(
                        account: account, kind: .forwarded, day: TestStore.today, limit: 73)
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(granted == 73)
        let counters = test.store.counters
        #expect(try counters.count(account: account, kind: .forwarded, day: TestStore.today) == 73)
        #expect(
            try !counters.wouldReserve(
                account: account, kind: .forwarded, day: TestStore.today, limit: 73))
        try counters.release(account: account, kind: .forwarded, day: TestStore.today)
        #expect(
            try counters.wouldReserve(
                account: account, kind: .forwarded, day: TestStore.today, limit: 73))
        #expect(
            try counters.reserve(
                account: account, kind: .forwarded, day: TestStore.today, limit: 73))
        #expect(
            try !counters.reserve(
                account: account, kind: .forwarded, day: TestStore.today, limit: 73))
        #expect(
            try counters.reserve(account: account, kind: .replied, day: TestStore.today, limit: 1))
        #expect(
            try counters.reserve(
                account: account, kind: .forwarded, day: TestStore.today + 1, limit: 73))
        #expect(
            try !counters.reserve(
                account: account, kind: .overLimit, day: TestStore.today, limit: 0))
    }

    @Test(arguments: Engine.all) func add_batch_sumsAndSkipsUnknownAccounts(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        func counter(
            _ account: Int64, _ kind: CounterKind, _ day: Int64, _ count: Int
        ) -> DailyCounter {
            DailyCounter(accountNumber: account, day: day, kind: kind, count: count)
        }
        try test.store.counters.add([
            counter(account, .automaticDiscarded, 10, 2),
            counter(account, .automaticDiscarded, 10, 3),
            counter(account + 999, .forwarded, 10, 1), counter(account, .bouncedPermanently, 11, 1),
        ])
        #expect(
            try test.store.counters.counters(account: account, since: 0) == [
                counter(account, .automaticDiscarded, 10, 5),
                counter(account, .bouncedPermanently, 11, 1),
            ])
        #expect(try test.store.counters.deleteExpired(countersBefore: 11, now: 0) == 1)
        #expect(try test.store.counters.deleteExpired(countersBefore: 11, now: 0) == 0)
        #expect(try test.store.counters.counters(account: account, since: 0).map(\.day) == [11])
    }

    @Test(arguments: Engine.all) func automaticReplyReserve_sameCorrespondentAndDay_isGrantedOnce(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        let one = try test.address("u1").account.number
        let two = try test.address("u2").account.number
        let counters = test.store.counters
        #expect(
            try counters.wouldReserveAutomaticReply(account: one, correspondentKey: [1, 2], day: 5))
        #expect(try counters.automaticReplyReserve(account: one, correspondentKey: [1, 2], day: 5))
        #expect(
            try !counters.wouldReserveAutomaticReply(
                account: one, correspondentKey: [1, 2], day: 5))
        #expect(
            try !counters.automaticReplyReserve(account: one, correspondentKey: [1, 2], day: 5))
        #expect(try counters.automaticReplyReserve(account: one, correspondentKey: [1, 3], day: 5))
        #expect(try counters.automaticReplyReserve(account: one, correspondentKey: [1, 2], day: 6))
        #expect(try counters.automaticReplyReserve(account: two, correspondentKey: [1, 2], day: 5))
        #expect(try counters.deleteExpired(countersBefore: 0, now: 7 * 86_400) == 3)
        #expect(
            try !counters.automaticReplyReserve(account: one, correspondentKey: [1, 2], day: 6))
    }

    @Test(arguments: Engine.all) func once_sameMark_countsOnce(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        #expect(
            try test.store.counters.once(
                account: account, purpose: "bounce", mark: [9], expiresAt: 100))
        #expect(
            try !test.store.counters.once(
                account: account, purpose: "bounce", mark: [9], expiresAt: 100))
        #expect(
            try !test.store.counters.once(
                account: account + 1, purpose: "bounce", mark: [9], expiresAt: 100))
    }

    @Test(arguments: Engine.all) func counterBuffer_storeFails_keepsCounts(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let buffer = CounterBuffer(test.store.counters)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask { buffer.count(account: account, kind: .overLimit, day: 3) }
            }
        }
        #expect(try test.store.counters.count(account: account, kind: .overLimit, day: 3) == 0)
        try test.database.write(.durable) {
            try $0.runScript("ALTER TABLE daily_counters RENAME TO away")
        }
        #expect(throws: StoreFailure.permanent(.statement)) { try buffer.flush() }
        try test.database.write(.durable) {
            try $0.runScript("ALTER TABLE away RENAME TO daily_counters")
        }
        buffer.count(account: account, kind: .overLimit, day: 3)
        try buffer.flush()
        try buffer.flush()
        #expect(try test.store.counters.count(account: account, kind: .overLimit, day: 3) == 101)
        #expect(buffer.dropped == 0)
    }

    @Test(arguments: Engine.all) func counterBuffer_farFromLimit_writesOnlyOnFlush(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let counters = test.store.counters
        let buffer = CounterBuffer(counters)
        func stored() throws -> Int {
            try counters.count(account: account, kind: .forwarded, day: 3)
        }
        func reserve(now: Int64 = 0) throws -> Bool {
            try buffer.reserve(account: account, kind: .forwarded, day: 3, limit: 160, now: now)
        }
        // Nothing is known yet, so the store counts.
        #expect(try reserve())
        #expect(try stored() == 1)
        for _ in 0..<10 { #expect(try reserve()) }
        #expect(try stored() == 1)
        // At most a sixteenth of the limit is counted ahead of the store.
        #expect(try reserve())
        #expect(try stored() == 12)
        #expect(try reserve())
        try buffer.flush()
        #expect(try stored() == 13)
        // The value that was read with the account is used while it is fresh.
        buffer.note(13, account: account, kind: .forwarded, day: 3, now: 100)
        #expect(try reserve(now: 110))
        #expect(try stored() == 13)
        #expect(try reserve(now: 111))
        #expect(try stored() == 15)
        // A message that was not accepted after all, counted in memory or in the store.
        #expect(try reserve(now: 111))
        try buffer.release(account: account, kind: .forwarded, day: 3)
        try buffer.release(account: account, kind: .forwarded, day: 3)
        try buffer.flush()
        #expect(try stored() == 14)
        // Near the limit each message is counted in the store.
        try counters.add([
            DailyCounter(accountNumber: account, day: 3, kind: .forwarded, count: 110)
        ])
        buffer.note(124, account: account, kind: .forwarded, day: 3, now: 200)
        #expect(try reserve(now: 200))
        #expect(try stored() == 125)
    }

    /// While the store is slow, a waiting message must not allow another part of the limit to be
    /// counted in memory.
    @Test(arguments: Engine.all) func counterBuffer_slowStore_countsOnePartAhead(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let buffer = CounterBuffer(test.store.counters)
        // Ten messages are one part of the limit.
        @Sendable func reserve() throws -> Bool {
            try buffer.reserve(account: account, kind: .forwarded, day: 3, limit: 160, now: 0)
        }
        let (held, go, over) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        Thread.detachNewThread {
            _ = try? test.database.write(.relaxed) { connection in
                try connection.run(
                    "INSERT INTO daily_counters (account_id, day, kind, count) VALUES (\(account), 3, 1, 0)"
                )
                held.signal()
                go.wait()
            }
            over.signal()
        }
        held.wait()
        buffer.note(0, account: account, kind: .forwarded, day: 3, now: 0)
        for _ in 0..<10 { #expect(try reserve()) }
        // The eleventh writes the ten, and waits. The twelfth must not begin a new part.
        for _ in 0..<2 {
            Thread.detachNewThread {
                _ = try? reserve()
                over.signal()
            }
        }
        #expect(
            over.wait(timeout: .now() + .milliseconds(300)) == .timedOut, "both wait for the store")
        go.signal()
        for _ in 0..<3 { #expect(over.wait(timeout: .now() + 60) == .success) }
        try buffer.flush()
        #expect(try test.store.counters.count(account: account, kind: .forwarded, day: 3) == 12)
    }

    /// Counts that are being written must count toward the limit for other threads.
    @Test(arguments: Engine.all) func counterBuffer_countsBeingWritten_countTowardsLimit(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let isNextHeld = Mutex(false)
        let (held, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        @Sendable func hold() {
            let isHeld = isNextHeld.withLock { isNext in
                defer { isNext = false }
                return isNext
            }
            guard isHeld else { return }
            held.signal()
            go.wait()
        }
        let database = RecordingDatabase(test.database, beforeWrite: hold)
        let buffer = CounterBuffer(
            Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
                .counters)
        // Ten messages are one part of the limit.
        @Sendable func reserve() throws -> Bool {
            try buffer.reserve(account: account, kind: .forwarded, day: 3, limit: 160, now: 0)
        }
        buffer.note(0, account: account, kind: .forwarded, day: 3, now: 0)
        for _ in 0..<10 { #expect(try reserve()) }
        // The eleventh writes the ten, and is blocked during its write.
        let over = DispatchSemaphore(value: 0)
        let last = Mutex(true)
        isNextHeld.withLock { $0 = true }
        Thread.detachNewThread {
            let isGranted = (try? reserve()) ?? true
            last.withLock { $0 = isGranted }
            over.signal()
        }
        held.wait()
        var granted = 10
        while try reserve() { granted += 1 }
        #expect(granted == 160)
        go.signal()
        #expect(over.wait(timeout: .now() + 60) == .success)
        #expect(last.withLock { $0 } == false)
        try buffer.flush()
        #expect(try test.store.counters.count(account: account, kind: .forwarded, day: 3) == 160)
    }

    /// A reservation that waits for the store does not know of counts that begin meanwhile.
    @Test(arguments: Engine.all) func counterBuffer_reservationWaitsWhileOthersCount_keepsLimit(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let next = Mutex<DispatchSemaphore?>(nil)
        let (held, over) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        @Sendable func hold() {
            let go = next.withLock { next in
                defer { next = nil }
                return next
            }
            guard let go else { return }
            held.signal()
            go.wait()
        }
        let database = RecordingDatabase(test.database, beforeWrite: hold)
        let buffer = CounterBuffer(
            Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
                .counters)
        @Sendable func reserve() throws -> Bool {
            try buffer.reserve(account: account, kind: .forwarded, day: 3, limit: 160, now: 0)
        }
        let granted = Mutex(0)
        // The count is not known yet, so the first one asks the store, and is held.
        let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        next.withLock { $0 = first }
        Thread.detachNewThread {
            if (try? reserve()) == true { granted.withLock { $0 += 1 } }
            over.signal()
        }
        held.wait()
        buffer.note(0, account: account, kind: .forwarded, day: 3, now: 0)
        for _ in 0..<5 where try reserve() { granted.withLock { $0 += 1 } }
        // What they left to be written is held too, if there is anything.
        next.withLock { $0 = second }
        Thread.detachNewThread {
            _ = try? buffer.flush()
            held.signal()
            over.signal()
        }
        held.wait()
        next.withLock { $0 = nil }
        while try reserve() { granted.withLock { $0 += 1 } }
        first.signal()
        #expect(over.wait(timeout: .now() + 60) == .success)
        second.signal()
        #expect(over.wait(timeout: .now() + 60) == .success)
        try buffer.flush()
        #expect(granted.withLock { $0 } == 160)
        #expect(try test.store.counters.count(account: account, kind: .forwarded, day: 3) == 160)
    }

    @Test(arguments: Engine.all) func counterBuffer_oneOrSeveralHosts_keepsLimit(
        _ engine: Engine
    ) async throws {
        for hosts in [1, 3] {
            let test = try TestStore(engine)
            try test.user("u1")
            let account = try test.address("u1").account.number
            let buffers = (0..<hosts).map { _ in CounterBuffer(test.store.counters) }
            let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<300 {
                    let buffer = buffers[number % hosts]
                    group.addTask {
                        if number % 40 == 39 { try buffer.flush() }
                        return try buffer.reserve(
                            account: account, kind: .replied, day: 1, limit: 173, now: 0)
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            for buffer in buffers { try buffer.flush() }
            #expect(
                try test.store.counters.count(account: account, kind: .replied, day: 1) == granted)
            #expect((173...173 + (hosts - 1) * 10).contains(granted), "\(hosts) hosts")
        }
    }

    @Test(arguments: Engine.all) func counterBuffer_storeAway_keepsReservations(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let buffer = CounterBuffer(test.store.counters)
        func reserve() throws -> Bool {
            try buffer.reserve(account: account, kind: .forwarded, day: 3, limit: 32, now: 0)
        }
        for _ in 0..<3 { #expect(try reserve()) }
        try test.database.write(.durable) {
            try $0.runScript("ALTER TABLE daily_counters RENAME TO away")
        }
        #expect(throws: StoreFailure.permanent(.statement)) { try reserve() }
        #expect(throws: StoreFailure.permanent(.statement)) { try buffer.flush() }
        try test.database.write(.durable) {
            try $0.runScript("ALTER TABLE away RENAME TO daily_counters")
        }
        try buffer.flush()
        #expect(try test.store.counters.count(account: account, kind: .forwarded, day: 3) == 3)
        #expect(try !buffer.reserve(account: account, kind: .forwarded, day: 4, limit: 0, now: 0))
    }
}
