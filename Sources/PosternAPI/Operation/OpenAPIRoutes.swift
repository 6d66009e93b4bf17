// `/openapi.yaml`: the description of the API, from docs/openapi.yaml by way of the program itself.

import HTTPTypes
import Hummingbird

package struct OpenAPIRoutes: RouteModule {
    package init() {}

    /// The description that this program was built with.
    package static var document: [UInt8] { PackageResources.openapi_yaml }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/openapi.yaml", access: .open) { _, _ in
            Response(
                status: .ok, headers: [.contentType: "application/yaml", .cacheControl: "public, max-age=300"],
                body: .init(byteBuffer: ByteBuffer(bytes: Self.document)))
        }
    }
}
