// POST /v1/notifications/{issuer}: events of other issuers, as Apple sends them.

import HTTPTypes
import Hummingbird
import Identity
import Logging
import PosternStore

package struct NotificationRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let issuers: StoredIssuers
    private let keys: any VerificationKeySource
    private let now: @Sendable () -> Int64

    /// - Parameter now: seconds since 1970.
    package init(
        store: Store, pool: BlockingPool, issuers: StoredIssuers, keys: any VerificationKeySource,
        now: @escaping @Sendable () -> Int64
    ) {
        self.store = store
        self.pool = pool
        self.issuers = issuers
        self.keys = keys
        self.now = now
    }

    package func addRoutes(to routes: APIRoutes) {
        // Open: the signature says who sends it.
        routes.on(.post, "/v1/notifications/{issuer}", access: .open, bodyLimit: IncomingEvent.maximumBodyLength) {
            request, context in
            try await take(request, context)
        }
    }

    private func take(_ request: Request, _ context: APIContext) async throws -> Response {
        try request.requireType("application/json")
        guard let issuer = try await issuers.issuer(named: context.pathParameter("issuer")) else { throw Problem.notFound() }
        let body = Array(try await request.collect(context).readableBytesView)
        let time = now()
        let event = try await verify(body, issuer, now: time)
        let external = ExternalEvent(
            issuer: event.issuer, jti: event.id, subject: event.subject, clientID: event.audience,
            type: event.kind.flatMap { EventType(rawValue: $0.rawValue) }, happenedAt: event.happenedAt)
        let change = Change(actor: "issuer:\(issuer.name)", now: time)
        let outcome = try await pool.run { [store] in try store.externalEvents.apply(external, change) }
        context.logger.info(
            "notification",
            metadata: [
                "issuer": "\(issuer.name)", "type": "\(event.kind?.rawValue ?? "unknown")", "outcome": "\(outcome.rawValue)",
            ])
        // Whatever it came to, the issuer need not send it again.
        return Response(status: .ok, headers: [.contentLength: "0"])
    }

    private func verify(_ body: [UInt8], _ issuer: IssuerConfiguration, now: Int64) async throws -> IncomingEvent {
        do {
            let token = try IncomingEvent.payload(of: body)
            guard let keyID = token.keyID else { throw TokenRejection(.key, "the event names no key") }
            let keys = try await keys.keys(of: issuer, for: keyID)
            return try await pool.run { [store] in
                try IncomingEvent.verify(token, issuer: issuer, keys: keys, now: now) { try store.apps.isClient($0) }
            }
        } catch let rejection as TokenRejection {
            throw Problem(
                .badRequest, "event-refused", "The event is not accepted", detail: "\(rejection)")
        } catch let missing as KeysUnavailable {
            var problem = Problem.unavailable()
            problem.headers[.retryAfter] = "\(max(1, missing.retryAfter))"
            throw problem
        }
    }
}
