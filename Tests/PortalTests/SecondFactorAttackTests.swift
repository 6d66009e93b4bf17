// What a reader of the inbox, or a page of another site, must not get.

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

@Suite(.blocking) struct SecondFactorAttackTests: SecondFactorSteps {
    /// Anna, who signed up with a passkey beside mail and did not ask for two factors; and someone
    /// who reads her inbox, at the sign-in of an app.
    private func withThief(
        _ level: SignInLevel,
        _ body: (SheetFixture, _ anna: Browser, _ thief: Browser, TestAuthenticator) async throws ->
            Void
    ) async throws {
        try await SheetFixture.with { sheet in
            try sheet.fixture.store.signInLevels.set(level, team: "soda", PortalFixture.change)
            let (anna, thief) = (Browser(sheet.fixture), Browser(sheet.fixture))
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            let passkey = try authenticator()
            try await addPasskey(passkey, anna)
            try await sheet.open(thief)
            try await sheet.signIn(thief)
            try await body(sheet, anna, thief, passkey)
        }
    }

    @Test(arguments: [SignInLevel.twoFactor, .passkey])
    func mailAlone_ofAUserWithAPasskey_makesNoOtherFactor(level: SignInLevel) async throws {
        try await withThief(level) { sheet, _, thief, _ in
            #expect(thief.page.text.contains("<h1>One more step</h1>"))
            let request = try SheetFixture.request(thief)
            for path in ["/me/authenticator", "/me/new-factor"] {
                #expect(
                    try await thief.get("\(path)?request=\(request)").location
                        == "/me/second?request=\(request)")
            }
            // Nor on the page of the user, which a code by mail opens.
            #expect(try await thief.get("/me").status == 200)
            #expect(try await thief.get("/me/authenticator").location == "/me/change")
            try await thief.get("/me/security")
            #expect(!thief.page.text.contains("passkey-add"))
            for (path, fields) in [
                (
                    "/me/passkeys",
                    ["challenge": "AAAA", "client_data": "AAAA", "attestation": "AAAA"]
                ),
                ("/me/passkeys/1/remove", [:]), ("/me/two-factors", ["state": "on"]),
            ] {
                try await thief.get("/me/security")
                #expect(try await thief.submit(path, fields).location == "/me/change", "\(path)")
            }
            #expect(try await thief.get("/me/change").text.contains("passkey-sign-in"))
        }
    }

    /// With the code by mail and one of the app, which a page of another site can ask for too.
    @Test func codes_whereAPasskeyIsRequired_makeNoOtherPasskey() async throws {
        try await withThief(.any) { sheet, anna, _, _ in
            let fixture = sheet.fixture
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue", ["email": "hide"])
            try await anna.get("/me/authenticator")
            let secret = try await setUp(anna)
            try fixture.store.signInLevels.set(.passkey, team: "soda", PortalFixture.change)
            let thief = Browser(fixture)
            try await signInByMail(thief)
            try await thief.submit("/me/second", ["code": code(secret, fixture)])
            #expect(try await thief.get("/me/security").status == 200)
            try await thief.submit(
                "/me/passkeys", ["challenge": "AAAA", "client_data": "AAAA", "attestation": "AAAA"])
            #expect(thief.page.location == "/me/change")
        }
    }

    @Test func twoFactors_requiredByATeamOrAnApp_areNotEnded() async throws {
        try await withThief(.twoFactor) { sheet, anna, _, passkey in
            let fixture = sheet.fixture
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue", ["email": "hide"])
            #expect(try twoFactor(fixture) == 1)
            try await anna.get("/me/security")
            #expect(!anna.page.text.contains("/me/two-factors"))
            #expect(try await anna.submit("/me/two-factors", ["state": "off"]).status == 409)
            try fixture.store.signInLevels.set(.any, team: "soda", PortalFixture.change)
            try await anna.get("/me/authenticator")
            _ = try await setUp(anna)
            try await anna.get("/me/security")
            fixture.now += PortalRepository.repetition
            #expect(try await anna.submit("/me/two-factors", ["state": "off"]).status == 409)
            #expect(try twoFactor(fixture) == 1)
        }
    }

    /// What the operator's provider checked is enough, and needs no factor here.
    @Test func provider_thatSaysTwoFactors_isEnough() async throws {
        try await SheetFixture.with { sheet in
            let store = sheet.fixture.store
            try store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            try store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("UPDATE page_sessions SET method = 'upstream', amr = 'mfa pwd'")
            }
            try await sheet.open(anna, ["acr_values": "mfa"])
            let answer = try await sheet.press(anna, "continue", ["email": "hide"])
            let claims = try await sheet.claims(answer["code"])
            #expect(claims["acr"]?.string == "mfa")
            #expect(try twoFactor(sheet.fixture) == 0)
        }
    }

    /// An app that asks by its request alone changes nothing for the others.
    @Test func acrValuesOrPromptNone_leaveTheUsersSettingAlone() async throws {
        try await withThief(.any) { sheet, anna, _, _ in
            try await sheet.open(anna, ["acr_values": "mfa"])
            _ = try await sheet.press(anna, "continue", ["email": "hide"])
            #expect(try twoFactor(sheet.fixture) == 0)
            try sheet.fixture.store.signInLevels.set(.twoFactor, team: "soda", PortalFixture.change)
            try await sheet.open(anna, ["prompt": "none"])
            #expect(try SheetFixture.answer(anna)["code"] != nil)
            #expect(try twoFactor(sheet.fixture) == 0)
        }
    }

    @Test func passkeysOfAFormerHost_stillProtect() async throws {
        try await withThief(.any) { sheet, anna, thief, _ in
            try await anna.get("/me/security")
            try await anna.submit("/me/two-factors", ["state": "on"])
            try sheet.fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("UPDATE passkeys SET rp_id = 'former.example'")
            }
            try await signInByMail(thief)
            #expect(thief.page.text.contains("<h1>One more step</h1>"))
            #expect(try await thief.get("/me/authenticator").location == "/me/change")
            #expect(try await thief.get("/me/new-factor").location == "/me/second")
        }
    }

    @Test func sessionByMailAlone_endsAndPushesOutNoOther() async throws {
        try await withAuthenticator { fixture, thief, secret in
            let anna = Browser(fixture)
            try await signInByMail(anna)
            try await anna.submit("/me/second", ["code": code(secret, fixture)])
            #expect(try await anna.get("/me").status == 200)
            try await thief.submit("/me/sign-out", ["everywhere": "yes"])
            #expect(try await anna.get("/me").status == 200)
            for _ in 0..<12 { try await signInByMail(Browser(fixture)) }
            #expect(try await anna.get("/me").status == 200)
        }
    }

    @Test func wrongCodes_ofOthers_doNotStopAKnownBrowser() async throws {
        try await withAuthenticator { fixture, thief, secret in
            let anna = Browser(fixture)
            try await signInByMail(anna)
            try await anna.submit("/me/second", ["code": code(secret, fixture)])
            try await anna.get("/me")
            try await anna.submit("/me/sign-out")
            fixture.now += OneTimePassword.period
            for number in 0..<AuthenticatorLimits.wrongCodes {
                let wrong = code(secret, fixture, later: 20 + Int64(number))
                try await thief.get("/me/second")
                #expect(try await thief.submit("/me/second", ["code": wrong]).status == 422)
            }
            #expect(
                try await thief.submit("/me/second", ["code": code(secret, fixture)]).status == 429)
            try await signInByMail(anna)
            #expect(
                try await anna.submit("/me/second", ["code": code(secret, fixture)]).status == 303)
        }
    }

    @Test func formOfAPasskey_fromASessionThatIsNotSureEnough_showsNothing() async throws {
        try await PortalFixture.with(requiredLevel: .twoFactor) { fixture in
            let anna = Browser(fixture)
            try await signInByMail(anna)
            try await anna.submit(
                "/me/passkeys", ["challenge": "AAAA", "client_data": "AAAA", "attestation": "AAAA"])
            #expect(anna.page.location == "/me/second")
        }
    }

    @Test func step_passkeyRequiredWhereThereAreNone_refusesTheApp() async throws {
        try await SheetFixture.with { sheet in
            let anna = Browser(sheet.fixture)
            try await anna.signIn("anna")
            let token = try #require(anna.cookies.first { $0.key.contains("session") }?.value)
            let session = try sheet.fixture.store.page.session(token, now: sheet.fixture.now)
            try await sheet.open(anna)
            let request = try SheetFixture.request(anna)
            let pending = try #require(
                try sheet.fixture.store.authorizations.open(request, now: sheet.fixture.now))
            let step = SheetStep(
                pending, session: session, isOther: false, consent: nil, level: .passkey,
                hasPasskeys: false)
            guard case .refuse(let error) = step else {
                Issue.record("\(step)")
                return
            }
            #expect(error.code == .unmetAuthenticationRequirements)
        }
    }
}
