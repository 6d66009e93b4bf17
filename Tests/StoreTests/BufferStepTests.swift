// What gathers in memory is written in steps, each once: counts, marks, refusals.

import Accounts
import Database
import InternetMessage
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct BufferStepTests {
    /// After trouble of the store all that had gathered was written in one transaction, for which mail waited.
    @Test(arguments: Engine.all) func whatGatheredIsWrittenInStepsAndOnce(_ engine: Engine) throws {
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
            // The second step of marks, and then of counts, was written, and whoever wrote it does not know.
            if count == 2 || count == 5 { throw StoreFailure.temporary(.busy, "a test") }
        }
        let buffer = CounterBuffer(Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"]).counters)
        for day in 1...days {
            buffer.count(account: account, kind: .overLimit, day: day)
            buffer.marks.add([[UInt8(day & 255), UInt8(day >> 8)]], account: account, expiresAt: 100)
        }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        try buffer.flush()
        try buffer.flush()
        let counts = try test.store.counters.counters(account: account, since: 1).map(\.count)
        // Those that may not have been written are written again; none of the others is.
        #expect(counts == Array(repeating: 1, count: CounterBuffer.step) + Array(repeating: 2, count: 5))
        #expect(try test.database.value("SELECT COUNT(*) FROM once_marks", Int64.self) == days)
        #expect(database.changes("INSERT INTO daily_counters").count == Int(days) + 5)
    }

    /// Addresses that end after so many messages are looked at for these accounts alone.
    @Test(arguments: Engine.all) func accountsWithMessagesAreToldAlsoWhereALaterStepFailed(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let writes = Mutex(0)
        let database = RecordingDatabase(test.database) { () throws(StoreFailure) in
            let count = writes.withLock { count in
                count += 1
                return count
            }
            if count == 2 { throw StoreFailure.temporary(.busy, "a test") }
        }
        let buffer = CounterBuffer(Store(database: database, keys: TestStore.keys(), relayDomains: ["relay.example"]).counters)
        let accounts = (1...Int64(CounterBuffer.step + 5)).map { $0 }
        for account in accounts { buffer.count(account: account, kind: .forwarded, day: 3) }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        // Who writes a bounce down flushes too, and has no use for them.
        try buffer.flush()
        try buffer.flush()
        #expect(buffer.takeForwarded() == accounts)
        #expect(buffer.takeForwarded().isEmpty)
        buffer.putBack(forwarded: [2, 1])
        #expect(buffer.takeForwarded() == [1, 2])
    }

    @Test func marksAreDroppedBeyondWhatIsHeldAlsoWhileTheStoreIsAway() throws {
        let test = try TestStore(.sqlite)
        let buffer = CounterBuffer(test.store.counters).marks
        func mark(_ number: Int) -> [UInt8] { [0, 8, 16].map { UInt8(number >> $0 & 255) } }
        buffer.add((1..<MarkBuffer.capacity).map(mark), account: 1, expiresAt: 100)
        try test.database.write(.durable) { try $0.runScript("ALTER TABLE once_marks RENAME TO away") }
        #expect(throws: StoreFailure.permanent(.statement)) { try buffer.flush() }
        let more = (0..<5).map { mark(MarkBuffer.capacity + $0) }
        buffer.add(more, account: 1, expiresAt: 100)
        #expect(buffer.held(more, account: 1) == [more[0]])
    }

    @Test func refusalsThatCouldNotBeWrittenStayAndNoOtherIsWrittenTwice() throws {
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
                RejectionEvent(
                    at: at, author: AddrSpec(localPart: "a", domain: "b.example"), account: 1, tellsOfAccount: false,
                    answer: "550 5.7.1", reason: "r", reference: "f"))
        }
        #expect(throws: StoreFailure.temporary(.busy)) { try buffer.flush() }
        try buffer.flush()
        #expect(written.withLock { $0.filter { $0 > 0 } } == Array(1...count))
    }
}
