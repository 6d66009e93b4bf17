// Two factors on the user's own page: set up, asked for, and removed.

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

@Suite(.blocking) struct SecondFactorTests: SecondFactorSteps {
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
}
