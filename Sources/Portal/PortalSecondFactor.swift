// The second factor on the page: who must show one, and where it is shown.

import Accounts
import HTTP
import Hummingbird
import Languages
import SignIn
import Support

/// Asks for the second factor of a user who has one.
struct SecondFactorView: PageView {
    /// What the script needs of a passkey; its form has the token of the browser.
    struct PasskeyForm: Sendable {
        let csrf: String
        let challenge: String
        let rp: String
    }

    /// The wait of a user who lost the second factor.
    struct RecoveryWait: Sendable {
        /// How long it lasts.
        let days: String
        /// The day on which it ends; nil if it was not begun.
        let endsOn: String?
        let isOver: Bool
    }

    static let template = PageTemplate.secondFactor
    static let hasScript = true
    let csrf: String
    /// The team of the app's request; nil if no app asks.
    let team: String?
    /// Whether a code of the authenticator app is enough here.
    let takesCode: Bool
    let problem: String?
    let passkey: PasskeyForm?
    /// Whether the user has recovery codes.
    let hasCodes: Bool
    let recoveryProblem: String?
    let wait: RecoveryWait?
    /// Where another passkey is added, for a user who cannot use the old one; nil if that needs
    /// another factor first.
    let newPath: String?
}

/// Leads a user to a second factor who has none that is enough.
struct NewFactorView: PageView {
    static let template = PageTemplate.newFactor
    static let hasScript = true
    let csrf: String
    let team: String?
    /// Whether only a passkey is enough.
    let needsPasskey: Bool
    let newPasskey: SecurityView.NewPasskey?
    /// What the new passkey is called.
    let name: String
    /// Where an authenticator app is set up; nil if that is not enough.
    let appPath: String?
}

extension PortalPage {
    static let secondPath = "/me/second"
    static let authenticatorPath = "/me/authenticator"

    func addSecondFactorRoutes(to routes: Routes) {
        step(routes, .get, "/me/second") { try await showSecond($0) }
        step(routes, .post, "/me/second") { try await once($0) { try await useSecond($0) } }
        step(routes, .get, "/me/change") { try await showChange($0) }
        step(routes, .get, "/me/new-factor") { try await showNewFactor($0) }
        step(routes, .get, "/me/authenticator") { try await showAuthenticator($0) }
        step(routes, .post, "/me/authenticator") {
            try await once($0) { try await addAuthenticator($0) }
        }
        signedIn(routes, .post, "/me/authenticator/remove") {
            try await removeAuthenticator($0, $1)
        }
        step(routes, .post, "/me/recovery") { try await once($0) { try await beginRecovery($0) } }
        step(routes, .post, "/me/recovery/finish") {
            try await once($0) { try await finishRecovery($0) }
        }
        signedIn(routes, .post, "/me/recovery/stop") { try await stopRecovery($0, $1) }
        open(routes, .get, "/me/recovery/{token}") { try await showStopRecovery($0) }
        open(routes, .post, "/me/recovery/{token}") { try await stopRecovery($0) }
        signedIn(routes, .post, "/me/recovery-codes") { try await renewRecoveryCodes($0, $1) }
        signedIn(routes, .post, "/me/two-factors") { try await requireTwoFactors($0, $1) }
    }

    // MARK: What is needed

    /// How surely the user of a session must have signed in for their own page.
    func level(for session: PageSession) -> SignInLevel {
        max(requiredLevel, session.needsTwoFactors ? .twoFactor : .any)
    }

    /// The same for an app's request: the strictest of the installation, the team, the app, the
    /// request and the user. Blocks.
    func level(_ sheet: OpenSheet, for session: PageSession) throws -> SignInLevel {
        let asked = AuthenticationClass.level(sheet.request.contextClasses)
        return max(
            level(for: session), asked,
            try store.signInLevels.level(clientID: sheet.request.clientID),
            sheet.pending.check == nil ? .any : try level(ofCheckFor: session))
    }

