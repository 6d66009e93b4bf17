// /v1/events: events sent to a team about its accounts, events that could not be delivered, and
// sending them again.

import Events
import HTTP
import Hummingbird

package struct EventRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    package func addRoutes(to routes: Routes) {
        routes.either(.eventsRead).get("/v1/events", use: list)
        routes.either(.eventsWrite).post("/v1/events/{jti}/retry", use: retry)
    }

    private func list(_ request: Request, _ context: KeyContext) async throws -> Response {
        // The operator sees all events.
        let team = context.caller.team?.id
        let query = try request.query(PageRequest.parameters.union(["state"]))
        let state = try query["state"].map { text in
            guard let state = OutboxEvent.State(rawValue: text.text) else {
                throw Problem.malformed("state: must be one of pending, delivered, parked")
            }
            return state
        }
        let page = try PageRequest(
            query, parts.cursors,
            listing: "events \(team.map { "team:\($0)" } ?? "") \(state?.rawValue ?? "")")
        let found = try await parts.run {
            try $0.outbox.events(
                team: team, state: state, before: page.afterNumber, limit: page.rows)
        }
        return try .json(page.page(found, position: { "\($0.number)" }, item: EventView.init))
    }

    private func retry(_ request: Request, _ context: KeyContext) async throws -> Response {
        _ = try request.query([])
        let (team, jti) = (context.caller.team?.id, try context.pathParameter("jti"))
        let change = context.change(now: parts.now())
        let event = try await parts.run { store in
            guard let event = try store.outbox.events(team: team, jti: jti, limit: 1).first else {
                throw Problem.notFound()
            }
            guard event.state != .delivered else {
                throw Problem.conflict("the event has been delivered")
            }
            _ = try store.outbox.retry(jti: jti, change)
            return try store.outbox.events(jti: jti, limit: 1).first ?? event
        }
        return try .json(EventView(event))
    }
}
