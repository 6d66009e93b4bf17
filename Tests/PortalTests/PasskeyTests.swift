// Passkeys on the page: added and used with an authenticator of ours, and all misuse.

import Database
import Foundation
import MailCrypto
import PasskeyTesting
import SignIn
import Support
import TestSupport
import Testing
import WebAuthn

@testable import Portal

@Suite(.blocking) struct PasskeyTests {
    private func challenge(_ browser: Browser) throws -> [UInt8] {
        let text = try #require(browser.page.first(/data-challenge="([A-Za-z0-9_-]+)"/))
        return try #require(Base64URL.decode(text.utf8))
    }

    private func authenticator(_ credential: UInt8 = 1) throws -> TestAuthenticator {
        var authenticator = try TestAuthenticator(.create)
        authenticator.rpID = "relay.example"
        authenticator.credentialID = Array(repeating: credential, count: 16)
        return authenticator
    }

    /// The form that the script sends to add a passkey; the page with it is open.
    private func registration(
        _ authenticator: TestAuthenticator, _ browser: Browser, challenge: [UInt8]? = nil,
        origin: String = PortalFixture.url,
        name: String = "Work laptop"
    ) throws -> [String: String] {
        var authenticator = authenticator
        let challenge = try challenge ?? self.challenge(browser)
        authenticator.clientData = TestAuthenticator.clientData(
            .create, challenge: challenge, origin: origin)
        return [
            "challenge": Base64URL.encode(challenge),
            "client_data": Base64URL.encode(Array(authenticator.clientData.utf8)),
            "attestation": Base64URL.encode(try authenticator.attestationObject()), "name": name,
        ]
    }

    /// The form that the script sends to sign in; the page with it is open.
    private func signIn(
        _ authenticator: TestAuthenticator, _ browser: Browser, challenge: [UInt8]? = nil,
        origin: String = PortalFixture.url,
        handle: [UInt8] = []
    ) throws -> [String: String] {
        var authenticator = authenticator
        let challenge = try challenge ?? self.challenge(browser)
        authenticator.clientData = TestAuthenticator.clientData(
            .get, challenge: challenge, origin: origin)
        return [
            "challenge": Base64URL.encode(challenge),
            "client_data": Base64URL.encode(Array(authenticator.clientData.utf8)),
            "credential": Base64URL.encode(authenticator.credentialID),
            "authenticator_data": Base64URL.encode(
                authenticator.authenticatorData(withCredential: false)),
            "signature": Base64URL.encode(try authenticator.signature()),
            "user_handle": Base64URL.encode(handle),
        ]
    }

