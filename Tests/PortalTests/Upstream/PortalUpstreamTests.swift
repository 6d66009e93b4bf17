// Sign-in by the operator's OpenID provider: the facts that it proves, and the ones that it does
// not.

import Accounts
import Database
import Foundation
import HTTPTypes
import Hummingbird
import MailCrypto
import PersonalData
import PostfixHarness
import SignIn
import Support
import Synchronization
import TestSupport
import Testing

@testable import Portal

/// An OpenID provider on a port of this machine, with the answers of a test.
private final class TestProvider: Sendable {
    struct Behaviour: Sendable {
        /// Nil for correct metadata.
        var metadata: (@Sendable (inout JSONObject) -> Void)?
        var claims: (@Sendable (inout JSONObject) -> Void)?
        var signer: (@Sendable (JSONObject) throws -> String)?
        var userInfo: JSONObject?
        var status = 200
        /// Octets in front of each answer.
        var padding = 0
    }

    let port: Int
    var issuer: String { "http://127.0.0.1:\(port)/realm" }
    let key: IdentitySigningKey
    let behaviour = Mutex(Behaviour())
    /// Forms that came to the token endpoint, with the field Authorization.
    let asked = Mutex<[(form: [String: String], authorization: String?)]>([])
    private let nonce = Mutex("")

    init() throws {
        port = Int(try FreePort.next())
        key = try IdentitySigningKey.generate().key
    }

    var settings: UpstreamSettings { settings() }
    func settings(
        links: UpstreamSettings.Links = .never, addresses: UpstreamSettings.Addresses = .verified,
        isOnly: Bool = false
    ) -> UpstreamSettings {
        UpstreamSettings(
            issuer: issuer, clientID: "postern", secret: ClientSecretText("s3cret/+"),
            name: "Keycloak <1>", links: links,
            addresses: addresses, isOnly: isOnly)
    }

    /// The provider learns the nonce when the browser arrives.
    func learn(nonce: String) { self.nonce.withLock { $0 = nonce } }

    private func answer(_ value: JSONObject) -> Hummingbird.Response {
        let now = behaviour.withLock { $0 }
        let text = String(repeating: " ", count: now.padding) + JSONValue.object(value).text
        return Hummingbird.Response(
            status: .init(code: now.status), headers: [.contentType: "application/json"],
            body: .init(byteBuffer: .init(string: text)))
    }

    func serving(_ now: Int64, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let router = Router()
        router.get("/realm/.well-known/openid-configuration") { [self] _, _ in
            var metadata: JSONObject = [
                "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                "token_endpoint": .string("\(issuer)/token"), "jwks_uri": .string("\(issuer)/keys"),
                "userinfo_endpoint": .string("\(issuer)/userinfo"),
            ]
            behaviour.withLock { $0.metadata }?(&metadata)
            return answer(metadata)
        }
        router.get("/realm/keys") { [key] _, _ in
            Hummingbird.Response(
                status: .ok,
                body: .init(byteBuffer: .init(bytes: PublishedKeys.document([key.publicJWK]))))
        }
        router.get("/realm/userinfo") { [self] _, _ in
            answer(behaviour.withLock { $0.userInfo } ?? [:])
        }
        router.post("/realm/token") { [self] request, _ in
            let text = String(buffer: try await request.body.collect(upTo: 65_536))
            let form = (FormEncoding.pairs(text.utf8, maximum: 20) ?? []).reduce(
                into: [String: String]()
            ) {
                $0[$1.name.text] = $1.value.text
            }
            asked.withLock { $0.append((form, request.headers[.authorization])) }
            var claims: JSONObject = [
                "iss": .string(issuer), "aud": "postern", "sub": "subject-1", "iat": .integer(now),
                "exp": .integer(now + 300),
                "nonce": .string(nonce.withLock { $0 }), "email": "carol@corp.example",
                "email_verified": .bool(true),
                "auth_time": .integer(now), "amr": .array(["pwd", "otp", "made-up"]),
                "name": "Carol Jones",
            ]
            let behaviour = behaviour.withLock { $0 }
            behaviour.claims?(&claims)
            let token = try behaviour.signer?(claims) ?? key.sign(claims)
            return answer([
                "id_token": .string(token), "access_token": "at", "token_type": "Bearer",
            ])
        }
        let application = Application(
            responder: router.buildResponder(),
            configuration: .init(address: .hostname("127.0.0.1", port: port)))
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (stream, running) = AsyncStream<Void>.makeStream()
            let served = Application(
                responder: application.responder,
                configuration: .init(address: .hostname("127.0.0.1", port: port)),
                onServerRunning: { _ in running.finish() })
            group.addTask { try await served.run() }
            for await _ in stream {}
            try await body()
            group.cancelAll()
        }
    }
}

