// Attacks on the sign-in page of apps that were found by looking for them.

import Foundation
import HTTPTypes
import SignIn
import Testing

@testable import Portal

@Suite struct SheetAttackTests {
    private func answers(_ sheet: SheetFixture) throws -> Int64? {
        try sheet.fixture.store.database.value("SELECT COUNT(*) FROM authorization_answers")
    }

    /// Requests with prompt=none wrote a row each, without anyone being signed in and without a limit.
    @Test func nothingIsStoredForWhoeverIsNotSignedIn() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            for mode in ["query", "form_post", "web_message"] {
                try await sheet.open(anna, ["prompt": "none", "response_mode": mode])
                #expect(mode == "query" || anna.page.text.contains("login_required"))
                #expect(mode == "query" || anna.page.header("Content-Security-Policy").contains("frame-ancestors 'none'"))
                #expect(anna.page.header("Cross-Origin-Opener-Policy") == "")
            }
            try await sheet.open(anna)
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
            #expect(try answers(sheet) == 0)
        }
    }

    /// HEAD answered the request, and signed out.
    @Test func aLookAtAnAddressDoesNothing() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue")
            let stored = try answers(sheet)
            let there = try #require(
                try await anna.get("/auth/authorize?\(SheetFixture.query(["prompt": "none"]))").location)
            let cookies = anna.cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
            let look = try await sheet.fixture.ask(
                .head, String(there.dropFirst(PortalFixture.url.count)), headers: [.cookie: cookies], body: nil)
            #expect(look.location == "/sign-in" && look.text.isEmpty)
            #expect(try answers(sheet) == stored)
            try await anna.follow()
            #expect(try SheetFixture.answer(anna)["code"] != nil)
        }
    }

    @Test func aRedirectURIThatWasTakenAwayMeanwhileGetsNothing() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            try sheet.fixture.store.clients.removeRedirect(
                team: "soda", clientID: "com.soda.app", uri: SheetFixture.redirect, PortalFixture.change)
            let answer = try await anna.submit("/sign-in", ["decision": "cancel", "request": request])
            #expect(answer.status == 410 && answer.location == nil)
        }
    }

    /// The consent was kept although the answer went nowhere: the request was another's by then.
    @Test func aRequestThatWasAnsweredIsNotConsentedToAgain() async throws {
        try await SheetFixture.with { sheet in
            let (anna, bob) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await bob.signIn("bob")
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            try await bob.get("/sign-in?request=\(request)")
            _ = try await sheet.press(anna, "continue")
            #expect(try await bob.submit("/sign-in", ["decision": "continue", "request": request]).status == 409)
            #expect(try sheet.fixture.store.provider.consent(user: "bob", clientID: "com.soda.app") == nil)
        }
    }
}
