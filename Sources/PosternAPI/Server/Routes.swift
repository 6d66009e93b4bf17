// How routes are added: each says who may ask.

import HTTPTypes
import Hummingbird
import PosternStore

/// Routes of one subject, in their own folder. Listed in Service/HTTPRoutes.swift.
package protocol RouteModule: Sendable {
    func addRoutes(to routes: APIRoutes)
    /// A page in place of 404 or 405 where no route was found; nil where it is not this module's.
    func page(for problem: Problem, _ request: Request, _ context: APIContext) -> Response?
}

extension RouteModule {
    package func page(for problem: Problem, _ request: Request, _ context: APIContext) -> Response? { nil }
}

/// Who may ask.
package enum RouteAccess: Sendable, Hashable {
    /// Everyone; the route checks access itself (`/auth`, `/me`, health).
    case open
    /// A team's key with this scope.
    case team(Scope)
    /// An operator's key with this scope.
    case `operator`(Scope)
    /// Either, with this scope; the route looks at the principal.
    case either(Scope)
}

/// A route as it was added: for tests that walk them all.
package struct RouteEntry: Sendable, Hashable {
    package let method: HTTPRequest.Method
    /// As in openapi.yaml: `/v1/accounts/{sub}`.
    package let path: String
    package let access: RouteAccess
}

/// Takes routes. Before a route runs, its key, the key's scope and its rate were checked.
package final class APIRoutes {
    package typealias Handler = @Sendable (Request, APIContext) async throws -> Response

    private let router: Router<APIContext>
    private let gate: AccessGate
    private(set) package var entries: [RouteEntry] = []

    init(router: Router<APIContext>, gate: AccessGate) {
        self.router = router
        self.gate = gate
    }

    /// Adds a route.
    /// - Parameters:
    ///   - path: with `{name}` for what `context.pathParameter` reads. Never holds an inbox.
    ///   - bodyLimit: octets; nil for the configured one.
    package func on(
        _ method: HTTPRequest.Method, _ path: String, access: RouteAccess, bodyLimit: Int? = nil, _ handler: @escaping Handler
    ) {
        entries.append(RouteEntry(method: method, path: path, access: access))
        let gate = gate
        router.on(RouterPath(path), method: method) { request, context -> Response in
            var context = context
            if let bodyLimit { context.bodyLimit = bodyLimit }
            context.principal = try await gate.admit(request, to: access, context)
            return try await handler(request, context)
        }
    }

    package func get(_ path: String, access: RouteAccess, _ handler: @escaping Handler) {
        on(.get, path, access: access, handler)
    }
    package func post(_ path: String, access: RouteAccess, _ handler: @escaping Handler) {
        on(.post, path, access: access, handler)
    }
    package func put(_ path: String, access: RouteAccess, _ handler: @escaping Handler) {
        on(.put, path, access: access, handler)
    }
    package func delete(_ path: String, access: RouteAccess, _ handler: @escaping Handler) {
        on(.delete, path, access: access, handler)
    }
}