    /// Whether a session may change how its user signs in. Whoever has a second factor must have
    /// shown it, and a passkey if an app wants one; a recovery code stands in for both. Factors
    /// that do not work here, as after a change of the host, protect like others.
    /// - Parameter level: the highest level that applies to the user.
    func mayChangeFactors(
        _ session: PageSession, _ factors: SecondFactors, for level: SignInLevel
    ) -> Bool {
        if session.isRecovered { return true }
        guard !factors.isEmpty else {
            return !session.needsTwoFactors || session.level >= .twoFactor
        }
        let needsPasskey = factors.passkeys > 0 && level == .passkey
        return session.level >= (needsPasskey ? .passkey : .twoFactor)
    }

    /// The same, with what the store has of the user. Blocks.
    func mayChangeFactors(_ session: PageSession) throws -> Bool {
        mayChangeFactors(
            session, try secondFactors(session),
            for: max(requiredLevel, try store.signInLevels.highest(user: session.userID)))
    }

    func secondFactors(_ session: PageSession) throws -> SecondFactors {
        try store.authenticators.factors(user: session.userID, host: passkeyHost)
    }

    /// The host of passkeys that are made and used here; nil if there are none.
    var passkeyHost: String? { upstream?.settings.isOnly == true ? nil : relyingParty?.id }

    private func onward(_ request: PortalRequest) -> String {
        request.sheet == nil ? "/me" : request.step(Self.sheetPath)
    }

    /// What a session must show here, the factors of its user, and the team that asks, if any.
    private func secondFactorNeeds(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> (level: SignInLevel, factors: SecondFactors, team: String?) {
        let sheet = request.sheet
        return try await pool.run {
            (
                try sheet.map { try self.level($0, for: session) } ?? self.level(for: session),
                try secondFactors(session), try sheet.map(appearance)?.teamName
            )
        }
    }

    // MARK: GET /me/second

    func showSecond(
        _ request: PortalRequest, problem: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let (level, factors, team) = try await secondFactorNeeds(request, session)
        guard session.level < level else { return request.redirect(onward(request)) }
        if !mayChangeFactors(session, factors, for: level) || Self.isEnough(factors, for: level) {
            return try await askForSecond(
                request, session, factors, level, team: team, problem: problem, status: status)
        }
        return try await newFactor(request, session, level, team: team, token)
    }

    /// Where a session goes that must show the second factor before it changes one.
    func changePath(_ request: PortalRequest) -> String {
        request.sheet == nil ? "/me/change" : request.step(Self.secondPath)
    }

    /// Asks for the second factor of a user who wants to change how they sign in.
    private func showChange(_ request: PortalRequest) async throws -> Response {
        guard request.sessionToken != nil, let session = try await session(request) else {
            return request.redirect("/me/sign-in")
        }
        let (factors, mayChange, highest) = try await pool.run {
            (
                try secondFactors(session), try mayChangeFactors(session),
                try store.signInLevels.highest(user: session.userID)
            )
        }
        guard !mayChange else { return request.redirect("/me/security") }
        return try await askForSecond(
            request, session, factors, max(.twoFactor, requiredLevel, highest), team: nil,
            problem: nil, status: .ok)
    }

    /// Another factor for a user who cannot use the old one, and signed in by another way that is
    /// sure enough.
    private func showNewFactor(_ request: PortalRequest) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let (level, factors, team) = try await secondFactorNeeds(request, session)
        guard session.level < level else { return request.redirect(onward(request)) }
        guard mayChangeFactors(session, factors, for: level) else {
            return request.redirect(request.step(Self.secondPath))
        }
        return try await newFactor(request, session, level, team: team, token)
    }

    private func newFactor(
        _ request: PortalRequest, _ session: PageSession, _ level: SignInLevel, team: String?,
        _ token: String
    ) async throws -> Response {
        let ceremony = passkeyHost == nil ? nil : try self.ceremony(.create, browser: token)
        guard ceremony != nil || level < .passkey else {
            throw PortalRefusal(
                status: .forbidden, title: "A passkey is needed here",
                text:
                    "This service has no passkeys, and the app accepts nothing else. Tell the team of the app."
            )
        }
        let newPasskey = try await self.newPasskey(session, ceremony)
        let view = NewFactorView(
            csrf: PortalCSRF.token(for: token), team: team, needsPasskey: level == .passkey,
            newPasskey: newPasskey,
            name: browserName(request) ?? "",
            appPath: level < .passkey ? request.step(Self.authenticatorPath) : nil)
        return try request.html(view, title: request.language.text("Add a second factor"))
    }

