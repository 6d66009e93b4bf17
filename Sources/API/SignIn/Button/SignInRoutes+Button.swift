// GET /auth/button.svg and /auth/sign-in.js, which an app uses on its page.

import HTTP
import HTTPTypes
import Hummingbird
import Languages
import Support

extension SignInRoutes {
    func addButtonRoutes(to routes: Routes) {
        routes.open.get("/auth/button.svg", use: button).get("/auth/sign-in.js", use: signInScript)
    }

    /// Cached for a day. Pages of every origin may show it, even if they restrict embedded
    /// resources (Fetch, section 3.7). Opened directly, it can do nothing.
    private static let headers: HTTPFields = {
        var headers: HTTPFields = [
            .cacheControl: "public, max-age=86400",
            .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'; sandbox",
        ]
        if let name = HTTPField.Name("Cross-Origin-Resource-Policy") {
            headers[name] = "cross-origin"
        }
        return headers
    }()

    /// Only the shapes of the mark.
    private static let mark: String = {
        let text = Embedded.mark_svg
        return text.firstRange(of: ">").map {
            text[$0.upperBound...].replacing("</svg>", with: "").filter { !$0.isNewline }
        }
            ?? ""
    }()

    // MARK: The button

    func button(_ request: Request, _ context: APIContext) async throws -> Response {
        guard settings.signInPage != nil else { throw Problem.notFound() }
        let button = try button(
            try request.query([
                "kind", "style", "width", "height", "lang", "logo", "radius", "border",
            ]))
        let svg = button.svg(service: settings.service, mark: Self.mark)
        return Response(type: "image/svg+xml", headers: Self.headers, body: ByteBuffer(string: svg))
    }

    /// Throws `Problem` (400), which lists the valid values and repeats nothing of the query.
    private func button(_ query: [WireText: WireText]) throws -> SignInButton {
        var button = SignInButton()
        button.kind = try Self.named(query, "kind") ?? button.kind
        button.style = try Self.named(query, "style") ?? button.style
        button.height = try Self.number(query, "height", SignInButton.heights) ?? button.height
        button.logo = try Self.named(query, "logo") ?? button.logo
        button.radius = try Self.number(query, "radius", SignInButton.radii) ?? button.radius
        button.border = try Self.named(query, "border")
        button.width = try Self.number(query, "width", SignInButton.widths)
        button.language = settings.languages.best([query["lang"]?.text ?? ""], accepted: nil)
        return button
    }

    private static func named<Value: RawRepresentable & CaseIterable>(
        _ query: [WireText: WireText], _ name: WireText
    ) throws -> Value?
    where Value.RawValue == String {
        guard let text = query[name] else { return nil }
        guard let value = Value(rawValue: text.text) else {
            throw Problem.malformed(
                "\(name.text) must be one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))"
            )
        }
        return value
    }

    private static func number(
        _ query: [WireText: WireText], _ name: WireText, _ range: ClosedRange<Int>
    ) throws -> Int? {
        guard let text = query[name] else { return nil }
        guard text.octets.count <= 4, text.octets.allSatisfy({ (0x30...0x39).contains($0) }),
            let value = Int(text.text),
            range.contains(value)
        else {
            throw Problem.malformed(
                "\(name.text) must be a number of pixels from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return value
    }

    // MARK: The script

    func signInScript(_ request: Request, _ context: APIContext) async throws -> Response {
        guard settings.signInPage != nil else { throw Problem.notFound() }
        let script = Self.script(
            issuer: settings.issuer, service: settings.service, languages: settings.languages)
        return Response(
            type: "text/javascript; charset=utf-8", headers: Self.headers,
            body: ByteBuffer(string: script))
    }

    /// The script for one issuer, without comments and indentation, which a browser does not need.
    static func script(issuer: String, service: String, languages: Languages) -> String {
        var texts: JSONObject = [:]
        for language in languages.all {
            var kinds: JSONObject = [:]
            for kind in ButtonKind.allCases {
                kinds[kind.rawValue] = .string(kind.text(language, service: "%"))
            }
            texts[language.tag] = .object(kinds)
        }
        let source = Embedded.sign_in_js
        return source.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " } }.filter {
            !$0.hasPrefix("//")
        }
        .joined(separator: "\n")
        .replacing("{{service}}", with: JSONValue.string(service).text)
        .replacing("{{issuer}}", with: JSONValue.string(issuer).text)
        .replacing("{{texts}}", with: JSONValue.object(texts).text) + "\n"
    }
}
