// /auth/authorize: the accepted requests, and the answers to the client.

import Rehearsal
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct AuthorizationTests {
    @Test func authorization_firstTime_returnsUserOnce() throws {
        var fixture = try AppleFixture()
        let first = try fixture.signIn()
        #expect(first["state"] == "s&1")
        #expect(
            first["user"]
                == #"{"name":{"firstName":"Anna","lastName":"Müller"},"email":"\#(AppleState.privateEmail("anna", team: "TEAMAAAAAA"))"}"#
        )
        let second = try fixture.signIn()
        #expect(second["user"] == nil)
        #expect(second["code"] != first["code"])
        // Another client of the same team has its own first time.
        var other = AppleFixture.webRequest
        other[0].1 = "com.example.other"
        #expect(try fixture.signIn("anna", other)["user"] != nil)
    }

    @Test func idToken_ofSandbox_hasApplesClaims() throws {
        var fixture = try AppleFixture()
        let answer = try fixture.signIn()
        let claims = try fixture.claims(answer["id_token"])
        #expect(
            claims.members.map(\.name) == [
                "iss", "aud", "exp", "iat", "sub", "email", "email_verified", "is_private_email",
                "nonce_supported", "nonce",
                "c_hash", "auth_time",
            ])
        #expect(claims["iss"] == "https://appleid.apple.com")
        #expect(claims["aud"] == "com.example.web")
        #expect(claims["exp"] == .integer(fixture.now + 86_400))
        #expect(
            claims["email_verified"] == .bool(true) && claims["is_private_email"] == .bool(true))
        #expect(claims["nonce"] == "n-1" && claims["nonce_supported"] == .bool(true))
        #expect(
            claims["c_hash"] == .string(IdentityTokenContent.leftHalfHash(answer["code"] ?? "")))
        #expect(
            try #require(claims["sub"]?.string).wholeMatch(
                of: /[0-9]{6}\.[0-9a-f]{32}\.[0-2][0-9][0-5][0-9]/) != nil)
        let jws = try CompactJWS(answer["id_token"] ?? "")
        #expect(jws.header.members.map(\.name) == ["alg", "kid"] && jws.keyID?.count == 10)
        // A real address has no is_private_email.
        let real = try fixture.claims(try fixture.signIn("ben")["id_token"])
        #expect(real["email"] == "ben@example.com" && real["is_private_email"] == nil)
    }

    @Test func idToken_booleansAsStrings_hasStrings() throws {
        var fixture = try AppleFixture("booleans: string\nid_token_lifetime: 600")
        let claims = try fixture.claims(try fixture.signIn()["id_token"])
        #expect(claims["email_verified"] == "true" && claims["is_private_email"] == "true")
        #expect(claims["nonce_supported"] == .bool(true))
        #expect(claims["exp"] == .integer(fixture.now + 600))
    }

    @Test func idToken_severalKeys_isSignedByEachInTurn() throws {
        var fixture = try AppleFixture()
        var kids: Set<String> = []
        for _ in 0..<12 {
            kids.insert(try CompactJWS(try #require(try fixture.signIn()["id_token"])).keyID ?? "")
        }
        #expect(kids == Set(fixture.state.keys.map(\.id)) && kids.count == 3)
        fixture.state.rotate([AppleFixture.keys[3]])
        #expect(
            fixture.state.keys.count == 3 && fixture.state.keys.last?.id == AppleFixture.keys[3].id)
    }

    @Test(arguments: [
        ("client_id", "", "invalid_request", "client_id is missing"),
        ("client_id", "com.nobody", "invalid_client", "the seed has no client com.nobody"),
        ("redirect_uri", "", "unauthorized_client", "redirect_uri is missing"),
        (
            "redirect_uri", "https://app.example/signed-in/", "unauthorized_client",
            "is not registered for com.example.web"
        ),
        ("response_type", "", "invalid_request", "response_type is missing"),
        ("response_type", "token", "invalid_request", "response_type must be"),
        ("scope", "name phone", "invalid_scope", "the scope phone"),
        (
            "response_mode", "query", "invalid_request",
            "response_mode must be fragment or form_post"
        ),
        (
            "response_mode", "fragment", "invalid_request",
            "must be form_post if scope has name or email"
        ),
        ("response_mode", "web_message", "invalid_request", "web_message"),
        ("code_challenge", "abc", "invalid_request", "code_challenge_method must be S256"),
    ])
    func authorization_invalidParameter_isRefusedWithCause(
        _ name: String, _ value: String, _ code: String, _ cause: String
    ) throws {
        let fixture = try AppleFixture()
        let parameters = AppleFixture.webRequest.filter { $0.0 != name } + [(name, value)]
        let refused = refusal { try fixture.request(parameters) }
        #expect(refused?.code.rawValue == code)
        #expect(refused?.cause.contains(cause) == true, "\(refused?.cause ?? "accepted")")
    }

    @Test func authorization_responseMode_decidesWhereAnswerGoes() throws {
        var fixture = try AppleFixture()
        let user = try #require(fixture.state.seed.user("anna"))
        func location(_ mode: String, _ type: String) throws -> String? {
            let request = try fixture.request([
                ("client_id", "com.example.web"), ("redirect_uri", AppleFixture.redirect),
                ("response_type", type),
                ("response_mode", mode), ("state", "a b"),
            ])
            return try fixture.state.authorize(
                request, AppleUserAnswer(user), failure: nil, now: fixture.now
            ).location
        }
        let query = try #require(try location("query", "code"))
        #expect(
            query.hasPrefix("https://app.example/signed-in?code=c")
                && query.hasSuffix("&state=a%20b"))
        #expect(!query.contains("id_token") && !query.contains("user="))
        let fragment = try #require(try location("fragment", "code id_token"))
        #expect(
            fragment.hasPrefix("https://app.example/signed-in#code=c")
                && fragment.contains("&id_token="))
        #expect(try location("form_post", "code") == nil)
        let cancelled = AppleAuthorizationResponse.cancelled(
            try fixture.request(AppleFixture.webRequest))
        #expect(
            cancelled.parameters.map(\.name) == ["error", "state"]
                && cancelled.parameters[0].value == "user_cancelled_authorize")
    }

    @Test func realUserStatus_nativeApp_isGivenFirstTimeOnly() throws {
        var fixture = try AppleFixture()
        let (client, user) = (
            try #require(fixture.state.seed.client("com.example.web")),
            try #require(fixture.state.seed.user("ben"))
        )
        var seen: [JSONValue?] = []
        for _ in 0..<2 {
            let native = AppleAuthorization(native: client, scopes: ["email"], nonce: nil)
            let answer = try fixture.state.authorize(
                native, AppleUserAnswer(user), failure: nil, now: fixture.now)
            let values = Dictionary(
                uniqueKeysWithValues: answer.parameters.map { ($0.name, $0.value) })
            seen.append(try fixture.claims(values["id_token"])["real_user_status"])
            // A native app's code has no redirect_uri.
            let tokens = try fixture.token([
                "grant_type": "authorization_code", "code": values["code"] ?? "",
            ])
            seen.append(try fixture.claims(tokens["id_token"]?.string)["real_user_status"])
        }
        #expect(seen == [.integer(1), .integer(1), nil, nil])
    }

    @Test func authorization_unreadableQuery_isInvalidRequest() {
        for query in ["client_id=a&client_id=b", "client_id=%zz", "a=%ff"] {
            #expect(
                refusal { try AppleParameters(query: Array(query.utf8)) }?.code == .invalidRequest)
        }
    }
}
