// Marks of users' addresses that teams wrote: collected in memory and written in batches, outside the mail path.

import Database
import Synchronization

/// Takes marks from any thread; `flush` writes the collected marks in few transactions. Marks since the last flush are lost if
/// the process is killed; the only effect is that quotations of these addresses are hidden.
package final class MarkBuffer: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let mark: [UInt8]
    }

    /// The purpose of these marks in the store.
    package static let purpose = "mention"
    /// Marks held while the store is unavailable; further ones are dropped, and their addresses are hidden when quoted.
    package static let capacity = 100_000

    private let repository: CounterRepository
    /// The expiry of each mark, in seconds since 1970: of marks to be written, and of marks being written.
    private let state = Mutex<(pending: [Key: Int64], writing: [Key: Int64])>(([:], [:]))

    package init(_ repository: CounterRepository) { self.repository = repository }

    /// Never blocks on the store.
    package func add(_ marks: [[UInt8]], account: Int64, expiresAt: Int64) {
        state.withLock { state in
            for mark in marks where state.pending.count + state.writing.count < Self.capacity {
                state.pending[Key(account: account, mark: mark)] = expiresAt
            }
        }
    }

    /// Which of these marks are not written yet.
    package func held(_ marks: [[UInt8]], account: Int64) -> Set<[UInt8]> {
        state.withLock { state in
            guard !state.pending.isEmpty || !state.writing.isEmpty else { return [] }
            return Set(
                marks.filter { mark in
                    let key = Key(account: account, mark: mark)
                    return state.pending[key] != nil || state.writing[key] != nil
                })
        }
    }

    /// Writes the collected marks. If the store is unavailable they are kept for the next time, and the error is thrown.
    package func flush() throws(StoreFailure) {
        let marks = state.withLock { state in
            for (key, until) in state.pending { state.writing[key] = until }
            state.pending = [:]
            return state.writing
        }
        // After an outage there may be many: in steps, other writers wait only for one step.
        var rest = Array(marks)[...]
        while !rest.isEmpty {
            let step = rest.prefix(CounterBuffer.step)
            try repository.mark(purpose: Self.purpose, step.map { ($0.key.account, $0.key.mark, $0.value) })
            state.withLock { state in
                for (key, _) in step { state.writing[key] = nil }
            }
            rest = rest.dropFirst(CounterBuffer.step)
        }
    }
}
