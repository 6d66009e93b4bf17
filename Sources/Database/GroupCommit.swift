// Group commit: what many ask to be written at the same time is written, and synced to disk, once.

import Concurrency
import Synchronization

/// Runs changes of many callers in common transactions on its own thread. A caller is answered once its change is durable.
///
/// While one transaction is synced the next gathers, so that the disk sets the pace of commits and not of callers.
package final class GroupCommit: Sendable {
    /// A change, and who waits for it. `perform` runs the change and keeps its result; `finish` hands it over once it is durable.
    private struct Job: Sendable {
        let perform: @Sendable (any DatabaseConnection) throws(StoreFailure) -> Void
        let finish: @Sendable (StoreFailure?) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
        /// When the transaction under way began, on a clock that never goes back.
        var began: ContinuousClock.Instant?
    }

    /// How long to wait for other writers. A transaction that takes longer is stuck behind another process or a disk: it is not
    /// worth waiting for.
    package static let timeout: Duration = .milliseconds(500)
    /// How long a caller that blocks asks again: who has nothing to go on with rather waits, below Postfix's timeout with a
    /// filter (30 s).
    private static let blockingPatience: Duration = .seconds(5)

    /// Changes that may wait: beyond it callers get `resources`.
    package static let capacity = 10_000
    /// Changes in one transaction.
    private static let batch = 256

    private let database: any Database
    private let state = Mutex(State())
    private let wakeUp: SystemSemaphore

    /// Starts the thread; end it with `close`.
    package init(_ database: any Database) {
        self.database = database
        wakeUp = SystemSemaphore()
        SystemThread.detach { [self] in work() }
    }

    /// Runs `change` in a durable transaction and gives its result. The change may be run again, alone, where another one in the
    /// same transaction failed, so that it must have no effect outside the database.
    package func run<Value: Sendable>(
        _ change: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value
    ) async throws(StoreFailure) -> Value {
        try await withCheckedContinuation { continuation in
            enqueue(change) { continuation.resume(returning: $0) }
        }.get()
    }

    /// The same for a thread that may block, which asks again for some seconds while others write.
    package func runBlocking<Value: Sendable>(
        _ change: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value
    ) throws(StoreFailure) -> Value {
        let deadline = ContinuousClock.now + Self.blockingPatience
        while true {
            do {
                return try runOnce(change)
            } catch  where error.code == .temporary(.busy) && ContinuousClock.now < deadline {}
        }
    }

    private func runOnce<Value: Sendable>(
        _ change: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value
    ) throws(StoreFailure) -> Value {
        let result = ResultBox<Result<Value, StoreFailure>>()
        let done = SystemSemaphore()
        enqueue(change) {
            result.value = $0
            done.signal()
        }
        done.wait()
        return try (result.value ?? .failure(.temporary(.resources, "a change was not run"))).get()
    }

    private func enqueue<Value: Sendable>(
        _ change: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value,
        _ answer: @escaping @Sendable (Result<Value, StoreFailure>) -> Void
    ) {
        let result = ResultBox<Value>()
        let job = Job(
            perform: { connection throws(StoreFailure) in result.value = try change(connection) },
            finish: { error in
                if let error {
                    answer(.failure(error))
                } else if let value = result.value {
                    answer(.success(value))
                } else {
                    answer(.failure(.temporary(.resources, "a change was not run")))
                }
            })
        let isTaken = state.withLock { state in
            guard !state.isClosed, state.jobs.count < Self.capacity else { return false }
            state.jobs.append(job)
            return true
        }
        if isTaken {
            wakeUp.signal()
        } else {
            job.finish(.temporary(.resources, "too many changes are waiting, or the store is closing"))
        }
    }

    /// Whether the store does not get on with writing.
    package var isStalled: Bool {
        state.withLock { state in state.began.map { ContinuousClock.now - $0 > Self.timeout } ?? false }
    }

    /// Ends the thread once everything that waits is written. Later changes are refused.
    package func close() {
        state.withLock { $0.isClosed = true }
        wakeUp.signal()
    }

    private func work() {
        while true {
            wakeUp.wait()
            while true {
                let jobs = state.withLock { state in
                    let jobs = Array(state.jobs.prefix(Self.batch))
                    state.jobs.removeFirst(jobs.count)
                    state.began = jobs.isEmpty ? nil : ContinuousClock.now
                    return jobs
                }
                if jobs.isEmpty { break }
                commit(jobs)
                state.withLock { $0.began = nil }
            }
            if state.withLock({ $0.isClosed && $0.jobs.isEmpty }) { return }
        }
    }

    private func commit(_ jobs: [Job]) {
        do {
            try database.write(.durable, timeout: Self.timeout) { connection throws(StoreFailure) in
                for job in jobs { try job.perform(connection) }
            }
            for job in jobs { job.finish(nil) }
        } catch {
            if jobs.count == 1, !error.isTemporary { return jobs[0].finish(error) }
            // One failed and took the others along: each by itself, unless the store is away for all.
            for job in jobs {
                if error.isTemporary { job.finish(error) } else { commit([job]) }
            }
            guard error.isTemporary else { return }
            // Anyone who waits behind them would wait as long for nothing.
            let others = state.withLock { state in
                defer { state.jobs = [] }
                return state.jobs
            }
            for job in others { job.finish(error) }
        }
    }
}
