// Passkeys on the page: sign-in, adding one, and the sessions of a user.

import Accounts
import Database
import HTTP
import Hummingbird
import Languages
import Logging
import SignIn
import Support
import WebAuthn

struct SecurityView: PageView {
    struct Item: Sendable {
        let number: Int64
        let name: String
        let since: String
        let used: String?
        let isBackedUp: Bool
        /// The host where it signs in, if it is not this one.
        let elsewhere: String?
    }

    /// The data that the script needs to make a passkey.
    struct NewPasskey: Sendable {
        let challenge: String
        let rp: String
        let user: String
        let inbox: String
        /// The passkeys that the user has already.
        let known: String
        /// The attestation that the page requests.
        let attestation: String
    }

    struct RecoveryCodes: Sendable {
        let left: String
        let isEmpty: Bool
    }

    struct Authenticator: Sendable {
        let since: String
        let used: String?
    }

    /// How the user signed in, for the sentences that mention it.
    struct Way: Sendable {
        let isMail: Bool
        let isPasskey: Bool
        let provider: String?
    }

    struct Session: Sendable {
        let number: Int64
        let isThis: Bool
        /// As in `Firefox on Linux`; nil if it is not known.
        let browser: String?
        let since: String
        let seen: String
        let way: Way
    }

    struct SignIn: Sendable {
        let at: String
        let way: Way
    }

    static let template = PageTemplate.security
    static let place = PagePlace.security
    static let hasScript = true
    let problem: String?
    let toldOfPasskeys: String?
    let toldOfSessions: String?
    let passkeys: [Item]
    let newPasskey: NewPasskey?
    /// Whether there is a passkey, or can be one.
    let showsPasskeys: Bool
    /// Whether the user must show the second factor before they change how they sign in.
    let mustShowFactor: Bool
    let toldOfFactors: String?
    let authenticator: Authenticator?
    /// Whether every sign-in of the user needs two factors.
    let needsTwoFactors: Bool
    /// Nil for a user without a second factor.
    let recoveryCodes: RecoveryCodes?
    /// Whether the user decides that: an authenticator app serves for nothing else, and the
    /// installation may require it.
    let canChoose: Bool
    let sessions: [Session]
    let signIns: [SignIn]
}

/// Offers a passkey to a user who just signed in by a code.
struct OfferView: PageView {
    static let template = PageTemplate.offer
    static let hasScript = true
    let csrf: String
    let challenge: String
    let rp: String
    let user: String
    let inbox: String
    let attestation: String
    /// The name of the new passkey.
    let name: String
    /// The page on which a user continues without a passkey.
    let onward: String
}

extension PortalPage {
    /// The page as a relying party; nil if its address has no host name, because
    /// browsers then make no passkeys.
    static func relyingParty(url: String) -> RelyingParty? {
        guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
        let host = url[start...].prefix { $0 != ":" && $0 != "/" }
        guard !host.isEmpty, !host.hasPrefix("["), !host.allSatisfy({ $0.isNumber || $0 == "." })
        else { return nil }
        let client = ExpectedClient(origins: [url])
        return RelyingParty(id: String(host), client: client, requiresUserVerification: true)
    }

    /// The data that the script needs for a ceremony; nil if passkeys are not possible here.
    func ceremony(
        _ ceremony: Ceremony, browser: String
    ) throws -> (challenge: String, relyingParty: String)? {
        guard let relyingParty else { return nil }
        let challenge = try store.passkeys.challenge(ceremony, browser: browser, now: now())
        return (Base64URL.encode(challenge), relyingParty.id)
    }

    private func octets(_ request: PortalRequest, _ name: WireText) throws -> [UInt8] {
        guard let octets = Base64URL.decode(request.form[name]?.octets ?? []) else {
            throw PortalRefusal.foreign
        }
        return octets
    }

    // MARK: Signing in

    /// Every failed sign-in gets the same response. Only the operator learns the reason. The
    /// browser learns only which passkey to forget.
    func signInByPasskey(_ request: PortalRequest) async throws -> Response {
        try requireOwnSignIn()
        guard let browser = request.browser, let relyingParty else {
            return request.redirect(request.step("/me/sign-in"))
        }
        guard PortalCSRF.matches(request.form["csrf"], browser) else {
            return try await stale(request)
        }
        let networks = request.clientNetworks
        if let seconds = await tries.begin(networks, now: monotonic) {
            throw PortalRefusal.tooOften(seconds)
        }
        var isWrong = true
        defer { tries.end(networks, isWrong: isWrong) }
        let (credential, clientData) = (
            try octets(request, "credential"), try octets(request, "client_data")
        )
        let (data, signature) = (
            try octets(request, "authenticator_data"), try octets(request, "signature")
        )
        let (handle, challenge) = (
            try octets(request, "user_handle"), try octets(request, "challenge")
        )
        let old = request.sessionToken
        let outcome = try await pool.run {
            try store.passkeys.signIn(
                relyingParty, credentialID: credential, clientData: clientData,
                authenticatorData: data, signature: signature,
                userHandle: handle.isEmpty ? nil : handle, challenge: challenge, browser: browser,
                replacing: old, now: now())
        }
        switch outcome {
        case .session(let session):
            isWrong = false
            return try await enter(request, session)
        case .unknown:
            return try await refusePasskey(
                request, user: nil, "no such passkey", unknown: Base64URL.encode(credential))
        case .refused(let user, let reason):
            return try await refusePasskey(request, user: user, reason)
        }
    }

