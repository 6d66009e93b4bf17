// Counts and refusals collected in memory: written in steps, each once.

import Accounts
import Database
import InternetMessage
import RelayCore
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct BufferStepTests {
    /// After an outage the collected counts are many. One transaction for all of them would delay
    /// mail.
    @Test(arguments: Engine.all) func counterBuffer_stepFails_repeatsOnlyThatStep(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let days = Int64(CounterBuffer.step + 5)
        let writes = Mutex(0)
        let database = RecordingDatabase(test.database) { () throws(StoreFailure) in
            let count = writes.withLock { count in
                count += 1
                return count
            }
            // The second step was committed, but its writer gets an error.
            if count == 2 { throw StoreFailure.temporary(.busy, "a test") }
        }
        let buffer = CounterBuffer(
            Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
                .counters)
        for day in 1...days { buffer.count(account: account, kind: .overLimit, day: day) }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        try buffer.flush()
        try buffer.flush()
        let counts = try test.store.counters.counters(account: account, since: 1).map(\.count)
        // Only counts that may not have been written are written again.
        #expect(
            counts == Array(repeating: 1, count: CounterBuffer.step) + Array(repeating: 2, count: 5)
        )
        #expect(database.changes("INSERT INTO daily_counters").count == Int(days) + 5)
    }

    /// The check of addresses that end after a number of messages reads only these accounts.
    @Test(arguments: Engine.all) func counterBuffer_laterStepFails_keepsForwardedAccounts(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let writes = Mutex(0)
        let database = RecordingDatabase(test.database) { () throws(StoreFailure) in
            let count = writes.withLock { count in
                count += 1
                return count
            }
            if count == 2 { throw StoreFailure.temporary(.busy, "a test") }
        }
        let buffer = CounterBuffer(
            Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
                .counters)
        let accounts = (1...Int64(CounterBuffer.step + 5)).map { $0 }
        for account in accounts { buffer.count(account: account, kind: .forwarded, day: 3) }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        // Recording a bounce also flushes, but does not need these accounts.
        try buffer.flush()
        try buffer.flush()
        #expect(buffer.takeForwarded() == accounts)
        #expect(buffer.takeForwarded().isEmpty)
        buffer.putBack(forwarded: [2, 1])
        #expect(buffer.takeForwarded() == [1, 2])
    }

    @Test func rejectionBuffer_stepFails_writesEachRefusalOnce() throws {
        let written = Mutex<[Int64]>([])
        let buffer = RejectionBuffer { events throws(StoreFailure) in
            if written.withLock({ $0.count == RejectionBuffer.step }) {
                written.withLock { $0.append(0) }
                throw StoreFailure.temporary(.busy, "a test")
            }
            written.withLock { $0 += events.map(\.at) }
        }
        let count = Int64(RejectionBuffer.step + 20)
        for at in 1...count {
            buffer.add(
                RefusedForward(
                    at: at,
                    attribution: ForwardAttribution(
                        author: AddrSpec(localPart: "a", domain: "b.example"), account: .highest,
                        isRegistered: true),
                    reply: .unauthorizedSender, reference: "f"))
        }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        try buffer.flush()
        #expect(written.withLock { $0.filter { $0 > 0 } } == Array(1...count))
    }
}
