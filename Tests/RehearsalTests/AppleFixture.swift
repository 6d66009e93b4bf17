// A sandbox as a value: no listener, and a clock that does not move.

import Foundation
import Rehearsal
import SignIn
import Support
import Testing

/// A state with two teams, and the requests of a client.
struct AppleFixture {
    static let keys: [AppleSigningKey] =
        (try? (0..<4).map { _ in try AppleSigningKey.generate() }) ?? []
    static let key = try? IdentitySigningKey.generate().pem
    static let redirect = "https://app.example/signed-in"

    static func seed(_ more: String = "") throws -> AppleSeed {
        let pem = (Self.key ?? "").split(separator: "\n").map { "          " + $0 }.joined(
            separator: "\n")
        return try AppleSeed.read(
            """
            \(more)
            teams:
              - id: TEAMAAAAAA
                keys:
                  - id: KEYAAAAAAA
                    private_key: |
            \(pem)
                clients:
                  - id: com.example.web
                    redirect_uris: [\(redirect)]
                    notifications: http://127.0.0.1:9/events
                  - id: com.example.other
                    redirect_uris: [\(redirect)]
                    dialect: documentation
              - id: TEAMBBBBBB
                keys:
                  - id: KEYBBBBBBB
                    private_key: |
            \(pem)
                clients:
                  - id: com.example.bought
            users:
              - {id: anna, email: anna@example.com, first_name: Anna, last_name: Müller, hide_my_email: true, real_user_status: 2}
              - {id: ben, email: ben@example.com, real_user_status: 1}
            """, name: "seed.yaml")
    }

    var state: AppleState
    var now: Int64 = 1_790_000_000

    init(_ more: String = "") throws {
        try #require(Self.keys.count == 4)
        state = AppleState(
            seed: try Self.seed(more), secret: [UInt8](repeating: 7, count: 32),
            keys: Array(Self.keys.prefix(3)),
            strayKey: Self.keys[3], auto: false)
    }

    /// A client secret. `claims` and `header` replace the right ones; null removes one.
    func secret(
        _ clientID: String = "com.example.web", team: String = "TEAMAAAAAA",
        key: String = "KEYAAAAAAA", claims: JSONObject = [:],
        keyID: String? = nil
    ) throws -> String {
        var all: JSONObject = [
            "iss": .string(team), "iat": .integer(now), "exp": .integer(now + 3_600),
            "aud": "https://appleid.apple.com",
            "sub": .string(clientID),
        ]
        for member in claims.members {
            all[member.name] = member.value == .null ? nil : member.value
        }
        return try IdentitySigningKey(pem: try #require(Self.key)).sign(
            all, type: nil, keyID: keyID ?? key)
    }

    func request(_ parameters: [(String, String)]) throws -> AppleAuthorization {
        try AppleAuthorization(
            AppleParameters(parameters.map { (name: WireText($0.0), value: WireText($0.1)) }),
            seed: state.seed)
    }

    static let webRequest = [
        ("client_id", "com.example.web"), ("redirect_uri", redirect),
        ("response_type", "code id_token"),
        ("response_mode", "form_post"), ("scope", "name email"), ("state", "s&1"), ("nonce", "n-1"),
    ]

    /// A user signs in on the web.
    mutating func signIn(
        _ userID: String = "anna", _ parameters: [(String, String)] = webRequest,
        failure: AppleFailure? = nil
    ) throws -> [String: String] {
        let user = try #require(state.seed.user(userID))
        let response = try state.authorize(
            try request(parameters), AppleUserAnswer(user), failure: failure, now: now)
        return Dictionary(uniqueKeysWithValues: response.parameters.map { ($0.name, $0.value) })
    }

    /// Calls /auth/token.
    mutating func token(
        _ parameters: [String: String], secret: String? = nil, clientID: String = "com.example.web",
        failure: AppleFailure? = nil
    ) throws -> JSONObject {
        let secret = try secret ?? self.secret(clientID)
        let form = ["client_id": clientID, "client_secret": secret].merging(parameters) { $1 }
        return try state.token(
            AppleParameters(form.map { (name: WireText($0.key), value: WireText($0.value)) }),
            hasAuthorization: false,
            failure: failure, now: now
        ).body
    }

    mutating func exchange(_ code: String?, failure: AppleFailure? = nil) throws -> JSONObject {
        try token(
            [
                "grant_type": "authorization_code", "code": try #require(code),
                "redirect_uri": Self.redirect,
            ], failure: failure)
    }

    /// The claims of a token whose signature is valid under the published keys.
    func claims(_ token: String?) throws -> JSONObject {
        let jws = try CompactJWS(try #require(token))
        try TokenChecks.signature(
            jws, algorithms: [.rs256], keys: JWKSet.parse(state.keySet(failure: nil)))
        return try StrictJSON.parseObject(jws.payload, limit: 10_000)
    }
}

/// The refusal of a body; nil if it does not refuse.
func refusal(_ body: () throws -> some Any) -> AppleRefusal? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? AppleRefusal
    }
}