    /// - Parameter unknown: a passkey that no user has; the browser may forget it.
    private func refusePasskey(
        _ request: PortalRequest, user: String?, _ reason: String, unknown: String = ""
    ) async throws -> Response {
        logger.warning(
            "a sign-in by passkey was refused",
            metadata: ["user": "\(user ?? "-")", "detail": "\(reason)"])
        return try await askForAddress(
            request,
            alert: request.language.text(
                "This passkey was removed here, or belongs to another site. Request a code instead."
            ),
            unknownPasskey: unknown, status: .forbidden)
    }

    // MARK: Signed-in users

    func showSecurity(
        _ request: PortalRequest, _ session: PageSession, problem: String? = nil,
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let found = try await pool.run {
            (
                passkeys: try store.passkeys.passkeys(user: session.userID),
                sessions: try store.page.sessions(user: session.userID, now: now()),
                signIns: try store.page.signIns(user: session.userID),
                codes: try store.recoveryCodes.left(user: session.userID),
                mayChange: try mayChangeFactors(session),
                highest: try store.signInLevels.highest(user: session.userID),
                factors: try store.authenticators.factors(
                    user: session.userID, host: relyingParty?.id)
            )
        }
        let words = request.words
        let ceremony =
            upstream?.settings.isOnly == true
            ? nil : try request.sessionToken.flatMap { try self.ceremony(.create, browser: $0) }
        let newPasskey = found.mayChange ? try await self.newPasskey(session, ceremony) : nil
        let view = SecurityView(
            problem: problem, toldOfPasskeys: request.notice(.passkeys),
            toldOfSessions: request.notice(.sessions),
            passkeys: found.passkeys.map { passkey in
                SecurityView.Item(
                    number: passkey.number, name: passkey.name,
                    since: words.date(passkey.createdAt),
                    used: passkey.lastUsedAt.map(words.date), isBackedUp: passkey.isBackedUp,
                    elsewhere: isOfThisHost(passkey) ? nil : passkey.host)
            }, newPasskey: newPasskey, showsPasskeys: newPasskey != nil || !found.passkeys.isEmpty,
            mustShowFactor: !found.mayChange,
            toldOfFactors: request.notice(.factors),
            authenticator: found.factors.authenticatorSince.map { since in
                SecurityView.Authenticator(
                    since: words.date(since),
                    used: found.factors.authenticatorUsedAt.map(words.date))
            }, needsTwoFactors: level(for: session) > .any,
            recoveryCodes: found.factors.isEmpty || level(for: session) == .any
                ? nil
                : SecurityView.RecoveryCodes(left: String(found.codes), isEmpty: found.codes == 0),
            canChoose: found.factors.authenticatorSince == nil && found.factors.passkeys > 0
                && max(requiredLevel, found.highest) == .any,
            sessions: found.sessions.map {
                SecurityView.Session(
                    number: $0.number, isThis: $0.number == session.number,
                    browser: $0.browser.map { self.name($0, words.language) },
                    since: words.date($0.createdAt),
                    seen: words.date($0.seenAt), way: way($0.method))
            },
            signIns: found.signIns.map {
                SecurityView.SignIn(at: words.time($0.at), way: way($0.method))
            })
        return try request.html(
            view, title: request.language.text("Sign-in"), status: status)
    }

