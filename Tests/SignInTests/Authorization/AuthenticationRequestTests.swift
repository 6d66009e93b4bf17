// The requests that a user may see, and the answers to the others.

import Support
import TestSupport
import Testing

@testable import SignIn

@Suite(.blocking) struct AuthenticationRequestTests {
    private typealias Fixture = AuthorizationFixture
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    @Test func request_everyParameter_isRead() throws {
        let request = try Fixture.accepted([
            "response_type": "id_token code", "response_mode": "form_post",
            "scope": "name unknown openid",
            "code_challenge": Self.challenge, "code_challenge_method": "S256",
            "prompt": "login consent odd", "max_age": "300",
            "login_hint": "jane@home.example", "ui_locales": "fr-CA fr en_US",
            "acr_values": "phr 1", "display": "touch",
            "claims": "{\"userinfo\":{\"nickname\":null}}", "claims_locales": "se",
            "extra": "foobar",
        ])
        #expect(request.responseType == .codeIDToken)
        #expect(request.target.mode == .formPost)
        #expect(request.target.state == "af0ifjsldkj")
        #expect(request.target.issuer == Fixture.issuer)
        #expect(request.scopes == ["openid", "name"])
        #expect(request.challenge?.count == 32)
        #expect(request.prompts == [.login, .consent])
        #expect(request.maximumAge == 300)
        #expect(request.uiLocales == ["fr-CA", "fr", "en-US"])
        #expect(request.contextClasses == ["phr", "1"])
        #expect(!"\(request)".contains("jane"))
    }

    @Test func request_withoutMode_hasDefaultOfResponseType() throws {
        #expect(try Fixture.accepted().target.mode == .query)
        #expect(try Fixture.accepted(["response_type": "code id_token"]).target.mode == .fragment)
        #expect(try Fixture.accepted(["scope": nil, "nonce": nil, "state": nil]).scopes.isEmpty)
        #expect(try Fixture.accepted(["scope": "openid profile"]).scopes == ["openid", "profile"])
    }

    @Test func request_wrongClientOrRedirectURI_isErrorPage() {
        let pages: [([String: String?], AuthorizationClient?, AuthorizationPageReason)] = [
            (["client_id": nil], nil, .clientMissing), (["client_id": ""], nil, .clientMissing),
            ([:], nil, .clientUnknown),
            (["client_id": "com.example.Juice"], Fixture.juice, .clientUnknown),
            (["redirect_uri": nil], Fixture.juice, .redirectMissing),
            (["redirect_uri": "https://evil.example/"], Fixture.juice, .redirectUnregistered),
        ]
        for (changes, client, reason) in pages {
            #expect(Fixture.verdict(changes, client: client) == .page(reason))
            // With any other fault, and any other content.
            let more = changes.merging([
                "response_type": "token", "request": "e30.e30.", "prompt": "none",
            ]) { $1 ?? $0 }
            #expect(Fixture.verdict(more, client: client) == .page(reason))
        }
    }

