// Every page of /me and every state of it in a real browser, in three languages. It fits, its
// elements are large enough, and it works by keyboard and without scripts. Pictures go to
// .build/screenshots.

import Accounts
import Foundation
import Hummingbird
import InternetMessage
import Languages
import Mail
import PersonalData
import PostfixHarness
import RelayCore
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

@Suite(
    .blocking,
    .enabled(if: PostfixHarness.Browser.driver != nil, "skipped: no Chromium (make test-tools)"))
struct PageLayoutTests {
    typealias Chromium = PostfixHarness.Browser

    @Test func page_operatorsColour_hasNoLayoutFindings() async throws {
        for (name, text) in [("purple", "#7a1fa2"), ("navy", "#00004d"), ("red", "#b00020")] {
            let looks = PageLooks(colours: Colour(text).flatMap(AccentColours.init), logo: nil)
            try await visit(looks) { fixture, url, browser in
                try Self.signIn(browser, fixture, url)
                for (path, page) in [
                    ("/me", "addresses"), ("/me/addresses/1", "address"), ("/me/data", "data"),
                ] {
                    try browser.open(url + path)
                    try Self.look(browser, "\(name)-\(page)", "en")
                }
            }
        }
    }

    /// The page on a port of this machine, with a browser. The steps wait for the browser, on their
    /// own thread.
    func visit(
        _ looks: PageLooks = .standard, requiredLevel: SignInLevel = .any, recoveryDays: Int = 0,
        _ steps: @escaping @Sendable (PortalFixture, String, Chromium) throws -> Void
    ) async throws {
        let port = Int(try FreePort.next())
        let url = "http://localhost:\(port)"
        try await PortalFixture.with(
            url: url, requiredLevel: requiredLevel, recoveryDays: recoveryDays, looks: looks
        ) { fixture in
            try await fixture.serving(port: port) {
                try await onThread {
                    let browser = try Chromium()
                    defer { browser.quit() }
                    try steps(fixture, url, browser)
                }
            }
        }
    }

    static func look(_ browser: Chromium, _ name: String, _ language: String) throws {
        let findings = try PageLook(browser).findings("me-\(name)", language)
        #expect(findings == [], "\(findings.joined(separator: "\n"))")
    }

