// The texts of Postern's own messages: built in, and replaceable by the operator's files.

import Accounts
import Foundation
import InternetMessage
import Languages

/// The reason why a text cannot be used.
package struct TemplateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file, or the name of the built-in text.
    package let path: String
    package let message: String
    package var description: String { "\(path): \(message)" }
}

/// The values for a template's names. None of them comes from the requester, so that no one can use
/// Postern to send text to other people.
package struct NoticeValues: Sendable {
    /// The name of the service.
    package var service: String
    package var relayDomain: String
    /// Six digits, in two groups.
    package var code: String?
    package var link: String?
    /// The user's own page.
    package var page: String?
    /// The period of validity, as in `24 hours`.
    package var lifetime: String?
    /// The mail that now goes to another inbox.
    package enum Change: Sendable {
        case all
        /// Except for addresses for which the user chose the inbox.
        case most
        case one
    }
    package var change = Change.all
    /// The day of a coming event, in the form for people.
    package var day: String?
    /// The reasons for the refusal of mail, in our own words.
    package var reasons: [String] = []
    /// The team that wants to send from the address, or that requires a check, under the operator's
    /// name for it.
    package var team: String?

    /// What is kept of a user after the deletion, as a list in words, and the day until which.
    package var kept: String?
    package var until: String?

    package init(
        service: String, relayDomain: String, code: String? = nil, link: String? = nil,
        page: String? = nil,
        lifetime: String? = nil
    ) {
        self.service = service
        self.relayDomain = relayDomain
        self.code = code
        self.link = link
        self.page = page
        self.lifetime = lifetime
    }

    fileprivate func context(_ language: Catalogue) -> [String: Any] {
        var context: [String: Any] = [
            "service": service, "relay_domain": relayDomain, "all": change == .all,
            "stays": change == .most,
            "one": change == .one, "reasons": reasons, "language": language.tag,
            "is_right_to_left": language.isRightToLeft,
        ]
        for (name, value) in [
            ("code", code), ("link", link), ("page", page), ("lifetime", lifetime), ("day", day),
            ("team", team), ("kept", kept), ("until", until),
        ] {
            context[name] = value
        }
        return context
    }
}

