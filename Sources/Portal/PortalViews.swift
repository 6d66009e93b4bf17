// Renders the page: one layout around every view. Templates are part of the
// program; values are escaped.

import Accounts
import HTTP
import Languages
import Support

/// A template of the page: the name of its file without `.mustache`.
enum PageTemplate: String, CaseIterable, Sendable {
    case account, authenticator, check, confirm, confirmed, data, delete, goodbye, inboxes, link,
        lost,
        offer, onward, overview, refusal, remove
    case replace, security
    case sent, sheet, stop
    case dataRead = "data-read"
    case deleteNow = "delete-now"
    case signIn = "sign-in"
    case signInLink = "sign-in-link"
    case signOut = "sign-out"
    case secondFactor = "second-factor"
    case newFactor = "new-factor"
    case recoveryCodes = "recovery-codes"
    case stopRecovery = "stop-recovery"
}

/// The content of one template. Its stored properties are the values of the template, by name.
protocol PageView: Sendable {
    static var template: PageTemplate { get }
    /// The navigation entry to which the view belongs. Only signed-in users see the navigation.
    static var place: PagePlace { get }
    /// Whether the view uses the script file: for passkeys, for copying, and for buttons that must
    /// not be pressed twice.
    static var hasScript: Bool { get }
    /// Whether the view only refuses, so that its title says so already.
    static var isRefusal: Bool { get }
}

extension PageView {
    static var place: PagePlace { .addresses }
    static var hasScript: Bool { false }
    static var isRefusal: Bool { false }
}

/// The entries of the navigation.
enum PagePlace: String, CaseIterable, Sendable {
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

/// Values of every template.
struct PageFrame: Sendable {
    let service: String
    /// HTML.
    let mark: String
    /// The token of the forms; nil if no user is signed in, and the view has no token of its own.
    let csrf: String?
    /// The handle of the app's request to which the page belongs.
    let request: String?
    /// The address at which users find help; nil if the operator gives none.
    let help: String?
}

/// The values that the layout shows around a view, in addition to the frame.
struct PageSurroundings: Sendable {
    struct Navigation: Sendable {
        struct Item: Sendable {
            let path: String
            let title: String
            let isCurrent: Bool
        }

        let items: [Item]
        /// The inbox that the user signed in with.
        let inbox: String?
    }

    struct Message: Sendable {
        let text: String
    }

    /// A link of the operator at the foot of the page.
    struct Link: Sendable {
        let target: String
        let title: String
    }

    /// One language in the choice of languages.
    struct Choice: Sendable {
        let tag: String
        /// The name of the language in itself.
        let name: String
        let isChosen: Bool
    }

    let title: String
    /// The target of the service's name: the step of the app's request, or the user's page.
    let home: String
    let links: [Link]
    let choices: [Choice]
    /// The page to which the choice of a language leads back.
    let here: String
    let language: String
    let isRightToLeft: Bool
    let hasScript: Bool
    let isNarrow: Bool
    let version: String
    let icon: String
    let iconType: String
    let navigation: Navigation?
    /// The day on which all of the user's data is to be deleted.
    let deletionDay: String?
    /// The day from which someone can sign in as the user without the second factor.
    let recoveryDay: String?
    let alert: Message?
    let notice: Message?
    /// HTML.
    let content: String
}

/// The texts that a response adds to a view.
struct PageTexts {
    let title: String
    /// An error, which screen readers read at once.
    var alert: String?
    /// The last action.
    var notice: String?
}

/// The user to whom a page is shown.
struct PageReader {
    /// The inbox that the user signed in with, in readable form.
    let inbox: String?
    /// The day on which all of the user's data is to be deleted.
    let deletionDay: String?
    /// The day from which someone can sign in as the user without the second factor.
    let recoveryDay: String?
}

struct PortalViews: Sendable {
    private static let files = Embedded.files.reduce(into: [String: String]()) {
        guard let name = $1.path.split(separator: "/").last, name.hasSuffix(".mustache") else {
            return
        }
        $0[String(name.dropLast(".mustache".count))] = $1.text
    }

