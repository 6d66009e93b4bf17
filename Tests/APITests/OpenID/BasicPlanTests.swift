// The modules of the OpenID Foundation's certification plans "basic", "form post" and "config": one
// test each, named after it.

import HTTPTypes
import SignIn
import Support
import TestSupport
import Testing

@testable import API

/// The form of answers in the plan: the default mode, or form_post.
enum CertificationPlan: String, CaseIterable, Sendable {
    case basic = "query"
    case formPost = "form_post"

    /// The additional parameters of each request of the plan.
    var changes: [String: String?] { self == .basic ? [:] : ["response_mode": "form_post"] }

    func with(_ changes: [String: String?]) -> [String: String?] {
        self.changes.merging(changes) { $1 }
    }
}

@Suite(.blocking) struct BasicPlanTests {
    @Test("oidcc-server", arguments: CertificationPlan.allCases)
    func codeFlow_signIn_returnsCodeAndTokens(
        _ plan: CertificationPlan
    ) async throws {
        let party = try await OpenIDFixture()
        let (callback, tokens, claims) = try await party.signIn(plan.changes)
        #expect(callback.mode == plan.rawValue)
        #expect(callback.address == OpenIDFixture.redirect)
        #expect(callback["id_token"] == nil)
        #expect(claims.issuer == ProviderFixture.issuer && claims.audience == OpenIDFixture.client)
        #expect(claims.nonce == "n-0S6_WzA2Mj")
        #expect(claims.all["name"] == nil && claims.all["email"] == nil)
        #expect(
            tokens.json["expires_in"] == .integer(3600)
                && tokens.json["token_type"].string == "Bearer")
        let access = try #require(tokens.json["access_token"].string)
        #expect(claims.all["at_hash"]?.string == IdentityTokenContent.leftHalfHash(access))
        // 160 random bits.
        #expect(try #require(callback["code"]).utf8.count == 35)
    }

    @Test("oidcc-response-type-missing", arguments: CertificationPlan.allCases)
    func authorizationRequest_withoutResponseType_isInvalid(_ plan: CertificationPlan) async throws
    {
        let callback = try await OpenIDFixture().authorize(plan.with(["response_type": nil]))
        #expect(callback.mode == plan.rawValue)
        #expect(callback["error"] == "invalid_request" && callback["code"] == nil)
        #expect(callback["state"] == "af0ifjsldkj" && callback["iss"] == ProviderFixture.issuer)
    }

    @Test("oidcc-idtoken-signature") func idToken_rs256Client_isSignedWithRS256() async throws {
        let party = try await OpenIDFixture(algorithm: .rs256)
        let tokens = try await party.signIn().tokens
        let token = try CompactJWS(try #require(tokens.json["id_token"].string))
        #expect(token.algorithm == "RS256" && token.keyID != nil)
        let keys = try JWKSet.parse(try await party.fixture.api.ask(.get, "/auth/keys").body)
        try TokenChecks.signature(token, algorithms: [.rs256], keys: keys)
        #expect(Set(keys.keys.map(\.algorithm)) == [.es256, .rs256])
    }

    /// `none` cannot be registered, and discovery does not list it.
    @Test("oidcc-idtoken-unsigned") func idToken_algNone_isNotSupported() async throws {
        #expect(SignatureAlgorithm(rawValue: "none") == nil)
        let metadata = try await OpenIDFixture().fixture.api.ask(
            .get, "/.well-known/openid-configuration"
        ).json
        #expect(
            metadata["id_token_signing_alg_values_supported"].items.compactMap(\.string) == [
                "ES256", "RS256",
            ])
    }

    @Test("oidcc-userinfo-get", arguments: CertificationPlan.allCases)
    func userInfo_get_returnsSubject(_ plan: CertificationPlan) async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, claims) = try await party.signIn(plan.changes)
        let info = try await party.userInfo(tokens)
        #expect(info.status == 200 && info.headers[.contentType] == "application/json")
        #expect(info.json["sub"].string == claims.subject)
    }

    @Test("oidcc-userinfo-post-header") func userInfo_postWithHeader_returnsSubject() async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, claims) = try await party.signIn()
        #expect(
            try await party.userInfo(tokens, method: .post).json["sub"].string == claims.subject)
    }

    @Test("oidcc-userinfo-post-body") func userInfo_postWithBody_returnsSubject() async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, claims) = try await party.signIn()
        let access = try #require(tokens.json["access_token"].string)
        let info = try await party.fixture.post("/auth/userinfo", [("access_token", access)])
        #expect(info.json["sub"].string == claims.subject)
        let both = try await party.fixture.post(
            "/auth/userinfo", [("access_token", access)],
            headers: ["Authorization": "Bearer \(access)"])
        #expect(both.status == 400)
    }

    @Test("oidcc-ensure-request-without-nonce-succeeds-for-code-flow")
    func authorizationRequest_withoutNonce_isGranted()
        async throws
    {
        #expect(try await OpenIDFixture().signIn(["nonce": nil]).claims.nonce == nil)
    }

    @Test("oidcc-scope-profile") func scope_profile_putsNameInUserInfo() async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, claims) = try await party.signIn(["scope": "openid profile"])
        #expect(try await party.userInfo(tokens).json["name"].string == "Jane Mary Doe")
        #expect(claims.all["name"] == nil)
    }

    @Test("oidcc-scope-email") func scope_email_putsRelayAddressInUserInfo() async throws {
        let party = try await OpenIDFixture()
        let info = try await party.userInfo(
            try await party.signIn(["scope": "openid email"]).tokens
        ).json
        #expect(info["email"].string?.hasSuffix("@relay.example") == true)
        #expect(info["email_verified"] == .bool(true) && info["name"] == .null)
    }

    @Test("oidcc-scope-address") func scope_address_isNotGranted() async throws {
        #expect(
            try await OpenIDFixture().signIn(["scope": "openid address"]).tokens.json["scope"]
                .string == "openid")
    }

    @Test("oidcc-scope-phone") func scope_phone_isNotGranted() async throws {
        #expect(
            try await OpenIDFixture().signIn(["scope": "openid phone"]).tokens.json["scope"].string
                == "openid")
    }

    @Test("oidcc-scope-all") func scope_all_grantsSupportedOnly() async throws {
        let tokens = try await OpenIDFixture().signIn([
            "scope": "openid email profile address phone"
        ]).tokens
        #expect(tokens.json["scope"].string == "email openid profile")
    }

    @Test("oidcc-alternate-happy-flow") func authorizationRequest_otherParameterOrder_isGranted()
        async throws
    {
        let party = try await OpenIDFixture()
        let query = OpenIDFixture.query(["scope": "email openid"]).split(separator: "&").reversed()
            .joined(separator: "&")
        let identifier = try party.identifier(try await party.ask(query))
        let callback = try OpenIDFixture.callback(
            try await party.fetch(try await party.answer(identifier)))
        #expect(
            try await party.redeem(try #require(callback["code"])).json["scope"].string
                == "email openid")
    }

    @Test("oidcc-display-page") func authorizationRequest_displayPage_isGranted() async throws {
        #expect(try await OpenIDFixture().signIn(["display": "page"]).tokens.status == 200)
    }

    @Test("oidcc-display-popup") func authorizationRequest_displayPopup_isGranted() async throws {
        #expect(try await OpenIDFixture().signIn(["display": "popup"]).tokens.status == 200)
    }

    @Test("oidcc-prompt-login", arguments: CertificationPlan.allCases)
    func authorizationRequest_promptLogin_demandsNewSignIn(_ plan: CertificationPlan) async throws {
        let party = try await OpenIDFixture()
        let first = try await party.signIn(plan.changes).claims
        party.fixture.api.wait(seconds: 1)
        let second = try await party.signIn(plan.with(["prompt": "login"])).claims
        #expect(try #require(second.authenticatedAt) > (try #require(first.authenticatedAt)))
        #expect(party.asked.last?["prompt"].items == ["login"])
        // A page that would let an older sign-in count is refused.
        let identifier = try party.identifier(
            try await party.ask(OpenIDFixture.query(["prompt": "login"])))
        let refused = try await party.operate(
            "/v1/authorizations",
            ["request": identifier, "user": "jane", "auth_time": party.fixture.api.now - 1])
        #expect(refused.status == 409)
    }

    @Test("oidcc-prompt-none-not-logged-in", arguments: CertificationPlan.allCases)
    func authorizationRequest_promptNoneSignedOut_isLoginRequired(
        _ plan: CertificationPlan
    ) async throws {
        let callback = try await OpenIDFixture().authorize(plan.with(["prompt": "none"]))
        #expect(callback["error"] == "login_required" && callback.mode == plan.rawValue)
        #expect(callback["state"] == "af0ifjsldkj")
    }

    @Test("oidcc-prompt-none-logged-in")
    func authorizationRequest_promptNoneSignedIn_keepsAuthTime() async throws {
        let party = try await OpenIDFixture()
        let first = try await party.signIn().claims
        party.fixture.api.wait(seconds: 10)
        let second = try await party.signIn(["prompt": "none"]).claims
        #expect(second.subject == first.subject && second.authenticatedAt == first.authenticatedAt)
    }

    @Test("oidcc-max-age-1") func authorizationRequest_maxAgePassed_demandsNewSignIn() async throws
    {
        let party = try await OpenIDFixture()
        let first = try await party.signIn().claims
        party.fixture.api.wait(seconds: 2)
        let second = try await party.signIn(["max_age": "1"]).claims
        #expect(try #require(second.authenticatedAt) > (try #require(first.authenticatedAt)))
        #expect(second.authenticatedAt == party.fixture.api.now)
        party.fixture.api.wait(seconds: 2)
        let identifier = try party.identifier(
            try await party.ask(OpenIDFixture.query(["max_age": "1"])))
        let refused = try await party.operate(
            "/v1/authorizations",
            ["request": identifier, "user": "jane", "auth_time": party.fixture.api.now - 2])
        #expect(refused.status == 409)
    }

    @Test("oidcc-max-age-10000") func authorizationRequest_maxAgeNotPassed_keepsAuthTime()
        async throws
    {
        let party = try await OpenIDFixture()
        let first = try await party.signIn(["max_age": "15000"]).claims
        party.fixture.api.wait(seconds: 5)
        let second = try await party.signIn(["max_age": "10000"]).claims
        #expect(first.authenticatedAt != nil && second.authenticatedAt == first.authenticatedAt)
        #expect(second.subject == first.subject)
    }

    @Test("oidcc-ensure-request-with-unknown-parameter-succeeds")
    func authorizationRequest_unknownParameter_isGranted()
        async throws
    {
        #expect(try await OpenIDFixture().signIn(["extra": "foobar"]).tokens.status == 200)
    }

    @Test("oidcc-id-token-hint") func authorizationRequest_idTokenHint_identifiesUser() async throws
    {
        let party = try await OpenIDFixture()
        let (_, tokens, first) = try await party.signIn()
        let hint = try #require(tokens.json["id_token"].string)
        let second = try await party.signIn(["prompt": "none", "id_token_hint": hint]).claims
        #expect(second.subject == first.subject && second.authenticatedAt == first.authenticatedAt)
        #expect(party.asked.last?["user_hint"].string == first.subject)
        // A hint that is not ours, or is another client's, counts as no signed-in user.
        let other = try await party.authorize([
            "prompt": "none", "id_token_hint": String(hint.dropLast(4)) + "AAAA",
        ])
        #expect(other["error"] == "login_required")
    }

    @Test("oidcc-login-hint") func authorizationRequest_loginHint_reachesPage() async throws {
        let party = try await OpenIDFixture()
        #expect(try await party.signIn(["login_hint": "buffy@id.example"]).tokens.status == 200)
        #expect(party.asked.last?["login_hint"].string == "buffy@id.example")
    }

    @Test("oidcc-ui-locales") func authorizationRequest_uiLocales_reachPage() async throws {
        let party = try await OpenIDFixture()
        #expect(try await party.signIn(["ui_locales": "se fr-CA"]).tokens.status == 200)
        #expect(party.asked.last?["ui_locales"].items == ["se", "fr-CA"])
    }

    @Test("oidcc-claims-locales") func authorizationRequest_claimsLocales_isGranted() async throws {
        #expect(try await OpenIDFixture().signIn(["claims_locales": "se"]).tokens.status == 200)
    }

    @Test("oidcc-ensure-request-with-acr-values-succeeds")
    func authorizationRequest_acrValues_reachPageAndIDToken() async throws {
        let party = try await OpenIDFixture()
        let claims = try await party.signIn(["acr_values": "1 2"]).claims
        #expect(party.asked.last?["acr_values"].items == ["1", "2"])
        #expect(claims.all["acr"]?.string == "1")
        #expect(claims.all["amr"] == .array(["pwd"]))
    }

    @Test("oidcc-codereuse") func code_reused_isInvalidGrant() async throws {
        let party = try await OpenIDFixture()
        let code = try #require(try await party.authorize()["code"])
        #expect(try await party.redeem(code).status == 200)
        expectAuthError(try await party.redeem(code), "invalid_grant")
    }

    @Test("oidcc-codereuse-30seconds") func code_reusedAfter30Seconds_revokesAccessToken()
        async throws
    {
        let party = try await OpenIDFixture()
        let code = try #require(try await party.authorize()["code"])
        let tokens = try await party.redeem(code)
        #expect(try await party.userInfo(tokens).status == 200)
        party.fixture.api.wait(seconds: 30)
        expectAuthError(try await party.redeem(code), "invalid_grant")
        let info = try await party.userInfo(tokens)
        #expect(info.status == 401)
        #expect(info.headers[.wwwAuthenticate]?.contains("invalid_token") == true)
    }

    @Test("oidcc-ensure-registered-redirect-uri") func redirectURI_notRegistered_isErrorPage()
        async throws
    {
        let answer = try await OpenIDFixture().ask(
            OpenIDFixture.query([
                "redirect_uri": OpenIDFixture.redirect + "/bad", "response_mode": "fragment",
            ]))
        #expect(answer.status == 400 && answer.headers[.location] == nil)
        #expect(answer.text.contains("redirect_uri is not registered"))
        #expect(answer.headers[.contentType]?.hasPrefix("text/html") == true)
    }

    @Test("oidcc-ensure-post-request-succeeds") func authorizationRequest_byPost_isGranted()
        async throws
    {
        #expect(try await OpenIDFixture().signIn(method: .post).tokens.status == 200)
    }

    @Test("oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported")
    func authorizationRequest_requestURI_isNotSupported() async throws {
        let callback = try await OpenIDFixture().authorize([
            "request_uri": "https://juice.example/request.jwt"
        ])
        #expect(callback["error"] == "request_uri_not_supported")
    }

    @Test("oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported")
    func authorizationRequest_requestObject_isNotSupported() async throws {
        #expect(
            try await OpenIDFixture().authorize(["request": "eyJhbGciOiJub25lIn0.e30."])["error"]
                == "request_not_supported")
    }

    @Test("oidcc-claims-essential") func authorizationRequest_claimsParameter_isIgnored()
        async throws
    {
        let party = try await OpenIDFixture()
        // Claims are requested by scopes; the parameter is not supported, as discovery says, and is
        // ignored.
        let tokens = try await party.signIn(["claims": #"{"userinfo":{"name":{"essential":true}}}"#]
        ).tokens
        #expect(try await party.userInfo(tokens).status == 200)
    }

    @Test("oidcc-ensure-request-object-with-redirect-uri")
    func redirectURI_foreignWithRequestObject_isErrorPage() async throws {
        let query = OpenIDFixture.query([
            "redirect_uri": "https://evil.example/", "request": "eyJhbGciOiJub25lIn0.e30.",
        ])
        let answer = try await OpenIDFixture().ask(query)
        #expect(answer.status == 400 && answer.headers[.location] == nil)
    }

    @Test("oidcc-refresh-token") func refreshToken_offlineAccess_keepsSubjectAndAuthTime()
        async throws
    {
        let party = try await OpenIDFixture()
        let (_, tokens, first) = try await party.signIn([
            "scope": "openid offline_access", "prompt": "consent",
        ])
        let refresh = try #require(tokens.json["refresh_token"].string)
        #expect(refresh.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        let form = [
            ("grant_type", "refresh_token"), ("refresh_token", refresh),
            ("client_secret", party.secret),
        ]
        let again = try await party.fixture.post(
            "/auth/token", form + [("client_id", OpenIDFixture.client)])
        let claims = try await party.claims(again)
        #expect(claims.subject == first.subject && claims.authenticatedAt == first.authenticatedAt)
        // Bound to the client.
        expectAuthError(
            try await party.fixture.refresh(refresh, "com.example.soda"), "invalid_grant")
        let metadata = try await party.fixture.api.ask(.get, "/.well-known/openid-configuration")
            .json
        #expect(metadata["grant_types_supported"].items.contains("refresh_token"))
    }

    @Test("oidcc-ensure-request-with-valid-pkce-succeeds") func code_withPKCE_needsVerifier()
        async throws
    {
        let party = try await OpenIDFixture()
        let code = try #require(
            try await party.authorize([
                "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                "code_challenge_method": "S256",
            ])["code"])
        expectAuthError(try await party.redeem(code), "invalid_grant")
        let verifier = [("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")]
        #expect(try await party.redeem(code, verifier).status == 200)
    }

    @Test("oidcc-server-client-secret-post") func tokenEndpoint_clientSecretPost_isAccepted()
        async throws
    {
        let party = try await OpenIDFixture()
        let code = try #require(try await party.authorize()["code"])
        let answer = try await party.fixture.post(
            "/auth/token",
            [
                ("grant_type", "authorization_code"), ("code", code),
                ("redirect_uri", OpenIDFixture.redirect),
                ("client_id", OpenIDFixture.client), ("client_secret", party.secret),
            ])
        #expect(answer.status == 200)
    }

    @Test("oidcc-discovery-endpoint-verification") func discovery_document_listsWhatIsSupported()
        async throws
    {
        let party = try await OpenIDFixture()
        let answer = try await party.fixture.api.ask(.get, "/.well-known/openid-configuration")
        #expect(answer.status == 200 && answer.headers[.contentType] == "application/json")
        let metadata = answer.json
        #expect(metadata["issuer"].string == ProviderFixture.issuer)
        for name in [
            "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri",
            "revocation_endpoint",
            "end_session_endpoint",
        ] {
            #expect(metadata[name].string?.hasPrefix("https://id.example/auth/") == true, "\(name)")
        }
        func words(_ name: String) -> [String] { metadata[name].items.compactMap(\.string) }
        #expect(words("response_types_supported") == ["code", "code id_token"])
        #expect(words("scopes_supported") == ["email", "name", "openid", "profile"])
        #expect(words("subject_types_supported") == ["pairwise"])
        #expect(words("id_token_signing_alg_values_supported").contains("RS256"))
        #expect(words("grant_types_supported").contains("authorization_code"))
        #expect(words("code_challenge_methods_supported") == ["S256"])
        #expect(metadata["request_parameter_supported"] == .bool(false))
        #expect(metadata["request_uri_parameter_supported"] == .bool(false))
        #expect(metadata["claims_parameter_supported"] == .bool(false))
        #expect(metadata["authorization_response_iss_parameter_supported"] == .bool(true))
        #expect(Set(words("claims_supported")).isSuperset(of: ["sub", "iss", "auth_time", "acr"]))
        // Empty lists are left out.
        if case .object(let object) = metadata {
            #expect(!object.members.contains { $0.value.array?.isEmpty == true })
        }
        #expect(
            try JWKSet.parse(try await party.fixture.api.ask(.get, "/auth/keys").body).keys.isEmpty
                == false)
    }
}
