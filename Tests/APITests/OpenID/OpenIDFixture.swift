// A relying party, a browser and the operator's sign-in page around the provider: whole sign-ins
// through /auth/authorize.

import Foundation
import HTTPTypes
import SignIn
import Support
import Synchronization
import Testing

@testable import API

/// Client com.example.juice with a secret of ours. The page signs jane in with a password, and
/// knows the time of the sign-in.
final class OpenIDFixture: Sendable {
    static let client = "com.example.juice"
    static let redirect = ProviderFixture.redirect

    let fixture: ProviderFixture
    let secret: String
    private let browser = Mutex<(cookie: String?, signedInAt: Int64?, asked: [JSONValue])>(
        (nil, nil, []))

    /// The answer to the relying party.
    struct Callback: Sendable {
        /// Octets before `?` or `#`, or the form's action.
        let address: String
        let mode: String
        let values: [String: String]
        subscript(name: String) -> String? { values[name] }
    }

    init(algorithm: SignatureAlgorithm = .es256, isPublic: Bool = false) async throws {
        fixture = try await ProviderFixture(
            authorizationEndpoint: nil, signInPage: "https://sign-in.example/?x=1")
        let clients = fixture.api.store.openIDClients
        secret = try clients.issueSecret(team: "juice", clientID: Self.client, APIFixture.change)
            .secret
        if algorithm != .es256 || isPublic {
            if isPublic {
                for issued in try clients.secrets(team: "juice", clientID: Self.client) {
                    try clients.revokeSecret(
                        team: "juice", clientID: Self.client, name: issued.name, APIFixture.change)
                }
            }
            try clients.set(
                ClientSettings(isPublic: isPublic, algorithm: algorithm), team: "juice",
                clientID: Self.client, APIFixture.change)
        }
    }

    /// When the user signed in at the page; nil if no one is signed in.
    var signedInAt: Int64? {
        get { browser.withLock { $0.signedInAt } }
        set { browser.withLock { $0.signedInAt = newValue } }
    }
    /// The cookie that it has; nil before the first request.
    var cookie: String? { browser.withLock { $0.cookie } }
    /// The requests to the page, one after the other.
    var asked: [JSONValue] { browser.withLock { $0.asked } }

    // MARK: The browser

    static func query(_ changes: [String: String?] = [:]) -> String {
        var values: [String: String] = [
            "client_id": client, "redirect_uri": redirect, "response_type": "code",
            "scope": "openid", "state": "af0ifjsldkj",
            "nonce": "n-0S6_WzA2Mj",
        ]
        for (name, value) in changes { values[name] = value }
        return FormEncoding.encode(values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// Asks `/auth/authorize`; keeps the cookie.
    func ask(_ query: String, method: HTTPRequest.Method = .get) async throws -> Response {
        let isPost = method == .post
        var headers: [String: String] =
            isPost ? ["Content-Type": "application/x-www-form-urlencoded"] : [:]
        if let cookie = browser.withLock({ $0.cookie }) { headers["Cookie"] = cookie }
        var answer = try await fixture.api.ask(
            method, isPost ? "/auth/authorize" : "/auth/authorize?\(query)",
            body: isPost ? query : nil, headers: headers)
        // A form of another site comes without the cookie, which is set or sent
        // with the redirect that follows.
        if let location = answer.headers[.location],
            location.hasPrefix("\(ProviderFixture.issuer)/auth/begin?")
        {
            answer = try await fixture.api.ask(
                .get, String(location.dropFirst(ProviderFixture.issuer.count)), headers: headers)
        }
        if let cookie = answer.headers[.setCookie]?.split(separator: ";").first {
            browser.withLock { $0.cookie = String(cookie) }
        }
        return answer
    }

    /// The identifier that the page gets.
    func identifier(_ answer: Response) throws -> String {
        let location = try #require(answer.headers[.location], "\(answer.status) \(answer.text)")
        try #require(location.hasPrefix("https://sign-in.example/?x=1&request="))
        return String(location.dropFirst("https://sign-in.example/?x=1&request=".count))
    }

    /// Goes where the page sends the browser, with its cookie or another.
    func fetch(
        _ continuation: String, cookie: String? = nil, method: HTTPRequest.Method = .get
    ) async throws -> Response {
        let own = browser.withLock { $0.cookie } ?? ""
        try #require(continuation.hasPrefix("\(ProviderFixture.issuer)/auth/continue?ticket="))
        let path = String(continuation.dropFirst(ProviderFixture.issuer.count))
        return try await fixture.api.ask(method, path, headers: ["Cookie": cookie ?? own])
    }

    // MARK: The page

    func operate(_ path: String, _ body: [String: Any]) async throws -> Response {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: body), as: UTF8.self)
        return try await fixture.api.ask(.post, path, key: fixture.operatorKey, body: text)
    }

