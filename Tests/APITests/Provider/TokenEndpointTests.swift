// /auth/token and /auth/revoke: each answer, and its recipient.

import Accounts
import Database
import Events
import Foundation
import HTTPTypes
import SignIn
import TestSupport
import Testing

@testable import API
@testable import HTTP

@Suite(.blocking) struct TokenEndpointTests {
    /// It must not count as a failure of the service.
    @Test func authError_bodyNeverEnds_is408() {
        let error = AuthError(ConnectionGuard.GivenUp())
        #expect(error.status == .requestTimeout && error.code == "invalid_request")
        #expect(
            AuthError(StoreFailure.refused(.notFound, "inner words")).status == .internalServerError
        )
    }

    @Test func refreshToken_narrowerScope_narrowsThatAnswerOnly() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.signedIn()
        let narrow = try await fixture.refresh(
            tokens.refresh, "com.example.juice", [("scope", "openid name")])
        #expect(narrow.json["scope"].string == "name openid")
        let claims = try await fixture.claims(narrow)
        #expect(claims.all["email"] == nil)
        #expect(claims.all["is_private_email"] == nil)
        let access = try #require(narrow.json["access_token"].string)
        #expect(
            try fixture.api.store.provider.holder(accessToken: access, now: fixture.api.now)?.scopes
                == ["openid", "name"])
        // The grant keeps its scopes.
        let wide = try await fixture.refresh(tokens.refresh)
        #expect(wide.json["scope"].string == "email name openid")
        #expect(try await fixture.claims(wide).all["email"] != nil)
    }

    @Test func code_redeemed_returnsTokens() async throws {
        let fixture = try await ProviderFixture()
        let authorization = try await fixture.authorize()
        let code = try #require(authorization.json["code"].string)
        let answer = try await fixture.redeem(code)
        let claims = try await fixture.claims(answer)
        #expect(answer.json["token_type"].string == "Bearer")
        #expect(answer.json["expires_in"] == .integer(3600))
        #expect(answer.json["scope"].string == "email name openid")
        #expect(answer.headers[.cacheControl] == "no-store")
        let access = try #require(answer.json["access_token"].string)
        #expect(claims.all["at_hash"]?.string == IdentityTokenContent.leftHalfHash(access))
        #expect(claims.nonce == "n-0S6_WzA2Mj")
        // The token of the authorization and that of the exchange are about the same user.
        let first = try await fixture.claims(authorization)
        #expect(first.subject == claims.subject)
        #expect(first.nonce == claims.nonce)
        #expect(first.all["c_hash"]?.string == IdentityTokenContent.leftHalfHash(code))
        #expect(
            try fixture.api.store.provider.holder(accessToken: access, now: fixture.api.now)?
                .clientID == "com.example.juice")
    }

    @Test func code_redeemedTwice_revokesItsTokens() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let first = try await fixture.redeem(code)
        let refresh = try #require(first.json["refresh_token"].string)
        let access = try #require(first.json["access_token"].string)
        let other = try await fixture.signedIn()
        expectAuthError(try await fixture.redeem(code), "invalid_grant")
        expectAuthError(try await fixture.refresh(refresh), "invalid_grant")
        #expect(
            try fixture.api.store.provider.holder(accessToken: access, now: fixture.api.now) == nil)
        // Only the tokens of that code end: consent and other sign-ins stay.
        #expect(try await fixture.refresh(other.refresh).status == 200)
        // Also long after.
        fixture.api.wait(seconds: 40 * 86_400)
        _ = try fixture.api.store.provider.deleteExpired(now: fixture.api.now)
        let late = try await fixture.code()
        let given = try #require(try await fixture.redeem(late).json["refresh_token"].string)
        fixture.api.wait(seconds: 40 * 86_400)
        _ = try fixture.api.store.provider.deleteExpired(now: fixture.api.now)
        expectAuthError(try await fixture.redeem(late), "invalid_grant")
        expectAuthError(try await fixture.refresh(given), "invalid_grant")
    }

    @Test func code_afterFiveMinutes_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let (early, late) = (try await fixture.code(), try await fixture.code())
        fixture.api.wait(seconds: 299)
        #expect(try await fixture.redeem(early).status == 200)
        fixture.api.wait(seconds: 1)
        expectAuthError(try await fixture.redeem(late), "invalid_grant")
    }

    @Test func code_otherClientOrRedirectURI_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        expectAuthError(try await fixture.redeem(code, "com.example.juice.web"), "invalid_grant")
        expectAuthError(try await fixture.redeem(code, "com.example.soda"), "invalid_grant")
        expectAuthError(
            try await fixture.redeem(code, redirect: ProviderFixture.redirect + "/"),
            "invalid_grant")
        expectAuthError(try await fixture.redeem(code + "x"), "invalid_grant")
        // None of these used it up.
        #expect(try await fixture.redeem(code).status == 200)
    }

    @Test func refreshToken_used_returnsNoNewRefreshToken() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.signedIn()
        fixture.api.wait(seconds: 90 * 86_400)
        let answer = try await fixture.refresh(tokens.refresh)
        let claims = try await fixture.claims(answer)
        #expect(answer.json["refresh_token"] == .null)
        #expect(answer.json["expires_in"] == .integer(3600))
        #expect(answer.json["access_token"].string != tokens.access)
        // The token repeats the time of the first sign-in, but not its nonce (OpenID Connect Core
        // section 12.2).
        #expect(claims.authenticatedAt == APIFixture.start)
        #expect(claims.nonce == nil)
        #expect(claims.realUserStatus == nil)
        #expect(claims.email != nil)
        expectAuthError(
            try await fixture.refresh(tokens.refresh, "com.example.juice.web"), "invalid_grant")
        expectAuthError(try await fixture.refresh(tokens.access), "invalid_grant")
        expectAuthError(
            try await fixture.refresh(
                tokens.refresh, "com.example.juice", [("scope", "email admin")]), "invalid_scope")
        #expect(
            try await fixture.refresh(tokens.refresh, "com.example.juice", [("scope", "email")])
                .status == 200)
        #expect(
            try await fixture.refresh(tokens.refresh, "com.example.juice", [("scope", "")]).json[
                "scope"
            ].string
                == "email name openid")
    }

    @Test func accessToken_afterOneHour_isInvalid() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.signedIn()
        let provider = fixture.api.store.provider
        #expect(try provider.holder(accessToken: tokens.access, now: fixture.api.now + 3599) != nil)
        #expect(try provider.holder(accessToken: tokens.access, now: fixture.api.now + 3600) == nil)
    }

    @Test func refreshToken_grantRevoked_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.signedIn()
        let pending = try await fixture.code()
        let account = try #require(try fixture.api.store.accounts.accounts(user: "jane").first)
        let grant = try #require(try fixture.api.store.grants.grants(account: account.number).first)
        try fixture.api.store.grants.revoke(
            account: account.number, group: grant.group, APIFixture.change)
        expectAuthError(try await fixture.refresh(tokens.refresh), "invalid_grant")
        expectAuthError(try await fixture.redeem(pending), "invalid_grant")
        #expect(
            try fixture.api.store.provider.holder(accessToken: tokens.access, now: fixture.api.now)
                == nil)
        // A return does not revive them.
        _ = try await fixture.signedIn()
        expectAuthError(try await fixture.refresh(tokens.refresh), "invalid_grant")
        expectAuthError(try await fixture.redeem(pending), "invalid_grant")
    }

    @Test func refreshToken_overDailyLimit_is429() async throws {
        let fixture = try await ProviderFixture(refreshesPerDay: 3)
        fixture.api.now = 20_000 * 86_400 + 3_600
        let tokens = try await fixture.signedIn()
        let other = try await fixture.signedIn()
        for _ in 0..<3 { #expect(try await fixture.refresh(tokens.refresh).status == 200) }
        let refused = try await fixture.refresh(tokens.refresh)
        expectAuthError(refused, "slow_down", status: 429)
        #expect(refused.headers[.retryAfter] == "\(82_800)")
        #expect(try await fixture.refresh(other.refresh).status == 200)
        fixture.api.wait(seconds: 82_800)
        #expect(try await fixture.refresh(tokens.refresh).status == 200)
    }

    @Test func clientCredentials_granted_allowUserMigrationOnly() async throws {
        let fixture = try await ProviderFixture()
        func ask(_ scope: String?) async throws -> Response {
            try await fixture.client(
                "/auth/token", "com.example.juice",
                [("grant_type", "client_credentials")] + (scope.map { [("scope", $0)] } ?? [])
            )
        }
        let answer = try await ask("user.migration")
        #expect(answer.status == 200)
        #expect(answer.json["refresh_token"] == .null)
        #expect(answer.json["id_token"] == .null)
        #expect(answer.json["expires_in"] == .integer(3600))
        let token = try #require(answer.json["access_token"].string)
        let holder = try fixture.api.store.provider.holder(accessToken: token, now: fixture.api.now)
        #expect(holder?.clientID == "com.example.juice")
        #expect(holder?.teamID == "juice")
        #expect(holder?.scopes == ["user.migration"])
        expectAuthError(try await ask("email"), "invalid_scope")
        expectAuthError(try await ask(nil), "invalid_scope")
        #expect(try await fixture.revoke(token).status == 200)
        #expect(
            try fixture.api.store.provider.holder(accessToken: token, now: fixture.api.now) == nil)
    }

    // MARK: Revoking

    /// `token_type_hint` in any case, and also wrong ones; by either token.
    @Test(
        arguments: [
            nil, "refresh_token", "REFRESH_TOKEN", "Access_Token", "access_token", "nonsense",
        ], [true, false])
    func revocation_anyHint_endsGrantAndNotifiesTeam(
        _ hint: String?, _ byRefreshToken: Bool
    ) async throws {
        let fixture = try await ProviderFixture()
        let group = try #require(try fixture.api.store.apps.apps(team: "juice").first).group
        let url = try EndpointURL("https://events.example/")
        _ = try fixture.api.store.endpoints.set(
            team: "juice", app: "com.example.juice", url: url, APIFixture.change)
        let tokens = try await fixture.signedIn()
        let web = try await fixture.signedIn(["client_id": "com.example.juice.web"])
        let press = try await fixture.signedIn(["client_id": "com.example.press"])
        let answer = try await fixture.revoke(
            byRefreshToken ? tokens.refresh : tokens.access, hint: hint)
        #expect(answer.status == 200)
        #expect(answer.body.isEmpty)
        #expect(answer.headers[.cacheControl] == "no-store")
        expectAuthError(try await fixture.refresh(tokens.refresh), "invalid_grant")
        // The grant is the group's: the tokens of the other app of the group end too, and those of
        // an app outside it stay.
        expectAuthError(
            try await fixture.refresh(web.refresh, "com.example.juice.web"), "invalid_grant")
        #expect(try await fixture.refresh(press.refresh, "com.example.press").status == 200)
        let account = try #require(try fixture.api.store.accounts.accounts(user: "jane").first)
        let grant = try fixture.api.store.grants.grants(account: account.number).first {
            $0.group == group
        }
        #expect(grant?.state == .revoked)
        #expect(try fixture.api.store.outbox.events(limit: 10).map(\.type) == [.consentRevoked])
    }

    @Test func revocation_unknownToken_succeeds() async throws {
        let fixture = try await ProviderFixture()
        for token in ["pr_unknown", "x", String(repeating: "a", count: 5_000)] {
            #expect(try await fixture.revoke(token).status == 200)
        }
        let tokens = try await fixture.signedIn()
        #expect(try await fixture.revoke(tokens.refresh).status == 200)
        #expect(try await fixture.revoke(tokens.refresh).status == 200)
        expectAuthError(
            try await fixture.client("/auth/revoke", "com.example.juice", []), "invalid_request")
    }

    @Test func revocation_tokenOfAnotherClient_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let tokens = try await fixture.signedIn()
        expectAuthError(
            try await fixture.revoke(tokens.refresh, "com.example.soda"), "invalid_grant")
        #expect(try await fixture.refresh(tokens.refresh).status == 200)
    }

    // MARK: Introspection

    @Test func introspection_ofTheTeamsTokens_saysWhoseTheyAre() async throws {
        let fixture = try await ProviderFixture()
        func ask(_ token: String, _ client: String = "com.example.juice") async throws -> Response {
            try await fixture.client(
                "/auth/introspect", client, [("token", token), ("token_type_hint", "anything")])
        }
        let tokens = try await fixture.signedIn()
        let sub = try #require(try fixture.api.store.accounts.accounts(user: "jane").first?.sub)
        // The backend that receives a token may be another app of the team.
        for client in ["com.example.juice", "com.example.press"] {
            let answer = try await ask(tokens.access, client)
            #expect(answer.status == 200 && answer.headers[.cacheControl] == "no-store")
            #expect(answer.json["active"].bool == true && answer.json["sub"].string == sub)
            #expect(
                answer.json["client_id"].string == "com.example.juice"
                    && answer.json["token_type"].string == "Bearer")
            #expect(answer.json["iss"].string == ProviderFixture.issuer)
            #expect(answer.json["exp"] == .integer(fixture.api.now + ProviderLifetime.accessToken))
        }
        let refresh = try await ask(tokens.refresh)
        #expect(refresh.json["active"].bool == true && refresh.json["exp"] == .null)
        #expect(
            refresh.json["iat"] == .integer(fixture.api.now)
                && refresh.json["token_type"].string == nil)
        let own = try await fixture.client(
            "/auth/token", "com.example.juice",
            [("grant_type", "client_credentials"), ("scope", "user.migration")])
        let ownToken = try #require(own.json["access_token"].string)
        let found = try await ask(ownToken)
        #expect(found.json["active"].bool == true && found.json["sub"].string == nil)
        #expect(found.json["scope"].string == "user.migration")
        // Any other token gets no information.
        for (token, client) in [
            (tokens.access, "com.example.soda"), (ownToken, "com.example.soda"),
            ("x", "com.example.juice"),
        ] {
            #expect(try await ask(token, client).text == "{\"active\":false}")
        }
        // An identity token gives no access.
        let identity = try #require(
            try await fixture.redeem(try await fixture.code()).json["id_token"].string)
        #expect(try await ask(identity).text == "{\"active\":false}")
        expectAuthError(
            try await fixture.client("/auth/introspect", "com.example.juice", []), "invalid_request"
        )
        let bare = try await fixture.post(
            "/auth/introspect", [("token", tokens.access), ("client_id", "com.example.juice")])
        expectAuthError(bare, "invalid_client")
        fixture.api.wait(seconds: Int(ProviderLifetime.accessToken))
        #expect(try await ask(tokens.access).text == "{\"active\":false}")
        #expect(try await ask(tokens.refresh).json["active"].bool == true)
        _ = try await fixture.revoke(tokens.refresh)
        #expect(try await ask(tokens.refresh).text == "{\"active\":false}")
    }

    // MARK: Client secrets

    @Test func clientSecret_wrongClaimsOrKey_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let now = fixture.api.now
        let stranger = try TeamKey()
        let cases: [(String, String)] = [
            ("another team", try fixture.secret(changing: ["iss": "soda"])),
            ("another client", try fixture.secret(changing: ["sub": "com.example.juice.web"])),
            (
                "another audience",
                try fixture.secret(changing: ["aud": "https://appleid.apple.com"])
            ),
            ("no audience", try fixture.secret(changing: ["aud": nil])),
            (
                "expired",
                try fixture.secret(changing: [
                    "iat": .integer(now - 600), "exp": .integer(now - 300),
                ])
            ),
            ("no expiry", try fixture.secret(changing: ["exp": nil])),
            ("over six months", try fixture.secret(changing: ["exp": .integer(now + 15_777_001)])),
            (
                "of the future",
                try fixture.secret(changing: [
                    "iat": .integer(now + 3_600), "exp": .integer(now + 7_200),
                ])
            ),
            ("an unknown key", try fixture.secret(by: stranger)),
            ("another team's key", try fixture.secret(by: fixture.soda)),
            ("no JWT", "secret"), ("empty", ""),
            ("cut", String(try fixture.secret().dropLast(4))),
        ]
        for (name, secret) in cases {
            let answer = try await fixture.post(
                "/auth/token",
                [
                    ("client_id", "com.example.juice"), ("client_secret", secret),
                    ("grant_type", "client_credentials"),
                    ("scope", "user.migration"),
                ])
            expectAuthError(answer, "invalid_client")
            #expect(answer.headers[.wwwAuthenticate] == nil, "\(name)")
            if secret.count > 10 { #expect(!answer.text.contains(secret), "\(name)") }
        }
        let longest = try fixture.secret(changing: ["exp": .integer(now + 15_777_000)])
        let taken = try await fixture.post(
            "/auth/token",
            [
                ("client_id", "com.example.juice"), ("client_secret", longest),
                ("grant_type", "client_credentials"),
                ("scope", "user.migration"),
            ])
        #expect(taken.status == 200)
        expectAuthError(
            try await fixture.post("/auth/token", [("grant_type", "client_credentials")]),
            "invalid_client")
        expectAuthError(
            try await fixture.client(
                "/auth/token", "com.example.none", [("grant_type", "client_credentials")]),
            "invalid_client")
        // A removed key is not valid.
        try fixture.api.store.clients.removeKey(
            team: "juice", keyID: fixture.juice.key.keyID, APIFixture.change)
        expectAuthError(try await fixture.refresh("pr_x"), "invalid_client")
    }

    @Test func clientSecret_httpBasic_isAccepted() async throws {
        let fixture = try await ProviderFixture()
        func basic(_ user: String, _ secret: String) -> [String: String] {
            ["Authorization": "Basic " + Data("\(user):\(secret)".utf8).base64EncodedString()]
        }
        let form = [("grant_type", "client_credentials"), ("scope", "user.migration")]
        let good = try await fixture.post(
            "/auth/token", form, headers: basic("com.example.juice", try fixture.secret()))
        #expect(good.status == 200)
        // Credentials in the field are refused with a challenge (RFC 6749 section 5.2).
        for headers in [
            basic("com.example.juice", "wrong"), ["Authorization": "Bearer x"],
            ["Authorization": "Basic ???"],
        ] {
            let bad = try await fixture.post("/auth/token", form, headers: headers)
            expectAuthError(bad, "invalid_client", status: 401)
            #expect(bad.headers[.wwwAuthenticate]?.hasPrefix("Basic ") == true)
        }
        let both = try await fixture.post(
            "/auth/token", form + [("client_secret", try fixture.secret())],
            headers: basic("com.example.juice", try fixture.secret()))
        expectAuthError(both, "invalid_request")
        let differing = try await fixture.post(
            "/auth/token", form + [("client_id", "com.example.press")],
            headers: basic("com.example.juice", try fixture.secret()))
        expectAuthError(differing, "invalid_request")
    }

    // MARK: Forms

    @Test func requestBody_form_isReadStrictly() async throws {
        let fixture = try await ProviderFixture()
        let secret = try fixture.secret()
        let start = "client_id=com.example.juice&client_secret=\(secret)"
        func send(
            _ body: String, type: String = "application/x-www-form-urlencoded"
        ) async throws -> Response {
            try await fixture.api.ask(
                .post, "/auth/token", body: body, headers: ["Content-Type": type])
        }
        for body in [
            "\(start)&grant_type=refresh_token&grant_type=refresh_token",
            "\(start)&client_id=com.example.juice",
            "\(start)&x=1&x=1", "\(start)&grant_type=%ZZ", "\(start)&grant_type=%F",
            "\(start)&grant_type=%FF",
            "\(start)&grant_type=a%00b",
            start, "\(start)&grant_type=", "\(start)&grant_type=refresh_token",
            "\(start)&grant_type=refresh_token&refresh_token=",
            "\(start)&grant_type=authorization_code&code=x",
            "\(start)&grant_type=authorization_code&redirect_uri=x",
            start + String(repeating: "&a", count: 200),
        ] {
            expectAuthError(try await send(body), "invalid_request")
        }
        expectAuthError(try await send("\(start)&grant_type=password"), "unsupported_grant_type")
        expectAuthError(try await send("{}", type: "application/json"), "invalid_request")
        expectAuthError(
            try await send(start, type: "application/x-www-form-urlencoded; charset=latin1"),
            "invalid_request")
        expectAuthError(
            try await send(start + "&x=" + String(repeating: "a", count: 100_000)),
            "invalid_request")
        let good = try await send(
            "\(start)&grant_type=client%5fcredentials&scope=user.migration&unknown=1",
            type: "application/x-www-form-urlencoded; charset=UTF-8")
        #expect(good.status == 200)
        // Only POST.
        #expect(try await fixture.api.ask(.get, "/auth/token").status == 405)
    }

    // MARK: PKCE

    @Test func code_withChallenge_needsItsVerifier() async throws {
        let fixture = try await ProviderFixture()
        // RFC 7636 appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let challenge: [String: Any?] = [
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        ]
        let code = try await fixture.code(challenge)
        // Three different mistakes, each with its own error.
        expectAuthError(try await fixture.redeem(code), "invalid_grant", saying: "is missing")
        expectAuthError(
            try await fixture.redeem(
                code, "com.example.juice", [("code_verifier", String(verifier.reversed()))]),
            "invalid_grant",
            saying: "does not belong to")
        expectAuthError(
            try await fixture.redeem(code, "com.example.juice", [("code_verifier", "short")]),
            "invalid_request")
        #expect(
            try await fixture.redeem(code, "com.example.juice", [("code_verifier", verifier)])
                .status == 200)
        // A client that sends a verifier expects a challenge that was never made (RFC 9700 section
        // 2.1.1).
        let plain = try await fixture.code()
        expectAuthError(
            try await fixture.redeem(plain, "com.example.juice", [("code_verifier", verifier)]),
            "invalid_grant",
            saying: "this one had none")
        #expect(try await fixture.redeem(plain).status == 200)
    }

    // MARK: At rest

    @Test func codesAndTokens_stored_areHashedAndNotLogged() async throws {
        let fixture = try await ProviderFixture()
        let unused = try await fixture.code()
        let tokens = try await fixture.signedIn()
        _ = try await fixture.redeem("pc_secretlooking")
        let folder = fixture.api.folder
        let files = try FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil
        ).map {
            try Data(contentsOf: $0)
        }
        func isFound(_ text: String) -> Bool {
            files.contains { $0.range(of: Data(text.utf8)) != nil }
        }
        #expect(isFound("com.example.juice"))
        for secret in [unused, tokens.access, tokens.refresh] {
            #expect(!isFound(secret) && !isFound(String(secret.dropFirst(3))))
            #expect(!fixture.api.log.lines.contains { $0.contains(secret) })
        }
        #expect(!fixture.api.log.lines.contains { $0.contains("secretlooking") })
    }
}