    /// Whether a user has a second factor for a level.
    private static func isEnough(_ factors: SecondFactors, for level: SignInLevel) -> Bool {
        level == .passkey ? factors.passkeys > 0 : !factors.isEmpty
    }

    private func askForSecond(
        _ request: PortalRequest, _ session: PageSession, _ factors: SecondFactors,
        _ level: SignInLevel, team: String?, problem: String?, status: HTTPResponse.Status
    ) async throws -> Response {
        guard let token = request.sessionToken else { throw PortalRefusal.over }
        var (cookie, passkey): (String?, SecondFactorView.PasskeyForm?) = (nil, nil)
        if factors.passkeys > 0, passkeyHost != nil {
            let browser = try request.browser ?? newToken()
            cookie = cookies.set(PortalCookies.browser, browser, age: 86_400)
            passkey = try ceremony(.get, browser: browser).map {
                SecondFactorView.PasskeyForm(
                    csrf: PortalCSRF.token(for: browser), challenge: $0.challenge,
                    rp: $0.relyingParty)
            }
        }
        // A code is not enough for an app that wants a passkey, but it is for adding one.
        let takesCode =
            factors.authenticatorSince != nil && (level < .passkey || factors.passkeys == 0)
        let isRecovery = request.form["recovery"] != nil
        let hasCodes = try await pool.run {
            try session.level < .twoFactor && store.recoveryCodes.left(user: session.userID) > 0
        }
        let canAdd = level == .passkey && session.level >= .twoFactor
        let view = SecondFactorView(
            csrf: PortalCSRF.token(for: token), team: team, takesCode: takesCode,
            problem: isRecovery ? nil : problem, passkey: passkey, hasCodes: hasCodes,
            recoveryProblem: isRecovery ? problem : nil, wait: recoveryWait(request, session),
            newPath: canAdd ? request.step("/me/new-factor") : nil)
        return try request.html(
            view, title: request.language.text("One more step"), status: status,
            cookies: cookie.map { [$0] } ?? [])
    }

    // MARK: POST /me/second

    private func useSecond(_ request: PortalRequest) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        guard PortalCSRF.matches(request.form["csrf"], token) else {
            return request.redirect(request.step(Self.secondPath))
        }
        let language = request.language
        if request.form["recovery"] != nil { return try await useRecoveryCode(request, session) }
        let code = request.typed("code")
        guard TypedCode.digits(code) != nil else {
            return try await showSecond(
                request, problem: language.text("A code has six digits."),
                status: .unprocessableContent)
        }
        let kept = cookies.value(PortalCookies.known, in: request.request.headers)
        let known = try await pool.run { try store.page.knownBrowser(user: session.userID) }
        let isKnown = kept?.hasSameOctets(as: known) == true
        // The same wrong code, of a second press of the button, is no second try.
        let result: AuthenticatorResult =
            request.repetition == .refused
            ? .wrong
            : try await pool.run {
                try store.authenticators.prove(
                    session: session, code: code, isKnown: isKnown, now: now())
            }
        switch result {
        case .accepted:
            return request.redirect(
                onward(request),
                cookies: [cookies.set(PortalCookies.known, known, age: PortalCookies.knownAge)])
        case .none: return request.redirect(onward(request))
        case .wrong:
            return try await showSecond(
                request,
                problem: language.text(
                    "This code is wrong, or was used already. Wait for the next one in your app, and check the time of your phone."
                ),
                status: .unprocessableContent)
        case .tooMany(let seconds):
            logger.warning(
                "too many wrong codes of an authenticator app",
                metadata: ["user": "\(session.userID)"])
            var response = try await showSecond(
                request,
                problem: language.text(
                    "Too many codes were wrong, perhaps those of someone else. Try again in some hours, or use a passkey or a recovery code."
                ),
                status: .tooManyRequests)
            response.headers[.retryAfter] = "\(seconds)"
            return response
        }
    }
}
