// The sign-in page of apps: whole sign-ins from /auth/authorize to the tokens, and all misuse.

import Accounts
import Database
import Foundation
import HTTP
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

/// A relying party, com.juice.app of juice, with its users' browsers.
struct SheetFixture {
    static let redirect = "https://juice.example/back"
    let fixture: PortalFixture
    let secret: String

    static func with(
        _ signUp: SignUpRules = .closed, _ body: (SheetFixture) async throws -> Void
    ) async throws {
        try await PortalFixture.with(signUp: signUp) { fixture in
            let (store, change) = (fixture.store, PortalFixture.change)
            try store.clients.addRedirect(
                team: "juice", clientID: "com.juice.app", uri: redirect, change)
            _ = try store.apps.add(team: "soda", clientID: "com.soda.app", group: nil, change)
            try store.clients.addRedirect(
                team: "soda", clientID: "com.soda.app", uri: redirect, change)
            let secret = try store.openIDClients.issueSecret(
                team: "soda", clientID: "com.soda.app", change
            ).secret
            try await body(SheetFixture(fixture: fixture, secret: secret))
        }
    }

    /// Sends a request as com.soda.app, which no user of the fixture uses yet.
    static func query(_ changes: [String: String?] = [:]) -> String {
        var values = [
            "client_id": "com.soda.app", "redirect_uri": redirect, "response_type": "code",
            "scope": "openid email name",
            "state": "s-1", "nonce": "n-1",
        ]
        for (name, value) in changes { values[name] = value }
        return FormEncoding.encode(values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// Opens an app's request: the page for the user, or the address to which the browser was sent.
    @discardableResult
    func open(_ browser: Browser, _ changes: [String: String?] = [:]) async throws -> Response {
        try await browser.get("/auth/authorize?\(Self.query(changes))")
        return try await browser.follow()
    }

    /// The request to which the open page belongs.
    static func request(_ browser: Browser) throws -> String {
        try #require(
            browser.page.first(/name="request" value="([A-Za-z0-9_-]+)"/),
            "\(browser.page.status) \(browser.page.text.components(separatedBy: "<main").last ?? "")"
        )
    }

    /// Signs in by a code on the open sign-in page.
    func signIn(_ browser: Browser, _ inbox: String = "anna@home.example") async throws {
        let request = try Self.request(browser)
        try await browser.submit("/me/sign-in", ["email": inbox, "request": request])
        let code = try fixture.code(inbox)
        try await browser.follow()
        try await browser.submit("/me/sent", ["code": code, "request": try Self.request(browser)])
        try await browser.follow()
    }

    /// Presses a button of the consent page: the answer to the app.
    func press(
        _ browser: Browser, _ decision: String, _ fields: [String: String] = [:]
    ) async throws -> [String: String] {
        var fields = fields
        fields["decision"] = decision
        fields["request"] = try Self.request(browser)
        try await browser.submit("/sign-in", fields)
        try await browser.follow()
        return try Self.answer(browser)
    }

    static func answer(_ browser: Browser) throws -> [String: String] {
        let location = try #require(
            browser.page.location, "\(browser.page.status) \(browser.page.text)")
        try #require(location.hasPrefix("\(redirect)?"))
        let pairs = try #require(
            FormEncoding.pairs(location.dropFirst(redirect.count + 1).utf8, maximum: 10))
        return Dictionary(
            pairs.map { ($0.name.text, $0.value.text) }, uniquingKeysWith: { first, _ in first })
    }

    /// The claims that the app's backend gets for a code.
    func claims(_ code: String?) async throws -> JSONObject {
        let body = FormEncoding.encode([
            ("grant_type", "authorization_code"), ("code", try #require(code)),
            ("redirect_uri", Self.redirect),
            ("client_id", "com.soda.app"), ("client_secret", secret),
        ])
        let answer = try await fixture.ask(
            .post, "/auth/token", headers: [.contentType: "application/x-www-form-urlencoded"],
            body: body)
        try #require(answer.status == 200, "\(answer.text)")
        let token = try #require(
            try StrictJSON.parseObject(Array(answer.text.utf8), limit: 100_000)["id_token"]?.string)
        let payload = try #require(Base64URL.decode(token.split(separator: ".")[1].utf8))
        return try StrictJSON.parseObject(payload, limit: 100_000)
    }
}

