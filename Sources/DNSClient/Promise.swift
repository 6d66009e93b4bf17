// One answer that many threads wait for.

import Glibc
import MailAuth

/// Fulfilled once; whoever waits later gets the same answer at once.
final class Promise: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var answer: DNSAnswer?

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Waiting must not depend on somebody setting the clock.
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

    /// Gives the answer; a second one is ignored.
    func fulfil(_ value: DNSAnswer) {
        pthread_mutex_lock(mutex)
        if answer == nil { answer = value }
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Waits for the answer; nil after so many milliseconds.
    func wait(milliseconds: Int64) -> DNSAnswer? {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let wait = max(0, min(milliseconds, Self.longest))
        let nanoseconds = deadline.tv_nsec + Int(wait % 1000) * 1_000_000
        deadline.tv_sec += Int(wait / 1000) + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while answer == nil {
            if pthread_cond_timedwait(condition, mutex, &deadline) != 0 { break }
        }
        return answer
    }

    /// Milliseconds; nobody waits longer than ten minutes for a name.
    private static let longest: Int64 = 600_000
}
