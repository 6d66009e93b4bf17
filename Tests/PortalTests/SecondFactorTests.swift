// Two factors on the page: set up, asked for, required by an installation, a team, an app and a
// request, and taken away.

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

@Suite(.blocking) struct SecondFactorTests {
    // MARK: Steps

    /// The secret that the open page shows.
    private func secret(_ browser: Browser) throws -> [UInt8] {
        let text = try #require(
            browser.page.first(/id="secret" dir="ltr">([A-Z2-7 ]+)</), "\(browser.page.status)")
        return try #require(Base32.decode(text.utf8.filter { $0 != 0x20 }))
    }

    private func sealed(_ browser: Browser) throws -> String {
        try #require(browser.page.first(/name="secret" value="([A-Za-z0-9_-]+)"/))
    }

    private func code(_ secret: [UInt8], _ fixture: PortalFixture, later steps: Int64 = 0) -> String
    {
        OneTimePassword.code(secret, step: OneTimePassword.step(at: fixture.now) + steps)
    }

    /// Sets up an authenticator app on the open page; returns its secret. A step later, so that its
    /// next code is another one.
    private func setUp(_ browser: Browser, _ fields: [String: String] = [:]) async throws -> [UInt8]
    {
        let secret = try secret(browser)
        var fields = fields
        fields["secret"] = try sealed(browser)
        fields["code"] = code(secret, browser.fixture)
        try await browser.submit("/me/authenticator", fields)
        browser.fixture.now += OneTimePassword.period
        return secret
    }

    /// Signs in by mail alone: what comes then.
    private func signInByMail(_ browser: Browser, _ user: String = "anna") async throws {
        try await browser.get("/me/sign-in")
        try await browser.submit("/me/sign-in", ["email": "\(user)@home.example"])
        try await browser.get("/me/sent")
        try await browser.submit(
            "/me/sent", ["code": try browser.fixture.code("\(user)@home.example")])
        try await browser.follow()
    }

    /// Anna, who has an authenticator app, signed in by mail alone.
    private func withAuthenticator(
        _ body: (PortalFixture, Browser, [UInt8]) async throws -> Void
    ) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/authenticator")
            let secret = try await setUp(anna)
            try #require(anna.page.text.contains("<h1>Keep these recovery codes</h1>"))
            // A browser that no one used before.
            let new = Browser(fixture)
            try await signInByMail(new)
            try await body(fixture, new, secret)
        }
    }

    private func authenticator(_ credential: UInt8 = 1) throws -> TestAuthenticator {
        var authenticator = try TestAuthenticator(.create)
        authenticator.rpID = "relay.example"
        authenticator.credentialID = Array(repeating: credential, count: 16)
        return authenticator
    }

    private func challenge(_ browser: Browser) throws -> [UInt8] {
        let text = try #require(
            browser.page.first(/data-challenge="([A-Za-z0-9_-]+)"/), "\(browser.page.text)")
        return try #require(Base64URL.decode(text.utf8))
    }

    /// Makes a passkey on the open page.
    private func addPasskey(
        _ authenticator: TestAuthenticator, _ browser: Browser, _ fields: [String: String] = [:]
    ) async throws {
        var authenticator = authenticator
        let challenge = try challenge(browser)
        authenticator.clientData = TestAuthenticator.clientData(
            .create, challenge: challenge, origin: PortalFixture.url)
        let form = [
            "challenge": Base64URL.encode(challenge),
            "client_data": Base64URL.encode(Array(authenticator.clientData.utf8)),
            "attestation": Base64URL.encode(try authenticator.attestationObject()), "name": "",
        ]
        try await browser.submit("/me/passkeys", form.merging(fields) { $1 })
    }

    /// Uses a passkey on the open page, whose form has a token of its own.
    private func usePasskey(
        _ authenticator: TestAuthenticator, _ browser: Browser, _ fields: [String: String] = [:]
    ) async throws {
        var authenticator = authenticator
        let part = try #require(
            browser.page.text.components(separatedBy: #"id="passkey-sign-in""#).last)
        let text = try #require(part.firstMatch(of: /data-challenge="([A-Za-z0-9_-]+)"/)).1
        let challenge = try #require(Base64URL.decode(text.utf8))
        let csrf = String(try #require(part.firstMatch(of: /name="csrf" value="([a-z2-7]+)"/)).1)
        authenticator.clientData = TestAuthenticator.clientData(
            .get, challenge: challenge, origin: PortalFixture.url)
        let form = [
            "challenge": Base64URL.encode(challenge),
            "client_data": Base64URL.encode(Array(authenticator.clientData.utf8)),
            "credential": Base64URL.encode(authenticator.credentialID),
            "authenticator_data": Base64URL.encode(
                authenticator.authenticatorData(withCredential: false)),
            "signature": Base64URL.encode(try authenticator.signature()), "user_handle": "",
            "csrf": csrf,
        ]
        try await browser.submit("/me/passkey", form.merging(fields) { $1 }, token: false)
        try await browser.follow()
    }

    private func twoFactor(_ fixture: PortalFixture, _ user: String = "anna") throws -> Int64? {
        try fixture.store.database.value("SELECT two_factor FROM users WHERE handle = \(user)")
    }

    // MARK: On the user's own page

    @Test func authenticator_setUp_isAskedForAtEverySignIn() async throws {
        try await withAuthenticator { fixture, anna, secret in
            #expect(anna.page.text.contains("<h1>One more step</h1>"))
            #expect(
                try fixture.mail("anna@home.example").contains("needs its code or a passkey")
                    == false)
            try await anna.submit("/me/second", ["code": code(secret, fixture)])
            #expect(anna.page.location == "/me")
            #expect(try await anna.get("/me").status == 200)
            #expect(
                try await anna.get("/me/security").text.contains("Every sign-in needs two factors"))
            // The session keeps it; another browser begins anew.
            #expect(try await anna.get("/me/second").location == "/me")
            let other = Browser(fixture)
            try await signInByMail(other)
            #expect(other.page.text.contains("<h1>One more step</h1>"))
        }
    }

    @Test func authenticator_setUp_isToldByMailAndInTheAudit() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/authenticator")
            #expect(
                anna.page.text.contains("<svg")
                    && anna.page.text.contains("otpauth://totp/Fig%20%26%20Co:anna%40home.example"))
            _ = try await setUp(anna)
            #expect(try fixture.mail("anna@home.example").contains("needs its code or a passkey"))
            let line: String? = try fixture.store.database.value(
                "SELECT action FROM audit WHERE subject = 'user:anna' AND action LIKE 'authenticator.%'"
            )
            #expect(line == "authenticator.add")
            // No second one while there is one.
            #expect(try await anna.get("/me/authenticator").location == "/me/security")
        }
    }

    @Test func secret_inTheStore_isSealed() async throws {
        try await withAuthenticator { fixture, _, secret in
            let stored: [UInt8]? = try fixture.store.database.value(
                "SELECT secret_sealed FROM authenticators")
            let octets = try #require(stored)
            #expect(octets.count > secret.count)
            #expect(
                !(0...octets.count - secret.count).contains {
                    Array(octets[$0..<$0 + secret.count]) == secret
                })
        }
    }

    @Test func setUp_wrongCodeOrForeignForm_addsNothing() async throws {
        try await PortalFixture.with { fixture in
            let (anna, bob) = (Browser(fixture), Browser(fixture))
            try await anna.signIn("anna")
            try await bob.signIn("bob")
            try await anna.get("/me/authenticator")
            let (secret, sealed) = (try secret(anna), try sealed(anna))
            func count() throws -> Int? {
                try fixture.store.database.value("SELECT COUNT(*) FROM authenticators")
            }
            let wrong = code(secret, fixture, later: 3)
            #expect(
                try await anna.submit("/me/authenticator", ["secret": sealed, "code": wrong]).status
                    == 422)
            // The form keeps its secret: an app that scanned it stays right.
            #expect(try self.secret(anna) == secret && self.sealed(anna) == sealed)
            // Another user's form, one that was changed, none, and one that is too old.
            try await bob.get("/me/authenticator")
            for text in [sealed, String(sealed.dropLast()) + "A", "", "AAAA"] {
                try await bob.submit(
                    "/me/authenticator", ["secret": text, "code": code(secret, fixture)])
                #expect(bob.page.location == "/me/authenticator", "\(bob.page.status)")
                try await bob.get("/me/authenticator")
            }
            fixture.now += 20 * 60
            try await anna.submit(
                "/me/authenticator", ["secret": sealed, "code": code(secret, fixture)])
            #expect(try anna.page.location == "/me/authenticator" && count() == 0)
            #expect(try twoFactor(fixture) == 0)
            // Without the token of the form.
            try await anna.get("/me/authenticator")
            let (fresh, form) = (try self.secret(anna), try self.sealed(anna))
            try await anna.submit(
                "/me/authenticator", ["secret": form, "code": code(fresh, fixture)], token: false)
            #expect(try count() == 0)
        }
    }

    @Test func code_usedTwiceOrOnTwoHosts_countsOnce() async throws {
        try await withAuthenticator { fixture, anna, secret in
            let twin = try PortalFixture(database: fixture.store.database, beside: fixture)
            let (other, third) = (Browser(twin), Browser(fixture))
            try await signInByMail(other)
            try await signInByMail(third)
            let code = code(secret, fixture)
            #expect(try await anna.submit("/me/second", ["code": code]).status == 303)
            #expect(try await other.submit("/me/second", ["code": code]).status == 422)
            #expect(try await third.submit("/me/second", ["code": code]).status == 422)
            #expect(third.page.text.contains("was used already"))
            fixture.now += OneTimePassword.period
            #expect(
                try await third.submit("/me/second", ["code": self.code(secret, fixture)]).status
                    == 303)
        }
    }

    @Test func code_olderThanTheLast_isRefused() async throws {
        try await withAuthenticator { fixture, anna, secret in
            let (older, newer) = (code(secret, fixture), code(secret, fixture, later: 1))
            let other = Browser(fixture)
            try await signInByMail(other)
            #expect(try await anna.submit("/me/second", ["code": newer]).status == 303)
            #expect(try await other.submit("/me/second", ["code": older]).status == 422)
        }
    }

    @Test func wrongCodes_ofOneUser_areLimitedWhereverTheyComeFrom() async throws {
        try await withAuthenticator { fixture, anna, secret in
            for number in 0..<AuthenticatorLimits.wrongCodes {
                let browser = number % 2 == 0 ? anna : Browser(fixture)
                if number % 2 == 1 { try await signInByMail(browser) }
                let wrong = code(secret, fixture, later: 5 + Int64(number))
                let page = try await browser.submit(
                    "/me/second", ["code": wrong],
                    headers: ["X-Forwarded-For": "203.0.113.\(number)"])
                #expect(page.status == 422)
                try await anna.get("/me/second")
            }
            let page = try await anna.submit("/me/second", ["code": code(secret, fixture)])
            #expect(
                page.status == 429 && page.header("Retry-After") == "\(AuthenticatorLimits.period)")
            // What is no code is no try, and another user is not concerned.
            #expect(try await anna.submit("/me/second", ["code": "12345"]).status == 422)
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            fixture.now += AuthenticatorLimits.period
            try await signInByMail(anna)
            #expect(
                try await anna.submit("/me/second", ["code": code(secret, fixture)]).status == 303)
        }
    }

    @Test func sameWrongCode_pressedTwice_isOneTry() async throws {
        try await withAuthenticator { fixture, anna, secret in
            let wrong = code(secret, fixture, later: 9)
            for _ in 0..<3 {
                #expect(try await anna.submit("/me/second", ["code": wrong]).status == 422)
            }
            let tries: Int? = try fixture.store.database.value("SELECT wrong FROM authenticators")
            #expect(tries == 1)
        }
    }

    /// A thief who reads the inbox has the first factor.
    @Test func mailAlone_whereTwoFactorsAreOn_reachesNothing() async throws {
        try await withAuthenticator { fixture, thief, _ in
            let account = "/me/addresses/1"
            for path in [
                "/me", account, "/me/inboxes", "/me/security", "/me/data", "/me/data.json",
                "/me/delete",
            ] {
                #expect(try await thief.get(path).location == "/me/second", "\(path)")
            }
            for (path, fields) in [
                ("/me/addresses/1/forwarding", ["state": "off"]),
                ("/me/inboxes", ["email": "thief@home.example"]),
                ("/me/authenticator/remove", [:]), ("/me/two-factors", ["state": "off"]),
                ("/me/delete", [:]),
            ] {
                try await thief.get("/me/second")
                #expect(try await thief.submit(path, fields).location == "/me/second", "\(path)")
            }
            #expect(try await thief.get("/me/authenticator").location == "/me/security")
            try await thief.get("/me/second")
            try await thief.submit(
                "/me/passkeys", ["challenge": "AAAA", "client_data": "AAAA", "attestation": "AAAA"])
            #expect(thief.page.location == "/me/change")
            #expect(try twoFactor(fixture) == 1)
            // Out is always possible.
            try await thief.get("/me/second")
            #expect(try await thief.submit("/me/sign-out").location == "/me/sign-in")
        }
    }

    @Test func authenticator_removed_makesACodeByMailEnough() async throws {
        try await withAuthenticator { fixture, anna, secret in
            try await anna.submit("/me/second", ["code": code(secret, fixture)])
            try await anna.get("/me/security")
            #expect(try await anna.submit("/me/authenticator/remove").location == "/me/security")
            #expect(try await anna.get("/me/security").text.contains("its codes no longer count"))
            #expect(try twoFactor(fixture) == 0)
            let other = Browser(fixture)
            try await signInByMail(other)
            #expect(other.page.status == 200 && !other.page.text.contains("One more step"))
        }
    }

    @Test func passkeyAlwaysAskedFor_mailAlone_needsIt() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            #expect(!anna.page.text.contains("/me/two-factors"))
            // Nothing to ask for yet.
            #expect(try await anna.submit("/me/two-factors", ["state": "on"]).status == 409)
            try await anna.get("/me/security")
            let passkey = try authenticator()
            try await addPasskey(passkey, anna)
            try await anna.get("/me/security")
            #expect(try await anna.submit("/me/two-factors", ["state": "on"]).status == 200)
            // The session in which it was made is sure enough; one by mail alone is not.
            #expect(try await anna.get("/me").status == 200)
            let new = Browser(fixture)
            try await signInByMail(new)
            #expect(try await new.get("/me").location == "/me/second")
            try await new.get("/me/second")
            #expect(!new.page.text.contains(#"name="code""#))
            try await usePasskey(passkey, new)
            #expect(new.page.status == 200)
            try await anna.get("/me/security")
            fixture.now += PortalRepository.repetition
            #expect(
                try await anna.submit("/me/two-factors", ["state": "off"]).location
                    == "/me/security")
            let other = Browser(fixture)
            try await signInByMail(other)
            #expect(!other.page.text.contains("One more step"))
        }
    }

    // MARK: Required

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

    // MARK: Lost

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

    private func recoveryCodes(_ browser: Browser) throws -> [String] {
        let text = try #require(browser.page.first(/id="codes" dir="ltr">([a-z2-7\n-]+)</))
        return text.split(separator: "\n").map(String.init)
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

    // MARK: The wait

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

    // MARK: Attacked

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
        try await withThief(.any) { sheet, anna, thief, _ in
            let fixture = sheet.fixture
            try await sheet.open(anna)
            _ = try await sheet.press(anna, "continue", ["email": "hide"])
            try await anna.get("/me/authenticator")
            let secret = try await setUp(anna)
            try fixture.store.signInLevels.set(.passkey, team: "soda", PortalFixture.change)
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
