// Verified inboxes and the user's own page, with a real Postfix and a real browser.

import Foundation
import InternetMessage
import MailTesting
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

/// A relay with a Postfix that accepts Postern's own mail, and a user's.
func home(
    host: String = "127.0.0.1", _ change: (inout RelayFixture.Options) -> Void = { _ in }
) throws -> (fixture: RelayFixture, url: String) {
    let url = "http://\(host):\(try FreePort.next())"
    let options = RelayFixtures.options { options in
        options.trustsLoopback = true
        options.settings["http.listen"] = url.replacing("http://\(host)", with: "127.0.0.1")
        options.settings["http.public_url"] = url
        change(&options)
    }
    let fixture = try RelayFixture(options)
    try fixture.addTeam("juice", name: "The Juice Company", source: RelayFixtures.team)
    return (fixture, url)
}

@Suite(.blocking, needsPostfix) struct RelayVerificationTests {
    private func text(_ message: SinkMessage) -> String {
        let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
        return String(decoding: QuotedPrintable.decode(Array(part.utf8)[...]).bytes, as: UTF8.self)
    }

    @Test func inbox_replyToItsMessage_confirmsNothingAndItsCodeDoes() throws {
        let (fixture, _) = try home()
        defer { fixture.stop() }
        try fixture.run(["user", "add", "anna", "--inbox", "anna@home.example"])
        // The command warns that no inbox is verified.
        let address = String(
            try #require(
                try fixture.address("juice", "anna").split(whereSeparator: \.isNewline).first {
                    $0.contains("@relay.example")
                }))
        let early = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(early.data.map { "\($0)" }?.hasPrefix("451 4.2.1") == true, "\(early)")

        try fixture.run(["inbox", "verify", "anna", "1"] + fixture.settings)
        let message = try fixture.arrival(for: "anna@home.example")
        #expect(
            message.value("Auto-Submitted") == "auto-generated"
                && message.value("DKIM-Signature")?.contains("d=relay.example") == true)
        let answerTo = message.address("Reply-To")
        #expect(answerTo.hasSuffix("@relay.example") && message.mailFrom == "<\(answerTo)>")

        // A vacation note, a stranger, and a person who cannot prove to be anna confirm nothing.
        let note =
            "From: anna@home.example\nTo: \(answerTo)\nAuto-Submitted: auto-replied\n\nAway\n"
        #expect(try fixture.send(from: "", to: [answerTo], note).data?.code == 250)
        let stranger = try fixture.send(
            from: "bob@home.example", to: [answerTo],
            "From: bob@home.example\nTo: \(answerTo)\n\nyes\n")
        #expect(stranger.data.map { "\($0)" }?.hasPrefix("550 5.7.26") == true, "\(stranger)")
        let forged = try fixture.send(
            from: "x@nowhere.example", to: [answerTo],
            "From: anna@home.example\nTo: \(answerTo)\n\nyes\n")
        #expect(forged.data.map { "\($0)" }?.hasPrefix("550 5.7.26") == true, "\(forged)")
        #expect(try fixture.run(["inbox", "list", "anna"]).contains("unverified"))

        // Anna herself gets a message once that no one reads replies, and then a refusal. The code
        // of the message confirms.
        let reply =
            "From: Anna <anna@home.example>\nTo: \(answerTo)\nMessage-ID: <yes@home.example>\nSubject: Re: your code\n\nit is me\n"
        #expect(
            try fixture.send(from: "anna@home.example", to: [answerTo], reply).data?.code == 250)
        let notice = try fixture.arrival(for: "anna@home.example", number: 2)
        #expect(notice.mailFrom == "<>" && notice.value("Auto-Submitted") == "auto-replied")
        #expect(
            notice.value("In-Reply-To") == "<yes@home.example>"
                && notice.text.contains("/me/inboxes"))
        #expect(
            notice.value("DKIM-Signature")?.contains("d=relay.example") == true
                && !notice.text.contains("it is me"))
        let again = try fixture.send(from: "anna@home.example", to: [answerTo], reply)
        #expect(again.data.map { "\($0)" }?.hasPrefix("550 5.7.1 ") == true, "\(again)")
        #expect(try fixture.run(["inbox", "list", "anna"]).contains("unverified"))
        let code = try #require(text(message).firstMatch(of: /[0-9]{3} [0-9]{3}/)).output
        try fixture.run(["inbox", "confirm", "anna", "1", "--code", String(code)])
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
        #expect(
            try fixture.arrival(for: "anna@home.example", number: 3).address("From").hasSuffix(
                "@relay.example"))
        // The reply was not relayed, and no log contains the inbox.
        try fixture.postfix.waitUntilDone()
        #expect(fixture.sink.messages.count == 3)
        #expect(try !fixture.process.output.contains("home.example"))
    }

    @Test(
        .enabled(
            if: DKIMVerifiers.python != nil && DKIMVerifiers.hasMailDKIM,
            "skipped: no dkimpy (make test-tools) or no Mail::DKIM")
    )
    func verificationMessage_sent_hasValidDKIMSignature() throws {
        let (fixture, _) = try home()
        defer { fixture.stop() }
        try fixture.run(["user", "add", "anna", "--inbox", "anna@home.example"])
        try fixture.run(["inbox", "verify", "anna", "1"] + fixture.settings)
        let message = try fixture.arrival(for: "anna@home.example")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-notice-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(message.data).write(to: folder.appendingPathComponent("1.eml"))
        struct Record: Decodable {
            let name: String
            let text: String
        }
        let records = try JSONDecoder().decode(
            [Record].self, from: Data(try fixture.run(["keys", "dkim", "publish", "--json"]).utf8))
        try Data(records.map { "\($0.name)\t\($0.text)\n" }.joined().utf8).write(
            to: folder.appendingPathComponent("dns.tsv"))
        let python = try #require(DKIMVerifiers.python)
        #expect(
            try DKIMVerifiers.dkimpy(folder, python: python).map { $0.dropFirst().first } == [
                "pass"
            ])
        #expect(try DKIMVerifiers.mailDKIM(folder).map { $0.dropFirst().first } == ["pass"])
    }
}

