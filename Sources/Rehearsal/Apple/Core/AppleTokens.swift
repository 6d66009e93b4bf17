// /auth/token and /auth/revoke: client authentication, grants, and responses.

import MailCrypto
import SignIn
import Support

/// An authenticated client.
struct AppleCaller: Sendable {
    let client: AppleClient
    let team: AppleTeam
}

extension AppleState {
    /// Checks `client_id` and `client_secret`. Throws `invalid_request` and `invalid_client`.
    /// - Parameter hasAuthorization: whether the request also has credentials
    ///   in an Authorization field.
    func caller(
        _ form: AppleParameters, hasAuthorization: Bool, now: Int64
    ) throws(AppleRefusal) -> AppleCaller {
        if hasAuthorization {
            throw AppleRefusal(
                .invalidRequest,
                "the request has an Authorization field: send client_id and client_secret only in the form"
            )
        }
        let clientID = try form.required("client_id")
        let secret = try form.required("client_secret")
        guard let client = seed.client(clientID), let team = team(of: client) else {
            throw AppleRefusal(
                .invalidClient, "the seed has no client \(clientID.withoutControls(limit: 120))")
        }
        try AppleClientSecret.check(
            secret, clientID: client.id, team: team, issuer: issuer, now: now)
        return AppleCaller(client: client, team: team)
    }

    /// Answers /auth/token. Throws `AppleRefusal`, or the error that prevents signing a token.
    /// - Returns: the response, and the action.
    package mutating func token(
        _ form: AppleParameters, hasAuthorization: Bool, failure: AppleFailure?, now: Int64
    ) throws -> (body: JSONObject, done: String) {
        let caller = try caller(form, hasAuthorization: hasAuthorization, now: now)
        let type = try form.required("grant_type")
        guard ["authorization_code", "refresh_token", "client_credentials"].contains(type) else {
            throw AppleRefusal(
                .unsupportedGrantType,
                "grant_type \(type.withoutControls(limit: 80)) is not one of authorization_code, refresh_token, client_credentials"
            )
        }
        // Parameters of other grants are accepted: libraries send scope with each grant.
        try form.require(only: [
            "client_id", "client_secret", "grant_type", "code", "redirect_uri", "code_verifier",
            "refresh_token", "scope",
        ])
        switch type {
        case "authorization_code": return try exchange(form, caller, failure: failure, now: now)
        case "refresh_token": return try refresh(form, caller, failure: failure, now: now)
        default:
            guard try form.required("scope") == "user.migration" else {
                throw AppleRefusal(
                    .invalidScope, "the scope of client_credentials must be user.migration")
            }
            return (
                accessToken(caller.client, nil, consent: 0, now: now).body,
                "an access token for user migration was issued"
            )
        }
    }

    private mutating func exchange(
        _ form: AppleParameters, _ caller: AppleCaller, failure: AppleFailure?, now: Int64
    ) throws -> (body: JSONObject, done: String) {
        let text = try form.required("code")
        guard var code = codes[text] else {
            throw AppleRefusal(
                .invalidGrant, "the code was not issued here",
                detail: "The code has expired or has been revoked.")
        }
        let client = caller.client
        guard code.clientID == client.id else {
            throw AppleRefusal(
                .invalidGrant, "the code was issued to \(code.clientID), not to \(client.id)",
                detail: "client_id mismatch. The code was not issued to \(client.id).")
        }
        if let usedAt = code.usedAt {
            throw AppleRefusal(
                .invalidGrant, "the code was used \(span(now - usedAt)) ago",
                detail: "The code has already been used.")
        }
        guard now < code.issuedAt + Self.codeLifetime else {
            throw AppleRefusal(
                .invalidGrant,
                "the code expired \(span(now - code.issuedAt - Self.codeLifetime)) ago",
                detail: "The code has expired or has been revoked.")
        }
        let given = form["redirect_uri"]
        guard given == code.redirectURI else {
            let wanted =
                code.redirectURI.map { "must be \($0), as at /auth/authorize" }
                ?? "must be left out: the code is a native app's"
            throw AppleRefusal(
                .invalidGrant,
                "redirect_uri \(given?.withoutControls(limit: 200) ?? "is missing, and") \(wanted)")
        }
        let verifier = form["code_verifier"]
        guard verifier.map({ Base64URL.encode(SHA256.hash($0.utf8)) }) == code.challenge else {
            let cause =
                code.challenge == nil
                ? "code_verifier is given, and /auth/authorize had no code_challenge"
                : "code_verifier \(verifier == nil ? "is missing" : "does not belong to the code_challenge")"
            throw AppleRefusal(.invalidGrant, cause)
        }
        let (user, consent) = try holder(code.clientID, code.userID, code.consent, "the code")
        code.usedAt = now
        codes[text] = code
        let refreshToken = unique("r")
        refreshTokens[refreshToken] = AppleGrant(
            clientID: client.id, userID: user.id, consent: consent.number, expiresAt: nil)
        var access = accessToken(client, user.id, consent: consent.number, now: now)
        var claims = claims(user: user, client: client, consent: consent, now: now)
        claims["nonce"] = code.nonce.map(JSONValue.string)
        claims["at_hash"] = .string(IdentityTokenContent.leftHalfHash(access.token))
        claims["auth_time"] = .integer(code.issuedAt)
        if code.saysRealUserStatus {
            claims["real_user_status"] = .integer(Int64(user.realUserStatus))
        }
        access.body["refresh_token"] = .string(refreshToken)
        access.body["id_token"] = .string(
            try identityToken(claims, clientID: client.id, failure: failure))
        return (access.body, "\(user.id) signed in")
    }

