// A provider with clients of two teams, and the clients' side of it.

import API
import Events
import Foundation
import HTTPTypes
import InternetMessage
import Languages
import MailCrypto
import SignIn
import Support
import Testing

/// A team's key for its client secrets.
struct TeamKey: Sendable {
    let key: IdentitySigningKey
    let publicPEM: String

    init() throws {
        let (key, pem) = try IdentitySigningKey.generate()
        self.key = key
        let info = Data(try P256PrivateKey(pem: pem).publicKey.publicKeyInfo).base64EncodedString()
        publicPEM = "-----BEGIN PUBLIC KEY-----\n\(info)\n-----END PUBLIC KEY-----\n"
    }
}

/// Team `juice` with com.example.juice, com.example.juice.web in its group and
/// com.example.press on its own; team `soda` with com.example.soda. User `jane`, Jane Mary Doe,
/// with the verified inbox jane@home.example.
final class ProviderFixture: Sendable {
    static let issuer = "https://id.example"
    static let redirect = "https://juice.example/signed-in"

    let api: APIFixture
    let juice: TeamKey
    let soda: TeamKey
    let operatorKey: String

    init(
        refreshesPerDay: Int = 100, authorizationEndpoint: String? = "https://sign-in.example/",
        signInPage: String? = nil,
        allowsPrivateReceivers: Bool = false
    ) async throws {
        let settings = ProviderSettings(
            issuer: Self.issuer, authorizationEndpoint: authorizationEndpoint,
            signInPage: signInPage,
            refreshesPerDay: refreshesPerDay, languages: try Languages.builtIn())
        api = try APIFixture { fixture in
            let now: @Sendable () -> Int64 = { [weak fixture] in fixture?.now ?? 0 }
            let signer = IdentitySigner(
                fixture.store.identityKeys, now: now, logger: fixture.log.logger)
            return [
                SignInRoutes(settings, fixture.parts, signer: signer),
                StreamRoutes(
                    fixture.parts, signer: signer,
                    rules: StreamRepository.Rules(
                        issuer: Self.issuer, allowsPrivate: allowsPrivateReceivers)),
            ]
        }
        juice = try TeamKey()
        soda = try TeamKey()
        operatorKey = try api.key(nil)
        let (store, change) = (api.store, APIFixture.change)
        for (team, client, group) in [
            ("juice", "com.example.juice", nil),
            ("juice", "com.example.juice.web", "com.example.juice"),
            ("juice", "com.example.press", nil), ("soda", "com.example.soda", nil),
        ] {
            _ = try store.apps.add(
                team: team, clientID: client, group: group, redirectURIs: [Self.redirect], change)
        }
        _ = try store.clients.addKey(
            team: "juice", keyID: juice.key.keyID, pem: juice.publicPEM, change)
        _ = try store.clients.addKey(
            team: "soda", keyID: soda.key.keyID, pem: soda.publicPEM, change)
        _ = try store.users.add(
            id: "jane", name: "Jane Mary Doe",
            inbox: InboxAddress(try AddrSpec.typed("jane@home.example")), isVerified: true,
            change)
    }

    /// A client secret of a team.
    func secret(
        _ clientID: String = "com.example.juice", changing: [String: JSONValue?] = [:],
        by key: TeamKey? = nil
    ) throws -> String {
        let isSoda = clientID == "com.example.soda"
        var claims: JSONObject = [
            "iss": isSoda ? "soda" : "juice", "sub": .string(clientID), "aud": .string(Self.issuer),
            "iat": .integer(api.now),
            "exp": .integer(api.now + 300),
        ]
        for (name, value) in changing { claims[name] = value }
        return try (key ?? (isSoda ? soda : juice)).key.sign(claims)
    }

    /// Requests an authorization with a page's usual members; a nil removes a member.
    func authorize(_ changes: [String: Any?] = [:]) async throws -> Response {
        var body: [String: Any] = [
            "user": "jane", "client_id": "com.example.juice", "redirect_uri": Self.redirect,
            "scopes": ["openid", "email", "name"],
            "nonce": "n-0S6_WzA2Mj", "state": "af0ifjsldkj",
        ]
        for (name, value) in changes { body[name] = value }
        let text = String(decoding: try JSONSerialization.data(withJSONObject: body), as: UTF8.self)
        return try await api.ask(.post, "/v1/authorizations", key: operatorKey, body: text)
    }

