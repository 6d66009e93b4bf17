// Threads for blocking calls of the delivery.

import Database

/// Each DNS lookup has a separate thread, because it may take the full DNS timeout.
package struct DeliveryThreads: Sendable {
    let store = BlockingPool(.deliveries)
    let lease = BlockingPool(.lease)

    package init() {}

    /// Stops the threads after the waiting work has run.
    package func stop() async {
        for pool in [store, lease] { await pool.stop() }
    }
}