@Suite(.blocking) struct PortalSheetTests {
    /// Keyboards put other spaces than ASCII's around a name; within the name they stay.
    @Test func choice_spacesAroundAName_areLeftOut() throws {
        let form = try FormBody(
            "first_name=%E3%80%80Anna%C2%A0Mary%C2%A0&last_name=%E3%80%80".utf8, maximum: 5)
        #expect(SheetChoice(form).name == PersonName(given: "Anna\u{A0}Mary", family: nil))
        #expect(
            PersonName(given: "\u{E9}", family: nil) != PersonName(given: "e\u{301}", family: nil))
    }

    /// A browser must not get JSON.
    @Test func authorize_storeFails_isAPageInTheLanguageOfTheBrowser() async throws {
        try await SheetFixture.with { sheet in
            try sheet.fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("ALTER TABLE pending_requests RENAME TO gone")
            }
            for path in ["/auth/authorize?\(SheetFixture.query())", "/auth/end-session"] {
                let page = try await Browser(sheet.fixture).get(
                    path, headers: ["Accept": "text/html", "Accept-Language": "fr"])
                #expect(
                    page.status == 500 && page.text.contains("<html lang=\"fr\"")
                        && page.text.contains("/me/style"))
                let program = try await Browser(sheet.fixture).get(path)
                #expect(
                    program.status == 500
                        && program.header("Content-Type") == "application/problem+json")
            }
        }
    }

    @Test func consent_addressHidden_givesRelayAddress() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            #expect(try await sheet.open(anna).text.contains("Sign in to continue to Soda"))
            try await sheet.signIn(anna)
            #expect(anna.page.text.contains("<h1>Continue to Soda</h1>"))
            #expect(anna.page.text.contains(#"value="hide" checked>"#))
            #expect(anna.page.text.contains("Your inbox is anna@home.example."))
            let answer = try await sheet.press(
                anna, "continue", ["email": "hide", "first_name": "Anna", "last_name": "Li"])
            #expect(answer["state"] == "s-1" && answer["iss"] == PortalFixture.url)
            let claims = try await sheet.claims(answer["code"])
            #expect(claims["email"]?.string?.hasSuffix("@relay.example") == true)
            #expect(claims["is_private_email"] == .bool(true) && claims["nonce"]?.string == "n-1")
            #expect(claims["amr"]?.array?.compactMap(\.string) == ["otp"])
            // The second time is one click, and gives the same address.
            #expect(try await sheet.open(anna).text.contains("You have used it before"))
            #expect(!anna.page.text.contains("first_name"))
            let again = try await sheet.claims(try await sheet.press(anna, "continue")["code"])
            #expect(again["email"] == claims["email"] && again["sub"] == claims["sub"])
        }
    }

    @Test func consent_addressShared_givesChosenInbox() async throws {
        try await SheetFixture.with { sheet in
            _ = try sheet.fixture.store.inboxes.add(
                user: "anna", try PortalFixture.inbox("anna@work.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            #expect(
                anna.page.text.contains(#"<option value="1" selected>anna@home.example</option>"#))
            let answer = try await sheet.press(anna, "continue", ["email": "share", "inbox": "2"])
            #expect(try await sheet.claims(answer["code"])["email"]?.string == "anna@work.example")
        }
    }

    @Test func consent_unknownInbox_isNotFound() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            let request = try SheetFixture.request(anna)
            for inbox in ["2", "999999", "-1"] {
                let page = try await anna.submit(
                    "/sign-in",
                    ["decision": "continue", "email": "share", "inbox": inbox, "request": request])
                #expect(page.status == 404)
                try await anna.get("/sign-in?request=\(request)")
            }
            #expect(
                try sheet.fixture.store.provider.consent(user: "anna", clientID: "com.soda.app")
                    == nil)
        }
    }

    @Test func authorizationRequest_cancelled_returnsAccessDenied() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
            #expect(
                try sheet.fixture.store.provider.consent(user: "anna", clientID: "com.soda.app")
                    == nil)
        }
    }

    @Test func promptNone_signInOrConsentMissing_returnsError() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna, ["prompt": "none"])
            #expect(try SheetFixture.answer(anna)["error"] == "login_required")
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            try await sheet.open(anna, ["prompt": "none"])
            #expect(try SheetFixture.answer(anna)["error"] == "consent_required")
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue")
            try await sheet.open(anna, ["prompt": "none"])
            #expect(try SheetFixture.answer(anna)["code"] != nil)
        }
    }

    @Test func authorizationRequest_promptLoginOrMaxAge_requiresSignIn() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            sheet.fixture.now += 100
            #expect(try await sheet.open(anna).text.contains("Continue to Soda"))
            for changes in [["prompt": "login"], ["max_age": "60"]] {
                #expect(
                    try await sheet.open(anna, changes).text.contains("Sign in to continue to Soda")
                )
            }
            // A page from before cannot be used with the old session either.
            let request = try SheetFixture.request(anna)
            try await sheet.open(anna)
            try await anna.submit("/sign-in", ["decision": "continue", "request": request])
            #expect(try await anna.follow().text.contains("Sign in to continue to Soda"))
            try await sheet.signIn(anna)
            #expect(anna.page.text.contains("<h1>Continue to Soda</h1>"))
            let claims = try await sheet.claims(try await sheet.press(anna, "continue")["code"])
            #expect(claims["auth_time"]?.number?.integer == sheet.fixture.now)
        }
    }

    @Test func promptSelectAccount_otherAccount_switchesUser() async throws {
        try await SheetFixture.with { sheet in
            let browser = Browser(sheet.fixture)
            try await browser.signIn("anna")
            try await sheet.open(browser, ["prompt": "select_account"])
            #expect(browser.page.text.contains("Signed in with anna@home.example."))
            try await browser.submit(
                "/sign-in", ["decision": "other", "request": try SheetFixture.request(browser)])
            #expect(try await browser.follow().text.contains("Sign in to continue to Soda"))
            try await sheet.signIn(browser, "bob@home.example")
            #expect(browser.page.text.contains("Signed in with bob@home.example."))
        }
    }

    @Test func idTokenHint_otherUserSignedIn_requiresSignIn() async throws {
        try await SheetFixture.with { sheet in
            let (anna, bob) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await sheet.open(
                anna, ["response_type": "code id_token", "response_mode": "form_post"])
            let request = try SheetFixture.request(anna)
            try await anna.submit("/sign-in", ["decision": "continue", "request": request])
            let hint = try #require(
                try await anna.follow().first(/name="id_token" value="([^"]+)"/))
            try await bob.signIn("bob")
            #expect(
                try await sheet.open(bob, ["id_token_hint": hint]).text.contains(
                    "Sign in to continue to Soda"))
            try await sheet.open(bob, ["id_token_hint": hint, "prompt": "none"])
            #expect(try SheetFixture.answer(bob)["error"] == "login_required")
            #expect(
                try await sheet.open(anna, ["id_token_hint": hint]).text.contains(
                    "You have used it before"))
        }
    }

    @Test func consent_foreignFormOrToken_isNotStored() async throws {
        try await SheetFixture.with { sheet in
            let (anna, mallory) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            let fields = ["decision": "continue", "email": "share", "request": request]
            // A form without its token leads to the consent page, and consents to nothing.
            try await anna.submit("/sign-in", fields, token: false)
            #expect(try await anna.follow().text.contains("<h1>Continue to Soda</h1>"))
            #expect(
                try await anna.submit(
                    "/sign-in", fields, headers: ["Origin": "https://evil.example"]
                ).status == 403)
            // The token of another user's page.
            try await mallory.signIn("bob")
            try await mallory.get("/sign-in?request=\(request)")
            let token = try #require(mallory.page.first(/name="csrf" value="([a-z2-7]+)"/))
            var forged = fields
            forged["csrf"] = token
            try await anna.submit("/sign-in", forged, token: false)
            #expect(try await anna.follow().text.contains("<h1>Continue to Soda</h1>"))
            #expect(
                try sheet.fixture.store.provider.consent(user: "anna", clientID: "com.soda.app")
                    == nil)
        }
    }

    @Test func authorizationRequest_ofAnotherBrowser_yieldsNoCode() async throws {
        try await SheetFixture.with { sheet in
            let (anna, mallory) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await sheet.open(mallory)
            let request = try SheetFixture.request(mallory)
            try await anna.signIn("anna")
            try await anna.get("/sign-in?request=\(request)")
            try await anna.submit("/sign-in", ["decision": "continue", "request": request])
            let ticket = try #require(anna.page.location)
            // Anna's browser did not make the request; Mallory's does not have the ticket, which
            // went only to Anna's browser.
            #expect(try await anna.follow().text.contains("Start again"))
            #expect(ticket.hasPrefix("\(PortalFixture.url)/auth/continue?ticket="))
            try await mallory.get("/sign-in?request=\(request)")
            #expect(try await mallory.follow().text.contains("Sign in to continue to Soda"))
        }
    }

    @Test func authorizationRequest_answeredOrExpired_isRefused() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            #expect(try await sheet.press(anna, "continue")["code"] != nil)
            try await anna.get("/sign-in?request=\(request)")
            #expect(anna.page.text.contains("This sign-in is finished"))
            #expect(anna.page.text.contains("href=\"https://juice.example\""))
            try await anna.submit("/sign-in", ["decision": "continue", "request": request])
            #expect(try await anna.follow().text.contains("This sign-in is finished"))
            try await sheet.open(anna)
            let late = try SheetFixture.request(anna)
            sheet.fixture.now += PendingLifetime.most
            #expect(try await anna.get("/sign-in?request=\(late)").status == 410)
            #expect(try await anna.get("/sign-in?request=AAAA").status == 410)
            #expect(try await anna.get("/sign-in").status == 410)
        }
    }

    @Test func signInPage_headers_forbidFramesAndKeepOpener() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            func check(opener: Bool) {
                #expect(anna.page.header("X-Frame-Options") == "DENY")
                #expect(
                    anna.page.header("Content-Security-Policy").contains("frame-ancestors 'none'"))
                #expect(anna.page.header("Content-Security-Policy").hasPrefix("default-src 'none'"))
                #expect((anna.page.header("Cross-Origin-Opener-Policy") == "") == opener)
            }
            let own = "com.example.soda:/in"
            try sheet.fixture.store.clients.addRedirect(
                team: "soda", clientID: "com.soda.app", uri: own, PortalFixture.change)
            for (mode, redirect) in [
                ("web_message", SheetFixture.redirect), ("query", SheetFixture.redirect),
                ("query", own),
            ] {
                sheet.fixture.now += 1
                try await sheet.open(
                    anna, ["response_mode": mode, "redirect_uri": redirect, "prompt": "login"])
                check(opener: redirect != own)
                try await sheet.signIn(anna)
                check(opener: redirect != own)
            }
        }
    }

    @Test func signInLink_ofAppRequest_returnsToTheApp() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            try await anna.submit(
                "/me/sign-in",
                ["email": "anna@home.example", "request": try SheetFixture.request(anna)])
            let link = try sheet.fixture.link("anna@home.example")
            try await anna.get(link)
            try await anna.submit(link)
            #expect(try await anna.follow().text.contains("<h1>Continue to Soda</h1>"))
            // A link that was requested without an app leads to the user's own page.
            anna.take("__Host-postern-session", nil)
            try await anna.signIn("anna")
        }
    }

    @Test func authorizationRequest_appRemoved_isRefused() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            try sheet.fixture.store.apps.remove(
                team: "soda", clientID: "com.soda.app", PortalFixture.change)
            let answer = try await anna.submit(
                "/sign-in", ["decision": "continue", "request": request])
            #expect(answer.status == 404 || answer.status == 410)
            #expect([404, 410].contains(try await anna.get("/sign-in?request=\(request)").status))
        }
    }

    @Test func endSession_confirmed_signsOut() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await anna.get("/auth/end-session?client_id=com.soda.app")
            #expect(try await anna.follow().text.contains("Sign out?"))
            let ended = try #require(anna.page.first(/name="end_session" value="([A-Za-z0-9_-]+)"/))
            #expect(
                try await anna.submit("/sign-in", ["end_session": ended], token: false).status
                    == 403)
            try await anna.get("/sign-in?end_session=\(ended)")
            try await anna.submit("/sign-in", ["end_session": ended])
            #expect(try await anna.follow().text.contains("You are signed out"))
            #expect(try await anna.get("/me").location == "/me/sign-in")
        }
    }

    @Test func consent_typedName_isValidatedAndEscaped() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna, ["response_mode": "form_post"])
            let request = try SheetFixture.request(anna)
            let bad = try await anna.submit(
                "/sign-in",
                ["decision": "continue", "first_name": "A\u{202E}b", "request": request])
            #expect(bad.status == 422 && bad.text.contains("The character at place"))
            try await anna.submit(
                "/sign-in",
                [
                    "decision": "continue", "first_name": "Änn & \"A\"", "last_name": "<b>",
                    "request": request,
                ])
            let user = try #require(try await anna.follow().first(/name="user" value="([^"]+)"/))
            #expect(user.contains("Änn &amp; \\&quot;A\\&quot;") && user.contains("&lt;b&gt;"))
        }
    }
}
