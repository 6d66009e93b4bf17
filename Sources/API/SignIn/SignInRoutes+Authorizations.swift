// POST /v1/authorizations: the operator's own sign-in page obtains a code and an
// identity token for a user.

import Accounts
import Database
import HTTP
import Hummingbird
import InternetMessage
import SignIn
import Support

extension SignInRoutes {
    /// The body. The page passes these on as the app sent them: client_id, redirect_uri,
    /// nonce, state, code_challenge.
    private struct Body: Decodable {
        struct Name: Decodable {
            let firstName: String?
            let lastName: String?

            var person: PersonName { PersonName(given: firstName, family: lastName) }
        }

        /// The identifier from `/auth/authorize`; replaces the app's parameters.
        let request: String?
        let user: String?
        var userHint: String?
        /// The number of an inbox of the user, or its address.
        let inbox: JSONValue?
        var clientID: String?
        var redirectURI: String?
        var scopes: [String]?
        var nonce: String?
        var state: String?
        var codeChallenge: String?
        var codeChallengeMethod: String?
        let hideMyEmail: Bool?
        let realUserStatus: Int?
        let orgID: String?
        let authTime: Int64?
        /// RFC 8176.
        let amr: [String]?
        let acr: String?
        let name: Name?
    }

    func authorize(_ request: Request, _ context: OperatorContext) async throws -> Response {
        var given = try await request.decode(Body.self, context)
        let time = parts.now()
        var pending: PendingAuthorization?
        if let handle = given.request { pending = try await self.pending(handle, now: time) }
        if let pending { try Self.fill(&given, from: pending, now: time) }
        let body = given
        let authorization = try check(body, now: time)
        let clientID = authorization.grant.clientID
        let algorithm =
            try await parts.run { try $0.clients.client(clientID)?.identityTokenAlgorithm }
            ?? "ES256"
        let maker = try await signer.maker(issuer: settings.issuer, algorithm, now: time)
        let change = context.change(now: time)
        let (name, asked) = (body.name.map(\.person), pending?.request)
        let (answer, ticket) = try await parts.run { [statuses, settings] store in
            var authorization = authorization
            let level = max(
                settings.level, try store.signInLevels.level(clientID: clientID),
                AuthenticationClass.level(asked?.contextClasses ?? []))
            guard authorization.method.level >= level else {
                throw Problem.conflict(
                    "the app requires \(level.rawValue): let the user sign in so, and say it by amr (mfa) and acr (phr for a passkey)"
                )
            }
            authorization.grant.userID = try Self.user(body, clientID, now: time, store)
            var ticket: String?
            let answer = try store.provider.authorize(authorization, statuses: statuses, change) {
                given, connection throws(StoreFailure) in
                guard let handle = body.request, let asked else { return }
                let response = AuthorizationResponse(asked, given)
                ticket = try store.authorizations.answer(
                    connection, handle, with: response, of: nil, now: time)
            } finish: { issued throws(StoreFailure) in
                try AuthorizationAnswer(issued, name: name, maker)
            }
            return (answer, ticket)
        }
        return ticket.map(continuation) ?? .object(Self.object(answer, state: body.state))
    }

    /// Takes the app's parameters from the request; the page must not repeat them.
    private static func fill(
        _ body: inout Body, from pending: PendingAuthorization, now: Int64
    ) throws {
        for (value, name) in [
            (body.clientID, "client_id"), (body.redirectURI, "redirect_uri"), (body.nonce, "nonce"),
            (body.state, "state"),
            (body.codeChallenge, "code_challenge"),
            (body.codeChallengeMethod, "code_challenge_method"),
        ] where value != nil {
            throw Problem.invalid("is part of the request: leave it out", at: "/\(name)")
        }
        let asked = pending.request
        body.clientID = asked.clientID
        body.redirectURI = asked.target.redirectURI
        body.nonce = asked.nonce
        body.codeChallenge = asked.challenge.map { Base64URL.encode($0) }
        body.codeChallengeMethod = asked.challenge.map { _ in "S256" }
        guard Set(body.scopes ?? []).isSubset(of: asked.scopes) else {
            throw Problem.invalid("has more than the app requested", at: "/scopes")
        }
        body.scopes = body.scopes ?? asked.scopes.sorted()
        guard
            body.userHint ?? pending.subjectHint == pending.subjectHint
                || pending.subjectHint == nil
        else {
            throw Problem.conflict("the app requested another user")
        }
        body.userHint = pending.subjectHint ?? body.userHint
        guard body.authTime != nil || !pending.needsAuthenticationTime else {
            throw Problem.invalid(
                "it is missing: the app requires the time of sign-in (prompt=login or max_age)",
                at: "/auth_time")
        }
        guard pending.accepts(authenticatedAt: body.authTime ?? now) else {
            throw Problem.conflict(
                "the app requires a newer sign-in (prompt=login or max_age): let the user sign in again"
            )
        }
    }

    /// The user named by `user`, by `user_hint`, or by both if they agree.
    private static func user(
        _ body: Body, _ clientID: String, now: Int64, _ store: Store
    ) throws -> String {
        guard let hint = body.userHint else { return body.user ?? "" }
        guard let hinted = try store.provider.userID(hint: hint, clientID: clientID, now: now)
        else {
            throw Problem.invalid("the app's team has no such user", at: "/user_hint")
        }
        guard body.user ?? hinted == hinted else {
            throw Problem.conflict("user_hint refers to another user")
        }
        return hinted
    }

