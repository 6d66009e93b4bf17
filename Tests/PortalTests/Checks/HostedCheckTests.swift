// Checks that the page carries out for apps: each way, its result, and all misuse.

import Accounts
import Database
import Decisions
import Foundation
import HTTP
import PasskeyTesting
import SignIn
import Support
import TestSupport
import Testing

@testable import Portal

/// com.juice.app, whose decisions about anna require checks.
struct CheckFixture: SecondFactorSteps {
    static let redirect = SheetFixture.redirect
    static let inbox = "anna@home.example"
    let fixture: PortalFixture
    var store: Store { fixture.store }

    static func with(
        _ limits: NoticeLimits = NoticeLimits(perInbox: 50, perUser: 100),
        _ body: (CheckFixture) async throws -> Void
    ) async throws {
        try await PortalFixture.with(limits: limits, signUp: .closed) { fixture in
            try fixture.store.clients.addRedirect(
                team: "juice", clientID: "com.juice.app", uri: redirect, PortalFixture.change)
            try await body(CheckFixture(fixture: fixture))
        }
    }

    /// Logs a decision about a user's account, and gives the path of its link.
    /// - Parameter user: nil for an account that the page knows nothing of.
    func link(
        _ id: String, _ challenges: [HostedChallenge], user: String? = "anna",
        event: String = "sign_in", effort: Int = 1,
        mode: AuthorizationResponseMode = .query, redirect: String = redirect
    ) throws -> String {
        let grant: Int64? = try store.database.value(
            """
            SELECT g.id FROM grants g JOIN accounts a ON a.id = g.account_id JOIN users u ON u.id = a.user_id
            JOIN teams t ON t.id = a.team_id WHERE u.handle = \(user ?? "") AND t.handle = 'juice'
            """)
        let team: Int64 = try #require(
            try store.database.value("SELECT id FROM teams WHERE handle = 'juice'"))
        try store.decisions.insert([
            DecisionRecord(
                id: id, teamNumber: team, clientID: "com.juice.app", grantNumber: grant,
                claimedEvent: event, event: event, decision: "require_verification",
                challenges: challenges.map(\.rawValue), policyName: "p", policyVersion: "1",
                policyHash: "h", credentialState: "authorized", evaluatedAt: fixture.now,
                expiresAt: fixture.now + 300)
        ])
        let client = AuthorizationClient(
            clientID: "com.juice.app", redirectURIs: [redirect], isPublic: false)
        let target = try #require(
            AuthenticationRequestReader(issuer: PortalFixture.url).target(
                redirectURI: redirect, mode: mode, state: "s-\(id)", client: client))
        let handle = try store.authorizations.add(
            HostedCheck(decisionID: id, event: event, challenges: challenges, effort: effort),
            clientID: "com.juice.app", subject: try subject(user), target: target,
            now: fixture.now)
        return "/auth/begin?request=\(handle)"
    }

    func subject(_ user: String?) throws -> String? {
        try store.database.value(
            """
            SELECT a.sub FROM accounts a JOIN users u ON u.id = a.user_id JOIN teams t ON t.id = a.team_id
            WHERE u.handle = \(user ?? "") AND t.handle = 'juice'
            """)
    }

    func open(_ link: String, in browser: Browser) async throws {
        try await browser.get(link)
        try await browser.follow()
    }

    func press(
        _ browser: Browser, _ decision: String, _ fields: [String: String] = [:]
    ) async throws {
        var fields = fields
        fields["decision"] = decision
        fields["request"] = try SheetFixture.request(browser)
        try await browser.submit("/sign-in", fields)
        try await browser.follow()
    }

    func checks(_ id: String) throws -> [CheckRecord] {
        try store.decisions.decision(id, team: nil)?.checks ?? []
    }

    /// The claims of the result that the app got.
    func result(_ browser: Browser) throws -> JSONObject {
        let answer = try SheetFixture.answer(browser)
        let token = try #require(answer["check_result"], "\(answer)")
        let header = try #require(Base64URL.decode(token.split(separator: ".")[0].utf8))
        #expect(
            try StrictJSON.parseObject(header, limit: 10_000)["typ"]?.string == CheckResult.type)
        let payload = try #require(Base64URL.decode(token.split(separator: ".")[1].utf8))
        return try StrictJSON.parseObject(payload, limit: 10_000)
    }

    /// Solves the puzzles of the open page, as its script does.
    func solution(_ browser: Browser) throws -> String {
        let work = ProofOfWork(
            seed: try #require(browser.page.first(/data-seed="([A-Za-z0-9_-]+)"/)), effort: 1)
        #expect(browser.page.first(/data-target="([0-9]+)"/) == String(work.target))
        return (0..<ProofOfWork.puzzles).map { puzzle in
            String((0...).first { work.isSolution($0, of: puzzle) } ?? -1)
        }.joined(separator: ",")
    }
}

