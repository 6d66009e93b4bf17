// GET and POST /auth/authorize, and the return from the sign-in page: /auth/continue.

import Accounts
import HTTP
import HTTPTypes
import Hummingbird
import Languages
import SignIn
import Support

/// A request is checked, kept, and passed to the page as a handle. The page's backend answers it at
/// /v1/authorizations. The browser that made the request fetches the response here, in the response
/// mode that the app requested.
extension SignInRoutes {
    /// The most octets of a request as a form.
    private static let formLimit = AuthorizationParameters.maximumLength

    func addAuthorizationRoutes(to routes: Routes) {
        routes.open(bodyLimit: Self.formLimit).get(
            .init(SignInStep.authorize.rawValue), use: authorizePage
        )
        .post(.init(SignInStep.authorize.rawValue), use: authorizePage)
        .get(.init(SignInStep.begin.rawValue), use: beginAuthorization)
        .get(.init(SignInStep.goOn.rawValue), use: continueAuthorization)
        routes.operator(.authorizationsWrite).post(
            "/v1/authorizations/inspect", use: inspectAuthorization
        )
        .post("/v1/authorizations/refuse", use: refuseAuthorization)
    }

    // MARK: /auth/authorize

    func authorizePage(_ request: Request, _ context: APIContext) async throws -> Response {
        guard let page = settings.signInPage else { throw Problem.notFound() }
        guard let parameters = try await parameters(request, context) else {
            return tell(.notSignedIn(.malformed), request)
        }
        let client: AuthorizationClient? =
            if let id = parameters.clientID {
                try await parts.run { try $0.openIDClients.authorizationClient(id) }
            } else { nil }
        switch AuthenticationRequestReader(issuer: settings.issuer).read(parameters, client: client)
        {
        case .page(let reason): return tell(.notSignedIn(reason), request)
        case .error(let error, let target):
            return .rendered(AuthorizationResponse(target, error), words(request))
        case .accepted(var accepted):
            let subject = try await subject(
                hinted: accepted.identityTokenHint, client: accepted.clientID)
            if accepted.identityTokenHint != nil, subject == nil, accepted.prompts.contains(.none) {
                let error = AuthorizationError(
                    .loginRequired, "id_token_hint is not a token of this issuer for this client")
                return .rendered(AuthorizationResponse(accepted.target, error), words(request))
            }
            // The token's content is known now, and the token is long.
            accepted.identityTokenHint = nil
            let cookies = AuthorizationCookie(issuer: settings.issuer)
            // Browsers send no cookie with a form of another site, and a new one would end the
            // requests of other tabs. They send it with the redirect that follows.
            let isForeignForm = request.method == .post && cookies.value(in: request.headers) == nil
            let browser =
                isForeignForm
                ? nil : try cookies.value(in: request.headers) ?? PortalRepository.newBrowserToken()
            let (time, checked, network) = (
                parts.now(), accepted, parts.proxies.widestNetwork(of: request, context)
            )
            let handle = try await parts.run {
                try $0.authorizations.add(
                    checked, subjectHint: subject, browser: browser, network: network, now: time)
            }
            guard let browser else {
                return .redirect(to: "\(settings.issuer)/auth/begin?request=\(handle)")
            }
            return show(page, handle, browser)
        }
    }

    /// Passes a request to the page.
    private func show(_ page: String, _ handle: String, _ browser: String) -> Response {
        var response = Response.redirect(
            to: "\(page)\(page.contains("?") ? "&" : "?")request=\(handle)")
        response.headers[.setCookie] = AuthorizationCookie(issuer: settings.issuer).set(
            browser, age: PendingLifetime.most)
        return response
    }

    // MARK: /auth/begin

    /// Binds a request that came without a cookie to its browser.
    func beginAuthorization(_ request: Request, _ context: APIContext) async throws -> Response {
        guard let page = settings.signInPage else { throw Problem.notFound() }
        guard request.method == .get else {
            return Response(status: .ok, headers: HTTPFields().notStored)
        }
        let browser =
            try AuthorizationCookie(issuer: settings.issuer).value(in: request.headers)
            ?? PortalRepository.newBrowserToken()
        let time = parts.now()
        guard let handle = value("request", in: request),
            try await parts.run({
                // If the page is loaded again, the request is already bound.
                try $0.authorizations.bind(handle, to: browser, now: time)
                    || $0.authorizations.open(handle, now: time) != nil
            })
        else { return tell(.startAgain, request) }
        return show(page, handle, browser)
    }

    /// A parameter of an address made here; nil if it is absent.
    func value(_ name: WireText, in request: Request) -> String? {
        FormEncoding.pairs((request.uri.query ?? "").utf8, maximum: 10)?.first { $0.name == name }?
            .value.text
    }

    /// Nil for input that cannot be read.
    func parameters(
        _ request: Request, _ context: APIContext
    ) async throws -> AuthorizationParameters? {
        guard request.method == .post else {
            return AuthorizationParameters((request.uri.query ?? "").utf8)
        }
        do {
            let body = try await request.collect(context, type: "application/x-www-form-urlencoded")
            return AuthorizationParameters(body.readableBytesView)
        } catch let problem as Problem where problem.status.kind == .clientError {
            return nil
        }
    }

