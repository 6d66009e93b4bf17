// The signatures of Postern: tokens, events, key sets; and the secrets that teams sign.

import Foundation
import InternetMessage
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct SigningTests {
    private let now = TestIssuer.now

    private func content() -> IdentityTokenContent {
        var content = IdentityTokenContent(
            issuer: TestIssuer.iss, subject: "s1", audience: TestIssuer.audience, issuedAt: now,
            lifetime: 600)
        content.nonce = "n1"
        content.email = .relay(AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example"))
        content.realUserStatus = .likelyReal
        content.authenticatedAt = now - 3
        content.transferSubject = "t1"
        content.code = "c"
        return content
    }

    /// A key id must not begin with a hyphen, because a command would read it as an option.
    @Test func signingKey_generated_hasNoIDLikeAnOption() throws {
        for _ in 0..<400 { #expect(try !IdentitySigningKey.generate().key.keyID.hasPrefix("-")) }
    }

    @Test func identityToken_issued_verifies() async throws {
        let issuer = try await TestIssuer()
        let token = try CompactJWS(try issuer.key.sign(content().claims))
        let claims = try TokenChecks.verify(
            token, issuer: TestIssuer.configuration(), keys: try await issuer.keys(),
            audience: TestIssuer.audience,
            nonce: ExpectedNonce("n1"), now: now)
        #expect(claims.subject == "s1")
        #expect(claims.expiresAt == now + 600)
        #expect(
            claims.email?.revealed == AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example"))
        #expect(claims.emailVerified == true)
        #expect(claims.isPrivateEmail == true)
        #expect(claims.realUserStatus == .likelyReal)
        #expect(claims.transferSubject == "t1")
        #expect(claims.authenticatedAt == now - 3)
        #expect(claims.nonceSupported == true)
        // OpenID Connect Core section 3.3.2.11: the left half of SHA-256("c").
        #expect(claims.all["c_hash"]?.string == "Ln0sA6lQeuJl7PW1NWiFpQ")
        #expect(claims.all["at_hash"] == nil)
    }

    @Test func identityToken_printed_hidesAddress() async throws {
        let issuer = try await TestIssuer()
        var content = content()
        content.email = .shared(InboxAddress(AddrSpec(localPart: "jane", domain: "home.example")))
        let token = try issuer.key.sign(content.claims)
        let claims = try IdentityClaims(payload: try CompactJWS(token).payload)
        for value: Any in [
            content, content.claims, claims, claims.all, try CompactJWS(token),
            content.email as Any, issuer.key,
        ] {
            var dumped = ""
            dump(value, to: &dumped)
            #expect(!"\(value) \(String(reflecting: value)) \(dumped)".contains("home.example"))
        }
        #expect(claims.isPrivateEmail == false)
    }

    @Test func signingKey_fromItsPEM_isTheSame() async throws {
        let (key, pem) = try IdentitySigningKey.generate()
        let again = try IdentitySigningKey(pem: pem)
        #expect(again.keyID == key.keyID)
        #expect(again.publicJWK == key.publicJWK)
        #expect(!"\(key)".contains(pem.split(separator: "\n")[1]))
        #expect(throws: KeySetError.self) {
            try IdentitySigningKey(
                pem: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----")
        }
    }

    @Test func keySet_published_isReadBack() async throws {
        let first = try IdentitySigningKey.generate().key
        let second = try IdentitySigningKey.generate().key
        let set = try JWKSet.parse(PublishedKeys.document([first.publicJWK, second.publicJWK]))
        #expect(set.keys.map(\.keyID) == [first.keyID, second.keyID])
        #expect(set.unusable.isEmpty)
        for key in [first, second] {
            let token = try CompactJWS(try key.sign(TestIssuer.claims))
            #expect(throws: Never.self) {
                try TokenChecks.signature(token, algorithms: [.es256], keys: set)
            }
        }
    }

    /// An issuer's key set is external text, and is shown on a terminal.
    @Test func keySet_keyIDWithControls_isUnusable() async throws {
        var jwk = try IdentitySigningKey.generate().key.publicJWK
        jwk["kid"] = "a\u{1B}[2J"
        let set = try JWKSet.parse(PublishedKeys.document([jwk]))
        #expect(set.keys.isEmpty && set.unusable.count == 1)
        #expect("a\u{1B}[2J\u{9B}x".withoutControls(limit: 5) == "a\u{FFFD}[2J")
    }

    // MARK: Client secrets

    private func secret(
        _ key: IdentitySigningKey, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "iss": "juice", "sub": "com.example.juice", "aud": .string(TestIssuer.iss),
            "iat": .integer(now),
            "exp": .integer(now + ClientSecret.maximumLifetime),
        ]
        change(&claims)
        return try key.sign(claims)
    }

    private func check(_ secret: String, _ keys: JWKSet) -> String {
        do {
            try ClientSecret.verify(
                secret, team: "juice", clientID: "com.example.juice", issuer: TestIssuer.iss,
                keys: keys, now: now)
            return "valid"
        } catch {
            return error.check.rawValue
        }
    }

    @Test func clientSecret_otherTeamClientOrTime_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        let other = try await TestIssuer()
        #expect(check(try secret(issuer.key), keys) == "valid")
        #expect(check(try secret(other.key), keys) == "kid")
        #expect(check(try secret(issuer.key) { $0["iss"] = "other" }, keys) == "iss")
        #expect(check(try secret(issuer.key) { $0["sub"] = "com.example.other" }, keys) == "sub")
        #expect(
            check(try secret(issuer.key) { $0["aud"] = "https://appleid.apple.com" }, keys) == "aud"
        )
        #expect(
            check(
                try secret(issuer.key) {
                    $0["exp"] = .integer(now + ClientSecret.maximumLifetime + 1)
                }, keys) == "exp")
        #expect(check(try secret(issuer.key) { $0["exp"] = .integer(now - 61) }, keys) == "exp")
        #expect(check(try secret(issuer.key) { $0["exp"] = nil }, keys) == "exp")
        #expect(check(try secret(issuer.key) { $0["iat"] = .integer(now + 61) }, keys) == "iat")
        #expect(check(try secret(issuer.key) { $0["iat"] = nil }, keys) == "iat")
        // An iat of long ago cannot stretch the half year.
        #expect(check(try secret(issuer.key) { $0["iat"] = .integer(now - 100) }, keys) == "exp")
        #expect(check("a.b.c", keys) == "format")
    }

    @Test func verificationKey_asPEM_isRead() async throws {
        let issuer = try await TestIssuer()
        let jwk = issuer.key.publicJWK
        let x = try #require(jwk["x"]?.string.flatMap { Base64URL.decode($0.utf8) })
        let y = try #require(jwk["y"]?.string.flatMap { Base64URL.decode($0.utf8) })
        // SubjectPublicKeyInfo of a point on P-256 (RFC 5480).
        let head: [UInt8] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06,
            0x08, 0x2A, 0x86, 0x48, 0xCE,
            0x3D, 0x03,
            0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
        ]
        let pem =
            "-----BEGIN PUBLIC KEY-----\n\(Data(head + x + y).base64EncodedString())\n-----END PUBLIC KEY-----\n"
        let key = try VerificationKey(keyID: issuer.key.keyID, pem: pem)
        #expect(check(try secret(issuer.key), JWKSet([key])) == "valid")
        let rsa = try JSONSerialization.jsonObject(
            with: Data(contentsOf: Files.vectors.appendingPathComponent("test-keys.json")))
        for wrong in [
            "", "nothing", (rsa as? [String: String])?["rsa"] ?? "",
            (rsa as? [String: String])?["ec"] ?? "",
        ] {
            #expect(throws: KeySetError.self) { try VerificationKey(keyID: "k", pem: wrong) }
        }
    }
}
