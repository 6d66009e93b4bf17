// /v1/decisions: requests, decisions, outcomes, completion of upgrades.

import Database
import Decisions
import HTTP
import HTTPTypes
import Hummingbird
import RiskPolicy
import Support

extension BlockingPool: BlockingExecutor {}

/// The routes of decisions.
package struct DecisionRoutes: RouteModule {
    private let service: DecisionService
    private let idempotency: IdempotencyGuard

    package init(service: DecisionService, idempotency: IdempotencyGuard) {
        self.service = service
        self.idempotency = idempotency
    }

    package func addRoutes(to routes: Routes) {
        routes.team(.decisionsRead).get("/v1/decisions/{id}", use: show)
        routes.team(.decisionsWrite).post("/v1/decisions", use: decide).post(
            "/v1/decisions/{id}/complete", use: complete
        )
        .post("/v1/decisions/{id}/outcome", use: report)
    }

    private func decide(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await answer(request, context, endpoint: "decisions") { body, team in
            try await service.decide(try DecisionRequest(body), for: team).body
        }
    }

    private func show(_ request: Request, _ context: TeamContext) async throws -> Response {
        let id = try context.decisionID()
        return try await Self.problems {
            Self.response(try await service.decision(id, for: context.requester))
        }
    }

    private func complete(_ request: Request, _ context: TeamContext) async throws -> Response {
        let id = try context.decisionID()
        return try await answer(request, context, endpoint: "complete \(id)") { body, team in
            let members = try Members(body, names: ["identity_token", "nonce"])
            let token = try members.text("identity_token", limit: 16_384)
            guard let token else { throw Problem.invalid("is missing", at: "/identity_token") }
            return try await service.complete(
                id, identityToken: token, nonce: members.text("nonce", limit: 512), for: team)
        }
    }

    private func report(_ request: Request, _ context: TeamContext) async throws -> Response {
        let id = try context.decisionID()
        return try await answer(request, context, endpoint: "outcome \(id)") { body, team in
            try await service.report(try DecisionReport(body), of: id, for: team)
        }
    }

    /// Reads the body, applies the Idempotency-Key, and responds.
    private func answer(
        _ request: Request, _ context: TeamContext, endpoint: String,
        _ work: (JSONValue, Requester) async throws -> String
    ) async throws -> Response {
        let octets = Array(
            try await request.collect(context, type: "application/json").readableBytesView)
        func result() async throws -> String {
            let body = try JSONBody.parse(octets)
            return try await Self.problems { try await work(body, context.requester) }
        }
        guard let key = try request.idempotencyKey() else {
            return Self.response(try await result())
        }
        switch try await idempotency.claim(
            team: context.caller.number, endpoint: endpoint, key: key, body: octets)
        {
        case .inFlight: throw Problem.conflict("a request with this Idempotency-Key is in progress")
        case .otherBody:
            throw Problem.invalid(
                "this Idempotency-Key was used with another body", at: "Idempotency-Key")
        case .answered(let answer): return Self.response(answer)
        case .proceed(let claim):
            do {
                let answer = try await result()
                await idempotency.finish(claim, answer)
                return Self.response(answer)
            } catch {
                // A refusal changed nothing, and may contain parts of the request: it is not
                // stored.
                await idempotency.abandon(claim)
                throw error
            }
        }
    }

    /// A decision's errors as problems.
    private static func problems<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as DecisionError {
            switch error {
            case .invalid(let pointer, let detail): throw Problem.invalid(detail, at: pointer)
            case .conflict(let detail): throw Problem.conflict(detail)
            case .notFound: throw Problem.notFound("the team has no such decision")
            case .unavailable(let detail, let seconds):
                throw Problem(
                    .serviceUnavailable, "unavailable", "The service is unavailable",
                    detail: detail,
                    headers: [.retryAfter: "\(max(1, seconds))"])
            case .busy: throw Problem.tooManyRequests("too many requests at once", retryAfter: 1)
            }
        }
    }

    private static func response(_ json: String) -> Response {
        Response(
            type: "application/json", headers: [.cacheControl: "no-store"],
            body: ByteBuffer(string: json))
    }
}

extension TeamContext {
    fileprivate var requester: Requester { Requester(id: caller.id, number: caller.number) }

    /// A decision's id from the path. An id of the wrong form is not looked up.
    fileprivate func decisionID() throws -> String {
        let id = try pathParameter("id")
        guard id.hasPrefix("rd_"), id.utf8.count <= 64 else {
            throw Problem.notFound("the team has no such decision")
        }
        return id
    }
}

extension Request {
    private static let idempotencyKeyName = HTTPField.Name("Idempotency-Key")

    /// The Idempotency-Key: 1 to 255 visible ASCII characters. Throws `Problem`
    /// (400) for anything else.
    fileprivate func idempotencyKey() throws -> String? {
        guard let name = Self.idempotencyKeyName, headers.contains(name) else { return nil }
        let values = headers[values: name]
        guard let value = values.first else { return nil }
        guard values.count == 1, (1...255).contains(value.utf8.count),
            value.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw Problem.malformed(
                "Idempotency-Key must be one field of 1 to 255 visible ASCII characters")
        }
        return value
    }
}