    /// The `sub` of one of this provider's tokens for this client.
    private func subject(hinted token: String?, client: String) async throws -> String? {
        let claims = try await claims(hinted: token)
        return claims.flatMap { $0.audience.hasSameOctets(as: client) ? $0.subject : nil }
    }

    /// The claims of one of this provider's tokens. An expired token is accepted: it only names the
    /// user and gives no access.
    func claims(hinted token: String?) async throws -> IdentityClaims? {
        guard let token, let jws = try? CompactJWS(token), (try? TokenChecks.type(jws)) != nil
        else { return nil }
        let keys = try await signer.verificationKeys()
        guard (try? TokenChecks.signature(jws, algorithms: [.es256, .rs256], keys: keys)) != nil,
            let claims = try? IdentityClaims(payload: jws.payload),
            claims.issuer.hasSameOctets(as: settings.issuer)
        else { return nil }
        return claims
    }

    /// Tells the user why the app gets no response: on the built-in page if possible, otherwise on
    /// a plain page.
    func tell(_ message: SignInMessage, _ request: Request) -> Response {
        if settings.isPageBuiltIn, let page = settings.signInPage {
            return .redirect(to: "\(page)?message=\(message.name)")
        }
        let language = language(request)
        return .page(
            .message(
                title: language.text(message.title),
                text: message.sentences.map { language.text($0) }.joined(separator: " "),
                words(request)),
            status: message.isError ? .badRequest : .ok)
    }

    /// Replaces a problem that a route gives to a browser, if no page of `/me` replaces it.
    package func page(
        for problem: Problem, isUnrouted: Bool, _ request: Request, _ context: APIContext
    ) -> Response? {
        guard SignInStep(path: request.uri.path) != nil, request.wantsPage else { return nil }
        let (language, isOurs) = (language(request), problem.status.code >= 500)
        var response = Response.page(
            .message(
                title: language.text(isOurs ? "Something went wrong here" : "That cannot be done"),
                text: language.text(
                    isOurs ? "Try again later." : "Go back, reload the page, and try again."),
                words(request)),
            status: problem.status)
        for field in problem.headers { response.headers[field.name] = field.value }
        return response
    }

    /// The language of the user's choice, of the app's request, or of the browser.
    private func language(_ request: Request) -> Catalogue {
        let cookie = HostCookie.name(
            Languages.cookie, isSecure: settings.issuer.hasPrefix("https://"))
        let asked = value("ui_locales", in: request)?.split(separator: " ").map(String.init) ?? []
        return settings.languages.best(
            (request.headers.cookie(cookie).map { [$0] } ?? []) + asked,
            accepted: request.headers[.acceptLanguage])
    }

    func words(_ request: Request) -> PassingWords {
        let language = language(request)
        return PassingWords(language: language.tag, isRightToLeft: language.isRightToLeft) {
            language.text($0)
        }
    }

    // MARK: /auth/continue

    func continueAuthorization(_ request: Request, _ context: APIContext) async throws -> Response {
        // A response is given only once: a request that only checks the
        // address must not consume it.
        guard request.method == .get else {
            return Response(status: .ok, headers: HTTPFields().notStored)
        }
        guard let ticket = value("ticket", in: request),
            let browser = AuthorizationCookie(issuer: settings.issuer).value(in: request.headers),
            let response = try await take(ticket, browser)
        else {
            return tell(.startAgain, request)
        }
        return .rendered(response, words(request))
    }

    private func take(_ ticket: String, _ browser: String) async throws -> AuthorizationResponse? {
        let time = parts.now()
        return try await parts.run {
            try $0.authorizations.take(ticket: ticket, browser: browser, now: time)
        }
    }
}

extension Response {
    /// 303: the browser continues with GET after any method. It does not send this address as
    /// referrer.
    static func redirect(to address: String) -> Response {
        var headers: HTTPFields = [.location: address]
        if let name = HTTPField.Name("Referrer-Policy") { headers[name] = "no-referrer" }
        return Response(status: .seeOther, headers: headers.notStored)
    }

    /// A response in the mode that the app requested.
    static func rendered(_ response: AuthorizationResponse, _ words: PassingWords) -> Response {
        rendered(response.rendered(words))
    }

    static func rendered(_ response: RenderedResponse) -> Response {
        switch response {
        case .redirect(let address): .redirect(to: address)
        case .page(let page): .page(page)
        }
    }

    fileprivate static func page(
        _ page: RenderedPage, status: HTTPResponse.Status = .ok
    ) -> Response {
        var headers: HTTPFields = [.contentType: "text/html; charset=utf-8"]
        for (name, value) in [
            ("Content-Security-Policy", page.policy), ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", page.referrerPolicy),
        ] {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        return Response(
            status: status, headers: headers.notStored,
            body: ResponseBody(byteBuffer: ByteBuffer(string: page.html)))
    }
}
