// Pages of other origins that read the response of a route (Fetch, section 3.2): apps in a browser
// without a backend.

import HTTP
import HTTPTypes
import Hummingbird
import SignIn

/// Names the origins that may read the responses of a group of routes. None of these routes reads a
/// cookie.
struct CrossOrigin: RouterMiddleware {
    enum Origins: Sendable {
        /// For public data.
        case all
        /// The origins of redirect URIs.
        case some(@Sendable (WebOrigin) async throws -> Bool)
    }

    let origins: Origins

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        // With these fields, a page can distinguish a refusal from a network failure.
        do { response = try await next(request, context) } catch let problem as Problem {
            response = problem.response(requestID: context.requestID)
        }
        switch origins {
        case .all: response.headers[.accessControlAllowOrigin] = "*"
        case .some(let isAllowed):
            response.headers[.vary] = "Origin"
            // Browsers write origins in one form. An unknown origin gets the response for programs,
            // which its page cannot read.
            guard let given = request.headers[.origin], let origin = WebOrigin(given),
                origin.description == given,
                (try? await isAllowed(origin)) == true
            else { break }
            response.headers[.accessControlAllowOrigin] = given
        }
        return response
    }

    /// The response to a browser's preflight request for the Authorization field.
    @Sendable static func preflight(_ request: Request, _ context: APIContext) -> Response {
        Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: "GET, POST",
                .accessControlAllowHeaders: "Authorization, Content-Type",
                .accessControlMaxAge: "600",
            ])
    }
}

extension SignInRoutes {
    /// Routes that pages of apps may call.
    func openToApps(_ routes: Routes) -> RouteGroup<APIContext> {
        routes.open.add(
            middleware: CrossOrigin(
                origins: .some { [parts] origin in
                    try await parts.run { try $0.openIDClients.isRegistered(origin) }
                }))
    }
}
