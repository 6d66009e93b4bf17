// The built-in sign-in page. It shows users an app's request, and gives the app the data that they
// agreed to share. `/auth/authorize` passes checked requests to it, and `/auth/continue` delivers
// the responses to the app.

import Accounts
import Database
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import SignIn
import Support

/// The dependencies for answering apps on this page.
package struct SheetProvider: Sendable {
    /// `iss`, without a final slash.
    let issuer: String
    let signer: IdentitySigner
    /// Rates how likely users are to be real; if nil, 0 is given.
    let statuses: (any StatusSource)?

    package init(issuer: String, signer: IdentitySigner, statuses: (any StatusSource)? = nil) {
        self.statuses = statuses
        self.issuer = issuer
        self.signer = signer
    }
}

/// An app's request that is open in the browser.
struct OpenSheet: Sendable {
    /// As in addresses and forms.
    let handle: String
    let pending: PendingAuthorization

    var request: AuthenticationRequest { pending.request }
}

/// The page that shows the data that an app requests, and that lets the user choose.
struct SheetView: PageView {
    static let template = PageTemplate.sheet
    let csrf: String?
    let team: String
    let app: String?
    /// The identifier of the app, if it has an icon.
    let icon: String?
    let initial: String
    let clientID: String
    /// Whether the app has all requested data already.
    let isKnown: Bool
    let asksName: Bool
    let asksEmail: Bool
    let firstName: String?
    let lastName: String?
    let problem: String?
    let sharesEmail: Bool
    /// Empty if there is no choice.
    let inboxes: [InboxOption]
    let inbox: String?
    /// The relay address that the team has.
    let address: String?
    /// Whether the team has the user's own address.
    let hasOwnAddress: Bool
    /// The inbox that the user signed in with.
    let account: String?
}

extension PortalPage {
    static let sheetPath = "/sign-in"

    func addSheetRoutes(to routes: Routes) {
        guard provider != nil else { return }
        step(routes, .get, "/sign-in") { request in
            // GET may send the response or sign out; requests that only
            // check the page (HEAD) must do neither.
            guard request.request.method == .get else { return request.redirect(Self.sheetPath) }
            if let name = request.query("message") { return try await tell(request, name) }
            if let handle = request.query("end_session")?.text {
                return try await showSignOut(request, handle)
            }
            return try await showSheet(request)
        }
        step(routes, .post, "/sign-in") { request in
            if let handle = request.form["end_session"]?.text {
                return try await signOut(request, handle)
            }
            return try await once(request) { try await decide($0) }
        }
    }

    /// Tells the user in their language why an app gets no answer. Anyone can link to this page,
    /// but only to these fixed texts.
    private func tell(_ request: PortalRequest, _ name: WireText) async throws -> Response {
        guard let message = SignInMessage.all.first(where: { WireText($0.name) == name }) else {
            throw PortalRefusal.notFound
        }
        // A signed-in user must not read that they are signed out, even if a link leads here.
        if case .signedOut = message, try await session(request) != nil {
            return request.redirect("/me")
        }
        let language = request.language
        let title = language.text(message.title)
        return try request.html(
            RefusalView(
                title: title,
                text: message.sentences.map { language.text($0) }.joined(separator: " ")),
            title: title,
            status: message.isError ? .badRequest : .ok)
    }

    /// The app's name, icon and team for the page. Blocks. Throws `PortalRefusal` if the app was
    /// removed in the meantime.
    func appearance(_ sheet: OpenSheet) throws -> (name: String?, hasIcon: Bool, teamName: String) {
        guard let shown = try store.apps.appearance(clientID: sheet.request.clientID) else {
            throw PortalRefusal.over
        }
        return shown
    }

    // MARK: The next step

    func step(
        _ sheet: OpenSheet, _ session: PageSession?
    ) async throws -> (SheetStep, StandingConsent?) {
        let clientID = sheet.request.clientID
        let (isOther, consent, level, isFrozen) = try await pool.run {
            let hinted = try sheet.pending.subjectHint.map { hint in
                (user: try store.provider.userID(hint: hint, clientID: clientID, now: now()), ())
            }
            let consent = try session.flatMap {
                try store.provider.consent(user: $0.userID, clientID: clientID)
            }
            let level = try session.map { try self.level(sheet, for: $0) } ?? .any
            return (
                hinted.map { $0.user != session?.userID } ?? false, consent, level,
                try store.freezes.isTeamFrozen(ofApp: clientID)
            )
        }
        return (
            SheetStep(
                sheet.pending, session: session, isOther: isOther, consent: consent, level: level,
                hasPasskeys: passkeyHost != nil, isTeamFrozen: isFrozen),
            consent
        )
    }