    /// What the script needs to make a passkey; nil where none can be made.
    func newPasskey(
        _ session: PageSession, _ ceremony: (challenge: String, relyingParty: String)?
    ) async throws -> SecurityView.NewPasskey? {
        guard let ceremony else { return nil }
        let (inbox, passkeys) = try await pool.run {
            (
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber)),
                try store.passkeys.passkeys(user: session.userID)
            )
        }
        return SecurityView.NewPasskey(
            challenge: ceremony.challenge, rp: ceremony.relyingParty,
            user: Base64URL.encode(store.passkeys.userHandle(session.userID)),
            inbox: PortalText.address(inbox.address),
            known: passkeys.filter(isOfThisHost).map { Base64URL.encode($0.credentialID) }.joined(
                separator: " "),
            attestation: passkeyRoots.isEmpty ? "none" : "direct")
    }

    /// The browser of a request, as in `Firefox on Linux`; nil if it is not known.
    func browserName(_ request: PortalRequest) -> String? {
        BrowserName(userAgent: request.request.headers[.userAgent]).map {
            name($0, request.language)
        }
    }

    private func name(_ browser: BrowserName, _ language: Catalogue) -> String {
        language.text(
            "{browser} on {system}",
            ["browser": browser.family.rawValue, "system": browser.system.rawValue])
    }

    /// The page after a code, in a browser that can make a passkey. It is shown once.
    func offerPasskey(_ request: PortalRequest) async throws -> Response {
        let onward = request.handle.map { "\(Self.sheetPath)?request=\($0)" } ?? "/me"
        guard let token = request.sessionToken, let session = try await session(request),
            passkeyHost != nil, try await pool.run({ try mayChangeFactors(session) }),
            let ceremony = try ceremony(.create, browser: token)
        else { return request.redirect(onward) }
        let (inbox, known) = try await pool.run {
            (
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber)),
                try store.page.knownBrowser(user: session.userID)
            )
        }
        let view = OfferView(
            csrf: PortalCSRF.token(for: token), challenge: ceremony.challenge,
            rp: ceremony.relyingParty,
            user: Base64URL.encode(store.passkeys.userHandle(session.userID)),
            inbox: PortalText.address(inbox.address),
            attestation: passkeyRoots.isEmpty ? "none" : "direct",
            name: browserName(request) ?? "",
            onward: onward)
        return try request.html(
            view, title: request.language.text("Sign in without a code next time?"),
            cookies: [cookies.set(PortalCookies.offered, known, age: PortalCookies.knownAge)])
    }

    /// Whether to offer a passkey to a user who just signed in by a message.
    func offersPasskey(_ request: PortalRequest, session token: String) async throws -> Bool {
        guard request.form["passkeys"] == "yes", relyingParty != nil,
            upstream?.settings.isOnly != true
        else { return false }
        let offered = cookies.value(PortalCookies.offered, in: request.request.headers)
        return try await pool.run {
            guard let session = try store.page.session(token, now: now()), session.method == .mail,
                session.level >= level(for: session),
                try offered?.hasSameOctets(as: store.page.knownBrowser(user: session.userID))
                    != true
            else { return false }
            return try !store.passkeys.passkeys(user: session.userID).contains(where: isOfThisHost)
        }
    }

    /// Passkeys belong to a host. If the page has moved to another host, they no longer work.
    private func isOfThisHost(_ passkey: Passkey) -> Bool {
        passkey.host.hasSameOctets(as: relyingParty?.id ?? "")
    }

    private func way(_ method: SignInMethod) -> SecurityView.Way {
        SecurityView.Way(
            isMail: method == .mail, isPasskey: method == .passkey,
            provider: method == .upstream ? upstream?.settings.name ?? "OpenID" : nil)
    }

    func addPasskey(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard let relyingParty, let token = request.sessionToken else {
            throw PortalRefusal.notFound
        }
        let (clientData, attestation) = (
            try octets(request, "client_data"), try octets(request, "attestation")
        )
        let (challenge, name) = (try octets(request, "challenge"), request.typed("name"))
        let change = Self.change(session, now())
        guard try await pool.run({ try mayChangeFactors(session) }), passkeyHost != nil else {
            return request.redirect(appStep(request) ?? "/me/change")
        }
        do {
            try await pool.run {
                try store.passkeys.add(
                    user: session.userID, relyingParty, clientData: clientData,
                    attestationObject: attestation,
                    challenge: challenge, browser: token, name: name, roots: passkeyRoots, change)
            }
            try await tell(session.userID, .newPasskey, in: request.language)
            if let step = appStep(request) { return request.redirect(step) }
            return request.redirect("/me/security", told: .passkeyAdded)
        } catch let refusal as StoreFailure where refusal.isRefusal {
            // The page of the user's settings is not for a session that is not sure enough for it.
            guard session.level >= level(for: session) else {
                return request.redirect(appStep(request) ?? Self.secondPath)
            }
            return try await showSecurity(
                request, session, problem: request.sentence(refusal), status: .unprocessableContent)
        }
    }

    /// The next step of the app's request that a form belongs to; nil if it belongs to none.
    private func appStep(_ request: PortalRequest) -> String? {
        guard let handle = request.form["request"]?.text, handle.utf8.count <= 64,
            Base64URL.decode(handle.utf8) != nil
        else { return nil }
        return "\(Self.sheetPath)?request=\(handle)"
    }

    func removePasskey(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard try await pool.run({ try mayChangeFactors(session) }) else {
            return request.redirect("/me/change")
        }
        let (number, change) = (try request.number("passkey"), Self.change(session, now()))
        try await pool.run {
            try store.passkeys.remove(user: session.userID, number: number, change)
        }
        return request.redirect("/me/security", told: .passkeyRemoved)
    }

    func endSession(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let number = try request.number("session")
        try await pool.run { try store.page.end(session: number, of: session, now: now()) }
        return request.redirect("/me/security", told: .sessionEnded)
    }
}
