// Signing out at an app's request.

import Database
import HTTPTypes
import SignIn
import Support
import TestSupport
import Testing

@testable import API

@Suite(.blocking) struct EndSessionTests {
    private static let after = "https://juice.example/bye"

    private func party() async throws -> (OpenIDFixture, hint: String, subject: String) {
        let party = try await OpenIDFixture()
        _ = try party.fixture.api.store.openIDClients.addLogoutRedirect(
            team: "juice", clientID: OpenIDFixture.client, uri: Self.after, APIFixture.change)
        let (_, tokens, claims) = try await party.signIn()
        return (party, try #require(tokens.json["id_token"].string), claims.subject)
    }

    private func ask(
        _ party: OpenIDFixture, _ pairs: [(name: String, value: String)],
        method: HTTPRequest.Method = .get
    ) async throws -> Response {
        let query = FormEncoding.encode(pairs)
        guard method == .post else {
            return try await party.fixture.api.ask(.get, "/auth/end-session?\(query)")
        }
        return try await party.fixture.api.ask(
            .post, "/auth/end-session", body: query,
            headers: ["Content-Type": "application/x-www-form-urlencoded"])
    }

    private func identifier(_ answer: Response) throws -> String {
        let location = try #require(answer.headers[.location], "\(answer.text)")
        let start = "https://sign-in.example/?x=1&end_session="
        try #require(location.hasPrefix(start))
        return String(location.dropFirst(start.count))
    }

    @Test func endSession_registeredURI_returnsToTheApp() async throws {
        let (party, hint, subject) = try await party()
        // Also long after the token expired.
        party.fixture.api.wait(seconds: 7_200)
        for method in [HTTPRequest.Method.get, .post] {
            let identifier = try identifier(
                try await ask(
                    party,
                    [
                        ("id_token_hint", hint), ("post_logout_redirect_uri", Self.after),
                        ("state", "a b&c"),
                    ], method: method
                ))
            let asked = try await party.operate(
                "/v1/authorizations/inspect", ["end_session": identifier])
            #expect(asked.json["client_id"].string == OpenIDFixture.client)
            #expect(asked.json["user_hint"].string == subject)
            let back = try await party.fixture.api.ask(
                .get, "/auth/signed-out?request=\(identifier)")
            #expect(back.headers[.location] == "\(Self.after)?state=a%20b%26c")
        }
    }

    /// The link of a sign-out must not lead to a removed URI.
    @Test func endSession_redirectURIRemoved_doesNotRedirect() async throws {
        let (party, hint, _) = try await party()
        let identifier = try identifier(
            try await ask(
                party, [("id_token_hint", hint), ("post_logout_redirect_uri", Self.after)]))
        try party.fixture.api.store.openIDClients.removeLogoutRedirect(
            team: "juice", clientID: OpenIDFixture.client, uri: Self.after, APIFixture.change)
        let back = try await party.fixture.api.ask(.get, "/auth/signed-out?request=\(identifier)")
        #expect(back.status == 200 && back.headers[.location] == nil)
    }

    @Test func endSession_unregisteredURI_isErrorPage() async throws {
        let (party, hint, _) = try await party()
        for uri in [
            "https://evil.example/", Self.after + "/", OpenIDFixture.redirect,
            "javascript:alert(1)",
        ] {
            let answer = try await ask(
                party, [("id_token_hint", hint), ("post_logout_redirect_uri", uri)])
            #expect(answer.status == 400 && answer.headers[.location] == nil, "\(uri)")
        }
        // Without an app no URI is registered.
        #expect(try await ask(party, [("post_logout_redirect_uri", Self.after)]).status == 400)
        let other = try await ask(
            party, [("client_id", "com.example.soda"), ("post_logout_redirect_uri", Self.after)])
        #expect(other.status == 400)
    }

    @Test func endSession_tokenOfAnotherClient_isErrorPage() async throws {
        let (party, hint, _) = try await party()
        let answer = try await ask(
            party, [("id_token_hint", hint), ("client_id", "com.example.soda")])
        #expect(answer.status == 400 && answer.text.contains("client_id"))
        let twice = try await ask(
            party, [("client_id", OpenIDFixture.client), ("client_id", OpenIDFixture.client)])
        #expect(twice.status == 400)
    }

    @Test func endSession_withoutValidIDToken_namesNoUser() async throws {
        let (party, hint, _) = try await party()
        let forged = String(hint.dropLast(4)) + "AAAA"
        for pairs in [
            [("client_id", OpenIDFixture.client)],
            [("client_id", OpenIDFixture.client), ("id_token_hint", forged)],
        ] {
            let identifier = try identifier(
                try await ask(
                    party, pairs.map { ($0.0, $0.1) } + [("post_logout_redirect_uri", Self.after)]))
            let asked = try await party.operate(
                "/v1/authorizations/inspect", ["end_session": identifier])
            #expect(asked.json["user_hint"] == .null)
        }
    }

    @Test func signedOut_unsealedRequest_doesNotRedirect() async throws {
        let (party, _, _) = try await party()
        for query in ["", "?request=", "?request=AAAA", "?request=https://evil.example/"] {
            let answer = try await party.fixture.api.ask(.get, "/auth/signed-out\(query)")
            #expect(answer.status == 200 && answer.headers[.location] == nil)
        }
        // A request to sign in is not a request to sign out.
        let signIn = try party.identifier(try await party.ask(OpenIDFixture.query()))
        #expect(
            try await party.fixture.api.ask(.get, "/auth/signed-out?request=\(signIn)").headers[
                .location] == nil)
    }

    /// If the store fails, a browser gets a page in its language, not JSON; on the operator's page
    /// too.
    @Test(arguments: ["/auth/authorize?\(OpenIDFixture.query())", "/auth/end-session"])
    func step_storeFails_isAPageForBrowsersAndAProblemForPrograms(_ path: String) async throws {
        let party = try await OpenIDFixture()
        try party.fixture.api.store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run("ALTER TABLE pending_requests RENAME TO gone")
        }
        let cookie = "__Host-postern-authorization=\(String(repeating: "a", count: 32))"
        let page = try await party.fixture.api.ask(
            .get, path,
            headers: ["Accept": "text/html,*/*;q=0.8", "Accept-Language": "de", "Cookie": cookie])
        #expect(page.status == 500 && page.headers[.contentType] == "text/html; charset=utf-8")
        #expect(
            page.text.contains("<html lang=\"de\" dir=\"ltr\">")
                && page.text.contains("<h1>Hier ist etwas schiefgegangen</h1>"))
        #expect(
            page.headers[.cacheControl] == "no-store"
                && page.headers[.contentSecurityPolicy]?.contains("default-src 'none'") == true)
        // The user's choice counts before the browser's language.
        let chosen = try await party.fixture.api.ask(
            .get, path,
            headers: [
                "Accept": "text/html", "Accept-Language": "de",
                "Cookie": "\(cookie); __Host-postern-language=ar",
            ])
        #expect(chosen.text.contains("<html lang=\"ar\" dir=\"rtl\">"))
        let program = try await party.fixture.api.ask(.get, path, headers: ["Cookie": cookie])
        #expect(
            program.status == 500 && program.headers[.contentType] == "application/problem+json")
    }
}
