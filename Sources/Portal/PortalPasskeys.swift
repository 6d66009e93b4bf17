// Passkeys on the page: sign-in, adding one, and the sessions of a user.

import Accounts
import Database
import HTTP
import Hummingbird
import Logging
import SignIn
import Support
import WebAuthn

extension PortalPage {
    /// The page as a relying party; nil if its address has no host name, because browsers then make no passkeys.
    static func relyingParty(url: String) -> RelyingParty? {
        guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
        let host = url[start...].prefix { $0 != ":" && $0 != "/" }
        guard !host.isEmpty, !host.hasPrefix("["), !host.allSatisfy({ $0.isNumber || $0 == "." }) else { return nil }
        return RelyingParty(id: String(host), client: ExpectedClient(origins: [url]), requiresUserVerification: true)
    }

    /// The values that the script needs in addition to the form.
    func passkeyValues(_ ceremony: Ceremony, browser: String) throws -> [String: Any]? {
        guard let relyingParty else { return nil }
        let challenge = try store.passkeys.challenge(ceremony, browser: browser, now: now())
        return ["challenge": Base64URL.encode(challenge), "rp": relyingParty.id]
    }

    private func octets(_ request: PortalRequest, _ name: WireText) throws -> [UInt8] {
        guard let octets = Base64URL.decode(request.form[name]?.octets ?? []) else { throw PortalRefusal.foreign }
        return octets
    }

    // MARK: Signing in

    /// One response to every failed sign-in; only the operator learns the reason, and the browser which passkey to forget.
    func signInByPasskey(_ request: PortalRequest) async throws -> Response {
        try requireOwnSignIn()
        guard let browser = request.browser, let relyingParty else { return request.redirect(request.step("/me/sign-in")) }
        guard PortalCSRF.matches(request.form["csrf"], browser) else { return try await stale(request) }
        let networks = request.clientNetworks
        if let seconds = await tries.begin(networks, now: monotonic) { throw PortalRefusal.tooOften(seconds) }
        var isWrong = true
        defer { tries.end(networks, isWrong: isWrong) }
        let (credential, clientData) = (try octets(request, "credential"), try octets(request, "client_data"))
        let (data, signature) = (try octets(request, "authenticator_data"), try octets(request, "signature"))
        let (handle, challenge) = (try octets(request, "user_handle"), try octets(request, "challenge"))
        let old = request.sessionToken
        let outcome = try await pool.run {
            try store.passkeys.signIn(
                relyingParty, credentialID: credential, clientData: clientData, authenticatorData: data, signature: signature,
                userHandle: handle.isEmpty ? nil : handle, challenge: challenge, browser: browser, replacing: old, now: now())
        }
        switch outcome {
        case .session(let session):
            isWrong = false
            return try await enter(request, session)
        case .unknown:
            return try await refusePasskey(request, user: nil, "no such passkey", unknown: Base64URL.encode(credential))
        case .refused(let user, let reason): return try await refusePasskey(request, user: user, reason)
        }
    }

    /// - Parameter unknown: a passkey that no one has any more; the browser may forget it.
    private func refusePasskey(
        _ request: PortalRequest, user: String?, _ reason: String, unknown: String = ""
    ) async throws -> Response {
        logger.warning("a sign-in by passkey was refused", metadata: ["user": "\(user ?? "-")", "detail": "\(reason)"])
        return try await askForAddress(
            request, alert: request.language.text("This passkey does not sign in here. Request a code instead."),
            unknownPasskey: unknown, status: .forbidden)
    }

    // MARK: Signed-in users

