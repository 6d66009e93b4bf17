// Whether to use the store now. One request notices that the store is unavailable, and the others
// do not wait for it.

import Synchronization

/// Open for a second after each failure: until then requests are answered without the store.
package final class StoreBreaker: Sendable {
    private let retryAt = Mutex<Double>(-.infinity)
    /// Seconds, on a clock that never goes back.
    private let monotonic: @Sendable () -> Double

    /// Seconds for which the store is not used after a failure.
    package static let pause = 1.0

    package init(monotonic: @escaping @Sendable () -> Double = StoreBreaker.uptime) {
        self.monotonic = monotonic
    }

    /// Whether to use the store.
    package var isClosed: Bool { retryAt.withLock { monotonic() >= $0 } }

    /// Records a failure.
    package func failed() {
        let until = monotonic() + Self.pause
        retryAt.withLock { $0 = until }
    }

    private static let start = ContinuousClock.now

    @Sendable package static func uptime() -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