    /// Anna, who has a passkey, signed out.
    private func withPasskey(
        flags: AuthenticatorData.Flags? = nil,
        _ body: (PortalFixture, Browser, TestAuthenticator) async throws -> Void
    ) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            var authenticator = try authenticator()
            if let flags { authenticator.flags = flags }
            try #require(
                try await anna.submit("/me/passkeys", registration(authenticator, anna)).location
                    == "/me/security")
            try await anna.get("/me/security")
            try await anna.submit("/me/sign-out")
            try await anna.get("/me/sign-in")
            try await body(fixture, anna, authenticator)
        }
    }

    @Test func passkey_attestationStatement_isKeptButOptional() async throws {
        let (known, other) = (try TestDevice.Authority(), try TestDevice.Authority())
        try await PortalFixture.with(passkeyRoots: [try Certificate(der: known.certificate)]) {
            fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            for (number, authority) in [known, other, nil].enumerated() {
                try await anna.get("/me/security")
                #expect(anna.page.text.contains(#"data-attestation="direct""#))
                var made = try authenticator(UInt8(number + 1))
                made.statementFormat = authority == nil ? "none" : "apple"
                made.authority = authority
                #expect(
                    try await anna.submit("/me/passkeys", registration(made, anna)).location
                        == "/me/security")
            }
            let attested: [Int64] = try fixture.store.database.values(
                "SELECT is_attested FROM passkeys ORDER BY id")
            #expect(attested == [1, 0, 0])
            // A passkey with a wrong statement is refused.
            try await anna.get("/me/security")
            var forged = try authenticator(9)
            (forged.statementFormat, forged.authority) = ("apple", known)
            var form = try registration(forged, anna)
            let later = TestAuthenticator.clientData(
                .create, challenge: try challenge(anna), origin: PortalFixture.url, more: #","x":1"#
            )
            form["client_data"] = Base64URL.encode(Array(later.utf8))
            #expect(try await anna.submit("/me/passkeys", form).status == 422)
        }
    }

    @Test func passkey_noTrustedRoots_requestsNoAttestation() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            #expect(anna.page.text.contains(#"data-attestation="none""#))
        }
    }

    @Test func passkey_signInFromNewBrowser_sendsNotice() async throws {
        try await withPasskey { fixture, anna, authenticator in
            let handle = fixture.store.passkeys.userHandle("anna")
            try await anna.submit("/me/passkey", signIn(authenticator, anna, handle: handle))
            let before = fixture.mailCount("anna@home.example")
            let elsewhere = Browser(fixture)
            try await elsewhere.get("/me/sign-in")
            var authenticator = authenticator
            authenticator.signCount += 10
            #expect(
                try await elsewhere.submit(
                    "/me/passkey", signIn(authenticator, elsewhere, handle: handle)
                ).location == "/me")
            #expect(fixture.mailCount("anna@home.example") == before + 1)
            #expect(try fixture.mail("anna@home.example").contains("as you, in"))
        }
    }

    @Test func passkey_added_signsInUntilRemoved() async throws {
        try await withPasskey { fixture, anna, authenticator in
            let handle = fixture.store.passkeys.userHandle("anna")
            #expect(
                try await anna.submit("/me/passkey", signIn(authenticator, anna, handle: handle))
                    .location == "/me")
            #expect(try await anna.get("/me").text.contains("Your addresses"))
            try await anna.get("/me/security")
            #expect(anna.page.text.contains("Work laptop") && anna.page.text.contains("last used"))
            #expect(
                anna.page.text.contains("by passkey")
                    && anna.page.text.contains("with a copy in your passkey manager"))
            #expect(try await anna.submit("/me/passkeys/1/remove").location == "/me/security")
            #expect(try await !anna.get("/me/security").text.contains("Work laptop"))
            try await anna.submit("/me/sign-out")
            try await anna.get("/me/sign-in")
            #expect(try await anna.submit("/me/passkey", signIn(authenticator, anna)).status == 403)
            let actions = try fixture.store.audit.entries(limit: 10).map(\.action)
            #expect(actions.contains("passkey.add") && actions.contains("passkey.remove"))
        }
    }

    @Test func passkey_challengeReusedOrForeign_isRefused() async throws {
        try await withPasskey { fixture, anna, authenticator in
            let thief = Browser(fixture)
            try await thief.get("/me/sign-in")
            let foreign = try challenge(thief)
            #expect(
                try await anna.submit(
                    "/me/passkey", signIn(authenticator, anna, challenge: foreign)
                ).status == 403)
            try await anna.get("/me/sign-in")
            let (form, cookie) = (
                try signIn(authenticator, anna), anna.cookies["__Host-postern-browser"]
            )
            #expect(try await anna.submit("/me/passkey", form).location == "/me")
            // The same answer again, in the same browser.
            let again = Browser(fixture)
            again.take("__Host-postern-browser", cookie)
            try await again.get("/me/sign-in")
            #expect(try await again.submit("/me/passkey", form).status == 403)
            try await again.get("/me/sign-in")
            let late = try signIn(authenticator, again)
            fixture.now += PasskeyLimits.challenge
            #expect(try await again.submit("/me/passkey", late).status == 403)
            try await again.get("/me/sign-in")
            #expect(
                try await again.submit("/me/passkey", signIn(authenticator, again)).location
                    == "/me")
        }
    }

    @Test func passkey_invalidAssertion_isRefusedAlike() async throws {
        try await withPasskey { fixture, anna, authenticator in
            var changed: [(String, [String: String])] = [
                (
                    "another origin",
                    try signIn(authenticator, anna, origin: "https://relay.example.evil.example")
                ),
                (
                    "another user",
                    try signIn(
                        authenticator, anna, handle: fixture.store.passkeys.userHandle("bob"))
                ),
                (
                    "a made-up challenge",
                    try signIn(authenticator, anna, challenge: Array(repeating: 1, count: 56))
                ),
            ]
            var other = authenticator
            other.flags = .userPresent
            changed.append(("no verification of the user", try signIn(other, anna)))
            other = authenticator
            other.rpID = "example"
            changed.append(("another relying party", try signIn(other, anna)))
            other = try self.authenticator()
            changed.append(("another key", try signIn(other, anna)))
            other = try self.authenticator(9)
            changed.append(("an unknown passkey", try signIn(other, anna)))
            var answers: Set<String> = []
            for (what, form) in changed {
                let visitor = Browser(fixture)
                visitor.take("__Host-postern-browser", anna.cookies["__Host-postern-browser"])
                try await visitor.get("/me/sign-in")
                let answer = try await visitor.submit("/me/passkey", form)
                #expect(answer.status == 403, "\(what)")
                answers.insert(
                    answer.text.replacing(
                        /(value|data-challenge|data-unknown)="[A-Za-z0-9_-]*"/, with: ""))
                #expect(visitor.cookies["__Host-postern-session"] == nil)
            }
            // Only the log has the reason; the browser learns which passkey no user has.
            #expect(answers.count == 1)
            #expect(
                fixture.log.lines.filter { $0.contains("a sign-in by passkey was refused") }.count
                    == changed.count)
            #expect(
                try await anna.submit("/me/passkey", signIn(authenticator, anna)).location == "/me")
        }
    }

    @Test func passkey_signatureCountNotIncreased_isRefused() async throws {
        try await withPasskey(flags: [.userPresent, .userVerified]) {
            fixture, anna, authenticator in
            var authenticator = authenticator
            authenticator.signCount = 7
            #expect(
                try await anna.submit("/me/passkey", signIn(authenticator, anna)).location == "/me")
            let copy = Browser(fixture)
            try await copy.get("/me/sign-in")
            authenticator.signCount = 7
            #expect(try await copy.submit("/me/passkey", signIn(authenticator, copy)).status == 403)
            #expect(fixture.log.lines.contains { $0.contains("may have been copied") })
        }
    }

    /// The owner's next device may not count, or may count by itself.
    @Test func syncedPasskey_countGoesBack_signsIn() async throws {
        try await withPasskey { fixture, _, authenticator in
            var authenticator = authenticator
            for count in [7, 0, 3, 3] as [UInt32] {
                let browser = Browser(fixture)
                try await browser.get("/me/sign-in")
                authenticator.signCount = count
                #expect(
                    try await browser.submit("/me/passkey", signIn(authenticator, browser)).location
                        == "/me", "\(count)")
            }
        }
    }

    @Test func passkey_alreadyRegistered_isRefused() async throws {
        try await withPasskey { fixture, anna, authenticator in
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            try await bob.get("/me/security")
            #expect(
                try await bob.submit("/me/passkeys", registration(authenticator, bob)).status == 422
            )
            #expect(bob.page.text.contains("known already"))
            let second = try self.authenticator(2)
            try await bob.get("/me/security")
            let form = try registration(second, bob, name: "  ")
            #expect(try await bob.submit("/me/passkeys", form).location == "/me/security")
            // A second press of the button has the outcome of the first; later it is refused.
            try await bob.get("/me/security")
            #expect(try await bob.submit("/me/passkeys", form).location == "/me/security")
            fixture.now += PortalRepository.repetition
            try await bob.get("/me/security")
            #expect(try await bob.submit("/me/passkeys", form).status == 422)
            #expect(try fixture.store.passkeys.passkeys(user: "bob").map(\.name) == ["Passkey"])
            // Another user's passkey is not found under its number.
            let number = try #require(
                try fixture.store.passkeys.passkeys(user: "anna").first?.number)
            try await bob.get("/me/security")
            #expect(try await bob.submit("/me/passkeys/\(number)/remove").status == 404)
        }
    }

    @Test func passkey_registrationOfForeignOrigin_isRefused() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await anna.get("/me/security")
            let authenticator = try authenticator()
            for form in [
                try registration(authenticator, anna, origin: "https://evil.example"),
                try registration(authenticator, anna, challenge: Array(repeating: 1, count: 56)),
            ] {
                try await anna.get("/me/security")
                #expect(try await anna.submit("/me/passkeys", form).status == 422)
            }
            #expect(try fixture.store.passkeys.passkeys(user: "anna").isEmpty)
        }
    }

    @Test func session_endedFromAnotherBrowser_isSignedOut() async throws {
        try await PortalFixture.with { fixture in
            let (phone, laptop) = (Browser(fixture), Browser(fixture))
            try await phone.signIn("anna")
            try await laptop.signIn("anna")
            try await laptop.get("/me/security")
            #expect(
                laptop.page.text.contains("This browser")
                    && laptop.page.text.contains("Another browser"))
            let number = try #require(laptop.page.first(/\/me\/sessions\/([0-9]+)\/end/))
            #expect(
                try await laptop.submit("/me/sessions/\(number)/end").location == "/me/security")
            #expect(try await phone.get("/me").location == "/me/sign-in")
            #expect(try await laptop.get("/me").status == 200)
        }
    }

    /// Once for each user of a browser that can make one, and never to a user who has one.
    @Test func passkey_afterACode_isOfferedOnce() async throws {
        try await PortalFixture.with { fixture in
            let home = Browser(fixture)
            func signIn(_ user: String, can: String) async throws -> String? {
                home.take("__Host-postern-session", nil)
                try await home.get("/me/sign-in")
                try await home.submit("/me/sign-in", ["email": "\(user)@home.example"])
                try await home.follow()
                let code = try fixture.code("\(user)@home.example")
                fixture.now += 60
                return try await home.submit("/me/sent", ["code": code, "passkeys": can]).location
            }
            #expect(try await signIn("anna", can: "") == "/me", "its script says that it cannot")
            #expect(try await signIn("anna", can: "yes") == "/me/offer")
            let page = try await home.get("/me/offer").text
            #expect(
                page.contains("Sign in without a code next time?")
                    && page.contains(#"data-rp="relay.example""#))
            #expect(page.contains(#"href="/me">Not now"#))
            #expect(try await signIn("anna", can: "yes") == "/me")
            #expect(
                try await signIn("bob", can: "yes") == "/me/offer",
                "another user of the same browser")
        }
    }

    @Test func passkey_ofAnotherHost_isSaidToOpenNothing() async throws {
        try await withPasskey { fixture, anna, _ in
            try await anna.signIn("anna")
            #expect(try await !anna.get("/me/security").text.contains("It belongs to"))
            let id: String? = try fixture.store.database.value("SELECT rp_id FROM passkeys")
            #expect(id == "relay.example")
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("UPDATE passkeys SET rp_id = 'old.example'")
            }
            let answer = try await anna.get("/me/security")
            #expect(answer.status == 200)
            let page = answer.text
            #expect(page.contains("It belongs to old.example, and you cannot sign in here with it"))
            #expect(page.contains(#"data-known="""#))
        }
    }

    @Test func passkeyEndpoints_ofThePage_leadToIt() async throws {
        try await PortalFixture.with { fixture in
            let answer = try await Browser(fixture).get("/.well-known/passkey-endpoints")
            #expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
            let page = "\(PortalFixture.url)/me/security"
            #expect(answer.text == "{\"enroll\":\"\(page)\",\"manage\":\"\(page)\"}")
        }
    }

    /// Names and octets of passkeys are sealed or say nothing: no one reads them in the database.
    @Test func passkey_storedName_isSealed() async throws {
        try await withPasskey { fixture, _, _ in
            let rows: [[UInt8]] = try fixture.store.database.values(
                "SELECT name_sealed FROM passkeys")
            #expect(rows.count == 1 && !rows[0].containsSequence(Array("laptop".utf8)))
        }
    }
}

extension [UInt8] {
    fileprivate func containsSequence(_ other: [UInt8]) -> Bool { firstRange(of: other) != nil }
}
