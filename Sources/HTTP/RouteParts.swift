// The dependencies of routes.

import Accounts
import Database

/// The store, the pool on which it is called, and the clock: for all routes.
package struct RouteParts: Sendable {
    /// Users, accounts and everything else.
    package let store: Store
    /// For blocking calls, including those of the store.
    package let pool: BlockingPool
    /// Makes and reads cursors of listings.
    package let cursors: Cursors
    /// The time, in seconds since 1970.
    package let now: @Sendable () -> Int64
    /// The proxies whose client addresses are trusted.
    package let proxies: TrustedProxies

    /// - Parameter now: the time, in seconds since 1970.
    package init(
        store: Store, pool: BlockingPool, cursors: Cursors,
        proxies: TrustedProxies = TrustedProxies(),
        now: @escaping @Sendable () -> Int64
    ) {
        self.proxies = proxies
        self.store = store
        self.pool = pool
        self.cursors = cursors
        self.now = now
    }

    /// Reads or changes the store, off the threads of the listener.
    package func run<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value
    ) async throws -> Value {
        try await pool.run { [store] in try body(store) }
    }
}
