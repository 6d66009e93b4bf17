// Group commit: concurrent changes of many callers are written, and synced to disk, in one
// transaction.

import Concurrency
import Synchronization

/// Runs changes of many callers in common transactions on a separate thread. A caller gets its
/// result when its change is durable.
///
/// While one transaction is synced, the next one collects changes. So the disk limits the number of
/// commits, and not the number of callers.
package final class GroupCommit: Sendable {
    /// A change and its waiting caller. `perform` runs the change and keeps its result; `finish`
    /// delivers the result when it is durable.
    private struct Job: Sendable {
        let perform: @Sendable (any DatabaseConnection) throws(StoreFailure) -> Void
        let finish: @Sendable (StoreFailure?) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
        /// When the current transaction began, on a monotonic clock.
        var began: ContinuousClock.Instant?
    }

    /// How long to wait for other writers. A transaction that takes longer is blocked by another
    /// process or a disk, and is given up.
    package static let timeout: Duration = .milliseconds(500)
    /// How long a blocking caller retries. It has no other work, so it waits, but for less than
    /// Postfix's timeout for a milter (30 s).
    private static let blockingPatience: Duration = .seconds(5)

    /// Maximum number of waiting changes; further callers get `resources`.
    package static let capacity = 10_000
    /// Maximum number of changes in one transaction.
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

    /// Runs `change` in a durable transaction and returns its result. The change may run
    /// again, alone, if another one in the same transaction failed, so it must have no
    /// effect outside the database.
    package func run<Value: Sendable>(
        _ change: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value
    ) async throws(StoreFailure) -> Value {
        try await withCheckedContinuation { continuation in
            enqueue(change) { continuation.resume(returning: $0) }
        }.get()
    }

    /// As `run`, for a thread that may block. It retries for some seconds while others write.
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
            job.finish(
                .temporary(.resources, "too many changes are waiting, or the store is closing"))
        }
    }

    /// Whether a write to the store takes longer than `timeout`.
    package var isStalled: Bool {
        state.withLock { state in
            state.began.map { ContinuousClock.now - $0 > Self.timeout } ?? false
        }
    }

    /// Ends the thread after all waiting changes are written. Later changes are refused.
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
            // One change failed, and the others were rolled back with it. Each now runs alone,
            // unless the store is unavailable for all.
            for job in jobs {
                if error.isTemporary { job.finish(error) } else { commit([job]) }
            }
            guard error.isTemporary else { return }
            // The callers behind them would wait for the same failure.
            let others = state.withLock { state in
                defer { state.jobs = [] }
                return state.jobs
            }
            for job in others { job.finish(error) }
        }
    }
}
