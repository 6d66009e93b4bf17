// `/metrics`, for Prometheus.

import HTTPTypes
import Hummingbird
import PosternMetrics
import PosternStore

package struct MetricsRoutes: RouteModule {
    private let metrics: ServiceMetrics
    private let pool: BlockingPool

    package init(_ metrics: ServiceMetrics, _ pool: BlockingPool) {
        self.metrics = metrics
        self.pool = pool
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/metrics", access: .operator(.metricsRead)) { [metrics, pool] _, _ in
            let text = try await pool.run { metrics.registry.text() }
            return Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: .init(byteBuffer: ByteBuffer(string: text)))
        }
    }
}
