// Users who lost their second factor: the administrator, recovery codes, and the wait.

import Database
import Foundation
import HTTP
import MailCrypto
import PasskeyTesting
import SignIn
import Support
import TestSupport
import Testing
import WebAuthn

@testable import Portal

@Suite(.blocking) struct RecoveryTests: SecondFactorSteps {
    @Test func recovery_byTheAdministrator_removesEveryFactorAndSession() async throws {
        try await withAuthenticator { fixture, anna, secret in
            try await anna.submit("/me/second", ["code": code(secret, fixture)])
            try await anna.get("/me/security")
            try await addPasskey(try authenticator(), anna)
            try fixture.store.authenticators.recover(
                user: "anna", reason: "phone lost, seen in person", PortalFixture.change)
            #expect(try await anna.get("/me").location == "/me/sign-in")
            #expect(
                try fixture.store.passkeys.passkeys(user: "anna").isEmpty && twoFactor(fixture) == 0
            )
            let reason: String? = try fixture.store.database.value(
                "SELECT detail FROM audit WHERE action = 'user.recover' AND subject = 'user:anna'")
            #expect(reason == "phone lost, seen in person")
            try await signInByMail(anna)
            #expect(anna.page.status == 200)
        }
    }

    @Test func passkeys_allRemovedWhileAskedFor_makeACodeByMailEnough() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            let passkey = try authenticator()
            try await addPasskey(passkey, anna)
            try await anna.get("/me/security")
            try await anna.submit("/me/two-factors", ["state": "on"])
            let number = try #require(
                try fixture.store.passkeys.passkeys(user: "anna").first?.number)
            try await anna.get("/me/security")
            try await anna.submit("/me/passkeys/\(number)/remove")
            #expect(try twoFactor(fixture) == 0)
            #expect(try await anna.get("/me").status == 200)
        }
    }

    @Test func recoveryCode_inPlaceOfTheApp_countsOnceAndIsTold() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/authenticator")
            _ = try await setUp(anna)
            let codes = try recoveryCodes(anna)
            #expect(Set(codes).count == RecoveryCodeRepository.count)
            let lost = Browser(fixture)
            try await signInByMail(lost)
            // As people type it: capital letters, spaces for hyphens.
            let typed = " \(codes[3].uppercased().replacing("-", with: " ")) "
            #expect(
                try await lost.submit("/me/second", ["recovery": typed]).location == "/me/security")
            #expect(try fixture.mail("anna@home.example").contains("make new recovery codes"))
            try await lost.get("/me/security")
            #expect(lost.page.text.contains("You have 9 of them left."))
            let again = Browser(fixture)
            try await signInByMail(again)
            for wrong in [codes[3], "abcd", String(repeating: "a", count: 16)] {
                let page = try await again.submit("/me/second", ["recovery": wrong])
                #expect(page.status == 422 && page.text.contains("or was used already"))
            }
            #expect(try await again.get("/me").location == "/me/second")
            // New ones replace them all.
            try await lost.get("/me/security")
            try await lost.submit("/me/recovery-codes")
            let new = try recoveryCodes(lost)
            try await again.get("/me/second")
            #expect(try await again.submit("/me/second", ["recovery": codes[4]]).status == 422)
            try await again.get("/me/second")
            #expect(try await again.submit("/me/second", ["recovery": new[0]]).status == 303)
        }
    }

    @Test func recoveryCode_ofAnotherUser_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let (anna, bob) = (Browser(fixture), Browser(fixture))
            for (browser, user) in [(anna, "anna"), (bob, "bob")] {
                try await browser.signIn(user)
                try await browser.get("/me/authenticator")
                _ = try await setUp(browser)
            }
            let codes = try recoveryCodes(bob)
            let thief = Browser(fixture)
            try await signInByMail(thief)
            #expect(try await thief.submit("/me/second", ["recovery": codes[0]]).status == 422)
        }
    }

    @Test func recoveryCodes_withoutTwoFactors_areNotMade() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            #expect(!anna.page.text.contains("/me/recovery-codes"))
            #expect(try await anna.submit("/me/recovery-codes").status == 404)
            // A passkey that no one asks for changes nothing.
            try await anna.get("/me/security")
            try await addPasskey(try authenticator(), anna)
            try await anna.get("/me/security")
            fixture.now += PortalRepository.repetition
            #expect(try await anna.submit("/me/recovery-codes").status == 404)
            let left: Int? = try fixture.store.database.value("SELECT COUNT(*) FROM recovery_codes")
            #expect(left == 0)
        }
    }

    /// Who lost the passkey that an app wants comes in by a recovery code, and adds another one.
    @Test func recoveryCode_appThatWantsAPasskey_leadsToAnotherOne() async throws {
        try await SheetFixture.with { sheet in
            let fixture = sheet.fixture
            try fixture.store.signInLevels.set(.passkey, team: "soda", PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            try await addPasskey(try authenticator(), anna)
            try await anna.get("/me/security")
            try await anna.submit("/me/two-factors", ["state": "on"])
            let codes = try recoveryCodes(anna)
            let other = Browser(fixture)
            try await sheet.open(other)
            try await sheet.signIn(other)
            let request = try SheetFixture.request(other)
            #expect(try await other.get("/me/new-factor?request=\(request)").location != nil)
            try await other.get("/me/second?request=\(request)")
            // The first form of this page is that of the passkey, with a token of its own.
            let form = try #require(
                other.page.text.components(separatedBy: "<details").last?.firstMatch(
                    of: /name="csrf" value="([a-z2-7]+)"/))
            try await other.submit(
                "/me/second",
                ["recovery": codes[0], "request": request, "csrf": String(form.1)], token: false)
            try await other.follow()
            #expect(other.page.text.contains("/me/new-factor?request=\(request)"))
            try await other.get("/me/new-factor?request=\(request)")
            let passkey = try authenticator(2)
            try await addPasskey(passkey, other, ["request": request])
            try await other.follow()
            try await usePasskey(passkey, other, ["request": request])
            #expect(other.page.text.contains("<h1>Continue to Soda</h1>"))
        }
    }

    /// Anna with two inboxes and an authenticator app, signed in by mail alone in a browser that is
    /// new; and a browser in which she showed the app.
    private func withLostApp(
        _ body: (PortalFixture, _ lost: Browser, _ known: Browser, [UInt8]) async throws -> Void
    ) async throws {
        try await PortalFixture.with(recoveryDays: 3) { fixture in
            _ = try fixture.store.inboxes.add(
                user: "anna", try PortalFixture.inbox("anna2@home.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change)
            let (known, lost) = (Browser(fixture), Browser(fixture))
            try await known.signIn("anna")
            try await known.get("/me/authenticator")
            let secret = try await setUp(known)
            try await signInByMail(lost)
            try await body(fixture, lost, known, secret)
        }
    }

    private func stopLink(_ fixture: PortalFixture, _ inbox: String) throws -> String {
        let link = try fixture.mail(inbox).firstMatch(of: /(\/me\/recovery\/[a-z2-7]{32})/)
        return String(try #require(link).1)
    }

    @Test func wait_notStopped_letsTheUserInWithoutTheFactor() async throws {
        try await withLostApp { fixture, lost, known, _ in
            #expect(lost.page.text.contains("Wait 3 days"))
            try await lost.submit("/me/recovery")
            #expect(try await lost.follow().text.contains("Come back here on"))
            for inbox in ["anna@home.example", "anna2@home.example"] {
                #expect(try fixture.mail(inbox).contains("without your second factor"))
            }
            // Nothing before its end, however it is asked for.
            #expect(try await lost.submit("/me/recovery/finish").status == 409)
            #expect(try await lost.get("/me/data.json").location == "/me/second")
            fixture.now += 3 * 86_400 - 1
            let later = Browser(fixture)
            try await signInByMail(later)
            #expect(try await later.submit("/me/recovery/finish").status == 409)
            fixture.now += 60
            try await later.get("/me/second")
            #expect(later.page.text.contains("The wait is over."))
            #expect(try await later.submit("/me/recovery/finish").location == "/me/sign-in")
            #expect(try await known.get("/me").location == "/me/sign-in")
            try await signInByMail(later)
            #expect(try later.page.status == 200 && twoFactor(fixture) == 0)
            #expect(try fixture.mail("anna2@home.example").contains("were removed"))
        }
    }

    /// By the link of either inbox, without signing in; and by the button in a known browser.
    @Test(arguments: ["anna@home.example", "anna2@home.example", nil])
    func wait_stopped_isOver(inbox: String?) async throws {
        try await withLostApp { fixture, thief, known, _ in
            try await thief.submit("/me/recovery")
            if let inbox {
                let anyone = Browser(fixture)
                let link = try stopLink(fixture, inbox)
                // Programs that look at links stop nothing.
                #expect(try await anyone.get(link).text.contains("<h1>Stop it?</h1>"))
                #expect(try await anyone.submit(link, token: false).text.contains("It is stopped"))
                #expect(try await anyone.get(link).text.contains("It is stopped"))
            } else {
                try await known.get("/me/inboxes")
                #expect(known.page.text.contains("action=\"/me/recovery/stop\""))
                #expect(try await known.submit("/me/recovery/stop").location == "/me/security")
                #expect(!(try await known.get("/me").text.contains("/me/recovery/stop")))
            }
            fixture.now += 4 * 86_400
            let later = Browser(fixture)
            try await signInByMail(later)
            #expect(try await later.submit("/me/recovery/finish").status == 409)
            #expect(try twoFactor(fixture) == 1)
            let lines: [String] = try fixture.store.database.values(
                "SELECT action FROM audit WHERE action LIKE 'recovery.%' ORDER BY id")
            #expect(lines == ["recovery.begin", "recovery.stop"])
        }
    }

    @Test func wait_begunTwice_keepsItsEndAndTellsOnce() async throws {
        try await withLostApp { fixture, lost, _, _ in
            try await lost.submit("/me/recovery")
            let count = fixture.mailCount("anna2@home.example")
            fixture.now += 86_400
            let other = Browser(fixture)
            try await signInByMail(other)
            try await other.submit("/me/recovery")
            #expect(fixture.mailCount("anna2@home.example") == count)
            let end: Int64? = try fixture.store.database.value("SELECT ends_at FROM recovery_waits")
            #expect(end == fixture.now + 2 * 86_400)
        }
    }

    /// A week after its end it counts as none, and can begin again.
    @Test func wait_notUsedInTime_beginsAgain() async throws {
        try await withLostApp { fixture, lost, _, _ in
            try await lost.submit("/me/recovery")
            fixture.now += 11 * 86_400
            let later = Browser(fixture)
            try await signInByMail(later)
            #expect(later.page.text.contains("Wait 3 days"))
            #expect(try await later.submit("/me/recovery/finish").status == 409)
            try await later.get("/me/second")
            fixture.now += PortalRepository.repetition
            try await later.submit("/me/recovery")
            #expect(try await later.follow().text.contains("Come back here on"))
        }
    }

    /// Only who can read an inbox of the user, and needs two factors, can begin it.
    @Test func wait_ofOthersOrWithoutNeed_isNotBegun() async throws {
        try await withLostApp { fixture, lost, _, _ in
            func count() throws -> Int? {
                try fixture.store.database.value("SELECT COUNT(*) FROM recovery_waits")
            }
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            try await bob.submit("/me/recovery")
            try await Browser(fixture).submit("/me/recovery", token: false)
            try await lost.submit("/me/recovery", token: false)
            #expect(try count() == 0)
        }
    }
}
