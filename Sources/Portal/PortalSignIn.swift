// Sign-in by a mailed link or code, sign-out, and confirming an inbox by the link in its message.

import Accounts
import HTTP
import Hummingbird
import InternetMessage
import Logging
import SignIn
import Support

/// Asks for the inbox to sign in with.
struct SignInView: PageView {
    /// The button that leads to the operator's own provider.
    struct UpstreamButton: Sendable {
        let name: String
        let path: String
    }

    /// The data that the script needs for a passkey.
    struct PasskeyForm: Sendable {
        let challenge: String
        let rp: String
        /// `yes` if the browser may suggest one.
        let autofill: String
        /// A passkey that no user has.
        let unknown: String
    }

    static let template = PageTemplate.signIn
    static let hasScript = true
    let csrf: String
    /// Whether any person can become a user.
    let isOpen: Bool
    /// The team of the app's request; nil without an app's request.
    let team: String?
    let upstream: UpstreamButton?
    /// Whether users sign in here, and not only at the operator's own provider.
    let hasOwn: Bool
    let typed: String?
    let problem: String?
    let passkey: PasskeyForm?
}

/// Asks for the code of the message that was sent.
struct SentView: PageView {
    static let template = PageTemplate.sent
    static let hasScript = true
    let csrf: String
    /// Whether any person can become a user.
    let isOpen: Bool
    /// The inbox that gets the message.
    let inbox: String?
    /// Messages to one inbox in an hour.
    let limit: String
    /// Whether passkeys are possible here.
    let hasPasskeys: Bool
    let problem: String?
}

/// The page of the link in that message.
struct SignInLinkView: PageView {
    static let template = PageTemplate.signInLink
    static let hasScript = true
    let token: String
    let csrf: String
    /// The handle of the app's request that the link, or the page, belongs to.
    let request: String?
}

/// The page of a link that does not work.
struct LinkView: PageView {
    static let template = PageTemplate.link
    static let isRefusal = true
    var isOfOtherBrowser = false
    var isConfirmation = false
}

/// Asks the reader to confirm that an inbox is theirs.
struct ConfirmView: PageView {
    static let template = PageTemplate.confirm
    let token: String
}

struct ConfirmedView: PageView {
    static let template = PageTemplate.confirmed
}

extension PortalPage {
    private static let noLink: Logger.Message = "no sign-in link was sent"

    func showSignIn(_ request: PortalRequest) async throws -> Response {
        if let onward = try await goOn(request) { return onward }
        return try await askForAddress(request)
    }

    /// The answer to a form that is older than the browser's cookies, for example after Back or in
    /// another tab.
    func stale(_ request: PortalRequest) async throws -> Response {
        if let onward = try await goOn(request, told: .signedInBefore) { return onward }
        return try await askForAddress(
            request, alert: request.language.text("That page was too old. Try again on this one."),
            status: .forbidden)
    }

    /// The sign-in page: a form that asks for the inbox. The browser gets its cookie here,
    /// before its user is known.
    func askForAddress(
        _ request: PortalRequest, alert: String? = nil, problem: String? = nil,
        unknownPasskey: String = "",
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let browser = try request.browser ?? newToken()
        let hasOwn = upstream?.settings.isOnly != true
        let sheet = request.sheet
        let team = try await pool.run { try sheet.map(appearance)?.teamName }
        let ceremony = hasOwn ? try ceremony(.get, browser: browser) : nil
        let view = SignInView(
            csrf: PortalCSRF.token(for: browser), isOpen: signUp.mode == .open, team: team,
            upstream: upstreamButton(request), hasOwn: hasOwn,
            typed: problem == nil
                ? typedInbox(request).map(PortalText.address) ?? sheet?.pending.request.loginHint
                : request.typed("email"),
            problem: problem,
            // The page suggests no address that was refused.
            passkey: ceremony.map {
                SignInView.PasskeyForm(
                    challenge: $0.challenge, rp: $0.relyingParty,
                    autofill: alert == nil ? "yes" : "", unknown: unknownPasskey)
            })
        return try request.html(
            view, title: request.language.text("Sign in"), status: status, alert: alert,
            notice: request.notice(.page),
            cookies: [cookies.set(PortalCookies.browser, browser, age: 86_400)])
    }

