// Users and teams whom the operator froze, on the page and at the token endpoint.

import Accounts
import Foundation
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct FreezePageTests {
    private static let change = PortalFixture.change

    /// The user reads why nothing goes on, on every page, before and after signing in.
    @Test func page_frozenUser_saysSoAndDoesNothing() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let end = fixture.now + 30 * 86_400
            try fixture.store.freezes.begin(
                .user("anna"), reason: "abuse 7", endsAt: end, Self.change)
            let day = PortalText(.english).date(end)
            for path in ["/me", "/me/inboxes", "/me/security", "/me/data", "/me/data.json"] {
                let page = try await anna.get(path)
                #expect(page.status == 403, "\(path)")
                #expect(page.text.contains("has frozen your account until \(day)"), "\(path)")
                #expect(!page.text.contains("abuse 7"))
            }
            // Another browser: the code is taken, and the page is the same.
            let other = Browser(fixture)
            try await other.signIn("anna")
            #expect(try await other.get("/me").text.contains("has frozen your account"))
            // Those who are not frozen see nothing of it.
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(try await bob.get("/me").status == 200)
            try fixture.store.freezes.end(.user("anna"), Self.change)
            #expect(try await anna.get("/me").status == 200)
        }
    }

    @Test func request_frozenUser_givesTheAppNothing() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            let code = try await sheet.press(anna, "continue")["code"]
            try sheet.fixture.store.freezes.begin(
                .user("anna"), reason: "abuse", endsAt: nil, Self.change)
            // A code from before buys nothing either.
            let refused = try await sheet.fixture.ask(
                .post, "/auth/token",
                headers: [.contentType: "application/x-www-form-urlencoded"],
                body: FormEncoding.encode([
                    ("grant_type", "authorization_code"), ("code", try #require(code)),
                    ("redirect_uri", SheetFixture.redirect), ("client_id", "com.soda.app"),
                    ("client_secret", sheet.secret),
                ]))
            #expect(refused.status == 400 && refused.text.contains("invalid_grant"))
            let page = try await sheet.open(anna)
            #expect(page.status == 403 && page.text.contains("has frozen your account."))
            let silent = try await sheet.open(anna, ["prompt": "none"])
            #expect(silent.location == nil || silent.location?.contains("code=") == false)
            try sheet.fixture.store.freezes.end(.user("anna"), Self.change)
            #expect(try await sheet.claims(code)["sub"]?.string != nil)
        }
    }

    @Test func request_frozenTeam_getsAccessDenied() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            let team = try #require(
                try sheet.fixture.store.clients.client("com.soda.app")?.teamID)
            try sheet.fixture.store.freezes.begin(
                .team(team), reason: "phishing", endsAt: nil, Self.change)
            try await sheet.open(anna)
            let answer = try SheetFixture.answer(anna)
            #expect(answer["error"] == "access_denied" && answer["code"] == nil)
            #expect(answer["error_description"] == "the operator has frozen the team of this app")
            // The user's own page goes on.
            #expect(try await anna.get("/me").status == 200)
        }
    }
}
