// One after another to the one connection that writes, and no longer than each has time for.

import PosternStore
import Synchronization

/// Whose turn it is to write. Those who wait are served in their order; each gives up by itself when its time is over, however many are
/// ahead of it, and whatever another process does.
final class WriterTurn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [MonotonicSignal] = []
        /// Threads that others wait for, here or at work.
        var shared = 0
    }

    private let state = Mutex(State())

    /// Runs `body` when it is our turn. Throws `TemporaryStoreError` (`busy`) where that does not come by `deadline`.
    func run<T>(by deadline: ContinuousClock.Instant, _ body: () throws -> T) throws -> T {
        let isShared = WriteQueue.isOnSharedThread
        let place: MonotonicSignal? = try state.withLock { state in
            if isShared {
                guard state.shared < WriteQueue.sharedThreads else {
                    throw TemporaryStoreError(.busy, "\(WriteQueue.sharedThreads) changes wait for another one already")
                }
                state.shared += 1
            }
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let waiter = MonotonicSignal()
            state.waiting.append(waiter)
            return waiter
        }
        defer { if isShared { state.withLock { $0.shared -= 1 } } }
        if let place, !place.wait(until: deadline) {
            let isLeft = state.withLock { state in
                guard let index = state.waiting.firstIndex(where: { $0 === place }) else { return false }
                state.waiting.remove(at: index)
                return true
            }
            // Otherwise it became our turn at that moment.
            guard !isLeft else { throw TemporaryStoreError(.busy, "other changes took all the time that this one had") }
        }
        defer { pass() }
        return try body()
    }

    private func pass() {
        let next: MonotonicSignal? = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.signal()
    }
}
