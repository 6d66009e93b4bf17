// Renders the page: one layout around every view. Templates are part of the program; values are escaped.

import HTTP
import Languages

struct PortalViews: Sendable {
    /// The current entry of the navigation.
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

        func title(_ language: Catalogue) -> String {
            switch self {
            case .addresses: language.text("Addresses")
            case .inboxes: language.text("Inboxes")
            case .security: language.text("Sign-in")
            case .data: language.text("Your data")
            }
        }
    }

    /// Every view: the content inside the layout, without the newline at the end of the file.
    private static let files = Embedded.files.reduce(into: [String: String]()) {
        guard let name = $1.path.split(separator: "/").last, name.hasSuffix(".mustache"), name != "layout.mustache" else {
            return
        }
        $0[String(name.dropLast(".mustache".count))] = $1.text
    }

    /// The views in one language.
    private struct Language {
        let catalogue: Catalogue
        let templates: [String: HTMLTemplate]
        let layout: HTMLTemplate
    }

    private let languages: [String: Language]
    private let service: String
    let style: PortalStyle

    /// Throws if a template does not parse.
    init(service: String, languages: Languages, looks: PageLooks = .standard) throws {
        self.service = service
        style = PortalStyle(looks)
        self.languages = try languages.all.reduce(into: [:]) { result, catalogue in
            func template(_ text: some StringProtocol) throws -> HTMLTemplate {
                try HTMLTemplate(catalogue.localised(String(text)))
            }
            result[catalogue.tag] = Language(
                catalogue: catalogue, templates: try Self.files.mapValues { try template($0.dropLast()) },
                layout: try template(Embedded.layout_mustache))
        }
    }

    /// All texts of the views.
    static var texts: [String] {
        files.sorted { $0.key < $1.key }.reduce(into: Catalogue.texts(of: Embedded.layout_mustache)) {
            $0 += Catalogue.texts(of: $1.value)
        }
    }

    /// - Parameters:
    ///   - language: the language of the texts.
    ///   - current: nil for a page without navigation.
    ///   - csrf: the token of the sign-out form.
    ///   - inbox: the inbox that the user signed in with.
    ///   - ending: the day on which all of the user's data is to be deleted.
    func render(
        _ view: String, _ values: [String: Any], in language: Catalogue, title: String, current: Place?, csrf: String?,
        inbox: String?, ending: String?, alert: String?, notice: String?, hasScript: Bool
    ) throws -> String {
        guard let language = languages[language.tag], let template = language.templates[view] else { throw Problem.fault() }
        var values = values
        values["service"] = service
        values["mark"] = style.mark
        var whole: [String: Any] = [
            "title": title, "service": service, "mark": style.mark, "version": style.version,
            "icon": style.tabIcon.path, "icon_type": style.tabIcon.type,
            "content": template.render(values),
            "is_narrow": current == nil, "has_script": hasScript, "language": language.catalogue.tag,
            "is_right_to_left": language.catalogue.isRightToLeft,
        ]
        if let current {
            whole["nav"] =
                [
                    "items": Place.allCases.map {
                        ["path": $0.path, "title": $0.title(language.catalogue), "current": $0 == current] as [String: Any]
                    },
                    "csrf": csrf ?? "", "inbox": inbox ?? "",
                ] as [String: Any]
            if let ending { whole["ending"] = ["day": ending, "csrf": csrf ?? ""] }
        }
        if let alert { whole["alert"] = ["text": alert] }
        if let notice { whole["notice"] = ["text": notice] }
        return language.layout.render(whole)
    }
}
