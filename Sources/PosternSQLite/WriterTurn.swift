// Callers use the one writing connection one after another, and each waits no longer than its own
// timeout.

import Concurrency
import Database
import Synchronization

/// Gives callers the right to write, one at a time. Waiting callers are served in order. Mail and
/// decisions come before requests over HTTP, which may come in any number. Each caller stops
/// waiting when its time is over, even if many are ahead of it or another process blocks.
final class WriterTurn: Sendable {
    private struct State {
        var isTaken = false
        /// In order, those on shared threads last.
        var waiting: [(signal: Monitor<Bool>, isShared: Bool)] = []
        /// Shared threads that wait here, or write.
        var shared = 0
    }

    private let burst: Duration
    private let state = Mutex(State())

    /// - Parameter burst: how long callers beyond `WriteQueue.sharedThreads` wait. Quick changes
    ///   end within this time, and readers wait no longer than it.
    init(burst: Duration = .milliseconds(250)) { self.burst = burst }

    /// The number of waiting callers.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` when it is this caller's turn. Throws `busy` if that is not before `deadline`.
    func run<T>(
        by deadline: ContinuousClock.Instant, _ body: () throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        let isShared = WriteQueue.isOnSharedThread
        var deadline = deadline
        let place: Monitor<Bool>? = state.withLock { state in
            if isShared {
                state.shared += 1
                if state.shared > WriteQueue.sharedThreads {
                    deadline = min(deadline, .now + burst)
                }
            }
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let waiter = Monitor(false)
            let position = isShared ? nil : state.waiting.firstIndex(where: \.isShared)
            state.waiting.insert((waiter, isShared), at: position ?? state.waiting.count)
            return waiter
        }
        defer { if isShared { state.withLock { $0.shared -= 1 } } }
        if let place, !place.wait(atMost: deadline - .now, until: { $0 }) {
            let isLeft = state.withLock { state in
                guard let index = state.waiting.firstIndex(where: { $0.signal === place }) else {
                    return false
                }
                state.waiting.remove(at: index)
                return true
            }
            // Otherwise the turn came at that moment.
            guard !isLeft else {
                throw .temporary(.busy, "other changes used up the time of this one")
            }
        }
        defer { pass() }
        return try body()
    }

    private func pass() {
        let next: Monitor<Bool>? = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst().signal
        }
        next?.with { $0 = true }
    }
}
