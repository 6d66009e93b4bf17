// Decisions that wait for the log. A decision is answered once it is here, and written within a
// second.

import Concurrency
import Database
import Synchronization

/// Stores the data to write; `flush` writes it in transactions of `batch` decisions. The owner
/// flushes at least every second, runs `writeBatches`, and flushes again at shutdown. If the
/// process is killed, decisions since the last flush are lost. While the store is unavailable, up
/// to `capacity` decisions wait; further ones are dropped and counted.
package final class DecisionLogBuffer: Sendable {
    private struct State {
        var records: [DecisionRecord] = []
        /// Requests answered while the store was unavailable.
        var decisionWrites: [DecisionWrite] = []
        /// By number of the grant: when it was seen.
        var seen: [Int64: Int64] = [:]
        /// The decisions that `flush` is writing now. They can still be found.
        var inFlight: [DecisionRecord] = []
        /// How many of `inFlight` are written.
        var written = 0
        var dropped = 0
        /// Callers that wait for room, in order, and whether a flush for them has started.
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isRoomBeingMade = false

        /// Entries that take up room.
        var count: Int { records.count + decisionWrites.count }
        var all: Int { count + inFlight.count - written }
    }

    /// About a kilobyte each.
    package static let standardCapacity = 50_000
    /// Decisions in one transaction. It takes some milliseconds, during which other writers wait,
    /// and on busy processors requests too.
    private static let batch = 128

    private let log: DecisionRepository
    private let decisionWrites: DecisionWriteRepository
    /// Counts of policies, written together with the log.
    package let velocity: VelocityBuffer
    private let capacity: Int
    private let state = Mutex(State())
    /// One flush at a time, to keep the order.
    private let flushing = Mutex(())
    /// Gives one signal for each full batch.
    private let (batches, gathered) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    package init(
        _ log: DecisionRepository, _ decisionWrites: DecisionWriteRepository,
        capacity: Int = standardCapacity
    ) {
        self.log = log
        self.decisionWrites = decisionWrites
        self.capacity = capacity
        velocity = VelocityBuffer(VelocityRepository(database: log.database))
    }

    /// Queues a decision that changes nothing. Also records when its grant was seen, if that must
    /// be written.
    package func add(_ record: DecisionRecord, seen: (grant: Int64, at: Int64)? = nil) {
        let isBatch = state.withLock { state in
            guard state.count < capacity else {
                state.dropped += 1
                return false
            }
            state.records.append(record)
            if let seen { state.seen[seen.grant] = seen.at }
            return state.records.count % Self.batch == 0
        }
        if isBatch { gathered.yield() }
    }

    /// Queues a decision with its changes: for requests that were answered while the store was
    /// unavailable.
    package func add(_ decisionWrite: DecisionWrite) {
        state.withLock { state in
            guard state.count < capacity else {
                state.dropped += 1
                return
            }
            state.decisionWrites.append(decisionWrite)
        }
    }

    /// Number of decisions dropped for lack of room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Number of decisions waiting.
    package var count: Int { state.withLock { $0.all } }

    /// A decision that is not written yet.
    package func pending(_ id: String) -> DecisionRecord? {
        state.withLock { state in
            state.records.last { $0.id == id } ?? state.decisionWrites.last { $0.record?.id == id }?
                .record
                ?? state.inFlight.last { $0.id == id }
        }
    }

    // MARK: Room

    /// If more than half of the capacity is used, waits until one decision was written for each
    /// earlier waiter and for this one. So a slow store limits the rate of requests. The limit is
    /// half of the capacity, so that a disk that takes some seconds to sync causes no delay. If the
    /// store fails, all waits end.
    package func waitForRoom(_ executor: any BlockingExecutor) async {
        guard count > capacity / 2 else { return }
        await withCheckedContinuation { continuation in
            let starts = state.withLock { state in
                state.waiting.append(continuation)
                defer { state.isRoomBeingMade = true }
                return !state.isRoomBeingMade
            }
            guard starts else { return }
            Task {
                try? await executor.run { try self.flush() }
                let left = state.withLock { state in
                    defer { (state.waiting, state.isRoomBeingMade) = ([], false) }
                    return state.waiting
                }
                for waiting in left { waiting.resume() }
            }
        }
    }

    /// Resumes as many waiters as decisions were written.
    private func letGoOn(_ count: Int) {
        let some = state.withLock { state in
            defer { state.waiting.removeFirst(min(count, state.waiting.count)) }
            return state.waiting.prefix(count)
        }
        for waiting in some { waiting.resume() }
    }

    // MARK: Writing

    /// Writes each batch as soon as it is full, until the task is cancelled. It writes evenly, on a
    /// background thread with lower priority than requests. Decisions that cannot be written wait
    /// for the owner's next flush, which reports the error.
    package func writeBatches() async {
        let (wakeUp, isOver) = (SystemSemaphore(), Monitor(false))
        SystemThread.detach(isBackground: true) { [self] in
            while true {
                wakeUp.wait()
                if isOver.with({ $0 }) { return }
                try? flush()
            }
        }
        for await _ in batches { wakeUp.signal() }
        isOver.with { $0 = true }
        wakeUp.signal()
    }

    /// Writes the waiting decisions. If the store is unavailable, they wait for the next flush, and
    /// the error is thrown.
    package func flush() throws(StoreFailure) {
        try flushing.withLock { _ throws(StoreFailure) in
            try velocity.flush()
            try writeAll()
        }
    }

    private func writeAll() throws(StoreFailure) {
        let (records, pending, seen) = state.withLock { state in
            let taken = (state.records, state.decisionWrites, state.seen)
            state.inFlight = state.records + state.decisionWrites.compactMap(\.record)
            state.records = []
            state.decisionWrites = []
            state.seen = [:]
            return taken
        }
        var (rest, left) = (records[...], pending[...])
        do {
            while !rest.isEmpty {
                let batch = rest.prefix(Self.batch)
                try log.insert(batch)
                rest = rest.dropFirst(batch.count)
                state.withLock { $0.written += batch.count }
                letGoOn(batch.count)
            }
            try decisionWrites.noteSeen(seen)
            while let decisionWrite = left.first {
                // Another request has consumed the nonce. The decision was already sent, so it is
                // logged.
                if case .nonceConsumed = try decisionWrites.apply(decisionWrite),
                    let record = decisionWrite.record
                {
                    try log.insert([record], durability: .durable)
                }
                left = left.dropFirst()
                if decisionWrite.record != nil { state.withLock { $0.written += 1 } }
                letGoOn(1)
            }
            state.withLock { ($0.inFlight, $0.written) = ([], 0) }
        } catch {
            // Records of the failed batch that were already written are skipped the next time.
            state.withLock { state in
                (state.inFlight, state.written) = ([], 0)
                state.records = Array(rest) + state.records
                state.decisionWrites = Array(left) + state.decisionWrites
                state.seen.merge(seen) { max($0, $1) }
            }
            throw error
        }
    }
}
