// A clock that a test sets.

import Synchronization

/// A clock that only the test moves. Seconds since 1970.
package final class ManualClock: Sendable {
    private let time: Mutex<Int64>

    package init(_ start: Int64 = 1_790_000_000) { time = Mutex(start) }

    /// Seconds since 1970.
    package var now: Int64 { time.withLock { $0 } }
    package func advance(_ seconds: Int64) { time.withLock { $0 += seconds } }
}