    private mutating func refresh(
        _ form: AppleParameters, _ caller: AppleCaller, failure: AppleFailure?, now: Int64
    ) throws -> (body: JSONObject, done: String) {
        guard let grant = refreshTokens[try form.required("refresh_token")],
            let userID = grant.userID
        else {
            throw AppleRefusal(.invalidGrant, "the refresh token was not issued here")
        }
        guard grant.clientID == caller.client.id else {
            throw AppleRefusal(
                .invalidGrant,
                "the refresh token was issued to \(grant.clientID), not to \(caller.client.id)")
        }
        let (user, consent) = try holder(grant.clientID, userID, grant.consent, "the refresh token")
        var access = accessToken(caller.client, user.id, consent: consent.number, now: now)
        var claims = claims(user: user, client: caller.client, consent: consent, now: now)
        claims["at_hash"] = .string(IdentityTokenContent.leftHalfHash(access.token))
        access.body["id_token"] = .string(
            try identityToken(claims, clientID: caller.client.id, failure: failure))
        return (access.body, "the tokens of \(user.id) were refreshed")
    }

    /// The user and the consent of an issued code or token, if the consent is still in force.
    private func holder(
        _ clientID: String, _ userID: String, _ number: Int, _ what: String
    ) throws(AppleRefusal) -> (AppleUser, AppleConsent) {
        if let user = seed.user(userID),
            let consent = consents[ClientUser(clientID: clientID, userID: userID)],
            consent.number == number
        {
            return (user, consent)
        }
        switch consentEnds["\(number)"] {
        case .byClient?, nil:
            throw AppleRefusal(
                .invalidGrant, "\(what) was revoked at /auth/revoke",
                detail: "The code has expired or has been revoked.")
        case .byUser?:
            throw AppleRefusal(
                .invalidRequest, "\(userID) has revoked the authorization of \(clientID)")
        case .accountDeleted?:
            throw AppleRefusal(.invalidGrant, "the Apple Account of \(userID) was deleted")
        }
    }

    private mutating func accessToken(
        _ client: AppleClient, _ userID: String?, consent: Int, now: Int64
    ) -> (token: String, body: JSONObject) {
        let token = unique("a")
        accessTokens[token] = AppleGrant(
            clientID: client.id, userID: userID, consent: consent,
            expiresAt: now + Self.accessTokenLifetime)
        return (
            token,
            [
                "access_token": .string(token), "token_type": "Bearer",
                "expires_in": .integer(Self.accessTokenLifetime),
            ]
        )
    }

    /// Answers /auth/revoke: ends the user's tokens and authorization. A token that is no longer
    /// valid is not an error. Throws `AppleRefusal`.
    /// - Returns: the action.
    package mutating func revoke(
        _ form: AppleParameters, hasAuthorization: Bool, now: Int64
    ) throws(AppleRefusal) -> String {
        let caller = try caller(form, hasAuthorization: hasAuthorization, now: now)
        try form.require(only: ["client_id", "client_secret", "token", "token_type_hint"])
        let token = try form.required("token")
        if let hint = form["token_type_hint"], !["access_token", "refresh_token"].contains(hint) {
            throw AppleRefusal(
                .invalidRequest, "token_type_hint must be access_token or refresh_token")
        }
        guard let grant = refreshTokens[token] ?? accessTokens[token] else {
            return "the token was not issued here: nothing was revoked"
        }
        guard grant.clientID == caller.client.id else {
            throw AppleRefusal(
                .invalidGrant,
                "the token was issued to \(grant.clientID), not to \(caller.client.id)")
        }
        guard let userID = grant.userID,
            endConsent(grant.clientID, userID, number: grant.consent, .byClient)
        else {
            return "the token was no longer valid: nothing was revoked"
        }
        return "the tokens and the authorization of \(userID) were revoked"
    }

    /// Ends a consent; false if there is none, or it has another number.
    mutating func endConsent(
        _ clientID: String, _ userID: String, number: Int? = nil, _ end: AppleConsentEnd
    ) -> Bool {
        let name = ClientUser(clientID: clientID, userID: userID)
        guard let consent = consents[name], number == nil || consent.number == number else {
            return false
        }
        consents[name] = nil
        consentEnds["\(consent.number)"] = end
        return true
    }
}
