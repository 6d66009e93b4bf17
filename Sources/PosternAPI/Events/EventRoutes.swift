// /v1/events: what a team was notified of its accounts, what could not be delivered, and having it sent again.

import Hummingbird
import PosternStore

package struct EventRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let cursors: Cursors
    private let now: @Sendable () -> Int64

    /// - Parameter now: seconds since 1970.
    package init(_ store: Store, _ pool: BlockingPool, _ cursors: Cursors, now: @escaping @Sendable () -> Int64) {
        self.store = store
        self.pool = pool
        self.cursors = cursors
        self.now = now
    }

    struct Item: Encodable, Sendable {
        let jti: String
        let type: String
        let audience: String
        let sub: String
        let state: String
        let attempts: Int
        let eventTime: Timestamp
        let nextAttemptAt: Timestamp?
        let endedAt: Timestamp?
        /// In words of ours: nothing that the endpoint wrote.
        let lastError: String?

        init(_ event: OutboxEvent) {
            jti = event.jti
            type = event.type.rawValue
            audience = event.audience
            sub = event.sub
            state = event.state.rawValue
            attempts = event.attempts
            eventTime = Timestamp(milliseconds: event.eventTime)
            nextAttemptAt = event.state == .pending ? Timestamp(event.nextAttemptAt) : nil
            endedAt = Timestamp(event.endedAt)
            lastError = event.lastError
        }
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/v1/events", access: .either(.eventsRead)) { [store, pool, cursors] request, context in
            let team = try Self.team(context, .eventsRead)
            let query = try request.query(PageRequest.parameters.union(["state"]))
            let state = try query["state"].map { text in
                guard let state = OutboxEvent.State(rawValue: text) else {
                    throw Problem.malformed("state: must be one of pending, delivered, parked")
                }
                return state
            }
            let listing = "events \(team.map { "team:\($0)" } ?? "") \(state?.rawValue ?? "")"
            let page = try PageRequest(query, cursors, listing: listing)
            let before = page.after.flatMap { Int64($0) }
            let found = try await pool.run {
                try store.outbox.events(team: team, state: state, before: before, limit: page.limit + 1)
            }
            let next =
                found.count > page.limit
                ? found.prefix(page.limit).last.map { cursors.cursor(after: "\($0.number)", of: listing) } : nil
            return try .json(Page(items: found.prefix(page.limit).map(Item.init), nextCursor: next))
        }
        routes.post("/v1/events/{jti}/retry", access: .either(.eventsWrite)) { [store, pool, now] request, context in
            _ = try request.query([])
            let team = try Self.team(context, .eventsWrite)
            let jti = try context.pathParameter("jti")
            let change = context.change(now: now())
            let event = try await pool.run {
                guard let event = try store.outbox.events(team: team, jti: jti, limit: 1).first else { throw Problem.notFound() }
                guard event.state != .delivered else { throw Problem.conflict("the event has been delivered") }
                _ = try store.outbox.retry(jti: jti, change)
                return try store.outbox.events(jti: jti, limit: 1).first ?? event
            }
            return try .json(Item(event))
        }
    }

    /// The team that asks; nil for the operator, who sees everyone's.
    private static func team(_ context: APIContext, _ scope: Scope) throws -> String? {
        if case .team(let id, _, _, _) = try context.principal(scope: scope) { id } else { nil }
    }
}
