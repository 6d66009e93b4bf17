// /v1/decisions: questions, answers, outcomes, completion of upgrades.

import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import PosternStore
import RiskDecisions
import RiskPolicy

extension BlockingPool: BlockingExecutor {}

/// The routes of decisions.
package struct DecisionRoutes: RouteModule {
    private let service: DecisionService
    private let idempotency: IdempotencyGuard

    package init(service: DecisionService, idempotency: IdempotencyGuard) {
        self.service = service
        self.idempotency = idempotency
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.post("/v1/decisions", access: .team(.decisionsWrite)) { request, context in
            let team = try context.asking(.decisionsWrite)
            return try await answer(request, context, team, endpoint: "decisions") { body in
                let question = try DecisionRequest(body)
                return try await service.decide(question, for: team).body
            }
        }
        routes.get("/v1/decisions/{id}", access: .team(.decisionsRead)) { _, context in
            let team = try context.asking(.decisionsRead)
            let id = try context.decisionID()
            return try await Self.problems { Self.response(try await service.decision(id, for: team)) }
        }
        routes.post("/v1/decisions/{id}/complete", access: .team(.decisionsWrite)) { request, context in
            let team = try context.asking(.decisionsWrite)
            let id = try context.decisionID()
            return try await answer(request, context, team, endpoint: "complete \(id)") { body in
                let members = try Members(body, names: ["identity_token", "nonce"])
                let token = try members.text("identity_token", limit: 16_384)
                guard let token else { throw Problem.invalid("is missing", at: "/identity_token") }
                return try await service.complete(id, identityToken: token, nonce: members.text("nonce", limit: 512), for: team)
            }
        }
        routes.post("/v1/decisions/{id}/outcome", access: .team(.decisionsWrite)) { request, context in
            let team = try context.asking(.decisionsWrite)
            let id = try context.decisionID()
            return try await answer(request, context, team, endpoint: "outcome \(id)") { body in
                try await service.report(try DecisionReport(body), of: id, for: team)
            }
        }
    }

    /// Reads the body, minds the Idempotency-Key, and answers.
    private func answer(
        _ request: Request, _ context: APIContext, _ team: Requester, endpoint: String,
        _ work: (JSONValue) async throws -> String
    ) async throws -> Response {
        try request.requireType("application/json")
        let octets = Array(try await request.collect(context).readableBytesView)
        guard let key = try request.idempotencyKey() else {
            let body = try Self.parse(octets)
            return try await Self.problems { Self.response(try await work(body)) }
        }
        let verdict = try await idempotency.claim(team: team.number, endpoint: endpoint, key: key, body: octets)
        switch verdict {
        case .inFlight: throw Problem.conflict("a request with this Idempotency-Key is in progress")
        case .otherBody: throw Problem.invalid("this Idempotency-Key was used with another body", at: "Idempotency-Key")
        case .answered(let status, let body):
            guard status != 200 else { return Self.response(body) }
            return Response(
                status: .init(code: status), headers: [.contentType: "application/problem+json", .cacheControl: "no-store"],
                body: .init(byteBuffer: ByteBuffer(string: body)))
        case .proceed(let claim):
            do {
                let body = try Self.parse(octets)
                let answer = try await Self.problems { try await work(body) }
                await idempotency.finish(claim, status: 200, body: answer)
                return Self.response(answer)
            } catch {
                let problem = Problem(error)
                // What may be otherwise the next time is not kept.
                if [400, 404, 409, 422].contains(problem.status.code) {
                    await idempotency.finish(
                        claim, status: problem.status.code, body: String(buffer: problem.body(requestID: context.requestID)))
                } else {
                    await idempotency.abandon(claim)
                }
                throw error
            }
        }
    }

    private static func parse(_ octets: [UInt8]) throws -> JSONValue {
        guard !octets.isEmpty else { throw Problem.malformed("a JSON body is required") }
        do {
            return try StrictJSON.parse(octets, limit: octets.count)
        } catch {
            throw Problem.malformed("the body is not valid JSON: \(error)")
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
                    .serviceUnavailable, "unavailable", "The service is unavailable", detail: detail,
                    headers: [.retryAfter: "\(max(1, seconds))"])
            }
        }
    }

    private static func response(_ json: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: json)))
    }
}

extension APIContext {
    fileprivate func asking(_ scope: Scope) throws -> Requester {
        let team = try team(scope: scope)
        return Requester(id: team.id, number: team.number)
    }

    /// A decision's id from the path; what cannot be one is not looked for.
    fileprivate func decisionID() throws -> String {
        let id = try pathParameter("id")
        guard id.hasPrefix("rd_"), id.utf8.count <= 64 else { throw Problem.notFound("the team has no such decision") }
        return id
    }
}

extension Request {
    private static let idempotencyKeyName = HTTPField.Name("Idempotency-Key")

    /// The Idempotency-Key: 1 to 255 visible ASCII characters. Throws `Problem` (400) for anything else.
    fileprivate func idempotencyKey() throws -> String? {
        guard let name = Self.idempotencyKeyName, headers.contains(name) else { return nil }
        let values = headers[values: name]
        guard let value = values.first else { return nil }
        guard values.count == 1, (1...255).contains(value.utf8.count), value.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Problem.malformed("Idempotency-Key must be one field of 1 to 255 visible ASCII characters") }
        return value
    }
}
