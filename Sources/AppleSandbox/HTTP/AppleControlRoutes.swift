// /sandbox: what a test orders and asks. Open, as the sandbox listens on loopback alone; JSON, which pages of other sites cannot
// send without asking.

import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import JSON
import SignIn
import Support

struct AppleControlRoutes: RouteModule {
    let place: AppleStatePlace
    let sender: AppleEventSender

    func addRoutes(to routes: Routes) {
        let open = routes.open
        for path in ["/readyz", "/healthz"] as [RouterPath] { open.get(path) { _, _ in Response(status: .ok) } }
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
        open.post("/sandbox/client-secret", use: mint)
        open.post("/sandbox/authorize", use: authorize)
        open.post("/sandbox/transfer", use: transfer)
        open.post("/sandbox/events", use: send)
    }

    // MARK: What a test asks

    private func facts() -> AppleFactsView {
        place.change { state, now in AppleFactsView(state, now: now) }
    }

    private func privateKey(_ id: String) throws -> Response {
        let pem = place.change { state, _ in state.seed.teams.flatMap(\.keys).first { $0.id == id }?.privatePEM }
        guard let pem else { throw Problem.notFound("there is no key of this id whose private part is known") }
        return Response(type: "application/x-pem-file", body: .init(string: pem))
    }

