// The requests that a sign-in page's backend makes for a request from /auth/authorize.

import Accounts
import HTTP
import Hummingbird
import SignIn
import Support

extension SignInRoutes {
    private struct Inspection: Decodable {
        let request: String?
        let endSession: String?
    }
    private struct Refusal: Decodable {
        let request: String
        let error: String
    }

    /// The errors that a page may return.
    private static let pageErrors: [AuthorizationError.Code: String] = [
        .accessDenied: "the user cancelled", .loginRequired: "the user is not signed in",
        .consentRequired: "the user has not consented yet",
        .interactionRequired: "the user must be asked",
        .accountSelectionRequired: "the user must choose an account",
        .temporarilyUnavailable: "try again later",
        .serverError: "the sign-in page failed",
    ]

    /// The request of a handle. Throws `Problem` (422) if the handle is unknown or has expired.
    func pending(_ handle: String, now: Int64) async throws -> PendingAuthorization {
        guard let pending = try await parts.run({ try $0.authorizations.open(handle, now: now) })
        else {
            throw Problem.invalid("is unknown or has expired", at: "/request")
        }
        return pending
    }

    /// `POST /v1/authorizations/inspect`: the data that the page shows.
    func inspectAuthorization(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let body = try await request.decode(Inspection.self, context)
        if let handle = body.endSession {
            guard body.request == nil else {
                throw Problem.invalid("send request or end_session", at: "/end_session")
            }
            return try await inspectEndSession(handle)
        }
        guard let handle = body.request else {
            throw Problem.invalid("it is missing", at: "/request")
        }
        let pending = try await pending(handle, now: parts.now())
        let asked = pending.request
        let (team, level) = try await parts.run { store in
            (
                try store.clients.client(asked.clientID).map { try store.teams.team($0.teamID) },
                try store.signInLevels.level(clientID: asked.clientID)
            )
        }
        guard let team else { throw Problem.notFound("the app was removed") }
        func list(_ items: [String]) -> JSONValue { .array(items.map(JSONValue.string)) }
        var object: JSONObject = [
            "client_id": .string(asked.clientID), "team": .string(team.id),
            "team_name": .string(team.name),
        ]
        object["scopes"] = list(asked.scopes.sorted())
        object["prompt"] = list(asked.prompts.map(\.rawValue).sorted())
        object["max_age"] = asked.maximumAge.map(JSONValue.integer)
        object["login_hint"] = asked.loginHint.map(JSONValue.string)
        object["user_hint"] = pending.subjectHint.map(JSONValue.string)
        object["ui_locales"] = list(asked.uiLocales)
        object["acr_values"] = list(asked.contextClasses)
        object["sign_in_level"] = .string(
            max(
                settings.level, level, AuthenticationClass.level(asked.contextClasses)
            ).rawValue)
        object["expires_in"] = .integer(max(0, pending.expiresAt - parts.now()))
        return .unstored(object)
    }

    /// The data of a request to sign out.
    private func inspectEndSession(_ handle: String) async throws -> Response {
        let time = parts.now()
        guard
            let asked = try await parts.run({
                try $0.authorizations.openEndSession(handle, now: time)
            })
        else {
            throw Problem.invalid("is unknown or has expired", at: "/end_session")
        }
        var object: JSONObject = [
            "continue": .string("\(settings.issuer)/auth/signed-out?request=\(handle)")
        ]
        object["client_id"] = asked.clientID.map(JSONValue.string)
        object["user_hint"] = asked.subject.map(JSONValue.string)
        return .unstored(object)
    }

    /// `POST /v1/authorizations/refuse`: the app gets an error.
    func refuseAuthorization(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let body = try await request.decode(Refusal.self, context)
        let time = parts.now()
        let pending = try await pending(body.request, now: time)
        guard let code = AuthorizationError.Code(rawValue: body.error),
            let detail = Self.pageErrors[code]
        else {
            let known = Self.pageErrors.keys.map(\.rawValue).sorted().joined(separator: ", ")
            throw Problem.invalid("must be one of \(known)", at: "/error")
        }
        let asked = pending.request
        let response = AuthorizationResponse(asked.target, AuthorizationError(code, detail))
        let ticket = try await parts.run { store in
            let registered =
                try store.openIDClients.authorizationClient(asked.clientID)?.redirectURIs ?? []
            guard
                registered.contains(where: {
                    RedirectURI.matches(asked.target.redirectURI, registered: $0)
                })
            else {
                throw Problem.notFound("the app or its redirect_uri was removed")
            }
            return try store.authorizations.answer(body.request, with: response, now: time)
        }
        return continuation(ticket)
    }

    /// The address to which the page sends the browser.
    func continuation(_ ticket: String) -> Response {
        .unstored([
            "continue": .string("\(settings.issuer)/auth/continue?ticket=\(ticket)"),
            "expires_in": .integer(ProviderLifetime.code),
        ])
    }
}
