// A lock with a condition whose timeouts follow a monotonic clock: a change of the time of day by
// an hour causes no timeout.

import Glibc

/// Like `NSCondition`, whose timeouts are times of day.
package final class MonotonicCondition: @unchecked Sendable {
    /// The lock, which several conditions may share.
    private final class Mutex {
        let pointer = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

        init() { pthread_mutex_init(pointer, nil) }

        deinit {
            pthread_mutex_destroy(pointer)
            pointer.deallocate()
        }
    }

    private let shared: Mutex
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var mutex: UnsafeMutablePointer<pthread_mutex_t> { shared.pointer }

    package convenience init() { self.init(Mutex()) }

    /// Another condition of the same lock: a thread that waits here is not woken by the other
    /// condition.
    package convenience init(sharing other: MonotonicCondition) { self.init(other.shared) }

    private init(_ mutex: Mutex) {
        shared = mutex
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    package func lock() { pthread_mutex_lock(mutex) }
    package func unlock() { pthread_mutex_unlock(mutex) }

    /// Wakes all waiting threads. Call it with the lock held.
    package func broadcast() { pthread_cond_broadcast(condition) }

    /// Wakes one waiting thread, if all wait for the same. Call it with the lock held.
    package func signal() { pthread_cond_signal(condition) }

    /// Waits for a wake-up, and releases the lock while it waits. As with every condition, it may
    /// return too early.
    package func wait() { pthread_cond_wait(condition, mutex) }

    /// Waits until a deadline; false if it has passed.
    package func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let rest = (deadline - .now).components
        guard rest.seconds >= 0, rest.attoseconds >= 0 else { return false }
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        end.tv_sec += Int(rest.seconds)
        end.tv_nsec += Int(rest.attoseconds / 1_000_000_000)
        if end.tv_nsec >= 1_000_000_000 {
            (end.tv_sec, end.tv_nsec) = (end.tv_sec + 1, end.tv_nsec - 1_000_000_000)
        }
        return pthread_cond_timedwait(condition, mutex, &end) == 0
    }
}