    /// The app's request of a handle; nil if it is unknown or too old.
    func sheet(_ handle: String) async throws -> OpenSheet? {
        let time = now()
        return try await pool.run {
            try store.authorizations.open(handle, now: time).map {
                OpenSheet(handle: handle, pending: $0)
            }
        }
    }

    /// The next page for a user who is signed in already, for example in another tab: the consent
    /// page, or their own page. Nil if they must sign in first.
    /// - Parameter told: the notice for a sign-in that the form did not cause: another user may
    ///   have sent the form.
    func goOn(_ request: PortalRequest, told: PortalNotice? = nil) async throws -> Response? {
        if let sheet = request.sheet, sheet.pending.isFinished {
            return try await finished(request, sheet)
        }
        guard let session = try await session(request) else { return nil }
        guard let sheet = request.sheet else { return request.redirect("/me", told: told) }
        if case .door = try await step(sheet, session).0 { return nil }
        return request.redirect(request.step(Self.sheetPath), told: told)
    }

    /// The app has the response already: the user went back in the browser.
    func finished(_ request: PortalRequest, _ sheet: OpenSheet) async throws -> Response {
        let language = request.language
        let team = try await pool.run { try appearance(sheet).teamName }
        let title =
            sheet.pending.check == nil
            ? language.text("This sign-in is finished") : language.text("This check is finished")
        let view = RefusalView(
            title: title,
            text: sheet.pending.check == nil
                ? language.text(
                    "Go back to {team}. If you are not signed in there, start again there.",
                    ["team": team])
                : language.text(
                    "Go back to {team}. If it still asks, start again there.", ["team": team]),
            back: WebOrigin(sheet.request.target.redirectURI).map {
                RefusalView.Back(
                    target: $0.description, label: language.text("Back to {team}", ["team": team]))
            })
        return try request.html(view, title: title)
    }

    func showSheet(_ request: PortalRequest) async throws -> Response {
        guard let sheet = request.sheet else { throw PortalRefusal.over }
        if sheet.pending.isFinished { return try await finished(request, sheet) }
        if let check = sheet.pending.check { return try await showCheck(request, sheet, check) }
        let session = try await session(request)
        let (step, consent) = try await step(sheet, session)
        switch step {
        case .refuse(let error): return try await refuse(request, sheet, error)
        case .door: return request.redirect(request.step("/me/sign-in"))
        case .secondFactor: return request.redirect(request.step(Self.secondPath))
        case .answer(let session): return try await answer(request, sheet, session, consent, nil)
        case .ask(let session, let isKnown):
            return try await ask(request, sheet, session, consent, isKnown: isKnown)
        }
    }

    private func ask(
        _ request: PortalRequest, _ sheet: OpenSheet, _ session: PageSession,
        _ consent: StandingConsent?, isKnown: Bool,
        problem: SheetChoice.Problem? = nil
    ) async throws -> Response {
        let clientID = sheet.request.clientID
        let (app, user, inboxes) = try await pool.run {
            (
                try appearance(sheet), try store.users.user(session.userID),
                try store.inboxes.inboxes(user: session.userID).filter {
                    $0.isVerified && !$0.isReplyOnly
                }
            )
        }
        let scopes = sheet.request.scopes
        // While the user uses any of the team's apps, the address that
        // the team has does not change.
        let isSettled = consent?.isTeamsLive ?? false
        let chosen = Self.standingInbox(consent, inboxes)
        let typed = SheetChoice(request.form)
        let name =
            request.form["decision"] == nil
            ? consent?.name ?? PersonName(stored: user.name) : typed.name
        func address(_ inbox: Inbox?) -> String? { inbox.map { PortalText.address($0.address) } }
        let showsAddress = isSettled && scopes.contains(UserScope.email)
        let view = SheetView(
            csrf: request.sessionToken.map(PortalCSRF.token), team: app.teamName, app: app.name,
            icon: app.hasIcon ? clientID : nil, initial: PortalText.initial(app.teamName),
            clientID: clientID,
            isKnown: isKnown, asksName: !isKnown && UserScope.haveName(scopes),
            asksEmail: !isKnown && scopes.contains(UserScope.email) && !isSettled,
            firstName: name.given,
            lastName: name.family,
            problem: problem.map { problem in
                switch problem {
                case .tooLong: request.language.text("The name is too long.")
                case .character(let place):
                    request.language.text(
                        "The character at place {n} is not allowed: it is not seen, changes the direction of text, or is one mark too many.",
                        ["n": String(place)])
                }
            }, sharesEmail: !typed.hidesEmail,
            inboxes: inboxes.count > 1
                ? inboxes.map { InboxOption($0, isChosen: $0.number == chosen) } : [],
            inbox: address(inboxes.first { $0.number == chosen } ?? inboxes.first),
            address: showsAddress && consent?.emailKind == .privateRelay
                ? consent?.address?.wireForm : nil,
            hasOwnAddress: showsAddress && consent?.emailKind == .real,
            account: address(inboxes.first { $0.number == session.inboxNumber }))
        return try request.html(
            view, title: request.language.text("Continue to {team}", ["team": app.teamName]),
            status: problem == nil ? .ok : .unprocessableContent)
    }

