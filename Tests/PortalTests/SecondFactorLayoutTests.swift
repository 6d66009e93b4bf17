// The pages of the second factor in a real browser, in all languages, and losing it, step by step.

import Foundation
import PostfixHarness
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

@Suite(
    .blocking,
    .enabled(if: PostfixHarness.Browser.driver != nil, "skipped: no Chromium (make test-tools)"))
struct SecondFactorLayoutTests {
    typealias Chromium = PostfixHarness.Browser

    private func secret(_ browser: Chromium) throws -> [UInt8] {
        let text = try #require(
            try browser.value("return document.querySelector('#secret').textContent") as? String)
        return try #require(Base32.decode(text.utf8.filter { $0 != 0x20 }))
    }

    private func code(_ secret: [UInt8], _ fixture: PortalFixture) -> String {
        OneTimePassword.code(secret, step: OneTimePassword.step(at: fixture.now))
    }

    /// Asks for a code by mail and enters it; what comes then is another page.
    private func enterMailedCode(
        _ browser: Chromium, _ fixture: PortalFixture, _ url: String
    ) throws {
        try browser.open("\(url)/me/sign-in")
        try browser.type("anna@home.example", into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        _ = try browser.shows("#code", "")
        try browser.type(fixture.code("anna@home.example"), into: "#code")
        try browser.click("form[action='/me/sent'] button")
    }

    @Test(arguments: ["en", "de", "fr", "es", "ja", "ar"])
    func page_eachOfTheSecondFactor_hasNoLayoutFindings(_ language: String) async throws {
        let layout = PageLayoutTests()
        try await layout.visit(requiredLevel: .twoFactor, recoveryDays: 3) {
            fixture, url, browser in
            try browser.accept(language: language)
            func look(_ name: String) throws {
                try PageLayoutTests.look(browser, name, language)
                try browser.resize(width: 1200, height: 900)
            }
            try enterMailedCode(browser, fixture, url)
            _ = try browser.shows("a[href='/me/authenticator']", "")
            try look("new-factor")
            try browser.click("a[href='/me/authenticator']")
            _ = try browser.shows("#secret", "")
            let secret = try secret(browser)
            try browser.type("000000", into: "#code")
            try browser.click("form[action='/me/authenticator'] button")
            _ = try browser.shows("#problem", "")
            try look("authenticator")
            try browser.type(code(secret, fixture), into: "#code")
            try browser.click("form[action='/me/authenticator'] button")
            _ = try browser.shows("#codes", "")
            try look("recovery-codes")
            try browser.click("a.button[href='/me/security']")
            _ = try browser.shows("#factors", "")
            try look("security-two-factors")
            try browser.click(".sign-out button")
            _ = try browser.shows("#email", "")
            fixture.now += OneTimePassword.period
            try enterMailedCode(browser, fixture, url)
            _ = try browser.shows("#lost summary", "")
            try look("second-factor")
            try browser.click("#lost summary")
            try browser.type("aaaa-bbbb", into: "#recovery")
            try browser.click("form:has(#recovery) button")
            _ = try browser.shows("#recovery-problem", "")
            try look("second-factor-lost")
            try browser.click("form[action='/me/recovery'] button")
            _ = try browser.shows("#waiting", "")
            try browser.click("#lost summary")
            try look("second-factor-waiting")
            let mail = try fixture.mail("anna@home.example")
            let link = try #require(mail.firstMatch(of: /(\/me\/recovery\/[a-z2-7]{32})/)).1
            try browser.open(url + link)
            try look("stop-recovery")
            try browser.open("\(url)/me/second")
            try browser.type(code(secret, fixture), into: "#code")
            try browser.click("form[action='/me/second'] button")
            _ = try browser.shows("form[action='/me/recovery/stop']", "")
            try look("recovery-asked")
        }
    }

    /// First the phone is lost, then the codes too: the user waits. Nothing but one inbox is left.
    @Test func secondFactor_lostWithItsCodes_isReplacedAfterTheWait() async throws {
        let layout = PageLayoutTests()
        try await layout.visit(recoveryDays: 3) { fixture, url, browser in
            try PageLayoutTests.signIn(browser, fixture, url)
            try browser.open("\(url)/me/authenticator")
            try browser.type(code(try secret(browser), fixture), into: "#code")
            try browser.click("form[action='/me/authenticator'] button")
            let codes = try browser.text("#codes").split(separator: "\n")
            #expect(codes.count == RecoveryCodeRepository.count)
            try browser.forgetCookies()

            try enterMailedCode(browser, fixture, url)
            _ = try browser.shows("#lost summary", "")
            try browser.click("#lost summary")
            try browser.type(String(codes[0]), into: "#recovery")
            try browser.click("form:has(#recovery) button")
            #expect(try browser.shows("h1", "Sign-in"))
            try browser.forgetCookies()

            // The codes are gone as well.
            try enterMailedCode(browser, fixture, url)
            _ = try browser.shows("#lost summary", "")
            try browser.click("#lost summary")
            try browser.click("form[action='/me/recovery'] button")
            #expect(try browser.shows("#waiting", ""))
            fixture.now += 3 * 86_400
            try browser.forgetCookies()
            try enterMailedCode(browser, fixture, url)
            _ = try browser.shows("#lost summary", "")
            try browser.click("#lost summary")
            try browser.click("form[action='/me/recovery/finish'] button")
            _ = try browser.shows("#email", "")
            try enterMailedCode(browser, fixture, url)
            #expect(try browser.shows("h1", "Your addresses"))
        }
    }
}