    /// The response and its timing are the same for every address: the page looks up the user only
    /// afterwards.
    func sendSignInLink(_ request: PortalRequest) async throws -> Response {
        try requireOwnSignIn()
        guard let browser = request.browser else {
            return try await askForAddress(
                request,
                alert: request.language.text(
                    "Your browser does not store cookies, or this page was open for too long. Try again."
                ),
                status: .badRequest)
        }
        guard PortalCSRF.matches(request.form["csrf"], browser) else {
            return try await stale(request)
        }
        guard
            let address = try? AddrSpec.typed(
                request.typed("email").trimmingCharacters(in: .whitespaces))
        else {
            return try await askForAddress(
                request,
                problem: request.language.text(
                    "That is not a valid email address. Enter only the address, as in name@example.com."
                ),
                status: .unprocessableContent)
        }
        guard !store.inboxes.isRelayed(InboxAddress(address)) else {
            return try await askForAddress(
                request,
                problem: request.language.text(
                    "That is a relay address, which hides an inbox. Enter the address of your own inbox."
                ),
                status: .unprocessableContent)
        }
        let inbox = InboxAddress(address)
        // The browser stores the sealed address, for every address. Data that the store does not
        // have cannot be lost or reveal a user.
        let sealed = try store.page.sealSignUp(inbox, browser: browser, now: now())
        let sent = request.redirect(
            request.step("/me/sent"),
            cookies: cookies.set(
                PortalCookies.signUp, of: request.handle, sealed, in: request.request.headers))
        // Checked before any lookup and for every address, so that it reveals
        // nothing about who has an account.
        if let seconds = clients.take(request.clientNetworks, now: monotonic()) {
            throw PortalRefusal.tooOften(seconds)
        }
        // A second press of the button sends no second message.
        guard request.repetition != .done else { return sent }
        let (language, handle, network) = (
            request.language, request.handle, request.clientNetworks.last?.name
        )
        // The lookup runs in parallel with mail that is being submitted, because submission may be
        // slow.
        let isQueued = queue.lookUp {
            do {
                let link = try store.page.signInLink(
                    for: inbox, browser: browser, request: handle, network: network, rules: signUp,
                    limits: mailer.settings.limits,
                    now: now())
                guard let link else { return }
                if !sendLater(
                    Self.noLink, { try mailer.send(link, .signIn, in: language, now: now()) })
                {
                    logger.warning(
                        Self.noLink, metadata: ["detail": "too much mail waits to be submitted"])
                }
            } catch {
                // A refusal means a limit; only the operator learns of refusals and failures.
                logger.warning(Self.noLink, metadata: ["detail": "\(error)"])
            }
        }
        guard isQueued else { throw PortalRefusal.busy }
        return sent
    }

    /// The opened link. Programs that scan mail open links too, so only the button signs in.
    func showSignInLink(_ request: PortalRequest) async throws -> Response {
        let (token, browser) = (try request.token(), request.browser)
        let state = try await pool.run {
            try store.page.state(of: token, .signIn, browser: browser, now: now())
        }
        return try await signInLink(request, state, token)
    }

    private func signInLink(
        _ request: PortalRequest, _ state: PortalRepository.LinkState, _ token: String
    ) async throws -> Response {
        guard state == .good, let browser = request.browser else {
            // A user who signed in by the code does not need the link. The link may be another
            // user's, who then learns why it does nothing.
            guard try await session(request) == nil else {
                return request.redirect("/me", told: .signedInBefore)
            }
            return try deadLink(request, state)
        }
        let asked = try await pool.run { try store.page.request(of: token, now: now()) }
        return try request.html(
            SignInLinkView(
                token: token, csrf: PortalCSRF.token(for: browser), request: request.handle ?? asked
            ),
            title: request.language.text("Sign in"))
    }

    /// The page for a link that does not work here.
    func deadLink(_ request: PortalRequest, _ state: PortalRepository.LinkState) throws -> Response
    {
        try request.html(
            LinkView(isOfOtherBrowser: state == .otherBrowser),
            title: request.language.text("This link does not work here"),
            status: state == .otherBrowser ? .forbidden : .gone)
    }

