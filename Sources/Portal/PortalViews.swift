// Renders the page: one layout around every view. Templates are part of the program; values are escaped by Mustache.

import HTTP
import Mustache

struct PortalViews: Sendable {
    /// Which entry of the navigation is the current one.
    enum Place: String, CaseIterable, Sendable {
        case addresses, inboxes, security, data

        var path: String {
            switch self {
            case .addresses: "/me"
            case .inboxes: "/me/inboxes"
            case .security: "/me/security"
            case .data: "/me/data"
            }
        }

        var title: String {
            switch self {
            case .addresses: "Addresses"
            case .inboxes: "Inboxes"
            case .security: "Sign-in"
            case .data: "Your data"
            }
        }
    }

    /// Every view: what stands in the layout, without the newline that ends its file.
    private static let files: [String: [UInt8]] = [
        "account": PackageResources.account_mustache, "confirm": PackageResources.confirm_mustache,
        "confirmed": PackageResources.confirmed_mustache, "data": PackageResources.data_mustache,
        "delete": PackageResources.delete_mustache, "delete-now": PackageResources.delete_now_mustache,
        "goodbye": PackageResources.goodbye_mustache, "inboxes": PackageResources.inboxes_mustache,
        "link": PackageResources.link_mustache, "overview": PackageResources.overview_mustache,
        "refusal": PackageResources.refusal_mustache, "remove": PackageResources.remove_mustache,
        "security": PackageResources.security_mustache,
        "sent": PackageResources.sent_mustache, "sign-in": PackageResources.sign_in_mustache,
        "sign-in-link": PackageResources.sign_in_link_mustache, "stop": PackageResources.stop_mustache,
    ]

    private let templates: [String: MustacheTemplate]
    private let layout: MustacheTemplate
    private let service: String

    /// Throws where a template does not parse.
    init(service: String) throws {
        self.service = service
        templates = try Self.files.mapValues { try MustacheTemplate(string: String(decoding: $0.dropLast(), as: UTF8.self)) }
        layout = try MustacheTemplate(string: String(decoding: PackageResources.layout_mustache, as: UTF8.self))
    }

    /// - Parameters:
    ///   - current: nil for a page without navigation.
    ///   - csrf: the token of the sign-out form.
    func render(
        _ view: String, _ values: [String: Any], title: String, current: Place?, csrf: String?, alert: String?, notice: String?,
        hasScript: Bool
    ) throws -> String {
        guard let template = templates[view] else { throw Problem.fault() }
        var values = values
        values["service"] = service
        values["mark"] = PortalStyle.mark
        var whole: [String: Any] = [
            "title": title, "service": service, "mark": PortalStyle.mark, "version": PortalStyle.version,
            "content": template.render(values),
            "is_narrow": current == nil, "has_script": hasScript,
        ]
        if let current {
            whole["nav"] =
                [
                    "items": Place.allCases.map {
                        ["path": $0.path, "title": $0.title, "current": $0 == current] as [String: Any]
                    },
                    "csrf": csrf ?? "",
                ] as [String: Any]
        }
        if let alert { whole["alert"] = ["text": alert] }
        if let notice { whole["notice"] = ["text": notice] }
        return layout.render(whole)
    }
}
