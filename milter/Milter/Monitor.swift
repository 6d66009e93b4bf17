// A mutex with a condition variable around a value: libmilter's threads are not Swift's, and some calls must wait.

import Glibc

/// A value that several threads share. Every change wakes those who wait for one.
final class Monitor<State>: @unchecked Sendable {
    private var state: State
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(_ state: sending State) {
        self.state = state
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

    /// Runs `body` alone on the value, then wakes all waiting threads.
    func with<Result>(_ body: (inout State) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(condition)
            pthread_mutex_unlock(mutex)
        }
        return body(&state)
    }

    /// Waits until `holds`, for at most `duration` (nil: for ever). Returns whether it came to hold.
    func wait(atMost duration: Duration?, until holds: (State) -> Bool) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard let duration else {
            while !holds(state) { pthread_cond_wait(condition, mutex) }
            return true
        }
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let (seconds, attoseconds) = duration.components
        // A day is longer than anybody waits here, and far from overflow.
        deadline.tv_sec += Int(min(max(seconds, 0), 86_400))
        deadline.tv_nsec += Int(max(attoseconds, 0) / 1_000_000_000)
        if deadline.tv_nsec >= 1_000_000_000 {
            deadline.tv_sec += 1
            deadline.tv_nsec -= 1_000_000_000
        }
        while !holds(state) {
            if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return holds(state) }
        }
        return true
    }
}
