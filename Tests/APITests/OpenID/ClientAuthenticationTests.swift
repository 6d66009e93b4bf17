// How clients authenticate at /auth/token.

import Database
import Foundation
import MailCrypto
import PersonalData
import SignIn
import Support
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct ClientAuthenticationTests {
    private static let client = OpenIDFixture.client

    private func ask(
        _ party: OpenIDFixture, _ more: [(String, String)], headers: [String: String] = [:]
    ) async throws -> Response {
        let code = try #require(try await party.authorize()["code"])
        return try await party.fixture.post(
            "/auth/token",
            [
                ("grant_type", "authorization_code"), ("code", code),
                ("redirect_uri", OpenIDFixture.redirect),
            ] + more,
            headers: headers)
    }

    private func assertion(
        _ party: OpenIDFixture, _ changes: [String: JSONValue?] = [:],
        by key: IdentitySigningKey? = nil, type: String? = "JWT"
    ) throws -> String {
        var claims: JSONObject = [
            "iss": .string(Self.client), "sub": .string(Self.client),
            "aud": .string("\(ProviderFixture.issuer)/auth/token"),
            "exp": .integer(party.fixture.api.now + 60), "jti": .string(UUID().uuidString),
        ]
        for (name, value) in changes { claims[name] = value }
        return try (key ?? party.fixture.juice.key).sign(claims, type: type)
    }

    private func form(_ assertion: String) -> [(String, String)] {
        [("client_assertion_type", ClientAssertion.type), ("client_assertion", assertion)]
    }

    @Test func clientSecret_issued_worksUntilRevoked() async throws {
        let party = try await OpenIDFixture()
        let clients = party.fixture.api.store.openIDClients
        let (second, issued) = try clients.issueSecret(
            team: "juice", clientID: Self.client, APIFixture.change)
        for secret in [party.secret, second] {
            #expect(
                try await ask(party, [("client_id", Self.client), ("client_secret", secret)]).status
                    == 200)
        }
        // Two at a time, for a rotation.
        #expect(throws: StoreFailure.self) {
            try clients.issueSecret(team: "juice", clientID: Self.client, APIFixture.change)
        }
        try clients.revokeSecret(
            team: "juice", clientID: Self.client, name: issued.name, APIFixture.change)
        expectAuthError(
            try await ask(party, [("client_id", Self.client), ("client_secret", second)]),
            "invalid_client")
        expectAuthError(
            try await ask(
                party, [("client_id", "com.example.press"), ("client_secret", party.secret)]),
            "invalid_client")
        expectAuthError(
            try await ask(
                party, [("client_id", Self.client), ("client_secret", party.secret + "a")]),
            "invalid_client")
    }

    @Test func basicAuthentication_formURLEncoded_isAccepted() async throws {
        let party = try await OpenIDFixture()
        // A client may escape more than it must: every octet.
        let escaped =
            Self.client.utf8.map { "%" + Hex.encode([$0]) }.joined() + ":"
            + FormEncoding.encode(party.secret)
        let header = ["Authorization": "Basic \(Data(escaped.utf8).base64EncodedString())"]
        #expect(try await ask(party, [], headers: header).status == 200)
        let wrong = "\(Self.client):nonsense"
        expectAuthError(
            try await ask(
                party, [],
                headers: ["Authorization": "Basic \(Data(wrong.utf8).base64EncodedString())"]),
            "invalid_client", status: 401)
    }

    @Test func clientAuthentication_twoMethods_isRefused() async throws {
        let party = try await OpenIDFixture()
        let basic = [
            "Authorization":
                "Basic \(Data("\(Self.client):\(party.secret)".utf8).base64EncodedString())"
        ]
        let secret = [("client_id", Self.client), ("client_secret", party.secret)]
        let assertion = form(try assertion(party))
        expectAuthError(try await ask(party, secret, headers: basic), "invalid_request")
        expectAuthError(try await ask(party, secret + assertion), "invalid_request")
        expectAuthError(try await ask(party, assertion, headers: basic), "invalid_request")
    }

    @Test func clientAssertion_es256OrRS256_worksOnce() async throws {
        let party = try await OpenIDFixture()
        let es256 = form(try assertion(party))
        #expect(try await ask(party, es256).status == 200)
        expectAuthError(try await ask(party, es256), "invalid_client", saying: "used before")
        let (key, pem) = try IdentitySigningKey.generate(.rs256)
        let info = Data(try RSAPrivateKey(pem: pem).publicKeyInfo()).base64EncodedString()
        let registered = "-----BEGIN PUBLIC KEY-----\n\(info)\n-----END PUBLIC KEY-----\n"
        _ = try VerificationKey(keyID: key.keyID, pem: registered)
        _ = try party.fixture.api.store.clients.addKey(
            team: "juice", keyID: key.keyID, pem: registered, APIFixture.change)
        let rs256 = form(try assertion(party, ["aud": .string(ProviderFixture.issuer)], by: key))
        #expect(try await ask(party, rs256 + [("client_id", Self.client)]).status == 200)
        // The JWT in client_secret stays ES256.
        let old = try key.sign([
            "iss": "juice", "sub": .string(Self.client), "aud": .string(ProviderFixture.issuer),
            "iat": .integer(party.fixture.api.now), "exp": .integer(party.fixture.api.now + 60),
        ])
        expectAuthError(
            try await ask(party, [("client_id", Self.client), ("client_secret", old)]),
            "invalid_client")
    }

    @Test func clientAssertion_wrongClaims_isRefused() async throws {
        let party = try await OpenIDFixture()
        let now = party.fixture.api.now
        let wrong: [[String: JSONValue?]] = [
            ["iss": "juice"], ["sub": "com.example.press"], ["aud": "https://evil.example"],
            ["aud": .array([])],
            ["aud": .array(["https://other.example", "https://evil.example"])],
            ["aud": .array([.integer(1)])],
            ["exp": .integer(now - 60)],
            ["exp": .integer(now + 7_200)], ["exp": nil], ["jti": nil], ["jti": ""],
            ["iat": .integer(now + 600)],
            ["nbf": .integer(now + 600)],
        ]
        for changes in wrong {
            let text = try assertion(party, changes)
            expectAuthError(
                try await ask(party, form(text) + [("client_id", Self.client)]), "invalid_client",
                saying: "client_assertion")
        }
        expectAuthError(
            try await ask(party, form(try assertion(party, type: "at+jwt"))), "invalid_client")
        expectAuthError(
            try await ask(party, form(try assertion(party, by: party.fixture.soda.key))),
            "invalid_client")
        expectAuthError(
            try await ask(
                party,
                [("client_assertion_type", "other"), ("client_assertion", try assertion(party))]),
            "invalid_request")
    }

    @Test func publicClient_codeExchange_needsVerifier() async throws {
        let party = try await OpenIDFixture(isPublic: true)
        let pkce: [String: String?] = [
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        ]
        let code = try #require(try await party.authorize(pkce)["code"])
        let form = [
            ("client_id", Self.client), ("grant_type", "authorization_code"),
            ("redirect_uri", OpenIDFixture.redirect),
        ]
        let exchange = form + [("code", code)]
        expectAuthError(
            try await party.fixture.post("/auth/token", exchange), "invalid_request",
            saying: "code_verifier")
        expectAuthError(
            try await party.fixture.post(
                "/auth/token", exchange + [("code_verifier", String(repeating: "a", count: 43))]),
            "invalid_grant")
        let answer = try await party.fixture.post(
            "/auth/token",
            exchange + [("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")])
        #expect(answer.status == 200 && answer.json["refresh_token"].string?.utf8.count == 67)
        #expect(try await party.authorize()["error"] == "invalid_request")
        expectAuthError(
            try await party.fixture.post(
                "/auth/token",
                [
                    ("client_id", Self.client), ("grant_type", "client_credentials"),
                    ("scope", "user.migration"),
                ]),
            "unauthorized_client")
        #expect(
            try await party.fixture.post(
                "/auth/revoke", [("client_id", Self.client), ("token", "pa_x")]
            ).status == 200)
        // A public client cannot exchange a code that was requested without a challenge.
        let bare = try await party.fixture.code()
        expectAuthError(
            try await party.fixture.post(
                "/auth/token",
                form + [("code", bare), ("code_verifier", String(repeating: "a", count: 43))]),
            "invalid_grant")
    }

    /// Signs in to a public client with PKCE: the answer with its tokens.
    private func signIn(_ party: OpenIDFixture) async throws -> Response {
        let pkce = [
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        ]
        return try await party.fixture.post(
            "/auth/token",
            [
                ("client_id", Self.client), ("grant_type", "authorization_code"),
                ("redirect_uri", OpenIDFixture.redirect),
                ("code", try #require(try await party.authorize(pkce)["code"])),
                ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            ])
    }

    /// A stolen token is detected: its second use, by the thief or the app, ends the sign-in.
    @Test func refreshToken_ofAPublicApp_servesOnce() async throws {
        let party = try await OpenIDFixture(isPublic: true)
        func signIn() async throws -> Response { try await self.signIn(party) }
        func refresh(_ token: String, scope: String = "") async throws -> Response {
            try await party.fixture.post(
                "/auth/token",
                [
                    ("client_id", Self.client), ("grant_type", "refresh_token"),
                    ("refresh_token", token), ("scope", scope),
                ])
        }
        func token(_ answer: Response) throws -> String {
            try #require(answer.json["refresh_token"].string, "\(answer.text)")
        }
        let (other, first) = (try await signIn(), try token(try await signIn()))
        // A refused request uses up nothing.
        expectAuthError(
            try await refresh(first, scope: "openid profile email name extra"), "invalid_scope")
        let second = try token(try await refresh(first))
        #expect(second != first && second.utf8.prefix(35).elementsEqual(first.utf8.prefix(35)))
        // Two requests at once, or a lost answer.
        #expect(try token(try await refresh(first)) == second)
        let third = try await refresh(second)
        let fourth = try await refresh(try token(third))
        #expect(try await party.userInfo(fourth).status == 200)
        party.fixture.api.wait(seconds: 61)
        expectAuthError(try await refresh(try token(third)), "invalid_grant", saying: "used before")
        #expect(try await party.userInfo(fourth).status == 401)
        expectAuthError(try await refresh(try token(fourth)), "invalid_grant", saying: "not valid")
        // Another sign-in continues, and a token that is two steps old ends it.
        let next = try token(try await refresh(try token(other)))
        _ = try await refresh(next)
        expectAuthError(try await refresh(try token(other)), "invalid_grant", saying: "used before")
        // An earlier token is sufficient for sign-out.
        let last = try await signIn()
        let now = try await refresh(try token(last))
        #expect(
            try await party.fixture.post(
                "/auth/revoke", [("client_id", Self.client), ("token", token(last))]
            ).status == 200)
        #expect(try await party.userInfo(now).status == 401)
    }

    /// A public app must be able to revoke its tokens. It proves only that it has the token, so the
    /// consent stays.
    @Test func publicClient_tokenRevoked_keepsConsent() async throws {
        let party = try await OpenIDFixture(isPublic: true)
        func signIn() async throws -> Response { try await self.signIn(party) }
        let (first, second) = (try await signIn(), try await signIn())
        let token = try #require(first.json["access_token"].string)
        expectAuthError(
            try await party.fixture.post(
                "/auth/revoke", [("client_id", "com.example.juice.web"), ("token", token)]),
            "invalid_client")
        #expect(
            try await party.fixture.post(
                "/auth/revoke", [("client_id", Self.client), ("token", token)]
            ).status == 200)
        #expect(try await party.userInfo(first).status == 401)
        #expect(try await party.userInfo(second).status == 200)
        let accounts = try party.fixture.api.store.persons.accounts(
            user: "jane", since: 0, now: party.fixture.api.now)
        #expect(accounts.flatMap(\.consents).filter(\.isLive).count == 1)
    }

    @Test func confidentialClient_withoutSecret_isRefused() async throws {
        let party = try await OpenIDFixture()
        expectAuthError(
            try await ask(
                party,
                [("client_id", Self.client), ("code_verifier", String(repeating: "a", count: 43))]),
            "invalid_client")
        #expect(throws: StoreFailure.self) {
            try party.fixture.api.store.openIDClients.set(
                ClientSettings(isPublic: true, algorithm: .es256), team: "juice",
                clientID: Self.client, APIFixture.change)
        }
    }

    @Test func clientSecret_appRemovedOrTransferred_isRefused() async throws {
        let party = try await OpenIDFixture()
        let store = party.fixture.api.store
        _ = try store.transfers.start(
            team: "juice", app: Self.client, to: "soda", APIFixture.change)
        try store.transfers.complete(app: Self.client, APIFixture.change)
        #expect(try store.openIDClients.secrets(team: "soda", clientID: Self.client).isEmpty)
        expectAuthError(
            try await party.fixture.post(
                "/auth/revoke",
                [
                    ("client_id", Self.client), ("client_secret", party.secret), ("token", "pa_x"),
                ]), "invalid_client")
        let (pressSecret, _) = try store.openIDClients.issueSecret(
            team: "juice", clientID: "com.example.press", APIFixture.change)
        try store.apps.remove(team: "juice", clientID: "com.example.press", APIFixture.change)
        _ = try store.apps.add(
            team: "soda", clientID: "com.example.press", group: nil, APIFixture.change)
        expectAuthError(
            try await party.fixture.post(
                "/auth/revoke",
                [
                    ("client_id", "com.example.press"), ("client_secret", pressSecret),
                    ("token", "pa_x"),
                ]), "invalid_client")
    }

    @Test func clientSecret_stored_isNotInTheClear() async throws {
        let party = try await OpenIDFixture()
        let files = try FileManager.default.contentsOfDirectory(
            at: party.fixture.api.folder, includingPropertiesForKeys: nil)
        let octets = try files.reduce(into: Data()) { try $0.append(Data(contentsOf: $1)) }
        // Unencrypted text is found, so the search works.
        #expect(octets.range(of: Data(Self.client.utf8)) != nil)
        #expect(octets.range(of: Data(party.secret.utf8)) == nil)
    }
}
