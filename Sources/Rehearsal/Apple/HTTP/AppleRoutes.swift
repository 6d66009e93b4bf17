// The paths of Apple's service: requests, their handling by the state, and the form of responses.

import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle
import SignIn
import Support

struct AppleRoutes: RouteModule {
    let place: AppleStatePlace
    let views: AppleViews

    func addRoutes(to routes: Routes) {
        let open = routes.open
        open.get("/.well-known/openid-configuration") { _, _ in discovery() }
        open.get("/auth/keys") { _, _ in try await keys() }
        open.get("/auth/authorize") { request, _ in try await authorize(request) }
        open.post("/sandbox/choose") { request, context in try await choose(request, context) }
        open.post("/auth/token") { request, context in
            try await answer(.token, request, context) { state, form, failure, now in
                let answer = try state.token(
                    form, hasAuthorization: request.headers[.authorization] != nil,
                    failure: failure, now: now)
                return (JSONValue.object(answer.body).octets, answer.done)
            }
        }
        open.post("/auth/revoke") { request, context in
            try await answer(.revoke, request, context) { state, form, _, now in
                (
                    [],
                    try state.revoke(
                        form, hasAuthorization: request.headers[.authorization] != nil, now: now)
                )
            }
        }
        open.post("/auth/usermigrationinfo") { request, context in
            try await answer(.usermigrationinfo, request, context) { state, form, _, now in
                let answer = try state.migrationInfo(
                    form, authorization: request.headers[.authorization], now: now)
                return (JSONValue.object(answer.body).octets, answer.done)
            }
        }
    }

    // MARK: Without a client

    /// Like Apple's, with this machine's endpoints.
    private func discovery() -> Response {
        let (address, issuer) = place.change { state, _ in (state.address, state.issuer) }
        func texts(_ values: String...) -> JSONValue { .array(values.map(JSONValue.string)) }
        let metadata: JSONObject = [
            "issuer": .string(issuer),
            "authorization_endpoint": .string(address + "/auth/authorize"),
            "token_endpoint": .string(address + "/auth/token"),
            "revocation_endpoint": .string(address + "/auth/revoke"),
            "jwks_uri": .string(address + "/auth/keys"), "response_types_supported": texts("code"),
            "response_modes_supported": texts("query", "fragment", "form_post"),
            "subject_types_supported": texts("pairwise"),
            "id_token_signing_alg_values_supported": texts("RS256"),
            "scopes_supported": texts("openid", "email", "name"),
            "token_endpoint_auth_methods_supported": texts("client_secret_post"),
            "claims_supported": texts(
                "aud", "email", "email_verified", "exp", "iat", "is_private_email", "iss", "nonce",
                "nonce_supported",
                "real_user_status", "sub", "transfer_sub"),
        ]
        return .apple(JSONValue.object(metadata).octets)
    }

    private func keys() async throws -> Response {
        let order = place.change { state, _ in state.failures.take(.keys) }
        if let failed = try await fail(order, "GET", .keys) { return failed }
        return .apple(
            place.change { state, now in
                state.journal.note(
                    at: now, "GET", "/auth/keys", clientID: nil, status: 200,
                    cause: order.map { "as ordered: \($0.failure.rawValue)" }
                        ?? "\(state.keys.count) keys")
                return state.keySet(failure: order?.failure)
            })
    }

    // MARK: Requests of a client's server

    private typealias Work =
        @Sendable (inout AppleState, AppleParameters, AppleFailure?, Int64) throws -> (
            body: [UInt8], done: String
        )

    private func answer(
        _ endpoint: AppleFailure.Place, _ request: Request, _ context: APIContext, _ work: Work
    ) async throws -> Response {
        let body = Array(try await request.collect(context).readableBytesView)
        let order = place.change { state, _ in state.failures.take(endpoint) }
        if let failed = try await fail(order, "POST", endpoint) { return failed }
        let path = "/auth/\(endpoint.rawValue)"
        var form = AppleParameters([])
        do {
            form = try AppleParameters(form: body, contentType: request.headers[.contentType])
            let read = form
            return .apple(
                try place.change { state, now in
                    let answer = try work(&state, read, order?.failure, now)
                    state.journal.note(
                        at: now, "POST", path, clientID: read["client_id"], status: 200,
                        cause: answer.done
                            + (order.map { ", as ordered: \($0.failure.rawValue)" } ?? ""),
                        parameters: read)
                    return answer.body
                })
        } catch let refusal as AppleRefusal {
            return refuse(refusal, "POST", path, form)
        }
    }

    /// The response of an endpoint that was ordered to fail; nil for others.
    private func fail(
        _ order: AppleFailures.Order?, _ method: String, _ endpoint: AppleFailure.Place
    ) async throws -> Response? {
        guard let order, order.failure.isOfTransport else { return nil }
        let status: HTTPResponse.Status =
            switch order.failure {
            case .status500: .internalServerError
            case .status503: .serviceUnavailable
            case .timeout: .gatewayTimeout
            default: .ok
            }
        place.change { state, now in
            _ = state.journal.note(
                at: now, method, "/auth/\(endpoint.rawValue)", clientID: nil, status: status.code,
                cause: "as ordered: \(order.failure.rawValue)"
                    + (order.failure == .timeout ? ", after \(order.seconds) s" : ""))
        }
        if order.failure == .timeout {
            // Ends early if the sandbox ends.
            try? await cancelWhenGracefulShutdown {
                try await Task.sleep(for: .seconds(order.seconds))
            }
        }
        return Response(
            status: status, type: "text/html",
            body: ByteBuffer(string: "<html><body>as ordered</body></html>"))
    }