@Suite(.blocking) struct PortalUpstreamTests {
    /// A page with the provider behind it.
    private func with(
        links: UpstreamSettings.Links = .never, addresses: UpstreamSettings.Addresses = .verified,
        isOnly: Bool = false,
        signUp: SignUpRules = SignUpRules(.open),
        _ body: @escaping @Sendable (PortalFixture, TestProvider) async throws -> Void
    ) async throws {
        let provider = try TestProvider()
        try await provider.serving(PortalFixture.start) {
            let settings = provider.settings(links: links, addresses: addresses, isOnly: isOnly)
            try await PortalFixture.with(signUp: signUp, upstream: settings) { fixture in
                try await body(fixture, provider)
            }
        }
    }

    /// Goes to the provider: the query for it.
    private func leave(
        _ browser: Browser, _ provider: TestProvider, _ path: String = "/me/upstream"
    ) async throws -> [String: String] {
        let there = try #require(try await browser.get(path).location)
        let parts = there.split(separator: "?", maxSplits: 1)
        #expect(parts[0] == "\(provider.issuer)/authorize")
        let query = (FormEncoding.pairs(parts[1].utf8, maximum: 20) ?? []).reduce(
            into: [String: String]()
        ) {
            $0[$1.name.text] = $1.value.text
        }
        provider.learn(nonce: query["nonce"] ?? "")
        return query
    }

    /// Returns from the provider.
    @discardableResult
    private func comeBack(
        _ browser: Browser, state: String?, _ more: String = "code=c1"
    ) async throws -> Response {
        try await browser.get(
            "/me/upstream/callback?\(more)" + (state.map { "&state=\($0)" } ?? ""))
    }

    private func signIn(_ browser: Browser, _ provider: TestProvider) async throws -> Response {
        try await comeBack(browser, state: try await leave(browser, provider)["state"])
    }

    /// In a separate browser.
    private func visit(_ fixture: PortalFixture, _ provider: TestProvider) async throws -> Response
    {
        let browser = Browser(fixture)
        return try await signIn(browser, provider)
    }

    private func users(_ fixture: PortalFixture) throws -> [String] {
        try fixture.store.users.all().map(\.id)
    }

    // MARK: In order

