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

    @Test func signInScript_check_answersThePageThatOpenedIt() throws {
        let stage = try AppStage()
        defer { stage.end() }
        let (browser, fixture) = (stage.browser, stage.fixture)
        try browser.open(stage.app + "/popup.html")
        try browser.click("#postern-sign-in button")
        try browser.inPopup {
            try stage.signIn()
            try browser.click("[value=continue]")
        }
        #expect(try browser.shows("#outcome", "success"))
        let subject = try #require(
            try fixture.run(["account", "list"]).split(separator: "\t").first.map(String.init))
        let key = try #require(
            try fixture.run(["api-key", "issue", "juice", "--scope", "decisions:write"])
                .split(whereSeparator: \.isNewline).first { !$0.contains(" ") })
        struct Answer: Decodable {
            let challengeUrl: String?
        }
        func decide(_ event: String) throws -> Answer {
            let question = """
                {"event": "\(event)", "client_id": "com.example.juice", "sub": "\(subject)", "challenge": \
                {"redirect_uri": "\(stage.app)/back.html", "response_mode": "web_message", "state": "\(event)-1"}}
                """
            let answer = try ManagedProcess.run(
                "/usr/bin/curl",
                [
                    "-sS", stage.postern + "/v1/decisions", "-H", "Authorization: Bearer \(key)",
                    "-H", "Content-Type: application/json", "-d", question,
                ])
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return try decoder.decode(Answer.self, from: Data(answer.output.utf8))
        }
        // The first one is the sign-up, of which nothing is known.
        #expect(try decide("sign_in").challengeUrl == nil)
        let link = try #require(try decide("sensitive_action").challengeUrl)
        func check(_ url: String, state: String) throws {
            _ = try browser.value(
                """
                document.querySelector("#outcome").textContent = "";
                Postern.auth.check({challengeUrl: "\(url)", state: "\(state)", mode: "popup"}).then(
                  (answer) => { document.querySelector("#outcome").textContent = "passed " + JSON.stringify(answer); },
                  ({error}) => { document.querySelector("#outcome").textContent = "failed " + error; });
                """)
        }
        for (url, state) in [("https://elsewhere.example/auth/begin?request=a", "a"), (link, "")] {
            try check(url, state: state)
            #expect(try browser.shows("#outcome", "failed invalid_request"))
        }
        try check(link, state: "sensitive_action-1")
        try browser.inPopup {
            #expect(try browser.shows("h1", "One more check for"))
            try browser.click("[value=cancel]")
        }
        #expect(try browser.shows("#outcome", "failed access_denied"))

        // The cancelled one is over. Another decision of the account has its own.
        let other = try #require(try decide("upgrade").challengeUrl)
        try check(other, state: "upgrade-1")
        try browser.inPopup {
            #expect(try browser.shows("h1", "One more check for"))
            try browser.click("[value=send]")
            let message = try fixture.arrival(for: "anna@home.example", number: 2)
            let code = try #require(
                message.value("Subject")?.firstMatch(of: /[0-9]{3} [0-9]{3}/)
            ).output
            #expect(try browser.shows("label[for=code]", ""))
            try browser.type(String(code), into: "#code")
            try browser.click("[value=code]")
        }
        #expect(try browser.shows("#outcome", #"passed {"check_result":"ey"#))
        #expect(try browser.text("#outcome").contains(#""state":"upgrade-1"}"#))
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