    private func refuse(
        _ refusal: AppleRefusal, _ method: String, _ path: String, _ parameters: AppleParameters
    ) -> Response {
        place.say(
            place.change { state, now in
                state.journal.note(
                    at: now, method, path, clientID: parameters["client_id"], status: 400,
                    error: refusal.code.rawValue,
                    cause: refusal.cause, parameters: parameters)
            })
        var body: JSONObject = ["error": .string(refusal.code.rawValue)]
        body["error_description"] = refusal.detail.map(JSONValue.string)
        return .apple(JSONValue.object(body).octets, status: .badRequest)
    }

    // MARK: Requests of a browser

    private func authorize(_ request: Request) async throws -> Response {
        let order = place.change { state, _ in state.failures.take(.authorize) }
        if let failed = try await fail(order, "GET", .authorize) { return failed }
        let query = Array((request.uri.query ?? "").utf8)
        var parameters = AppleParameters([])
        do {
            parameters = try AppleParameters(query: query)
            let read = parameters
            let next = try place.change {
                state, now -> (AppleAuthorization, AppleSettings.AutoAnswer?, [(AppleUser, Bool)])
                in
                let authorization = try AppleAuthorization(read, seed: state.seed)
                let users = state.users.map { ($0, state.isKnown($0, to: authorization.client)) }
                return (authorization, state.settings.auto, users)
            }
            switch next.1 {
            case .cancel?: return try respond(next.0, nil, failure: order?.failure, read)
            case .user(let id)?:
                guard let user = next.2.first(where: { $0.0.id == id })?.0 else {
                    throw AppleRefusal(
                        .invalidRequest, "the user \(id) of --auto was deleted: POST /sandbox/reset"
                    )
                }
                return try respond(next.0, AppleUserAnswer(user), failure: order?.failure, read)
            case nil:
                // The failure applies to the request with the user's choice.
                if let order {
                    place.change { state, _ in
                        _ = state.failures.add(
                            order.failure, at: .authorize, times: 1, seconds: order.seconds)
                    }
                }
                return views.page(
                    views.choice(
                        next.0, users: next.2, query: String(decoding: query, as: UTF8.self)))
            }
        } catch let refusal as AppleRefusal {
            return refuse(refusal, "GET", "/auth/authorize", parameters)
        }
    }

    /// The user's choice on the page. It includes the request, which is checked again.
    private func choose(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await request.form(context, maximum: 20)
        let parameters: AppleParameters
        let authorization: AppleAuthorization
        do {
            parameters = try AppleParameters(query: form.required("query").octets)
            authorization = try place.change { state, _ in
                try AppleAuthorization(parameters, seed: state.seed)
            }
        } catch let refusal as AppleRefusal {
            return refuse(refusal, "GET", "/auth/authorize", AppleParameters([]))
        }
        guard form["cancel"] == nil else {
            return try respond(authorization, nil, failure: nil, parameters)
        }
        let (users, order) = place.change { state, _ in
            (state.users, state.failures.take(.authorize))
        }
        guard let user = try users.first(where: { WireText($0.id) == (try form.required("user")) })
        else {
            throw Problem.invalid("there is no such user", at: "/user")
        }
        let answer = AppleUserAnswer(
            user: user, hidesEmail: form["email"] == "hide",
            firstName: form["first_name"]?.text ?? "",
            lastName: form["last_name"]?.text ?? "")
        return try respond(authorization, answer, failure: order?.failure, parameters)
    }

    /// - Parameter answer: nil if the user cancelled.
    private func respond(
        _ authorization: AppleAuthorization, _ answer: AppleUserAnswer?, failure: AppleFailure?,
        _ parameters: AppleParameters
    ) throws -> Response {
        let (response, entry) = try place.change {
            state, now -> (AppleAuthorizationResponse, AppleJournal.Entry) in
            let response =
                try answer.map {
                    try state.authorize(authorization, $0, failure: failure, now: now)
                } ?? .cancelled(authorization)
            let ordered = failure.map { ", as ordered: \($0.rawValue)" } ?? ""
            let entry = state.journal.note(
                at: now, "GET", "/auth/authorize", clientID: authorization.client.id, status: 200,
                error: answer == nil ? "user_cancelled_authorize" : nil,
                cause: (answer.map { "\($0.user.id) signed in" } ?? "the user cancelled") + ordered,
                warning: authorization.warning, parameters: parameters)
            return (response, entry)
        }
        place.say(entry)
        guard let location = response.location else {
            return views.page(views.formPost(response), script: true)
        }
        return Response(status: .seeOther, headers: [.location: location])
    }
}

extension Response {
    /// JSON in Apple's form.
    static func apple(_ body: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        var headers: HTTPFields = [.cacheControl: "no-store"]
        if let pragma = HTTPField.Name("Pragma") { headers[pragma] = "no-cache" }
        if body.isEmpty {
            headers[.contentLength] = "0"
            return Response(status: status, headers: headers)
        }
        return Response(
            status: status, type: "application/json;charset=UTF-8", headers: headers,
            body: ByteBuffer(bytes: body))
    }
}