    /// `Inbox.number` of the inbox for the team's mail if the user chooses none.
    private static func standingInbox(_ consent: StandingConsent?, _ inboxes: [Inbox]) -> Int64? {
        consent?.inboxNumber ?? inboxes.first(where: \.isDefault)?.number
    }

    // MARK: POST /sign-in

    func decide(_ request: PortalRequest) async throws -> Response {
        guard let sheet = request.sheet else { throw PortalRefusal.over }
        let session = try await session(request)
        // Before sign-in, the form has the token of the browser.
        let token = session == nil ? request.browser : request.sessionToken
        guard let token, PortalCSRF.matches(request.form["csrf"], token) else {
            // The page is older than the session, for example after Back or in another tab. It is
            // shown again with the current state.
            return request.redirect(request.step(Self.sheetPath))
        }
        if let check = sheet.pending.check,
            let response = try await decideCheck(request, sheet, check, session)
        {
            return response
        }
        switch (request.form["decision"], session) {
        case ("cancel", _):
            let time = now()
            let isFirst = try await pool.run {
                try store.authorizations.finish(sheet.handle, now: time)
            }
            guard isFirst || request.repetition == .done else {
                return try await finished(request, sheet)
            }
            return try await refuse(
                request, sheet, AuthorizationError(.accessDenied, "the user cancelled"))
        case ("other", let session?):
            try await pool.run { try store.page.signOut(session, everywhere: false, now: now()) }
            return request.redirect(
                request.step("/me/sign-in"), cookies: [cookies.remove(PortalCookies.session)])
        case ("continue", let session?):
            let (step, consent) = try await step(sheet, session)
            // The decision is made again with the current state: the session may be too old now,
            // and a consent may have ended.
            guard case .ask(_, let isKnown) = step, isKnown || request.form["known"] == nil else {
                return request.redirect(request.step(Self.sheetPath))
            }
            let choice = SheetChoice(request.form)
            if let problem = choice.problem {
                return try await ask(
                    request, sheet, session, consent, isKnown: isKnown, problem: problem)
            }
            return try await answer(request, sheet, session, consent, isKnown ? nil : choice)
        default: return request.redirect(request.step(Self.sheetPath))
        }
    }

