// Two factors that an installation, a team, an app or a request requires.

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

@Suite(.blocking) struct SecondFactorRequirementTests: SecondFactorSteps {
    /// No one is locked out: who has a code only is led to a second factor.
    @Test(arguments: [SignInLevel.twoFactor, .passkey])
    func installation_requiresMore_leadsUsersWithACodeOnlyToAFactor(level: SignInLevel) async throws
    {
        try await PortalFixture.with(requiredLevel: level) { fixture in
            let anna = Browser(fixture)
            try await signInByMail(anna)
            #expect(anna.page.text.contains("<h1>Add a second factor</h1>"))
            #expect(anna.page.text.contains("/me/authenticator\"") == (level == .twoFactor))
            #expect(try await anna.get("/me/data.json").location == "/me/second")
            if level == .twoFactor {
                try await anna.get("/me/authenticator")
                _ = try await setUp(anna)
            } else {
                try await anna.get("/me/second")
                let passkey = try authenticator()
                try await addPasskey(passkey, anna)
                try await anna.follow()
                #expect(anna.page.text.contains("<h1>One more step</h1>"))
                try await usePasskey(passkey, anna)
            }
            #expect(try await anna.get("/me").status == 200)
            try await anna.get("/me/security")
            #expect(!anna.page.text.contains("/me/two-factors"))
        }
    }

    @Test func team_requiresTwoFactors_leadsToTheAppWithThem() async throws {
        try await SheetFixture.with { sheet in
            let fixture = sheet.fixture
            try fixture.store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            let anna = Browser(fixture)
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            #expect(anna.page.text.contains("Soda lets you in with two factors only."))
            let request = try SheetFixture.request(anna)
            try await anna.get("/me/authenticator?request=\(request)")
            let secret = try await setUp(anna, ["request": request])
            #expect(anna.page.text.contains("/sign-in?request=\(request)\""))
            try await anna.get("/sign-in?request=\(request)")
            #expect(anna.page.text.contains("<h1>Continue to Soda</h1>"))
            let claims = try await sheet.claims(
                try await sheet.press(anna, "continue", ["email": "hide"])["code"])
            #expect(
                claims["amr"]?.array?.compactMap(\.string) == ["mfa", "otp"]
                    && claims["acr"]?.string == "mfa")
            // The next time the code is asked for, and a page of the
            // app's alone is not enough to skip it.
            let other = Browser(fixture)
            try await sheet.open(other)
            try await sheet.signIn(other)
            #expect(other.page.text.contains("<h1>One more step</h1>"))
            let again = try SheetFixture.request(other)
            try await other.submit("/sign-in", ["request": again, "decision": "continue"])
            try await other.follow()
            #expect(other.page.text.contains("<h1>One more step</h1>"))
            try await other.submit("/me/second", ["code": code(secret, fixture), "request": again])
            try await other.follow()
            #expect(try await sheet.press(other, "continue")["code"] != nil)
        }
    }

    @Test func app_requiresAPasskey_takesNoCode() async throws {
        try await SheetFixture.with { sheet in
            let fixture = sheet.fixture
            try fixture.store.signInLevels.set(
                .passkey, team: "soda", clientID: "com.soda.app", PortalFixture.change)
            // The strictest holds.
            try fixture.store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/authenticator")
            let secret = try await setUp(anna)
            try await sheet.open(anna)
            #expect(anna.page.text.contains("Soda lets you in with a passkey only."))
            let request = try SheetFixture.request(anna)
            let passkey = try authenticator()
            try await addPasskey(passkey, anna, ["request": request])
            try await anna.follow()
            #expect(
                anna.page.text.contains("<h1>One more step</h1>")
                    && !anna.page.text.contains(#"name="code""#))
            try await anna.submit(
                "/me/second", ["code": code(secret, fixture), "request": request])
            try await anna.follow()
            #expect(anna.page.text.contains("<h1>One more step</h1>"))
            try await usePasskey(passkey, anna, ["request": request])
            let claims = try await sheet.claims(
                try await sheet.press(anna, "continue", ["email": "hide"])["code"])
            #expect(claims["acr"]?.string == "phr")
            #expect(try twoFactor(fixture) == 1)
        }
    }

    @Test(arguments: [
        ("mfa", true), ("phr", true), ("phr mfa", true), ("urn:other mfa", true),
        ("urn:other", false), ("MFA", false), ("", false),
    ])
    func acrValues_ofARequest_areHonoured(classes: String, isAsked: Bool) async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna, ["acr_values": classes])
            try await sheet.signIn(anna)
            #expect(anna.page.text.contains("<h1>Add a second factor</h1>") == isAsked)
            #expect(
                anna.page.text.contains("/me/authenticator?")
                    == (isAsked && classes.contains("mfa")))
        }
    }

    @Test func promptNone_signedInByOneFactor_isRefused() async throws {
        try await SheetFixture.with { sheet in
            try sheet.fixture.store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try await sheet.open(anna, ["prompt": "none"])
            #expect(try SheetFixture.answer(anna)["error"] == "login_required")
        }
    }

    @Test func secondFactorPage_cancelled_refusesTheApp() async throws {
        try await SheetFixture.with { sheet in
            try sheet.fixture.store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            let anna = Browser(sheet.fixture)
            try await sheet.open(anna)
            try await sheet.signIn(anna)
            #expect(try await sheet.press(anna, "cancel")["error"] == "access_denied")
        }
    }
}
