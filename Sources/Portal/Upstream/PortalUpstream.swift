// Sign-in by the operator's existing OpenID provider: the redirect to it, and the return.

import Accounts
import HTTP
import Hummingbird
import Languages
import Logging
import SignIn
import Support

extension PortalPage {
    private static let upstreamPath = "/me/upstream"
    private static let upstreamCallback = "/me/upstream/callback"

    func addUpstreamRoutes(to routes: Routes) {
        guard let upstream else { return }
        step(routes, .get, RouterPath(Self.upstreamPath)) { try await goUpstream($0, upstream) }
        open(routes, .get, RouterPath(Self.upstreamCallback)) { try await comeBack($0, upstream) }
    }

    /// As registered with the provider.
    private var redirectURI: String { origin + Self.upstreamCallback }

    /// The button of the sign-in page.
    func upstreamButton(_ request: PortalRequest) -> SignInView.UpstreamButton? {
        upstream.map {
            SignInView.UpstreamButton(name: $0.settings.name, path: request.step(Self.upstreamPath))
        }
    }

    /// Throws `PortalRefusal` if all users must sign in by the provider.
    func requireOwnSignIn() throws {
        if upstream?.settings.isOnly == true { throw PortalRefusal.notFound }
    }

    /// A link instead of a form: browsers limit where a form may lead, and
    /// this leads to another site.
    private func goUpstream(
        _ request: PortalRequest, _ upstream: UpstreamProvider
    ) async throws -> Response {
        // Without this limit, anyone could cause any number of metadata requests and states.
        if let seconds = trips.take(request.clientNetworks, now: monotonic()) {
            throw PortalRefusal.tooOften(seconds)
        }
        guard request.request.method == .get else { throw PortalRefusal.notLikeThat }
        do throws(UpstreamFailure) {
            let metadata = try await upstream.metadata()
            return try leave(request, upstream, metadata)
        } catch {
            return try await refuse(request, upstream, error)
        }
    }

    private func leave(
        _ request: PortalRequest, _ upstream: UpstreamProvider, _ metadata: UpstreamMetadata
    ) throws(UpstreamFailure) -> Response {
        do {
            let browser = try request.browser ?? newToken()
            let (attempt, sealed) = try store.page.beginUpstream(
                browser: browser, for: request.sheet.map { ($0.pending, $0.handle) }, now: now())
            return request.redirect(
                attempt.address(
                    metadata, upstream.settings, redirectURI: redirectURI,
                    language: request.language.tag),
                cookies: [cookies.set(PortalCookies.browser, browser, age: 86_400)]
                    + cookies.set(
                        PortalCookies.upstream, of: attempt.state, sealed,
                        in: request.request.headers))
        } catch {
            throw .unavailable("\(error)")
        }
    }

    private func comeBack(
        _ request: PortalRequest, _ upstream: UpstreamProvider
    ) async throws -> Response {
        // A response is used once: a request that only checks the address must not use it.
        guard request.request.method == .get else { throw PortalRefusal.notLikeThat }
        if let seconds = trips.take(request.clientNetworks, now: monotonic()) {
            throw PortalRefusal.tooOften(seconds)
        }
        let state = request.query("state")?.text
        let sealed = state.flatMap {
            cookies.sealed(PortalCookies.upstream, of: $0, in: request.request.headers)
        }
        let begun = store.page.upstreamAttempt(sealed)
        let identity: UpstreamIdentity
        do throws(UpstreamFailure) {
            guard let attempt = begun, store.page.isOf(attempt, browser: request.browser) else {
                throw .stale
            }
            // Two readers of a repeated parameter may each take a different value (RFC 6749 section
            // 3.1).
            guard let parameters = AuthorizationParameters((request.request.uri.query ?? "").utf8),
                parameters.repeated.isEmpty
            else { throw .unproved("a parameter is given twice, or cannot be read") }
            let metadata = try await upstream.metadata()
            let code = try attempt.code(metadata, upstream.settings, now: now()) {
                parameters[WireText($0)]?.text
            }
            identity = try await upstream.identity(
                attempt, code: code, redirectURI: redirectURI, metadata)
        } catch {
            // A user who signed in in another tab in the meantime continues.
            if case .stale = error, try await session(request) != nil {
                return request.redirect(
                    begun?.request.map { "\(Self.sheetPath)?request=\($0)" } ?? "/me")
            }
            return try await refuse(request, upstream, error)
        }
        let (old, rules, links) = (request.sessionToken, signUp, upstream.settings.links)
        let outcome = try await pool.run {
            try store.page.signIn(identity, rules: rules, links: links, replacing: old, now: now())
        }
        switch outcome {
        case .session(let session): return try await enter(request, session, sheet: begun?.request)
        case .unknown:
            return try await refuse(
                request,
                request.language.text(
                    "No one here belongs to your account at {provider}.", upstream.words))
        case .noAddress:
            return try await refuse(
                request,
                request.language.text(
                    "{provider} did not name an address that it verified as yours.", upstream.words)
            )
        case .taken:
            return try await refuse(
                request,
                request.language.text(
                    "Your address at {provider} belongs to someone here who signs in otherwise: request a code.",
                    upstream.words))
        }
    }

    /// Returns to the sign-in page with Postern's own text. Texts of the provider are never shown.
    private func refuse(
        _ request: PortalRequest, _ upstream: UpstreamProvider, _ failure: UpstreamFailure
    ) async throws -> Response {
        logger.warning(
            "a sign-in by the operator's provider failed", metadata: ["detail": "\(failure)"])
        let (language, words) = (request.language, upstream.words)
        return switch failure {
        case .unavailable:
            try await refuse(
                request, language.text("{provider} does not answer. Try again later.", words),
                .badGateway)
        case .declined:
            try await refuse(request, language.text("{provider} did not sign you in.", words))
        case .stale:
            try await refuse(
                request,
                language.text("This sign-in took too long, or began in another browser. Try again.")
            )
        case .unproved:
            try await refuse(
                request, language.text("What {provider} answered is not valid. Try again.", words),
                .badGateway)
        }
    }

    private func refuse(
        _ request: PortalRequest, _ text: String, _ status: HTTPResponse.Status = .forbidden
    ) async throws -> Response {
        try await askForAddress(request, alert: text, status: status)
    }
}

extension UpstreamProvider {
    /// For texts that name the provider.
    fileprivate var words: [String: String] { ["provider": settings.name] }
}