    /// The code of an authorization that must succeed.
    func code(_ changes: [String: Any?] = [:]) async throws -> String {
        let answer = try await authorize(changes)
        try #require(answer.status == 200, "\(answer.text)")
        return try #require(answer.json["code"].string)
    }

    /// Sends a form.
    func post(
        _ path: String, _ form: [(String, String)], headers: [String: String] = [:]
    ) async throws -> Response {
        let allowed = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        let body = form.map { name, value in
            "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: allowed) ?? "")"
        }.joined(separator: "&")
        return try await api.ask(
            .post, path, body: body,
            headers: ["Content-Type": "application/x-www-form-urlencoded"].merging(headers) { $1 })
    }

    /// Sends a form as an authenticated client.
    func client(
        _ path: String, _ clientID: String = "com.example.juice", _ form: [(String, String)]
    ) async throws -> Response {
        try await post(
            path, [("client_id", clientID), ("client_secret", try secret(clientID))] + form)
    }

    /// Exchanges a code.
    func redeem(
        _ code: String, _ clientID: String = "com.example.juice", _ more: [(String, String)] = [],
        redirect: String = redirect
    )
        async throws -> Response
    {
        try await client(
            "/auth/token", clientID,
            [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirect)]
                + more)
    }

    /// Refreshes.
    func refresh(
        _ token: String, _ clientID: String = "com.example.juice", _ more: [(String, String)] = []
    ) async throws -> Response {
        try await client(
            "/auth/token", clientID,
            [("grant_type", "refresh_token"), ("refresh_token", token)] + more)
    }

    /// Revokes.
    func revoke(
        _ token: String, _ clientID: String = "com.example.juice", hint: String? = nil
    ) async throws -> Response {
        try await client(
            "/auth/revoke", clientID,
            [("token", token)] + (hint.map { [("token_type_hint", $0)] } ?? []))
    }

    /// Access and refresh token after a sign-in that must succeed.
    func signedIn(_ changes: [String: Any?] = [:]) async throws -> (access: String, refresh: String)
    {
        let answer = try await redeem(
            try await code(changes), changes["client_id"] as? String ?? "com.example.juice")
        try #require(answer.status == 200, "\(answer.text)")
        return (
            try #require(answer.json["access_token"].string),
            try #require(answer.json["refresh_token"].string)
        )
    }

    /// The claims of an identity token, verified with the keys that the provider publishes.
    func claims(
        _ answer: Response, audience: String = "com.example.juice"
    ) async throws -> IdentityClaims {
        try #require(answer.status == 200, "\(answer.text)")
        let keys = try JWKSet.parse(try await api.ask(.get, "/auth/keys").body)
        let token = try CompactJWS(try #require(answer.json["id_token"].string))
        try TokenChecks.signature(token, algorithms: [.es256], keys: keys)
        let claims = try IdentityClaims(payload: token.payload)
        #expect(claims.issuer == Self.issuer)
        #expect(claims.audience == audience)
        #expect(claims.issuedAt == api.now)
        #expect(claims.expiresAt > api.now)
        return claims
    }
}

/// Expects an error of RFC 6749 section 5.2.
func expectAuthError(
    _ answer: Response, _ code: String, status: Int = 400, saying: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
    #expect(answer.json["error"].string == code, "\(answer.text)", sourceLocation: sourceLocation)
    #expect(answer.headers[.cacheControl] == "no-store", sourceLocation: sourceLocation)
    #expect(answer.headers[.contentType] == "application/json", sourceLocation: sourceLocation)
    let detail = answer.json["error_description"].string ?? ""
    #expect(saying.isEmpty || detail.contains(saying), "\(detail)", sourceLocation: sourceLocation)
    #expect(
        !detail.isEmpty && detail.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F },
        sourceLocation: sourceLocation)
}
