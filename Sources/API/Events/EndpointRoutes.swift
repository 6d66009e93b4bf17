// /v1/endpoints: a team manages the endpoints that receive its events.

import Accounts
import Events
import HTTP
import Hummingbird
import Support

package struct EndpointRoutes: RouteModule {
    private let parts: RouteParts
    private let allowsLoopback: Bool

    /// - Parameter allowsLoopback: whether teams may use http, and addresses that are not globally
    ///   reachable: true in a sandbox.
    package init(_ parts: RouteParts, allowsLoopback: Bool = false) {
        self.parts = parts
        self.allowsLoopback = allowsLoopback
    }

    package func addRoutes(to routes: Routes) {
        routes.team(.endpointsRead).get("/v1/endpoints", use: list)
        routes.team(.endpointsWrite).put("/v1/endpoints", use: set).post(
            "/v1/endpoints/remove", use: remove)
    }

    private struct EndpointView: Encodable {
        let audience: String
        let url: String
        let pending: Int
        let parked: Int
        let failures: Int
        let lastError: String?
        let lastSuccessAt: Timestamp?
        let createdAt: Timestamp

        init(_ endpoint: EventEndpoint) {
            audience = endpoint.audience
            url = endpoint.url.description
            pending = endpoint.pending
            parked = endpoint.parked
            failures = endpoint.failures
            lastError = endpoint.lastError
            lastSuccessAt = Timestamp(endpoint.lastSuccessAt)
            createdAt = Timestamp(endpoint.createdAt)
        }
    }

    private struct EndpointList: Encodable { let items: [EndpointView] }
    private struct NewEndpoint: Decodable {
        let url: String
        let clientId: String?
    }
    private struct OldEndpoint: Decodable { let clientId: String? }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let team = context.caller.id
        // At most one for each group of apps. Streams are at /ssf/stream.
        return try await .json(
            parts.run { store in
                let endpoints = try store.endpoints.endpoints(team: team).filter {
                    $0.dialect != .sharedSignals
                }
                return EndpointList(items: endpoints.map(EndpointView.init))
            })
    }

    /// Only https and publicly reachable addresses. The administrator must allow anything else.
    private func set(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(NewEndpoint.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        return try await .json(
            parts.run { [allowsLoopback] store in
                EndpointView(
                    try store.endpoints.set(
                        team: team, app: body.clientId, url: EndpointURL(body.url),
                        allowsHTTP: allowsLoopback,
                        allowsPrivate: allowsLoopback, change))
            })
    }

    private func remove(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(OldEndpoint.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        try await parts.run { try $0.endpoints.remove(team: team, app: body.clientId, change) }
        return .empty
    }
}