    /// The text of a template, without the newline at the end of its file.
    private static func text(_ template: PageTemplate) throws -> String {
        guard let text = files[template.rawValue] else { throw Problem.fault() }
        return String(text.dropLast())
    }

    /// The views in one language.
    private struct Language {
        let catalogue: Catalogue
        let templates: [PageTemplate: HTMLTemplate]
        let layout: HTMLTemplate
    }

    private let languages: [String: Language]
    private let service: String
    private let links: PageLinks
    let style: PortalStyle

    /// Throws if a template is missing or does not parse.
    init(service: String, languages: Languages, looks: PageLooks = .standard) throws {
        self.service = service
        links = looks.links
        style = PortalStyle(looks)
        self.languages = try languages.all.reduce(into: [:]) { result, catalogue in
            result[catalogue.tag] = Language(
                catalogue: catalogue,
                templates: try PageTemplate.allCases.reduce(into: [:]) {
                    $0[$1] = try HTMLTemplate(catalogue.localised(Self.text($1)))
                },
                layout: try HTMLTemplate(catalogue.localised(Embedded.layout_mustache)))
        }
    }

    /// All texts of the views.
    static var texts: [String] {
        files.sorted { $0.key < $1.key }.reduce(into: []) { $0 += Catalogue.texts(of: $1.value) }
    }

    /// - Parameters:
    ///   - language: the language of the texts.
    ///   - csrf: the token of the page's forms; nil while no one is signed in.
    ///   - request: the handle of the app's request to which the page belongs.
    ///   - here: the page to which the choice of a language leads back.
    ///   - reader: nil for a page without navigation.
    func render<View: PageView>(
        _ view: View, _ texts: PageTexts, in language: Catalogue, csrf: String?, request: String?,
        here: String,
        reader: PageReader?
    ) throws -> String {
        guard let language = languages[language.tag],
            let template = language.templates[View.template]
        else {
            throw Problem.fault()
        }
        let frame = PageFrame(
            service: service, mark: style.mark, csrf: csrf, request: request, help: links.help)
        let navigation = reader.map { reader in
            PageSurroundings.Navigation(
                items: PagePlace.allCases.map { place in
                    PageSurroundings.Navigation.Item(
                        path: place.path, title: place.title(language.catalogue),
                        isCurrent: place == View.place)
                }, inbox: reader.inbox)
        }
        let whole = PageSurroundings(
            title: texts.title,
            home: request.map { "\(PortalPage.sheetPath)?request=\($0)" } ?? "/me",
            links: footer(language.catalogue), choices: choices(language.catalogue), here: here,
            language: language.catalogue.tag, isRightToLeft: language.catalogue.isRightToLeft,
            hasScript: View.hasScript, isNarrow: reader == nil, version: style.version,
            icon: style.tabIcon.path,
            iconType: style.tabIcon.type, navigation: navigation, deletionDay: reader?.deletionDay,
            recoveryDay: reader?.recoveryDay,
            alert: texts.alert.map(PageSurroundings.Message.init),
            notice: texts.notice.map(PageSurroundings.Message.init),
            content: template.render(view, in: frame))
        return language.layout.render(whole, in: frame)
    }

    private func footer(_ language: Catalogue) -> [PageSurroundings.Link] {
        [
            (links.help, language.text("Help")), (links.privacy, language.text("Privacy")),
            (links.terms, language.text("Terms of use")), (links.imprint, language.text("Imprint")),
        ].compactMap { target, title in
            target.map { PageSurroundings.Link(target: $0, title: title) }
        }
    }

    private func choices(_ language: Catalogue) -> [PageSurroundings.Choice] {
        languages.values.map(\.catalogue).map {
            PageSurroundings.Choice(
                tag: $0.tag, name: PortalText.name(of: $0),
                isChosen: $0.tag.hasSameOctets(as: language.tag))
        }.sorted { $0.tag < $1.tag }
    }
}