@Suite(.blocking, needsPostfix, Browser.isThere) struct RelayPageTests {
    private func link(_ message: SinkMessage) throws -> String {
        let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
        let text = String(
            decoding: QuotedPrintable.decode(Array(part.utf8)[...]).bytes, as: UTF8.self)
        return String(
            try #require(text.firstMatch(of: /http:\/\/[0-9.:]+\/me\/[a-z-]+\/[a-z2-7]{32}/)).output
        )
    }

    /// Saves a picture if POSTERN_SCREENSHOTS names a folder.
    private func keep(_ data: Data, _ name: String) throws {
        #expect(data.count > 5000)
        guard let folder = ProcessInfo.processInfo.environment["POSTERN_SCREENSHOTS"] else {
            return
        }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent(name + ".png"))
    }

    @Test func page_forwardingSwitched_changesWhatIsDelivered() throws {
        let (fixture, url) = try home()
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let address = try fixture.address("juice", "anna")
        let browser = try Browser()
        defer { browser.quit() }
        // Everything works without a script.
        try browser.forbidScripts()

        try browser.open(url + "/me")
        #expect(try browser.arrives(at: url + "/me/sign-in"))
        try browser.type("anna@home.example", into: "#email")
        try browser.click("main button")
        #expect(try browser.shows("h1", "Check your inbox"))
        try browser.open(try link(try fixture.arrival(for: "anna@home.example")))
        try browser.click("main button")
        #expect(try browser.arrives(at: url + "/me") && browser.shows("h1", "Your addresses"))
        #expect(
            try browser.shows(".mail code", address) && browser.shows(".state", "Forwarding on"))

        try browser.click(".address-foot button")
        #expect(try browser.shows(".state", "Forwarding off"))
        #expect(try browser.shows(".address [role=status]", "Forwarding is off"))
        let refused = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(refused.data.map { "\($0)" }?.hasPrefix("550 5.2.1") == true, "\(refused)")

        try browser.click(".address-foot button")
        #expect(try browser.shows(".state", "Forwarding on"))
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
        #expect(
            try fixture.arrival(for: "anna@home.example", number: 2).address("From").hasSuffix(
                "@relay.example"))
        #expect(try browser.shows(".address-foot .quiet", "1 message to you", at: url + "/me"))

        // One address of the team is blocked and the others pass; the page lists the refused mail.
        try browser.open(url + "/me/addresses/1")
        try browser.type("news@juice.example", into: "#sender")
        try browser.click("form[action$='/block'] button")
        #expect(try browser.shows("[role=status]", "Mail from there is refused from now on."))
        let news = RelayFixtures.message(to: address)
        let bill = news.replacingOccurrences(of: "From: news@", with: "From: billing@")
        #expect(bill != news)
        let blocked = try fixture.send(from: "bounce@juice.example", to: [address], news)
        #expect(
            blocked.data.map { "\($0)" }?.hasPrefix("550 5.7.1 The owner of this address") == true,
            "\(blocked)")
        #expect(
            try fixture.send(from: "bounce@juice.example", to: [address], bill).data?.code == 250)
        #expect(try browser.shows("table bdi", "juice.example", at: url + "/me/addresses/1"))
        try browser.click("form[action$='/unblock'] button")
        #expect(try browser.shows("[role=status]", "Mail from there is forwarded again."))
        #expect(
            try fixture.send(from: "bounce@juice.example", to: [address], news).data?.code == 250)

        // To write first: the address on the page leads to the team, without the inbox.
        try browser.open(url + "/me/addresses/1")
        try browser.type("billing@juice.example", into: "#correspondent")
        try browser.click("form[action$='/write'] button")
        #expect(try browser.shows(".result code", "billing=juice.example."))
        let reverse = try browser.text(".result code")
        let letter =
            "From: Anna <anna@home.example>\nTo: \(reverse)\nSubject: A question\n\nHello\n"
        #expect(
            try fixture.send(from: "anna@home.example", to: [reverse], letter).data?.code == 250)
        let arrived = try fixture.arrival(for: "billing@juice.example")
        #expect(arrived.address("From") == address && !arrived.text.contains("home.example"))

        // After the old token key was removed, without a restart, the page's addresses are valid.
        // So are the addresses that receive answers to Postern's own messages.
        try fixture.run(["keys", "file", "rotate", "token"])
        let start = try fixture.process.lines.count
        try fixture.run(["keys", "file", "retire", "token", "a", "--yes"])
        try fixture.process.waitForLine(containing: "keys changed", from: start)
        #expect(
            try fixture.send(from: "anna@home.example", to: [reverse], letter).data == nil,
            "what the old key made has ended")
        try browser.open(url + "/me/addresses/1")
        try browser.type("billing@juice.example", into: "#correspondent")
        try browser.click("form[action$='/write'] button")
        #expect(try browser.shows(".result code", "billing=juice.example."))
        let new = try browser.text(".result code")
        #expect(new != reverse)
        #expect(
            try fixture.send(
                from: "anna@home.example", to: [new],
                letter.replacingOccurrences(of: reverse, with: new)
            ).data?.code
                == 250)
        try browser.open(url + "/me/inboxes")
        try browser.type("second@home.example", into: "#email")
        try browser.click("#add button")
        let answerTo = try fixture.arrival(for: "second@home.example").address("Reply-To")
        let yes = "From: second@home.example\nTo: \(answerTo)\nSubject: Re: your code\n\nyes\n"
        #expect(
            try fixture.send(from: "second@home.example", to: [answerTo], yes).data?.code == 250)
        #expect(
            try fixture.arrival(for: "second@home.example", number: 2).value("Auto-Submitted")
                == "auto-replied")

        // The browser contacted no other host, and reported no problems.
        #expect(try browser.hostsAsked() == [String(url.dropFirst("http://".count))])
        #expect(try browser.complaints() == [])
        #expect(try !fixture.process.output.contains("home.example"))
    }

    @Test func page_everyWidth_hasNoOverflow() throws {
        let (fixture, url) = try home()
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        try fixture.addTeam(
            "long",
            name:
                "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
            source: "shop.example")
        _ = try fixture.address("juice", "anna")
        _ = try fixture.address("long", "anna")
        try fixture.run(
            ["inbox", "add", "anna", "a.considerably.longer.name.than.most@home.example"]
                + fixture.settings)
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(url + "/me")
        try keep(try browser.screenshot(width: 1000, dark: false), "sign-in")
        try browser.type("anna@home.example", into: "#email")
        try browser.click("main button")
        try browser.open(try link(try fixture.arrival(for: "anna@home.example")))
        try browser.click("main button")
        #expect(try browser.arrives(at: url + "/me"))
        for (name, path) in [
            ("addresses", "/me"), ("address", "/me/addresses/1"), ("inboxes", "/me/inboxes"),
            ("data", "/me/data"),
            ("delete", "/me/delete"),
        ] {
            try browser.open(url + path)
            for (variant, width, dark) in [
                ("light", 1000, false), ("dark", 1000, true), ("phone", 390, false),
                ("small", 320, true),
            ] {
                try keep(try browser.screenshot(width: width, dark: dark), "\(name)-\(variant)")
                let overflow =
                    try browser.value(
                        "return document.documentElement.scrollWidth - window.innerWidth") as? Int
                #expect(
                    overflow.map { $0 <= 0 } == true,
                    "\(name) at \(width): \(overflow ?? -1) too wide")
                let ground =
                    try browser.value("return getComputedStyle(document.body).backgroundColor")
                    as? String
                #expect(
                    ground == (dark ? "rgb(18, 23, 28)" : "rgb(247, 246, 242)"),
                    "\(name)-\(variant)")
            }
            // Touch needs room: 44 CSS pixels for each control (except links in running text).
            try browser.resize(width: 390, height: 800)
            let small = try browser.value(
                "return [...document.querySelectorAll('button, .button, nav a, .brand')].filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 43.5).map(e => e.textContent)"
            )
            #expect((small as? [Any])?.isEmpty == true, "\(name): \(small)")
        }
    }

    /// On a phone, each screen of the page has one task, and not every form in one column.
    @Test func addressPage_onAPhone_isOneTaskAScreen() throws {
        let (fixture, url) = try home()
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        _ = try fixture.address("juice", "anna")
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(url + "/me")
        try browser.type("anna@home.example", into: "#email")
        try browser.click("main button")
        _ = try browser.shows("h1", "Check your inbox")
        try browser.open(try link(try fixture.arrival(for: "anna@home.example")))
        try browser.click("main button")
        #expect(try browser.arrives(at: url + "/me"))
        func shown() throws -> String? {
            try browser.value(
                "return [...document.querySelectorAll('main section')].filter(part => getComputedStyle(part).display !== 'none')"
                    + ".map(part => part.getAttribute('aria-labelledby')).join(' ')") as? String
        }
        try browser.open(url + "/me/addresses/1")
        #expect(try shown() == "forwarding own write apps traffic refused block")
        try browser.resize(width: 390, height: 800)
        #expect(try shown() == "forwarding")
        #expect(try PageLook(browser).findings("me-address-phone", "en") == [])
        try browser.resize(width: 390, height: 800)
        try browser.click(".tasks a[href='#block']")
        #expect(try shown() == "block")
        try browser.type("news@juice.example", into: "#sender")
        try browser.click("form[action$='/block'] button")
        // The result is shown at any position.
        #expect(try browser.shows("[role=status]", "Mail from there is refused from now on."))
        #expect(try shown() == "forwarding block")
        try browser.click(".tasks a[href='#own']")
        #expect(try shown() == "own")
        try browser.click(".task-back a")
        #expect(try shown() == "forwarding block")
    }

    @Test func page_keyboardOnly_switchesForwarding() throws {
        let (fixture, url) = try home()
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        _ = try fixture.address("juice", "anna")
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(url + "/me")
        // Typing works at once.
        try browser.press("anna@home.example" + Browser.Key.enter)
        #expect(try browser.shows("h1", "Check your inbox"))
        try browser.open(try link(try fixture.arrival(for: "anna@home.example")))
        try browser.press(Browser.Key.tab + Browser.Key.enter + Browser.Key.tab + Browser.Key.enter)
        #expect(try browser.shows("h1", "Your addresses"))
        // Skip the head, then inbox, team, copy, settings, button; the focus is visible.
        try browser.press(Browser.Key.tab)
        #expect(try browser.focusedText == "Skip to content")
        try browser.press(Browser.Key.enter + String(repeating: Browser.Key.tab, count: 5))
        #expect(try browser.focusedText.hasPrefix("Turn off"))
        let outline = try browser.value(
            "return getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
        )
        #expect(outline as? String == "solid3px")
        try browser.press(Browser.Key.enter)
        #expect(try browser.shows(".state", "Forwarding off"))
    }
}