    // MARK: What a test orders

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
            throw Problem.invalid("either advance or offset, in seconds")
        }
        let limit = AppleState.maximumClockOffset
        guard (-limit...limit).contains(order.advance ?? order.offset ?? 0),
            place.change({ state, _ in state.setClock(offset: order.offset ?? state.clockOffset + (order.advance ?? 0)) })
        else { throw Problem.invalid("the clock may be set by ten years at most") }
        return try .json(place.change { state, now in ClockView(now: Timestamp(now), offset: state.clockOffset) })
    }

    private struct SettingsOrder: Decodable {
        /// A user, or `cancel: true`; `ask: true` has the page ask again.
        let auto: String?
        let cancel: Bool?
        let ask: Bool?
        let booleans: String?
        let idTokenLifetime: Int64?
    }

    private func set(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(SettingsOrder.self, context)
        guard [order.auto != nil, order.cancel == true, order.ask == true].count(where: { $0 }) <= 1 else {
            throw Problem.invalid("only one of auto, cancel and ask")
        }
        let booleans: AppleBooleans? = try choice(order.booleans, "/booleans")
        if let lifetime = order.idTokenLifetime, !(1...31_536_000).contains(lifetime) {
            throw Problem.invalid("must be 1 to 31536000 seconds", at: "/id_token_lifetime")
        }
        try place.change { state, _ in
            if let auto = order.auto { state.settings.auto = .user(try user(auto, state).id) }
            if order.cancel == true { state.settings.auto = .cancel }
            if order.ask == true { state.settings.auto = nil }
            if let booleans { state.settings.booleans = booleans }
            if let lifetime = order.idTokenLifetime { state.settings.identityTokenLifetime = lifetime }
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
        guard let on: AppleFailure.Place = try choice(order.on, "/on"),
            let failure: AppleFailure = try choice(order.failure, "/failure")
        else { return Response.empty }
        let (times, seconds) = (order.times ?? 1, order.seconds ?? 30)
        guard (1...AppleFailures.maximumTimes).contains(times) else {
            throw Problem.invalid("must be 1 to \(AppleFailures.maximumTimes)", at: "/times")
        }
        guard (1...AppleFailures.maximumSeconds).contains(seconds) else {
            throw Problem.invalid("must be 1 to \(AppleFailures.maximumSeconds)", at: "/seconds")
        }
        guard failure.suits(on) else {
            throw Problem.invalid("\(failure.rawValue) cannot happen at \(on.rawValue)", at: "/failure")
        }
        guard place.change({ state, _ in state.failures.add(failure, at: on, times: times, seconds: seconds) }) else {
            throw Problem.conflict("\(AppleFailures.maximum) failures wait already: DELETE /sandbox/failures removes them")
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

    private struct SecretOrder: Decodable {
        let clientId: String?
        let keyId: String?
        let expiresIn: Int64?
    }
    private struct SecretView: Encodable {
        let clientId: String
        let clientSecret: String
    }

    /// A client secret, for tests that have no library for it at hand; one that is wrong too.
    private func mint(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(SecretOrder.self, context)
        let lifetime = order.expiresIn ?? 3_600
        guard lifetime.magnitude <= AppleState.maximumClockOffset else {
            throw Problem.invalid("must be within ten years, in seconds", at: "/expires_in")
        }
        let (client, team, issuer, now) = try place.change { state, now -> (AppleClient, AppleTeam?, String, Int64) in
            let client = try self.client(order.clientId, state)
            return (client, state.team(of: client), state.issuer, now)
        }
        guard let team,
            let key = team.keys.first(where: { $0.privatePEM != nil && (order.keyId == nil || $0.id == order.keyId) }),
            let pem = key.privatePEM
        else { throw Problem.invalid("the team has no such key whose private part is known", at: "/key_id") }
        let secret = try IdentitySigningKey(pem: pem).sign(
            [
                "iss": .string(team.id), "iat": .integer(now), "exp": .integer(now + lifetime), "aud": .string(issuer),
                "sub": .string(client.id),
            ], type: nil, keyID: key.id)
        return try .json(SecretView(clientId: client.id, clientSecret: secret))
    }

    private struct AuthorizeOrder: Decodable {
        let clientId: String?
        let user: String
        let scope: String?
        let nonce: String?
        let hideEmail: Bool?
    }

    /// What a native app gets of the device, to hand to its backend.
    private func authorize(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(AuthorizeOrder.self, context)
        let scopes = Set((order.scope ?? "name email").split(separator: " ").map(String.init))
        guard scopes.isSubset(of: ["name", "email"]) else { throw Problem.invalid("must be of name and email", at: "/scope") }
        let response = try place.change { state, now -> AppleAuthorizationResponse in
            let (client, user) = (try self.client(order.clientId, state), try self.user(order.user, state))
            let answer = AppleUserAnswer(
                user: user, hidesEmail: order.hideEmail ?? user.hidesEmail, firstName: user.firstName, lastName: user.lastName)
            let failure = state.failures.take(.authorize).flatMap { $0.failure.isOfTransport ? nil : $0.failure }
            let response = try state.authorize(
                AppleAuthorization(native: client, scopes: scopes, nonce: order.nonce), answer, failure: failure, now: now)
            state.journal.note(
                at: now, "POST", "/sandbox/authorize", clientID: client.id, status: 200,
                cause: "\(user.id) was let in by a native app")
            return response
        }
        var body: JSONObject = [:]
        for (name, value) in response.parameters { body[name] = .string(value) }
        return .apple(JSONValue.object(body).octets)
    }

    private struct TransferOrder: Decodable {
        let clientId: String?
        let to: String
    }

    private func transfer(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(TransferOrder.self, context)
        guard try place.change({ state, now in state.transfer(try client(order.clientId, state), to: order.to, now: now) }) else {
            throw Problem.invalid("must be another team of the seed", at: "/to")
        }
        return Response.empty
    }

    // MARK: Events

    private struct EventOrder: Decodable {
        let type: String
        let clientId: String?
        let user: String
        let dialect: String?
        let booleans: String?
        let times: Int?
    }
    private struct EventView: Encodable {
        let jti: String
        let payload: String
        let deliveries: [Delivery]
        struct Delivery: Encodable {
            let status: Int?
            let detail: String
        }
    }
    /// How often one event can be posted, with the same `jti`.
    private static let maximumTimes = 10

    private func send(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(EventOrder.self, context)
        guard (1...64).contains(order.type.utf8.count), order.type.utf8.allSatisfy({ $0.isASCIILetter || $0 == 0x2D }) else {
            throw Problem.invalid(
                "must be one of \(AppleEventOrder.types.joined(separator: ", ")), or another word of letters and hyphens",
                at: "/type")
        }
        let times = order.times ?? 1
        guard (1...Self.maximumTimes).contains(times) else {
            throw Problem.invalid("must be 1 to \(Self.maximumTimes)", at: "/times")
        }
        let (dialect, booleans): (AppleEventDialect?, AppleBooleans?) = (
            try choice(order.dialect, "/dialect"), try choice(order.booleans, "/booleans")
        )
        let (notification, failure) = try place.change { state, now -> (AppleNotification, AppleFailure?) in
            // Of an account that was deleted there may be a second event.
            guard let user = state.seed.user(order.user) else { throw Problem.invalid("the seed has no such user", at: "/user") }
            let wanted = AppleEventOrder(
                client: try client(order.clientId, state), user: user, type: order.type, dialect: dialect, booleans: booleans)
            let failure = state.failures.take(.events)?.failure
            return (try state.event(wanted, failure: failure, now: now), failure)
        }
        var deliveries: [EventView.Delivery] = []
        if let address = notification.address {
            for _ in 0..<times {
                let outcome = await sender.post(notification, to: address)
                let entry = place.change { state, now -> AppleJournal.Entry in
                    state.journal.note(
                        at: now, "POST", address, clientID: notification.clientID, status: outcome.status,
                        cause: outcome.cause + (failure.map { ", as ordered: \($0.rawValue)" } ?? ""))
                }
                place.say(entry)
                deliveries.append(.init(status: outcome.status, detail: outcome.cause))
            }
        }
        return try .json(EventView(jti: notification.id, payload: notification.payload, deliveries: deliveries))
    }

    // MARK: Names

    /// The client of this id, or the only one.
    private func client(_ id: String?, _ state: AppleState) throws -> AppleClient {
        let found = id.map { state.seed.client($0) } ?? (state.seed.clients.count == 1 ? state.seed.clients.first : nil)
        guard let found else {
            throw Problem.invalid(
                id == nil ? "the seed has several clients: name one" : "the seed has no such client", at: "/client_id")
        }
        return found
    }

    private func user(_ id: String, _ state: AppleState) throws -> AppleUser {
        guard let user = state.users.first(where: { $0.id == id }) else {
            throw Problem.invalid("there is no such user, or no longer", at: "/user")
        }
        return user
    }

    private func choice<Choice: RawRepresentable & CaseIterable>(
        _ text: String?, _ pointer: String
    ) throws -> Choice? where Choice.RawValue == String {
        guard let text else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw Problem.invalid("must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))", at: pointer)
        }
        return choice
    }
}
