// One request to the page: its form, its cookies, its origin, and the response.

import Database
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import Languages
import MailCrypto
import PersonalData
import SignIn
import Support

/// The token of a form: it cannot be made without the cookie.
enum PortalCSRF {
    static func token(for cookie: String) -> String {
        let code = HMACSHA256.authenticationCode(
            for: Array("postern form 1".utf8), key: Array(cookie.utf8))
        return String(decoding: Base32.encode(code.prefix(20)), as: UTF8.self)
    }

    static func matches(_ given: WireText?, _ cookie: String) -> Bool {
        constantTimeEqual(given?.octets ?? [], Array(token(for: cookie).utf8))
    }
}

/// Ends a request early, with its own page.
struct PortalRefusal: Error {
    let status: HTTPResponse.Status
    let title: String
    let text: String
    /// Seconds, for Retry-After; nil if waiting does not help.
    var retryAfter: Int?
    /// A time in the text, in seconds since 1970: `{day}`.
    var day: Int64?

    /// For a user whom the operator froze.
    static func frozen(_ freeze: UserFreeze) -> PortalRefusal {
        PortalRefusal(
            status: .forbidden, title: "Your account is frozen",
            text: freeze.endsAt == nil
                ? "The operator of this service has frozen your account. You cannot sign in to apps, and no mail is passed on. Nothing is deleted. Ask the operator if you do not know why."
                : "The operator of this service has frozen your account until {day}. Until then you cannot sign in to apps, and no mail is passed on. Nothing is deleted. Ask the operator if you do not know why.",
            day: freeze.endsAt)
    }

    static func tooOften(_ seconds: Int) -> PortalRefusal {
        PortalRefusal(
            status: .tooManyRequests, title: "Too many links were requested",
            text:
                "Too many sign-in links were requested from your network. Wait a few minutes, and check your inbox in the meantime.",
            retryAfter: seconds)
    }

    static let over = PortalRefusal(
        status: .gone, title: "This sign-in is over",
        text: "It took too long, or was finished already. Go back to the app and start again.")
    static let foreign = PortalRefusal(
        status: .forbidden, title: "That did not come from this page",
        text:
            "The form was not sent from this page, or it is too old. Reload the page and try again."
    )
    static let notFound = PortalRefusal(
        status: .notFound, title: "Page not found",
        text: "The address is wrong, or the page no longer exists.")
    static let notLikeThat = PortalRefusal(
        status: .methodNotAllowed, title: "This page cannot be opened directly",
        text: "It is a step of a form. Go to the page with the form, and use the button there.")
    static let otherBrowser = PortalRefusal(
        status: .forbidden, title: "This check belongs to another browser",
        text:
            "A check works only in the browser that opened it first. If someone sent you this link, do nothing. Otherwise go back to the app and start again."
    )
    static let busy = PortalRefusal(
        status: .serviceUnavailable, title: "Too much at once",
        text: "The service is overloaded. Try again in a minute.")
}

struct PortalRequest: Sendable {
    let page: PortalPage
    let request: Request
    let context: APIContext
    private(set) var form = FormBody()
    /// The outcome of the same form, which the same browser sent a moment ago; nil if it did not.
    var repetition: FormOutcome?
    /// The app's request to which this page belongs; nil if there is none, or if it has ended.
    private(set) var sheet: OpenSheet?
    /// The handle of that request, as the page received it: a code belongs to it even if the
    /// request has ended.
    private(set) var handle: String?
    /// The token of this page's forms; nil while no user is signed in.
    var csrf: String?
    /// The inbox that the user signed in with; nil while no user is signed in.
    var inbox: InboxAddress?
    /// The time at which all data of the signed-in user is deleted, in seconds since 1970; nil if
    /// no deletion is scheduled.
    var deletesAt: Int64?
    /// When a wait for signing in without the second factor ends, in seconds since 1970; nil if
    /// none was begun.
    var recoveryEndsAt: Int64?

    init(page: PortalPage, request: Request, context: APIContext) {
        self.page = page
        self.request = request
        self.context = context
    }

