// /auth/token and /auth/revoke: grants, and each error of TN3107 with its causes.

import Rehearsal
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct TokenTests {
    @Test func code_exchanged_givesTokensOnce() throws {
        var fixture = try AppleFixture()
        let answer = try fixture.signIn()
        let tokens = try fixture.exchange(answer["code"])
        #expect(
            tokens.members.map(\.name) == [
                "access_token", "token_type", "expires_in", "refresh_token", "id_token",
            ])
        #expect(tokens["token_type"] == "Bearer" && tokens["expires_in"] == .integer(3_600))
        let claims = try fixture.claims(tokens["id_token"]?.string)
        #expect(
            claims["at_hash"]
                == .string(IdentityTokenContent.leftHalfHash(tokens["access_token"]?.string ?? "")))
        #expect(claims["c_hash"] == nil && claims["nonce"] == "n-1")
        fixture.now += 7
        let again = refusal { try fixture.exchange(answer["code"]) }
        #expect(again?.code == .invalidGrant && again?.detail == "The code has already been used.")
        #expect(again?.cause == "the code was used 7 s ago")
    }

    @Test func refreshToken_usedRepeatedly_isNotRotated() throws {
        var fixture = try AppleFixture()
        let tokens = try fixture.exchange(try fixture.signIn()["code"])
        let refresh = [
            "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]?.string ?? "",
        ]
        for _ in 0..<2 {
            fixture.now += 400 * 86_400
            let refreshed = try fixture.token(refresh)
            #expect(
                refreshed.members.map(\.name) == [
                    "access_token", "token_type", "expires_in", "id_token",
                ])
            #expect(refreshed["access_token"] != tokens["access_token"])
            #expect(
                try fixture.claims(refreshed["id_token"]?.string)["iat"] == .integer(fixture.now))
        }
    }

    @Test func code_afterFiveMinutes_isRefused() throws {
        var fixture = try AppleFixture()
        let (early, late) = (try fixture.signIn()["code"], try fixture.signIn()["code"])
        fixture.now += 299
        #expect(try fixture.exchange(early)["id_token"] != nil)
        fixture.now += 4
        let refused = refusal { try fixture.exchange(late) }
        #expect(refused?.code == .invalidGrant && refused?.cause == "the code expired 3 s ago")
    }

    // MARK: invalid_client

    static let wrongClaims: [(claims: JSONObject, cause: String)] = [
        (["exp": .integer(1_789_999_997)], "client_secret expired 3 s ago"),
        (
            ["exp": .integer(1_790_000_000 + 15_777_001)],
            "client_secret expires in 182 days: at most six months"
        ),
        (["exp": .integer(.max)], "far from any date"),
        (["exp": "tomorrow"], "not a number of seconds"),
        (["iat": .integer(1_790_000_400)], "client_secret is issued 6 min in the future"),
        (
            ["iss": "TEAMBBBBBB"],
            #"client_secret has iss "TEAMBBBBBB": it must be the team, TEAMAAAAAA"#
        ),
        (["sub": "com.example.other"], "it must be the client_id, com.example.web"),
        (["aud": "https://app.example"], "it must be the issuer, https://appleid.apple.com"),
        (["iss": .null], "client_secret has no claim iss"),
        (["iat": .null], "client_secret has no claim iat"),
        (["exp": .null], "client_secret has no claim exp"),
        (["aud": .null], "client_secret has no claim aud"),
        (["sub": .null], "client_secret has no claim sub"),
        (["sub": .integer(4)], "has sub a number"),
    ]

    @Test(arguments: wrongClaims.indices) func clientSecret_wrongClaims_isRefused(
        _ index: Int
    ) throws {
        var fixture = try AppleFixture()
        let (claims, cause) = Self.wrongClaims[index]
        let secret = try fixture.secret(claims: claims)
        let refused = refusal { try fixture.token(["grant_type": "refresh_token"], secret: secret) }
        #expect(refused?.code == .invalidClient)
        #expect(refused?.cause.contains(cause) == true, "\(refused?.cause ?? "accepted")")
    }

    @Test func clientSecret_sixMonthsOrAudienceList_isAccepted() throws {
        var fixture = try AppleFixture()
        let code = try fixture.signIn()["code"]
        let secret = try fixture.secret(claims: [
            "exp": .integer(fixture.now + 15_777_000), "aud": .array(["https://appleid.apple.com"]),
        ])
        let parameters = [
            "grant_type": "authorization_code", "code": code ?? "",
            "redirect_uri": AppleFixture.redirect,
        ]
        #expect(try fixture.token(parameters, secret: secret)["id_token"] != nil)
    }

    @Test func clientSecret_wrongHeaderOrSignature_isRefused() throws {
        var fixture = try AppleFixture()
        let good = try fixture.secret()
        let parts = good.split(separator: ".").map(String.init)
        func header(_ text: String) -> String {
            Base64URL.encode(text.utf8) + "." + parts[1] + "." + parts[2]
        }
        let signature = try #require(Base64URL.decode(parts[2].utf8))
        // ECDSA-Sig-Value, the form of libraries that do not support JOSE.
        func number(_ octets: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(octets.drop { $0 == 0 })
            let value = (digits.first ?? 0) >= 0x80 ? [0] + digits : digits
            return [2, UInt8(value.count)] + value
        }
        let sequence = number(signature[..<32]) + number(signature[32...])
        let der = [0x30, UInt8(sequence.count)] + sequence
        var flipped = signature
        flipped[5] ^= 1
        let cases: [(secret: String, cause: String)] = [
            ("secret", "is not a JWT"),
            (header(#"{"alg":"HS256","kid":"KEYAAAAAAA"}"#), "has alg HS256"),
            (header(#"{"alg":"none","kid":"KEYAAAAAAA"}"#), "has alg none"),
            (header(#"{"alg":"ES256"}"#), "has no kid"),
            (
                header(#"{"alg":"ES256","kid":"KEYBBBBBBB"}"#),
                "has kid KEYBBBBBBB, which is not a key of team TEAMAAAAAA"
            ),
            (
                header(#"{"alg":"ES256","kid":"KEYAAAAAAA","typ":"JWT"}"#),
                "not valid under key KEYAAAAAAA"
            ),
            (parts[0] + "." + parts[1] + "." + Base64URL.encode(der), "ASN.1 DER"),
            (parts[0] + "." + parts[1] + "." + Base64URL.encode(flipped), "not valid under key"),
            (
                parts[0] + "." + parts[1] + "." + Base64URL.encode(signature.prefix(40)),
                "has a signature of 40 octets"
            ),
            (parts[0] + "." + Base64URL.encode("[]".utf8) + "." + parts[2], "not a JSON object"),
        ]
        for (secret, cause) in cases {
            let refused = refusal {
                try fixture.token(["grant_type": "refresh_token"], secret: secret)
            }
            #expect(refused?.code == .invalidClient)
            #expect(refused?.cause.contains(cause) == true, "\(refused?.cause ?? "accepted")")
        }
        #expect(AppleClientSecret.shown(good)?.contains(parts[2]) == false)
        let unknown = refusal { try fixture.token([:], clientID: "com.nobody") }
        #expect(unknown?.code == .invalidClient)
    }

    @Test func form_notPercentEncoded_isInvalidClient() {
        for form in [
            "client_secret=a b", "code=%", "code=%zz", "redirect_uri=https://a.example/\u{E9}",
            "a=\"b\"",
        ] {
            let refused = refusal {
                try AppleParameters(
                    form: Array(form.utf8), contentType: "application/x-www-form-urlencoded")
            }
            #expect(refused?.code == .invalidClient, "\(form)")
        }
    }

    // MARK: invalid_request and the rest

    @Test func request_missingOrRepeatedParameter_isInvalidRequest() throws {
        var fixture = try AppleFixture()
        let code = try fixture.signIn()["code"] ?? ""
        for type in [nil, "application/json", "multipart/form-data; boundary=x"] {
            #expect(
                refusal { try AppleParameters(form: Array("a=b".utf8), contentType: type) }?.code
                    == .invalidRequest)
        }
        let type = "application/x-www-form-urlencoded; charset=UTF-8"
        #expect(
            refusal { try AppleParameters(form: Array("a=b&a=b".utf8), contentType: type) }?.cause
                == "a is given twice")
        #expect(
            refusal { try fixture.token(["client_id": "", "grant_type": "refresh_token"]) }?.cause
                == "client_id is missing")
        #expect(
            refusal { try fixture.token(["client_secret": ""]) }?.cause
                == "client_secret is missing")
        #expect(refusal { try fixture.token([:]) }?.cause == "grant_type is missing")
        #expect(
            refusal { try fixture.token(["grant_type": "authorization_code"]) }?.cause
                == "code is missing")
        #expect(
            refusal { try fixture.token(["grant_type": "refresh_token"]) }?.cause
                == "refresh_token is missing")
        let more = ["grant_type": "authorization_code", "code": code, "resource": "x"]
        #expect(
            refusal { try fixture.token(more) }?.cause
                == "the parameter resource is not supported here")
        let secret = try fixture.secret()
        let both = refusal {
            try fixture.state.token(
                AppleParameters([
                    ("client_id", "com.example.web"), ("client_secret", WireText(secret)),
                ]), hasAuthorization: true,
                failure: nil, now: fixture.now)
        }
        #expect(both?.code == .invalidRequest)
        #expect(
            refusal { try fixture.token(["grant_type": "password"]) }?.code == .unsupportedGrantType
        )
        #expect(
            refusal { try fixture.token(["grant_type": "client_credentials", "scope": "all"]) }?
                .code == .invalidScope)
        // None of these used up the code.
        #expect(try fixture.exchange(code)["id_token"] != nil)
    }

    @Test func grant_otherClientOrRedirectURI_isRefused() throws {
        var fixture = try AppleFixture()
        let code = try fixture.signIn()["code"] ?? ""
        let grant = ["grant_type": "authorization_code", "code": code]
        let other = refusal { try fixture.token(grant, clientID: "com.example.other") }
        #expect(other?.code == .invalidGrant)
        #expect(
            other?.detail == "client_id mismatch. The code was not issued to com.example.other.")
        #expect(
            refusal { try fixture.token(grant) }?.cause.contains(
                "is missing, and must be https://app.example") == true)
        #expect(
            refusal {
                try fixture.token(grant.merging(["redirect_uri": "https://b.example"]) { $1 })
            }?.code == .invalidGrant)
        #expect(refusal { try fixture.exchange("c1234") }?.cause == "the code was not issued here")
        let tokens = try fixture.exchange(code)
        let refresh = [
            "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]?.string ?? "",
        ]
        #expect(
            refusal { try fixture.token(refresh, clientID: "com.example.other") }?.code
                == .invalidGrant)
        #expect(
            refusal { try fixture.token(["grant_type": "refresh_token", "refresh_token": "r1"]) }?
                .code == .invalidGrant)
    }

    @Test func code_withChallenge_needsItsVerifier() throws {
        var fixture = try AppleFixture()
        // RFC 7636 appendix B.
        let challenge = [
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
        ]
        let code = try fixture.signIn("anna", AppleFixture.webRequest + challenge)["code"] ?? ""
        let grant = [
            "grant_type": "authorization_code", "code": code, "redirect_uri": AppleFixture.redirect,
        ]
        #expect(refusal { try fixture.token(grant) }?.cause == "code_verifier is missing")
        #expect(
            refusal { try fixture.token(grant.merging(["code_verifier": "x"]) { $1 }) }?.code
                == .invalidGrant)
        let verifier = ["code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"]
        #expect(try fixture.token(grant.merging(verifier) { $1 })["id_token"] != nil)
    }

    // MARK: /auth/revoke

    @Test func revocation_ofEitherToken_endsAuthorization() throws {
        for name in ["refresh_token", "access_token"] {
            var fixture = try AppleFixture()
            let pending = try fixture.signIn()["code"]
            let tokens = try fixture.exchange(try fixture.signIn()["code"])
            func revoke(_ token: String, _ clientID: String = "com.example.web") throws -> String {
                let secret = try fixture.secret(clientID)
                let form = [
                    ("client_id", clientID), ("client_secret", secret), ("token", token),
                    ("token_type_hint", name),
                ]
                return try fixture.state.revoke(
                    AppleParameters(form.map { (name: WireText($0.0), value: WireText($0.1)) }),
                    hasAuthorization: false,
                    now: fixture.now)
            }
            let token = tokens[name]?.string ?? ""
            #expect(refusal { try revoke(token, "com.example.other") }?.code == .invalidGrant)
            #expect(refusal { try revoke("") }?.cause == "token is missing")
            #expect(try revoke(token).contains("of anna were revoked"))
            #expect(try revoke(token).contains("nothing was revoked"))
            #expect(try revoke("unknown").contains("nothing was revoked"))
            let refresh = [
                "grant_type": "refresh_token",
                "refresh_token": tokens["refresh_token"]?.string ?? "",
            ]
            #expect(refusal { try fixture.token(refresh) }?.code == .invalidGrant)
            #expect(refusal { try fixture.exchange(pending) }?.code == .invalidGrant)
            // It is a first time again.
            #expect(try fixture.signIn()["user"] != nil)
            #expect(refusal { try fixture.token(refresh) }?.code == .invalidGrant)
        }
    }
}
