// The look of the page: one style sheet and one mark (Templates/style.css, mark.svg), and the
// operator's replacements. The style sheet defines the colours at its beginning, for light and for
// dark; a test computes their contrast.

import Accounts
import MailCrypto
import Support

/// The operator's own look for the pages of an installation.
package struct PageLooks: Sendable {
    let colours: AccentColours?
    let logo: AppIcon?
    let links: PageLinks

    /// Postern's default look.
    package static let standard = PageLooks(colours: nil, logo: nil)

    package init(colours: AccentColours?, logo: AppIcon?, links: PageLinks = .none) {
        (self.colours, self.logo, self.links) = (colours, logo, links)
    }
}

struct PortalStyle: Sendable {
    /// Changes with the style sheet, the mark, the logo or the script.
    let version: String
    let css: String
    /// The mark or the logo within a page. It has no text, because the text is next to it.
    let mark: String
    let logo: [UInt8]?
    /// Path and type of the tab icon.
    let tabIcon: (path: String, type: String)

    /// The script for passkeys and for copying.
    static let script = Embedded.page_js

    /// The tab icon: a separate file, with a colour for light and for dark tabs.
    static let icon = String(Embedded.mark_svg.dropLast())

    init(_ looks: PageLooks = .standard) {
        let css = Embedded.style_css + (looks.colours.map(Self.css) ?? "")
        logo = looks.logo?.png
        let version = String(
            decoding: Base32.encode(
                SHA256.hash(Array((css + Self.icon + Self.script).utf8) + (logo ?? [])).prefix(5)),
            as: UTF8.self)
        (self.css, self.version) = (css, version)
        tabIcon = logo == nil ? ("/me/mark.svg", "image/svg+xml") : ("/me/logo.png", "image/png")
        mark =
            logo == nil
            ? #"<svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false">"#
                + Self.icon.drop { $0 != ">" }.dropFirst()
            : #"<img class="mark" src="/me/logo.png?v=\#(version)" alt="" width="32" height="32">"#
    }

    /// The operator's colours in place of the default ones, at the end of the style sheet.
    private static func css(_ colours: AccentColours) -> String {
        func variables(_ scheme: AccentColours.Scheme) -> String {
            ":root { --accent: \(scheme.accent); --accent-hover: \(scheme.hover); --on-accent: \(scheme.onAccent); --tile: \(scheme.tile); }"
        }
        return
            "\n\(variables(colours.light))\n@media (prefers-color-scheme: dark) {\n  \(variables(colours.dark))\n}\n"
    }
}
