// The user's own page: its routes and their dependencies.

import Accounts
import Database
import HTTP
import HTTPTypes
import Hummingbird
import Languages
import Logging
import Mail
import MailCrypto
import RelayCore
import SignIn
import Support
import WebAuthn

/// `/me`: server-rendered, for users who sign in by a mailed code or link, or by a passkey; only
/// passkeys need a script.
package struct PortalPage: RouteModule {
    let store: Store
    let mailer: InboxMailer
    /// Sends mail outside of the request.
    let queue: MailQueue
    let tokens: @Sendable () -> TokenMint
    let pool: BlockingPool
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let logger: Logger
    let views: PortalViews
    var languages: Languages { mailer.languages }
    let signUp: SignUpRules
    /// Days for which a requested deletion can be cancelled; 0 for none.
    let deletionDays: Int
    let cookies: PortalCookies
    /// As a browser writes it into the Origin field.
    let origin: String
    /// Answers apps that request a sign-in; nil if another page answers them.
    let provider: SheetProvider?
    /// The operator's own OpenID provider; nil if users sign in only here.
    let upstream: UpstreamProvider?
    /// For passkeys; nil if the page's address has no host name.
    let relyingParty: RelyingParty?
    /// Certificates of makers that can attest a new passkey's device; if empty, no
    /// attestation is requested.
    let passkeyRoots: [Certificate]

    /// How surely every user must have signed in.
    let requiredLevel: SignInLevel
    /// Days that a user waits who lost the second factor; 0 for no such way.
    let recoveryDays: Int
    let limits: SignInLimits
    /// Limits the messages that one client network requests.
    let clients: RateLimiter
    /// Limits wrong codes and passkeys from one client network; each code allows few tries.
    let tries: SignInTries
    /// Limits visits to the operator's own provider from one client network, which may have many
    /// people.
    let trips = RateLimiter(perSecond: 2, burst: 60)
    /// The proxies whose client addresses are trusted.
    let proxies: TrustedProxies
    let monotonic: @Sendable () -> Double

    /// The most octets of a form: an address, a token, and an app's request.
    static let formLimit = 81_920

    /// Nil if users cannot reach the HTTP service. Throws if a template does not parse, which tests
    /// prevent.
    package init?(
        store: Store, mailer: InboxMailer, queue: MailQueue,
        tokens: @escaping @Sendable () -> TokenMint, pool: BlockingPool,
        now: @escaping @Sendable () -> Int64,
        monotonic: @escaping @Sendable () -> Double = APIClock.uptime,
        proxies: TrustedProxies = TrustedProxies(), provider: SheetProvider? = nil,
        signUp: SignUpRules = .closed,
        requiredLevel: SignInLevel = .any, recoveryDays: Int = 0, limits: SignInLimits = .standard,
        looks: PageLooks = .standard, deletionDays: Int = 0,
        upstream: UpstreamProvider? = nil, passkeyRoots: [Certificate] = [], logger: Logger
    ) throws {
        self.provider = provider
        self.monotonic = monotonic
        self.proxies = proxies
        guard let url = mailer.settings.publicURL else { return nil }
        self.store = store
        self.mailer = mailer
        self.queue = queue
        self.tokens = tokens
        self.pool = pool
        self.now = now
        self.logger = logger
        self.signUp = signUp
        self.requiredLevel = requiredLevel
        self.recoveryDays = recoveryDays
        self.limits = limits
        let minutes = 600.0
        clients = RateLimiter(
            perSecond: Double(limits.requestsPerNetwork) / minutes,
            burst: Double(limits.requestsPerNetwork))
        tries = SignInTries(
            RateLimiter(
                perSecond: Double(limits.wrongCodesPerNetwork) / minutes,
                burst: Double(limits.wrongCodesPerNetwork) / 3))
        self.deletionDays = deletionDays
        self.upstream = upstream
        views = try PortalViews(
            service: mailer.settings.service, languages: mailer.languages, looks: looks)
        origin = url
        relyingParty = Self.relyingParty(url: url)
        self.passkeyRoots = passkeyRoots
        cookies = PortalCookies(isSecure: url.hasPrefix("https://"))
    }

    /// Whether users make and use passkeys here.
    package var hasPasskeys: Bool { passkeyHost != nil }

    package func addRoutes(to routes: Routes) {
        asset(routes, "/me/style.css", "text/css; charset=utf-8", views.style.css.utf8)
        asset(routes, "/me/mark.svg", "image/svg+xml", PortalStyle.icon.utf8)
        if let logo = views.style.logo { asset(routes, "/me/logo.png", "image/png", logo) }
        asset(
            routes, RouterPath(Self.schemaPath), "application/schema+json",
            PortalExport.schema(service: mailer.settings.service).utf8, lasts: false)
        asset(routes, "/me/page.js", "text/javascript; charset=utf-8", PortalStyle.script.utf8)

        if relyingParty != nil, upstream?.settings.isOnly != true {
            // The page to which passkey managers send a user who adds or removes a passkey (W3C
            // Passkey Endpoints).
            asset(
                routes, "/.well-known/passkey-endpoints", "application/json",
                #"{"enroll":"\#(origin)/me/security","manage":"\#(origin)/me/security"}"#.utf8,
                lasts: false)
        }

        // Open to everyone.
        open(routes, .get, "/me/icons/{client_id}") { try await icon($0.context) }
        open(routes, .get, "/") { $0.redirect("/me") }
        open(routes, .post, "/me/language") { chooseLanguage($0) }
        step(routes, .get, "/me/sign-in") { try await showSignIn($0) }
        step(routes, .post, "/me/sign-in") { try await once($0) { try await sendSignInLink($0) } }
        step(routes, .get, "/me/sent") { try await showCodeForm($0) }
        step(routes, .post, "/me/sent") { try await once($0) { try await useSignInCode($0) } }
        step(routes, .get, "/me/offer") { try await offerPasskey($0) }
        step(routes, .post, "/me/passkey") { try await signInByPasskey($0) }
        step(routes, .get, "/me/sign-in/{token}") { try await showSignInLink($0) }
        step(routes, .post, "/me/sign-in/{token}") { try await useSignInLink($0) }
        open(routes, .get, "/me/confirm/{token}") { try await showConfirmation($0) }
        open(routes, .post, "/me/confirm/{token}") { try await confirm($0) }
        open(routes, .get, "/me/goodbye") { try sayGoodbye($0) }

        addSheetRoutes(to: routes)
        addSecondFactorRoutes(to: routes)
        addUpstreamRoutes(to: routes)

        // For signed-in users.
        signedIn(routes, .get, "/me") { try await overview($0, $1) }
        signedIn(routes, .post, "/me/sign-out", needsLevel: false) { try await signOut($0, $1) }
        signedIn(routes, .post, "/me/addresses/forwarding") { try await switchSeveral($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}") { try await showAccount($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}/others.json") {
            try await downloadOthers($0, $1)
        }
        signedIn(routes, .post, "/me/addresses/{account}/forwarding") {
            try await switchForwarding($0, $1)
        }
        signedIn(routes, .post, "/me/addresses/{account}/notes") { try await setNotes($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/inbox") { try await chooseInbox($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/schedule") {
            try await scheduleSwitch($0, $1)
        }
        signedIn(routes, .get, "/me/addresses/{account}/replace") { try await askToReplace($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/replace") { try await replace($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/hide") { try await hide($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/block") { try await block($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/unblock") { try await unblock($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/object") { try await object($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/withdraw") { try await withdraw($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/write") { try await writeFirst($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}/apps/{group}") {
            try await askToStop($0, $1)
        }
        signedIn(routes, .post, "/me/addresses/{account}/apps/{group}") { try await stop($0, $1) }
        signedIn(routes, .get, "/me/inboxes") { try await showInboxes($0, $1) }
        signedIn(routes, .post, "/me/inboxes") { try await addInbox($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/code") { try await enterCode($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/send") { try await sendAgain($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/use") { try await makeDefault($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/remove") { try await removeInbox($0, $1) }
        signedIn(routes, .get, "/me/security") { try await showSecurity($0, $1) }
        signedIn(routes, .post, "/me/passkeys", needsLevel: false) { try await addPasskey($0, $1) }
        signedIn(routes, .post, "/me/passkeys/{passkey}/remove") { try await removePasskey($0, $1) }
        signedIn(routes, .post, "/me/sessions/{session}/end") { try await endSession($0, $1) }
        signedIn(routes, .get, "/me/data") { try await showData($0, $1) }
        signedIn(routes, .post, "/me/keep") { try await keepEverything($0, $1) }
        signedIn(routes, .post, "/me/inboxes/refusals") { try await setRefusalNotices($0, $1) }
        signedIn(routes, .get, "/me/data/read") { try await readData($0, $1) }
        signedIn(routes, .get, "/me/data.json") { try await download($0, $1) }
        signedIn(routes, .get, "/me/delete") { try await askToDelete($0, $1) }
        signedIn(routes, .post, "/me/delete") { try await sendDeletionLink($0, $1) }
        signedIn(routes, .get, "/me/delete/{token}") { try await showDeletion($0, $1) }
        signedIn(routes, .post, "/me/delete/{token}") { try await delete($0, $1) }
    }

    /// For people who typed an address or followed an old link. Paths for programs keep their
    /// problem details.
    package func page(
        for problem: Problem, isUnrouted: Bool, _ request: Request, _ context: APIContext
    ) -> Response? {
        let path = request.uri.path
        if SignInStep(path: path) != nil, request.wantsPage {
            var response = try? PortalRequest(page: self, request: request, context: context)
                .failure(problem)
            for field in problem.headers { response?.headers[field.name] = field.value }
            return response
        }
        // The routes of these pages make their own error pages.
        guard isUnrouted else { return nil }
        let isPage = path == "/me" || path.hasPrefix("/me/")
        let isProgram = ["/v1", "/auth", "/.well-known"].contains {
            path == $0 || path.hasPrefix($0 + "/")
        }
        guard isPage || (!isProgram && request.wantsPage) else { return nil }
        var response = try? PortalRequest(page: self, request: request, context: context)
            .failure(
                problem.status == .notFound ? PortalRefusal.notFound : PortalRefusal.notLikeThat)
        for field in problem.headers { response?.headers[field.name] = field.value }
        return response
    }

    /// The page that shows the typed input of a form whose session has ended; nil if the form has
    /// no typed input.
    private func lost(_ request: PortalRequest) throws -> Response? {
        let texts = ["name", "note", "words"].map { request.typed($0) }.filter { !$0.isEmpty }
        guard request.request.method == .post, !texts.isEmpty else { return nil }
        return try request.html(
            LostView(
                texts: texts.enumerated().map {
                    LostView.Text(number: $0.offset + 1, text: $0.element)
                }),
            title: request.language.text("You were signed out"), status: .forbidden)
    }

    private static let lasting = [
        "/me/inboxes", "/me/security", "/me/data", "/me/data/read", "/me/delete",
    ]
    private static let steps = [
        sheetPath, "/me/sign-in", "/me/sent", "/me/offer", secondPath, authenticatorPath,
        "/me/new-factor", "/me/change",
    ]

    /// The page that contains the form for a path; nil if the path is not known. The parts of the
    /// path are fixed names or numbers.
    static func page(ofForm path: String) -> String? {
        if steps.contains(where: { $0.hasSameOctets(as: path) }) { return path }
        let parts = path.split(separator: "/").map(String.init)
        guard parts.count > 1 else { return nil }
        switch parts[1] {
        case "addresses": return parts.count > 3 ? "/me/addresses/\(parts[2])" : nil
        case "inboxes": return "/me/inboxes"
        case "passkeys", "sessions", "authenticator", "two-factors", "recovery-codes":
            return "/me/security"
        default: return nil
        }
    }

    /// A page to which the choice of a language may lead back, written in our form; nil for any
    /// other address.
    func here(_ address: String) -> String? {
        if let list = Self.listPath(address) { return list }
        let parts = address.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            .map(String.init)
        guard let path = parts.first, address.utf8.count <= 200 else { return nil }
        if parts.count == 1 {
            let number =
                path.utf8.starts(with: "/me/addresses/".utf8)
                ? Int64(path.dropFirst("/me/addresses/".count)) : nil
            if let number { return "/me/addresses/\(number)" }
            return (Self.lasting + Self.steps).first { $0.hasSameOctets(as: path) }
        }
        let query = parts[1]
        guard let step = Self.steps.first(where: { $0.hasSameOctets(as: path) }),
            query.utf8.starts(with: "request=".utf8)
        else {
            return nil
        }
        let handle = String(query.dropFirst("request=".count))
        return handle.utf8.count <= 64 && Base64URL.decode(handle.utf8) != nil
            ? "\(step)?request=\(handle)" : nil
    }

    /// Stores the language in the browser. The form needs no token: it changes only the language,
    /// and works for people who are not signed in and have no cookie.
    private func chooseLanguage(_ request: PortalRequest) -> Response {
        let tag = request.typed("language")
        let known = languages.all.contains { $0.tag.hasSameOctets(as: tag) }
        return request.redirect(
            here(request.typed("here")) ?? "/me",
            cookies: known
                ? [cookies.set(PortalCookies.language, tag, age: PortalCookies.languageAge)] : [])
    }

    /// - Parameter lasts: whether links include its version, so that caches may keep it for ever.
    private func asset(
        _ routes: Routes, _ path: RouterPath, _ type: String,
        _ octets: some Sequence<UInt8> & Sendable, lasts: Bool = true
    ) {
        routes.open.get(path) { _, _ in
            var headers: HTTPFields = [
                .cacheControl: "public, max-age=\(lasts ? "31536000, immutable" : "3600")"
            ]
            headers.append(PortalHeaders.policy())
            return Response(type: type, headers: headers, body: ByteBuffer(bytes: octets))
        }
    }

    /// The icon of an app. Anyone who knows the app's identifier may see it.
    private func icon(_ context: APIContext) async throws -> Response {
        let clientID = context.parameters.get("client_id") ?? ""
        guard let png = try await pool.run({ try store.apps.icon(clientID: clientID) }) else {
            throw PortalRefusal.notFound
        }
        var headers: HTTPFields = [.cacheControl: "public, max-age=3600"]
        headers.append(PortalHeaders.policy())
        return Response(type: "image/png", headers: headers, body: ByteBuffer(bytes: png))
    }

    /// A route open to everyone. Errors become pages.
    func open(
        _ routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath,
        _ handler: @escaping @Sendable (PortalRequest) async throws -> Response
    ) {
        add(to: routes, method, path, .open, isStep: false, handler)
    }

    /// The same for a page that can be a step of an app's request.
    func step(
        _ routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath,
        _ handler: @escaping @Sendable (PortalRequest) async throws -> Response
    ) {
        add(to: routes, method, path, .open, isStep: true, handler)
    }

    /// A route for signed-in users; others are sent to the sign-in page. Changes need
    /// the token of their form.
    /// - Parameter needsLevel: whether it is only for users who signed in as surely as they must.
    func signedIn(
        _ routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath, needsLevel: Bool = true,
        _ handler: @escaping @Sendable (PortalRequest, PageSession) async throws -> Response
    ) {
        add(to: routes, method, path, .user, isStep: false) { request in
            guard let token = request.sessionToken, let session = try await session(request) else {
                return try lost(request) ?? request.redirect("/me/sign-in")
            }
            guard !needsLevel || session.level >= level(for: session) else {
                return request.redirect(Self.secondPath)
            }
            var request = request
            request.csrf = PortalCSRF.token(for: token)
            request.deletesAt = session.deletesAt
            request.recoveryEndsAt = session.recoveryEndsAt
            request.inbox = try await pool.run {
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber)).address
            }
            guard method == .post else { return try await handler(request, session) }
            try request.checkForm()
            return try await once(request, cookie: token, isSignedIn: true) {
                try await handler($0, session)
            }
        }
    }

    private func add(
        to routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath, _ access: RouteAccess,
        isStep: Bool,
        _ handler: @escaping @Sendable (PortalRequest) async throws -> Response
    ) {
        routes.open(bodyLimit: Self.formLimit, access: access).on(path, method: method) {
            request, context -> Response in
            var me = PortalRequest(page: self, request: request, context: context)
            do {
                try me.checkOrigin()
                if method == .post { try await me.readForm() }
                if isStep { try await me.openSheet() }
                return try await handler(me)
            } catch {
                return try me.failure(error)
            }
        }
    }

    /// The session of the signed-in user. Throws `PortalRefusal` if the user is frozen: every page
    /// and every request of an app needs the session.
    func session(_ request: PortalRequest) async throws -> PageSession? {
        guard let token = request.sessionToken else { return nil }
        let session = try await pool.run { try store.page.session(token, now: now()) }
        if let freeze = session?.freeze { throw PortalRefusal.frozen(freeze) }
        return session
    }

    /// Notifies a user by mail, at the default inbox. Does nothing if there is none.
    func tell(
        _ user: String, _ kind: NoticeKind, in language: Catalogue,
        _ complete: @escaping @Sendable (inout NoticeValues) -> Void = { _ in }
    ) async throws {
        let inbox = try await pool.run {
            try store.inboxes.inboxes(user: user).first { $0.isDefault && $0.isVerified }?.address
        }
        guard let inbox else { return }
        _ = sendLater("no \(kind.rawValue) message was sent") {
            try mailer.tell(kind, to: inbox, in: language, now: now(), complete)
        }
    }

    /// Queues mail outside of the request; returns false if too much is waiting.
    /// - Parameter warning: the log message if the mail could not be sent.
    func sendLater(_ warning: Logger.Message, _ send: @escaping @Sendable () throws -> Void) -> Bool
    {
        queue.add { [logger] in
            do { try send() } catch { logger.warning(warning, metadata: ["detail": "\(error)"]) }
        }
    }
}

/// The input that a person typed after their session had ended.
struct LostView: PageView {
    struct Text: Sendable {
        let number: Int
        let text: String
    }

    static let template = PageTemplate.lost
    static let isRefusal = true
    let texts: [Text]
}
