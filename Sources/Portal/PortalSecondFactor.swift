// The second factor on the page: asked for after the first, set up, and removed.

import Accounts
import HTTP
import Hummingbird
import Languages
import Mail
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

/// Asks whether a wait is to be stopped, and says that it was.
struct StopRecoveryView: PageView {
    static let template = PageTemplate.stopRecovery
    /// Nil once it is stopped.
    let token: String?
}

/// Shows new recovery codes, once.
struct RecoveryCodesView: PageView {
    static let template = PageTemplate.recoveryCodes
    static let hasScript = true
    /// One on each line.
    let codes: String
    /// Where the user goes on.
    let onward: String
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

/// Sets up an authenticator app.
struct AuthenticatorView: PageView {
    static let template = PageTemplate.authenticator
    let csrf: String
    /// The secret, sealed for the form.
    let sealed: String
    /// The secret as a person types it, in groups of four characters.
    let secret: String
    let uri: String
    /// Data of an SVG path: the QR code.
    let modules: String
    /// Modules on a side, the margin included.
    let side: Int
    let problem: String?
    /// Where the user goes without one.
    let back: String
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
            try store.signInLevels.level(clientID: sheet.request.clientID))
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

    // MARK: GET /me/second

    private func showSecond(
        _ request: PortalRequest, problem: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let sheet = request.sheet
        let (level, factors, team) = try await pool.run {
            (
                try sheet.map { try self.level($0, for: session) } ?? self.level(for: session),
                try secondFactors(session), try sheet.map(appearance)?.teamName
            )
        }
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
        let sheet = request.sheet
        let (level, factors, team) = try await pool.run {
            (
                try sheet.map { try self.level($0, for: session) } ?? self.level(for: session),
                try secondFactors(session), try sheet.map(appearance)?.teamName
            )
        }
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
        // The same wrong code, of a second press of the button, is no second try.
        let kept = cookies.value(PortalCookies.known, in: request.request.headers)
        let known = try await pool.run { try store.page.knownBrowser(user: session.userID) }
        let isKnown = kept?.hasSameOctets(as: known) == true
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
                    "Too many codes were wrong. Try again in some hours, or use a passkey."),
                status: .tooManyRequests)
            response.headers[.retryAfter] = "\(seconds)"
            return response
        }
    }

    // MARK: Recovery codes

    private func useRecoveryCode(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let code = request.typed("recovery")
        let isRight = try await pool.run {
            try store.recoveryCodes.use(session: session, code: code, now: now())
        }
        guard isRight else {
            return try await showSecond(
                request,
                problem: request.language.text("This recovery code is wrong, or was used already."),
                status: .unprocessableContent)
        }
        try await tell(session.userID, .recoveryCodeUsed, in: request.language)
        return request.redirect(
            request.sheet == nil ? "/me/security" : request.step(Self.sheetPath))
    }

    private func renewRecoveryCodes(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        // Codes that were made before two factors were on would let in whoever read the inbox then.
        guard level(for: session) > .any else { throw PortalRefusal.notFound }
        return try await showRecoveryCodes(request, session, onward: "/me/security")
    }

    /// New codes, shown once.
    private func showRecoveryCodes(
        _ request: PortalRequest, _ session: PageSession, onward: String
    ) async throws -> Response {
        let change = Self.change(session, now())
        let codes = try await pool.run {
            try store.recoveryCodes.renew(user: session.userID, change)
        }
        return try request.html(
            RecoveryCodesView(codes: codes.joined(separator: "\n"), onward: onward),
            title: request.language.text("Keep these recovery codes"))
    }

    // MARK: The wait

    /// Nil where there is no such way, or the session is sure enough already.
    private func recoveryWait(
        _ request: PortalRequest, _ session: PageSession
    ) -> SecondFactorView.RecoveryWait? {
        guard recoveryDays > 0, session.level < .twoFactor else { return nil }
        return SecondFactorView.RecoveryWait(
            days: request.language.text("{n} days", count: recoveryDays),
            endsOn: session.recoveryEndsAt.map(request.words.date),
            isOver: session.recoveryEndsAt.map { $0 <= now() } ?? false)
    }

    /// The session of a form of the second-factor page; nil if it is not signed in or has expired.
    private func recoverySession(_ request: PortalRequest) async throws -> PageSession? {
        guard let token = request.sessionToken,
            PortalCSRF.matches(request.form["csrf"], token), recoveryDays > 0
        else { return nil }
        guard let session = try await session(request) else { return nil }
        let factors = try await pool.run { try secondFactors(session) }
        return session.needsTwoFactors || !factors.isEmpty ? session : nil
    }

    private func beginRecovery(_ request: PortalRequest) async throws -> Response {
        let back = request.step(Self.secondPath)
        guard let session = try await recoverySession(request) else {
            return request.redirect(back)
        }
        let change = Self.change(session, now())
        let begun = try await pool.run {
            try store.recoveryWaits.begin(user: session.userID, days: recoveryDays, change)
        }
        if let begun {
            let (day, link) = (
                request.words.date(begun.endsAt), "\(origin)/me/recovery/\(begun.token)"
            )
            try await tellEveryInbox(of: session.userID, .recoveryBegun, in: request.language) {
                $0.day = day
                $0.link = link
            }
        }
        return request.redirect(back)
    }

    private func finishRecovery(_ request: PortalRequest) async throws -> Response {
        guard let session = try await recoverySession(request) else {
            return request.redirect(request.step(Self.secondPath))
        }
        let change = Self.change(session, now())
        try await pool.run { try store.recoveryWaits.finish(user: session.userID, change) }
        try await tellEveryInbox(of: session.userID, .recovery, in: request.language) { _ in }
        return request.redirect(
            request.step("/me/sign-in"), cookies: [cookies.remove(PortalCookies.session)])
    }

    private func stopRecovery(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let change = Self.change(session, now())
        try await pool.run { try store.recoveryWaits.stop(user: session.userID, change) }
        return request.redirect("/me/security", told: .recoveryStopped)
    }

    private func showStopRecovery(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        let isThere = try await pool.run { try store.recoveryWaits.isStoppable(token, now: now()) }
        return try request.html(
            StopRecoveryView(token: isThere ? token : nil),
            title: request.language.text(isThere ? "Stop it?" : "It is stopped"))
    }

    /// The link alone is enough: anyone who reads an inbox of the user may stop it.
    private func stopRecovery(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        try await pool.run { try store.recoveryWaits.stop(token, now: now()) }
        return try request.html(
            StopRecoveryView(token: nil), title: request.language.text("It is stopped"))
    }

    /// Notifies a user at every confirmed inbox.
    private func tellEveryInbox(
        of user: String, _ kind: NoticeKind, in language: Catalogue,
        _ complete: @escaping @Sendable (inout NoticeValues) -> Void
    ) async throws {
        let inboxes = try await pool.run {
            try store.inboxes.inboxes(user: user).filter { $0.isVerified && !$0.isReplyOnly }
        }
        for inbox in inboxes {
            _ = sendLater("no \(kind.rawValue) message was sent") {
                try mailer.tell(kind, to: inbox.address, in: language, now: now(), complete)
            }
        }
    }

    // MARK: Setting up

    /// - Parameter old: the secret that the form had; nil for a new one.
    private func showAuthenticator(
        _ request: PortalRequest, old: (secret: [UInt8], sealed: String)? = nil,
        problem: String? = nil
    ) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let (factors, mayChange, inbox) = try await pool.run {
            (
                try secondFactors(session), try mayChangeFactors(session),
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber))
            )
        }
        guard factors.authenticatorSince == nil else {
            return request.redirect(
                request.sheet == nil ? "/me/security" : request.step(Self.secondPath))
        }
        guard mayChange else { return request.redirect(changePath(request)) }
        let (secret, sealed) =
            try old ?? store.authenticators.newSecret(session: session, now: now())
        let service = mailer.settings.service
        let account = PortalText.address(inbox.address)
        // A long address does not fit into a code that a phone can read: without it,
        // the app shows the service alone.
        let uri = [account, ""].lazy.map {
            OneTimePassword.setUpURI(secret, service: service, account: $0)
        }
        .first { QRCode($0) != nil }
        guard let uri, let code = QRCode(uri) else { throw Problem.fault() }
        let view = AuthenticatorView(
            csrf: PortalCSRF.token(for: token), sealed: sealed,
            secret: Self.groups(OneTimePassword.text(secret)), uri: uri,
            modules: code.path, side: code.size + 8, problem: problem,
            back: request.sheet == nil ? "/me/security" : request.step(Self.secondPath))
        return try request.html(
            view, title: request.language.text("Set up an authenticator app"),
            status: problem == nil ? .ok : .unprocessableContent)
    }

    /// - Parameter text: ASCII.
    private static func groups(_ text: String) -> String {
        let octets = Array(text.utf8)
        return stride(from: 0, to: octets.count, by: 4)
            .map { String(decoding: octets[$0..<min($0 + 4, octets.count)], as: UTF8.self) }.joined(
                separator: " ")
    }

    private func addAuthenticator(_ request: PortalRequest) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let again = request.step(Self.authenticatorPath)
        guard PortalCSRF.matches(request.form["csrf"], token) else {
            return request.redirect(again)
        }
        let (factors, mayChange) = try await pool.run {
            (try secondFactors(session), try mayChangeFactors(session))
        }
        let onward = request.sheet == nil ? "/me/security" : request.step(Self.sheetPath)
        if request.repetition == .done, factors.authenticatorSince != nil {
            return try await showRecoveryCodes(request, session, onward: onward)
        }
        guard factors.authenticatorSince == nil, mayChange else {
            return request.redirect(again)
        }
        let (sealed, code, time) = (request.typed("secret"), request.typed("code"), now())
        guard let secret = store.authenticators.secret(sealed, session: session, now: time) else {
            return request.redirect(again)
        }
        let isRight = try await pool.run {
            try store.authenticators.add(
                session: session, secret: secret, code: code, Self.change(session, time))
        }
        guard isRight else {
            return try await showAuthenticator(
                request, old: (secret, sealed),
                problem: request.language.text(
                    "This code is wrong. Enter the one that your app shows now."))
        }
        try await tell(session.userID, .newAuthenticator, in: request.language)
        return try await showRecoveryCodes(request, session, onward: onward)
    }

    private func removeAuthenticator(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        guard try await pool.run({ try mayChangeFactors(session) }) else {
            return request.redirect("/me/change")
        }
        let change = Self.change(session, now())
        try await pool.run { try store.authenticators.remove(user: session.userID, change) }
        return request.redirect("/me/security", told: .authenticatorRemoved)
    }

    private func requireTwoFactors(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        guard let state = request.form["state"]?.text,
            ["on", "off"].contains(where: { $0.hasSameOctets(as: state) })
        else {
            throw PortalRefusal.notFound
        }
        guard try await pool.run({ try mayChangeFactors(session) }) else {
            return request.redirect("/me/change")
        }
        let (isOn, change) = (state.hasSameOctets(as: "on"), Self.change(session, now()))
        try await pool.run { try store.authenticators.require(isOn, user: session.userID, change) }
        guard isOn else { return request.redirect("/me/security", told: .twoFactorsOff) }
        return try await showRecoveryCodes(request, session, onward: Self.secondPath)
    }
}