    /// Signs jane in as the request requires, and answers: the address where the browser continues.
    func answer(_ identifier: String, _ more: [String: Any] = [:]) async throws -> String {
        let asked = try await operate("/v1/authorizations/inspect", ["request": identifier])
        try #require(asked.status == 200, "\(asked.text)")
        browser.withLock { $0.asked.append(asked.json) }
        let prompts = Set(asked.json["prompt"].items.compactMap(\.string))
        let age = asked.json["max_age"].number?.integer
        let isFresh =
            signedInAt.map { signed in age.map { signed >= fixture.api.now - $0 } ?? true } ?? false
        if prompts == ["none"], !isFresh {
            let refused = try await operate(
                "/v1/authorizations/refuse", ["request": identifier, "error": "login_required"])
            try #require(refused.status == 200, "\(refused.text)")
            return try #require(refused.json["continue"].string)
        }
        if !isFresh || prompts.contains("login") { signedInAt = fixture.api.now }
        var body: [String: Any] = [
            "request": identifier, "user": "jane", "auth_time": signedInAt ?? 0, "amr": ["pwd"],
            "acr": "1",
        ]
        for (name, value) in more { body[name] = value }
        let answer = try await operate("/v1/authorizations", body)
        try #require(answer.status == 200, "\(answer.text)")
        #expect(answer.json["code"] == .null)
        return try #require(answer.json["continue"].string)
    }

    /// From the request to the answer to the relying party.
    func authorize(
        _ changes: [String: String?] = [:], method: HTTPRequest.Method = .get,
        page: [String: Any] = [:]
    ) async throws -> Callback {
        let first = try await ask(Self.query(changes), method: method)
        if first.headers[.location]?.hasPrefix("https://sign-in.example/") == true {
            return try Self.callback(try await fetch(try await answer(try identifier(first), page)))
        }
        return try Self.callback(first)
    }

    /// The content of an answer to the relying party.
    static func callback(_ answer: Response) throws -> Callback {
        if let location = answer.headers[.location] {
            #expect(answer.status == 303)
            let mark = try #require(location.firstIndex { $0 == "#" || $0 == "?" })
            let pairs = try #require(
                FormEncoding.pairs(Array(location[mark...].dropFirst().utf8), maximum: 20))
            return Callback(
                address: String(location[..<mark]),
                mode: location[mark] == "#" ? "fragment" : "query",
                values: Dictionary(
                    pairs.map { ($0.name.text, $0.value.text) },
                    uniquingKeysWith: { first, _ in first }))
        }
        try #require(answer.status == 200, "\(answer.status) \(answer.text)")
        #expect(answer.headers[.contentType]?.hasPrefix("text/html") == true)
        #expect(answer.headers[.cacheControl] == "no-store")
        let action = try #require(
            answer.text.firstMatch(of: /<form method="post" action="([^"]*)">/)
        ).1
        var values: [String: String] = [:]
        for field in answer.text.matches(of: /<input type="hidden" name="([^"]*)" value="([^"]*)">/)
        {
            values[String(field.1)] = [
                ("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"),
            ].reduce(
                String(field.2)
            ) { $0.replacing($1.0, with: $1.1) }
        }
        return Callback(address: String(action), mode: "form_post", values: values)
    }

    // MARK: The relying party

    /// Exchanges a code with client_secret_basic.
    func redeem(_ code: String, _ more: [(String, String)] = []) async throws -> Response {
        let credentials = "\(FormEncoding.encode(Self.client)):\(FormEncoding.encode(secret))"
        return try await fixture.post(
            "/auth/token",
            [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", Self.redirect)]
                + more,
            headers: ["Authorization": "Basic \(Data(credentials.utf8).base64EncodedString())"])
    }

    /// A sign-in that must succeed: the callback, the token response, and the claims.
    func signIn(
        _ changes: [String: String?] = [:], method: HTTPRequest.Method = .get,
        page: [String: Any] = [:]
    ) async throws -> (callback: Callback, tokens: Response, claims: IdentityClaims) {
        let callback = try await authorize(changes, method: method, page: page)
        #expect(callback["state"] == "af0ifjsldkj")
        #expect(callback["iss"] == ProviderFixture.issuer)
        let code = try #require(
            callback["code"], "\(callback.values.keys.sorted()) \(callback["error"] ?? "")")
        let tokens = try await redeem(code)
        return (callback, tokens, try await claims(tokens))
    }

    /// The claims of an identity token, verified with the published keys.
    func claims(_ tokens: Response) async throws -> IdentityClaims {
        try #require(tokens.status == 200, "\(tokens.text)")
        return try await claims(try #require(tokens.json["id_token"].string))
    }

    func claims(_ token: String) async throws -> IdentityClaims {
        let keys = try JWKSet.parse(try await fixture.api.ask(.get, "/auth/keys").body)
        let token = try CompactJWS(token)
        try TokenChecks.signature(token, algorithms: [.es256, .rs256], keys: keys)
        return try IdentityClaims(payload: token.payload)
    }

    /// Asks /auth/userinfo.
    func userInfo(_ tokens: Response, method: HTTPRequest.Method = .get) async throws -> Response {
        let access = try #require(tokens.json["access_token"].string)
        return try await fixture.api.ask(
            method, "/auth/userinfo", headers: ["Authorization": "Bearer \(access)"])
    }
}