    func showSecurity(
        _ request: PortalRequest, _ session: PageSession, problem: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let found = try await pool.run {
            (
                passkeys: try store.passkeys.passkeys(user: session.userID),
                sessions: try store.page.sessions(user: session.userID, now: now()),
                inbox: try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber)),
                signIns: try store.page.signIns(user: session.userID)
            )
        }
        let words = request.words
        var values: [String: Any] = [
            "has_passkeys": !found.passkeys.isEmpty,
            "passkeys": found.passkeys.map { passkey in
                var item: [String: Any] = [
                    "number": passkey.number, "name": passkey.name, "since": words.date(passkey.createdAt),
                    "is_backed_up": passkey.isBackedUp,
                ]
                item["used"] = passkey.lastUsedAt.map(words.date)
                item["elsewhere"] = isOfThisHost(passkey) ? nil : passkey.host
                return item
            },
            "sessions": found.sessions.map {
                [
                    "number": $0.number, "is_this": $0.number == session.number, "since": words.date($0.createdAt),
                    "seen": words.date($0.seenAt),
                ].merging(way($0.method)) { $1 } as [String: Any]
            },
            "sign_ins": found.signIns.map { ["at": words.time($0.at)].merging(way($0.method)) { $1 } as [String: Any] },
        ]
        values["problem"] = problem
        if upstream?.settings.isOnly != true, let token = request.sessionToken,
            var passkey = try passkeyValues(.create, browser: token)
        {
            passkey["attestation"] = passkeyRoots.isEmpty ? "none" : "direct"
            passkey["user"] = Base64URL.encode(store.passkeys.userHandle(session.userID))
            passkey["inbox"] = PortalText.address(found.inbox.address)
            passkey["known"] = found.passkeys.filter(isOfThisHost).map { Base64URL.encode($0.credentialID) }.joined(
                separator: " ")
            values["passkey"] = passkey
        }
        return try request.html(
            "security", values, title: request.language.text("Sign-in"), status: status, current: .security,
            notice: told(request), hasScript: true)
    }

    /// Passkeys belong to a host: where the page has another one now, they open nothing.
    private func isOfThisHost(_ passkey: Passkey) -> Bool {
        passkey.host.hasSameOctets(as: relyingParty?.id ?? "")
    }

    /// How the user signed in, for the three sentences that mention it.
    private func way(_ method: SignInMethod) -> [String: Any] {
        switch method {
        case .mail: ["by_mail": true]
        case .passkey: ["by_passkey": true]
        case .upstream: ["by_provider": ["provider": upstream?.settings.name ?? "OpenID"]]
        }
    }

    private func told(_ request: PortalRequest) -> String? {
        switch request.told {
        case "added": request.language.text("The passkey is added. Use it the next time you sign in.")
        case "removed":
            request.language.text("The passkey is removed. Your device may still offer it; it no longer signs in.")
        case "ended": request.language.text("That browser is signed out.")
        default: nil
        }
    }

    func addPasskey(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard let relyingParty, let token = request.sessionToken else { throw PortalRefusal.notFound }
        let (clientData, attestation) = (try octets(request, "client_data"), try octets(request, "attestation"))
        let (challenge, name) = (try octets(request, "challenge"), request.typed("name"))
        let change = Self.change(session, now())
        do {
            try await pool.run {
                try store.passkeys.add(
                    user: session.userID, relyingParty, clientData: clientData, attestationObject: attestation,
                    challenge: challenge, browser: token, name: name, roots: passkeyRoots, change)
            }
            try await tell(session.userID, .newPasskey, in: request.language)
            return request.redirect("/me/security", told: "added")
        } catch let refusal as StoreFailure where refusal.isRefusal {
            return try await showSecurity(
                request, session, problem: request.sentence(refusal), status: .unprocessableContent)
        }
    }

    func removePasskey(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let (number, change) = (try request.number("passkey"), Self.change(session, now()))
        try await pool.run { try store.passkeys.remove(user: session.userID, number: number, change) }
        return request.redirect("/me/security", told: "removed")
    }

    func endSession(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let number = try request.number("session")
        try await pool.run { try store.page.end(session: number, of: session, now: now()) }
        return request.redirect("/me/security", told: "ended")
    }
}
