// Attacks on the authorization endpoint and on the return from the sign-in page.

import Accounts
import HTTPTypes
import InternetMessage
import PersonalData
import SignIn
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct AuthorizationEndpointTests {
    @Test func continuation_otherBrowser_isRefused() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        let continuation = try await party.answer(identifier)
        for cookie in [
            "", "__Host-postern-authorization=" + String(repeating: "a", count: 32),
            "postern-authorization=x",
        ] {
            let stolen = try await party.fetch(
                continuation, cookie: cookie.isEmpty ? "none=1" : cookie)
            #expect(stolen.status == 400 && stolen.headers[.location] == nil)
        }
        #expect(try await party.fetch(continuation).status == 303)
    }

    /// An attacker sends the link of the page to a victim, who signs in: the attacker must not get
    /// the code.
    @Test func continuation_withoutCookieOrTicket_isRefused() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        let continuation = try await party.answer(identifier)
        // The victim's browser has the ticket, and the attacker's the cookie and the identifier.
        #expect(try await party.fetch(continuation, cookie: "none=1").status == 400)
        for guess in [identifier, "", String(continuation.suffix(27).reversed())] {
            #expect(
                try await party.fetch("\(ProviderFixture.issuer)/auth/continue?ticket=\(guess)")
                    .status == 400)
        }
    }

    @Test func continuation_afterCodeLifetime_isRefused() async throws {
        let party = try await OpenIDFixture()
        let continuation = try await party.answer(
            try party.identifier(try await party.ask(OpenIDFixture.query())))
        party.fixture.api.wait(seconds: 300)
        #expect(try await party.fetch(continuation).status == 400)
    }

    /// A page that takes some seconds must not refuse users who must sign in again.
    @Test func authorizationRequest_slowPageAndMaxAgeZero_isGranted() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(
            try await party.ask(OpenIDFixture.query(["max_age": "0"])))
        party.fixture.api.wait(seconds: 5)
        let signedIn = party.fixture.api.now
        party.fixture.api.wait(seconds: 5)
        let answer = try await party.operate(
            "/v1/authorizations", ["request": identifier, "user": "jane", "auth_time": signedIn])
        #expect(answer.status == 200)
    }

    @Test func authorizationRequest_answeredOrFetchedTwice_isRefused() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        let continuation = try await party.answer(identifier)
        let again = try await party.operate(
            "/v1/authorizations", ["request": identifier, "user": "jane"])
        #expect(again.status == 409)
        #expect(try await party.fetch(continuation).status == 303)
        #expect(try await party.fetch(continuation).status == 400)
        let late = try await party.operate(
            "/v1/authorizations/refuse", ["request": identifier, "error": "access_denied"])
        #expect(late.status == 409)
    }

    @Test func authorizationRequest_changedOrExpired_isUnknown() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        var octets = Array(identifier.utf8)
        for place in [0, octets.count / 2, octets.count - 2] {
            let old = octets[place]
            octets[place] = old == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let changed = try await party.operate(
                "/v1/authorizations/inspect", ["request": String(decoding: octets, as: UTF8.self)])
            #expect(changed.status == 422)
            octets[place] = old
        }
        party.fixture.api.wait(seconds: 3_600)
        #expect(
            try await party.operate("/v1/authorizations", ["request": identifier, "user": "jane"])
                .status == 422)
    }

    @Test func authorizationRequest_answerBeyondWhatWasAsked_isRefused() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        for (more, status): ([String: Any], Int) in [
            (["scopes": ["openid", "email"]], 422),
            (["redirect_uri": "https://evil.example/"], 422),
            (["client_id": "com.example.soda"], 422), (["nonce": "other"], 422),
            (["state": "other"], 422),
            (["amr": ["PWD"]], 422), (["amr": Array(repeating: "a", count: 11)], 422),
        ] {
            let body = ["request": identifier, "user": "jane"].merging(more) { $1 }
            #expect(
                try await party.operate("/v1/authorizations", body).status == status, "\(more.keys)"
            )
        }
    }

    @Test func authorizationRequest_cancelled_isAccessDenied() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(
            try await party.ask(OpenIDFixture.query(["response_type": "code id_token"])))
        let odd = try await party.operate(
            "/v1/authorizations/refuse", ["request": identifier, "error": "invalid_scope"])
        #expect(odd.status == 422)
        let refused = try await party.operate(
            "/v1/authorizations/refuse", ["request": identifier, "error": "access_denied"])
        #expect(refused.status == 200)
        let callback = try OpenIDFixture.callback(
            try await party.fetch(try #require(refused.json["continue"].string)))
        #expect(callback.mode == "fragment")
        #expect(callback["error"] == "access_denied" && callback["iss"] == ProviderFixture.issuer)
    }

    @Test func authorizationResponse_hybrid_isInFragmentWithCHash() async throws {
        let party = try await OpenIDFixture()
        let (callback, _, claims) = try await party.signIn(["response_type": "code id_token"])
        #expect(callback.mode == "fragment")
        let front = try await party.claims(try #require(callback["id_token"]))
        let code = try #require(callback["code"])
        #expect(front.all["c_hash"]?.string == IdentityTokenContent.leftHalfHash(code))
        #expect(front.subject == claims.subject && front.nonce == "n-0S6_WzA2Mj")
    }

    @Test func authorizationResponse_queryMode_holdsNoNameOrEmail() async throws {
        let party = try await OpenIDFixture()
        let scope = ["scope": "openid email name"]
        #expect(try await party.authorize(scope)["user"] == nil)
        let other = try await OpenIDFixture()
        let posted = try await other.authorize(scope.merging(["response_mode": "form_post"]) { $1 })
        #expect(posted["user"]?.contains("\"firstName\":\"Jane Mary\"") == true)
    }

    @Test func userInfo_nameGivenForApp_showsThatName() async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, _) = try await party.signIn(
            ["scope": "openid name"], page: ["name": ["first_name": "J", "last_name": "D"]])
        let info = try await party.userInfo(tokens).json
        #expect(info["name"] == "J D" && info["given_name"] == "J" && info["family_name"] == "D")
    }

    @Test func webMessage_foreignOrigin_getsNoAnswer() async throws {
        let party = try await OpenIDFixture()
        let query = OpenIDFixture.query(["response_mode": "web_message"])
        let identifier = try party.identifier(try await party.ask(query))
        let page = try await party.fetch(try await party.answer(identifier))
        #expect(page.text.contains("data-origin=\"https://juice.example\""))
        #expect(
            page.headers[HTTPField.Name("Content-Security-Policy")!]?.contains(
                "frame-ancestors 'none'") == true)
        let foreign = try await party.ask(
            OpenIDFixture.query([
                "response_mode": "web_message", "redirect_uri": "https://evil.example/",
            ]))
        #expect(foreign.status == 400)
    }

    @Test func errorPage_invalidRequest_isNeitherFramedNorCached() async throws {
        let party = try await OpenIDFixture()
        let answer = try await party.ask("client_id=unknown&redirect_uri=javascript:alert(1)")
        #expect(answer.status == 400 && answer.headers[.location] == nil)
        #expect(answer.headers[HTTPField.Name("X-Frame-Options")!] == "DENY")
        #expect(answer.headers[.cacheControl] == "no-store")
        #expect(!answer.text.contains("javascript"))
        #expect(try await party.ask("client_id=%").status == 400)
        #expect(try await party.ask("{", method: .post).status == 400)
    }

    @Test func cookie_ofRequest_isHostBoundAndSecure() async throws {
        let party = try await OpenIDFixture()
        let cookie = try #require(try await party.ask(OpenIDFixture.query()).headers[.setCookie])
        #expect(cookie.hasPrefix("__Host-postern-authorization="))
        #expect(cookie.hasSuffix("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"))
        // Several sign-ins side by side in one browser share it.
        let first = try party.identifier(try await party.ask(OpenIDFixture.query()))
        let second = try party.identifier(try await party.ask(OpenIDFixture.query()))
        for identifier in [first, second] {
            #expect(try await party.fetch(try await party.answer(identifier)).status == 303)
        }
    }

    @Test func authorizationEndpoint_withoutSignInPage_is404() async throws {
        let fixture = try await ProviderFixture()
        #expect(try await fixture.api.ask(.get, "/auth/authorize").status == 404)
    }

    /// Programs that check an address with HEAD must not use up the answer.
    @Test func continuation_headRequest_keepsAnswer() async throws {
        let party = try await OpenIDFixture()
        let continuation = try await party.answer(
            try party.identifier(try await party.ask(OpenIDFixture.query())))
        let look = try await party.fetch(continuation, method: .head)
        #expect(look.status == 200 && look.text.isEmpty && look.headers[.location] == nil)
        #expect(look.headers[.cacheControl] == "no-store")
        #expect(try await party.fetch(continuation, method: .options).status == 405)
        #expect(try await party.fetch(continuation).status == 303)
    }

    /// A sibling of the host sets a cookie whose name begins with a space that only some programs
    /// remove: for the browser it has no prefix, and other hosts may set it.
    @Test(arguments: ["\u{A0}", "\u{2000}", "\u{85}", "\u{3000}"])
    func cookie_afterNonASCIISpace_isIgnored(_ space: String) async throws {
        let party = try await OpenIDFixture()
        let continuation = try await party.answer(
            try party.identifier(try await party.ask(OpenIDFixture.query())))
        let cookie = try #require(party.cookie)
        #expect(try await party.fetch(continuation, cookie: "a=b; \(space)\(cookie)").status == 400)
        #expect(try await party.fetch(continuation, cookie: "a=b;\t \(cookie) ").status == 303)
    }

    /// If the second answer goes nowhere, its consent must not be kept.
    @Test func authorizationRequest_answeredAlready_recordsNoConsent() async throws {
        let party = try await OpenIDFixture()
        let store = party.fixture.api.store
        _ = try store.users.add(
            id: "bob", name: nil, inbox: InboxAddress(try AddrSpec.typed("bob@home.example")),
            isVerified: true, APIFixture.change
        )
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        _ = try await party.answer(identifier)
        #expect(
            try await party.operate("/v1/authorizations", ["request": identifier, "user": "bob"])
                .status == 409)
        #expect(
            try store.persons.accounts(user: "bob", since: 0, now: party.fixture.api.now).isEmpty)
        #expect(
            try store.persons.accounts(user: "jane", since: 0, now: party.fixture.api.now).count
                == 1)
    }

    /// Without the time of the sign-in, an old one would pass for a new one.
    @Test(arguments: [["prompt": "login"], ["max_age": "60"]])
    func authorizationRequest_newSignInDemanded_needsAuthTime(
        _ changes: [String: String]
    ) async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query(changes)))
        let silent = try await party.operate(
            "/v1/authorizations", ["request": identifier, "user": "jane"])
        #expect(silent.status == 422 && silent.text.contains("auth_time"))
        let old =
            ["request": identifier, "user": "jane", "auth_time": party.fixture.api.now - 61]
            as [String: Any]
        #expect(try await party.operate("/v1/authorizations", old).status == 409)
    }

    /// A request to another host, whose clock is a second behind, must find the request.
    @Test func authorizationRequest_hostClockBehind_isKnown() async throws {
        let party = try await OpenIDFixture()
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        party.fixture.api.wait(seconds: -60)
        #expect(
            try await party.operate("/v1/authorizations/inspect", ["request": identifier]).status
                == 200)
    }

    @Test func authorizationRequest_redirectURIRemoved_isRefused() async throws {
        let party = try await OpenIDFixture()
        let store = party.fixture.api.store
        let identifier = try party.identifier(try await party.ask(OpenIDFixture.query()))
        try store.clients.removeRedirect(
            team: "juice", clientID: OpenIDFixture.client, uri: OpenIDFixture.redirect,
            APIFixture.change)
        let refusal = ["request": identifier, "error": "access_denied"]
        #expect(try await party.operate("/v1/authorizations/refuse", refusal).status == 404)
        #expect(
            try await party.operate("/v1/authorizations", ["request": identifier, "user": "jane"])
                .status == 422)
        #expect(
            try store.persons.accounts(user: "jane", since: 0, now: party.fixture.api.now).isEmpty)
    }

    /// U+212A equals K for code that compares texts and not octets.
    @Test func redirectURI_unicodeLookalike_isRefused() async throws {
        let party = try await OpenIDFixture()
        let uri = "https://juice.example/K"
        _ = try party.fixture.api.store.clients.addRedirect(
            team: "juice", clientID: OpenIDFixture.client, uri: uri, APIFixture.change)
        let other = "https://juice.example/\u{212A}"
        #expect(try await party.ask(OpenIDFixture.query(["redirect_uri": other])).status == 400)
        let code = try #require(try await party.authorize(["redirect_uri": uri])["code"])
        let form = [
            ("client_id", OpenIDFixture.client), ("client_secret", party.secret),
            ("grant_type", "authorization_code"),
            ("code", code),
        ]
        expectAuthError(
            try await party.fixture.post("/auth/token", form + [("redirect_uri", other)]),
            "invalid_grant")
        #expect(
            try await party.fixture.post("/auth/token", form + [("redirect_uri", uri)]).status
                == 200)
    }

    /// Of many exchanges at once one wins, and its tokens end when the others fail: several parties
    /// know the code.
    @Test func code_redeemedConcurrently_worksOnce() async throws {
        let party = try await OpenIDFixture()
        let code = try #require(try await party.authorize()["code"])
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { try await party.redeem(code).status } }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(
            statuses.filter { $0 == 200 }.count == 1 && statuses.filter { $0 == 400 }.count == 7)
    }

    @Test func userInfo_clientOrExpiredToken_is401() async throws {
        let party = try await OpenIDFixture()
        let client = try await party.fixture.client(
            "/auth/token", OpenIDFixture.client,
            [("grant_type", "client_credentials"), ("scope", "user.migration")])
        #expect(try await party.userInfo(client).status == 401)
        #expect(try await party.fixture.api.ask(.get, "/auth/userinfo").status == 401)
        #expect(
            try await party.fixture.api.ask(.get, "/auth/userinfo?access_token=pa_x").status == 401)
        let (_, tokens, _) = try await party.signIn()
        party.fixture.api.wait(seconds: 3_600)
        #expect(try await party.userInfo(tokens).status == 401)
    }
}
