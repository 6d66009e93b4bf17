// Work that writes mail, off the path of whoever asked for it: neither the answer nor its time tells whether a message leaves.

import Foundation

/// One thread that works through a bounded queue in order.
package final class MailQueue: @unchecked Sendable {
    private let condition = NSCondition()
    // Guarded by `condition`.
    private var jobs: [@Sendable () -> Void] = []
    private var isStopped = false
    private var isRunning = false
    private let capacity: Int

    /// - Parameter capacity: jobs that may wait; beyond, `add` refuses.
    package init(capacity: Int = 1000) {
        self.capacity = capacity
        Thread.detachNewThread { [self] in work() }
    }

    /// Adds a job; false where the queue is full or stopped.
    package func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        guard !isStopped, jobs.count < capacity else { return false }
        jobs.append(job)
        condition.broadcast()
        return true
    }

    /// Lets the job at work finish, drops the others, and ends the thread.
    package func stop() {
        condition.lock()
        isStopped = true
        jobs = []
        condition.broadcast()
        while isRunning { condition.wait() }
        condition.unlock()
    }

    /// Waits until nothing is left to do.
    package func drain() {
        condition.lock()
        while isRunning || !jobs.isEmpty { condition.wait() }
        condition.unlock()
    }

    private func work() {
        while let job = next() {
            job()
            condition.lock()
            isRunning = false
            condition.broadcast()
            condition.unlock()
        }
    }

    private func next() -> (@Sendable () -> Void)? {
        condition.lock()
        defer { condition.unlock() }
        while jobs.isEmpty, !isStopped { condition.wait() }
        guard !isStopped else { return nil }
        isRunning = true
        return jobs.removeFirst()
    }
}
