// Threads for blocking calls, such as the store and name lookups: never on an event loop or on Swift's own few threads.

import Database
import NIOPosix

/// A separate pool of threads.
package final class BlockingPool: Sendable {
    private let pool: NIOThreadPool
    private let isShared: Bool

    /// The number of reads at one time, however many calls wait to write.
    private static let readers = 8

    /// - Parameters:
    ///   - threads: how many calls block at one time; further ones wait their turn.
    ///   - isShared: whether any number of requests wait for these threads; their writes come after those of the service
    ///     itself.
    package init(threads: Int = readers + WriteQueue.sharedThreads, isShared: Bool = true) {
        self.isShared = isShared
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    /// Runs `body` on one of the threads.
    package func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        do {
            return try await pool.runIfActive { try WriteQueue.$isOnSharedThread.withValue(self.isShared) { try body() } }
        } catch is NIOThreadPoolError.ThreadPoolInactive {
            throw Problem.unavailable()
        }
    }

    /// The same when the service ends: a cancelled task gets no thread, but the remaining data must still be written.
    package func finish<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await Task { try await run(body) }.value
    }

    /// Ends the threads once the waiting calls have run. Later calls fail with 503.
    package func stop() async { try? await pool.shutdownGracefully() }
}