    // MARK: Input

    var sessionToken: String? { page.cookies.value(PortalCookies.session, in: request.headers) }
    /// The language that the user chose at the foot of a page.
    private var chosenLanguage: String? { page.cookies.language(in: request.headers) }
    /// The language of the page: the user's choice, the app's, or the browser's.
    var language: Catalogue {
        page.languages.best(
            (chosenLanguage.map { [$0] } ?? []) + (sheet?.request.uiLocales ?? []),
            accepted: request.headers[.acceptLanguage])
    }
    var words: PortalText { PortalText(language) }
    /// The cookie that ties a link to the browser that requested it.
    var browser: String? { page.cookies.value(PortalCookies.browser, in: request.headers) }

    /// The networks that the request comes from.
    var clientNetworks: [ClientNetwork] { page.proxies.networks(of: request, context) }

    /// A number in the path. Throws `PortalRefusal` (404).
    func number(_ name: String) throws -> Int64 {
        guard let text = context.parameters.get(name), let number = Int64(text), number > 0 else {
            throw PortalRefusal.notFound
        }
        return number
    }

    /// A token in the path, in the form made here. Throws `PortalRefusal` (404).
    func token() throws -> String {
        guard let text = context.parameters.get("token"), text.utf8.count == 32,
            Base32.isEncoded(text.utf8)
        else {
            throw PortalRefusal.notFound
        }
        return text
    }

    /// The last action: a word in a cookie that the page then removes. A link cannot set it, and a
    /// reload does not repeat it.
    var told: PortalNotice? { telling.flatMap { PortalNotice(rawValue: $0.word) } }
    /// The item concerned, by the store's number: an account or inbox, shown only if it
    /// is one of the user's own.
    var toldOf: Int64? { telling?.number }
    private var telling: (word: String, number: Int64?)? {
        page.cookies.telling(in: request.headers)
    }

    /// Browsers report the origin of a request; requests from other origins are refused.
    func checkOrigin() throws {
        guard request.method != .get, request.method != .head else { return }
        // With this page's no-referrer policy, browsers write `null`; Sec-Fetch-Site and the
        // form's token still protect it.
        if let origin = request.headers[.origin], origin != "null",
            origin.lowercased() != page.origin
        {
            throw PortalRefusal.foreign
        }
        if let name = HTTPField.Name("Sec-Fetch-Site"), let site = request.headers[name],
            site != "same-origin", site != "none"
        {
            throw PortalRefusal.foreign
        }
    }

    /// The text typed in a field; empty if it is absent.
    func typed(_ name: WireText) -> String { form[name]?.text ?? "" }

    /// A parameter of the address; nil if it is absent, empty or given twice.
    func query(_ name: WireText) -> WireText? {
        guard let query = request.uri.query,
            query.utf8.count <= AuthorizationParameters.maximumLength
        else { return nil }
        return AuthorizationParameters(query.utf8)?[name]
    }

    /// Opens the app's request to which this page belongs. Other pages never have one, even if
    /// their address names one. They keep a protection that these steps must give up: a window that
    /// opened the page cannot control it.
    mutating func openSheet() async throws {
        guard page.provider != nil, let handle = (form["request"] ?? query("request"))?.text else {
            return
        }
        guard handle.utf8.count <= 64, Base64URL.decode(handle.utf8) != nil else { return }
        self.handle = handle
        sheet = try await page.sheet(handle)
    }

    /// A path of this page as a step of the same request.
    func step(_ path: String) -> String { handle.map { "\(path)?request=\($0)" } ?? path }

    /// Reads the form: the longest has a field for each address of a list.
    mutating func readForm() async throws {
        form = try await request.form(context, maximum: AddressListPage.size + 10)
    }

    /// Throws `PortalRefusal` unless the form was made for this session.
    func checkForm() throws {
        guard let sessionToken, PortalCSRF.matches(form["csrf"], sessionToken) else {
            throw PortalRefusal.foreign
        }
    }

    // MARK: Responses

