// The threads on which delivery blocks.

import NIOPosix

/// Threads for the store, for names of endpoints, and for the lease: where names do not resolve, what was delivered is written down all the
/// same, and the lease goes on.
package struct DeliveryThreads: Sendable {
    let store = NIOThreadPool(numberOfThreads: 4)
    /// Each name may take the DNS's whole patience.
    let names = NIOThreadPool(numberOfThreads: 8)
    let lease = NIOThreadPool(numberOfThreads: 1)

    private var all: [NIOThreadPool] { [store, names, lease] }

    package init() {
        for pool in all { pool.start() }
    }

    /// Ends them once what waits has run.
    package func stop() async {
        for pool in all { try? await pool.shutdownGracefully() }
    }
}
