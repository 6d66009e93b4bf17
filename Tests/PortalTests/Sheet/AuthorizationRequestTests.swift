// Attacks on the sign-in page of apps.

import Accounts
import Foundation
import HTTPTypes
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct AuthorizationRequestTests {
    private func answers(_ sheet: SheetFixture) throws -> Int64? {
        try sheet.fixture.store.database.value(
            "SELECT COUNT(*) FROM pending_requests WHERE length(response) > 0")
    }

    /// Requests with prompt=none must not store an answer without a signed-in user.
    @Test func authorizationRequest_notSignedIn_storesNoAnswer() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            for mode in ["query", "form_post", "web_message"] {
                try await sheet.open(anna, ["prompt": "none", "response_mode": mode])
                #expect(mode == "query" || anna.page.text.contains("login_required"))
                #expect(
                    mode == "query"
                        || anna.page.header("Content-Security-Policy").contains(
                            "frame-ancestors 'none'")
                )
                #expect(anna.page.header("Cross-Origin-Opener-Policy") == "")
            }
            try await sheet.open(anna)
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
            #expect(try answers(sheet) == 0)
        }
    }

    /// HEAD must not answer the request, and must not sign out.
    @Test func authorizationRequest_headMethod_storesNoAnswer() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue")
            let stored = try answers(sheet)
            let there = try #require(
                try await anna.get("/auth/authorize?\(SheetFixture.query(["prompt": "none"]))")
                    .location)
            let cookies = anna.cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
            let look = try await sheet.fixture.ask(
                .head, String(there.dropFirst(PortalFixture.url.count)),
                headers: [.cookie: cookies], body: nil)
            #expect(look.location == "/sign-in" && look.text.isEmpty)
            #expect(try answers(sheet) == stored)
            try await anna.follow()
            #expect(try SheetFixture.answer(anna)["code"] != nil)
        }
    }

    @Test func authorizationRequest_redirectURIRemoved_getsNoAnswer() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            try sheet.fixture.store.clients.removeRedirect(
                team: "soda", clientID: "com.soda.app", uri: SheetFixture.redirect,
                PortalFixture.change)
            let answer = try await anna.submit(
                "/sign-in", ["decision": "cancel", "request": request])
            #expect(answer.status == 410 && answer.location == nil)
        }
    }

    /// If the answer goes nowhere, the consent must not be kept.
    @Test func authorizationRequest_alreadyAnswered_storesNoConsent() async throws {
        try await SheetFixture.with { sheet in
            let (anna, bob) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await bob.signIn("bob")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            try await bob.get("/sign-in?request=\(request)")
            _ = try await sheet.press(anna, "continue")
            let answer = try await bob.submit(
                "/sign-in", ["decision": "continue", "request": request])
            #expect(answer.text.contains("This sign-in is finished"))
            #expect(
                try sheet.fixture.store.provider.consent(user: "bob", clientID: "com.soda.app")
                    == nil)
        }
    }

    /// If a user removes their name from the form, the app must not get the stored one.
    @Test func consent_nameLeftEmpty_givesNoName() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna, ["response_mode": "form_post"])
            try await anna.submit(
                "/sign-in",
                [
                    "decision": "continue", "first_name": " ", "last_name": "",
                    "request": try SheetFixture.request(anna),
                ])
            let user = try #require(try await anna.follow().first(/name="user" value="([^"]+)"/))
            #expect(
                user.contains("@relay.example") && !user.contains("anna") && !user.contains("name"))
        }
    }

    /// If an app requested no address before, it must not get one without the user's consent.
    @Test func consent_emailScopeAdded_isRequiredAgain() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna, ["scope": "openid"])
            _ = try await sheet.claims(try await sheet.press(anna, "continue")["code"])
            try await sheet.open(anna, ["scope": "openid", "prompt": "none"])
            #expect(try SheetFixture.answer(anna)["code"] != nil)
            for scope in ["email", "openid email"] {
                try await sheet.open(anna, ["scope": scope, "prompt": "none"])
                #expect(try SheetFixture.answer(anna)["error"] == "consent_required")
            }
            #expect(
                !(try await sheet.open(anna, ["scope": "openid email"]).text.contains(
                    "nothing new about you")))
            _ = try await sheet.claims(try await sheet.press(anna, "continue")["code"])
            try await sheet.open(anna, ["scope": "email", "prompt": "none"])
            #expect(try SheetFixture.answer(anna)["code"] != nil)
            #expect(
                try await sheet.open(anna, ["scope": "openid email"]).text.contains(
                    "nothing new about you"))
        }
    }

    /// The button must not give more than the page said.
    @Test func consent_revokedWhilePageIsOpen_isRequiredAgain() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            let store = sheet.fixture.store
            try await anna.signIn("anna")
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            let account = try #require(
                try store.database.value(
                    "SELECT MAX(account_id) FROM grants WHERE state = 'authorized'") as Int64?)
            try store.grants.revokeAll(account: account, PortalFixture.change)
            let shown = try #require(anna.page.first(/name="known" value="([^"]+)"/))
            let answer = try await anna.submit(
                "/sign-in", ["decision": "continue", "known": shown, "request": request])
            #expect(answer.location == "/sign-in?request=\(request)")
            #expect(
                try store.provider.consent(user: "anna", clientID: "com.soda.app")?.isLive == false)
            #expect(try await anna.follow().text.contains("Choose what Soda learns about you"))
        }
    }

    /// Other pages must not have a request in their address: its opener could control them.
    @Test func openerPolicy_pageOutsideSignIn_isSameOrigin() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna, ["response_mode": "web_message"])
            let request = try SheetFixture.request(anna)
            for path in ["/me", "/me/security", "/me/nothing"] {
                let page = try await anna.get(
                    "\(path)?request=\(request)", headers: ["Accept": "text/html"])
                #expect(page.header("Cross-Origin-Opener-Policy") == "same-origin", "\(path)")
                #expect(
                    page.header("Content-Security-Policy").contains("form-action 'self'"), "\(path)"
                )
            }
        }
    }

    /// An unchanged inbox must follow the default, not be stored for this app.
    @Test func consent_inboxUnchanged_followsTheDefault() async throws {
        try await SheetFixture.with { sheet in
            let (anna, inboxes) = (Browser(sheet.fixture), sheet.fixture.store.inboxes)
            _ = try inboxes.add(
                user: "anna", try PortalFixture.inbox("anna@work.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            try await anna.signIn("anna")
            for (chosen, kept) in [("1", nil), ("2", 2), ("1", 1)] as [(String, Int64?)] {
                try await sheet.open(anna, ["prompt": "consent"])
                _ = try await sheet.press(anna, "continue", ["email": "hide", "inbox": chosen])
                let consent = try sheet.fixture.store.provider.consent(
                    user: "anna", clientID: "com.soda.app")
                #expect(consent?.inboxNumber == kept, "\(chosen)")
            }
        }
    }

    /// A sign-in as another user than the app expects must not lead to the sign-in again, without
    /// end.
    @Test func idTokenHint_otherUserSignsIn_returnsLoginRequired() async throws {
        try await SheetFixture.with { sheet in
            let (anna, bob) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await sheet.open(
                anna, ["response_type": "code id_token", "response_mode": "form_post"])
            try await anna.submit(
                "/sign-in", ["decision": "continue", "request": try SheetFixture.request(anna)])
            let hint = try #require(
                try await anna.follow().first(/name="id_token" value="([^"]+)"/))
            try await sheet.open(bob, ["id_token_hint": hint])
            sheet.fixture.now += 1
            try await sheet.signIn(bob, "bob@home.example")
            let answer = try SheetFixture.answer(bob)
            #expect(
                answer["error"] == "login_required"
                    && answer["error_description"] == "another user is signed in")
        }
    }

    /// The page must show the appearance that the operator gave the app.
    @Test func signInPage_appWithAppearance_showsNameAndIcon() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            #expect(!(try await sheet.open(anna).text.contains("/me/icons/")))
            try sheet.fixture.store.apps.setAppearance(
                team: "soda", clientID: "com.soda.app", name: "Soda <b>",
                icon: .some(try AppIcon(png: Self.png)),
                PortalFixture.change)
            let text = try await sheet.open(anna).text
            #expect(
                text.contains("<strong>Soda &lt;b&gt;</strong>")
                    && text.contains(#"src="/me/icons/com.soda.app""#))
        }
    }

    /// The start and the end of a picture of 64 pixels.
    private static let png: [UInt8] =
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + [
            0, 0, 0, 64, 0, 0, 0, 64,
        ]
        + Array(repeating: 0, count: 13) + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]

    /// Injected markup could post our forms elsewhere. Browsers also check each redirect after a
    /// form, even an app's own.
    @Test func everyStep_withAForm_keepsItsFormsHereAndGoesOnFromAPage() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            #expect(anna.page.header("Content-Security-Policy").contains("form-action 'self';"))
            let request = try SheetFixture.request(anna)
            try await anna.submit(
                "/me/sign-in", ["email": "anna@home.example", "request": request])
            let code = try sheet.fixture.code("anna@home.example")
            try await anna.follow()
            #expect(anna.page.header("Content-Security-Policy").contains("form-action 'self';"))
            for (path, fields) in [
                ("/me/sent", ["code": code]),
                ("/sign-in", ["decision": "continue", "email": "hide"]),
            ] {
                let page = try await anna.submit(path, fields.merging(["request": request]) { $1 })
                let target = try #require(page.location)
                #expect(page.status == 200 && page.headers[.location] == nil)
                #expect(page.text.contains("href=\"\(target)\""), "\(page.text)")
                #expect(page.header("Content-Security-Policy").contains("form-action 'self';"))
                #expect(
                    page.header("X-Frame-Options") == "DENY"
                        && page.header("Cache-Control") == "no-store")
                if path == "/me/sent" {
                    try await anna.follow()
                    #expect(
                        anna.page.header("Content-Security-Policy").contains("form-action 'self';"))
                }
            }
        }
    }

    /// Swift makes one Character of a mark and the character that it joins: `<` beside one must
    /// still be escaped.
    @Test(
        arguments: ["\u{600}", "\u{D4E}", "\u{111C2}"],
        ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{E0100}"])
    func loginHint_markupBesideMarks_isEscaped(before: String, after: String) async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            for mark in [before, ""] {
                for end in [after, ""] {
                    let hint =
                        ["\"", ">", "<"].map { mark + $0 + end }.joined() + "zz9" + mark + ">" + end
                        + "X@e.example"
                    try await sheet.open(anna, ["login_hint": hint])
                    #expect(anna.page.status == 200)
                    let value = try #require(anna.page.first(/name="email"[^\n]* value="([^\n]*)/))
                    #expect(value.utf8.prefix { $0 != UInt8(ascii: "\"") }.count > 20)
                    #expect(!anna.page.text.utf8.contains(Array("<\(end)zz9".utf8)))
                }
            }
        }
    }
}
