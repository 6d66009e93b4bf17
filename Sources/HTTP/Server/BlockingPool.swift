// Threads for calls that block: the store, name look-ups. Never on an event loop, never on Swift's own few threads.

import Database
import NIOPosix

/// Its own pool of threads.
package final class BlockingPool: Sendable {
    private let pool: NIOThreadPool
    private let isShared: Bool

    /// Calls that read at one time, however many others wait to write.
    private static let readers = 8

    /// - Parameters:
    ///   - threads: how many calls block at one time; further ones wait their turn.
    ///   - isShared: whether others wait for these threads, in any number: what they change comes after what the service has to
    ///     do.
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

    /// The same at an end: a task that was cancelled gets no thread, and what is left to write is written all the same.
    package func finish<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await Task { try await run(body) }.value
    }

    /// Ends the threads once what waits has run. Later calls fail with 503.
    package func stop() async { try? await pool.shutdownGracefully() }
}
