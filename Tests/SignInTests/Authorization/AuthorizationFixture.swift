// Requests to the authorization endpoint as pure values.

import Support
import Testing

@testable import SignIn

/// Client com.example.juice with two redirect URIs and an app's own; com.example.pocket is public.
enum AuthorizationFixture {
    static let issuer = "https://id.example"
    static let redirect = "https://juice.example/signed-in"
    static let juice = AuthorizationClient(
        clientID: "com.example.juice",
        redirectURIs: [
            redirect, "https://juice.example:8443/second?app=1", "com.example.juice:/signed-in",
        ], isPublic: false)
    static let pocket = AuthorizationClient(
        clientID: "com.example.pocket", redirectURIs: [redirect], isPublic: true)

    /// The usual content of a request; a nil removes a parameter.
    static func pairs(_ changes: [String: String?] = [:]) -> [(name: WireText, value: WireText)] {
        var values: [String: String] = [
            "client_id": "com.example.juice", "redirect_uri": redirect, "response_type": "code",
            "scope": "openid email",
            "state": "af0ifjsldkj", "nonce": "n-0S6_WzA2Mj",
        ]
        for (name, value) in changes { values[name] = value }
        return values.sorted { $0.key < $1.key }.map { (WireText($0.key), WireText($0.value)) }
    }

    static func verdict(
        _ changes: [String: String?] = [:], more: [(name: WireText, value: WireText)] = [],
        client: AuthorizationClient? = juice
    ) -> AuthorizationVerdict {
        AuthenticationRequestReader(issuer: issuer).read(
            AuthorizationParameters(pairs(changes) + more), client: client)
    }

    /// The request, which must be accepted.
    static func accepted(
        _ changes: [String: String?] = [:], client: AuthorizationClient? = juice
    ) throws -> AuthenticationRequest {
        guard case .accepted(let request) = verdict(changes, client: client) else {
            throw Unexpected(verdict: "\(verdict(changes, client: client))")
        }
        return request
    }

    /// The error, and where it goes.
    static func error(
        _ changes: [String: String?] = [:], more: [(name: WireText, value: WireText)] = [],
        client: AuthorizationClient? = juice
    ) throws -> (code: AuthorizationError.Code, target: AuthorizationResponseTarget) {
        guard case .error(let error, let target) = verdict(changes, more: more, client: client)
        else {
            throw Unexpected(verdict: "\(verdict(changes, more: more, client: client))")
        }
        return (error.code, target)
    }

    struct Unexpected: Error { let verdict: String }
}
