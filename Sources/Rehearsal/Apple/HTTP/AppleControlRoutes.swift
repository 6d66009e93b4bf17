// /sandbox: orders and queries of a test. Open, because the sandbox listens only on loopback; JSON,
// which pages of other sites cannot send without permission.

import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import Support

struct AppleControlRoutes: RouteModule {
    let place: AppleStatePlace

    func addRoutes(to routes: Routes) {
        let open = routes.open
        for path in ["/readyz", "/healthz"] as [RouterPath] {
            open.get(path) { _, _ in Response(status: .ok) }
        }
        open.get("/sandbox") { _, _ -> Response in try .json(facts()) }
        open.get("/sandbox/requests") { _, _ -> Response in
            try .json(place.change { state, _ in state.journal.entries }.map(AppleRequestView.init))
        }
        open.post("/sandbox/reset") { _, _ in
            place.change { state, _ in state.reset(auto: place.auto) }
            return Response.empty
        }
        open.post("/sandbox/clock", use: setClock)
        open.post("/sandbox/settings", use: set)
        open.post("/sandbox/failures", use: order)
        open.delete("/sandbox/failures") { _, _ in
            place.change { state, _ in state.failures.removeAll() }
            return Response.empty
        }
        open.post("/sandbox/keys", use: rotate)
        open.get("/sandbox/keys/{id}") { _, context in try privateKey(context.pathParameter("id")) }
        open.post("/sandbox/transfer", use: transfer)
    }

    // MARK: Queries of a test

    private func facts() -> AppleFactsView {
        place.change { state, now in AppleFactsView(state, now: now) }
    }

    private func privateKey(_ id: String) throws -> Response {
        let pem = place.change { state, _ in
            state.seed.teams.flatMap(\.keys).first { $0.id == id }?.privatePEM
        }
        guard let pem else { throw Problem.notFound("no key of this id has a known private part") }
        return Response(type: "application/x-pem-file", body: .init(string: pem))
    }

    // MARK: Orders of a test

    private struct ClockOrder: Decodable {
        let advance: Int64?
        let offset: Int64?
    }
    private struct ClockView: Encodable {
        let now: Timestamp
        let offset: Int64
    }

    private func setClock(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(ClockOrder.self, context)
        guard (order.advance == nil) != (order.offset == nil) else {
            throw Problem.invalid("send either advance or offset, in seconds")
        }
        let limit = AppleState.maximumClockOffset
        guard (-limit...limit).contains(order.advance ?? order.offset ?? 0),
            place.change({ state, _ in
                state.setClock(offset: order.offset ?? state.clockOffset + (order.advance ?? 0))
            })
        else { throw Problem.invalid("the clock may be set by ten years at most") }
        return try .json(
            place.change { state, now in ClockView(now: Timestamp(now), offset: state.clockOffset) }
        )
    }

    private struct SettingsOrder: Decodable {
        /// A user, or `cancel: true`; with `ask: true` the page asks the user again.
        let auto: String?
        let cancel: Bool?
        let ask: Bool?
        let booleans: String?
        let idTokenLifetime: Int64?
    }

    private func set(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(SettingsOrder.self, context)
        guard
            [order.auto != nil, order.cancel == true, order.ask == true].count(where: { $0 }) <= 1
        else {
            throw Problem.invalid("send only one of auto, cancel and ask")
        }
        let booleans: AppleBooleans? = try OrderWord.read(order.booleans, "/booleans")
        if let lifetime = order.idTokenLifetime, !(1...31_536_000).contains(lifetime) {
            throw Problem.invalid("must be 1 to 31536000 seconds", at: "/id_token_lifetime")
        }
        try place.change { state, _ in
            if let auto = order.auto {
                state.settings.auto = .user(try state.ordered(user: auto).id)
            }
            if order.cancel == true { state.settings.auto = .cancel }
            if order.ask == true { state.settings.auto = nil }
            if let booleans { state.settings.booleans = booleans }
            if let lifetime = order.idTokenLifetime {
                state.settings.identityTokenLifetime = lifetime
            }
        }
        return Response.empty
    }

    private struct FailureOrder: Decodable {
        let on: String
        let failure: String
        let times: Int?
        let seconds: Int?
    }

    private func order(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(FailureOrder.self, context)
        guard let on: AppleFailure.Place = try OrderWord.read(order.on, "/on"),
            let failure: AppleFailure = try OrderWord.read(order.failure, "/failure")
        else { return Response.empty }
        let (times, seconds) = (order.times ?? 1, order.seconds ?? 30)
        guard (1...AppleFailures.maximumTimes).contains(times) else {
            throw Problem.invalid("must be 1 to \(AppleFailures.maximumTimes)", at: "/times")
        }
        guard (1...AppleFailures.maximumSeconds).contains(seconds) else {
            throw Problem.invalid("must be 1 to \(AppleFailures.maximumSeconds)", at: "/seconds")
        }
        guard failure.suits(on) else {
            throw Problem.invalid(
                "\(failure.rawValue) cannot happen at \(on.rawValue)", at: "/failure")
        }
        guard
            place.change({ state, _ in
                state.failures.add(failure, at: on, times: times, seconds: seconds)
            })
        else {
            throw Problem.conflict(
                "\(AppleFailures.maximum) failures wait already: DELETE /sandbox/failures removes them"
            )
        }
        return Response.empty
    }

    private struct RotationOrder: Decodable { let count: Int? }
    private struct KeysView: Encodable { let keys: [String] }

    private func rotate(_ request: Request, _ context: APIContext) async throws -> Response {
        let count = try await request.decode(RotationOrder.self, context).count ?? 1
        guard (1...AppleState.publishedKeys).contains(count) else {
            throw Problem.invalid("must be 1 to \(AppleState.publishedKeys)", at: "/count")
        }
        let new = try (0..<count).map { _ in try AppleSigningKey.generate() }
        return try .json(
            place.change { state, _ in
                state.rotate(new)
                return KeysView(keys: state.keys.map(\.id))
            })
    }

    private struct TransferOrder: Decodable {
        let clientId: String?
        let to: String
    }

    private func transfer(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(TransferOrder.self, context)
        guard
            try place.change({ state, now in
                state.transfer(try state.ordered(client: order.clientId), to: order.to, now: now)
            })
        else {
            throw Problem.invalid("must be another team of the seed", at: "/to")
        }
        return Response.empty
    }
}
