// POST /auth/token and /auth/revoke, compatible with Sign in with Apple.

import Accounts
import Database
import HTTP
import HTTPTypes
import Hummingbird
import MailCrypto
import SignIn
import Support

/// The endpoints that teams' backends call.
extension SignInRoutes {
    // MARK: /auth/token

    func token(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await form(request, context)
        let client = try await client(request, form, endpoint: "/auth/token", allowsPublic: true)
        let grantType = try form.required("grant_type")
        // A public client proves only what it has: its code and verifier, or a
        // refresh token that serves once.
        guard !client.isPublic || grantType != "client_credentials" else {
            throw AuthError.unauthorizedClient(
                "a public client cannot use grant_type client_credentials")
        }
        switch grantType {
        case "authorization_code": return try await redeem(form, client)
        case "refresh_token": return try await refresh(form, client)
        case "client_credentials": return try await clientCredentials(form, client)
        default: throw AuthError.unsupportedGrantType()
        }
    }

    private func redeem(_ form: FormBody, _ client: ProviderClient) async throws -> Response {
        let code = try form.required("code").text
        let redirectURI = try form.required("redirect_uri").text
        let challenge = try form["code_verifier"].map(Self.challenge)
        guard challenge != nil || !client.isPublic else {
            throw AuthError.invalidRequest("code_verifier is missing")
        }
        let time = parts.now()
        let maker = try await signer.maker(
            issuer: settings.issuer, client.identityTokenAlgorithm, now: time)
        return try await answer { store in
            try store.provider.redeem(
                code: code, client: client, redirectURI: redirectURI, challenge: challenge,
                now: time
            ) {
                tokens throws(StoreFailure) in try Self.body(tokens, maker)
            }
        }
    }

    private static let exceedsGrant = "scope exceeds the granted scopes"

    private func refresh(_ form: FormBody, _ client: ProviderClient) async throws -> Response {
        let token = try form.required("refresh_token").text
        // An empty value counts as absent (RFC 6749 section 3.1).
        let asked = Set(form["scope"]?.words ?? [])
        guard asked.isSubset(of: UserScope.all.map { WireText($0) }) else {
            throw AuthError.invalidScope(Self.exceedsGrant)
        }
        let scopes = asked.isEmpty ? nil : Set(asked.map(\.text))
        let time = parts.now()
        let maker = try await signer.maker(
            issuer: settings.issuer, client.identityTokenAlgorithm, now: time)
        return try await answer { [settings] store in
            try store.provider.refresh(
                token: token, client: client, scopes: scopes, dailyLimit: settings.refreshesPerDay,
                now: time
            ) { tokens throws(StoreFailure) in try Self.body(tokens, maker) }
        }
    }

    private func clientCredentials(
        _ form: FormBody, _ client: ProviderClient
    ) async throws -> Response {
        let scopes = Set(form["scope"]?.words ?? [])
        guard !scopes.isEmpty, scopes.isSubset(of: ProviderScope.client.map { WireText($0) }) else {
            throw AuthError.invalidScope(
                "scope is of \(ProviderScope.client.sorted().joined(separator: ", "))")
        }
        let scope = scopes.sorted().map(\.text).joined(separator: " ")
        let time = parts.now()
        let token = try await parts.run {
            try $0.provider.clientToken(client, scope: scope, now: time)
        }
        return .unstored([
            "access_token": .string(token), "token_type": "Bearer",
            "expires_in": .integer(ProviderLifetime.accessToken),
            "scope": .string(scope),
        ])
    }

    private func answer(
        _ body: @escaping @Sendable (Store) throws -> TokenOutcome<JSONObject>
    ) async throws -> Response {
        switch try await parts.run(body) {
        case .issued(let object): return .unstored(object)
        case .refused(.invalid(let reason)): throw AuthError.invalidGrant(reason)
        case .refused(.scope): throw AuthError.invalidScope(Self.exceedsGrant)
        case .refused(.tooMany):
            // The seconds until the day ends, UTC.
            throw AuthError.tooMany(retryAfter: 86_400 - ((parts.now() % 86_400) + 86_400) % 86_400)
        }
    }

    private static func body(
        _ tokens: IssuedTokens, _ maker: TokenMaker
    ) throws(StoreFailure) -> JSONObject {
        var object: JSONObject = [
            "access_token": .string(tokens.accessToken), "token_type": "Bearer",
            "expires_in": .integer(ProviderLifetime.accessToken),
            "id_token": .string(try maker.token(tokens.subject, accessToken: tokens.accessToken)),
        ]
        object["refresh_token"] = tokens.refreshToken.map(JSONValue.string)
        if !tokens.subject.scopes.isEmpty {
            object["scope"] = .string(tokens.subject.scopes.sorted().joined(separator: " "))
        }
        return object
    }

    /// The challenge of a verifier (RFC 7636 section 4.6, S256).
    private static func challenge(_ verifier: WireText) throws -> [UInt8] {
        let isPlain = verifier.octets.allSatisfy { octet in
            (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5A)
                || (octet >= 0x61 && octet <= 0x7A)
                || [0x2D, 0x2E, 0x5F, 0x7E].contains(octet)
        }
        guard isPlain, (43...128).contains(verifier.octets.count) else {
            throw AuthError.invalidRequest(
                "code_verifier must be 43 to 128 characters of A-Z a-z 0-9 - . _ ~")
        }
        return SHA256.hash(verifier.octets)
    }

    // MARK: /auth/revoke

    func revoke(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await form(request, context)
        let client = try await client(request, form, endpoint: "/auth/revoke", allowsPublic: true)
        // token_type_hint may have any value: the token itself shows its type.
        let token = try form.required("token").text
        let change = Change(actor: "client:\(client.clientID)", now: parts.now())
        let outcome = try await parts.run {
            try $0.provider.revoke(token: token, client: client, change)
        }
        // An unknown token counts as revoked (RFC 7009 section 2.2).
        guard outcome != .otherClient else {
            throw AuthError.invalidGrant("the token was issued to another client")
        }
        return Response(status: .ok, headers: HTTPFields().notStored)
    }

    // MARK: /auth/introspect

    /// Public apps may not use this endpoint: they prove nothing (RFC 7662 section 2.1).
    func introspect(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await form(request, context)
        let client = try await client(
            request, form, endpoint: "/auth/introspect", allowsPublic: false)
        let (token, time) = (try form.required("token").text, parts.now())
        guard
            let found = try await parts.run({
                try $0.provider.introspect(token: token, client: client, now: time)
            })
        else {
            return .unstored(["active": .bool(false)])
        }
        var object: JSONObject = [
            "active": .bool(true), "iss": .string(settings.issuer),
            "client_id": .string(found.clientID),
            "scope": .string(found.scope),
        ]
        object["token_type"] = found.isAccessToken ? "Bearer" : nil
        object["sub"] = found.sub.map(JSONValue.string)
        object["exp"] = found.expiresAt.map(JSONValue.integer)
        object["iat"] = found.issuedAt.map(JSONValue.integer)
        // How sure the sign-in was (RFC 9470 section 6.2).
        object["auth_time"] = found.authenticatedAt.map(JSONValue.integer)
        object["acr"] = found.method.contextClass.map(JSONValue.string)
        if !found.method.references.isEmpty {
            object["amr"] = .array(found.method.references.map(JSONValue.string))
        }
        return .unstored(object)
    }
}