@Suite(.blocking) struct HostedCheckTests {
    @Test func code_right_passesWithASignedResult() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            let link = try checks.link("rd_code", [.emailCode], event: "sensitive_action")
            try await checks.open(link, in: browser)
            #expect(browser.page.status == 200)
            #expect(browser.page.text.contains("One more check for The &lt;Juice&gt; Company"))
            #expect(browser.page.text.contains("before a sensitive step"))
            // A team can open the link itself: nothing of the user is on the page.
            #expect(!browser.page.text.contains("home.example"))
            try await checks.press(browser, "send")
            #expect(!browser.page.text.contains("home.example"))
            let mail = try checks.fixture.mail(CheckFixture.inbox)
            #expect(mail.contains("The <Juice> Company asks for one more check."))
            #expect(mail.contains("for 10 minutes"))
            try await checks.press(
                browser, "code", ["code": try checks.fixture.code(CheckFixture.inbox)])
            let claims = try checks.result(browser)
            #expect(claims["iss"]?.string == PortalFixture.url)
            #expect(claims["aud"]?.string == "com.juice.app")
            #expect(claims["decision_id"]?.string == "rd_code")
            #expect(claims["outcome"]?.string == "passed")
            #expect(claims["challenge"]?.string == "email_code")
            #expect(claims["method"]?.string == "mailed_code")
            #expect(claims["strength"]?.string == "normal")
            #expect(claims["amr"] == .array([.string("otp")]))
            #expect(claims["acr"] == nil)
            #expect(claims["sub"] == nil, "it must not pass for an identity token")
            guard case .object(let subject)? = claims["sub_id"] else {
                Issue.record("no sub_id")
                return
            }
            #expect(try subject["sub"]?.string == checks.subject("anna"))
            #expect(try SheetFixture.answer(browser)["state"] == "s-rd_code")
            let check = try #require(try checks.checks("rd_code").first)
            #expect(check.source == .observed && check.method == .mailedCode)
            #expect(check.passedAt == checks.fixture.now)
        }
    }

    @Test func code_wrongFiveTimes_failsTheChallenge() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(
                try checks.link("rd_wrong", [.emailCode, .reauthenticate]), in: browser)
            try await checks.press(browser, "send")
            let code = try checks.fixture.code(CheckFixture.inbox)
            let right = try #require(Int(code.filter(\.isNumber)))
            for number in 1...5 {
                let wrong = String(format: "%06d", (right + number) % 1_000_000)
                try await checks.press(browser, "code", ["code": wrong])
                #expect(browser.page.status == (number < 5 ? 422 : 429))
            }
            #expect(browser.page.text.contains("Too many codes were wrong."))
            try await checks.press(browser, "code", ["code": code])
            #expect(browser.page.status == 429, "the right one comes too late")
            let check = try #require(try checks.checks("rd_wrong").first)
            #expect(check.passedAt == nil && check.failedAt != nil)
            #expect(
                try checks.store.hostedChecks.hasCode(
                    HostedCheck(decisionID: "rd_wrong", event: "", challenges: [], effort: 1)))
        }
    }

    /// A new message gives a new code, and no new tries.
    @Test func code_sentAgain_leavesTheTriesAsTheyAre() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_resent", [.emailCode]), in: browser)
            try await checks.press(browser, "send")
            let first = try checks.fixture.code(CheckFixture.inbox)
            let right = try #require(Int(first.filter(\.isNumber)))
            for number in 1...4 {
                let wrong = String(format: "%06d", (right + number) % 1_000_000)
                try await checks.press(browser, "code", ["code": wrong])
            }
            checks.fixture.now += 20
            try await checks.press(browser, "send")
            let second = try checks.fixture.code(CheckFixture.inbox)
            try #require(second != first)
            try await checks.press(browser, "code", ["code": first])
            #expect(browser.page.status == 429, "that was the fifth wrong one")
            try await checks.press(browser, "code", ["code": second])
            #expect(browser.page.status == 429)
        }
    }

    @Test func code_wrongInManyChecks_isLimitedForTheUserAndTeam() async throws {
        try await CheckFixture.with { checks in
            for number in 1...3 {
                let browser = Browser(checks.fixture)
                try await checks.open(
                    try checks.link("rd_\(number)", [.emailCode]), in: browser)
                try await checks.press(browser, "send")
                guard number < 3 else {
                    #expect(browser.page.status == 429)
                    #expect(browser.page.text.contains("Too many codes were wrong today"))
                    break
                }
                let right = try #require(
                    Int(try checks.fixture.code(CheckFixture.inbox).filter(\.isNumber)))
                for wrong in 1...5 {
                    // Limits by network are another suite's.
                    checks.fixture.now += 60
                    try await checks.press(
                        browser, "code",
                        ["code": String(format: "%06d", (right + wrong) % 1_000_000)])
                }
            }
        }
    }

    @Test func code_askedForAgainAndAgain_isMailedThreeTimes() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_send", [.emailCode]), in: browser)
            for _ in 1...5 {
                try await checks.press(browser, "send")
                checks.fixture.now += 20
            }
            #expect(browser.page.text.contains("No more codes are sent for now."))
            #expect(checks.fixture.mailCount(CheckFixture.inbox) == 3)
        }
    }

    @Test func mail_ofManyChecks_leavesThatOfSignIns() async throws {
        try await CheckFixture.with(NoticeLimits(perInbox: 2, perUser: 2)) { checks in
            for number in 1...4 {
                let browser = Browser(checks.fixture)
                try await checks.open(try checks.link("rd_\(number)", [.emailCode]), in: browser)
                try await checks.press(browser, "send")
            }
            #expect(checks.fixture.mailCount(CheckFixture.inbox) == 2)
            let other = Browser(checks.fixture)
            try await other.get("/me/sign-in")
            try await other.submit("/me/sign-in", ["email": CheckFixture.inbox])
            #expect(checks.fixture.mailCount(CheckFixture.inbox) == 3)
        }
    }

    @Test func work_solved_isALowProof() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(
                try checks.link("rd_work", [.humanCheck], user: nil, event: "sign_up"),
                in: browser)
            #expect(!browser.page.text.contains("value=\"send\""), "there is no inbox")
            try await checks.press(browser, "work", ["solution": "1,2,3"])
            #expect(browser.page.status == 422)
            let right = try checks.solution(browser)
            let work = ProofOfWork(
                seed: try #require(browser.page.first(/data-seed="([A-Za-z0-9_-]+)"/)), effort: 1)
            let last = ProofOfWork.puzzles - 1
            let wrong = try #require((0...).first { !work.isSolution($0, of: last) })
            let almost = right.split(separator: ",").dropLast().map(String.init) + ["\(wrong)"]
            try await checks.press(browser, "work", ["solution": almost.joined(separator: ",")])
            #expect(browser.page.status == 422)
            try await checks.press(browser, "work", ["solution": right])
            let claims = try checks.result(browser)
            #expect(claims["challenge"]?.string == "human_check")
            #expect(claims["strength"]?.string == "low")
            #expect(claims["amr"] == .array([.string("pow")]))
            #expect(claims["sub_id"] == nil)
            #expect(try checks.checks("rd_work").first?.method == .proofOfWork)
        }
    }

    @Test func work_ofAUser_canBeACodeInstead() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_alt", [.humanCheck]), in: browser)
            try await checks.press(browser, "send")
            try await checks.press(
                browser, "code", ["code": try checks.fixture.code(CheckFixture.inbox)])
            let claims = try checks.result(browser)
            #expect(claims["challenge"]?.string == "human_check")
            #expect(claims["method"]?.string == "mailed_code")
        }
    }

    @Test func reauthentication_byCode_needsAFreshSignInAndAButton() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await browser.signIn("anna")
            checks.fixture.now += 60
            try await checks.open(try checks.link("rd_again", [.reauthenticate]), in: browser)
            #expect(!browser.page.text.contains("value=\"confirm\""), "that sign-in is older")
            try await checks.press(browser, "confirm")
            #expect(try checks.checks("rd_again").isEmpty)
            let handle = try SheetFixture.request(browser)
            try await browser.get("/me/sign-in?request=\(handle)")
            try await browser.follow()
            try await browser.submit(
                "/me/sign-in", ["email": CheckFixture.inbox, "request": handle])
            let code = try checks.fixture.code(CheckFixture.inbox)
            try await browser.follow()
            try await browser.submit("/me/sent", ["code": code, "request": handle])
            try await browser.follow()
            #expect(browser.page.text.contains("value=\"confirm\""))
            #expect(try checks.checks("rd_again").isEmpty, "nothing passes without the button")
            try await checks.press(browser, "confirm")
            let claims = try checks.result(browser)
            #expect(claims["challenge"]?.string == "reauthenticate")
            #expect(claims["method"]?.string == "mailed_code")
        }
    }

    @Test func reauthentication_ofAUserWithAPasskey_needsThePasskey() async throws {
        try await CheckFixture.with { checks in
            let fixture = checks.fixture
            let first = Browser(fixture)
            try await first.signIn("anna")
            try await first.get("/me/security")
            let passkey = try checks.authenticator()
            try await checks.addPasskey(passkey, first)
            let browser = Browser(fixture)
            fixture.now += 60
            try await checks.open(try checks.link("rd_key", [.reauthenticate]), in: browser)
            let handle = try SheetFixture.request(browser)
            try await browser.get("/me/sign-in?request=\(handle)")
            try await browser.submit(
                "/me/sign-in", ["email": CheckFixture.inbox, "request": handle])
            let code = try fixture.code(CheckFixture.inbox)
            try await browser.follow()
            try await browser.submit("/me/sent", ["code": code, "request": handle])
            try await browser.follow()
            #expect(browser.page.text.contains("id=\"passkey-sign-in\""), "a code is not enough")
            try await checks.usePasskey(passkey, browser, ["request": handle])
            try await checks.press(browser, "confirm")
            let claims = try checks.result(browser)
            #expect(claims["acr"]?.string == "phr")
            #expect(claims["strength"]?.string == "high")
        }
    }

    @Test func reauthentication_byAnotherUser_passesNothing() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_bob", [.reauthenticate]), in: browser)
            let handle = try SheetFixture.request(browser)
            checks.fixture.now += 5
            try await browser.get("/me/sign-in?request=\(handle)")
            try await browser.submit(
                "/me/sign-in", ["email": "bob@home.example", "request": handle])
            let code = try checks.fixture.code("bob@home.example")
            try await browser.follow()
            try await browser.submit("/me/sent", ["code": code, "request": handle])
            try await browser.follow()
            #expect(browser.page.text.contains("You signed in with another account"))
            try await checks.press(browser, "confirm")
            #expect(try checks.checks("rd_bob").isEmpty)
            try await checks.press(browser, "other")
            #expect(
                browser.page.text.contains("id=\"email\""), "bob is signed out, and asked again")
        }
    }

    @Test func link_inAnotherBrowser_passesNothing() async throws {
        try await CheckFixture.with { checks in
            let link = try checks.link("rd_sent", [.emailCode])
            let (attacker, victim) = (Browser(checks.fixture), Browser(checks.fixture))
            try await checks.open(link, in: attacker)
            let handle = try SheetFixture.request(attacker)
            for path in [link, "/sign-in?request=\(handle)"] {
                try await checks.open(path, in: victim)
                #expect(victim.page.status == 403)
                #expect(victim.page.text.contains("This check belongs to another browser"))
            }
            // Neither does a form of that browser.
            for decision in ["send", "code", "work", "confirm"] {
                try await victim.get("/me/sign-in?request=\(handle)")
                try await victim.submit(
                    "/sign-in", ["decision": decision, "request": handle, "code": "123456"])
                #expect(victim.page.status == 403, "\(decision)")
            }
            #expect(checks.fixture.mailCount(CheckFixture.inbox) == 0)
        }
    }

    @Test func link_usedTwice_passesOnce() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            let link = try checks.link("rd_twice", [.humanCheck], user: nil)
            try await checks.open(link, in: browser)
            let solution = try checks.solution(browser)
            let handle = try SheetFixture.request(browser)
            try await checks.press(browser, "work", ["solution": solution])
            _ = try checks.result(browser)
            try await checks.open(link, in: browser)
            #expect(browser.page.text.contains("This check is finished"))
            try await browser.get("/me/sign-in")
            try await browser.submit(
                "/sign-in", ["decision": "work", "request": handle, "solution": solution])
            try await browser.follow()
            #expect(browser.page.status == 200 && browser.page.location == nil)
            #expect(browser.page.text.contains("This check is finished"))
            // The solution of one check is none of another.
            let other = Browser(checks.fixture)
            try await checks.open(
                try checks.link("rd_other", [.humanCheck], user: nil), in: other)
            try await checks.press(other, "work", ["solution": solution])
            #expect(other.page.status == 422)
        }
    }

    @Test func link_afterTenMinutes_isOver() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            let link = try checks.link("rd_late", [.emailCode])
            try await checks.open(link, in: browser)
            // Steps do not keep it alive, as they do a sign-in.
            for _ in 1...3 {
                checks.fixture.now += 190
                try await checks.open(link, in: browser)
                #expect(browser.page.text.contains("One more check"))
            }
            checks.fixture.now += 31
            try await browser.get("/sign-in?request=\(try SheetFixture.request(browser))")
            #expect(browser.page.status >= 400)
        }
    }

    @Test func challenge_notOffered_isNotCarriedOut() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_only", [.reauthenticate]), in: browser)
            for (decision, fields) in [
                ("send", [:]), ("code", ["code": "123456"]),
                ("work", ["solution": Array(repeating: "1", count: 16).joined(separator: ",")]),
            ] {
                try await checks.press(browser, decision, fields)
                #expect(browser.page.status == 200, "\(decision)")
            }
            #expect(try checks.checks("rd_only").isEmpty)
            #expect(checks.fixture.mailCount(CheckFixture.inbox) == 0)
        }
    }

    @Test func cancel_leadsBackWithAnError() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(try checks.link("rd_cancel", [.emailCode]), in: browser)
            try await checks.press(browser, "cancel")
            #expect(try SheetFixture.answer(browser)["error"] == "access_denied")
            #expect(try checks.checks("rd_cancel").isEmpty)
        }
    }

    @Test func result_byWebMessage_isForTheOriginOfTheApp() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(
                try checks.link("rd_popup", [.humanCheck], user: nil, mode: .webMessage),
                in: browser)
            try await checks.press(browser, "work", ["solution": try checks.solution(browser)])
            #expect(browser.page.text.contains("check_result"))
            #expect(browser.page.text.contains("https://juice.example"))
        }
    }

    @Test func redirect_removedMeanwhile_getsNoResult() async throws {
        try await CheckFixture.with { checks in
            let browser = Browser(checks.fixture)
            try await checks.open(
                try checks.link("rd_gone", [.humanCheck], user: nil), in: browser)
            let solution = try checks.solution(browser)
            try checks.store.clients.removeRedirect(
                team: "juice", clientID: "com.juice.app", uri: CheckFixture.redirect,
                PortalFixture.change)
            try await checks.press(browser, "work", ["solution": solution])
            #expect(browser.page.status >= 400 && browser.page.location == nil)
            #expect(try checks.checks("rd_gone").isEmpty)
        }
    }

    /// Otherwise one backend could push out everyone who signs in.
    @Test func checks_ofOneApp_replaceTheirOwn() async throws {
        try await CheckFixture.with { checks in
            var pending = checks.store.authorizations
            pending.limits.checksOfApp = 4
            let client = AuthorizationClient(
                clientID: "com.juice.app", redirectURIs: [CheckFixture.redirect], isPublic: false)
            let target = try #require(
                AuthenticationRequestReader(issuer: PortalFixture.url).target(
                    redirectURI: CheckFixture.redirect, mode: nil, state: nil, client: client))
            let now = checks.fixture.now
            func add(_ number: Int, of clientID: String) throws -> String {
                let check = HostedCheck(
                    decisionID: "rd_\(clientID)_\(number)", event: "sign_in",
                    challenges: [.humanCheck], effort: 1)
                return try pending.add(
                    check, clientID: clientID, subject: nil, target: target, now: now)
            }
            let other = try add(0, of: "com.soda.app")
            let handles = try (0..<9).map { try add($0, of: "com.juice.app") }
            #expect(try pending.open(other, now: now) != nil)
            #expect(try pending.open(handles[0], now: now) == nil)
            #expect(try pending.open(handles[8], now: now) != nil)
        }
    }

    @Test func code_atOnce_isTriedFiveTimes() async throws {
        try await CheckFixture.with { checks in
            let check = HostedCheck(
                decisionID: "rd_many", event: "sign_in", challenges: [.emailCode], effort: 1)
            _ = try checks.link("rd_many", [.emailCode])
            let store = checks.store
            let code = try store.hostedChecks.newCode(
                for: check, user: "anna", perHour: 5, now: PortalFixture.start
            ).get()
            let wrong = code == "000000" ? "000001" : "000000"
            let results = try await withThrowingTaskGroup(of: CheckCodeResult.self) { group in
                for _ in 1...20 {
                    group.addTask {
                        try store.hostedChecks.tryCode(wrong, for: check, now: PortalFixture.start)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count { if case .wrong = $0 { true } else { false } } == 4)
            #expect(
                try store.hostedChecks.tryCode(code, for: check, now: PortalFixture.start)
                    == .refused(.failed))
        }
    }
}