    /// Sends the app its response.
    /// - Parameter choice: nil if the app already has everything.
    private func answer(
        _ request: PortalRequest, _ sheet: OpenSheet, _ session: PageSession,
        _ consent: StandingConsent?, _ choice: SheetChoice?
    ) async throws -> Response {
        guard let provider else { throw PortalRefusal.over }
        let (asked, time) = (sheet.request, now())
        let maker = try await maker(for: sheet, now: time)
        let change = Self.change(session, time)
        let found = try await pool.run { () -> String? in
            try protect(session, for: sheet, change)
            if let again = try store.authorizations.ticketAgain(
                sheet.handle, of: session.userID, now: time)
            {
                return again
            }
            var authorization = ProviderAuthorization(
                grant: AuthorizationRequest(clientID: asked.clientID, userID: session.userID),
                redirectURI: asked.target.redirectURI, scopes: asked.scopes, nonce: asked.nonce,
                challenge: asked.challenge,
                orgID: nil, authenticatedAt: session.authenticatedAt)
            authorization.method = session.authentication
            authorization.signIn = session.method
            authorization.session = session.number
            if let choice {
                let stored = PersonName(stored: try store.users.user(session.userID).name)
                let standing = Self.standingInbox(
                    consent, try store.inboxes.inboxes(user: session.userID))
                choice.apply(to: &authorization, storedName: stored, standingInbox: standing)
            }
            // Only the data that the user saw: a name that they removed does not come from the
            // store.
            let name = choice?.name ?? PersonName(given: nil, family: nil)
            var ticket = ""
            do {
                _ = try store.provider.authorize(authorization, statuses: provider.statuses, change)
                {
                    given, connection throws(StoreFailure) in
                    ticket = try store.authorizations.answer(
                        connection, sheet.handle, with: AuthorizationResponse(asked, given),
                        of: session.userID, now: time)
                } finish: { issued throws(StoreFailure) in
                    try AuthorizationAnswer(issued, name: name, maker)
                }
            } catch let failure as StoreFailure where failure.code == .refused(.exists) {
                // The user pressed the button twice, and the other press was faster.
                return try store.authorizations.ticketAgain(
                    sheet.handle, of: session.userID, now: time)
            }
            return ticket
        }
        return try await goOn(request, sheet, ticket: found)
    }

    /// Makes the tokens of an app's response, signed as it registered.
    func maker(for sheet: OpenSheet, now time: Int64) async throws -> TokenMaker {
        guard let provider else { throw PortalRefusal.over }
        let clientID = sheet.request.clientID
        let algorithm =
            try await pool.run { try store.clients.client(clientID)?.identityTokenAlgorithm }
            ?? "ES256"
        return try await provider.signer.maker(issuer: provider.issuer, algorithm, now: time)
    }

    /// Sends the browser to the app's response.
    /// - Parameter ticket: of the response; nil if the app has it already.
    func goOn(
        _ request: PortalRequest, _ sheet: OpenSheet, ticket: String?
    ) async throws -> Response {
        guard let provider, let ticket else { return try await finished(request, sheet) }
        return request.redirect("\(provider.issuer)/auth/continue?ticket=\(ticket)")
    }

    /// Throws `PortalRefusal` if the app no longer has the redirect URI of its request.
    func requireRegistered(_ sheet: OpenSheet) async throws {
        let client = try await pool.run {
            try store.openIDClients.authorizationClient(sheet.request.clientID)
        }
        guard client?.accepts(sheet.request.target.redirectURI) == true else {
            throw PortalRefusal.over
        }
    }

    /// From the first sign-in to an app that requires two factors, they protect everything
    /// of the user: otherwise a reader of the inbox could replace them on the user's page.
    /// An app that asks for them by `acr_values`, or without showing a page, changes
    /// nothing for others. Blocks.
    private func protect(_ session: PageSession, for sheet: OpenSheet, _ change: Change) throws {
        let asked = sheet.request
        let level = max(requiredLevel, try store.signInLevels.level(clientID: asked.clientID))
        guard !session.needsTwoFactors, level > .any, !asked.prompts.contains(.none),
            try !secondFactors(session).isEmpty
        else { return }
        try store.authenticators.require(
            true, user: session.userID, reason: "app \(asked.clientID)", change)
    }

    /// Sends the error at once, from any browser: it is useless to anyone but the app, and nothing
    /// is stored for a person who is not signed in.
    private func refuse(
        _ request: PortalRequest, _ sheet: OpenSheet, _ error: AuthorizationError
    ) async throws -> Response {
        let target = sheet.request.target
        try await requireRegistered(sheet)
        let language = request.language
        let words = PassingWords(language: language.tag, isRightToLeft: language.isRightToLeft) {
            language.text($0)
        }
        switch AuthorizationResponse(target, error).rendered(words) {
        case .redirect(let address): return request.redirect(address)
        case .page(let page):
            var headers: HTTPFields = [
                .cacheControl: "no-store", .contentSecurityPolicy: page.policy,
            ]
            headers.append(PortalHeaders.referrer(page.referrerPolicy))
            headers.append(PortalHeaders.frames)
            return Response(
                type: "text/html; charset=utf-8", headers: headers,
                body: ByteBuffer(string: page.html))
        }
    }
}
