// Counts of policies that wait for the store. They count immediately on this host, and within a
// second on the others.

import Database
import RiskPolicy
import Synchronization

/// 1.3 times the rate of requests that are written one by one (docs/decisions/070).
///
/// Counts from any thread. `flush` is called several times a second; counts since the last `flush`
/// are lost if the process is killed.
package final class VelocityBuffer: Sendable {
    /// A row that is not stored yet.
    private struct Waiting {
        var row: VelocityRow
        /// For distinct values: the slice in which the store has the value. While that slice
        /// counts, the value is not new.
        let stored: Int64?
    }

    private struct State {
        /// By mark, then by part: a counter reads all parts of a mark.
        typealias Rows = [[UInt8]: [[UInt8]: Waiting]]

        var waiting: Rows = [:]
        /// The rows that `flush` is writing now.
        var writing: Rows = [:]
        /// Number of rows in `waiting`.
        var count = 0
        /// Number of flushes that ended. A read before a flush may lack the rows of that flush.
        var turn = 0
        var dropped = 0

        mutating func add(_ tally: VelocityTally, by count: Int64, stored: Int64?, capacity: Int) {
            if waiting[tally.mark]?[tally.part] != nil {
                waiting[tally.mark]?[tally.part]?.row.count += count
                waiting[tally.mark]?[tally.part]?.row.slice = tally.slice
                waiting[tally.mark]?[tally.part]?.row.endsAt = tally.endsAt
            } else if self.count < capacity {
                let row = VelocityRow(count: count, slice: tally.slice, endsAt: tally.endsAt)
                waiting[tally.mark, default: [:]][tally.part] = Waiting(row: row, stored: stored)
                self.count += 1
            } else {
                dropped += 1
            }
        }

        /// Counts both the waiting rows and those that are being written.
        func count(_ tally: VelocityTally, _ stored: StoredVelocity) -> Int64 {
            let parts = [waiting[tally.mark], writing[tally.mark]].compactMap { $0 }
            guard tally.isDistinct else {
                let rows = parts.joined().map(\.value.row).filter { $0.slice >= tally.since }
                return max(0, rows.reduce(stored.count) { $0 + $1.count })
            }
            let new = parts.reduce(into: Set<[UInt8]>()) { new, rows in
                for (part, row) in rows
                where row.row.slice >= tally.since && row.stored ?? -1 < tally.since {
                    new.insert(part)
                }
            }
            return min(VelocityLimits.distinct, stored.count + Int64(new.count))
        }
    }

    /// Rows in one transaction: some milliseconds during which other writers wait.
    private static let batch = 500

    private let repository: VelocityRepository
    private let capacity: Int
    private let state = Mutex(State())
    /// One flush at a time.
    private let flushing = Mutex(())

    package init(_ repository: VelocityRepository, capacity: Int = VelocityLimits.waiting) {
        self.repository = repository
        self.capacity = capacity
    }

    /// Read it before reading the store, and pass it to `count`.
    package var turn: Int { state.withLock { $0.turn } }

    /// Number of counts dropped for lack of room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Counts a request in the tallies that count its event, and returns the value of each counter,
    /// including this request.
    /// - Parameters:
    ///   - stored: the stored values, tally by tally.
    ///   - turn: `turn` before the store was read; nil: count regardless of later writes.
    /// - Returns: counts, tally by tally; nil, without counting, if a flush ended during the read:
    ///   read the store again.
    package func count(
        _ tallies: [VelocityTally], _ event: PolicyEvent, stored: [StoredVelocity], turn: Int?
    ) -> [Int64]? {
        state.withLock { state in
            guard turn == nil || state.turn == turn else { return nil }
            var counts: [Int64] = []
            for (index, tally) in tallies.enumerated() {
                let stored = stored.indices.contains(index) ? stored[index] : StoredVelocity()
                if tally.events.contains(event) {
                    state.add(tally, by: 1, stored: stored.own, capacity: capacity)
                }
                counts.append(state.count(tally, stored))
            }
            return counts
        }
    }

    /// Counts a request for which the store could not be read.
    package func count(_ tallies: [VelocityTally], _ event: PolicyEvent) {
        state.withLock { state in
            for tally in tallies where tally.events.contains(event) {
                state.add(tally, by: 1, stored: nil, capacity: capacity)
            }
        }
    }

    /// Removes the counts of a request that must not count, because it gets an earlier answer.
    package func takeBack(_ tallies: [VelocityTally], _ event: PolicyEvent) {
        state.withLock { state in
            // The first request with this value counted it too, so distinct values stay.
            for tally in tallies where tally.events.contains(event) && !tally.isDistinct {
                state.add(tally, by: -1, stored: nil, capacity: capacity)
            }
        }
    }

    /// Writes the waiting rows. Rows that cannot be written continue to wait, and the error is
    /// thrown.
    package func flush() throws(StoreFailure) {
        try flushing.withLock { _ throws(StoreFailure) in try writeAll() }
    }

    private func writeAll() throws(StoreFailure) {
        let taken = state.withLock { state in
            state.writing = state.waiting
            (state.waiting, state.count) = ([:], 0)
            return state.writing
        }
        // All parts of a mark go together, because a mark is read as a whole.
        var batch: [[UInt8]] = []
        var rows: [VelocityRepository.Key: VelocityRow] = [:]
        do {
            for (mark, parts) in taken {
                batch.append(mark)
                for (part, waiting) in parts {
                    rows[VelocityRepository.Key(mark: mark, part: part)] = waiting.row
                }
                if rows.count >= Self.batch { try write(&batch, &rows) }
            }
            try write(&batch, &rows)
        } catch {
            state.withLock { state in
                for (mark, parts) in state.writing {
                    state.waiting[mark, default: [:]].merge(parts) { newer, older in
                        var merged = newer
                        merged.row.count += older.row.count
                        return merged
                    }
                }
                state.writing = [:]
                state.count = state.waiting.values.reduce(0) { $0 + $1.count }
            }
            throw error
        }
    }

    /// Writes the rows of some marks and removes these marks from `writing`.
    private func write(
        _ marks: inout [[UInt8]], _ rows: inout [VelocityRepository.Key: VelocityRow]
    ) throws(StoreFailure) {
        guard !rows.isEmpty else { return }
        try repository.add(rows)
        state.withLock { state in
            for mark in marks { state.writing[mark] = nil }
            state.turn += 1
        }
        (marks, rows) = ([], [:])
    }
}
