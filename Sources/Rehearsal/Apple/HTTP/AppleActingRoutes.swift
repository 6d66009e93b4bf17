// /sandbox: Apple's actions outside the web, at the request of a test: sign-in on a device, a
// client secret, notifications.

import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import SignIn
import Support

struct AppleActingRoutes: RouteModule {
    let place: AppleStatePlace
    let sender: AppleEventSender

    func addRoutes(to routes: Routes) {
        routes.open.post("/sandbox/client-secret", use: mint)
        routes.open.post("/sandbox/authorize", use: authorize)
        routes.open.post("/sandbox/events", use: send)
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

    /// A client secret, valid or invalid, for tests without a library for it.
    private func mint(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(SecretOrder.self, context)
        let lifetime = order.expiresIn ?? 3_600
        guard lifetime.magnitude <= AppleState.maximumClockOffset else {
            throw Problem.invalid("must be within ten years, in seconds", at: "/expires_in")
        }
        let (client, team, issuer, now) = try place.change {
            state, now -> (AppleClient, AppleTeam?, String, Int64) in
            let client = try state.ordered(client: order.clientId)
            return (client, state.team(of: client), state.issuer, now)
        }
        guard let team,
            let key = team.keys.first(where: {
                $0.privatePEM != nil && (order.keyId == nil || $0.id == order.keyId)
            }),
            let pem = key.privatePEM
        else {
            throw Problem.invalid(
                "the team has no such key with a known private part", at: "/key_id")
        }
        let secret = try IdentitySigningKey(pem: pem).sign(
            [
                "iss": .string(team.id), "iat": .integer(now), "exp": .integer(now + lifetime),
                "aud": .string(issuer),
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

    /// The values that a native app gets from the device, for its backend.
    private func authorize(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(AuthorizeOrder.self, context)
        let scopes = Set((order.scope ?? "name email").split(separator: " ").map(String.init))
        guard scopes.isSubset(of: ["name", "email"]) else {
            throw Problem.invalid("must be of name and email", at: "/scope")
        }
        let response = try place.change { state, now -> AppleAuthorizationResponse in
            let (client, user) = (
                try state.ordered(client: order.clientId), try state.ordered(user: order.user)
            )
            let answer = AppleUserAnswer(
                user: user, hidesEmail: order.hideEmail ?? user.hidesEmail,
                firstName: user.firstName, lastName: user.lastName)
            let failure = state.failures.take(.authorize).flatMap {
                $0.failure.isOfTransport ? nil : $0.failure
            }
            let response = try state.authorize(
                AppleAuthorization(native: client, scopes: scopes, nonce: order.nonce), answer,
                failure: failure, now: now)
            state.journal.note(
                at: now, "POST", "/sandbox/authorize", clientID: client.id, status: 200,
                cause: "\(user.id) signed in with a native app")
            return response
        }
        var body: JSONObject = [:]
        for (name, value) in response.parameters { body[name] = .string(value) }
        return .apple(JSONValue.object(body).octets)
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
    /// How often one event can be posted with the same `jti`.
    private static let maximumTimes = 10

    private func send(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(EventOrder.self, context)
        guard (1...64).contains(order.type.utf8.count),
            order.type.utf8.allSatisfy({ $0.isASCIILetter || $0 == 0x2D })
        else {
            throw Problem.invalid(
                "must be one of \(AppleEventOrder.types.joined(separator: ", ")), or another word of letters and hyphens",
                at: "/type")
        }
        let times = order.times ?? 1
        guard (1...Self.maximumTimes).contains(times) else {
            throw Problem.invalid("must be 1 to \(Self.maximumTimes)", at: "/times")
        }
        let (dialect, booleans): (AppleEventDialect?, AppleBooleans?) = (
            try OrderWord.read(order.dialect, "/dialect"),
            try OrderWord.read(order.booleans, "/booleans")
        )
        let (notification, failure) = try place.change {
            state, now -> (AppleNotification, AppleFailure?) in
            // A deleted account may have a second event.
            guard let user = state.seed.user(order.user) else {
                throw Problem.invalid("the seed has no such user", at: "/user")
            }
            let wanted = AppleEventOrder(
                client: try state.ordered(client: order.clientId), user: user, type: order.type,
                dialect: dialect,
                booleans: booleans)
            let failure = state.failures.take(.events)?.failure
            return (try state.event(wanted, failure: failure, now: now), failure)
        }
        var deliveries: [EventView.Delivery] = []
        if let address = notification.address {
            for _ in 0..<times {
                let outcome = await sender.post(notification, to: address)
                let entry = place.change { state, now -> AppleJournal.Entry in
                    state.journal.note(
                        at: now, "POST", address, clientID: notification.clientID,
                        status: outcome.status,
                        cause: outcome.cause
                            + (failure.map { ", as ordered: \($0.rawValue)" } ?? ""))
                }
                place.say(entry)
                deliveries.append(.init(status: outcome.status, detail: outcome.cause))
            }
        }
        return try .json(
            EventView(jti: notification.id, payload: notification.payload, deliveries: deliveries))
    }
}