    /// By code, like a person.
    static func signIn(_ browser: Chromium, _ fixture: PortalFixture, _ url: String) throws {
        try browser.open("\(url)/me/sign-in")
        try browser.type("anna@home.example", into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        _ = try browser.shows("#code", "")
        try browser.type(fixture.code("anna@home.example"), into: "#code")
        try browser.click("form[action='/me/sent'] button")
        _ = try browser.shows(".sign-out", "")
    }

    /// Addresses in every state, with text in each place.
    private static func fill(_ fixture: PortalFixture) throws {
        let (store, change) = (fixture.store, PortalFixture.change)
        let today = Day.number(fixture.now)
        try store.counters.add([
            DailyCounter(accountNumber: 1, day: today, kind: .forwarded, count: 1_234),
            DailyCounter(accountNumber: 1, day: today - 40, kind: .replied, count: 7),
        ])
        try store.add(
            refusals: [
                ("spam.example", RefusalReply.unauthorizedSender),
                ("juice.example", .forwardingOff),
            ].map {
                RefusedForward(
                    at: fixture.now,
                    attribution: ForwardAttribution(
                        author: AddrSpec(localPart: "x", domain: $0),
                        account: try #require(AccountNumber(1)),
                        isRegistered: false),
                    reply: $1, reference: "r")
            })
        let lastMail = store.persons.lastMailBuffer()
        lastMail.add(
            ForwardAttribution(
                author: AddrSpec(localPart: "news", domain: "juice.example"),
                account: try #require(AccountNumber(1)),
                isRegistered: true), at: fixture.now)
        try lastMail.flush()
        try store.persons.block(user: "anna", account: 1, "ads@juice.example", now: fixture.now)
        try store.addresses.switchForwarding(account: 1, at: fixture.now + 9 * 86_400, change)
        try fixture.askForCheck(reasons: "REAL_USER_UNKNOWN")
        _ = try store.apps.add(
            team: "soda", clientID: "com.soda.app", group: nil, name: "Soda for Android", change)
        _ = try store.grants.authorize(
            AuthorizationRequest(
                clientID: "com.soda.app", userID: "anna", emailKind: .real, sharesName: true),
            change)
        for (number, name) in [
            "Zoo", "Bücher & Söhne GmbH, Versand und Antiquariat", "مكتبة النور", "果物屋",
        ].enumerated() {
            let team = "t\(number)"
            _ = try store.teams.add(id: team, name: name, change)
            _ = try store.apps.add(team: team, clientID: "com.\(team).app", group: nil, change)
            let issued = try store.addresses.issue(
                team: team, user: "anna", app: "com.\(team).app", change)
            let address = issued.address
            if number == 1 {
                _ = try store.addresses.setForwarding(address.address, on: false, change)
            }
            let accounts = try store.persons.accounts(
                user: "anna", numbers: [address.account.number], since: 0, now: fixture.now)
            if number == 3, let group = accounts.first?.consents.first?.group {
                _ = try store.grants.revoke(account: address.account.number, group: group, change)
            }
        }
        try store.persons.setNotes(
            user: "anna", account: 1,
            AccountNotes(name: "Saft", note: "Bestellt im Mai.\nKündigen bis Ende des Jahres."))
        _ = try store.inboxes.add(
            user: "anna", PortalFixture.inbox("a.considerably.longer.name.than.most@home.example"),
            isVerified: true,
            isReplyOnly: false, change)
    }

    /// Ten teams and more for anna.
    private static func addShops(_ fixture: PortalFixture, _ numbers: ClosedRange<Int>) throws {
        for number in numbers {
            let (team, app) = ("s\(number)", "com.s\(number)")
            _ = try fixture.store.teams.add(id: team, name: "Shop \(number)", PortalFixture.change)
            _ = try fixture.store.apps.add(
                team: team, clientID: app, group: nil, PortalFixture.change)
            _ = try fixture.store.addresses.issue(
                team: team, user: "anna", app: app, PortalFixture.change)
        }
    }

    @Test(arguments: [true, false]) func page_withOrWithoutScripts_switchesAddressAndInbox(
        _ hasScripts: Bool
    ) async throws {
        try await visit { fixture, url, browser in
            if !hasScripts { try browser.forbidScripts() }
            try Self.signIn(browser, fixture, url)
            try Self.fill(fixture)
            try Self.addShops(fixture, 10...70)
            try browser.open("\(url)/me")
            try browser.type("shop 65", into: "#search")
            try browser.click(".tools button")
            #expect(try browser.shows(".address h2", "Shop 65"))
            try browser.click("form[action$='/forwarding'] button")
            #expect(try browser.shows(".address [role=status]", "Forwarding is off"))
            #expect(
                try browser.value("return document.querySelectorAll('.address.off').length") as? Int
                    == 1)
            #expect(
                try browser.value("return document.querySelector('#search').value") as? String
                    == "shop 65")

            try browser.open("\(url)/me?search=saft")
            try browser.click(".names h2 a")
            #expect(try browser.shows("h1", "Saft"))
            try browser.click("#inbox option:last-child")
            try browser.click("form[action$='/inbox'] button")
            _ = try browser.shows("[role=status]", "")
            #expect(
                try browser.value("return document.querySelector('#inbox').selectedIndex") as? Int
                    == 2)
        }
    }

    /// A double click must not cause an error for a request that succeeded.
    @Test func form_doubleClick_isSentOnce() async throws {
        try await visit { fixture, url, browser in
            try Self.signIn(browser, fixture, url)
            try browser.open("\(url)/me/addresses/1")
            let sent = try browser.value(
                """
                let sent = 0;
                const form = document.querySelector("form[action$='/forwarding']");
                form.addEventListener("submit", (event) => { if (!event.defaultPrevented) sent += 1; event.preventDefault(); });
                for (let click = 0; click < 2; click += 1) form.querySelector("button").click();
                return sent
                """)
            #expect(sent as? Int == 1)
        }
    }

    @Test func page_keyboardOnly_findsAndChangesAddress() async throws {
        try await visit { fixture, url, browser in
            try Self.signIn(browser, fixture, url)
            try Self.fill(fixture)
            try Self.addShops(fixture, 10...40)
            /// Presses Tab until the focused element matches.
            func reach(_ selector: String) throws {
                for _ in 1...80 {
                    try browser.press(Chromium.Key.tab)
                    if try browser.value("return document.activeElement.matches(\"\(selector)\")")
                        as? Bool == true
                    {
                        return
                    }
                }
                Issue.record("no Tab reaches \(selector)")
            }
            try browser.open("\(url)/me")
            try reach("#search")
            try browser.press("shop 33" + Chromium.Key.enter)
            #expect(try browser.shows(".address h2", "Shop 33"))
            try reach("form[action$='/forwarding'] button")
            try browser.press(Chromium.Key.enter)
            #expect(try browser.shows(".address [role=status]", "Forwarding is off"))
            try reach(".names h2 a")
            try browser.press(Chromium.Key.enter)
            #expect(try browser.shows("h1", "Shop 33"))
            try reach("#own-name")
            try browser.press("Winter" + Chromium.Key.enter)
            #expect(try browser.shows("h1", "Winter"))
        }
    }

    @Test(arguments: ["en", "de", "ar"]) func page_everyStateAndLanguage_hasNoLayoutFindings(
        _ language: String
    ) async throws {
        try await visit { fixture, url, browser in
            try browser.accept(language: language)
            func look(_ name: String) throws {
                try Self.look(browser, name, language)
                // A phone shows one form at a time.
                try browser.resize(width: 1200, height: 900)
            }
            func open(_ path: String, _ name: String) throws {
                try browser.open(url + path)
                try look(name)
            }
            try open("/me/sign-in", "door")
            try open("/me/sign-in/" + String(repeating: "a", count: 32), "dead-link")
            try Self.signIn(browser, fixture, url)
            try open("/me", "addresses-one")
            try Self.fill(fixture)
            try open("/me", "addresses")
            try open("/me/addresses/1", "address")
            try browser.type("x@soda.example", into: "#correspondent")
            try browser.click("form[action$='/write'] button")
            _ = try browser.shows("#problem", "")
            try look("address-problem")
            try browser.type("spam.example", into: "#sender")
            try browser.click("form[action$='/block'] button")
            _ = try browser.shows("#sender-problem", "")
            try look("address-block-problem")
            try browser.open("\(url)/me/addresses/1")
            try browser.type("help@juice.example", into: "#correspondent")
            try browser.click("form[action$='/write'] button")
            _ = try browser.shows(".result", "")
            try look("address-written")
            try open("/me/addresses/1/apps/1", "stop")
            try open("/me/addresses/1/replace", "replace")
            try browser.open("\(url)/me/addresses/1")
            try browser.click("form[action$='/forwarding'] button")
            _ = try browser.shows("[role=status]", "")
            try look("address-off")
            try open("/me/inboxes", "inboxes")
            try browser.type("new@home.example", into: "#email")
            try browser.click("#add button")
            _ = try browser.shows("[role=status]", "")
            try look("inboxes-under-way")
            try browser.type("000000", into: "input.code")
            try browser.click(".code-form button")
            _ = try browser.shows("#problem", "")
            try look("inboxes-wrong-code")
            try open("/me/security", "security")
            try open("/me/data", "data")
            try open("/me/data/read", "data-read")
            _ = try browser.value(
                "document.querySelectorAll('details').forEach(e => e.open = true); return 1")
            try look("data-read-open")
            try open("/me/delete", "delete")
            try fixture.store.users.planDeletion(
                "anna", at: fixture.now + 7 * 86_400, PortalFixture.change)
            try open("/me/data", "data-ending")
            try browser.click(".ending button")
            _ = try browser.shows("[role=status]", "")
            try open("/me/nothing", "not-found")
            try Self.addShops(fixture, 10...70)
            try open("/me?search=shop&page=2", "addresses-many")
            try open("/me?search=nothing+like+that", "addresses-none")
            let complaints = try browser.complaints()
            #expect(
                complaints.filter {
                    !$0.contains("404") && !$0.contains("410") && !$0.contains("422")
                } == [])
            #expect(
                try browser.hostsAsked() == ["localhost:\(url.split(separator: ":").last ?? "")"])
        }
    }
}

