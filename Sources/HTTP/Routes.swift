// Adding routes: each goes to a Hummingbird group for its permitted callers, which records method,
// path and access.

import Accounts
import HTTPTypes
import Hummingbird
import Synchronization

/// Routes of one subject, in their own folder. Listed in Web/HTTPRoutes.swift.
package protocol RouteModule: Sendable {
    /// Adds the routes, each to the group of its permitted callers.
    func addRoutes(to routes: Routes)
    /// A page instead of a problem, for a browser; nil if the path does not belong to this module.
    /// - Parameter isUnrouted: whether no route was found (404, 405); otherwise a
    ///   route gave the problem.
    func page(
        for problem: Problem, isUnrouted: Bool, _ request: Request, _ context: APIContext
    ) -> Response?
}

extension RouteModule {
    package func page(
        for problem: Problem, isUnrouted: Bool, _ request: Request, _ context: APIContext
    ) -> Response? { nil }
}

/// The callers that may use a route.
package enum RouteAccess: Sendable, Hashable {
    /// Everyone; the route checks access itself (`/auth`, health).
    case open
    /// A signed-in user of the user's own page. The page checks the session and sends others to the
    /// sign-in.
    case user
    /// A team's key with this scope.
    case team(Scope)
    /// An operator's key with this scope.
    case `operator`(Scope)
    /// Either kind of key, with this scope; the route checks which one the caller has.
    case either(Scope)
}

/// A route as it was added: for tests that cover all routes.
package struct RouteEntry: Sendable, Hashable {
    package let method: HTTPRequest.Method
    /// As in openapi.yaml: `/v1/accounts/{sub}`.
    package let path: String
    package let access: RouteAccess
}

/// Every route that was added.
final class RouteTable: Sendable {
    private let stored = Mutex<[(entry: RouteEntry, pattern: [Substring])]>([])
    var entries: [RouteEntry] { stored.withLock { $0.map(\.entry) } }

    func add(_ entry: RouteEntry) {
        stored.withLock { $0.append((entry, entry.path.split(separator: "/"))) }
    }

    /// The methods of a path as in the Allow field; nil if there is no such path.
    func allowed(_ path: String) -> String? {
        let parts = path.split(separator: "/")
        var methods: Set<String> = []
        for (entry, pattern) in stored.withLock({ $0 }) {
            guard pattern.count == parts.count,
                zip(pattern, parts).allSatisfy({ $0.hasPrefix("{") || $0 == $1 })
            else {
                continue
            }
            methods.insert(entry.method.rawValue)
            if entry.method == .get { methods.insert("HEAD") }
        }
        return methods.isEmpty ? nil : methods.sorted().joined(separator: ", ")
    }
}

/// Groups of routes by permitted caller. The key, its scope and its rate are checked before a route
/// of the group runs. A path has `{name}` for the values that `context.pathParameter` reads, and
/// never holds an inbox.
package struct Routes {
    let router: Router<APIContext>
    let keys: KeyCache
    let limiter: RateLimiter
    let clock: APIClock
    let proxies: TrustedProxies
    let table: RouteTable

    /// For everyone.
    package var open: RouteGroup<APIContext> {
        RouteGroup(group: router.group(), access: .open, table: table)
    }

    /// For everyone, or for the users of a page that checks its users itself.
    /// - Parameter bodyLimit: octets of a body, in place of the configured limit.
    package func open(bodyLimit: Int, access: RouteAccess = .open) -> RouteGroup<APIContext> {
        RouteGroup(group: router.group(), access: access, table: table).add(
            middleware: BodyLimit(octets: bodyLimit))
    }

    /// Limits refused requests by the client's network, over all routes of a group.
    package var failureLimit: any MiddlewareProtocol<Request, Response, APIContext> {
        FailureLimit(clock: clock, proxies: proxies)
    }

    /// For teams.
    /// - Parameter bodyLimit: octets of a body, in place of the configured limit.
    package func team(_ scope: Scope, bodyLimit: Int? = nil) -> RouteGroup<TeamContext> {
        group(.team(scope), scope, bodyLimit: bodyLimit)
    }
    /// For teams, and for their apps with their own access token.
    /// - Parameter bodyLimit: octets of a body, in place of the configured limit.
    package func app(
        _ scope: Scope, bodyLimit: Int? = nil, tokens: @escaping TokenHolders
    ) -> RouteGroup<TeamContext> {
        group(.team(scope), scope, bodyLimit: bodyLimit, tokens: tokens)
    }
    /// For the operator.
    package func `operator`(_ scope: Scope) -> RouteGroup<OperatorContext> {
        group(.operator(scope), scope)
    }
    /// For teams and the operator.
    package func either(_ scope: Scope) -> RouteGroup<KeyContext> { group(.either(scope), scope) }

    private func group<Admitted: Caller>(
        _ access: RouteAccess, _ scope: Scope, bodyLimit: Int? = nil, tokens: TokenHolders? = nil
    ) -> RouteGroup<CallerContext<Admitted>> {
        let limited = router.group()
        if let bodyLimit { limited.add(middleware: BodyLimit(octets: bodyLimit)) }
        let admitted = limited.add(
            middleware: AccessGate(
                keys: keys, limiter: limiter, clock: clock, scope: scope, proxies: proxies,
                tokens: tokens))
        return RouteGroup(
            group: admitted.group(context: CallerContext<Admitted>.self), access: access,
            table: table)
    }
}

/// Hummingbird's group of routes with one access. It also lists every route added to it.
package struct RouteGroup<Context: RequestContext>: RouterMethods {
    let group: RouterGroup<Context>
    let access: RouteAccess
    let table: RouteTable

    @discardableResult
    package func on<Responder: HTTPResponder>(
        _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
    ) -> Self
    where Responder.Context == Context {
        table.add(RouteEntry(method: method, path: path.description, access: access))
        group.on(path, method: method, responder: responder)
        return self
    }

    /// Answers the preflight request that a browser sends before a request of another origin
    /// (Fetch, section 3.2.2). The route is not listed, because only browsers use it.
    @discardableResult
    package func preflight(
        _ paths: RouterPath...,
        use answer: @escaping @Sendable (Request, Context) async throws -> Response
    ) -> Self {
        for path in paths { group.on(path, method: .options, use: answer) }
        return self
    }

    package func add(middleware: any MiddlewareProtocol<Request, Response, Context>) -> Self {
        group.add(middleware: middleware)
        return self
    }
}

/// The most octets that the routes of a group accept in a body.
private struct BodyLimit: RouterMiddleware {
    let octets: Int

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.maxUploadSize = octets
        return try await next(request, context)
    }
}