    func useSignInLink(_ request: PortalRequest) async throws -> Response {
        try requireOwnSignIn()
        let token = try request.token()
        guard let browser = request.browser else {
            return try await signInLink(request, .otherBrowser, token)
        }
        guard PortalCSRF.matches(request.form["csrf"], browser) else {
            return try await stale(request)
        }
        let old = request.sessionToken
        let handle = try await pool.run { try store.page.request(of: token, now: now()) }
        let sealed = cookies.sealed(PortalCookies.signUp, of: handle, in: request.request.headers)
        let session = try await pool.run {
            try store.page.signIn(
                link: token, browser: browser, signUp: sealed, replacing: old, now: now())
        }
        guard let session else { return try await signInLink(request, .gone, token) }
        return try await enter(request, session, sheet: handle)
    }

    func showCodeForm(_ request: PortalRequest) async throws -> Response {
        if let onward = try await goOn(request) { return onward }
        return try askForCode(request)
    }

    /// The page after the form: a message was sent, with a link to open here or
    /// a code to read anywhere.
    func askForCode(
        _ request: PortalRequest, problem: String? = nil,
        status: HTTPResponse.Status = .unprocessableContent
    ) throws -> Response {
        guard let browser = request.browser else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let view = SentView(
            csrf: PortalCSRF.token(for: browser), isOpen: signUp.mode == .open,
            inbox: typedInbox(request).map(PortalText.address),
            limit: request.words.messages(mailer.settings.limits.perInbox),
            hasPasskeys: relyingParty != nil, problem: problem)
        return try request.html(
            view, title: request.language.text("Check your inbox"),
            status: problem == nil ? .ok : status)
    }

    /// The address for which this tab requested a code.
    private func typedInbox(_ request: PortalRequest) -> InboxAddress? {
        request.browser.flatMap {
            store.page.typedInbox(
                cookies.sealed(
                    PortalCookies.signUp, of: request.handle, in: request.request.headers),
                browser: $0, now: now())
        }
    }

    /// Every failed code gets the same response: it does not reveal whether the user is known or
    /// has used up the tries.
    func useSignInCode(_ request: PortalRequest) async throws -> Response {
        try requireOwnSignIn()
        guard let browser = request.browser else {
            return request.redirect(request.step("/me/sign-in"))
        }
        guard PortalCSRF.matches(request.form["csrf"], browser) else {
            return try await stale(request)
        }
        let (code, old) = (request.typed("code"), request.sessionToken)
        guard TypedCode.digits(code) != nil else {
            return try askForCode(request, problem: request.language.text("A code has six digits."))
        }
        let networks = request.clientNetworks
        if let seconds = await tries.begin(networks, now: monotonic) {
            var response = try askForCode(
                request,
                problem: request.language.text(
                    "Too many wrong codes came from your network. Open the link in the message, or wait a few minutes."
                ),
                status: .tooManyRequests)
            response.headers[.retryAfter] = "\(seconds)"
            return response
        }
        var isWrong = request.repetition != .refused
        defer { tries.end(networks, isWrong: isWrong) }
        let handle = request.handle
        let sealed = cookies.sealed(PortalCookies.signUp, of: handle, in: request.request.headers)
        let known = cookies.value(PortalCookies.known, in: request.request.headers)
        let (session, isGuarded) = try await pool.run {
            (
                // The second press of the button sends the same wrong code. It does not count as a
                // second try.
                request.repetition == .refused
                    ? nil
                    : try store.page.signIn(
                        code: code, browser: browser, request: handle, known: known, signUp: sealed,
                        limits: limits,
                        replacing: old, now: now()), try store.page.isGuarded(limits, now: now())
            )
        }
        guard let session else {
            if isGuarded {
                logger.warning(
                    "codes alone open nothing in new browsers: too many wrong ones are entered, see docs/OPERATING-MONITORING.md"
                )
            }
            let problem =
                isGuarded
                ? request.language.text(
                    "At the moment, a code works only where you signed in before. Open the link in the message, in this browser."
                )
                : request.language.text(
                    "This code is wrong or has expired. After {n} wrong codes only the link in the message works.",
                    ["n": String(SignInCodeLimits.tries)])
            return try askForCode(request, problem: problem)
        }
        isWrong = false
        return try await enter(request, session)
    }

