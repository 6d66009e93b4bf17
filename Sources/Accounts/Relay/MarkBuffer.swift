// Marks of what teams wrote of their users' addresses, gathered in memory and written in batches, off the path of mail.

import Database
import Synchronization

/// Takes marks from any thread; `flush` writes what has gathered, in few transactions. What came since the last flush is lost
/// when the process is killed, which only hides what is in a quotation.
package final class MarkBuffer: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let mark: [UInt8]
    }

    /// Under which purpose the store keeps them.
    package static let purpose = "mention"
    /// Marks held while the store is away; beyond it further ones are dropped, and what they are of is hidden when it is quoted.
    package static let capacity = 100_000

    private let repository: CounterRepository
    /// Until when each mark is kept, in seconds since 1970: those to be written, and those that are being written.
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

    /// Writes what has gathered. Where the store is away it is kept for the next time, and the error is thrown.
    package func flush() throws(StoreFailure) {
        let marks = state.withLock { state in
            for (key, until) in state.pending { state.writing[key] = until }
            state.pending = [:]
            return state.writing
        }
        // After trouble they may be many: other writers wait for some of them at most.
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
