// What routes are made of.

import Accounts

/// The store, where it is asked, and the clock: for all routes.
package struct RouteParts: Sendable {
    /// Users, accounts and everything else.
    package let store: Store
    /// For calls that block, those of the store among them.
    package let pool: BlockingPool
    /// Makes and reads cursors of listings.
    package let cursors: Cursors
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64

    /// - Parameter now: seconds since 1970.
    package init(store: Store, pool: BlockingPool, cursors: Cursors, now: @escaping @Sendable () -> Int64) {
        self.store = store
        self.pool = pool
        self.cursors = cursors
        self.now = now
    }

    /// Asks or changes the store, off the threads of the listener.
    package func run<Value: Sendable>(_ body: @escaping @Sendable (Store) throws -> Value) async throws -> Value {
        try await pool.run { [store] in try body(store) }
    }
}
