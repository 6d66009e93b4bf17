// Sends mail outside the request that causes it, so that neither the response nor its time shows
// whether a message is sent.

import Concurrency

/// Two lanes, each a thread that works through a bounded queue in order. Look-ups do not wait for
/// messages, as the hand-over of a message takes as long as the mail server needs.
package final class MailQueue: Sendable {
    private let lookUps: Lane
    private let messages: Lane

    /// - Parameter capacity: jobs that may wait in a lane; more jobs are refused.
    package init(capacity: Int = 1000) {
        lookUps = Lane(capacity: capacity)
        messages = Lane(capacity: capacity)
    }

    /// Adds a job that sends a message; false if the lane is full or stopped.
    package func add(_ job: @escaping @Sendable () -> Void) -> Bool { messages.add(job) }

    /// Adds a look-up, which may `add` a message; false if the lane is full or stopped.
    package func lookUp(_ job: @escaping @Sendable () -> Void) -> Bool { lookUps.add(job) }

    /// Lets the running jobs finish, drops the others, and ends the threads.
    package func stop() {
        lookUps.stop()
        messages.stop()
    }

    /// Waits until no job runs or waits.
    package func drain() {
        lookUps.drain()
        messages.drain()
    }
}

private final class Lane: @unchecked Sendable {
    private let condition = MonotonicCondition()
    // Protected by `condition`.
    private var jobs: [@Sendable () -> Void] = []
    private var isStopped = false
    private var isRunning = false
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        SystemThread.detach { [self] in work() }
    }

    func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        guard !isStopped, jobs.count < capacity else { return false }
        jobs.append(job)
        condition.broadcast()
        return true
    }

    func stop() {
        condition.lock()
        isStopped = true
        jobs = []
        condition.broadcast()
        while isRunning { condition.wait() }
        condition.unlock()
    }

    func drain() {
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
