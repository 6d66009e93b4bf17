// Counters gathered in memory and written in batches, off the path of mail.

import Synchronization

/// Counts from any thread; `flush` writes what has gathered in one transaction. Whoever owns it flushes every second or so,
/// and once more at shutdown. What was counted since the last flush is lost when the process is killed.
package final class CounterBuffer: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let day: Int64
        let kind: CounterKind
    }

    /// Distinct counters held while the store is away; beyond it further ones are dropped and counted in `dropped`.
    package static let capacity = 100_000

    private let repository: CounterRepository
    private let state = Mutex<(counts: [Key: Int], dropped: Int)>(([:], 0))

    package init(_ repository: CounterRepository) { self.repository = repository }

    /// Counts one. Never blocks on the store.
    package func count(account: Int64, kind: CounterKind, day: Int64) {
        state.withLock { state in
            let key = Key(account: account, day: day, kind: kind)
            guard state.counts.count < Self.capacity || state.counts[key] != nil else {
                state.dropped += 1
                return
            }
            state.counts[key, default: 0] += 1
        }
    }

    /// How many were dropped for want of room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Writes what has gathered. Where the store is away it is kept for the next time, and the error is thrown.
    package func flush() throws {
        let counts = state.withLock { state in
            let counts = state.counts
            state.counts = [:]
            return counts
        }
        do {
            try repository.add(
                counts.map { DailyCounter(accountNumber: $0.account, day: $0.day, kind: $0.kind, count: $1) })
        } catch {
            state.withLock { $0.counts.merge(counts) { $0 + $1 } }
            throw error
        }
    }
}
