// /auth/authorize: the request, and the client's response after the user's choice.

import MailCrypto
import SignIn
import Support

/// A request to /auth/authorize that was accepted.
package struct AppleAuthorization: Sendable {
    package enum Mode: String, Sendable { case query, fragment, formPost = "form_post" }

    package let client: AppleClient
    /// Nil for a native app.
    package let redirectURI: String?
    package let mode: Mode
    /// Whether an identity token comes with the code.
    package let wantsToken: Bool
    /// Any of `name` and `email`.
    package let scopes: Set<String>
    package let state: String?
    package let nonce: String?
    let challenge: String?
    /// A part of the request that Apple would refuse.
    package let warning: String?

    /// For a native app: Apple passes it code, token and user on the device.
    package init(native client: AppleClient, scopes: Set<String>, nonce: String?) {
        self.client = client
        redirectURI = nil
        mode = .formPost
        wantsToken = true
        self.scopes = scopes
        (state, self.nonce, challenge, warning) = (nil, nonce, nil, nil)
    }

    /// For a web request. Throws the refusals of Apple's endpoint.
    package init(_ parameters: AppleParameters, seed: AppleSeed) throws(AppleRefusal) {
        let clientID = try parameters.required("client_id")
        guard let client = seed.client(clientID) else {
            throw AppleRefusal(
                .invalidClient, "the seed has no client \(clientID.withoutControls(limit: 120))")
        }
        self.client = client
        guard let redirectURI = parameters["redirect_uri"] else {
            throw AppleRefusal(.unauthorizedClient, "redirect_uri is missing")
        }
        warning = try Self.check(redirectURI, of: client)
        self.redirectURI = redirectURI
        let types = Set(
            try parameters.required("response_type").split(separator: " ").map(String.init))
        guard types == ["code"] || types == ["code", "id_token"] else {
            throw AppleRefusal(
                .invalidRequest, "response_type must be \"code\" or \"code id_token\"")
        }
        wantsToken = types.contains("id_token")
        let words = Set((parameters["scope"] ?? "").split(separator: " ").map(String.init))
        if let other = words.subtracting(["name", "email", "openid"]).min() {
            throw AppleRefusal(
                .invalidScope,
                "the scope \(other.withoutControls(limit: 80)) is not one of name, email, openid")
        }
        scopes = words.subtracting(["openid"])
        let text = parameters["response_mode"] ?? (wantsToken ? "fragment" : "query")
        guard let mode = Mode(rawValue: text) else {
            throw AppleRefusal(
                .invalidRequest,
                text == "web_message"
                    ? "response_mode web_message is not supported in this sandbox"
                    : "response_mode must be query, fragment or form_post")
        }
        if wantsToken, mode == .query {
            throw AppleRefusal(
                .invalidRequest,
                "response_mode must be fragment or form_post if response_type has id_token")
        }
        if !scopes.isEmpty, mode != .formPost {
            throw AppleRefusal(
                .invalidRequest, "response_mode must be form_post if scope has name or email")
        }
        self.mode = mode
        state = parameters["state"]
        nonce = parameters["nonce"]
        challenge = parameters["code_challenge"]
        if challenge != nil, parameters["code_challenge_method"] != "S256" {
            throw AppleRefusal(.invalidRequest, "code_challenge_method must be S256")
        }
    }

    private static func check(_ uri: String, of client: AppleClient) throws(AppleRefusal) -> String?
    {
        let shown = uri.withoutControls(limit: 200)
        if let registered = client.redirectURIs {
            guard registered.contains(where: uri.hasSameOctets(as:)) else {
                throw AppleRefusal(
                    .unauthorizedClient,
                    "redirect_uri \(shown) is not registered for \(client.id), which has "
                        + (registered.isEmpty ? "none" : registered.joined(separator: ", ")))
            }
        } else if !LoopbackAddress.isLoopback(uri) || uri.contains("#") {
            throw AppleRefusal(
                .unauthorizedClient,
                "redirect_uri \(shown) is not an address of this machine, and the seed registers none"
            )
        }
        guard LoopbackAddress.isLoopback(uri) else { return nil }
        return "Apple accepts no redirect_uri with an IP address, localhost or http"
    }

    /// Whether the client gets `user`: only with form_post.
    var givesUser: Bool { mode == .formPost && !scopes.isEmpty }
}

/// The user's choices on the page.
package struct AppleUserAnswer: Sendable {
    package let user: AppleUser
    package let hidesEmail: Bool
    /// As edited by the user.
    package let firstName: String
    package let lastName: String

    package init(user: AppleUser, hidesEmail: Bool, firstName: String, lastName: String) {
        self.user = user
        self.hidesEmail = hidesEmail
        self.firstName = firstName
        self.lastName = lastName
    }

    /// The choices that the page has preselected.
    package init(_ user: AppleUser) {
        self.init(
            user: user, hidesEmail: user.hidesEmail, firstName: user.firstName,
            lastName: user.lastName)
    }
}

