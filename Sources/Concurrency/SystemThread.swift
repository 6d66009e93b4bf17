// A thread, a semaphore and a place for a result, for work that blocks.

import Glibc

/// A result passed between threads: written on one, then read on another. The
/// caller must order the two.
package final class ResultBox<Value>: @unchecked Sendable {
    package var value: Value?

    package init() {}
}

/// A counting semaphore of the system.
package final class SystemSemaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    package init() {
        semaphore = .allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    package func signal() { sem_post(semaphore) }
    package func wait() { while sem_wait(semaphore) != 0 && errno == EINTR {} }
}

/// Threads that may block for any time.
package enum SystemThread {
    /// The niceness of threads for which no caller waits. On busy processors they get a tenth of
    /// their share, so they keep a lock ten times as long.
    private static let background: Int32 = 10

    /// Runs `body` on a new thread of the system. Returns 0, or the error number if no thread can
    /// be created; then `body` does not run.
    /// - Parameter isBackground: whether the thread yields to others when processors are busy.
    @discardableResult
    package static func detach(
        isBackground: Bool = false, _ body: @escaping @Sendable () -> Void
    ) -> Int32 {
        let box = Unmanaged.passRetained(
            Body {
                // Linux has a niceness for each thread; 0 is the calling thread.
                if isBackground {
                    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, background)
                }
                body()
            })
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        if status == 0 { pthread_detach(thread) } else { box.release() }
        return status
    }

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