    // MARK: The request

    private func check(_ body: Body, now: Int64) throws -> ProviderAuthorization {
        guard let clientID = body.clientID else {
            throw Problem.invalid("it is missing", at: "/client_id")
        }
        guard let redirectURI = body.redirectURI else {
            throw Problem.invalid("it is missing", at: "/redirect_uri")
        }
        guard body.user ?? body.userHint != nil else {
            throw Problem.invalid("is missing", at: "/user")
        }
        let scopes = Set(body.scopes ?? [])
        guard scopes.isSubset(of: UserScope.all) else {
            throw Problem.invalid(
                "scopes must be of \(UserScope.all.sorted().joined(separator: ", "))", at: "/scopes"
            )
        }
        try text(body.nonce, "/nonce", ExpectedNonce.maximumLength)
        try text(body.orgID, "/org_id", 255)
        if let state = body.state, state.utf8.count > 4_096 {
            throw Problem.invalid("must be at most 4096 octets", at: "/state")
        }
        if let status = body.realUserStatus, !(0...2).contains(status) {
            throw Problem.invalid("must be 0, 1 or 2", at: "/real_user_status")
        }
        if let time = body.authTime, time < 0 || time > now {
            throw Problem.invalid("must be in the past", at: "/auth_time")
        }
        guard (body.amr ?? []).count <= 10, (body.amr ?? []).allSatisfy(Self.isMethod) else {
            throw Problem.invalid(
                "must be at most 10 words of RFC 8176, as in pwd or otp", at: "/amr")
        }
        try text(body.acr, "/acr", 255)
        if body.hideMyEmail == false, !scopes.contains("email") {
            throw Problem.invalid("false needs the scope email", at: "/hide_my_email")
        }
        for (part, pointer) in [
            (body.name?.firstName, "/name/first_name"), (body.name?.lastName, "/name/last_name"),
        ] {
            try text(part, pointer, 400)
            if let place = PersonText.place(in: part ?? "") {
                throw Problem.invalid(
                    "the character at place \(place) is invisible, or changes the direction of text",
                    at: pointer)
            }
        }
        // The real address is revealed only if the page asks for it explicitly.
        let emailKind: EmailKind? =
            scopes.contains("email") ? (body.hideMyEmail ?? true ? .privateRelay : .real) : nil
        var authorization = ProviderAuthorization(
            grant: AuthorizationRequest(
                clientID: clientID, userID: "", emailKind: emailKind, inbox: try inbox(body.inbox),
                sharesName: UserScope.haveName(scopes) ? true : nil,
                realUserStatus: body.realUserStatus),
            redirectURI: redirectURI, scopes: scopes, nonce: body.nonce,
            challenge: try challenge(body),
            orgID: body.orgID, authenticatedAt: body.authTime ?? now)
        authorization.method = AuthenticationMethod(
            references: Set(body.amr ?? []), contextClass: body.acr)
        if UserScope.haveName(scopes) {
            authorization.grant.name = body.name.map { .typed($0.person) } ?? .stored
        }
        return authorization
    }

    /// A value of `amr`: 1 to 32 of a-z 0-9 _ -.
    private static func isMethod(_ word: String) -> Bool {
        (1...32).contains(word.utf8.count)
            && word.utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
            }
    }

    private func text(_ text: String?, _ pointer: String, _ maximum: Int) throws {
        guard let text else { return }
        guard (1...maximum).contains(text.utf8.count),
            !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else {
            throw Problem.invalid(
                "must be 1 to \(maximum) octets without control characters", at: pointer)
        }
    }

    private func inbox(_ value: JSONValue?) throws -> InboxName? {
        switch value {
        case nil, .null: return nil
        case .number(let number):
            if let number = number.integer { return .number(number) }
        case .string(let text): return .address(InboxAddress(try AddrSpec.typed(text)))
        default: break
        }
        throw Problem.invalid("must be the number or the address of an inbox", at: "/inbox")
    }

    /// The 32 octets of an S256 challenge; `plain` hides nothing from anyone who sees the request.
    private func challenge(_ body: Body) throws -> [UInt8]? {
        guard let text = body.codeChallenge else {
            guard body.codeChallengeMethod == nil else {
                throw Problem.invalid("is missing", at: "/code_challenge")
            }
            return nil
        }
        guard body.codeChallengeMethod == "S256" else {
            throw Problem.invalid("must be S256", at: "/code_challenge_method")
        }
        guard let octets = Base64URL.decode(Array(text.utf8)), octets.count == 32 else {
            throw Problem.invalid(
                "must be the SHA-256 of the verifier in base64url, 43 characters",
                at: "/code_challenge")
        }
        return octets
    }

    // MARK: The response

    private static func object(_ answer: AuthorizationAnswer, state: String?) -> JSONObject {
        var object: JSONObject = [
            "code": .string(answer.code), "expires_in": .integer(ProviderLifetime.code),
            "id_token": .string(answer.identityToken),
        ]
        object["state"] = state.map(JSONValue.string)
        object["user"] = answer.user.map(JSONValue.object)
        return object
    }
}