    @Test func redirectURI_almostRegistered_isErrorPage() {
        for uri in [
            "https://juice.example/signed-in/", "https://juice.example/signed-in?x=1",
            "https://juice.example/signed-in#x",
            "https://juice.example/signed-in/../evil", "https://juice.example/signed-in%2F",
            "https://JUICE.example/signed-in",
            "https://juice.example:443/signed-in", "https://juice.example@evil.example/signed-in",
            "https://juice.example.evil.example/signed-in", "http://juice.example/signed-in",
            "//juice.example/signed-in",
            " https://juice.example/signed-in",
            "https://juice.example/signed-in\r\nLocation: https://evil.example/",
        ] {
            #expect(
                Fixture.verdict(["redirect_uri": uri]) == .page(.redirectUnregistered), "\(uri)")
        }
    }

    @Test func redirectURI_scriptScheme_isErrorPage() {
        for uri in [
            "javascript:alert(1)", "data:text/html,x", "vbscript:x",
            "JavaScript:alert(1)//https://juice.example",
        ] {
            let client = AuthorizationClient(
                clientID: "com.example.juice", redirectURIs: [uri], isPublic: false)
            for mode in ["query", "fragment", "form_post", "web_message"] {
                #expect(
                    Fixture.verdict(["redirect_uri": uri, "response_mode": mode], client: client)
                        == .page(.redirectUnregistered))
            }
        }
    }

    @Test func request_secondClientOrRedirectURI_isErrorPage() {
        #expect(
            Fixture.verdict(more: [("redirect_uri", "https://evil.example/")])
                == .page(.redirectMissing))
        #expect(Fixture.verdict(more: [("client_id", "com.example.soda")]) == .page(.clientMissing))
    }

    @Test func request_repeatedParameter_isRefused() throws {
        let names: [WireText] = [
            "scope", "nonce", "response_type", "response_mode", "code_challenge", "prompt",
            "request",
        ]
        for name in names {
            let value = Fixture.pairs().first { $0.name == name }?.value ?? "x"
            let error = try Fixture.error(more: [(name, value), (name, value)])
            #expect(error.code == .invalidRequest, "\(name.text)")
            #expect(error.target.state == "af0ifjsldkj")
        }
        #expect(try Fixture.error(more: [("state", "other")]).target.state == nil)
        // Unknown parameters may be repeated.
        #expect(throws: Never.self) { try Fixture.accepted(["extra": "1"]) }
    }

    @Test func error_responseModeAsked_isSentInThatMode() throws {
        #expect(try Fixture.error(["response_type": nil]).target.mode == .query)
        #expect(
            try Fixture.error(["response_type": nil, "response_mode": "form_post"]).target.mode
                == .formPost)
        #expect(try Fixture.error(["response_type": "token"]).code == .unsupportedResponseType)
        #expect(try Fixture.error(["response_type": "token"]).target.mode == .fragment)
        #expect(try Fixture.error(["response_type": "id_token token"]).target.mode == .fragment)
        #expect(try Fixture.error(["response_mode": "query.jwt"]).target.mode == .query)
        #expect(
            try Fixture.error(["prompt": "none login", "response_mode": "fragment"]).target.mode
                == .fragment)
    }

    @Test func request_tokenInQueryMode_isRefused() throws {
        let error = try Fixture.error(["response_type": "code id_token", "response_mode": "query"])
        #expect(error.code == .invalidRequest)
        #expect(error.target.mode == .fragment)
    }

    @Test func request_incompleteOrPlainPKCE_isRefused() throws {
        for changes: [String: String?] in [
            ["code_challenge": Self.challenge],
            ["code_challenge": Self.challenge, "code_challenge_method": "plain"],
            ["code_challenge": Self.challenge, "code_challenge_method": "s256"],
            ["code_challenge_method": "S256"],
            ["code_challenge": "short", "code_challenge_method": "S256"],
            ["code_challenge": "\(Self.challenge)=", "code_challenge_method": "S256"],
        ] {
            #expect(try Fixture.error(changes).code == .invalidRequest, "\(changes)")
        }
    }

    @Test func request_publicClientWithoutPKCE_isRefused() throws {
        let id: [String: String?] = ["client_id": "com.example.pocket"]
        #expect(try Fixture.error(id, client: Fixture.pocket).code == .invalidRequest)
        let asked = id.merging(["code_challenge": Self.challenge, "code_challenge_method": "S256"])
        { $1 }
        #expect(try Fixture.accepted(asked, client: Fixture.pocket).challenge != nil)
    }

    @Test func request_unsupportedParameter_hasItsError() throws {
        #expect(try Fixture.error(["request": "e30.e30."]).code == .requestNotSupported)
        #expect(
            try Fixture.error(["request_uri": "https://juice.example/request"]).code
                == .requestURINotSupported)
        #expect(try Fixture.error(["registration": "{}"]).code == .registrationNotSupported)
    }

    @Test func request_valueOutOfBounds_isRefused() throws {
        let wrong: [[String: String?]] = [
            ["response_type": "code id_token", "nonce": nil],
            ["nonce": String(repeating: "n", count: 513)], ["nonce": "a\u{0}b"],
            ["state": String(repeating: "s", count: 4_097)], ["state": "a\r\nSet-Cookie: b"],
            ["max_age": "-1"],
            ["max_age": "1e3"], ["max_age": "9999999999999"],
            ["login_hint": String(repeating: "x", count: 321)],
            ["id_token_hint": String(repeating: "x", count: 16_385)], ["prompt": "none login"],
            ["prompt": "none odd"],
        ]
        for changes in wrong {
            #expect(try Fixture.error(changes).code == .invalidRequest, "\(changes)")
        }
        #expect(try Fixture.error(["scope": "openid \"email\""]).code == .invalidScope)
        #expect(try Fixture.accepted(["max_age": "0"]).maximumAge == 0)
        #expect(try Fixture.accepted(["prompt": "none"]).prompts == [.none])
    }

    @Test func request_popupWithoutWebOrigin_isRefused() throws {
        for mode in ["web_message", "form_post"] {
            let error = try Fixture.error([
                "redirect_uri": "com.example.juice:/signed-in", "response_mode": mode,
            ])
            #expect(error.code == .invalidRequest)
            #expect(error.target.mode == .query)
        }
        #expect(
            try Fixture.accepted(["redirect_uri": "com.example.juice:/signed-in"]).target.mode
                == .query)
    }

    @Test func request_unreadable_hasNoParameters() {
        for text in ["client_id=%", "client_id=%FF", "a=%00", String(repeating: "a&", count: 101)] {
            #expect(AuthorizationParameters(Array(text.utf8)) == nil)
        }
        #expect(AuthorizationParameters(Array(repeating: UInt8(ascii: "a"), count: 32_769)) == nil)
        #expect(AuthorizationParameters(Array("client_id=a%2Bb+c&x".utf8))?.clientID == "a+b c")
    }
}
