// The pages: templates embedded in the program; values are escaped.

import HTTP
import HTTPTypes
import Hummingbird
import Languages
import NIOCore
import Support

struct AppleViews: Sendable {
    private let layout: HTMLTemplate
    private let choiceTemplate: HTMLTemplate
    private let overviewTemplate: HTMLTemplate
    private let formPostTemplate: HTMLTemplate

    /// Throws if a template does not parse.
    init() throws {
        layout = try HTMLTemplate(Embedded.layout_mustache)
        choiceTemplate = try HTMLTemplate(Embedded.choice_mustache)
        overviewTemplate = try HTMLTemplate(Embedded.overview_mustache)
        formPostTemplate = try HTMLTemplate(Embedded.form_post_mustache)
    }

    /// A page as a response: loads only its own style, and no script except the
    /// one that submits a form.
    func page(_ html: String, script: Bool = false) -> Response {
        var headers: HTTPFields = [:]
        if let name = HTTPField.Name("Content-Security-Policy") {
            headers[name] =
                "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
                + (script ? "; script-src 'self'" : "")
        }
        return Response(
            type: "text/html; charset=utf-8", headers: headers, body: ByteBuffer(string: html))
    }

    private func laidOut(
        _ template: HTMLTemplate, title: String, narrow: Bool, _ values: [String: Any]
    ) -> String {
        layout.render(
            ["title": title, "is_narrow": narrow, "content": template.render(Self.present(values))]
                as [String: Any])
    }

    /// Removes empty texts: a section of Mustache would treat them as present.
    private static func present(_ values: [String: Any]) -> [String: Any] {
        values.filter { $0.value as? String != "" }
    }

    // MARK: Signing in

    /// The choice of a user. Works without a script, because each user is a separate form.
    /// - Parameter query: the request, which is sent back with the choice.
    func choice(
        _ authorization: AppleAuthorization, users: [(user: AppleUser, isKnown: Bool)],
        query: String
    ) -> String {
        let asksName = authorization.scopes.contains("name")
        let asksEmail = authorization.scopes.contains("email")
        return laidOut(
            choiceTemplate, title: "Sign in to \(authorization.client.id)", narrow: true,
            [
                "client": authorization.client.id, "query": query,
                "redirect": authorization.redirectURI ?? "",
                "scopes": authorization.scopes.sorted().joined(separator: " and "),
                "warning": authorization.warning ?? "",
                "users": users.map { user, isKnown in
                    [
                        "id": user.id, "email": user.email, "first_name": user.firstName,
                        "last_name": user.lastName,
                        "initial": user.id.prefix(1).uppercased(), "is_known": isKnown,
                        "asks": !isKnown && (asksName || asksEmail), "asks_name": asksName,
                        "asks_email": asksEmail,
                        "hides": user.hidesEmail,
                    ] as [String: Any]
                },
            ])
    }

    /// A page that posts the response to the app.
    func formPost(_ response: AppleAuthorizationResponse) -> String {
        formPostTemplate.render(
            [
                "action": response.authorization.redirectURI ?? "",
                "fields": response.parameters.map { ["name": $0.name, "value": $0.value] },
            ] as [String: Any])
    }

    // MARK: The journal

    func overview(_ state: AppleState, now: Int64) -> String {
        let entries = state.journal.entries
        return laidOut(
            overviewTemplate, title: "Sign in with Apple: sandbox", narrow: false,
            [
                "address": state.address, "issuer": state.issuer, "now": UTCTime.text(now),
                "offset": state.clockOffset == 0
                    ? "" : (state.clockOffset > 0 ? "+" : "") + span(state.clockOffset),
                "count": "\(entries.count)", "refused": "\(entries.count(where: \.isRefusal))",
                "auto": autoText(state.settings.auto), "has_entries": !entries.isEmpty,
                "entries": entries.map(entry),
                "clients": state.seed.clients.map { client in
                    [
                        "id": client.id, "team": state.team(of: client)?.id ?? client.team,
                        "redirects": client.redirectURIs ?? ["any address of this machine"],
                        "notifications": client.notifications ?? "none",
                        "dialect": client.dialect.rawValue,
                    ] as [String: Any]
                },
                "teams": state.seed.teams.map { team in
                    [
                        "id": team.id,
                        "keys": team.keys.map {
                            ["id": $0.id, "has_private": $0.privatePEM != nil] as [String: Any]
                        },
                        "users": state.users.map { user in
                            [
                                "id": user.id, "sub": AppleState.subject(user.id, team: team.id),
                                "email": user.hidesEmail
                                    ? AppleState.privateEmail(user.id, team: team.id) : user.email,
                            ]
                        },
                    ] as [String: Any]
                },
                "keys": state.keys.map { ["id": $0.id] },
                "has_failures": !state.failures.orders.isEmpty,
                "failures": state.failures.orders.map {
                    [
                        "failure": $0.failure.rawValue, "place": $0.place.rawValue,
                        "times": "\($0.times)",
                    ]
                },
            ])
    }

    private func autoText(_ auto: AppleSettings.AutoAnswer?) -> String {
        switch auto {
        case .user(let id)?: "\(id), without being asked"
        case .cancel?: "no one: each request is cancelled"
        case nil: "the user who is chosen on the page"
        }
    }

    private func entry(_ entry: AppleJournal.Entry) -> [String: Any] {
        Self.present([
            "number": "\(entry.number)",
            "time": String(UTCTime.text(entry.at).dropFirst(11).prefix(8)), "method": entry.method,
            "path": entry.path, "client": entry.clientID ?? "",
            "status": entry.status.map(String.init) ?? "no answer",
            "error": entry.error ?? "", "cause": entry.cause, "warning": entry.warning ?? "",
            "kind": entry.isRefusal ? "refused" : "fine",
            "has_parameters": !entry.parameters.isEmpty,
            "parameters": entry.parameters.map { ["name": $0.name, "value": $0.value] },
        ])
    }
}

/// `/`, and the files that its pages load.
struct ApplePageRoutes: RouteModule {
    let place: AppleStatePlace
    let views: AppleViews

    func addRoutes(to routes: Routes) {
        routes.open.get("/") { _, _ in
            let (state, now) = place.change { state, now in (state, now) }
            return views.page(views.overview(state, now: now))
        }
        routes.open.get("/sandbox/style.css") { _, _ in
            Response(type: "text/css; charset=utf-8", body: ByteBuffer(string: Embedded.style_css))
        }
        routes.open.get("/sandbox/form-post.js") { _, _ in
            Response(
                type: "text/javascript; charset=utf-8",
                body: ByteBuffer(string: Embedded.form_post_js))
        }
    }
}
