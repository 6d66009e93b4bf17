// Whether the service lives, and whether it can do its work.

import HTTPTypes
import Hummingbird
import PosternStore

/// `/healthz` and `/readyz`.
package struct HealthRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool

    package init(store: Store, pool: BlockingPool) {
        self.store = store
        self.pool = pool
    }

    private struct Health: Encodable { let status: String }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/healthz", access: .open) { _, _ in try .json(Health(status: "ok")) }
        routes.get("/readyz", access: .open) { [store, pool] _, _ in
            // Any answer of the store will do: this one takes a microsecond.
            _ = try await pool.run { try store.apiKeys.revision() }
            return try .json(Health(status: "ready"))
        }
    }
}
