// Protection from others: tokens of forms, origins, header fields, and separation of users.

import Accounts
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct ProtectionTests {
    /// Every path for signed-in users, for account, group and inbox 1.
    private func paths(_ fixture: PortalFixture, _ method: HTTPRequest.Method) -> [String] {
        fixture.routes.filter { $0.method == method && $0.access == .user }.map {
            $0.path.replacing("{token}", with: String(repeating: "a", count: 32)).replacing(
                /{[a-z]+}/, with: "1")
        }
    }

    @Test func form_missingOrForeignCSRFToken_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let (anna, bob) = (Browser(fixture), Browser(fixture))
            try await anna.signIn("anna")
            try await bob.signIn("bob")
            let foreign = try #require(bob.page.first(/name="csrf" value="([a-z2-7]+)"/))
            let paths = paths(fixture, .post)
            #expect(paths.count >= 11)
            // A user who is signed in already continues from an old form of the sign-in.
            for path in paths + ["/me/sent", "/me/passkey"] {
                for fields in [
                    [:], ["csrf": ""], ["csrf": foreign],
                    ["csrf": String(repeating: "a", count: 32)],
                ] {
                    let answer = try await anna.submit(
                        path, fields.merging(["state": "off", "everywhere": "yes"]) { $1 },
                        token: false)
                    #expect(
                        paths.contains(path) ? answer.status == 403 : answer.location == "/me",
                        "\(path)")
                }
            }
            #expect(try await anna.get("/me").status == 200)
            #expect(
                try fixture.store.addresses.addresses(user: "anna").allSatisfy(\.isForwardingOn))
        }
    }

    /// A sibling of the host sets a cookie whose name begins with a space that only some programs
    /// remove: it must not replace the session.
    @Test(arguments: ["\u{A0}", "\u{2000}", "\u{85}"])
    func sessionCookie_afterNonASCIISpace_isIgnored(_ space: String) async throws {
        try await PortalFixture.with { fixture in
            let thief = Browser(fixture)
            try await thief.signIn("bob")
            let session = try #require(thief.cookies["__Host-postern-session"])
            let victim = try await fixture.ask(
                .get, "/me", headers: [.cookie: "\(space)__Host-postern-session=\(session)"],
                body: nil)
            #expect(victim.location == "/me/sign-in")
            let own = try await fixture.ask(
                .get, "/me", headers: [.cookie: "x=1; __Host-postern-session=\(session)"], body: nil
            )
            #expect(own.status == 200)
        }
    }

    @Test(arguments: [
        ["Origin": "https://evil.example"], ["Origin": "http://relay.example"],
        ["Origin": "https://relay.example.evil.example"],
        ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
        ["Origin": "null", "Sec-Fetch-Site": "cross-site"],
    ])
    func form_foreignOrigin_isRefused(_ headers: [String: String]) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            #expect(
                try await anna.submit(
                    "/me/addresses/1/forwarding", ["state": "off"], headers: headers
                ).status == 403)
            #expect(
                try fixture.store.addresses.addresses(user: "anna").allSatisfy(\.isForwardingOn))
        }
    }

    /// Under `Referrer-Policy: no-referrer` browsers send `Origin: null` with our own forms, which
    /// must be accepted.
    @Test func form_nullOriginFromSameOrigin_isAccepted() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let headers = ["Origin": "null", "Sec-Fetch-Site": "same-origin"]
            #expect(
                try await anna.submit(
                    "/me/addresses/1/forwarding", ["state": "off"], headers: headers
                ).status == 303)
        }
    }

    @Test func unknownPath_browserOrProgram_getsPageOrProblem() async throws {
        try await PortalFixture.with { fixture in
            let browser: HTTPFields = [.accept: "text/html,application/xhtml+xml,*/*;q=0.8"]
            for (path, method, status, isPage) in [
                ("/nothing", HTTPRequest.Method.get, 404, true), ("/me/nothing", .get, 404, true),
                ("/me/sign-out", .get, 405, true), ("/me", .put, 405, true),
                ("/v1/nothing", .get, 404, false),
                ("/auth/nothing", .get, 404, false),
            ] {
                let answer = try await fixture.ask(method, path, headers: browser, body: nil)
                #expect(answer.status == status, "\(path)")
                #expect(
                    answer.header("Content-Type")
                        == (isPage ? "text/html; charset=utf-8" : "application/problem+json"),
                    "\(path)"
                )
                #expect(
                    isPage == answer.text.contains("</html>")
                        && isPage == !answer.header("Content-Security-Policy").isEmpty)
                #expect((status == 405) == !answer.header("Allow").isEmpty, "\(path)")
            }
            // Programs name the media types that they accept, or nothing.
            #expect(
                try await fixture.ask(.get, "/nothing", headers: [.accept: "*/*"], body: nil)
                    .header("Content-Type")
                    == "application/problem+json")
            #expect(
                try await fixture.ask(.get, "/me/nothing", headers: [:], body: nil).header(
                    "Content-Type"
                ).hasPrefix("text/html"))
        }
    }

    @Test func page_notSignedIn_redirectsToSignIn() async throws {
        try await PortalFixture.with { fixture in
            let stranger = Browser(fixture)
            for path in paths(fixture, .post) {
                let answer = try await stranger.submit(path, token: false)
                #expect(answer.location == "/me/sign-in", "\(path)")
            }
            let pages = paths(fixture, .get)
            #expect(pages.count >= 8)
            for path in pages {
                let answer = try await stranger.get(path)
                #expect(answer.location == "/me/sign-in", "\(path)")
            }
            // The public routes are listed here, so that a page that forgets its users fails this
            // test.
            let open = fixture.routes.filter { $0.access != .user }.map {
                "\($0.method.rawValue) \($0.path)"
            }
            #expect(
                Set(open) == [
                    "GET /me/second", "POST /me/second", "GET /me/change", "GET /me/new-factor",
                    "GET /me/authenticator", "POST /me/authenticator", "POST /me/recovery",
                    "POST /me/recovery/finish", "GET /me/recovery/{token}",
                    "POST /me/recovery/{token}", "GET /", "GET /me/style.css", "GET /me/mark.svg",
                    "GET /me/page.js",
                    "GET /me/data/schema.json",
                    "GET /me/icons/{client_id}", "GET /.well-known/passkey-endpoints",
                    "GET /me/sign-in", "POST /me/sign-in",
                    "GET /me/sign-in/{token}", "POST /me/sign-in/{token}", "GET /me/sent",
                    "POST /me/sent",
                    "POST /me/passkey", "GET /me/confirm/{token}", "POST /me/confirm/{token}",
                    "GET /me/goodbye", "GET /me/offer",
                    "POST /me/language",
                ])
        }
    }

    /// Data of another user is not found under its number.
    @Test func page_ofAnotherUser_isNotFound() async throws {
        try await PortalFixture.with { fixture in
            // Numbers are each user's own: bob does not have this one.
            let second = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("anna@work.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change
            )
            #expect(second.number == 2)
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            for path in [
                "/me/addresses/1", "/me/addresses/1/apps/1", "/me/addresses/99", "/me/addresses/x",
                "/me/addresses/-1",
            ] {
                #expect(try await bob.get(path).status == 404, "\(path)")
                #expect(!bob.page.text.contains("relay.example<"))
            }
            for (path, fields) in [
                ("/me/addresses/1/forwarding", ["state": "off"]),
                ("/me/addresses/1/write", ["correspondent": "a@juice.example"]),
                ("/me/addresses/1/apps/1", [:]), ("/me/inboxes/2/send", [:]),
                ("/me/inboxes/2/use", [:]),
                ("/me/inboxes/2/remove", [:]),
                ("/me/inboxes/2/code", ["code": "123456"]),
            ] {
                try await bob.get("/me")
                #expect(try await bob.submit(path, fields).status == 404, "\(path)")
            }
            #expect(try fixture.store.inboxes.inboxes(user: "anna").count == 2)
            #expect(
                try fixture.store.addresses.addresses(user: "anna").allSatisfy {
                    $0.isForwardingOn && $0.hasLiveGrant
                })
        }
    }

    @Test func page_headers_forbidScriptsFramesAndStorage() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            var answers = [
                try await anna.get("/me/sign-in"), try await anna.get("/me/sent"),
                try await anna.get("/me/confirm/" + String(repeating: "a", count: 32)),
            ]
            try await anna.signIn("anna")
            for path in [
                "/me", "/me/addresses/1", "/me/addresses/1/apps/1", "/me/inboxes", "/me/security",
                "/me/data", "/me/delete",
                "/me/data.json", "/me/data/read",
            ] {
                answers.append(try await anna.get(path))
            }
            var scripts = 0
            for answer in answers {
                #expect(
                    answer.header("Cache-Control") == "no-store"
                        && answer.header("Referrer-Policy") == "no-referrer")
                #expect(answer.header("X-Content-Type-Options") == "nosniff")
                let policy = answer.header("Content-Security-Policy")
                for part in [
                    "default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
                    "form-action 'self'",
                ] {
                    #expect(policy.contains(part))
                }
                #expect(!policy.contains("unsafe") && !policy.contains("http"))
                // Passkeys and copying need a script: one file of ours. Four pages have it, and so
                // have pages on which a second press would use something up.
                let hasScript = answer.text.contains("<script")
                #expect(
                    hasScript == policy.contains("script-src 'self'; ")
                        && hasScript == policy.contains("trusted-types 'none'"))
                #expect(
                    answer.text.replacing(
                        /<script src="\/me\/page\.js\?v=[a-z2-7]+" defer><\/script>/, with: ""
                    ).contains(
                        "<script") == false)
                scripts += hasScript ? 1 : 0
                #expect(!answer.text.contains(" style=") && !answer.text.contains(" onclick"))
                for match in answer.text.matches(of: /(?:src|href|action)="([^"]*)"/) {
                    #expect(match.output.1.hasPrefix("/me") || match.output.1.hasPrefix("#"))
                }
            }
            #expect(scripts == 5)
        }
    }

    /// A team chose its name, and a user typed an address: both are escaped.
    @Test func page_textOfOthers_isEscaped() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            #expect(
                anna.page.text.contains("The &lt;Juice&gt; Company")
                    && !anna.page.text.contains("<Juice>"))
            try await anna.get("/me/addresses/1")
            let answer = try await anna.submit(
                "/me/addresses/1/write", ["correspondent": "\"><b>x"])
            #expect(
                answer.status == 422 && answer.text.contains("&quot;&gt;&lt;b&gt;x")
                    && !answer.text.contains("<b>"))
        }
    }

    @Test func log_signInAndNewInbox_hasNoPersonalData() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let link = try fixture.link("anna@home.example")
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes", ["email": "other@home.example"])
            fixture.queue.drain()
            #expect(fixture.log.lines.count > 5)
            for line in fixture.log.lines {
                #expect(!line.contains("home.example"))
                #expect(
                    !line.contains(link.suffix(32))
                        && !anna.cookies.values.contains(where: line.contains))
            }
        }
    }

    @Test(arguments: ["a=%FF", "a=%zz", "a=1&a=2", "a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9&j=1&k=2"])
    func form_malformedOrTooLarge_isRefused(_ body: String) async throws {
        try await PortalFixture.with { fixture in
            let answer = try await fixture.ask(
                .post, "/me/sign-in", headers: [.contentType: "application/x-www-form-urlencoded"],
                body: body)
            #expect(answer.status == 400 && answer.text.contains("<h1>"))
            #expect(
                try await fixture.ask(
                    .post, "/me/sign-in", headers: [.contentType: "text/plain"], body: "a=1"
                ).status == 415)
            let large = String(repeating: "a", count: PortalPage.formLimit + 1)
            #expect(
                try await fixture.ask(
                    .post, "/me/sign-in",
                    headers: [.contentType: "application/x-www-form-urlencoded"], body: large
                )
                .status == 413)
        }
    }

    @Test func page_noPublicURL_hasNoRoutes() throws {
        let fixture = try PortalFixture(url: nil)
        defer { fixture.stop() }
        #expect(fixture.routes.isEmpty)
    }
}
