// The steps of users with a second factor, for the suites about it.

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

protocol SecondFactorSteps {}

extension SecondFactorSteps {
    /// The secret that the open page shows.
    func secret(_ browser: Browser) throws -> [UInt8] {
        let text = try #require(
            browser.page.first(/id="secret" dir="ltr">([A-Z2-7 ]+)</), "\(browser.page.status)")
        return try #require(Base32.decode(text.utf8.filter { $0 != 0x20 }))
    }

    func sealed(_ browser: Browser) throws -> String {
        try #require(browser.page.first(/name="secret" value="([A-Za-z0-9_-]+)"/))
    }

    func code(_ secret: [UInt8], _ fixture: PortalFixture, later steps: Int64 = 0) -> String {
        OneTimePassword.code(secret, step: OneTimePassword.step(at: fixture.now) + steps)
    }

    /// Sets up an authenticator app on the open page; returns its secret. A step later, so that its
    /// next code is another one.
    func setUp(_ browser: Browser, _ fields: [String: String] = [:]) async throws -> [UInt8] {
        let secret = try secret(browser)
        var fields = fields
        fields["secret"] = try sealed(browser)
        fields["code"] = code(secret, browser.fixture)
        try await browser.submit("/me/authenticator", fields)
        // Its message is there, so that the next one is the newest.
        browser.fixture.queue.drain()
        browser.fixture.now += OneTimePassword.period
        return secret
    }

    /// Signs in by mail alone: what comes then.
    func signInByMail(_ browser: Browser, _ user: String = "anna") async throws {
        try await browser.get("/me/sign-in")
        try await browser.submit("/me/sign-in", ["email": "\(user)@home.example"])
        try await browser.get("/me/sent")
        try await browser.submit(
            "/me/sent", ["code": try browser.fixture.code("\(user)@home.example")])
        try await browser.follow()
    }

    /// Anna, who has an authenticator app, signed in by mail alone.
    func withAuthenticator(
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

    func authenticator(_ credential: UInt8 = 1) throws -> TestAuthenticator {
        var authenticator = try TestAuthenticator(.create)
        authenticator.rpID = "relay.example"
        authenticator.credentialID = Array(repeating: credential, count: 16)
        return authenticator
    }

    func challenge(_ browser: Browser) throws -> [UInt8] {
        let text = try #require(
            browser.page.first(/data-challenge="([A-Za-z0-9_-]+)"/), "\(browser.page.text)")
        return try #require(Base64URL.decode(text.utf8))
    }

    /// Makes a passkey on the open page.
    func addPasskey(
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
        browser.fixture.queue.drain()
    }

    /// Uses a passkey on the open page, whose form has a token of its own.
    func usePasskey(
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

    func twoFactor(_ fixture: PortalFixture, _ user: String = "anna") throws -> Int64? {
        try fixture.store.database.value("SELECT two_factor FROM users WHERE handle = \(user)")
    }

    func recoveryCodes(_ browser: Browser) throws -> [String] {
        let text = try #require(browser.page.first(/id="codes" dir="ltr">([a-z2-7\n-]+)</))
        return text.split(separator: "\n").map(String.init)
    }
}
