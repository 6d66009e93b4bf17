// Scopes in the client's words, and the name as given.

import Foundation
import SignIn
import Support
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct ScopeTests {
    private func refresh(
        _ party: OpenIDFixture, _ tokens: Response, _ scope: String?
    ) async throws -> Response {
        let token = try #require(tokens.json["refresh_token"].string)
        return try await party.fixture.post(
            "/auth/token",
            [
                ("grant_type", "refresh_token"), ("refresh_token", token),
                ("client_id", OpenIDFixture.client),
                ("client_secret", party.secret),
            ] + (scope.map { [("scope", $0)] } ?? []))
    }

    @Test(arguments: [
        "openid email profile", "openid email name", "profile openid name email", "openid",
    ])
    func token_scope_isWhatTheClientAsked(_ scope: String) async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, _) = try await party.signIn(["scope": scope])
        #expect(
            Set(tokens.json["scope"].string?.split(separator: " ") ?? [])
                == Set(scope.split(separator: " ")))
        let again = try await refresh(party, tokens, scope)
        #expect(again.status == 200)
        #expect(again.json["scope"] == tokens.json["scope"])
        let fewer = try await refresh(party, tokens, "openid")
        #expect(fewer.json["scope"] == "openid")
    }

    @Test(arguments: [
        "openid email name", "phone", "openid\u{301}", "openid openi\u{212A}",
        String(repeating: "\u{301}", count: 9_000),
    ])
    func refresh_otherScope_isRefused(_ scope: String) async throws {
        let party = try await OpenIDFixture()
        let (_, tokens, _) = try await party.signIn(["scope": "openid profile"])
        expectAuthError(try await refresh(party, tokens, scope), "invalid_scope")
    }

    /// A name typed on the consent page must reach apps that get their answer in a query.
    @Test(arguments: ["profile", "name"]) func userInfo_typedName_isThatOfTheApp(
        _ scope: String
    ) async throws {
        let party = try await OpenIDFixture()
        func info(_ name: [String: String]) async throws -> JSONValue {
            let (_, tokens, _) = try await party.signIn(
                ["scope": "openid \(scope)", "response_mode": "query"], page: ["name": name])
            return try await party.userInfo(tokens).json
        }
        let named = try await info(["first_name": "Maria del Carmen", "last_name": "Gómez"])
        #expect(named["given_name"] == "Maria del Carmen" && named["family_name"] == "Gómez")
        #expect(named["name"] == "Maria del Carmen Gómez")
        let other = try await info(["last_name": "D"])
        #expect(other["name"] == "D" && other["given_name"] == .null && other["family_name"] == "D")
        #expect(try await info([:])["name"] == .null)
    }

    /// Requests that are refused cost work too.
    @Test func token_manyRefusedRequests_areTooMany() async throws {
        let party = try await OpenIDFixture()
        func ask(_ more: [(String, String)] = []) async throws -> Response {
            try await party.fixture.post(
                "/auth/token", [("grant_type", "authorization_code"), ("code", "x")] + more)
        }
        for _ in 0..<100 { #expect(try await ask().status == 400) }
        let refused = try await ask()
        #expect(refused.status == 429 && refused.headers[.retryAfter] == "1")
        let page = try await party.fixture.post(
            "/auth/token", [("code", "x")], headers: ["Origin": "https://juice.example"])
        #expect(
            page.status == 429 && page.headers[.accessControlAllowOrigin] == "https://juice.example"
        )
        party.fixture.api.wait(seconds: 1)
        #expect(try await ask().status == 400)
        // Successful requests are not counted.
        party.fixture.api.wait(seconds: 60)
        let secret = [("client_id", OpenIDFixture.client), ("client_secret", party.secret)]
        for _ in 0..<150 {
            let answer = try await party.fixture.post(
                "/auth/token",
                [("grant_type", "client_credentials"), ("scope", "user.migration")] + secret)
            #expect(answer.status == 200)
        }
    }

    @Test func discovery_whatIsGiven_isNamed() async throws {
        let party = try await OpenIDFixture()
        for path in [
            "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server",
        ] {
            let document = try await party.fixture.api.ask(.get, path).json
            #expect(document["scopes_supported"] == .array(["email", "name", "openid", "profile"]))
            for claim in ["name", "given_name", "family_name"] {
                #expect(document["claims_supported"].items.contains(.string(claim)))
            }
        }
    }
}
