// A sign-in in a new browser is reported by mail.

import Accounts
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct NewBrowserTests {
    private func signIn(_ fixture: PortalFixture, _ inbox: String, _ browser: Browser) async throws
    {
        browser.take("__Host-postern-session", nil)
        try await browser.get("/me/sign-in")
        try #require(
            try await browser.submit("/me/sign-in", ["email": inbox]).location == "/me/sent")
        let code = try fixture.code(inbox)
        try await browser.get("/me/sent")
        try #require(try await browser.submit("/me/sent", ["code": code]).location == "/me")
    }

    private func told(_ fixture: PortalFixture, _ inbox: String) throws -> Bool {
        try fixture.mail(inbox).contains("as you, in")
    }

    @Test func newBrowserNotice_signInByOtherInbox_goesToDefaultInbox() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.inboxes.add(
                user: "anna", try PortalFixture.inbox("anna@old.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            let browser = Browser(fixture)
            try await signIn(fixture, "anna@old.example", browser)
            #expect(fixture.mailCount("anna@home.example") == 1)
            #expect(try told(fixture, "anna@home.example"))
            #expect(!(try fixture.mail("anna@home.example").contains("old.example")))
            // The same browser causes no message.
            try await signIn(fixture, "anna@old.example", browser)
            #expect(fixture.mailCount("anna@home.example") == 1)
            // A browser that another user used is not known either.
            let other = Browser(fixture)
            try await signIn(fixture, "bob@home.example", other)
            try await signIn(fixture, "anna@old.example", other)
            #expect(fixture.mailCount("anna@home.example") == 2)
        }
    }

    @Test func signIn_newOrKnownBrowser_storesLanguage() async throws {
        try await PortalFixture.with { fixture in
            let browser = Browser(fixture)
            for language in ["de", "fr"] {
                try await browser.get("/me/sign-in")
                try await browser.submit("/me/sign-in", ["email": "anna@home.example"])
                let link = try fixture.link("anna@home.example")
                try await browser.get(link)
                try await browser.submit(
                    link, headers: ["Origin": PortalFixture.url, "Accept-Language": language])
                #expect(browser.page.location == "/me")
                #expect(try fixture.store.users.language(of: "anna") == language)
                browser.take("__Host-postern-session", nil)
            }
        }
    }

    /// The message advises to sign out everywhere; after that, earlier browsers are new again.
    @Test func newBrowserNotice_afterSignOutEverywhere_isSentAgain() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.inboxes.add(
                user: "anna", try PortalFixture.inbox("anna@old.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            let (anna, thief) = (Browser(fixture), Browser(fixture))
            try await signIn(fixture, "anna@old.example", thief)
            #expect(fixture.mailCount("anna@home.example") == 1)
            try await anna.signIn("anna")
            try await anna.submit("/me/sign-out")
            try await signIn(fixture, "anna@old.example", thief)
            #expect(fixture.mailCount("anna@home.example") == 2, "one to sign in")
            try await anna.signIn("anna")
            try await anna.submit("/me/sign-out", ["everywhere": "yes"])
            try await signIn(fixture, "anna@old.example", thief)
            #expect(fixture.mailCount("anna@home.example") == 4)
            #expect(try told(fixture, "anna@home.example"))
            try await signIn(fixture, "anna@old.example", thief)
            #expect(fixture.mailCount("anna@home.example") == 4)
        }
    }

    @Test func newBrowserNotice_signInByDefaultInbox_isNotSent() async throws {
        try await PortalFixture.with { fixture in
            try await signIn(fixture, "anna@home.example", Browser(fixture))
            #expect(fixture.mailCount("anna@home.example") == 1)
            #expect(!(try told(fixture, "anna@home.example")))
        }
    }

    @Test func knownBrowserCookie_alone_doesNotSignIn() async throws {
        try await PortalFixture.with { fixture in
            let browser = Browser(fixture)
            try await signIn(fixture, "anna@home.example", browser)
            let known = try #require(browser.cookies["__Host-postern-known"])
            let thief = Browser(fixture)
            thief.take("__Host-postern-known", known)
            #expect(try await thief.get("/me").location == "/me/sign-in")
            #expect(known != browser.cookies["__Host-postern-session"])
        }
    }
}