    /// A page.
    /// - Parameters:
    ///   - alert: an error, which screen readers read at once.
    ///   - notice: what was done.
    func html<View: PageView>(
        _ view: View, title: String, status: HTTPResponse.Status = .ok, alert: String? = nil,
        notice: String? = nil,
        cookies: [String] = []
    ) throws -> Response {
        // The title of a page that only refuses states the error already.
        let isError = status.kind == .clientError && !View.isRefusal
        let text = try page.views.render(
            view,
            PageTexts(
                title: isError ? language.text("Error: {title}", ["title": title]) : title,
                alert: alert, notice: notice),
            in: language, csrf: csrf, request: handle, here: here,
            reader: csrf.map { _ in
                PageReader(
                    inbox: inbox.map(PortalText.address), deletionDay: deletesAt.map(words.date),
                    recoveryDay: recoveryEndsAt.map(words.date))
            })
        var headers: HTTPFields = [.cacheControl: "no-store"]
        headers.append(PortalHeaders.policy(hasScript: View.hasScript, formScheme: appScheme))
        headers.append(PortalHeaders.referrer)
        headers.append(PortalHeaders.frames)
        // If a page of the app waits in a window, the window must keep its opener, for our message
        // or for that of the app's callback. The party that opens the window chooses the response
        // mode, so the mode decides nothing here.
        if sheet == nil || appScheme != nil { headers.append(PortalHeaders.opener) }
        for cookie in cookies + (telling == nil ? [] : [page.cookies.remove(PortalCookies.told)]) {
            headers.append(HTTPField(name: .setCookie, value: cookie))
        }
        return Response(
            status: status, type: "text/html; charset=utf-8", headers: headers,
            body: ByteBuffer(string: text))
    }

    /// The page to which the choice of a language leads back: this page, if it has a lasting
    /// address, without parameters that a link or a provider added.
    private var here: String {
        let path = request.uri.path
        guard request.method == .get else {
            return PortalPage.page(ofForm: path).flatMap { page.here(step($0)) ?? page.here($0) }
                ?? (handle == nil ? "/me" : step(PortalPage.sheetPath))
        }
        return page.here(step(path)) ?? page.here(path + (request.uri.query.map { "?\($0)" } ?? ""))
            ?? page.here(path)
            ?? (handle == nil ? "/me" : step(PortalPage.sheetPath))
    }

