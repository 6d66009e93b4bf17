// Passkeys in a real browser, with WebDriver's virtual authenticator.

import Foundation
import InternetMessage
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix, Browser.isThere) struct RelayPasskeyTests {
    private func code(_ message: SinkMessage) throws -> String {
        let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
        let text = String(
            decoding: QuotedPrintable.decode(Array(part.utf8)[...]).bytes, as: UTF8.self)
        return String(try #require(text.firstMatch(of: /[0-9]{3} [0-9]{3}/)).output)
    }

    /// Anna signs in by a code, adds a passkey, and signs out.
    private func addPasskey(_ browser: Browser, _ fixture: RelayFixture, _ url: String) throws {
        try browser.open(url + "/me/sign-in")
        try browser.type("anna@home.example", into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        #expect(try browser.shows("h1", "Check your inbox"))
        try browser.type(try code(try fixture.arrival(for: "anna@home.example")), into: "#code")
        try browser.click("main button")
        // This browser can make a passkey, so one is offered once.
        #expect(try browser.arrives(at: url + "/me/offer"))
        try browser.open(url + "/me/security")
        try browser.type("My phone", into: "#name")
        try browser.click("#passkey-add button")
        #expect(try browser.shows("[role=status]", "The passkey is added."))
    }

    @Test func passkey_autofill_signsInAndCopyIsRefused() throws {
        let (fixture, url) = try home(host: "localhost")
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let browser = try Browser()
        defer { browser.quit() }
        let authenticator = try browser.addAuthenticator()
        try addPasskey(browser, fixture, url)
        let made = try browser.passkeys(authenticator)
        #expect(made.count == 1 && made.first?["isResidentCredential"] as? Bool == true)
        #expect(made.first?["rpId"] as? String == "localhost")

        // Without a click: the browser offers the passkey in the address field.
        try browser.click(".sign-out button")
        #expect(try browser.arrives(at: url + "/me"))
        try browser.open(url + "/me/security")
        #expect(try browser.text("main").contains("last used"))

        // A copy of it, made before that: its counter does not increase.
        var copy = try #require(try browser.passkeys(authenticator).first)
        copy["signCount"] = 0
        try browser.setUserVerified(false, authenticator)
        try browser.click(".sign-out button")
        #expect(try browser.arrives(at: url + "/me/sign-in"))
        try browser.replacePasskeys(authenticator, with: copy)
        try browser.click("#passkey-sign-in button")
        // Without a fingerprint the browser does not use it.
        #expect(
            try browser.shows(
                "#passkey-sign-in [data-failure]", "The browser did not use a passkey"))
        try browser.setUserVerified(true, authenticator)
        try browser.open(url + "/me/sign-in")
        #expect(
            try browser.shows(
                "[role=alert]", "This passkey was removed here, or belongs to another site."))
        #expect(try fixture.process.output.contains("may have been copied"))
    }

    @Test func passkey_removed_isRefused() throws {
        let (fixture, url) = try home(host: "localhost")
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let browser = try Browser()
        defer { browser.quit() }
        let authenticator = try browser.addAuthenticator()
        try addPasskey(browser, fixture, url)
        let removed = try #require(try browser.passkeys(authenticator).first)
        try browser.click(".rows form button")
        #expect(try browser.shows("[role=status]", "The passkey is removed."))
        // The page tells the browser which passkeys exist, and the browser deletes the others.
        try wait("the browser forgets the passkey", atMost: standardTimeout) {
            try browser.passkeys(authenticator).isEmpty
        }
        try browser.click(".sign-out button")
        #expect(try browser.arrives(at: url + "/me/sign-in"))
        // A browser that still has it offers it, and gets a refusal and the information that it is
        // unknown.
        try browser.replacePasskeys(authenticator, with: removed)
        try browser.open(url + "/me/sign-in")
        #expect(
            try browser.shows(
                "[role=alert]", "This passkey was removed here, or belongs to another site."))
        try wait("the browser forgets the passkey", atMost: standardTimeout) {
            try browser.passkeys(authenticator).isEmpty
        }
        // Under another name of the same machine the browser has no passkey for this page.
        let other = url.replacing("localhost", with: "127.0.0.1")
        try browser.open(other + "/me/sign-in")
        try browser.click("#passkey-sign-in button")
        #expect(
            try browser.shows(
                "#passkey-sign-in [data-failure]", "The browser did not use a passkey"))
        #expect(try !fixture.process.output.contains("home.example"))
    }
}