extension PageLayoutTests {
    @Test func referencePicture_styleMissing_reportsDifference() async throws {
        try await visit { fixture, url, browser in
            try browser.open("\(url)/me/sign-in")
            let reference = ReferencePicture(browser, "me-door-en-1200-light")
            func finding() throws -> String? {
                try reference.finding(try browser.screenshot(width: 1200, dark: false))
            }
            #expect(try finding() == nil)
            #expect(try reference.finding(try browser.screenshot(width: 1200, dark: true)) != nil)
            _ = try browser.value("document.querySelector('link[rel=stylesheet]').remove()")
            #expect(try finding() != nil)
        }
    }

    /// The display of our messages in mail programs, which is the same page in most of them.
    @Test(arguments: ["en", "de", "ar"]) func notice_everyKindAndLanguage_hasNoLayoutFindings(
        _ language: String
    ) async throws {
        let languages = try Languages.builtIn()
        let templates = try NoticeTemplates.standard(languages)
        var values = NoticeValues(
            service: "Fig & Co", relayDomain: "relay.example", code: "012 345",
            link: "https://fig.example/me/confirm/" + String(repeating: "a", count: 32),
            page: "https://fig.example/me",
            lifetime: "24 hours")
        let words = languages.best([language], accepted: nil)
        (values.day, values.reasons) = (PortalText(words).date(PortalFixture.start), ["A", "B"])
        try await visit { [values] fixture, url, browser in
            for kind in NoticeKind.allCases {
                let html = templates.render(kind, values, in: words).html
                try browser.open("data:text/html;base64,\(Data(html.utf8).base64EncodedString())")
                let findings = try PageLook(browser).findings("mail-\(kind.rawValue)", language)
                #expect(findings == [], "\(findings.joined(separator: "\n"))")
            }
        }
    }
}

extension PortalFixture {
    /// Serves the page on a port of loopback while `body` runs.
    func serving(port: Int, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let responder = try #require(responder)
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (stream, running) = AsyncStream<Void>.makeStream()
            let application = Application(
                responder: responder,
                configuration: .init(address: .hostname("127.0.0.1", port: port)),
                onServerRunning: { _ in running.finish() }, logger: log.logger)
            group.addTask { try await application.run() }
            for await _ in stream {}
            try await body()
            group.cancelAll()
        }
    }
}
