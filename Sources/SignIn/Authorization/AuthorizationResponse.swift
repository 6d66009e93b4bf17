// Responses of the authorization endpoint, in each response mode. Pure: the same response always
// gives the same octets.

import MailCrypto
import Support

/// The response to the client.
package struct AuthorizationResponse: Sendable, Hashable, Codable, CustomStringConvertible,
    CustomReflectable
{
    package let target: AuthorizationResponseTarget
    private let members: [Member]

    private struct Member: Sendable, Hashable, Codable {
        let name: String
        let value: String
    }

    /// A success (OpenID Connect Core sections 3.1.2.5, 3.3.2.5).
    /// - Parameters:
    ///   - identityToken: with `code id_token`.
    ///   - user: the `user` object as JSON, if the app gets one.
    package init(
        _ target: AuthorizationResponseTarget, code: String, identityToken: String?, user: String?
    ) {
        self.init(target, [("code", code), ("id_token", identityToken), ("user", user)])
    }

    /// The result of a check that a decision required.
    /// - Parameter checkResult: a signed `CheckResult`.
    package init(_ target: AuthorizationResponseTarget, checkResult: String) {
        self.init(target, [("check_result", checkResult)])
    }

    /// An error.
    package init(_ target: AuthorizationResponseTarget, _ error: AuthorizationError) {
        self.init(target, [("error", error.code.rawValue), ("error_description", error.detail)])
    }

    private init(_ target: AuthorizationResponseTarget, _ values: [(String, String?)]) {
        self.target = target
        members = (values + [("state", target.state), ("iss", target.issuer)]).compactMap {
            name, value in
            value.map { Member(name: name, value: $0) }
        }
    }

    /// Names and values in their order.
    package var parameters: [(name: String, value: String)] { members.map { ($0.name, $0.value) } }

    /// The response to the browser.
    /// - Parameter words: of a page that passes it on.
    package func rendered(_ words: PassingWords = .english) -> RenderedResponse {
        switch target.mode {
        case .query:
            let query = FormEncoding.encode(parameters)
            let uri = target.redirectURI
            let separator =
                uri.contains("?") ? (uri.hasSuffix("?") || uri.hasSuffix("&") ? "" : "&") : "?"
            return .leading(to: uri + separator + query, words)
        case .fragment:
            return .leading(to: "\(target.redirectURI)#\(FormEncoding.encode(parameters))", words)
        case .formPost:
            let fields = members.map {
                "<input type=\"hidden\" name=\"\(HTMLText.escaped($0.name))\" value=\"\(HTMLText.escaped($0.value))\">\n"
            }
            return .page(
                Page.formPost.filled(
                    ["action": HTMLText.escaped(target.redirectURI), "fields": fields.joined()],
                    words,
                    formsTo: target.redirectURI.hasPrefix("https:") ? "https:" : "https: http:"))
        case .webMessage:
            // This mode is accepted only for URIs with an origin; a message
            // to no origin would reach no window.
            let origin = WebOrigin(target.redirectURI)?.description ?? "null:"
            var response: JSONObject = [:]
            for member in members { response[member.name] = .string(member.value) }
            return .page(
                Page.webMessage.filled(
                    [
                        "origin": HTMLText.escaped(origin),
                        "response": HTMLText.escaped(JSONValue.object(response).text),
                    ], words))
        }
    }

    package var description: String { "<response>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A response to a browser.
package enum RenderedResponse: Sendable, Hashable {
    /// 303 to this address: printable ASCII.
    case redirect(String)
    /// 200 with a page.
    case page(RenderedPage)

    /// The most octets of an address in a header: nginx has room for 4,096 octets of all
    /// fields (`proxy_buffer_size`).
    private static let mostInHeader = 2_048

    /// Sends the browser to an address. An address that is too long for a header is in a page.
    package static func leading(
        to address: String, _ words: PassingWords = .english
    ) -> RenderedResponse {
        guard address.utf8.count > mostInHeader else { return .redirect(address) }
        return .page(Page.onward.filled(["address": HTMLText.escaped(address)], words))
    }
}

/// The words of the pages that pass a response on, in one language.
package struct PassingWords: Sendable, Hashable {
    /// A tag of RFC 5646.
    package let language: String
    package let isRightToLeft: Bool
    package let oneMoment: String
    package let goOn: String
    package let closeWindow: String

    package static let english = PassingWords(language: "en", isRightToLeft: false) { $0 }

    /// - Parameter text: gives the words for an English text.
    package init(language: String, isRightToLeft: Bool, _ text: (String) -> String) {
        (self.language, self.isRightToLeft) = (language, isRightToLeft)
        (oneMoment, goOn, closeWindow) = (
            text("One moment"), text("Continue"), text("You can close this window.")
        )
    }
}

/// A page that passes a response on, and the policy for its header.
package struct RenderedPage: Sendable, Hashable {
    package let html: String
    /// Content-Security-Policy: allows only the page's script. A form may lead to any origin,
    /// because browsers also apply `form-action` to the redirects of the client. The only form of
    /// the page is Postern's own.
    package let policy: String
    /// Referrer-Policy. Browsers send our origin as `Origin` when a form leads to the client. Under
    /// `no-referrer` they send `null`, which many clients refuse.
    package let referrerPolicy: String
}

extension RenderedPage {
    /// A page for a user who cannot continue, in the language of `words`.
    package static func message(
        title: String, text: String, _ words: PassingWords = .english
    ) -> RenderedPage {
        Page.message.filled(
            ["title": HTMLText.escaped(title), "text": HTMLText.escaped(text)], words)
    }
}

/// A page of `Pages` with its script.
private struct Page: Sendable {
    static let formPost = Page(html: Embedded.form_post_html, script: Embedded.form_post_js)
    static let webMessage = Page(html: Embedded.web_message_html, script: Embedded.web_message_js)

    static let message = Page(html: Embedded.message_html, script: "")
    /// This page continues by itself, without a script.
    static let onward = Page(html: Embedded.onward_html, script: "")

    /// The texts between placeholders, and, at odd positions, the names of the placeholders.
    private let parts: [String]
    private let script: String
    private let policy: String

    private init(html: String, script: String) {
        parts = html.split(separator: "{{", omittingEmptySubsequences: false)
            .flatMap { $0.split(separator: "}}", omittingEmptySubsequences: false) }.map(
                String.init)
        self.script = script
        let hash = String(
            decoding: Base64.encodeUnbroken(SHA256.hash(Array(script.utf8))), as: UTF8.self)
        policy =
            "default-src 'none'; script-src 'sha256-\(hash)'; base-uri 'none'; frame-ancestors 'none'"
    }

    /// - Parameters:
    ///   - values: must be escaped.
    ///   - destinations: where a form of the page may lead; nil for nowhere.
    func filled(
        _ values: [String: String], _ words: PassingWords, formsTo destinations: String? = nil
    ) -> RenderedPage {
        var html = ""
        let values = values.merging([
            "lang": HTMLText.escaped(words.language), "dir": words.isRightToLeft ? "rtl" : "ltr",
            "one-moment": HTMLText.escaped(words.oneMoment), "go-on": HTMLText.escaped(words.goOn),
            "close-window": HTMLText.escaped(words.closeWindow),
        ]) { given, _ in given }
        for (place, part) in parts.enumerated() {
            html += place.isMultiple(of: 2) ? part : part == "script" ? script : values[part] ?? ""
        }
        return RenderedPage(
            html: html, policy: "\(policy); form-action \(destinations ?? "'none'")",
            referrerPolicy: destinations == nil ? "no-referrer" : "strict-origin")
    }
}