    @Test func upstreamSignIn_firstTime_createsUserOnce() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let carol = Browser(fixture)
            let door = try await carol.get("/me/sign-in")
            #expect(door.text.contains("href=\"/me/upstream\">Sign in with Keycloak &lt;1&gt;</a>"))
            let asked = try await leave(carol, provider)
            #expect(
                asked["response_type"] == "code" && asked["client_id"] == "postern"
                    && asked["code_challenge_method"] == "S256")
            #expect(
                asked["redirect_uri"] == "\(PortalFixture.url)/me/upstream/callback"
                    && asked["scope"] == "openid email")
            #expect(asked["prompt"] == nil && asked["max_age"] == nil)
            #expect(try await comeBack(carol, state: asked["state"]).location == "/me")
            let token = try #require(provider.asked.withLock { $0.first })
            // Encoded as in a form before it is Basic (RFC 6749 section 2.3.1).
            #expect(
                token.authorization == "Basic "
                    + Data("postern:s3cret%2F%2B".utf8).base64EncodedString())
            let verifier = try #require(token.form["code_verifier"])
            #expect(asked["code_challenge"] == Base64URL.encode(SHA256.hash(verifier.utf8)))
            let id = try #require(try users(fixture).first { $0.hasPrefix("u-") })
            #expect(try fixture.store.users.user(id).name == "Carol Jones")
            let inbox = try #require(try fixture.store.inboxes.inboxes(user: id).first)
            #expect(inbox.isVerified && inbox.address.revealed.wireForm == "carol@corp.example")
            #expect(try await carol.get("/me/security").text.contains("with Keycloak &lt;1&gt;"))
            // The address changes there: it is the same person, and the inbox here stays.
            provider.behaviour.withLock { $0.claims = { $0["email"] = "anna@home.example" } }
            let again = Browser(fixture)
            #expect(try await signIn(again, provider).location == "/me")
            #expect(try users(fixture).count == 3)
            #expect(try fixture.store.inboxes.inboxes(user: id).count == 1)
            #expect(
                !fixture.log.lines.contains {
                    $0.contains("corp.example") || $0.contains("subject-1")
                })
        }
    }

    @Test func upstreamSignIn_addressNotInToken_readsUserInfo() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock {
                $0.claims = { ($0["email"], $0["email_verified"]) = (nil, nil) }
                $0.userInfo = [
                    "sub": "subject-1", "email": "carol@corp.example", "email_verified": "true",
                ]
            }
            #expect(try await visit(fixture, provider).location == "/me")
            // An answer about another user does not count.
            provider.behaviour.withLock { $0.userInfo?["sub"] = "subject-2" }
            #expect(try await visit(fixture, provider).status == 502)
        }
    }

    @Test func upstreamSignIn_ofAppRequest_returnsToTheApp() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            try fixture.store.clients.addRedirect(
                team: "juice", clientID: "com.juice.app", uri: SheetFixture.redirect,
                PortalFixture.change)
            let carol = Browser(fixture)
            try await carol.get(
                "/auth/authorize?\(SheetFixture.query(["client_id": "com.juice.app", "prompt": "login", "max_age": "60"]))"
            )
            try await carol.follow()
            let link = try #require(carol.page.first(/href="(\/me\/upstream\?request=[^"]+)"/))
            let asked = try await leave(carol, provider, link)
            #expect(asked["prompt"] == "login" && asked["max_age"] == "60")
            let sheet = try await comeBack(carol, state: asked["state"])
            #expect(sheet.location?.hasPrefix("/sign-in?request=") == true)
            let text = try await carol.follow().text
            #expect(text.contains("Continue"))
            let session = try #require(
                try fixture.store.database.row(
                    "SELECT amr, authenticated_at, method FROM page_sessions"))
            let (amr, time): (String?, Int64?) = try (session["amr"], session["authenticated_at"])
            #expect(amr == "otp pwd" && time == PortalFixture.start)
        }
    }

    // MARK: Whose account it is

    @Test func upstreamSignIn_addressOfKnownUser_linksOnlyIfAllowed() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock { $0.claims = { $0["email"] = "anna@home.example" } }
            let page = try await visit(fixture, provider)
            #expect(page.status == 403 && page.text.contains("signs in otherwise"))
            #expect(try users(fixture) == ["anna", "bob"])
        }
        try await with(links: .verifiedAddress) {
            (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock { $0.claims = { $0["email"] = "anna@home.example" } }
            let anna = Browser(fixture)
            #expect(try await signIn(anna, provider).location == "/me")
            #expect(try await anna.get("/me").text.contains("anna@home.example"))
            // The address passed to another person there: another subject.
            provider.behaviour.withLock {
                $0.claims = { ($0["email"], $0["sub"]) = ("anna@home.example", "subject-2") }
            }
            #expect(try await visit(fixture, provider).status == 403)
            // Another spelling of the mailbox proves nothing.
            provider.behaviour.withLock {
                $0.claims = { ($0["email"], $0["sub"]) = ("bob+x@home.example", "subject-3") }
            }
            #expect(try await visit(fixture, provider).status == 403)
        }
    }

    @Test(arguments: [JSONValue.bool(false), "no", .null])
    func upstreamSignIn_unverifiedAddress_isRefused(
        _ said: JSONValue
    ) async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock {
                $0.claims = { $0["email_verified"] = said == .null ? nil : said }
            }
            #expect(try await visit(fixture, provider).status != 303)
            #expect(try users(fixture).count == 2)
        }
    }

    @Test func upstreamSignIn_allAddressesTrusted_needsNoVerifiedClaim() async throws {
        try await with(addresses: .all) {
            (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock {
                $0.claims = { $0["email_verified"] = .bool(false) }
                $0.userInfo = ["sub": "subject-1"]
            }
            #expect(try await visit(fixture, provider).status == 403)
            provider.behaviour.withLock { $0.claims = { $0["email_verified"] = nil } }
            #expect(try await visit(fixture, provider).location == "/me")
        }
    }

    @Test func upstreamSignIn_signUpNotAllowed_isRefused() async throws {
        try await with(signUp: .closed) {
            (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let page = try await visit(fixture, provider)
            #expect(page.status == 403 && page.text.contains("No one here belongs to your account"))
        }
        try await with(signUp: SignUpRules(.invited)) {
            (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            _ = try fixture.store.users.add(
                id: "carol", name: nil, inbox: try PortalFixture.inbox("carol@corp.example"),
                isVerified: false,
                PortalFixture.change)
            #expect(try await visit(fixture, provider).location == "/me")
            #expect(try fixture.store.inboxes.inboxes(user: "carol").allSatisfy(\.isVerified))
            try fixture.store.users.remove("carol", PortalFixture.change)
            // Removed, and not invited again.
            #expect(try await visit(fixture, provider).status == 403)
        }
    }

    @Test func signInPage_upstreamOnly_offersNoOtherMethod() async throws {
        try await with(isOnly: true) {
            (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let anna = Browser(fixture)
            let door = try await anna.get("/me/sign-in")
            #expect(
                door.text.contains("/me/upstream") && !door.text.contains("action=\"/me/sign-in\""))
            for path in ["/me/sign-in", "/me/sent", "/me/passkey"] {
                #expect(
                    try await anna.submit(path, ["email": "anna@home.example", "code": "000000"])
                        .status == 404, "\(path)")
            }
            #expect(fixture.mailCount("anna@home.example") == 0)
            #expect(try await signIn(anna, provider).location == "/me")
        }
    }

    // MARK: Attacks

    @Test func upstreamCallback_foreignLateOrRepeated_isRefused() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let (carol, mallory) = (Browser(fixture), Browser(fixture))
            let asked = try await leave(carol, provider)
            // The attacker's code with the attacker's state in the user's browser, and the reverse.
            let other = try await leave(mallory, provider)
            #expect(try await comeBack(carol, state: other["state"], "code=mallorys").status == 403)
            #expect(try await comeBack(mallory, state: asked["state"]).status == 403)
            let stranger = Browser(fixture)
            #expect(try await comeBack(stranger, state: asked["state"]).status == 403)
            #expect(provider.asked.withLock { $0.count } == 0, "no code was exchanged")
            // The cookie alone, taken over by another browser.
            let thief = Browser(fixture)
            try await thief.get("/me/sign-in")
            let kept = try #require(
                carol.cookies.first { $0.key.hasPrefix("__Host-postern-upstream-") })
            thief.take(kept.key, kept.value)
            #expect(try await comeBack(thief, state: asked["state"]).status == 403)
            for state in [nil, "", "x"] {
                #expect(try await comeBack(carol, state: state).status == 403)
            }
            fixture.now += UpstreamAttempt.lifetime
            #expect(try await comeBack(carol, state: asked["state"]).status == 403)
            fixture.now = PortalFixture.start
            let again = try await leave(carol, provider)
            #expect(try await comeBack(carol, state: again["state"]).location == "/me")
            // The cookie is used up: a signed-in user continues, and nothing is requested from the
            // provider.
            let asking = provider.asked.withLock { $0.count }
            #expect(try await comeBack(carol, state: again["state"]).location == "/me")
            carol.take("__Host-postern-session", nil)
            #expect(try await comeBack(carol, state: again["state"]).status == 403)
            #expect(provider.asked.withLock { $0.count } == asking)
        }
    }

    @Test func upstreamCallback_wrongIssuer_isRefused() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock {
                $0.metadata = { $0["authorization_response_iss_parameter_supported"] = .bool(true) }
            }
            let carol = Browser(fixture)
            for more in ["code=c", "code=c&iss=https://evil.example"] {
                let asked = try await leave(carol, provider)
                #expect(
                    try await comeBack(carol, state: asked["state"], more).status == 502, "\(more)")
            }
            let twice = try await leave(carol, provider)
            let both = "code=c&iss=\(provider.issuer)&iss=https://evil.example"
            #expect(try await comeBack(carol, state: twice["state"], both).status == 502)
            #expect(
                try await comeBack(
                    carol, state: twice["state"], "code=c&code=d&iss=\(provider.issuer)"
                ).status != 303)
            let asked = try await leave(carol, provider)
            #expect(
                try await comeBack(carol, state: asked["state"], "code=c&iss=\(provider.issuer)")
                    .location == "/me")
        }
    }

    private static let changes: [(String, @Sendable (inout JSONObject) -> Void)] = [
        ("another issuer", { $0["iss"] = "https://evil.example" }),
        ("another audience", { $0["aud"] = "other" }),
        ("two audiences", { $0["aud"] = .array(["postern", "other"]) }),
        ("another nonce", { $0["nonce"] = "x" }),
        ("no nonce", { $0["nonce"] = nil }),
        (
            "no nonce, as if unsupported",
            { ($0["nonce"], $0["nonce_supported"]) = (nil, .bool(false)) }
        ),
        ("another client", { $0["azp"] = "other" }),
        ("expired", { $0["exp"] = .integer(PortalFixture.start - 61) }),
        ("no subject", { $0["sub"] = nil }),
        ("from tomorrow", { $0["iat"] = .integer(PortalFixture.start + 86_400) }),
    ]

    @Test func upstreamToken_invalidClaims_isRefused() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            for (name, change) in Self.changes {
                provider.behaviour.withLock { $0.claims = change }
                let page = try await visit(fixture, provider)
                #expect(page.status == 502 && page.text.contains("is not valid"), "\(name)")
            }
            #expect(try users(fixture).count == 2)
        }
    }

    /// A token for several parties names the one that it was issued to (OpenID Connect Core section
    /// 3.1.3.7).
    @Test func upstreamToken_ofSeveralAudiencesAndOurs_isTaken() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock {
                $0.claims = { claims in
                    (claims["aud"], claims["azp"]) = (.array(["other", "postern"]), "postern")
                }
            }
            #expect(try await visit(fixture, provider).location == "/me")
            provider.behaviour.withLock {
                $0.claims = { claims in
                    (claims["aud"], claims["azp"]) = (.array(["other", "postern"]), "other")
                }
            }
            #expect(try await visit(fixture, provider).status == 502)
        }
    }

    @Test func upstreamToken_invalidSignature_isRefused() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let other = try IdentitySigningKey.generate().key
            let none: @Sendable (JSONObject) throws -> String = { claims in
                let head = Base64URL.encode(Array(#"{"alg":"none","kid":"x"}"#.utf8))
                return "\(head).\(Base64URL.encode(Array(JSONValue.object(claims).text.utf8)))."
            }
            for signer in [{ try other.sign($0) }, none, { _ in "x.y.z" }]
                as [@Sendable (JSONObject) throws -> String]
            {
                provider.behaviour.withLock { $0.signer = signer }
                #expect(try await visit(fixture, provider).status == 502)
            }
            #expect(try users(fixture).count == 2)
            #expect(!fixture.log.lines.contains { $0.contains("carol") })
        }
    }

    @Test func upstreamToken_authTimeOldOrMissing_isRefused() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            try fixture.store.clients.addRedirect(
                team: "juice", clientID: "com.juice.app", uri: SheetFixture.redirect,
                PortalFixture.change)
            for (parameter, time) in [
                ("login", PortalFixture.start - 3600), ("login", nil),
                ("age", PortalFixture.start - 3600),
            ] {
                provider.behaviour.withLock {
                    $0.claims = { $0["auth_time"] = time.map(JSONValue.integer) }
                }
                let carol = Browser(fixture)
                let query = SheetFixture.query(
                    [
                        "client_id": "com.juice.app",
                        "prompt": parameter == "login" ? "login" : nil,
                        "max_age": parameter == "age" ? "600" : nil,
                    ])
                try await carol.get("/auth/authorize?\(query)")
                try await carol.follow()
                let link = try #require(carol.page.first(/href="(\/me\/upstream\?request=[^"]+)"/))
                let asked = try await leave(carol, provider, link)
                #expect(
                    try await comeBack(carol, state: asked["state"]).status == 502, "\(parameter)")
            }
        }
    }

    @Test func upstreamCallback_providerError_isShownInOwnWords() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            let carol = Browser(fixture)
            let asked = try await leave(carol, provider)
            let page = try await comeBack(
                carol, state: asked["state"],
                "error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E")
            #expect(
                page.status == 403 && page.text.contains("did not sign you in")
                    && !page.text.contains("alert(1)"))
            #expect(fixture.log.lines.contains { $0.contains("access_denied") })
        }
    }

    @Test func upstreamMetadata_unavailableOrInvalid_isReported() async throws {
        try await with { (fixture: PortalFixture, provider: TestProvider) async throws -> Void in
            provider.behaviour.withLock { $0.status = 500 }
            let carol = Browser(fixture)
            let page = try await carol.get("/me/upstream")
            #expect(
                page.status == 502 && page.text.contains("does not answer")
                    && page.text.contains("action=\"/me/sign-in\""))
            fixture.now += 10
            provider.behaviour.withLock { ($0.status, $0.padding) = (200, 300_000) }
            #expect(try await carol.get("/me/upstream").status == 502)
            // Metadata of another issuer, or with an address that must not be used.
            let wrong: [@Sendable (inout JSONObject) -> Void] = [
                { $0["issuer"] = "https://evil.example" },
                { $0["token_endpoint"] = "http://192.0.2.1/token" },
                { $0["jwks_uri"] = nil }, { $0["authorization_endpoint"] = "javascript:alert(1)" },
            ]
            for change in wrong {
                fixture.now += 10
                provider.behaviour.withLock { ($0.padding, $0.metadata) = (0, change) }
                #expect(try await carol.get("/me/upstream").status == 502)
            }
            fixture.now += 10
            provider.behaviour.withLock { $0.metadata = nil }
            #expect(try await carol.get("/me/upstream").status == 303)
        }
    }
}
