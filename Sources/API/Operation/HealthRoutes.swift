// Whether the service runs, and whether it can do its work.

import Accounts
import Database
import Decisions
import HTTP
import Hummingbird

/// `/healthz` and `/readyz`.
package struct HealthRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    /// Nil if the service makes no decisions.
    private let policies: ActivePolicies?
    /// Whether the store accepted the last change. Reported by another service, so that requests
    /// here cannot cause writes.
    private let isWritable: @Sendable () -> Bool

    package init(
        store: Store, pool: BlockingPool, policies: ActivePolicies? = nil,
        isWritable: @escaping @Sendable () -> Bool = { true }
    ) {
        self.isWritable = isWritable
        self.store = store
        self.pool = pool
        self.policies = policies
    }

    private struct Health: Encodable {
        let status: String
        var policy: String?
    }

    /// Anyone may read this, so the name of the policy and the reason are only in `postern status`
    /// and `postern policy list`.
    private var policyState: String? {
        guard let health = policies?.health else { return nil }
        guard health.serving.contains(where: \.isDefault) else { return "none" }
        return health.problems.isEmpty ? "active" : "last_good"
    }

    package func addRoutes(to routes: Routes) {
        routes.open.get("/healthz") { _, _ -> Response in try .json(Health(status: "ok")) }
        routes.open.get("/readyz") { _, _ -> Response in
            // Any response of the store is enough; this query takes a microsecond.
            _ = try await pool.run { [store] in
                try store.database.requireInPlace()
                return try store.apiKeys.revision()
            }
            guard isWritable() else {
                throw StoreFailure.temporary(.inputOutput, "the last change could not be written")
            }
            return try .json(Health(status: "ready", policy: policyState))
        }
    }
}
