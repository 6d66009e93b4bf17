// Decisions on their way into the log: answered once they are here, written within a second.

import Database
import Synchronization

/// Holds what is to be written; `flush` writes it in one transaction. Whoever owns it flushes at least every second, and again
/// at shutdown: what was added since the last flush is lost when the process is killed. While the store is away it is kept, up to
/// `capacity`; beyond it decisions are dropped and counted.
package final class DecisionLogBuffer: Sendable {
    private struct State {
        var records: [DecisionRecord] = []
        /// Questions answered while the store was away.
        var decisionWrites: [DecisionWrite] = []
        /// Grant by number to the time it was seen.
        var seen: [Int64: Int64] = [:]
        /// What `flush` is writing just now: still to be found.
        var inFlight: [DecisionRecord] = []
        var dropped = 0

        var count: Int { records.count + decisionWrites.count }
    }

    /// About a kilobyte each.
    package static let standardCapacity = 50_000

    private let log: DecisionRepository
    private let decisionWrites: DecisionWriteRepository
    /// What policies count, which is written together with the log.
    package let velocity: VelocityBuffer
    private let capacity: Int
    private let state = Mutex(State())
    /// One flush at a time, so that order is kept.
    private let flushing = Mutex(())

    package init(_ log: DecisionRepository, _ decisionWrites: DecisionWriteRepository, capacity: Int = standardCapacity) {
        self.log = log
        self.decisionWrites = decisionWrites
        self.capacity = capacity
        velocity = VelocityBuffer(VelocityRepository(database: log.database))
    }

    /// Queues a decision that changes nothing, and notes when its grant was seen where that is worth writing.
    package func add(_ record: DecisionRecord, seen: (grant: Int64, at: Int64)? = nil) {
        state.withLock { state in
            guard state.count < capacity else {
                state.dropped += 1
                return
            }
            state.records.append(record)
            if let seen { state.seen[seen.grant] = seen.at }
        }
    }

    /// Queues a decision with what it settles: for questions that were answered while the store was away.
    package func add(_ decisionWrite: DecisionWrite) {
        state.withLock { state in
            guard state.count < capacity else {
                state.dropped += 1
                return
            }
            state.decisionWrites.append(decisionWrite)
        }
    }

    /// How many decisions were lost for lack of room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// How many wait.
    package var count: Int { state.withLock { $0.count + $0.inFlight.count } }

    /// A decision that is not written yet.
    package func pending(_ id: String) -> DecisionRecord? {
        state.withLock { state in
            state.records.last { $0.id == id } ?? state.decisionWrites.last { $0.record?.id == id }?.record
                ?? state.inFlight.last { $0.id == id }
        }
    }

    /// Writes what has gathered. Where the store is away it is kept for the next time, and the error is thrown.
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
        var left = pending[...]
        do {
            try log.insert(records)
            try decisionWrites.noteSeen(seen)
            while let decisionWrite = left.first {
                // A nonce that was consumed meanwhile elsewhere: the decision was given all the same, and is logged.
                if case .nonceConsumed = try decisionWrites.apply(decisionWrite), let record = decisionWrite.record {
                    try log.insert([record], durability: .durable)
                }
                left = left.dropFirst()
            }
            state.withLock { $0.inFlight = [] }
        } catch {
            // Records that were written are passed over the next time.
            state.withLock { state in
                state.inFlight = []
                state.records = records + state.records
                state.decisionWrites = Array(left) + state.decisionWrites
                state.seen.merge(seen) { max($0, $1) }
            }
            throw error
        }
    }
}