/// The response to the client, in the order in which it is written.
package struct AppleAuthorizationResponse: Sendable {
    package let authorization: AppleAuthorization
    package private(set) var parameters: [(name: String, value: String)]

    package init(_ authorization: AppleAuthorization, _ values: [(name: String, value: String?)]) {
        self.authorization = authorization
        parameters = (values + [("state", authorization.state)]).compactMap { name, value in
            value.map { (name, $0) }
        }
    }

    /// The user cancelled.
    package static func cancelled(_ authorization: AppleAuthorization) -> AppleAuthorizationResponse
    {
        AppleAuthorizationResponse(authorization, [("error", "user_cancelled_authorize")])
    }

    /// The address to which the browser goes; nil for a form.
    package var location: String? {
        guard let uri = authorization.redirectURI else { return nil }
        let query = FormEncoding.encode(parameters)
        return switch authorization.mode {
        case .query: uri + (uri.contains("?") ? "&" : "?") + query
        case .fragment: uri + "#" + query
        case .formPost: nil
        }
    }
}

extension AppleState {
    /// Whether the user has signed in to the client before, so that it gets no `user` again.
    package func isKnown(_ user: AppleUser, to client: AppleClient) -> Bool {
        consents[ClientUser(clientID: client.id, userID: user.id)] != nil
    }

    /// Signs the user in: the client gets a code, and the other values it requested.
    package mutating func authorize(
        _ authorization: AppleAuthorization, _ answer: AppleUserAnswer, failure: AppleFailure?,
        now: Int64
    ) throws -> AppleAuthorizationResponse {
        let (client, user) = (authorization.client, answer.user)
        let name = ClientUser(clientID: client.id, userID: user.id)
        let isFirst = consents[name] == nil
        var consent =
            consents[name] ?? AppleConsent(number: nextNumber(), email: nil, isPrivate: false)
        let team = team(of: client)?.id ?? client.team
        if authorization.scopes.contains("email"), consent.email == nil {
            consent.isPrivate = answer.hidesEmail
            consent.email = answer.hidesEmail ? Self.privateEmail(user.id, team: team) : user.email
        }
        consents[name] = consent
        let isNative = authorization.redirectURI == nil
        let code = unique("c")
        codes[code] = AppleCode(
            clientID: client.id, userID: user.id, consent: consent.number,
            redirectURI: authorization.redirectURI,
            nonce: authorization.nonce, challenge: authorization.challenge, issuedAt: now,
            saysRealUserStatus: isNative && isFirst)
        var token: String?
        if authorization.wantsToken {
            var claims = claims(user: user, client: client, consent: consent, now: now)
            claims["nonce"] = authorization.nonce.map(JSONValue.string)
            claims["c_hash"] = .string(IdentityTokenContent.leftHalfHash(code))
            claims["auth_time"] = .integer(now)
            if isNative, isFirst {
                claims["real_user_status"] = .integer(Int64(user.realUserStatus))
            }
            token = try identityToken(claims, clientID: client.id, failure: failure)
        }
        return AppleAuthorizationResponse(
            authorization,
            [
                ("code", code), ("id_token", token),
                (
                    "user",
                    isFirst && authorization.givesUser
                        ? userObject(authorization, answer, consent) : nil
                ),
            ])
    }

    /// The `user` member: JSON in a form field, and not signed.
    private func userObject(
        _ authorization: AppleAuthorization, _ answer: AppleUserAnswer, _ consent: AppleConsent
    ) -> String {
        var user: JSONObject = [:]
        if authorization.scopes.contains("name") {
            user["name"] = .object([
                "firstName": .string(answer.firstName), "lastName": .string(answer.lastName),
            ])
        }
        if authorization.scopes.contains("email") {
            user["email"] = consent.email.map(JSONValue.string)
        }
        return JSONValue.object(user).text
    }

    /// The claims of every identity token, with Apple's types.
    func claims(
        user: AppleUser, client: AppleClient, consent: AppleConsent, now: Int64
    ) -> JSONObject {
        let team = team(of: client)?.id ?? client.team
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(client.id),
            "exp": .integer(now + settings.identityTokenLifetime),
            "iat": .integer(now), "sub": .string(Self.subject(user.id, team: team)),
        ]
        if let email = consent.email {
            claims["email"] = .string(email)
            claims["email_verified"] = flag(true)
            if consent.isPrivate { claims["is_private_email"] = flag(true) }
        }
        claims["nonce_supported"] = .bool(true)
        if let transfer = transfers[client.id], now < transfer.at + Self.transferWindow {
            claims["transfer_sub"] = .string(
                Self.transferSubject(user.id, from: transfer.from, to: transfer.to))
        }
        return claims
    }

    /// `email_verified` and similar values, in the configured form.
    func flag(_ value: Bool) -> JSONValue {
        settings.booleans == .boolean ? .bool(value) : .string(value ? "true" : "false")
    }

    /// Signs a token. A replay returns the previous token, if there is one.
    mutating func identityToken(
        _ claims: JSONObject, clientID: String, failure: AppleFailure?
    ) throws -> String {
        if failure == .replay, let last = lastTokens[clientID] { return last }
        let token = try sign(claims, failure: failure)
        lastTokens[clientID] = token
        return token
    }
}
