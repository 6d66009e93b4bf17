// `/metrics`, for Prometheus.

import Database
import HTTP
import Hummingbird
import PosternMetrics

package struct MetricsRoutes: RouteModule {
    private let metrics: ServiceMetrics
    private let pool: BlockingPool

    package init(_ metrics: ServiceMetrics, _ pool: BlockingPool) {
        self.metrics = metrics
        self.pool = pool
    }

    package func addRoutes(to routes: Routes) {
        routes.operator(.metricsRead).get("/metrics") { [metrics, pool] _, _ in
            let text = try await pool.run { metrics.registry.text() }
            return Response(
                type: "text/plain; version=0.0.4; charset=utf-8", body: ByteBuffer(string: text))
        }
    }
}
