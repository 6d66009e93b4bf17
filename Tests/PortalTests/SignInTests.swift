// The sign-in: one answer for all, links that work once and in one browser, sessions that no one
// can plant.

import Accounts
import Foundation
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct SignInTests {
    @Test func link_fromTheInbox_signsIn() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            #expect(try await anna.get("/me").location == "/me/sign-in")
            try await anna.signIn("anna")
            #expect(anna.page.status == 200 && anna.page.text.contains("Your addresses"))
            try await anna.submit("/me/sign-out")
            #expect(try await anna.get("/me").location == "/me/sign-in")
        }
    }

    /// Neither the answer nor the work before it shows whether a user is known.
    @Test func signInForm_knownOrUnknownInbox_isAnsweredAlike() async throws {
        try await PortalFixture.with { fixture in
            var answers: [Response] = []
            for inbox in ["anna@home.example", "nobody@home.example"] {
                let visitor = Browser(fixture)
                try await visitor.get("/me/sign-in")
                answers.append(try await visitor.submit("/me/sign-in", ["email": inbox]))
            }
            #expect(
                Set(answers.map(\.status)) == [303] && Set(answers.map(\.location)) == ["/me/sent"])
            #expect(Set(answers.map(\.text)).count == 1)
            #expect(
                fixture.mailCount("anna@home.example") == 1
                    && fixture.mailCount("nobody@home.example") == 0)
        }
    }

    /// A message about an inbox's limit would show that the inbox is known.
    @Test func signInForm_messageLimitReached_isAnsweredAlike() async throws {
        try await PortalFixture.with(limits: NoticeLimits(perInbox: 2)) { fixture in
            for _ in 0..<4 {
                let visitor = Browser(fixture)
                try await visitor.get("/me/sign-in")
                #expect(
                    try await visitor.submit("/me/sign-in", ["email": "anna@home.example"]).location
                        == "/me/sent")
            }
            #expect(fixture.mailCount("anna@home.example") == 2)
            #expect(
                !fixture.log.lines.contains { $0.contains("anna@") || $0.contains("home.example") })
        }
    }

    @Test func link_usedOrExpired_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            let link = try fixture.link("anna@home.example")
            // Opening it, as mail programs do, uses nothing up.
            for _ in 0..<3 { #expect(try await anna.get(link).status == 200) }
            let browser = anna.cookies["__Host-postern-browser"]
            #expect(try await anna.submit(link).location == "/me")
            // A signed-in user continues; an earlier browser does not get in again.
            #expect(try await anna.get(link).location == "/me")
            anna.take("__Host-postern-browser", browser)
            anna.take("__Host-postern-session", nil)
            #expect(try await anna.get(link).status == 410)

            let late = Browser(fixture)
            try await late.get("/me/sign-in")
            try await late.submit("/me/sign-in", ["email": "anna@home.example"])
            let second = try fixture.link("anna@home.example")
            try await late.get(second)
            fixture.now += PageLifetime.link
            #expect(try await late.submit(second).status == 410)
            #expect(try await late.get("/me").location == "/me/sign-in")
        }
    }

    @Test func link_inAnotherBrowser_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            let link = try fixture.link("anna@home.example")
            let thief = Browser(fixture)
            #expect(try await thief.get(link).status == 403)
            #expect(
                thief.page.text.contains("another browser") && !thief.page.text.contains("anna"))
            #expect(try await thief.submit(link, token: false).status == 403)
            try await thief.get("/me/sign-in")
            #expect(try await thief.submit(link).status == 410)
            try await thief.get("/me")
            #expect(thief.page.location == "/me/sign-in")
            // None of these used it up.
            try await anna.get(link)
            #expect(try await anna.submit(link).location == "/me")
        }
    }

    /// A session cookie that an attacker planted before the sign-in is not the session of the user.
    @Test func session_plantedCookie_isNotSignedIn() async throws {
        try await PortalFixture.with { fixture in
            let planted = String(repeating: "a", count: 32)
            let anna = Browser(fixture)
            anna.take("__Host-postern-session", planted)
            try await anna.signIn("anna")
            #expect(anna.cookies["__Host-postern-session"] != planted)
            let thief = Browser(fixture)
            thief.take("__Host-postern-session", planted)
            #expect(try await thief.get("/me").location == "/me/sign-in")
        }
    }

    /// Signing in again ends the session that the browser had, and changes the cookie
    /// that links are bound to.
    @Test func signIn_repeated_replacesCookies() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let first = anna.cookies
            // Like another tab, which still shows the form from before the sign-in.
            anna.take("__Host-postern-session", nil)
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            let link = try fixture.link("anna@home.example")
            try await anna.get(link)
            anna.take("__Host-postern-session", first["__Host-postern-session"])
            #expect(try await anna.submit(link).location == "/me")
            // Except the cookie that marks the browser as known, which gives no access.
            for (name, value) in anna.cookies where name != "__Host-postern-known" {
                #expect(first[name] != value)
            }
            let old = Browser(fixture)
            old.take("__Host-postern-session", first["__Host-postern-session"])
            #expect(try await old.get("/me").location == "/me/sign-in")
        }
    }

    @Test func session_idleTooLong_ends() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            fixture.now += SessionLifetime.standard.idle - 1
            #expect(try await anna.get("/me").status == 200)
            fixture.now += SessionLifetime.standard.idle
            #expect(try await anna.get("/me").location == "/me/sign-in")
        }
    }

    @Test func signOut_everywhere_endsEverySession() async throws {
        try await PortalFixture.with { fixture in
            let (anna, phone) = (Browser(fixture), Browser(fixture))
            try await anna.signIn("anna")
            try await phone.signIn("anna")
            try await anna.get("/me/data")
            try await anna.submit("/me/sign-out", ["everywhere": "yes"])
            #expect(try await phone.get("/me").location == "/me/sign-in")
            let lines = try fixture.store.audit.entries().filter {
                $0.action.hasPrefix("page.sign")
            }
            #expect(lines.map(\.action) == ["page.sign-out", "page.sign-in", "page.sign-in"])
            #expect(lines.map(\.detail) == ["everywhere", "mail", "mail"])
            #expect(lines.allSatisfy { $0.actor == "user:anna" && $0.subject == "user:anna" })
        }
    }

    @Test func cookies_haveSecurityAttributes() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            let link = try fixture.link("anna@home.example")
            try await anna.get(link)
            let cookies = try await anna.submit(link).headers[values: .setCookie]
            // The session, the browser, and the mark of a known browser; the typed address is
            // deleted.
            #expect(cookies.count == 4 && cookies.filter { $0.contains("Max-Age=0") }.count == 1)
            for cookie in cookies {
                for part in ["__Host-", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"] {
                    #expect(cookie.contains(part), "\(cookie)")
                }
                #expect(!cookie.contains("Domain"))
            }
        }
        try await PortalFixture.with(url: "http://127.0.0.1:8890") { fixture in
            let cookie = try await Browser(fixture).get("/me/sign-in").headers[.setCookie] ?? ""
            #expect(cookie.hasPrefix("postern-browser=") && !cookie.contains("Secure"))
        }
    }

    @Test(arguments: [
        "", "anna", "anna@", "a b@home.example", "anna@home.example,bob@home.example",
        "anna@home.example\r\nBcc: x@y.example",
    ])
    func signInForm_invalidAddress_isRefused(_ text: String) async throws {
        try await PortalFixture.with { fixture in
            let visitor = Browser(fixture)
            try await visitor.get("/me/sign-in")
            let answer = try await visitor.submit("/me/sign-in", ["email": text])
            #expect(answer.status == 422 && answer.text.contains("not a valid email address"))
            #expect(fixture.mailCount("anna@home.example") == 0)
        }
    }

    /// One network may send ten requests at once and then one a minute, for any users; others are
    /// not delayed.
    @Test func signInForm_manyRequestsOfNetwork_areLimited() async throws {
        func answers(_ email: String) async throws -> [Int] {
            var statuses: [Int] = []
            let signIn = SignInLimits(
                requestsPerNetwork: 10, wrongCodesPerNetwork: 60, wrongCodesPerHour: 1_000)
            try await PortalFixture.with(signIn: signIn) { fixture in
                for _ in 0..<12 {
                    let visitor = Browser(fixture)
                    try await visitor.get("/me/sign-in")
                    let answer = try await visitor.submit(
                        "/me/sign-in", ["email": email],
                        headers: ["X-Forwarded-For": "203.0.113.9, 192.0.2.1"])
                    statuses.append(answer.status)
                    if answer.status == 429 {
                        #expect(answer.header("Retry-After") == "60")
                        #expect(answer.text.contains("Too many links"))
                    }
                }
                let neighbour = Browser(fixture)
                try await neighbour.get("/me/sign-in")
                // Only the last entry is the proxy's own.
                #expect(
                    try await neighbour.submit(
                        "/me/sign-in", ["email": email],
                        headers: ["X-Forwarded-For": "192.0.2.1, 203.0.113.9"]
                    ).status != 429)
            }
            return statuses
        }
        let known = try await answers("anna@home.example")
        #expect(known.filter { $0 == 429 }.count == 2)
        #expect(try await answers("nobody@home.example") == known, "who has an account is not told")
    }

    /// The whole limit at once, and again in ten minutes: by default a class of 600.
    @Test func aClass_behindOneAddress_asksWithinTenMinutes() async throws {
        #expect(SignInLimits.standard.requestsPerNetwork == 600)
        let signIn = SignInLimits(
            requestsPerNetwork: 60, wrongCodesPerNetwork: 60, wrongCodesPerHour: 1_000)
        try await PortalFixture.with(signIn: signIn) { fixture in
            let visitor = Browser(fixture)
            try await visitor.get("/me/sign-in")
            let token = try #require(visitor.page.first(/name="csrf" value="([a-z2-7]+)"/))
            var number = 0
            func ask() async throws -> Int {
                number += 1
                return try await visitor.submit(
                    "/me/sign-in", ["email": "nobody\(number)@home.example", "csrf": token],
                    token: false,
                    headers: ["X-Forwarded-For": "203.0.113.9"]
                ).status
            }
            for _ in 0..<2 {
                for _ in 0..<60 { try #require(try await ask() == 303) }
                #expect(try await ask() == 429)
                fixture.now += 600
            }
        }
    }
}
