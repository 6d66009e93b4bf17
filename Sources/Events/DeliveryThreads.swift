// Threads for blocking calls of the delivery.

import NIOPosix

/// Separate threads for the store and for the lease: the lease is renewed even while many results are written. Each DNS lookup
/// has its own thread, because it may take the full DNS timeout.
package struct DeliveryThreads: Sendable {
    let store = NIOThreadPool(numberOfThreads: 4)
    let lease = NIOThreadPool(numberOfThreads: 1)

    private var all: [NIOThreadPool] { [store, lease] }

    package init() {
        for pool in all { pool.start() }
    }

    /// Stops the threads after the waiting work has run.
    package func stop() async {
        for pool in all { try? await pool.shutdownGracefully() }
    }
}
