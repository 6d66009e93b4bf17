// Several tabs, the Back button, old pages, and requests that are longer than a proxy's headers.
// Each ends at the app, or at a page that says how to continue.

import Accounts
import Database
import HTTPTypes
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct SheetTabsTests {
    /// A tab: the cookies are the browser's, and the page is its own.
    private struct Tab {
        let state: String
        let request: String
        /// The token of the form in it.
        var token: String
    }

    /// Opens a request in a tab, and requests a code there.
    private func ask(
        _ sheet: SheetFixture, _ browser: Browser, _ state: String
    ) async throws -> (Tab, code: String) {
        try await sheet.open(browser, ["state": state])
        let request = try SheetFixture.request(browser)
        try await browser.submit("/me/sign-in", ["email": "anna@home.example", "request": request])
        let code = try sheet.fixture.code("anna@home.example")
        try await browser.follow()
        return (
            Tab(
                state: state, request: request, token: try #require(browser.page.first(Self.token))),
            code
        )
    }

    private static var token: Regex<(Substring, Substring)> { /name="csrf" value="([a-z2-7]+)"/ }

    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]])
    func tabs_finishedInAnyOrder_eachReachTheirApp(_ order: [Int]) async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            var tabs: [(Tab, code: String)] = []
            for state in ["s-0", "s-1", "s-2"] { tabs.append(try await ask(sheet, anna, state)) }
            for place in order {
                let (tab, code) = tabs[place]
                // The first signs in by its own code; the others still show the earlier form.
                try await anna.submit(
                    "/me/sent", ["code": code, "request": tab.request, "csrf": tab.token],
                    token: false)
                #expect(try await anna.follow().text.contains("<h1>Continue to Soda</h1>"))
                let answer = try await sheet.press(anna, "continue")
                #expect(answer["state"] == tab.state && answer["code"] != nil)
            }
        }
    }

    /// A correct code of another user must not continue as the first user without a notice.
    @Test func form_ofAnotherUserInASecondTab_saysThatSomeoneIsSignedIn() async throws {
        try await SheetFixture.with { sheet in
            let browser = Browser(sheet.fixture)
            let (first, code) = try await ask(sheet, browser, "s-0")
            try await browser.get("/me/sign-in")
            try await browser.submit("/me/sign-in", ["email": "bob@home.example"])
            try await browser.follow()
            let token = try #require(browser.page.first(Self.token))
            let (second, link) = (
                try sheet.fixture.code("bob@home.example"),
                try sheet.fixture.link("bob@home.example")
            )
            try await browser.submit(
                "/me/sent", ["code": code, "request": first.request, "csrf": first.token],
                token: false)
            try await browser.follow()
            let words = "You were signed in here already. To use another address, sign out first."
            try await browser.submit("/me/sent", ["code": second, "csrf": token], token: false)
            #expect(try await browser.follow().text.contains(words))
            #expect(browser.page.text.contains("<bdi>anna@home.example</bdi>"))
            #expect(try await !browser.get("/me").text.contains(words))
            try await browser.get(link)
            #expect(try await browser.follow().text.contains(words))
        }
    }

    @Test func link_askedForInTheFirstOfTwoTabs_leadsToItsOwnApp() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            _ = try await ask(sheet, anna, "first")
            let link = try sheet.fixture.link("anna@home.example")
            _ = try await ask(sheet, anna, "second")
            try await anna.get(link)
            try await anna.submit(link)
            try await anna.follow()
            #expect(try await sheet.press(anna, "continue")["state"] == "first")
        }
    }

    /// Browsers send no cookie with a form of another site.
    @Test func request_postedByAnotherSite_endsNoOtherTab() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna, ["state": "first"])
            let first = try SheetFixture.request(anna)
            let cookie = try #require(anna.cookies["__Host-postern-authorization"])
            anna.take("__Host-postern-authorization", nil)
            try await anna.submit(
                "/auth/authorize?", Dictionary(uniqueKeysWithValues: fields(["state": "second"])),
                token: false,
                headers: ["Origin": "https://evil.example"])
            let location = try #require(anna.page.location)
            #expect(
                location.contains("/auth/begin?request=")
                    && anna.cookies["__Host-postern-authorization"] == nil)
            // The redirect sends it.
            anna.take("__Host-postern-authorization", cookie)
            try await anna.follow()
            #expect(anna.cookies["__Host-postern-authorization"] == cookie)
            try await sheet.signIn(anna)
            #expect(try await sheet.press(anna, "continue")["state"] == "second")
            try await anna.get("/sign-in?request=\(first)")
            #expect(try await sheet.press(anna, "continue")["state"] == "first")
            // Loaded again, it shows the present state.
            #expect(
                try await anna.get(String(location.dropFirst(PortalFixture.url.count))).status
                    == 303)
            #expect(try await anna.follow().text.contains("This sign-in is finished"))
            for nonsense in [
                "", "?request=", "?request=AAAA", "?request=\(String(repeating: "A", count: 27))",
            ] {
                try await anna.get("/auth/begin\(nonsense)")
                #expect(try await anna.follow().text.contains("<h1>Start again</h1>"))
            }
        }
    }

    private func fields(_ changes: [String: String]) -> [(String, String)] {
        var values = [
            "client_id": "com.soda.app", "redirect_uri": SheetFixture.redirect,
            "response_type": "code", "scope": "openid",
        ]
        for (name, value) in changes { values[name] = value }
        return values.map { ($0.key, $0.value) }
    }

    @Test func button_pressedTwice_givesOneAnswerThatArrives() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let (request, token) = (
                try SheetFixture.request(anna), try #require(anna.page.first(Self.token))
            )
            let fields = [
                "decision": "continue", "request": request, "csrf": token, "first_name": "Anna",
                "email": "hide",
            ]
            // The browser drops the answer to one of the two presses, which may be either.
            #expect(try await anna.submit("/sign-in", fields, token: false).status == 200)
            let dropped = try #require(anna.page.location)
            #expect(try await anna.submit("/sign-in", fields, token: false).status == 200)
            #expect(anna.page.location == dropped)
            try await anna.follow()
            let answer = try SheetFixture.answer(anna)
            #expect(try await sheet.claims(answer["code"])["email"] != nil)
            try await anna.get(String(dropped.dropFirst(PortalFixture.url.count)))
            #expect(try await anna.follow().text.contains("<h1>Start again</h1>"))
        }
    }

    @Test func backButton_afterSignIn_leadsOn() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            let token = try #require(anna.page.first(Self.token))
            try await sheet.signIn(anna)
            for path in ["/me/sign-in", "/me/sent"] {
                #expect(
                    try await anna.get("\(path)?request=\(request)").location
                        == "/sign-in?request=\(request)")
                #expect(try await anna.get(path).location == "/me")
            }
            for (path, name, value) in [
                ("/me/sign-in", "email", "anna@home.example"), ("/me/sent", "code", "123456"),
            ] {
                try await anna.submit(
                    path, [name: value, "request": request, "csrf": token], token: false)
                #expect(try await anna.follow().text.contains("<h1>Continue to Soda</h1>"))
            }
            // After sign-out in another tab, the consent page leads to the sign-in.
            let old = try #require(anna.page.first(Self.token))
            anna.take("__Host-postern-session", nil)
            try await anna.submit(
                "/sign-in", ["decision": "continue", "request": request, "csrf": old], token: false)
            #expect(try await anna.follow().text.contains("Sign in to continue to Soda"))
            // Without any cookie the form is shown again, with the reason.
            let bare = Browser(sheet.fixture)
            try await bare.submit(
                "/me/sign-in", ["email": "anna@home.example", "request": request])
            #expect(bare.page.status == 400 && bare.page.text.contains("Try again"))
            bare.take("__Host-postern-browser", String(repeating: "a", count: 32))
            try await bare.submit(
                "/me/sign-in", ["email": "anna@home.example", "request": request, "csrf": old],
                token: false)
            #expect(bare.page.status == 403 && bare.page.text.contains("That page was too old"))
            #expect(try SheetFixture.request(bare) == request)
        }
    }

    /// nginx has room for 4,096 octets of header in an answer, by default.
    @Test(arguments: ["query", "fragment", "form_post"])
    func longestRequest_inEveryStep_fitsTheHeadersOfAProxy(_ mode: String) async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            let state = String(repeating: "é", count: 2_048)
            var largest = 0
            func look() {
                let octets = anna.page.headers.reduce(0) {
                    $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 4
                }
                largest = max(largest, octets)
                #expect(
                    anna.cookies.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 3 }
                        < 3_000)
            }
            let asked = fields([
                "state": state, "response_mode": mode, "nonce": String(repeating: "n", count: 200),
            ])
            try await anna.submit(
                "/auth/authorize", Dictionary(uniqueKeysWithValues: asked), token: false)
            while let location = anna.page.location {
                look()
                try await anna.get(
                    String(
                        location.dropFirst(location.hasPrefix("http") ? PortalFixture.url.count : 0)
                    ))
            }
            look()
            let request = try SheetFixture.request(anna)
            try await anna.submit(
                "/me/sign-in", ["email": "anna@home.example", "request": request])
            look()
            let link = try sheet.fixture.link("anna@home.example")
            try await anna.get(link)
            look()
            try await anna.submit(link)
            look()
            try await anna.follow()
            try await anna.submit("/sign-in", ["decision": "continue", "request": request])
            look()
            try await anna.follow()
            look()
            #expect(largest < 3_000)
            #expect(anna.page.status == 200)
            let encoded = FormEncoding.encode([("state", state)])
            #expect(anna.page.text.contains(mode == "form_post" ? state : encoded))
            #expect(anna.page.text.contains(SheetFixture.redirect))
            // An error as its end, too.
            try await anna.submit(
                "/auth/authorize",
                Dictionary(
                    uniqueKeysWithValues: fields([
                        "state": state, "response_mode": mode, "scope": "x",
                    ])), token: false)
            look()
            #expect(largest < 3_000)
        }
    }

    @Test func request_thatWasCancelled_isNotAnsweredAfterIt() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            let token = try #require(anna.page.first(Self.token))
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
            sheet.fixture.now += PortalRepository.repetition
            for decision in ["continue", "cancel"] {
                try await anna.submit(
                    "/sign-in", ["decision": decision, "request": request, "csrf": token],
                    token: false)
                #expect(
                    try await anna.follow().text.contains("This sign-in is finished"), "\(decision)"
                )
            }
            #expect(
                try sheet.fixture.store.provider.consent(user: "anna", clientID: "com.soda.app")
                    == nil)
            // And in the other order.
            try await sheet.open(anna)
            let second = try SheetFixture.request(anna)
            #expect(try await sheet.press(anna, "continue")["code"] != nil)
            try await anna.submit(
                "/sign-in", ["decision": "cancel", "request": second, "csrf": token], token: false)
            #expect(try await anna.follow().text.contains("This sign-in is finished"))
        }
    }

    /// If a request ended, its correct code must still work.
    @Test func code_ofARequestThatEnded_signsInAndSaysSo() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            let (tab, code) = try await ask(sheet, anna, "s")
            try sheet.fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("DELETE FROM pending_requests")
            }
            try await anna.get("/me/sent?request=\(tab.request)")
            #expect(try SheetFixture.request(anna) == tab.request)
            try await anna.submit("/me/sent", ["code": code, "request": tab.request])
            #expect(try await anna.follow().text.contains("This sign-in is over"))
            #expect(try await anna.get("/me").status == 200)
        }
    }

    @Test func signedOutMessage_whileSomeoneIsSignedIn_leadsToTheirPage() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            #expect(
                try await anna.get("/sign-in?message=signed-out").text.contains(
                    "You are signed out"))
            try await anna.signIn("anna")
            #expect(try await anna.get("/sign-in?message=signed-out").location == "/me")
            try await anna.get("/auth/signed-out")
            #expect(try await anna.follow().text.contains("Your addresses"))
        }
    }

    @Test func maxAgeOfZero_afterTheSignInForIt_asksNoMore() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            sheet.fixture.now += 10
            try await sheet.open(anna, ["max_age": "0", "prompt": "none"])
            #expect(try SheetFixture.answer(anna)["error"] == "login_required")
            #expect(
                try await sheet.open(anna, ["max_age": "0"]).text.contains(
                    "Sign in to continue to Soda"))
            try await sheet.signIn(anna)
            #expect(try await sheet.press(anna, "continue")["code"] != nil)
        }
    }

    /// Errors are in the title of the page and at the field, for people who hear the page.
    @Test func errors_ofAForm_areInItsTitleAndFocused() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.get("/me/sign-in")
            #expect(
                anna.page.text.contains("<title>Sign in – ")
                    && !anna.page.text.contains("aria-invalid"))
            try await anna.submit("/me/sign-in", ["email": "anna"])
            #expect(anna.page.text.contains("<title>Error: Sign in – "))
            #expect(anna.page.text.contains(#"aria-invalid="true" autofocus"#))
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            try await anna.follow()
            try await anna.submit(
                "/me/sent", ["code": "12345"],
                headers: ["Origin": PortalFixture.url, "Accept-Language": "de"])
            #expect(anna.page.text.contains("<title>Fehler: "))
        }
    }

    @Test func sid_ofASession_isTheSameInItsTokensAndEndsWithIt() async throws {
        try await SheetFixture.with { sheet in
            var names: [String] = []
            let anna = Browser(sheet.fixture)
            for isNew in [true, false, true] {
                if isNew, !names.isEmpty {
                    try await anna.get("/me")
                    try await anna.submit("/me/sign-out")
                }
                try await sheet.open(anna)
                if isNew { try await sheet.signIn(anna) }
                let claims = try await sheet.claims(try await sheet.press(anna, "continue")["code"])
                names.append(try #require(claims["sid"]?.string))
            }
            #expect(names[0] == names[1] && names[1] != names[2])
            #expect(names.allSatisfy { $0.utf8.count == 32 })
        }
    }
}
