// POST /v1/notifications/{issuer}: events of other issuers, as Apple sends them, or as security
// event tokens (RFC 8935).

import Accounts
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import Logging
import SharedSignals
import SignIn

package struct NotificationRoutes: RouteModule {
    private let parts: RouteParts
    private let issuers: StoredIssuers
    private let keys: any VerificationKeySource
    private let signals: SignalIntake

    package init(
        _ parts: RouteParts, issuers: StoredIssuers, keys: any VerificationKeySource,
        signals: SignalIntake
    ) {
        self.parts = parts
        self.signals = signals
        self.issuers = issuers
        self.keys = keys
    }

    package func addRoutes(to routes: Routes) {
        // Open: the signature proves the sender.
        routes.open(bodyLimit: IncomingEvent.maximumBodyLength).post(
            "/v1/notifications/{issuer}", use: take)
    }

    private func take(_ request: Request, _ context: APIContext) async throws -> Response {
        let isToken = (try? request.requireType(SecurityEventToken.mediaType)) != nil
        if !isToken { try request.requireType("application/json") }
        guard let issuer = try await issuers.issuer(named: context.pathParameter("issuer")) else {
            throw Problem.notFound()
        }
        let body = Array(try await request.collect(context).readableBytesView)
        if isToken { return try await take(String(decoding: body, as: UTF8.self), of: issuer) }
        let time = parts.now()
        let event = try await verify(body, issuer, now: time)
        let external = ExternalEvent(
            issuer: event.issuer, jti: event.id, subject: event.subject, clientID: event.audience,
            type: event.kind.flatMap { EventType(rawValue: $0.rawValue) },
            happenedAt: event.happenedAt)
        let change = Change(actor: "issuer:\(issuer.name)", now: time)
        let outcome = try await parts.run { try $0.externalEvents.apply(external, change) }
        context.logger.info(
            "notification",
            metadata: [
                "issuer": "\(issuer.name)", "type": "\(event.kind?.rawValue ?? "unknown")",
                "outcome": "\(outcome.rawValue)",
            ])
        // In every case, the issuer need not send it again.
        return Response(status: .ok, headers: [.contentLength: "0"])
    }

    /// 202 once it is stored, or 400 with a code (RFC 8935 sections 2.2, 2.3).
    private func take(_ token: String, of issuer: IssuerConfiguration) async throws -> Response {
        do {
            _ = try await signals.take(
                token.trimmingCharacters(in: .whitespacesAndNewlines), of: issuer)
            return Response(status: .accepted, headers: [.contentLength: "0"])
        } catch let refusal as IncomingSignal.Refusal {
            return .object(
                [
                    "err": .string(refusal.error.rawValue),
                    "description": .string(refusal.description),
                ], status: .badRequest,
                headers: [.contentLanguage: "en", .cacheControl: "no-store"])
        } catch let missing as KeysUnavailable {
            throw Self.unavailable(missing)
        }
    }

    private static func unavailable(_ missing: KeysUnavailable) -> Problem {
        var problem = Problem.unavailable()
        problem.headers[.retryAfter] = "\(max(1, missing.retryAfter))"
        return problem
    }

    private func verify(
        _ body: [UInt8], _ issuer: IssuerConfiguration, now: Int64
    ) async throws -> IncomingEvent {
        do {
            let token = try IncomingEvent.payload(of: body)
            let keys = try await keys.keys(of: issuer, for: token.keyID)
            return try await parts.run { store in
                try IncomingEvent.verify(token, issuer: issuer, keys: keys, now: now) {
                    try store.apps.isClient($0)
                }
            }
        } catch let rejection as TokenRejection {
            throw Problem(
                .badRequest, "event-refused", "The event is not accepted", detail: "\(rejection)")
        } catch let missing as KeysUnavailable {
            throw Self.unavailable(missing)
        }
    }
}
