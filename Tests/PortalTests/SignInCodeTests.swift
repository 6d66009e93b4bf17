// Sign-in codes: entered in the browser that requested them, few tries, and one answer for all.

import Accounts
import Foundation
import InternetMessage
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct SignInCodeTests {
    private func asks(
        _ fixture: PortalFixture, for inbox: String = "anna@home.example"
    ) async throws -> Browser {
        let visitor = Browser(fixture)
        try await visitor.get("/me/sign-in")
        try await visitor.submit("/me/sign-in", ["email": inbox])
        _ = fixture.mailCount(inbox)
        try await visitor.get("/me/sent")
        return visitor
    }

    /// Another code of six digits, a different one for each number: the same code within ten
    /// seconds is a second press, and does not count as a try.
    private func wrong(_ code: String, _ number: Int = 0) -> String {
        let wrong = "00\(number % 10) 456"
        return code == wrong ? "99\(number % 10) 321" : wrong
    }

    @Test func code_inItsBrowser_signsInOnce() async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let code = try fixture.code("anna@home.example")
            let thief = try await asks(fixture, for: "bob@home.example")
            #expect(try await thief.submit("/me/sent", ["code": code]).status == 422)
            let browser = anna.cookies["__Host-postern-browser"]
            #expect(
                try await anna.submit(
                    "/me/sent", ["code": code.replacingOccurrences(of: " ", with: "-")]
                ).location == "/me")
            #expect(try await anna.get("/me").text.contains("Your addresses"))
            #expect(anna.cookies["__Host-postern-browser"] != browser)
            // Neither code nor link works again, even with the earlier cookie, after the time in
            // which an answer may be lost.
            fixture.now += 60
            let again = Browser(fixture)
            again.take("__Host-postern-browser", browser)
            try await again.get("/me/sent")
            #expect(try await again.submit("/me/sent", ["code": code]).status == 422)
            #expect(try await again.get("/me").location == "/me/sign-in")
        }
    }

    @Test func code_linkAlreadyUsed_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let (code, link, browser) = (
                try fixture.code("anna@home.example"), try fixture.link("anna@home.example"),
                anna.cookies["__Host-postern-browser"]
            )
            try await anna.get(link)
            #expect(try await anna.submit(link).location == "/me")
            let again = Browser(fixture)
            again.take("__Host-postern-browser", browser)
            try await again.get("/me/sent")
            #expect(try await again.submit("/me/sent", ["code": code]).status == 422)
        }
    }

    @Test func code_expired_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let code = try fixture.code("anna@home.example")
            fixture.now += PageLifetime.link
            #expect(try await anna.submit("/me/sent", ["code": code]).status == 422)
        }
    }

    /// Two presses: a browser without scripts shows only the second answer.
    @Test(arguments: [true, false])
    func signIn_sentTwice_opensOneSession(_ isByCode: Bool) async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let (code, link) = (
                try fixture.code("anna@home.example"), try fixture.link("anna@home.example")
            )
            let path = isByCode ? "/me/sent" : link
            var presses: [Browser] = []
            for _ in 0..<3 {
                presses.append(Browser(fixture))
                presses.last?.take("__Host-postern-browser", anna.cookies["__Host-postern-browser"])
                try await presses.last?.get(path)
            }
            var sessions: [String?] = []
            for press in presses {
                // The last one a minute later.
                if sessions.count == 2 { fixture.now += 60 }
                try await press.submit(path, isByCode ? ["code": code] : [:])
                sessions.append(press.cookies["__Host-postern-session"])
            }
            #expect(sessions[0] != nil && sessions[0] == sessions[1] && sessions[2] == nil)
            #expect(
                try fixture.store.database.value("SELECT COUNT(*) FROM page_sessions", Int64.self)
                    == 1)
        }
    }

    @Test func code_triesUsedUp_isRefusedButLinkSignsIn() async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let (code, link) = (
                try fixture.code("anna@home.example"), try fixture.link("anna@home.example")
            )
            for number in 0..<SignInCodeLimits.tries {
                #expect(
                    try await anna.submit("/me/sent", ["code": wrong(code, number)]).status == 422)
            }
            #expect(try await anna.submit("/me/sent", ["code": code]).status == 422)
            try await anna.get(link)
            #expect(try await anna.submit(link).location == "/me")
        }
    }

    /// Simultaneous tries do not exceed the limit.
    @Test func code_concurrentWrongTries_areAllCounted() async throws {
        try await PortalFixture.with { fixture in
            let anna = try await asks(fixture)
            let code = try fixture.code("anna@home.example")
            let browser = try #require(anna.cookies["__Host-postern-browser"])
            let (page, now) = (fixture.store.page, fixture.now)
            let guess = wrong(code)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<SignInCodeLimits.tries {
                    group.addTask {
                        let session = try page.signIn(
                            code: guess, browser: browser, replacing: nil, now: now)
                        #expect(session == nil)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try page.signIn(code: code, browser: browser, replacing: nil, now: now) == nil)
        }
    }

    /// Codes that were requested before must be invalid after the daily tries are used up.
    @Test func code_manyRequestedAhead_shareDailyTries() async throws {
        try await PortalFixture.with { fixture in
            var thieves: [(browser: String, code: String)] = []
            for _ in 0..<5 {
                let thief = try await asks(fixture)
                thieves.append(
                    (
                        try #require(thief.cookies["__Host-postern-browser"]),
                        try fixture.code("anna@home.example")
                    ))
            }
            let (page, now) = (fixture.store.page, fixture.now)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    let thief = thieves[number % 4]
                    let guess = wrong(thief.code)
                    group.addTask {
                        let session = try page.signIn(
                            code: guess, browser: thief.browser, replacing: nil, now: now)
                        #expect(session == nil)
                    }
                }
                try await group.waitForAll()
            }
            let tries: [Int64] = try fixture.store.database.values("SELECT tries FROM page_codes")
            #expect(
                tries.reduce(0, +) == Int64(SignInCodeLimits.triesPerDay)
                    && tries.allSatisfy { $0 <= SignInCodeLimits.tries })
            #expect(
                try page.signIn(
                    code: thieves[4].code, browser: thieves[4].browser, replacing: nil, now: now)
                    == nil)
            // Another user's codes are valid.
            let bob = try await asks(fixture, for: "bob@home.example")
            #expect(
                try await bob.submit("/me/sent", ["code": fixture.code("bob@home.example")])
                    .location == "/me")
        }
    }

    @Test func signInMessage_dailyTriesUsedUp_hasLinkOnly() async throws {
        try await PortalFixture.with { fixture in
            for _ in 0..<SignInCodeLimits.triesPerDay / SignInCodeLimits.tries {
                let thief = try await asks(fixture)
                let code = try fixture.code("anna@home.example")
                for number in 0..<SignInCodeLimits.tries {
                    try await thief.submit("/me/sent", ["code": wrong(code, number)])
                }
            }
            fixture.now += 3600
            let anna = try await asks(fixture)
            #expect(try !fixture.mail("anna@home.example").contains("enter this code"))
            let link = try fixture.link("anna@home.example")
            try await anna.get(link)
            #expect(try await anna.submit(link).location == "/me")
            // A day later, codes work again.
            fixture.now += 86_400
            let later = try await asks(fixture)
            #expect(
                try await later.submit("/me/sent", ["code": fixture.code("anna@home.example")])
                    .location == "/me")
        }
    }

    @Test(arguments: ["", "abc", "12345", "1234567", "²³¹²³¹"])
    func code_whatCannotBeOne_costsNoTry(text: String) async throws {
        try await PortalFixture.with { fixture in
            let visitor = try await asks(fixture, for: "anna@home.example")
            let answer = try await visitor.submit("/me/sent", ["code": text])
            #expect(answer.status == 422 && answer.text.contains("A code has six digits."))
            #expect(
                try fixture.store.database.value("SELECT SUM(tries) FROM page_codes", Int64.self)
                    == 0)
        }
    }

    /// Two groups of digits between Arabic words change places, unless they are one number; on the
    /// page too.
    @Test(arguments: [("ar", "\u{A0}"), ("de", " ")])
    func code_mailedInALanguage_isReadInItsOrder(_ language: String, _ between: String) async throws
    {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in", headers: ["Accept-Language": language])
            try await anna.submit(
                "/me/sign-in", ["email": "anna@home.example"],
                headers: ["Origin": PortalFixture.url, "Accept-Language": language])
            let page = try await anna.follow()
            #expect(page.text.contains(#"class="code" dir="ltr""#))
            let code = try fixture.code("anna@home.example")
            let digits = code.unicodeScalars.filter { (0x30...0x39).contains($0.value) }.map {
                String($0)
            }
            let shown = digits[..<3].joined() + between + digits[3...].joined()
            #expect(try fixture.mail("anna@home.example").contains(shown))
            let message = try #require(fixture.sink.messages(to: "<anna@home.example>").last)
            let html = try #require(
                message.text.components(separatedBy: "Content-Type: text/html").last)
            let body = html.components(separatedBy: "\r\n\r\n").dropFirst().joined(
                separator: "\r\n\r\n")
            let decoded = String(
                decoding: QuotedPrintable.decode(Array(body.utf8)[...]).bytes, as: UTF8.self)
            #expect(
                decoded.contains(#"<p class="code" dir="ltr""#) && decoded.contains(">\(shown)</p>")
            )
            // As copied from the message.
            #expect(try await anna.submit("/me/sent", ["code": shown]).location == "/me")
        }
    }

    @Test(arguments: ["１２３", "٤٥٦"]) func code_otherDigits_areTaken(sample: String) async throws {
        try await PortalFixture.with { fixture in
            let visitor = try await asks(fixture, for: "anna@home.example")
            let zero = sample == "１２３" ? 0xFF10 : 0x660 as UInt32
            let typed = try fixture.code("anna@home.example").unicodeScalars.map { scalar in
                scalar == " " ? scalar : Unicode.Scalar(zero + scalar.value - 0x30) ?? scalar
            }
            let answer = try await visitor.submit(
                "/me/sent", ["code": String(String.UnicodeScalarView(typed))])
            #expect(answer.status == 303 && answer.location == "/me")
        }
    }

    /// Known, unknown and beyond the limit of messages: the same page for each wrong code, and the
    /// same rows.
    @Test func code_knownOrUnknownInbox_isAnsweredAlike() async throws {
        try await PortalFixture.with(limits: NoticeLimits(perInbox: 1)) { fixture in
            var pages: [[String]] = []
            for inbox in ["anna@home.example", "anna@home.example", "nobody@home.example"] {
                let visitor = try await asks(fixture, for: inbox)
                var answers: [String] = []
                for number in 0...SignInCodeLimits.tries {
                    let answer = try await visitor.submit("/me/sent", ["code": "000 00\(number)"])
                    // The visitor's own input.
                    let text = answer.text.replacing(inbox, with: "")
                    answers.append(
                        "\(answer.status) \(text.replacing(/value="[a-z2-7]+"/, with: ""))")
                }
                pages.append(answers)
            }
            #expect(fixture.mailCount("anna@home.example") == 1)
            try #require(try !fixture.code("anna@home.example").hasPrefix("000 00"))
            #expect(Set(pages.flatMap(\.self)).count == 1)
            let tries: [Int64] = try fixture.store.database.values(
                "SELECT tries FROM page_codes ORDER BY id")
            #expect(tries == [5, 5, 5])
        }
    }

    /// Correct codes must not use up the small budget of wrong ones: a class behind one address
    /// signs in.
    @Test func rightCodes_ofManyBehindOneAddress_doNotCount() async throws {
        let signIn = SignInLimits(
            requestsPerNetwork: 600, wrongCodesPerNetwork: 3, wrongCodesPerHour: 1_000)
        try await PortalFixture.with(signIn: signIn) { fixture in
            for _ in 0..<5 {
                let visitor = try await asks(fixture, for: "anna@home.example")
                let code = try fixture.code("anna@home.example")
                #expect(try await visitor.submit("/me/sent", ["code": code]).location == "/me")
            }
            let visitor = try await asks(fixture, for: "anna@home.example")
            try #require(try fixture.code("anna@home.example") != "000 000")
            #expect(try await visitor.submit("/me/sent", ["code": "000 000"]).status == 422)
            let refused = try await visitor.submit("/me/sent", ["code": "000 001"])
            #expect(refused.status == 429 && refused.text.contains("Open the link in the message"))
            #expect(
                refused.text.contains("name=\"code\"") && refused.header("Retry-After") == "200")
        }
    }

    /// Many networks, each of which enters few wrong codes for many users.
    @Test func codes_whileManyWrongOnesAreEntered_needABrowserThatIsKnown() async throws {
        let signIn = SignInLimits(
            requestsPerNetwork: 600, wrongCodesPerNetwork: 300, wrongCodesPerHour: 30)
        try await PortalFixture.with(signIn: signIn, signUp: SignUpRules(.open)) { fixture in
            let home = Browser(fixture)
            try await home.signIn("anna")
            for number in 0..<15 {
                let guesser = try await asks(fixture, for: "nobody\(number)@home.example")
                for guess in ["000 000", "000 001"] {
                    try await guesser.submit("/me/sent", ["code": guess])
                }
            }
            // A correct code opens no session in a new browser, and gets the answer of a wrong one.
            let away = try await asks(fixture, for: "anna@home.example")
            let code = try fixture.code("anna@home.example")
            try #require(code != "000 000")
            let answers = [
                try await away.submit("/me/sent", ["code": "000 000"]),
                try await away.submit("/me/sent", ["code": code]),
            ].map { "\($0.status) \($0.text.replacing(/value="[a-z2-7]+"/, with: ""))" }
            #expect(
                answers[0] == answers[1] && answers[0].contains("422")
                    && answers[0].contains("Open the link in the message"))
            #expect(fixture.log.lines.contains { $0.contains("codes alone open nothing") })
            // The link of the same message opens one.
            let link = try fixture.link("anna@home.example")
            try await away.get(link)
            #expect(try await away.submit(link).location == "/me")
            // So does a code in a browser where the user signed in before, for that user only.
            home.take("__Host-postern-session", nil)
            try await home.get("/me/sign-in")
            try await home.submit("/me/sign-in", ["email": "bob@home.example"])
            try await home.follow()
            #expect(
                try await home.submit("/me/sent", ["code": try fixture.code("bob@home.example")])
                    .status == 422)
            try await home.get("/me/sign-in")
            try await home.submit("/me/sign-in", ["email": "anna@home.example"])
            try await home.follow()
            #expect(
                try await home.submit("/me/sent", ["code": try fixture.code("anna@home.example")])
                    .location == "/me")
            // A person who is not a user yet has the link too.
            let eve = try await asks(fixture, for: "eve@new.example")
            #expect(
                try await eve.submit("/me/sent", ["code": try fixture.code("eve@new.example")])
                    .status == 422)
            let first = try fixture.link("eve@new.example")
            try await eve.get(first)
            #expect(try await eve.submit(first).location == "/me")
            // An hour later a code is sufficient again.
            fixture.now += 3_900
            let later = try await asks(fixture, for: "bob@home.example")
            #expect(
                try await later.submit("/me/sent", ["code": try fixture.code("bob@home.example")])
                    .location == "/me")
        }
    }
}
