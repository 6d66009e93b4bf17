// The answers that a page of another origin may read: an app in a browser, without a backend.

import Foundation
import HTTPTypes
import SignIn
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct CrossOriginTests {
    private static let origin = "https://juice.example"

    private func ask(
        _ party: OpenIDFixture, _ method: HTTPRequest.Method, _ path: String, origin: String?,
        _ more: [String: String] = [:]
    ) async throws -> Response {
        var headers = more
        headers["Origin"] = origin
        if method == .post { headers["Content-Type"] = "application/x-www-form-urlencoded" }
        return try await party.fixture.api.ask(
            method, path, body: method == .post ? "grant_type=x" : nil, headers: headers)
    }

    @Test(arguments: [
        "/auth/keys", "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ])
    func publicDocument_anyOrigin_mayRead(_ path: String) async throws {
        let party = try await OpenIDFixture()
        for origin in [nil, Self.origin, "https://evil.example", "null"] {
            let answer = try await ask(party, .get, path, origin: origin)
            #expect(answer.status == 200 && answer.headers[.accessControlAllowOrigin] == "*")
            #expect(answer.headers[.accessControlAllowCredentials] == nil)
        }
        let answer = try await ask(
            party, .options, path, origin: Self.origin, ["Access-Control-Request-Method": "GET"])
        #expect(answer.status == 204 && answer.headers[.accessControlAllowOrigin] == "*")
    }

    @Test(arguments: [
        (HTTPRequest.Method.post, "/auth/token"), (.post, "/auth/revoke"), (.get, "/auth/userinfo"),
    ])
    func endpoint_originOfARedirectURI_mayReadAlsoErrors(
        _ method: HTTPRequest.Method, _ path: String
    ) async throws {
        let party = try await OpenIDFixture()
        let clients = party.fixture.api.store.clients
        for uri in [
            "https://Other.example:443/cb?x=1", "http://127.0.0.1/cb", "com.example.juice:/in",
        ] {
            _ = try clients.addRedirect(
                team: "juice", clientID: OpenIDFixture.client, uri: uri, APIFixture.change)
        }
        for origin in [
            Self.origin, "https://other.example", "http://127.0.0.1:51999", "http://127.0.0.1",
        ] {
            let answer = try await ask(party, method, path, origin: origin)
            #expect(
                answer.status >= 400 && answer.headers[.accessControlAllowOrigin] == origin,
                "\(origin)")
            #expect(
                answer.headers[.vary] == "Origin"
                    && answer.headers[.accessControlAllowCredentials] == nil)
            let before = try await ask(
                party, .options, path, origin: origin,
                [
                    "Access-Control-Request-Method": method.rawValue,
                    "Access-Control-Request-Headers": "authorization",
                ])
            #expect(before.status == 204 && before.headers[.accessControlAllowOrigin] == origin)
            #expect(before.headers[.accessControlAllowHeaders]?.contains("Authorization") == true)
        }
        for origin in [
            nil, "null", "https://evil.example", "https://juice.example.evil.example",
            "https://juice.example:8443",
            "http://juice.example", "https://juice.example/", "https://JUICE.example",
            "https://juice.exampl", "https://",
            "com.example.juice:", "http://127.0.0.2:80", "https://127.0.0.1",
            "http://127.0.0.1:51999/", "https://juice.example%",
            "https://juice.example\u{301}", "https://jui_e.example",
        ] {
            let answer = try await ask(party, method, path, origin: origin)
            #expect(
                answer.headers[.accessControlAllowOrigin] == nil
                    && answer.headers[.vary] == "Origin", "\(origin ?? "-")")
        }
    }

    @Test(arguments: ["/auth/authorize", "/auth/usermigrationinfo", "/v1/accounts", "/healthz"])
    func otherRoute_anyOrigin_readsNothing(_ path: String) async throws {
        let party = try await OpenIDFixture()
        let answer = try await ask(party, .get, path, origin: Self.origin)
        #expect(answer.headers[.accessControlAllowOrigin] == nil)
        let before = try await ask(
            party, .options, path, origin: Self.origin, ["Access-Control-Request-Method": "GET"])
        #expect(before.status >= 400 && before.headers[.accessControlAllowOrigin] == nil)
    }
}
