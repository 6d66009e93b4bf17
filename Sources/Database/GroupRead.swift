// Group read: concurrent reads of many callers run on one snapshot, on one thread.

import Concurrency
import Glibc
import Synchronization

/// Runs reads of many callers on common snapshots, on a few separate threads. All waiting callers
/// share the cost of beginning and ending a snapshot and of waking a thread. A single caller does
/// not wait for other callers.
package final class GroupRead: Sendable {
    /// A read and its waiting caller. `perform` keeps its result or its error, and returns whether
    /// it succeeded; `finish` delivers it.
    private struct Job: Sendable {
        let perform: @Sendable (any DatabaseConnection) -> Bool
        let finish: @Sendable (StoreFailure?) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
        /// Threads that are working, or were woken.
        var awake = 0
        /// Blocks of 512 octets that a recent read waited for, on average.
        var blocks = 0.0

        /// Whether reads wait for a disk, which serves many in parallel. Such reads go to many
        /// threads. Reads from memory go to few threads, because waking a thread takes longer than
        /// such a read.
        var isOfDisk: Bool { blocks > 4 }
        var mostThreads: Int { isOfDisk ? GroupRead.threads : GroupRead.threads / 2 }
        /// The number of reads that one thread runs together.
        var share: Int {
            isOfDisk ? min(GroupRead.batch, jobs.count / GroupRead.threads + 1) : GroupRead.batch
        }
        /// The working thread also runs reads that arrive while it works. Another thread helps if
        /// these are too many for it.
        var needsThread: Bool {
            awake < mostThreads && (isOfDisk || jobs.count > awake * GroupRead.batch / 2)
        }
    }

    /// Maximum number of waiting reads; further callers get `resources`.
    package static let capacity = 10_000
    /// Maximum number of reads on one snapshot.
    private static let batch = 16
    /// Threads that read from a disk in parallel. If reads are from memory, half of them are used.
    private static let threads = 8

    private let database: any Database
    private let blocksRead: @Sendable () -> Int
    private let state = Mutex(State())
    private let wakeUp = SystemSemaphore()

    /// Starts the threads; end them with `close`.
    /// - Parameter blocksRead: returns the blocks that the calling thread has read from a disk so
    ///   far.
    package init(
        _ database: any Database, blocksRead: @escaping @Sendable () -> Int = blocksOfThread
    ) {
        self.database = database
        self.blocksRead = blocksRead
        for _ in 0..<Self.threads { SystemThread.detach { [self] in work() } }
    }

    /// Runs `read` and returns its result, or throws its error. It may run again, alone, if this
    /// read or another one on the same snapshot failed.
    package func run<Value: Sendable>(
        _ read: @escaping @Sendable (any DatabaseConnection) throws(StoreFailure) -> Value
    ) async throws(StoreFailure) -> Value {
        try await withUnsafeContinuation {
            (continuation: UnsafeContinuation<Result<Value, StoreFailure>, Never>) in
            let result = ResultBox<Result<Value, StoreFailure>>()
            let job = Job(
                perform: { connection in
                    do throws(StoreFailure) {
                        result.value = .success(try read(connection))
                        return true
                    } catch {
                        result.value = .failure(error)
                        return false
                    }
                },
                finish: { error in
                    continuation.resume(
                        returning: error.map { .failure($0) } ?? result.value
                            ?? .failure(.temporary(.resources, "a read was not run")))
                })
            let (isTaken, wakes) = state.withLock { state in
                guard !state.isClosed, state.jobs.count < Self.capacity else {
                    return (false, false)
                }
                state.jobs.append(job)
                guard state.needsThread else { return (true, false) }
                state.awake += 1
                return (true, true)
            }
            if wakes { wakeUp.signal() }
            if !isTaken {
                job.finish(
                    .temporary(.resources, "too many reads are waiting, or the store is closing"))
            }
        }.get()
    }

    /// Ends the threads after all waiting reads. Later reads are refused.
    package func close() {
        state.withLock { $0.isClosed = true }
        for _ in 0..<Self.threads { wakeUp.signal() }
    }

    private func work() {
        while true {
            wakeUp.wait()
            var (before, done) = (0, 0)
            while true {
                let blocks = blocksRead()
                let (jobs, isClosed) = state.withLock { state in
                    if done > 0 {
                        state.blocks += (Double(blocks - before) / Double(done) - state.blocks) / 16
                    }
                    let jobs = Array(state.jobs.prefix(state.share))
                    state.jobs.removeFirst(jobs.count)
                    // In the same locked step as the check of the queue, so that no later read
                    // stays in the queue.
                    if jobs.isEmpty { state.awake = max(0, state.awake - 1) }
                    return (jobs, state.isClosed)
                }
                if jobs.isEmpty {
                    if isClosed { return }
                    break
                }
                (before, done) = (blocks, jobs.count)
                read(jobs)
            }
        }
    }

    /// RUSAGE_THREAD, which Glibc's module leaves out.
    private static let ofThread: Int32 = 1

    /// Blocks of 512 octets for which this thread has waited so far. With PostgreSQL it is the
    /// server that waits for the disk.
    package static func blocksOfThread() -> Int {
        var usage = rusage()
        getrusage(ofThread, &usage)
        return usage.ru_inblock
    }

    private func read(_ jobs: [Job]) {
        do {
            // After a failed statement PostgreSQL refuses further ones, so the reads after it must
            // run again.
            let good = try database.read { connection in
                jobs.prefix { $0.perform(connection) }.count
            }
            for job in jobs.prefix(good) { job.finish(nil) }
            if jobs.count == 1 {
                if good == 0 { jobs[0].finish(nil) }
            } else {
                for job in jobs.dropFirst(good) { read([job]) }
            }
        } catch {
            for job in jobs { job.finish(error) }
        }
    }
}