    /// The custom scheme of the app with which this request ends, as in `com.example.app`; nil for
    /// the web. Only that app answers to it, so forms may lead there.
    private var appScheme: String? {
        guard let uri = sheet?.request.target.redirectURI, WebOrigin(uri) == nil else { return nil }
        let scheme = uri.utf8.prefix { $0 != UInt8(ascii: ":") }
        let isScheme = scheme.allSatisfy {
            $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0)
        }
        return isScheme && !scheme.isEmpty ? String(decoding: scheme, as: UTF8.self) : nil
    }

    /// Whether this request may lead to another party's site. Browsers apply `form-action` to every
    /// redirect that follows a form, including the redirects of that site. So such a form ends with
    /// a page that continues by itself.
    private var leadsAway: Bool { sheet != nil && appScheme == nil || form["end_session"] != nil }

    /// Sends the browser to another page, by GET.
    /// - Parameters:
    ///   - told: the action that the page reports.
    ///   - number: the item concerned.
    func redirect(
        _ path: String, told: PortalNotice? = nil, of number: Int64? = nil, cookies: [String] = []
    ) -> Response {
        redirect(
            path,
            telling: told.map { told in number.map { "\(told.rawValue)-\($0)" } ?? told.rawValue },
            cookies: cookies)
    }

    /// - Parameter telling: the value of its cookie.
    func redirect(_ path: String, telling: String?, cookies: [String] = []) -> Response {
        let cookies =
            cookies
            + (telling.map {
                [page.cookies.set(PortalCookies.told, $0, age: PortalCookies.tellingAge)]
            } ?? [])
        var response =
            onward(to: path)
            ?? Response(status: .seeOther, headers: [.location: path, .cacheControl: "no-store"])
        if response.status == .seeOther {
            response.headers.append(PortalHeaders.referrer)
            response.headers.append(PortalHeaders.policy())
        }
        for cookie in cookies {
            response.headers.append(HTTPField(name: .setCookie, value: cookie))
        }
        return response
    }

    /// The page that continues by itself; nil if a redirect is possible.
    private func onward(to path: String) -> Response? {
        guard request.method == .post, leadsAway || path.hasPrefix("\(PortalPage.sheetPath)?"),
            let refresh = HTTPField.Name("Refresh"),
            var response = try? html(OnwardView(target: path), title: language.text("One moment"))
        else { return nil }
        response.headers[refresh] = "0; url=\(path)"
        return response
    }

    /// Converts any error to a page. Reveals nothing internal.
    func failure(_ error: any Error) throws -> Response {
        switch error {
        case let refusal as PortalRefusal:
            var response = try refuse(
                language.text(refusal.title),
                refusal.day.map { language.text(refusal.text, ["day": words.date($0)]) }
                    ?? language.text(refusal.text), refusal.status)
            if let seconds = refusal.retryAfter { response.headers[.retryAfter] = "\(seconds)" }
            return response
        case let refusal as StoreFailure where refusal.isRefusal:
            return try refuse(
                language.text("That cannot be done"), sentence(refusal), Problem(refusal).status)
        default:
            let problem = Problem(error)
            if problem.status.code >= 500 { context.logger.requestFailed(error) }
            let isOurs = problem.status.code >= 500
            return try refuse(
                page.languages.words(problem.title, in: language)
                    ?? (isOurs
                        ? language.text("Something went wrong here")
                        : language.text("That cannot be done")),
                problem.detail.flatMap {
                    page.languages.words(Languages.sentence($0), in: language)
                }
                    ?? (isOurs
                        ? language.text("Try again later.")
                        : language.text("Go back, reload the page, and try again.")),
                problem.status)
        }
    }

    private func refuse(
        _ title: String, _ text: String, _ status: HTTPResponse.Status
    ) throws -> Response {
        try html(RefusalView(title: title, text: text), title: title, status: status)
    }

    /// Why the store refuses, in the user's words.
    func sentence(_ refusal: StoreFailure) -> String {
        page.languages.sentence(of: refusal, in: language)
    }
}

/// The page that continues by itself.
struct OnwardView: PageView {
    static let template = PageTemplate.onward
    let target: String
}

/// A page that only says why an action is refused, or that it is done.
struct RefusalView: PageView {
    struct Back: Sendable {
        let target: String
        let label: String
    }

    static let template = PageTemplate.refusal
    static let isRefusal = true
    let title: String
    let text: String
    /// The page to which the reader can go back.
    var back: Back?
}

/// Fields sent with every page.
enum PortalHeaders {
    /// Allows only this page's style and mark, and no frame around it.
    /// - Parameters:
    ///   - hasScript: also allows the page's one script file, which writes no markup.
    ///   - formScheme: a scheme of an app's own to which forms may lead.
    static func policy(hasScript: Bool = false, formScheme: String? = nil) -> HTTPField {
        field(
            "Content-Security-Policy",
            "default-src 'none'; \(hasScript ? "script-src 'self'; " : "")style-src 'self'; img-src 'self'; "
                + "form-action 'self'\(formScheme.map { " \($0):" } ?? ""); base-uri 'none'; frame-ancestors 'none'"
                + (hasScript ? "; require-trusted-types-for 'script'; trusted-types 'none'" : ""))
    }
    static let referrer = referrer("no-referrer")
    static func referrer(_ policy: String) -> HTTPField { field("Referrer-Policy", policy) }
    static let frames = field("X-Frame-Options", "DENY")
    static let opener = field("Cross-Origin-Opener-Policy", "same-origin")

    private static func field(_ name: String, _ value: String) -> HTTPField {
        HTTPField(name: HTTPField.Name(name) ?? .contentSecurityPolicy, value: value)
    }
}