    /// - Parameter sheet: the handle of the app's request that a link belongs to,
    ///   used if the form has none.
    func enter(
        _ request: PortalRequest, _ session: String, sheet: String? = nil
    ) async throws -> Response {
        let (known, isSure) = try await tell(of: session, request)
        let asked = provider == nil ? nil : request.handle ?? sheet
        if let browser = BrowserName(userAgent: request.request.headers[.userAgent]) {
            try await pool.run { try store.page.note(browser, ofSession: session) }
        }
        let offer = try await offersPasskey(request, session: session)
        // From here on, an earlier browser cookie gives no access, even one that an attacker set.
        return request.redirect(
            offer
                ? "/me/offer" + (asked.map { "?request=\($0)" } ?? "")
                : asked.map { "\(Self.sheetPath)?request=\($0)" } ?? "/me",
            cookies: [
                cookies.set(PortalCookies.session, session, age: store.sessions.total),
                cookies.set(PortalCookies.browser, try newToken(), age: 86_400),
            ]
                + (isSure
                    ? [cookies.set(PortalCookies.known, known, age: PortalCookies.knownAge)] : [])
                + cookies.removeSealed(in: request.request.headers))
    }

    /// Notifies the default inbox of a session in a new browser, unless the user signed in
    /// by a message to that inbox.
    /// - Returns: the value that the browser stores.
    private func tell(
        of token: String, _ request: PortalRequest
    ) async throws -> (known: String, isSure: Bool) {
        let kept = cookies.value(PortalCookies.known, in: request.request.headers)
        let language = request.language
        let (known, isSure, inbox) = try await pool.run {
            guard let session = try store.page.session(token, now: now()) else {
                throw PortalRefusal.foreign
            }
            let known = try store.page.knownBrowser(user: session.userID)
            try store.users.setLanguage(of: session.userID, language.tag)
            let isSure = session.level >= level(for: session)
            guard kept != known else { return (known, isSure, nil as InboxAddress?) }
            let inbox = try store.inboxes.inboxes(user: session.userID).first {
                $0.isDefault && $0.isVerified
            }
            return (
                known, isSure,
                session.method == .mail && inbox?.number == session.inboxNumber
                    ? nil : inbox?.address
            )
        }
        if let inbox {
            _ = sendLater("no message about a new browser was sent") {
                try mailer.tell(.newBrowser, to: inbox, in: language, now: now())
            }
        }
        return (known, isSure)
    }

    func signOut(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        // A session that must still show its second factor ends itself only.
        let everywhere =
            request.form["everywhere"] == "yes" && session.level >= level(for: session)
        let time = now()
        try await pool.run { try store.page.signOut(session, everywhere: everywhere, now: time) }
        return request.redirect(
            "/me/sign-in", told: .signedOut,
            cookies: [cookies.remove(PortalCookies.session), cookies.remove(PortalCookies.browser)])
    }

    // MARK: The verification link

    func showConfirmation(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        let found = try await pool.run { try store.verifications.inbox(link: token, now: now()) }
        guard let found else {
            return try request.html(
                LinkView(isConfirmation: true),
                title: request.language.text("This link has expired"), status: .gone)
        }
        guard found.isNew else {
            return try request.html(
                ConfirmedView(), title: request.language.text("Your inbox is confirmed"))
        }
        return try request.html(
            ConfirmView(token: token), title: request.language.text("Confirm your inbox"))
    }

    /// The link needs no session: any reader of that inbox may open it, in any browser.
    func confirm(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        _ = try await pool.run { try store.verifications.confirm(link: token, now: now()) }
        return try request.html(
            ConfirmedView(), title: request.language.text("Your inbox is confirmed"))
    }

    func newToken() throws -> String { try PortalRepository.newBrowserToken() }
}
