// A lock with a condition whose timeouts follow a monotonic clock: a jump of the time of day by an hour is not a timeout.

import Glibc

/// Like `NSCondition`, whose timeouts are times of day.
package final class MonotonicCondition: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    package func lock() { pthread_mutex_lock(mutex) }
    package func unlock() { pthread_mutex_unlock(mutex) }

    /// Wakes all waiting threads. Call with the lock held.
    package func broadcast() { pthread_cond_broadcast(condition) }

    /// Wakes one waiting thread, if all wait for the same. Call with the lock held.
    package func signal() { pthread_cond_signal(condition) }

    /// Waits for a wake-up, and releases the lock meanwhile. As with every condition, it may return too early.
    package func wait() { pthread_cond_wait(condition, mutex) }

    /// The same until a deadline; false if it has passed.
    package func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let rest = (deadline - .now).components
        guard rest.seconds >= 0, rest.attoseconds >= 0 else { return false }
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        end.tv_sec += Int(rest.seconds)
        end.tv_nsec += Int(rest.attoseconds / 1_000_000_000)
        if end.tv_nsec >= 1_000_000_000 { (end.tv_sec, end.tv_nsec) = (end.tv_sec + 1, end.tv_nsec - 1_000_000_000) }
        return pthread_cond_timedwait(condition, mutex, &end) == 0
    }
}
