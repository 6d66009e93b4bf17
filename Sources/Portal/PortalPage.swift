// The page of one's own: what its routes are made of, and which there are.

import Accounts
import SignIn
import HTTP
import HTTPTypes
import Hummingbird
import Languages
import Logging
import Mail
import MailCrypto
import RelayCore
import WebAuthn

/// `/me`: server-rendered, behind a code or a link that is mailed to the user's inbox, or a passkey, which alone needs a script.
package struct PortalPage: RouteModule {
    let store: Store
    let mailer: InboxMailer
    /// Writes mail off the path of the request.
    let queue: MailQueue
    let tokens: @Sendable () -> TokenMint
    let pool: BlockingPool
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let logger: Logger
    let views: PortalViews
    var languages: Languages { mailer.languages }
    let signUp: SignUpRules
    /// Days in which whoever asked that everything be deleted may think better of it; 0 for none.
    let deletionDays: Int
    let cookies: PortalCookies
    /// As a browser writes it into Origin.
    let origin: String
    /// Answers apps that ask for a sign-in; nil where another page does.
    let provider: SheetProvider?
    /// The operator's own OpenID provider; nil where users sign in here alone.
    let upstream: UpstreamProvider?
    /// For passkeys; nil where the page has no name.
    let relyingParty: RelyingParty?
    /// Of makers of devices whose word for a new passkey counts; none: they are not asked.
    let passkeyRoots: [Certificate]

    /// Sign-in forms of one client network: for a household that mistypes, and no more than that for who pesters.
    let clients = RateLimiter(perSecond: 1.0 / 30, burst: 10)
    /// Codes typed by one client network; each is good for few tries.
    let codes = RateLimiter(perSecond: 1.0 / 10, burst: 20)
    /// Trips to the operator's own provider of one client network: many people may sit behind it.
    let trips = RateLimiter(perSecond: 2, burst: 60)
    /// Whose word on where a form comes from is taken.
    let proxies: TrustedProxies
    let monotonic: @Sendable () -> Double

    /// Octets of a form: an address and a token, and what an app asked for.
    static let formLimit = 81_920

    /// Nil where users have no way to the HTTP service. Throws where a template does not parse, which no test would let through.
    package init?(
        store: Store, mailer: InboxMailer, queue: MailQueue, tokens: @escaping @Sendable () -> TokenMint, pool: BlockingPool,
        now: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> Double = APIClock.uptime,
        proxies: TrustedProxies = TrustedProxies(), provider: SheetProvider? = nil, signUp: SignUpRules = .closed,
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
        self.deletionDays = deletionDays
        self.upstream = upstream
        views = try PortalViews(service: mailer.settings.service, languages: mailer.languages, looks: looks)
        origin = url
        relyingParty = Self.relyingParty(url: url)
        self.passkeyRoots = passkeyRoots
        cookies = PortalCookies(isSecure: url.hasPrefix("https://"))
    }

    package func addRoutes(to routes: Routes) {
        asset(routes, "/me/style.css", "text/css; charset=utf-8", views.style.css.utf8)
        asset(routes, "/me/mark.svg", "image/svg+xml", PortalStyle.icon.utf8)
        if let logo = views.style.logo { asset(routes, "/me/logo.png", "image/png", logo) }
        asset(
            routes, RouterPath(Self.schemaPath), "application/schema+json",
            PortalExport.schema(service: mailer.settings.service).utf8, lasts: false)
        asset(routes, "/me/page.js", "text/javascript; charset=utf-8", PortalStyle.script.utf8)

        // Anyone who comes.
        open(routes, .get, "/me/icons/{client_id}") { try await icon($0.context) }
        open(routes, .get, "/") { $0.redirect("/me") }
        open(routes, .get, "/me/sign-in") { try await askForAddress($0) }
        open(routes, .post, "/me/sign-in") { try await sendSignInLink($0) }
        open(routes, .get, "/me/sent") { try askForCode($0) }
        open(routes, .post, "/me/sent") { try await useSignInCode($0) }
        open(routes, .post, "/me/passkey") { try await signInByPasskey($0) }
        open(routes, .get, "/me/sign-in/{token}") { try await showSignInLink($0) }
        open(routes, .post, "/me/sign-in/{token}") { try await useSignInLink($0) }
        open(routes, .get, "/me/confirm/{token}") { try await showConfirmation($0) }
        open(routes, .post, "/me/confirm/{token}") { try await confirm($0) }
        open(routes, .get, "/me/goodbye") { try $0.html("goodbye", title: $0.language.text("Everything is deleted")) }

        addSheetRoutes(to: routes)
        addUpstreamRoutes(to: routes)

        // Anyone who is signed in.
        signedIn(routes, .get, "/me") { try await overview($0, $1) }
        signedIn(routes, .post, "/me/sign-out") { try await signOut($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}") { try await showAccount($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/forwarding") { try await switchForwarding($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/notes") { try await setNotes($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/inbox") { try await chooseInbox($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/schedule") { try await scheduleSwitch($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}/replace") { try await askToReplace($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/replace") { try await replace($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/block") { try await block($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/unblock") { try await unblock($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/object") { try await object($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/write") { try await writeFirst($0, $1) }
        signedIn(routes, .get, "/me/addresses/{account}/apps/{group}") { try await askToStop($0, $1) }
        signedIn(routes, .post, "/me/addresses/{account}/apps/{group}") { try await stop($0, $1) }
        signedIn(routes, .get, "/me/inboxes") { try await showInboxes($0, $1) }
        signedIn(routes, .post, "/me/inboxes") { try await addInbox($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/code") { try await enterCode($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/send") { try await sendAgain($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/use") { try await makeDefault($0, $1) }
        signedIn(routes, .post, "/me/inboxes/{inbox}/remove") { try await removeInbox($0, $1) }
        signedIn(routes, .get, "/me/security") { try await showSecurity($0, $1) }
        signedIn(routes, .post, "/me/passkeys") { try await addPasskey($0, $1) }
        signedIn(routes, .post, "/me/passkeys/{passkey}/remove") { try await removePasskey($0, $1) }
        signedIn(routes, .post, "/me/sessions/{session}/end") { try await endSession($0, $1) }
        signedIn(routes, .get, "/me/data") { try await showData($0, $1) }
        signedIn(routes, .post, "/me/keep") { try await keepEverything($0, $1) }
        signedIn(routes, .post, "/me/inboxes/refusals") { try await setRefusalNotices($0, $1) }
        signedIn(routes, .get, "/me/data/read") { try await readData($0, $1) }
        signedIn(routes, .get, "/me/data.json") { try await download($0, $1) }
        signedIn(routes, .get, "/me/delete") { request, _ in
            var values: [String: Any] = [:]
            if deletionDays > 0 { values["days"] = request.language.text("{n} days", count: deletionDays) }
            return try request.html("delete", values, title: request.language.text("Delete everything"), current: .data)
        }
        signedIn(routes, .post, "/me/delete") { try await sendDeletionLink($0, $1) }
        signedIn(routes, .get, "/me/delete/{token}") { try await showDeletion($0, $1) }
        signedIn(routes, .post, "/me/delete/{token}") { try await delete($0, $1) }
    }

    /// For whoever went to an address by hand or followed an old link: paths of programs keep their problems.
    package func page(for problem: Problem, _ request: Request, _ context: APIContext) -> Response? {
        let path = request.uri.path
        let isPage = path == "/me" || path.hasPrefix("/me/")
        let isProgram = ["/v1", "/auth", "/.well-known"].contains { path == $0 || path.hasPrefix($0 + "/") }
        guard isPage || (!isProgram && request.headers[.accept]?.contains("text/html") == true) else { return nil }
        var response = try? PortalRequest(page: self, request: request, context: context)
            .failure(problem.status == .notFound ? PortalRefusal.notFound : PortalRefusal.notLikeThat)
        for field in problem.headers { response?.headers[field.name] = field.value }
        return response
    }

    /// - Parameter lasts: it is linked with its version, so that it is never requested again.
    private func asset(
        _ routes: Routes, _ path: RouterPath, _ type: String, _ octets: some Sequence<UInt8> & Sendable, lasts: Bool = true
    ) {
        routes.open.get(path) { _, _ in
            var headers: HTTPFields = [.cacheControl: "public, max-age=\(lasts ? "31536000, immutable" : "3600")"]
            headers.append(PortalHeaders.policy())
            return Response(type: type, headers: headers, body: ByteBuffer(bytes: octets))
        }
    }

    /// The icon of an app: whoever can name the app may see it.
    private func icon(_ context: APIContext) async throws -> Response {
        let clientID = context.parameters.get("client_id") ?? ""
        guard let png = try await pool.run({ try store.apps.icon(clientID: clientID) }) else { throw PortalRefusal.notFound }
        var headers: HTTPFields = [.cacheControl: "public, max-age=3600"]
        headers.append(PortalHeaders.policy())
        return Response(type: "image/png", headers: headers, body: ByteBuffer(bytes: png))
    }

    /// A route for anyone who comes. Errors become pages.
    func open(
        _ routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath,
        _ handler: @escaping @Sendable (PortalRequest) async throws -> Response
    ) {
        routes.open(bodyLimit: Self.formLimit).on(path, method: method) { request, context -> Response in
            var me = PortalRequest(page: self, request: request, context: context)
            do {
                try me.checkOrigin()
                if method == .post { try await me.readForm() }
                return try await handler(me)
            } catch {
                return try me.failure(error)
            }
        }
    }

    /// A route for anyone who is signed in; others are led to the door. What changes something needs the token of its form.
    private func signedIn(
        _ routes: Routes, _ method: HTTPRequest.Method, _ path: RouterPath,
        _ handler: @escaping @Sendable (PortalRequest, PageSession) async throws -> Response
    ) {
        open(routes, method, path) { request in
            guard let token = request.sessionToken, let session = try await session(request) else {
                return request.redirect("/me/sign-in")
            }
            var request = request
            request.csrf = PortalCSRF.token(for: token)
            request.deletesAt = session.deletesAt
            request.inbox = try await pool.run {
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber)).address
            }
            if method == .post { try request.checkForm() }
            return try await handler(request, session)
        }
    }

    /// Who is signed in.
    func session(_ request: PortalRequest) async throws -> PageSession? {
        guard let token = request.sessionToken else { return nil }
        return try await pool.run { try store.page.session(token, now: now()) }
    }

    /// Tells a user by mail, at the inbox that mail goes to. Nothing happens where there is none.
    func tell(
        _ user: String, _ kind: NoticeKind, in language: Catalogue,
        _ complete: @escaping @Sendable (inout NoticeValues) -> Void = { _ in }
    ) async throws {
        let inbox = try await pool.run { try store.inboxes.inboxes(user: user).first { $0.isDefault && $0.isVerified }?.address }
        guard let inbox else { return }
        _ = sendLater("no \(kind.rawValue) message was sent") {
            try mailer.tell(kind, to: inbox, in: language, now: now(), complete)
        }
    }

    /// Hands mail over off the path of the request; false where too much waits.
    /// - Parameter warning: what is logged where it could not be sent.
    func sendLater(_ warning: Logger.Message, _ send: @escaping @Sendable () throws -> Void) -> Bool {
        queue.add { [logger] in
            do { try send() } catch { logger.warning(warning, metadata: ["detail": "\(error)"]) }
        }
    }
}
