// Threads for tests that block: Swift's pool has only as many as the processors, and servers of
// other tests need them.

import Concurrency
import Synchronization
import Testing

/// Runs each test of a suite on separate threads.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ThreadExecutor.shared) { try await function() }
    }
}

extension Trait where Self == BlockingTrait {
    /// For tests that wait for processes, files or locks, or compute for long.
    package static var blocking: BlockingTrait { BlockingTrait() }
}

/// As many threads as concurrent jobs; an idle one runs the next job.
final class ThreadExecutor: TaskExecutor {
    static let shared = ThreadExecutor()

    private struct State {
        var jobs: [UnownedJob] = []
        /// Threads that wait for a job, or are about to.
        var idle = 0
    }

    private let state = Mutex(State())
    /// One signal for each job.
    private let waiting = SystemSemaphore()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = state.withLock { state in
            state.jobs.append(job)
            let needsThread = state.jobs.count > state.idle
            if needsThread { state.idle += 1 }
            return needsThread
        }
        if needsThread { SystemThread.detach { self.serve() } }
        waiting.signal()
    }

    private func serve() {
        while true {
            waiting.wait()
            let job = state.withLock { state in
                state.idle -= 1
                return state.jobs.removeFirst()
            }
            job.runSynchronously(on: asUnownedTaskExecutor())
            state.withLock { $0.idle += 1 }
        }
    }
}
