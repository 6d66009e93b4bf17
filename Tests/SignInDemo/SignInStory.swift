// The steps that Chromium performs, and the conditions that must be true after each.

import DemoSupport
import Foundation
import PostfixHarness

final class SignInStory {
    private let stage: Stage
    private(set) var failures = 0
    private let inbox = "anna@home.example"

    init(_ stage: Stage) { self.stage = stage }

    func tell() throws {
        let browser = try Browser()
        defer { browser.quit() }
        _ = try browser.addAuthenticator()
        do {
            try signUp(browser)
            let address = try hide(browser)
            try write(browser, address)
            try order(browser)
            try addPasskey(browser)
            try stepUp(browser)
            try signInAgain(browser, address)
            try switchOff(browser)
        } catch {
            Terminal.say("The browser is at \(try browser.url):\n\(try browser.text("body"))")
            throw error
        }
        let complaints = try browser.complaints()
        check("the browser had nothing to complain about", complaints.isEmpty)
        for complaint in complaints { Terminal.say(Terminal.styled(complaint, .bad)) }
        Terminal.title(
            failures == 0
                ? "All steps came out right." : "\(failures) things were not as they should be.")
    }

    private func signUp(_ browser: Browser) throws {
        Terminal.title("1. Anna, who is new, signs in to an app by a code")
        try browser.open(stage.juice)
        try browser.click("#in")
        check(
            "the page names the app",
            try browser.shows("h1", "Sign in to continue to The Juice Company"))
        try browser.type(inbox, into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        check("it says where the code is", try browser.shows("h1", "Check your inbox"))
        try browser.type(try code(number: 1), into: "#code")
        try browser.click("form[action='/me/sent'] button")
        check(
            "a passkey is offered, once",
            try browser.shows("h1", "Sign in without a code next time?"))
        try browser.click(".below a")
    }

    /// The address that the app gets.
    private func hide(_ browser: Browser) throws -> String {
        Terminal.title("2. She hides her address")
        check("the sheet asks", try browser.shows("h1", "Continue to The Juice Company"))
        check(
            "hiding is chosen already",
            try browser.value("return document.querySelector('[value=hide]').checked") as? Bool
                == true)
        try browser.type("Anna", into: "#first_name")
        try browser.click("[value=continue]")
        check("she is back at the app", try browser.arrives(at: stage.juice + "/"))
        let address = try browser.text("#email")
        Terminal.say("The app knows \(Terminal.styled(address, .strong)).")
        check("the app has a relay address", address.hasSuffix("@relay.example"))
        check("the token says that it is one", try browser.text("#is_private_email") == "True")
        check("the token says how she signed in", try browser.text("#amr") == "['otp']")
        return address
    }

    private func write(_ browser: Browser, _ address: String) throws {
        Terminal.title("3. The app writes to the relay address, and the message reaches Anna")
        try browser.click("#write")
        check("the app's message was accepted", try browser.shows("#sent", "Sent."))
        let message = try stage.fixture.arrival(for: inbox, number: 2)
        stage.show(message)
        check("it is the app's message", Letter(message).value("Subject") == "Your first juice")
    }

    /// The code in a message to Anna, which is shown.
    private func code(number: Int) throws -> String {
        let message = try stage.fixture.arrival(for: inbox, number: number)
        stage.show(message)
        let text = Letter(message).readable.joined(separator: "\n")
        guard let code = text.firstMatch(of: /[0-9]{3} [0-9]{3}/) else {
            throw HarnessError("the message has no code")
        }
        return String(code.output)
    }

    private func stepUp(_ browser: Browser) throws {
        Terminal.title("6. The app wants a passkey before it shows where deliveries go")
        try browser.open(stage.juice)
        try browser.click("#delivery")
        check("Postern asks for the passkey", try browser.shows("h1", "One more step"))
        try browser.click("#passkey-sign-in button")
        check(
            "one click is left", try browser.shows(".lead", "You have used it before."))
        try browser.click("[value=continue]")
        check("she is back at the app", try browser.arrives(at: stage.juice + "/"))
        check("the token says that it was a passkey", try browser.text("#acr") == "phr")
        try browser.click("#delivery")
        check("the app shows it", try browser.shows("#place", "12 Orchard Lane"))
    }

    private func order(_ browser: Browser) throws {
        Terminal.title("4. She orders a lot, and Postern carries out the check that the app needs")
        // A sign-in of the same second would count as one of after the request.
        Thread.sleep(forTimeInterval: 1.1)
        try browser.open(stage.juice)
        try browser.click("#order")
        check(
            "the page of the check names the team",
            try browser.shows("h1", "One more check for The Juice Company"))
        try browser.click("[value=send]")
        check("it asks for a code", try browser.shows("label[for=code]", ""))
        try browser.type(try code(number: 3), into: "#code")
        try browser.click("[value=code]")
        check("the app got a signed result", try browser.shows("#ordered", "Ordered."))
        try browser.open(stage.juice)
        try browser.click("#order")
        check(
            "the next order needs no check, as the account is proven",
            try browser.shows("#ordered", "Ordered."))
    }

    private func addPasskey(_ browser: Browser) throws {
        Terminal.title("5. She adds a passkey")
        try browser.open(stage.postern + "/me/security")
        try browser.type("My laptop", into: "#name")
        try browser.click("#passkey-add button")
        check("it is added", try browser.shows("[role=status]", "The passkey is added."))
    }

    private func signInAgain(_ browser: Browser, _ address: String) throws {
        Terminal.title("7. She signs out, and in again by the passkey")
        try browser.open(stage.juice)
        try browser.click("#out")
        check("signed out of both, and back at the app", try browser.arrives(at: stage.juice + "/"))
        // No address is typed: the browser offers the passkey in its place.
        try browser.open(stage.juice + "/sign-in")
        check("one click is left", try browser.shows(".lead", "You have used it before."))
        try browser.click("[value=continue]")
        check("she is back at the app", try browser.arrives(at: stage.juice + "/"))
        check("the address is the same", try browser.text("#email") == address)
        check("the token says that it was a passkey", try browser.text("#acr") == "phr")
    }

    private func switchOff(_ browser: Browser) throws {
        Terminal.title("8. She turns forwarding off")
        try browser.open(stage.postern + "/me")
        try browser.click(".address-foot button")
        check("forwarding is off", try browser.shows("[role=status]", "Forwarding is off"))
        try browser.open(stage.juice)
        try browser.click("#write")
        check(
            "the app's message is refused in the transaction",
            try browser.shows("#refused", "Refused: 550 5.2.1"))
    }

    private func check(_ what: String, _ isRight: Bool) {
        if !isRight { failures += 1 }
        Terminal.say(
            isRight
                ? Terminal.styled("✓ ", .good) + what : Terminal.styled("✗ not so: \(what)", .bad))
    }
}
