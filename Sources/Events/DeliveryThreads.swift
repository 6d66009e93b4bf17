// The threads on which delivery blocks.

import NIOPosix

/// Threads for the store and for the lease: while many events are written down, the lease is renewed. Names have a thread each,
/// as each may take the DNS's whole time.
package struct DeliveryThreads: Sendable {
    let store = NIOThreadPool(numberOfThreads: 4)
    let lease = NIOThreadPool(numberOfThreads: 1)

    private var all: [NIOThreadPool] { [store, lease] }

    package init() {
        for pool in all { pool.start() }
    }

    /// Ends them once what waits has run.
    package func stop() async {
        for pool in all { try? await pool.shutdownGracefully() }
    }
}
