// The sign-in button on an app's page, in a real browser: popup and redirect to the built-in page,
// and pages of other origins.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix, Browser.isThere) struct RelayButtonTests {
    @Test func signInButton_popupOrRedirect_signsIn() throws {
        let stage = try AppStage()
        defer { stage.end() }
        let browser = stage.browser
        try browser.open(stage.app + "/popup.html")
        #expect(
            try browser.value("return document.querySelector('#postern-sign-in img').alt")
                as? String == "Mit Postern anmelden")
        let decoded = try browser.value(
            "return document.querySelector('#postern-sign-in img').decode().then(() => 'shown')")
        #expect(decoded as? String == "shown")

        // A forged answer of the page itself with the right state does not count.
        let forged =
            "postMessage({type: 'authorization_response', response: {state: 'af0ifjsldkj', iss: '\(stage.postern)', code: 'forged'}}, '*')"
        try browser.click("#postern-sign-in button")
        // A second click belongs to the same sign-in.
        try browser.click("#postern-sign-in button")
        _ = try browser.value(forged)
        try browser.inPopup {
            try stage.signIn()
            try browser.click("[value=continue]")
        }
        #expect(try browser.shows("#outcome", #"success {"authorization":{"code":"pc_"#))
        let outcome = try browser.text("#outcome")
        #expect(
            outcome.contains(#""state":"af0ifjsldkj""#) && !outcome.contains("forged")
                && !outcome.contains("failure"))
        #expect(outcome.matches(of: /success/).count == 1)
        #expect(
            outcome.contains("@relay.example") && !outcome.contains("home.example"), "\(outcome)")

        // Cancelled, and with the answer to another request.
        try browser.open(stage.app + "/popup.html")
        try browser.click("#postern-sign-in button")
        try browser.inPopup { try browser.click("[value=cancel]") }
        #expect(try browser.shows("#outcome", "failure access_denied"))
        try browser.open(stage.app + "/popup.html")
        try browser.click("#postern-sign-in button")
        try browser.inPopup {
            #expect(try browser.shows("h1", "Continue to"))
            _ = try browser.value(
                "opener.postMessage({type: 'authorization_response', response: {state: 'b', iss: '\(stage.postern)', code: 'c'}}, '\(stage.app)')"
            )
        }
        #expect(try browser.shows("#outcome", "failure invalid_response"))
        // The policy of the page, and its Trusted Types, blocked nothing.
        #expect(
            try browser.complaints().filter { $0.contains("Policy") || $0.contains("Trusted") }
                == [])

        try browser.open(stage.app + "/redirect.html")
        try browser.click("#postern-sign-in button")
        #expect(try browser.shows("h1", "Continue to"))
        try browser.click("[value=continue]")
        #expect(try browser.leads(to: stage.app + "/back.html?code=pc_"))
        #expect(try browser.url.contains("&state=af0ifjsldkj&iss="))
        #expect(try !stage.fixture.process.output.contains("home.example"))

        // Another site opens the request itself: anna is signed in, and a code is made, but only
        // for the app's origin.
        for (origin, messages) in [
            (stage.app.replacing("localhost", with: "127.0.0.1"), 0), (stage.app, 1),
        ] {
            try browser.open(origin + "/foreign.html")
            try browser.click("button")
            #expect(try browser.shows("#outcome", "closed after \(messages)"))
        }
    }

    @Test func signInButton_closedPopupOrForeignOrigin_fails() throws {
        let stage = try AppStage()
        defer { stage.end() }
        let browser = stage.browser
        try browser.open(stage.app + "/popup.html")
        try browser.click("#postern-sign-in button")
        try browser.closePopup()
        #expect(try browser.shows("#outcome", "failure popup_closed"))

        let other = stage.app.replacing("localhost", with: "127.0.0.1")
        try browser.open(other + "/popup.html")
        try browser.click("#postern-sign-in button")
        #expect(try browser.shows("#outcome", "failure invalid_origin"))
    }
}
