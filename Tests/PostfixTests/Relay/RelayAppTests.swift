// Apps without a web server of their own, in a real browser. One has its own scheme. One is a page
// that opens a window, or navigates there itself, and receives a press twice.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix, Browser.isThere) struct RelayAppTests {
    /// The final text of the page without a backend, without the address.
    private static let signedIn =
        "a wrong code is invalid_grant\nrevoked 200, then 401\nsigned in as "

    @Test(arguments: ["com.example.app://cb", "com.example.app:/signed-in"])
    func signIn_schemeOfAnAppsOwn_opensTheApp(_ back: String) throws {
        let stage = try AppStage(opening: "com.example.app")
        defer { stage.end() }
        let browser = stage.browser
        try stage.fixture.run(["app", "redirect", "add", "juice", "com.example.juice", back])
        let request =
            "\(stage.postern)/auth/authorize?client_id=com.example.juice&redirect_uri=\(back)&response_type=code"
            + "&scope=openid%20email&state=s"
        let iss = stage.postern.replacing(":", with: "%3A").replacing("/", with: "%2F")
        func answer(_ number: Int) throws -> String { try browser.opened(number: number) }

        try browser.open(request)
        try stage.signIn()
        try browser.click("[value=continue]")
        let first = try answer(1)
        #expect(
            first.hasPrefix(back + "?code=pc_") && first.hasSuffix("&state=s&iss=\(iss)"),
            "\(first)")
        // The app is already known: one press, and none if the app wants none.
        try browser.open(request)
        try stage.expect(".lead:last-child", "You have used it before.")
        try browser.click("[value=continue]")
        #expect(try answer(2).hasPrefix(back + "?code=pc_"))
        try browser.open(request)
        try stage.expect(".lead:last-child", "You have used it before.")
        try browser.click("[value=cancel]")
        let cancelled = try answer(3)
        #expect(
            cancelled.hasPrefix(back + "?error=access_denied&")
                && cancelled.hasSuffix("&state=s&iss=\(iss)"), "\(cancelled)")
        #expect(try browser.complaints().filter { !$0.contains("Launched external handler") } == [])
    }

    @Test func signIn_pageWithoutABackend_readsTokensKeysAndUser() throws {
        let stage = try AppStage()
        defer { stage.end() }
        let browser = stage.browser
        try browser.open(stage.app + "/alone.html")
        try browser.click("#here")
        _ = try browser.shows("#email", "")
        try stage.signIn()
        try browser.click("[value=continue]")
        try stage.expect("#outcome", Self.signedIn)
        #expect(try browser.text("#outcome").hasSuffix("@relay.example"))
        // The browser's complaints about the two error answers only, and none about blocked
        // requests.
        #expect(
            try browser.complaints().filter {
                !$0.contains("status of 400") && !$0.contains("status of 401")
            } == [])

        // The same page at an origin that no app has.
        try browser.open(stage.app.replacing("localhost", with: "127.0.0.1") + "/alone.html")
        try browser.click("#foreign")
        try stage.expect(
            "#outcome", "keys true\ntoken TypeError\nrevocation TypeError\nuserinfo TypeError\ndone"
        )
    }

    /// The page waits as its libraries do: if contact to a window is lost, it treats the window as
    /// closed.
    @Test(arguments: ["query", "fragment"])
    func signIn_windowThatThePageOpened_tellsItsOpener(_ mode: String) throws {
        let stage = try AppStage()
        defer { stage.end() }
        let browser = stage.browser
        try browser.open(stage.app + "/alone.html?mode=\(mode)")
        try browser.click("#popup")
        try browser.inPopup {
            _ = try browser.shows("#email", "")
            try stage.signIn()
            try browser.click("[value=continue]")
        }
        try stage.expect("#outcome", Self.signedIn)
        // Cancelled.
        try browser.open(stage.app + "/alone.html?mode=\(mode)")
        try browser.click("#popup")
        try browser.inPopup {
            // It revoked its access.
            try stage.expect(".lead:last-child", "Choose what")
            try browser.click("[value=cancel]")
        }
        try stage.expect("#outcome", "error access_denied")
    }

    @Test(arguments: [true, false])
    func buttons_pressedTwice_leadToTheAppAllTheSame(_ hasScripts: Bool) throws {
        let stage = try AppStage()
        defer { stage.end() }
        let browser = stage.browser
        try browser.open(stage.app + "/alone.html")
        try browser.click("#here")
        _ = try browser.shows("#email", "")
        if !hasScripts { try browser.forbidScripts() }
        try browser.type("anna@home.example", into: "#email")
        try browser.doubleClick("form[action='/me/sign-in'] button")
        #expect(try browser.shows("h1", "Check your inbox"))
        // Without scripts both presses may send a request; the later code then counts.
        var isIn = false
        for number in 1...(hasScripts ? 1 : 2) where !isIn {
            let message = try stage.fixture.arrival(for: "anna@home.example", number: number)
            let code = try #require(message.value("Subject")?.firstMatch(of: /[0-9]{3} [0-9]{3}/))
                .output
            try browser.type(String(code), into: "#code")
            try browser.doubleClick("form[action='/me/sent'] button")
            try wait("the code is right or wrong", atMost: standardTimeout) {
                isIn = (try? browser.text("h1").hasPrefix("Continue to")) == true
                return isIn || (try? browser.text("#problem")) != nil
            }
        }
        #expect(isIn)
        try browser.doubleClick("[value=continue]")
        let leads = try browser.leads(to: stage.app + "/alone.html")
        let (url, said) = (try browser.url, try browser.text("body"))
        #expect(leads, "\(url) says \(said)")
        guard hasScripts else { return }
        try stage.expect("#outcome", Self.signedIn)
        #expect(stage.fixture.sink.messages.count == 1)
    }
}