/// All texts, checked.
package struct NoticeTemplates: Sendable {
    /// One message: subject, text and HTML.
    package struct Rendered: Sendable, Hashable {
        package let subject: String
        package let text: String
        package let html: String
    }

    private struct Template: Sendable {
        let text: TextTemplate
        let html: HTMLTemplate
    }

    package let languages: Languages
    /// By language tag.
    private let templates: [String: [NoticeKind: Template]]

    /// Longest template file in octets: enough for a letter.
    private static let maximumSize = 100_000

    /// The built-in texts. They are checked in the same way as files.
    package static func standard(
        _ languages: Languages = .english
    ) throws(TemplateError) -> NoticeTemplates {
        try NoticeTemplates(languages) { _ in nil }
    }

    /// The texts of a folder: `verification.txt`, `verification.html` and so on (docs/MAIL.md). The
    /// built-in text replaces a missing file. Throws for a file of another name, and for a file
    /// that cannot be read or does not parse. Also throws for a file without the purpose of the
    /// message: a code or a link.
    package init(folder: String, _ languages: Languages = .english) throws(TemplateError) {
        let known = Set(
            NoticeKind.allCases.flatMap { ["\($0.rawValue).txt", "\($0.rawValue).html"] })
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                !$0.hasPrefix(".")
            }
        } catch {
            throw TemplateError(path: folder, message: "the folder of templates cannot be read")
        }
        for name in names.sorted() where !known.contains(name) {
            throw TemplateError(
                path: "\(folder)/\(name)",
                message:
                    "no template has this name (known: \(known.sorted().joined(separator: ", ")))"
            )
        }
        try self.init(languages) { name throws(TemplateError) in
            guard names.contains(name) else { return nil }
            let path = "\(folder)/\(name)"
            guard let data = FileManager.default.contents(atPath: path),
                data.count <= Self.maximumSize,
                let text = String(data: data, encoding: .utf8)
            else {
                throw TemplateError(
                    path: path,
                    message: "cannot be read as UTF-8 text of at most \(Self.maximumSize) octets")
            }
            return (path, text)
        }
    }

    private init(
        _ languages: Languages,
        _ file: (String) throws(TemplateError) -> (path: String, text: String)?
    ) throws(TemplateError) {
        var all: [String: [NoticeKind: Template]] = [:]
        for language in languages.all { all[language.tag] = try Self.templates(language, file) }
        templates = all
        self.languages = languages
    }

    private static func templates(
        _ language: Catalogue,
        _ file: (String) throws(TemplateError) -> (path: String, text: String)?
    ) throws(TemplateError) -> [NoticeKind: Template] {
        var templates: [NoticeKind: Template] = [:]
        for kind in NoticeKind.allCases {
            let standard = Self.standard(kind)
            let text =
                try file("\(kind.rawValue).txt")
                ?? Self.builtIn("\(kind.rawValue).txt", standard.text)
            let html = Self.framed(
                try file("\(kind.rawValue).html")
                    ?? Self.builtIn("\(kind.rawValue).html", standard.html))
            let template = Template(
                text: try Self.parse(text, language, TextTemplate.init),
                html: try Self.parse(html, language, HTMLTemplate.init))
            templates[kind] = template
            try Self.check(kind, template, language, text: text.path, html: html.path)
        }
        return templates
    }

    /// The files of `Templates`: text with its subject, and HTML. The HTML has no pictures, scripts
    /// or external resources, so that it looks the same everywhere. Styles are in the elements, as
    /// many mail programs remove the `<style>` element. Only the colours for dark screens are in
    /// that of the frame.
    private static func standard(_ kind: NoticeKind) -> (text: String, html: String) {
        switch kind {
        case .verification: (Embedded.verification_txt, Embedded.verification_html)
        case .signIn: (Embedded.sign_in_txt, Embedded.sign_in_html)
        case .deletion: (Embedded.deletion_txt, Embedded.deletion_html)
        case .check: (Embedded.check_txt, Embedded.check_html)
        case .change: (Embedded.change_txt, Embedded.change_html)
        case .newBrowser: (Embedded.new_browser_txt, Embedded.new_browser_html)
        case .newPasskey: (Embedded.new_passkey_txt, Embedded.new_passkey_html)
        case .newAuthenticator: (Embedded.new_authenticator_txt, Embedded.new_authenticator_html)
        case .recoveryBegun: (Embedded.recovery_begun_txt, Embedded.recovery_begun_html)
        case .recoveryCodeUsed: (Embedded.recovery_code_used_txt, Embedded.recovery_code_used_html)
        case .recovery: (Embedded.recovery_txt, Embedded.recovery_html)
        case .plannedDeletion: (Embedded.planned_deletion_txt, Embedded.planned_deletion_html)
        case .refusals: (Embedded.refusals_txt, Embedded.refusals_html)
        case .reply: (Embedded.reply_txt, Embedded.reply_html)
        case .source: (Embedded.source_txt, Embedded.source_html)
        }
    }

    private static let frame = Embedded.frame_html

    /// HTML that is not a complete document gets our frame.
    private static func framed(_ file: (path: String, text: String)) -> (path: String, text: String)
    {
        guard !file.text.lowercased().contains("<html") else { return file }
        return (file.path, frame.replacing("{{{content}}}\n", with: file.text))
    }

    /// Every text of the messages.
    package static var texts: [String] {
        Catalogue.texts(of: frame)
            + NoticeKind.allCases.flatMap { kind in
                let files = standard(kind)
                return [files.text, files.html].flatMap(Catalogue.texts(of:))
            }
    }

    private static func builtIn(_ name: String, _ text: String) -> (path: String, text: String) {
        ("built-in \(name)", text)
    }

    private static func parse<T>(
        _ file: (path: String, text: String), _ language: Catalogue,
        _ template: (String) throws(TemplateSyntaxError) -> T
    ) throws(TemplateError) -> T {
        do {
            return try template(
                language.localised(file.text.replacingOccurrences(of: "\r\n", with: "\n")))
        } catch {
            throw TemplateError(
                path: file.path, message: "is not a valid Mustache template: \(error)")
        }
    }

    private static func check(
        _ kind: NoticeKind, _ template: Template, _ language: Catalogue, text: String, html: String
    ) throws(TemplateError) {
        var sample = NoticeValues(
            service: "Sample", relayDomain: "relay.example", code: "123 456",
            link: "https://sample.example/x",
            page: "https://sample.example/me", lifetime: "24 hours")
        sample.team = "Sample Team"
        guard let rendered = render(template, sample, language) else {
            throw TemplateError(
                path: text,
                message: "the first line must be \"Subject: …\", and an empty line must follow it")
        }
        for (path, body) in [(text, rendered.text), (html, rendered.html)] {
            if kind == .verification || kind == .source || kind == .check, !body.contains("123 456")
            {
                throw TemplateError(
                    path: path, message: "lacks {{code}}, which is needed to confirm")
            }
            if kind == .source || kind == .check, !body.contains("Sample Team") {
                throw TemplateError(
                    path: path,
                    message: "lacks {{team}}, without which users would not know who asked")
            }
            if kind == .signIn || kind == .deletion, !body.contains("https://sample.example/x") {
                throw TemplateError(
                    path: path, message: "lacks {{link}}, which is the purpose of this message")
            }
        }
    }

    /// Subject and bodies of a message.
    package func render(
        _ kind: NoticeKind, _ values: NoticeValues, in language: Catalogue = .english
    ) -> Rendered {
        // Every kind was rendered once when the templates were checked.
        let template = (templates[language.tag] ?? templates[Catalogue.english.tag])?[kind]
        return template.flatMap { Self.render($0, values, language) }
            ?? Rendered(subject: "", text: "", html: "")
    }

    private static func render(
        _ template: Template, _ values: NoticeValues, _ language: Catalogue
    ) -> Rendered? {
        let whole = template.text.render(values.context(language))
        let lines = whole.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0].hasPrefix("Subject: "), lines[1].allSatisfy(\.isWhitespace)
        else { return nil }
        return Rendered(
            subject: String(lines[0].dropFirst("Subject: ".count)), text: wrapped(String(lines[2])),
            html: template.html.render(values.context(language)))
    }

    /// Characters per line in a terminal.
    private static let width = 72

    /// Breaks lines for reading in a terminal; longer words, such as links, stay in one piece.
    private static func wrapped(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard line.count > width else { return String(line) }
            var lines: [String] = []
            for word in line.split(separator: " ") {
                if let last = lines.last, last.count + 1 + word.count <= width {
                    lines[lines.count - 1] += " " + word
                } else {
                    lines.append(String(word))
                }
            }
            return lines.joined(separator: "\n")
        }.joined(separator: "\n")
    }
}
