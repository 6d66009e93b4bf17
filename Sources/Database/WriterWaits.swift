// How changes of several threads and hosts get into each other's way: counts for metrics.

import Synchronization

/// A reason why a change waited, or ran again. The raw value is the label of the metric.
package enum WriterWait: String, CaseIterable, Sendable {
    /// It conflicted with another one (SQLSTATE 40001), and was repeated.
    case conflict
    /// It and another one waited for each other (40P01), and it was repeated.
    case deadlock
    /// It got no lock in its time (55P03).
    case lock
    /// It was idle for too long, and the server ended it (25P03).
    case idle
    /// It ran alone, and every change of every host waited for it.
    case alone
}

/// Counts since the start of the process.
package final class WriterWaits: Sendable {
    private let counts = Mutex<[WriterWait: Int]>([:])

    package init() {}

    package func add(_ wait: WriterWait) { counts.withLock { $0[wait, default: 0] += 1 } }

    package var all: [WriterWait: Int] { counts.withLock { $0 } }
}

/// What the database's server says about changes at this moment, over all hosts.
package struct ServerWaits: Sendable, Hashable {
    /// Sessions that wait for a lock, and seconds for which the longest of them has been waiting.
    package let waiting: Int
    package let longest: Double
    /// Deadlocks since the server's statistics were reset.
    package let deadlocks: Int

    package init(waiting: Int, longest: Double, deadlocks: Int) {
        (self.waiting, self.longest, self.deadlocks) = (waiting, longest, deadlocks)
    }
}
