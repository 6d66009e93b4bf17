// `/openapi.yaml`: the description of the API, from docs/openapi.yaml as embedded in the program.

import HTTP
import Hummingbird

package struct OpenAPIRoutes: RouteModule {
    package init() {}

    /// The description embedded in this build.
    package static var document: String { Embedded.openapi_yaml }

    package func addRoutes(to routes: Routes) {
        routes.open.get("/openapi.yaml") { _, _ in
            Response(
                type: "application/yaml", headers: [.cacheControl: "public, max-age=300"],
                body: ByteBuffer(string: Self.document)
            )
        }
    }
}
