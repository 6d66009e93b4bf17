// Counters gathered in memory and written in batches, off the path of the mail; written at the latest when the service stops.

import PosternStore
import Synchronization

package final class CounterWriter: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let day: Int64
        let kind: CounterKind
    }

    private let pending = Mutex<[Key: Int]>([:])
    private let counters: CounterRepository

    package init(counters: CounterRepository) { self.counters = counters }

    package func add(_ kind: CounterKind, account: Int64, day: Int64) {
        pending.withLock { $0[Key(account: account, day: day, kind: kind), default: 0] += 1 }
    }

    /// Writes what has gathered; what cannot be written stays for the next time.
    package func flush() throws {
        let batch = pending.withLock { pending in
            defer { pending = [:] }
            return pending
        }
        guard !batch.isEmpty else { return }
        do {
            try counters.add(batch.map { DailyCounter(accountNumber: $0.key.account, day: $0.key.day, kind: $0.key.kind, count: $0.value) })
        } catch {
            pending.withLock { $0.merge(batch, uniquingKeysWith: +) }
            throw error
        }
    }
}
